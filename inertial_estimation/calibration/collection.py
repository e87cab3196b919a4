# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Collects the still moments of one data set while the body beyond an FT sensor is turned.

Readings come one by one. A moment is a fifth of a second at rest, kept as its mean: the
accelerometer reads the size of gravity and does not tilt, the gyroscope reads little, and nothing
tells of a contact or of joints that move. What is not at rest is left out and counted by its
reason. Two further tests hold moments against each other, and so may change their mind later: the
spread of the readings within a moment, and how well it fits one rigid body with the others.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.affine_subspace import DIMENSIONS, affine_subspace
from inertial_estimation.calibration.coverage import (
    USUALLY_WANTED,
    Coverage,
    Wanted,
    cell_of,
    coverage_of,
)
from inertial_estimation.calibration.excitation import orientations
from inertial_estimation.calibration.quiet_samples import (
    GRAVITY,
    MOVING,
    NOT_FINITE,
    STILL_ACCELERATION,
    STILL_TURNING,
    TOUCHED,
    UNIT_DOUBT,
)
from inertial_estimation.calibration.raw_slopes import FEWEST, FINEST, fit_slopes, untouched

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

CONTACT, JOINTS = 'contact', 'joints moved'
"""Reasons that whoever hands readings over may give."""
UNSTEADY, SETTLING = 'unsteady readings', 'settling'
REPEATED, DISORDER = 'enough of this direction', 'out of order'
"""Reasons of its own, besides those of `quiet_samples`."""
KEPT, WAITING = 'kept', 'at rest'
"""What `Collection.update` says of a reading that is not left out."""

MOMENT_NS = 200_000_000
"""Length of a still moment [ns]."""
FEWEST_READINGS = 6
"""Of a moment: three in each half."""
SETTLE_NS = 300_000_000
"""After a motion or a contact, until the body is at rest [ns]."""
LONGEST_GAP_NS = 250_000_000
"""Between two readings of a moment [ns]."""
TILT = 0.1
"""
From one half of a moment to the other the accelerometer may change by so much beside its noise
[m/s^2]: 6 degrees a second, at which delays between sensors of 10 ms are 0.06 degrees.
"""
NOISE_OF_HALVES = 4.0
"""Standard deviations by which noise alone makes two halves differ."""
SPREAD_FACTOR = 4.0
"""
Over the usual spread of the readings within a moment, from which a moment is unsteady. Spreads of
six channels together over ten readings differ by a fifth of it.
"""
ENOUGH_SPREADS = 10
"""Moments from which the usual spread is known."""
USUAL = 0.25
"""Quantile of the spreads that is usual: three of four moments may be touched."""
MOST_IN_CELL = 10
"""Moments of directions that are alike, see `cell_of`; more would outweigh the others."""
MOST_TOUCHED = 0.4
"""As for `offset_in_situ`."""
DIRECTIONS_TO_JUDGE = 8
"""Cells from which moments are held against one rigid body."""
ENOUGH_SIZES = 5
"""Moments from which their median tells what size the accelerometer reads."""
BEYOND_SPREAD = 2.0
"""
What a moment leaves of one rigid body, over the spread of the readings within moments, from which
it is more than noise, be that noise as slow as it may.
"""


class Moment(NamedTuple):
    """A still moment: means of its readings."""

    stamp_ns: int
    """Of its last reading [ns]."""
    raw: Array
    """Shape (6,), in the raw unit."""
    acceleration: Array
    """Shape (3,) [m/s^2]."""
    spread: Array
    """Standard deviation of the raw readings within it, shape (6,)."""
    n_readings: int
    """Readings that it is the mean of."""


class Collection:
    """
    The still moments of one data set.

    metric (6, 6).
    """

    def __init__(self, metric: Array | None = None, wanted: Wanted = USUALLY_WANTED) -> None:
        self._metric, self._wanted = metric, wanted
        self.moments: list[Moment] = []
        self.left_out: Counter[str] = Counter()
        self.received = 0
        self.state = ''
        self._block: list[tuple[int, Array, Array]] = []
        self._last_ns = self._quiet_from_ns = 0
        self._cells: dict[tuple[int, ...], list[Moment]] = {}
        self._judged: dict[int, str] = {}
        self._gravity = float('nan')
        self._coverage: Coverage | None = None

    @property
    def pending(self) -> int:
        """Readings of the moment that is not complete yet."""
        return len(self._block)

    def update(
        self,
        stamp_ns: int,
        raw: Array,
        acceleration: Array,
        turning: Array | None = None,
        *,
        spoilt: str = '',
    ) -> str:
        """
        Take the readings of one instant.

        raw (6,); acceleration (3,) [m/s^2]; turning (3,) [rad/s].
        """
        self.received += 1
        self.state = self._take(stamp_ns, raw, acceleration, turning, spoilt)
        return self.state

    @property
    def doubt(self) -> str:
        """Why the newest moment is doubted; empty: it is not, or there is none."""
        self.judge()
        return self._judged[len(self.moments) - 1] if self.moments else ''

    def interrupt(self) -> None:
        """Drop the moment that is not complete, as somebody is about to touch the body."""
        self._drop(SETTLING)
        self._quiet_from_ns = self._last_ns + SETTLE_NS

    def add(self, moment: Moment) -> None:
        """Take a moment, such as one from a file."""
        self.received += moment.n_readings
        self._keep(moment)

    def judge(self) -> Mask:
        """
        Tell which moments agree with each other.

        Returns (n,).
        """
        if len(self._judged) != len(self.moments):
            self._judged = dict(enumerate(_judge(self.moments)))
            self._coverage = None
        return np.array([not why for why in self._judged.values()], dtype=bool)

    def rows(self) -> tuple[Array, Array]:
        """
        Return the moments that agree with each other.

        Returns (n, 6).
        """
        kept = self.judge()
        raw = np.array([one.raw for one in self.moments]).reshape(-1, 6)
        accelerations = np.array([one.acceleration for one in self.moments]).reshape(-1, 3)
        return raw[kept], accelerations[kept]

    def counts(self) -> dict[str, int]:
        """Return what became of the readings."""
        left_out = Counter(self.left_out)
        self.judge()
        kept = 0
        for moment, why in zip(self.moments, self._judged.values(), strict=True):
            if why:
                left_out[why] += moment.n_readings
            else:
                kept += moment.n_readings
        return {KEPT: kept, **{why: n for why, n in left_out.most_common() if n}}

    def coverage(self) -> Coverage:
        """Return what the data set reaches."""
        self.judge()
        if self._coverage is None:
            raw, accelerations = self.rows()
            gap = disagreement = np.nan
            if len(raw) >= FEWEST and orientations(accelerations).n_excited == 3:
                subspace = affine_subspace(raw, self._metric)
                third = float(subspace.spreads[DIMENSIONS - 1])
                gap = subspace.gap
                disagreement = self._unexplained(raw, accelerations) / third
            self._coverage = coverage_of(accelerations, gap, self._wanted, disagreement)
        return self._coverage

    def _unexplained(self, raw: Array, accelerations: Array) -> float:
        """Return what the moments leave of one rigid body, in units of the metric; 0: noise."""
        metric = np.eye(6) if self._metric is None else self._metric
        left = np.sqrt(np.diagonal(metric @ fit_slopes(raw, accelerations).noise @ metric.T))
        spreads = np.array([one.spread for one in self.moments])[self.judge()]
        usual = np.sqrt(metric**2 @ np.median(spreads, axis=0) ** 2)
        return float(np.where(left > BEYOND_SPREAD * usual, left, 0.0).max())

    def _take(
        self, stamp_ns: int, raw: Array, acceleration: Array, turning: Array | None, spoilt: str
    ) -> str:
        """Take a reading; return what becomes of it."""
        if stamp_ns <= self._last_ns:
            self.left_out[DISORDER] += 1
            return DISORDER
        if self._block and stamp_ns - self._last_ns > LONGEST_GAP_NS:
            self._drop(SETTLING)
        self._last_ns = stamp_ns
        if why := spoilt or _why_not(raw, acceleration, turning):
            self._drop(why)
            self.left_out[why] += 1
            self._quiet_from_ns = stamp_ns + SETTLE_NS
            return why
        if stamp_ns < self._quiet_from_ns:
            self.left_out[SETTLING] += 1
            return SETTLING
        self._block.append((stamp_ns, raw.copy(), acceleration.copy()))
        long_enough = stamp_ns - self._block[0][0] >= MOMENT_NS
        if not long_enough or len(self._block) < FEWEST_READINGS:
            return WAITING
        return self._close()

    def _close(self) -> str:
        """Make a moment of the block, unless it moved or there are enough like it."""
        stamps, raw, accelerations = zip(*self._block, strict=True)
        a = np.array(accelerations)
        # Of the mean: single readings are off by the noise of the accelerometer.
        off = abs(np.linalg.norm(a.mean(axis=0)) - self._gravity)
        if _tilts(a) or off > STILL_ACCELERATION:
            self._drop(MOVING)
            return MOVING
        moment = Moment(
            stamps[-1], np.mean(raw, axis=0), a.mean(axis=0), np.std(raw, axis=0), len(stamps)
        )
        self._block.clear()
        return self._keep(moment)

    def _keep(self, moment: Moment) -> str:
        """Keep a moment unless there are enough like it; one that is doubted makes room."""
        cell = cell_of(moment.acceleration)
        alike = self._cells.setdefault(cell, [])
        if len(alike) >= MOST_IN_CELL:
            self.judge()
            doubted = [
                k for k, why in self._judged.items()
                if why and any(self.moments[k] is one for one in alike)
            ]  # fmt: skip
            if not doubted:
                self.left_out[REPEATED] += moment.n_readings
                return REPEATED
            self._forget(doubted[0], alike)
        alike.append(moment)
        self.moments.append(moment)
        if len(self.moments) >= ENOUGH_SIZES:
            sizes = [np.linalg.norm(one.acceleration) for one in self.moments]
            self._gravity = float(np.median(sizes))
        return KEPT

    def _forget(self, k: int, alike: list[Moment]) -> None:
        """Take a doubted moment out."""
        gone = self.moments.pop(k)
        self.left_out[self._judged[k]] += gone.n_readings
        alike[:] = [one for one in alike if one is not gone]
        self._judged = {}

    def _drop(self, why: str) -> None:
        """Leave the readings of the block out."""
        if self._block:
            self.left_out[why] += len(self._block)
            self._block.clear()


def _why_not(raw: Array, acceleration: Array, turning: Array | None) -> str:
    """Return why a reading is not at rest; empty: it may be."""
    size = float(np.sqrt(acceleration @ acceleration))
    if not (np.isfinite(raw).all() and np.isfinite(size)):
        return NOT_FINITE
    # Accelerometers are off by a few percent, and noisy, which says nothing of motion.
    if abs(size - GRAVITY) > UNIT_DOUBT * GRAVITY:
        return MOVING
    if turning is not None and float(turning @ turning) > STILL_TURNING**2:
        return MOVING
    return ''


def _tilts(accelerations: Array) -> bool:
    """Tell whether the accelerometer changes within a moment."""
    n = len(accelerations) // 2
    first, second = accelerations[:n], accelerations[-n:]
    noise = np.sqrt((first.var(axis=0) + second.var(axis=0)).sum() / n)
    change = np.linalg.norm(second.mean(axis=0) - first.mean(axis=0))
    return bool(change > TILT + NOISE_OF_HALVES * noise)


def _judge(moments: list[Moment]) -> list[str]:
    """Return why moments are doubted; empty: they are not."""
    if not moments:
        return []
    why = np.full(len(moments), '', dtype=object)
    raw = np.array([one.raw for one in moments])
    why[_unsteady(np.array([one.spread for one in moments]), raw)] = UNSTEADY
    steady = np.flatnonzero(why == '')
    accelerations = np.array([moments[k].acceleration for k in steady]).reshape(-1, 3)
    if not _can_be_judged(accelerations):
        return list(why)
    fits = untouched(raw[steady], accelerations)
    # With more of them it is not clear which are touched: `Coverage.gap` says so.
    if (~fits).mean() <= MOST_TOUCHED:
        why[steady[~fits]] = TOUCHED
    return list(why)


def _unsteady(spreads: Array, raw: Array) -> Mask:
    """Tell within which moments the readings spread far more than usual."""
    if len(spreads) < ENOUGH_SPREADS:
        return np.zeros(len(spreads), dtype=bool)
    usual = np.quantile(spreads, USUAL, axis=0)
    # A channel that mostly does not change within a moment is as fine as its steps are.
    usual = np.where(usual > 0.0, usual, spreads.max(axis=0))
    usual = np.maximum(usual, FINEST * raw.std(axis=0))
    ratios = np.sqrt(((spreads / np.where(usual > 0.0, usual, 1.0)) ** 2).mean(axis=1))
    return np.asarray(ratios > SPREAD_FACTOR)


def _can_be_judged(accelerations: Array) -> bool:
    """Tell whether directions are many enough to hold moments against one rigid body."""
    if len(accelerations) < FEWEST:
        return False
    cells = {cell_of(one) for one in accelerations}
    return len(cells) >= DIRECTIONS_TO_JUDGE and orientations(accelerations).n_excited == 3
