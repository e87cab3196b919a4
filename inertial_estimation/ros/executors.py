# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Command line, executors, signals that end a node, timers on the steady clock, and services."""

import re
import signal
import sys
import traceback
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from inspect import isawaitable
from typing import Any

import rclpy
from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.clock import Clock, ClockType
from rclpy.exceptions import ParameterException
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.logging import get_logger
from rclpy.node import Node
from rclpy.service import Service
from rclpy.signals import SignalHandlerOptions
from rclpy.subscription import Subscription
from rclpy.task import Future
from rclpy.utilities import remove_ros_args
from std_srvs.srv import SetBool

from inertial_estimation.errors import ConfigError, InertialEstimationError

try:
    from rclpy.experimental import EventsExecutor
except ImportError:
    # Of an older rclpy.
    EventsExecutor = None

# Without a timeout some builds of the events executor wait for ever and ignore signals.
LONG = 1e6
SIGNAL_PERIOD = 0.1
"""Longest time for which a signal waits [s]."""
SWITCH_INTERVAL = 1e-4
"""Between threads of the interpreter [s]: a joint state wakes up the cycle that much later."""
END_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class PolledGroup(ReentrantCallbackGroup):
    """Subscriptions of a `PollingNode` that their owner polls."""


class PollingNode(Node):
    """A node whose executor does not see subscriptions that are polled."""

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """Subscriptions that wake the executor."""
        found = super().subscriptions
        return (one for one in found if not isinstance(one.callback_group, PolledGroup))


class SteadyTimer:
    """
    Timer on the steady clock, so that simulated time that stands still stops nothing.

    An executor may still call a timer that was due when it was destroyed; this one then calls
    nothing. period [s].
    """

    def __init__(self, node: Node, period: float, callback: Callable[[], None]) -> None:
        self._node, self._callback, self._destroyed = node, callback, False
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(period, self._call, clock=steady)

    def destroy(self) -> None:
        """Destroy the timer."""
        self._destroyed = True
        self._node.destroy_timer(self._timer)

    def _call(self) -> None:
        if not self._destroyed:
            self._callback()


def init(args: Sequence[str] | None) -> None:
    """Initialise rclpy without its signal handlers, which would interrupt callbacks anywhere."""
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        # It names the lines of its own source.
        text = ' '.join(re.sub(r', at \S+:\d+', '', str(error)).split())
        raise ConfigError(f'ROS refuses the command line: {text}') from error
    own = remove_ros_args(sys.argv)[1:] if args is None else remove_ros_args(list(args))
    if own:
        raise ConfigError(f"'{own[0]}' on the command line is not after --ros-args")


def run_node(make: Callable[[], Node], name: str, args: Sequence[str] | None = None) -> int:
    """
    Run a node until it is done or a signal comes, be it before it has started; return exit code.

    A node may have a future `done`, in which a text is an error, and what a signal does as `stop`.
    """
    signals: list[int] = []
    for number in END_SIGNALS:
        signal.signal(number, lambda number, _: signals.append(number))
    try:
        init(args)
        node = make()
    except (InertialEstimationError, ParameterException) as error:
        get_logger(name).fatal(str(error))
        rclpy.try_shutdown()
        return 1
    # A cycle waits no longer for the thread of the diagnostics, once each time that it wakes up.
    sys.setswitchinterval(SWITCH_INTERVAL)
    done = getattr(node, 'done', Future())
    stop = getattr(node, 'stop', partial(done.set_result, ''))
    timer = SteadyTimer(node, SIGNAL_PERIOD, lambda: signals and not done.done() and stop())
    executor: Executor = (EventsExecutor or SingleThreadedExecutor)(context=node.context)
    executor.add_node(node)
    try:
        # A signal may wake the executor before its handler has run.
        while node.context.ok() and not done.done():
            executor.spin_until_future_complete(done, timeout_sec=LONG)
    except ExternalShutdownException:
        pass
    finally:
        timer.destroy()
        executor.remove_node(node)
        executor.shutdown()
        node.destroy_node()
    rclpy.try_shutdown()
    if done.done() and (error := done.result()):
        get_logger(name).fatal(error)
        return 1
    return 0


def create_service(
    node: Node, kind: type, name: str, work: Callable[..., str | Awaitable[str]], refusal: str = ''
) -> Service:
    """
    Create a service that answers with the text of some work, or with the reason of its refusal.

    An exception that left its callback would end the node.

    `work` gets the ``data`` of a SetBool, and nothing of a Trigger.
    """

    async def answer(request, response):
        response.success, text = False, ''
        try:
            found = work(request.data) if kind is SetBool else work()
            text, response.success = (await found if isawaitable(found) else found), True
        except InertialEstimationError as error:
            text = f'{refusal}: {error}' if refusal else str(error)
        except Exception as error:
            node.get_logger().error(_sendable(f'{name}: {traceback.format_exc()}'))
            text = f'{type(error).__name__}: {error}; see the log'
        response.message = _sendable(text)
        return response

    # Members of another kind of group, such as the default one, wait for each other.
    service = node.create_service(kind, name, answer, callback_group=ReentrantCallbackGroup())
    send = service.send_response

    def send_if_there(response: Any, header: Any) -> None:
        try:
            send(response, header)
        except InvalidHandle:
            node.get_logger().warning(f'{name} was cleaned up before it could be answered')

    service.send_response = send_if_there
    return service


def _sendable(text: str) -> str:
    """Return a text without single surrogates, as files may hold: ROS takes none."""
    return text.encode(errors='replace').decode()
