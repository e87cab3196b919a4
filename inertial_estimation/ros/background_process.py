# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The process that works for a node, which `background` starts.

Functions and arguments come pickled on standard input, results and errors go to standard output;
the process ends when the input does. It runs without ROS.
"""

import os
import pickle
import signal
import sys
import traceback
from contextlib import suppress
from typing import Any, BinaryIO

from inertial_estimation.errors import CalibrationError, InertialEstimationError, OffsetsNotUnique

NICENESS = 10
"""Below the processes that run cycles."""
LAST_LINES = 3
"""Of a traceback."""


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


def _outcome(work: Any, arguments: tuple) -> tuple[Any, CalibrationError | None]:
    """Return the result of some work and no error, or no result and its error."""
    try:
        return work(*arguments), None
    except OffsetsNotUnique as error:
        return None, error
    except InertialEstimationError as error:
        # Others need not survive a pickle.
        return None, CalibrationError(str(error), about=error.about)
    except Exception:
        last = ' '.join(traceback.format_exc().strip().splitlines()[-LAST_LINES:])
        return None, CalibrationError(f'unexpected error: {last}')
