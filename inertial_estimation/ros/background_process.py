# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The process that works for a node, which `background` starts.

Functions and arguments come pickled on standard input, outcomes go to standard output; the process
ends when the input does. It runs without ROS.
"""

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any, BinaryIO

from inertial_estimation.errors import InertialEstimationError

NICENESS = 10
"""Below the processes that run cycles."""
DONE = 'done'


def main() -> int:
    """Work until the input ends."""
    # The node decides when it is over, and ctrl-c reaches both.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Libraries may print; outcomes have a stream of their own.
    answers = os.fdopen(os.dup(1), 'wb')
    os.dup2(2, 1)
    # Take back the real-time priority and the processors of the node.
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with suppress(OSError):
        os.sched_setaffinity(0, range(os.cpu_count() or 1))
    os.nice(NICENESS)
    with suppress(EOFError, BrokenPipeError), answers:
        while True:
            work, arguments = _next(sys.stdin.buffer)
            pickle.dump(_outcome(work, arguments), answers)
            answers.flush()
    return 0


def _next(stream: BinaryIO) -> tuple[Any, tuple]:
    """Return the next piece of work and its arguments; raise EOFError if there is none."""
    try:
        found: tuple[Any, tuple] = pickle.load(stream)
    except pickle.UnpicklingError as error:
        # A node that is ended while it sends leaves a part of it.
        if stream.read(1):
            raise
        raise EOFError from error
    return found


def _outcome(work: Any, arguments: tuple) -> tuple[str, Any]:
    """Return the kind of outcome of some work, and its result or error."""
    try:
        return DONE, work(*arguments)
    except InertialEstimationError as error:
        return type(error).__name__, (str(error), error.about)
    except Exception:
        return '', traceback.format_exc()
