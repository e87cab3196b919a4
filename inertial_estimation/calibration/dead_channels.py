# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Channels of an FT sensor that say nothing while the others follow gravity."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.raw_slopes import fit_slopes
from inertial_estimation.errors import LogError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STANDS_STILL = 0.002
"""
Slope by gravity over the median one of the channels beside it, below which a channel stands still.
Forces of a weight have equal slopes but for gains. Of the gauges of 32 real sensors, with bodies
anywhere within 0.3 m, the least was 0.006.
"""
AXES = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
FEWEST = 7
"""Readings; of fewer some may be the same by chance where a sensor has coarse steps."""
ROUND_OFF = 1e-13
"""Of the size of a channel: what filters and means make of readings that are all the same."""


def constant_channels(readings: Array) -> Mask:
    """
    Tell which channels never change while others of the same sensor do.

    readings (n, 6); returns (6,).
    """
    known = readings[np.isfinite(readings).all(axis=1)]
    if len(known) < FEWEST:
        return np.zeros(6, dtype=bool)
    constant: Mask = np.ptp(known, axis=0) <= ROUND_OFF * np.abs(known).max(axis=0)
    return constant & (not constant.all())


def never_changes(channels: Mask) -> str:
    """
    Say which channels never change.

    channels (6,).
    """
    return f'{_numbered(channels, ("never changes", "never change"))} while the others do'


def require_live(
    raw: Array, accelerations: Array, matrix: Array | None, length_scale: float, what: str
) -> None:
    """
    Refuse a channel that never changes, or hardly follows gravity beside the others.

    raw (n, 6); accelerations (n, 3) [m/s^2]; matrix (6, 6); length_scale [m].
    """
    if (np.ptp(raw, axis=0) == 0.0).all():
        # The whole sensor is dead, which its subspace tells.
        return
    constant = constant_channels(raw)
    if constant.any():
        raise _dead(what, never_changes(constant))
    sizes = np.linalg.norm(fit_slopes(raw, accelerations).slopes, axis=1)
    if matrix is None or np.array_equal(matrix, np.eye(6)):
        sizes = sizes[:3]
    else:
        # As wrenches, whatever the unit of each gauge is.
        scale = np.repeat([1.0, 1.0 / length_scale], 3)
        sizes = sizes * np.linalg.norm(scale[:, None] * matrix, axis=0)
    still = sizes < STANDS_STILL * np.median(sizes)
    if still.any():
        said = _numbered(still, ('stands still', 'stand still'))
        raise _dead(what, f'{said} while the others follow gravity')


def _dead(what: str, said: str) -> LogError:
    """Return the error that says which channels are dead."""
    return LogError(
        f"{what}: {said}: look at the sensor's cable and topic, or at 'readings'",
        about=('readings',),
    )


def _numbered(channels: Mask, does: tuple[str, str]) -> str:
    """Name channels, and say what one or several of them do."""
    dead = np.flatnonzero(channels)
    several = len(dead) > 1
    numbers = ', '.join(str(k + 1) for k in dead)
    names = ', '.join(AXES[k] for k in dead)
    return f'of six readings number{"s" * several} {numbers} ({names} of a wrench) {does[several]}'
