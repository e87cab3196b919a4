# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How long work in the background takes, and why it takes longer than there is time."""

from collections.abc import Callable
from time import perf_counter, thread_time
from typing import NamedTuple

WAITED = 0.5
"""Of the time that work took: who had less of a processor mostly waited for one."""


class Spent(NamedTuple):
    """What a piece of work took."""

    seconds: float
    """From its begin to its end [s]."""
    computed: float
    """In which this thread had a processor [s]."""

    def plus(self, other: 'Spent') -> 'Spent':
        """Return what this and another piece took together."""
        return Spent(self.seconds + other.seconds, self.computed + other.computed)


def stopwatch() -> Callable[[], Spent]:
    """Begin to measure."""
    begin, own = perf_counter(), thread_time()
    return lambda: Spent(perf_counter() - begin, thread_time() - own)


def shortfall(spent: Spent, available: float) -> str:
    """
    Return why work does not keep up with what comes in.

    available [s].
    """
    if spent.seconds <= available:
        return ''
    said = (
        f'does not keep up: what came within {available:g} s took {spent.seconds:.1f} s to work '
        f'in, {spent.computed:.1f} s of them on a processor; '
    )
    if spent.computed < WAITED * spent.seconds:
        return said + (
            'it waits for others: give it a processor of its own, or, if OMP_NUM_THREADS is set '
            'above 1, leave that to the node'
        )
    return said + "lower 'rows_rate', or raise 'refit_period'"
