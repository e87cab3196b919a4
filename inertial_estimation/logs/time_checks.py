# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether stamps of a table can be in the unit that is said."""

from __future__ import annotations

import numpy as np

from inertial_estimation.errors import LogError
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.signals import UNITS, Signal
from inertial_estimation.sample import SampleBatch

FASTEST = 5e4
"""No robot is recorded faster [Hz]."""
SLOWEST = 5.0
"""Slower logs of robots in motion are rare [Hz]."""
NANOSECONDS = 1e-9


def require_possible_rate(samples: SampleBatch, time: Signal, how: Preparation) -> None:
    """Refuse stamps that are likely in another unit than is said."""
    steps = np.abs(np.diff(samples.stamp_ns))
    if not steps.any():
        return
    # Stamps that are rounded stand still most of the time.
    period = float(np.median(steps) or np.mean(steps)) * NANOSECONDS
    rate = 1.0 / period
    if rate > FASTEST:
        problem, other = 'faster than any robot is recorded', 'mend the stamps'
    elif rate < SLOWEST and how.cutoff >= 0.5 * rate:
        problem = f'but cutoff is {how.cutoff:g} Hz'
        other = f'choose a cutoff below {0.5 * rate:.4g} Hz, or 0 for no filter'
    elif rate < SLOWEST and period > how.largest_gap:
        problem = f'but gaps of more than {how.largest_gap:g} s are not bridged'
        other = 'choose a longer preparation.largest_gap'
    else:
        return
    rates = {unit: rate * float(time.unit) / size for unit, size in UNITS['time'].items()}
    likely = [f'{unit} ({hz:.4g} Hz)' for unit, hz in rates.items() if SLOWEST <= hz <= FASTEST]
    unit = f"mend '{time.name}.unit' if they are in {' or '.join(likely)}, else " if likely else ''
    raise LogError(
        f'the log has {rate:.4g} Hz, as its stamps say in {_unit(time)}, {problem}: {unit}{other}'
    )


def _unit(time: Signal) -> str:
    """Return the unit that is said."""
    return time.units[0] if time.units else 's'
