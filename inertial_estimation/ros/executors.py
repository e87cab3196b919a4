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
    """
    Return an executor.

    Parameters
    ----------
    kind : str
        ``events``, where rclpy has it, or ``single``.
    context : rclpy.Context, optional
        Default: the global one.

    Returns
    -------
    Executor

    """
    if kind == 'events' and has_events_executor():
        from rclpy.experimental import EventsExecutor

        return EventsExecutor(context=context)
    return SingleThreadedExecutor(context=context)


def note_signals() -> list[int]:
    """
    Take signals that ask to end as a note from now on, in place of what they did.

    An exception in their place may come where it is only printed, as in a callback that C calls,
    and what was asked for is forgotten.

    Returns
    -------
    list of int
        Filled with the signals that come; for `spin`.

    """
    signals: list[int] = []
    for number in ENDING:
        signal.signal(number, lambda number, _: signals.append(number))
    return signals


def hand_over(signals: Sequence[int], stop: Callable[..., None]) -> None:
    """
    Call a function at every signal that asks to end, and now if there was one.

    Parameters
    ----------
    signals : sequence of int
        From `note_signals`.
    stop : callable
        Fit for a signal handler.

    """
    for number in ENDING:
        signal.signal(number, stop)
    if signals:
        stop()


def spin(node: Node, kind: str, signals: Sequence[int]) -> None:
    """
    Spin a node until its context is shut down or a signal asks to end.

    The context must have been made without signal handlers: those of rclpy raise in the middle of
    callbacks. Here signals are seen between callbacks only.

    Parameters
    ----------
    node : Node
        Any node; called from the main thread.
    kind : str
        As for `make_executor`.
    signals : sequence of int
        From `note_signals`; also one that came before this was called ends it.

    """
    done = Future()

    def look() -> None:
        if signals and not done.done():
            done.set_result(None)

    node.create_timer(WAKE, look)
    executor = make_executor(kind, node.context)
    executor.add_node(node)
    try:
        # A signal may wake the executor before its handler has run.
        while node.context.ok() and not done.done():
            executor.spin_until_future_complete(done, timeout_sec=LONG)
    except ExternalShutdownException:
        pass
    finally:
        executor.remove_node(node)
        executor.shutdown()


def take_priority(fifo_priority: int, cpu_affinity: Sequence[int]) -> list[str]:
    """
    Ask the operating system for a real-time priority and for processors.

    Parameters
    ----------
    fifo_priority : int
        SCHED_FIFO priority of this thread; 0 leaves it as it is.
    cpu_affinity : sequence of int
        Processors to run on; empty leaves it as it is.

    Returns
    -------
    list of str
        What was refused; the node runs all the same.

    """
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
    """
    Let other processes go first.

    Only this thread steps back: those of the middleware still take every message.

    Parameters
    ----------
    niceness : int
        Of this thread, 0 to 19; 0 leaves it as it is.

    Returns
    -------
    list of str
        What was refused; the node runs all the same.

    """
    try:
        now = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, 0, max(now, niceness))
    except OSError as error:
        return [f'niceness {niceness} was refused: {error.strerror}']
    return []
