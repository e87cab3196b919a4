# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a node is spun, and on which terms with the operating system."""

import os
import signal
from collections.abc import Callable, Sequence

from rclpy.callback_groups import CallbackGroup
from rclpy.executors import Executor, ExternalShutdownException, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.task import Future

from inertial_estimation.ros.steady_timer import SteadyTimer

# Without a timeout some builds of the events executor wait for ever, deaf to signals.
LONG = 1e6
WAKE = 0.1
"""How long a signal may wait [s]."""
ENDING = (signal.SIGINT, signal.SIGTERM)
"""The signals that ask a node to end."""


class PolledGroup(CallbackGroup):
    """Holds subscriptions that no executor takes from; their owner polls them."""

    def can_execute(self, entity) -> bool:
        """Keep the entity out of every wait set."""
        return False

    def beginning_execution(self, entity) -> bool:
        """Keep the entity from being executed."""
        return False

    def ending_execution(self, entity) -> None:
        """Do nothing: nothing was begun."""


def has_events_executor() -> bool:
    """Tell whether this rclpy has the events executor."""
    try:
        from rclpy.experimental import EventsExecutor  # noqa: F401
    except ImportError:
        return False
    return True


def make_executor(kind: str, context=None) -> Executor:
    if kind == 'events' and has_events_executor():
        from rclpy.experimental import EventsExecutor

        return EventsExecutor(context=context)
    return SingleThreadedExecutor(context=context)


def note_signals() -> list[int]:
    """Take signals that ask to end as a note from now on, in place of what they did."""
    signals: list[int] = []
    for number in ENDING:
        signal.signal(number, lambda number, _: signals.append(number))
    return signals


def hand_over(signals: Sequence[int], stop: Callable[..., None]) -> None:
    """Call a function at every signal that asks to end, and now if there was one."""
    for number in ENDING:
        signal.signal(number, stop)
    if signals:
        stop()


def spin(node: Node, kind: str, signals: Sequence[int]) -> None:
    """Spin a node until its context is shut down or a signal asks to end."""
    done = Future()

    def look() -> None:
        if signals and not done.done():
            done.set_result(None)

    # Simulated time may stand still.
    timer = SteadyTimer(node, WAKE, look)
    executor = make_executor(kind, node.context)
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


def take_priority(fifo_priority: int, cpu_affinity: Sequence[int]) -> list[str]:
    """Ask the operating system for a real-time priority and for processors."""
    refused = []
    if fifo_priority:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(fifo_priority))
        except OSError as error:
            refused.append(
                f'fifo_priority {fifo_priority} was refused ({error.strerror}): give the process '
                'CAP_SYS_NICE or an rtprio limit'
            )
    if cpu_affinity:
        try:
            os.sched_setaffinity(0, cpu_affinity)
        except (OSError, ValueError) as error:
            refused.append(f'cpu_affinity {list(cpu_affinity)} was refused: {error}')
    return refused


def step_back(niceness: int) -> list[str]:
    """Let other processes go first."""
    try:
        now = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(now, niceness))
    except OSError as error:
        return [f'niceness {niceness} was refused: {error.strerror}']
    return []
