# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Time several calls side by side, so that a machine with other work slows all of them alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array


class Timed(NamedTuple):
    """A call, and how many of them make a block."""

    call: Callable[[], object]
    block: int


def interleave(contenders: Mapping[str, Timed], rounds: int) -> dict[str, Array]:
    """
    Run one small block of each call after the other, again and again.

    Returns (rounds, block) [us].
    """
    durations = {name: np.empty((rounds, timed.block)) for name, timed in contenders.items()}
    for k in range(-1, rounds):
        for name, (call, block) in contenders.items():
            for j in range(block):
                start = perf_counter_ns()
                call()
                spent = perf_counter_ns() - start
                if k >= 0:
                    durations[name][k, j] = spent / 1000.0
    return durations


def ratio(over: Array, under: Array) -> float:
    """
    Return how much longer one call takes than another.

    over, under (rounds, block).
    """
    return float(np.median(np.median(over, axis=1) / np.median(under, axis=1)))
