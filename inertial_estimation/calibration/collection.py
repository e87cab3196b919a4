# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Still poses of one data set, collected while the body beyond an FT sensor is turned by hand.

A pose is the mean of a fifth of a second at rest: the accelerometer reads the size of gravity and
does not tilt, the gyroscope reads little, no contact is reported and no joint moves. Two further
tests compare poses with each other, and so may change their result later: the spread of the
readings within a pose, and how well it fits one rigid body with the others.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.accelerometer import (
    GRAVITY,
    MAX_GRAVITY_ERROR,
    MAX_REST_ACCELERATION,
    MAX_REST_TURNING,
    MIN_GRAVITY_SPREAD,
    MOVING,
    NOT_FINITE,
    TOUCHED,
    Orientations,
    orientations,
)
from inertial_estimation.calibration.in_situ_offset import (
    DIMENSIONS,
    MAX_TOUCHED,
    MIN_GAP,
    affine_subspace,
)
from inertial_estimation.calibration.raw_slopes import (
    MIN_NOISE,
    MIN_SAMPLES,
    fit_slopes,
    untouched,
)

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.intp]

CONTACT, JOINTS = 'contact', 'joints moved'
UNSTEADY, SETTLING = 'unsteady readings', 'settling'
REPEATED, DISORDER = 'enough of this direction', 'out of order'
"""Reasons for which readings are left out, besides those of `accelerometer`."""
KEPT, WAITING = 'kept', 'at rest'

POSE_NS = 200_000_000
MIN_READINGS = 6
"""Of a pose: three in each half."""
SETTLE_NS = 300_000_000
"""After a motion or a contact, until the body is at rest."""
MAX_PAUSE_NS = 250_000_000
"""Between two readings of a pose."""
MAX_TILT = 0.1
"""Change of the accelerometer between the halves of a pose, beside noise [m/s^2]: 6 degrees/s."""
TILT_DEVIATIONS = 4.0
MAX_SPREAD_RATIO = 4.0
"""Of the readings within a pose, over the usual spread."""
MIN_SPREADS, USUAL_QUANTILE = 10, 0.25
"""Poses from which the usual spread is known, and its quantile: three of four may be touched."""
MAX_ALIKE = 10
"""Poses of one direction."""
MIN_DIRECTIONS = 8
"""From which poses are compared with one rigid body."""
MIN_SIZES = 5
"""Poses from which the size of gravity is known."""
MIN_RESIDUAL_RATIO = 2.0
"""Residual of a pose over the spread within poses, from which it is more than noise."""
MAX_RESIDUAL = 0.05
"""Of poses over the third spread: hysteresis of 3 % makes 2 %, a hand in every second pose 9 %."""
DIRECTION_CELLS = 6.0
"""Directions whose rounded multiples agree are alike, within ten degrees or so."""
MIN_COSINE = np.cos(np.deg2rad(60.0))
"""Of a suggested direction with the nearest that was reached."""
SUGGESTED, SUGGESTED_WEIGHT = 3, 0.1

STEPS = tuple(step for step in product((1, 0, -1), repeat=3) if any(step))
DIRECTIONS: Array = np.array([np.array(step) / np.linalg.norm(step) for step in STEPS])
"""Axes, edges and corners of a cube, shape (26, 3)."""
NAMES = tuple(
    ' '.join(f'{"+" if sign > 0 else "-"}{axis}' for axis, sign in zip('xyz', step, strict=True)
             if sign)
    for step in STEPS
)  # fmt: skip
"""Such as '+x -z'."""


class Wanted(NamedTuple):
    """Limits of a complete data set."""

    poses: int = 40
    """Fewer do not show which are touched, see `raw_slopes`."""
    directions: int = 12
    """That differ, see `cell_of`: the readings of four poses always lie in three dimensions."""
    spread: float = 0.1
    """Of gravity along each direction, over its size: tilting 40 degrees to each side."""


USUALLY_WANTED = Wanted()


@dataclass(frozen=True, eq=False)
class Coverage:
    """Directions of gravity in a data set."""

    counts: Indices
    """Poses with gravity nearest to each of the 26 directions, shape (26,)."""
    orientations: Orientations | None
    """None: no pose yet."""
    n_directions: int
    """That differ, see `cell_of`."""
    gap: float
    """Third singular value of the readings over the fourth; NaN: not known yet."""
    residual: float
    """Of one rigid body beyond noise, over the third spread of the readings; NaN: not known."""
    suggestions: tuple[str, ...]
    """Near directions that excite most, best first."""
    shortfalls: tuple[str, ...]
    """Limits that are not reached; empty: complete."""

    @property
    def is_enough(self) -> bool:
        """Whether the data set is complete."""
        return not self.shortfalls

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the directions that were not reached."""
        return tuple(name for name, n in zip(NAMES, self.counts, strict=True) if not n)

    @property
    def n_poses(self) -> int:
        """Number of poses."""
        return int(self.counts.sum())


def coverage_of(
    accelerations: Array,
    gap: float = np.nan,
    wanted: Wanted = USUALLY_WANTED,
    residual: float = np.nan,
) -> Coverage:
    """Return the coverage of poses; accelerations (n, 3) [m/s^2]."""
    n = len(accelerations)
    if not n:
        counts = np.zeros(len(STEPS), dtype=np.intp)
        nothing = (f'0 poses, expected {wanted.poses}',)
        return Coverage(counts, None, 0, np.nan, np.nan, NAMES[:1], nothing)
    down = -accelerations / np.linalg.norm(accelerations, axis=1)[:, None]
    counts = np.bincount(np.argmax(down @ DIRECTIONS.T, axis=-1), minlength=len(STEPS))
    found = orientations(accelerations)
    n_directions = len({cell_of(one) for one in accelerations})
    least = max(wanted.spread, MIN_GRAVITY_SPREAD)
    short = [
        *([f'{n} poses, expected {wanted.poses}'] * (n < wanted.poses)),
        *([f'{n_directions} directions, expected {wanted.directions}']
          * (n_directions < wanted.directions)),
        *(f'gravity along ({", ".join(f"{x + 0.0:.2f}" for x in axis)}) spreads by {spread:.1%}, '
          f'expected {least:.0%}'
          for spread, axis in zip(found.spreads, found.directions, strict=True)
          if spread < least),
    ]  # fmt: skip
    if gap < MIN_GAP:
        short.append(f'readings move along more than three directions: gap {gap:.1f}, expected '
                     f'{MIN_GAP:g}')  # fmt: skip
    if residual > MAX_RESIDUAL:
        short.append(f'poses do not fit one rigid body: residual {residual:.0%}, limit '
                     f'{MAX_RESIDUAL:.0%}')  # fmt: skip
    return Coverage(
        counts, found, n_directions, gap, residual, _suggestions(down, counts), tuple(short)
    )


def cell_of(acceleration: Array) -> tuple[int, ...]:
    """Return a key that like directions share; acceleration (3,)."""
    unit = acceleration / np.linalg.norm(acceleration)
    return tuple(int(x) for x in np.round(DIRECTION_CELLS * unit))


def _suggestions(down: Array, counts: Indices) -> tuple[str, ...]:
    """Return near directions that raise the smallest spread most; down (n, 3)."""
    reached = DIRECTIONS[counts > 0]
    mean = down.mean(axis=0)
    square = (down - mean).T @ (down - mean) / len(down)
    gains = np.full(len(STEPS), -np.inf)
    for k, direction in enumerate(DIRECTIONS):
        if counts[k] or (reached @ direction).max() < MIN_COSINE:
            continue
        off = direction - mean
        share = SUGGESTED_WEIGHT / (1.0 + SUGGESTED_WEIGHT)
        with_it = (square + share * np.outer(off, off)) / (1.0 + SUGGESTED_WEIGHT)
        gains[k] = np.linalg.eigvalsh(with_it)[0]
    best = np.argsort(-gains, kind='stable')[:SUGGESTED]
    return tuple(NAMES[k] for k in best if np.isfinite(gains[k]))


class Pose(NamedTuple):
    """A still pose: means of its readings."""

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
    """Still poses of one data set; metric (6, 6) makes raw channels comparable."""

    def __init__(self, metric: Array | None = None, wanted: Wanted = USUALLY_WANTED) -> None:
        self._metric = np.eye(6) if metric is None else metric
        self._wanted = wanted
        self.poses: list[Pose] = []
        self.left_out: Counter[str] = Counter()
        self.received = 0
        self.state = ''
        """What became of the last reading."""
        self._block: list[tuple[int, Array, Array]] = []
        self._last_ns = self._quiet_from_ns = 0
        self._cells: dict[tuple[int, ...], list[Pose]] = {}
        self._rejected: list[str] | None = None
        self._gravity = float('nan')
        self._coverage: Coverage | None = None

    def update(
        self,
        stamp_ns: int,
        raw: Array,
        acceleration: Array,
        turning: Array | None = None,
        *,
        disturbance: str = '',
    ) -> str:
        """
        Take the readings of one sample; return what becomes of them.

        raw (6,); acceleration (3,) [m/s^2]; turning (3,) [rad/s]; disturbance: why it is not
        to be used, if another source tells.
        """
        self.received += 1
        self.state = self._take(stamp_ns, raw, acceleration, turning, disturbance)
        return self.state

    def add(self, pose: Pose) -> None:
        """Add a pose, as from a file."""
        self.received += pose.n_readings
        self._keep(pose)

    @property
    def pending(self) -> int:
        """Readings of the pose that is not complete."""
        return len(self._block)

    @property
    def rejected(self) -> list[str]:
        """Why each pose does not agree with the others; empty: it does."""
        if self._rejected is None:
            self._rejected = _reject(self.poses)
            self._coverage = None
        return self._rejected

    @property
    def samples(self) -> tuple[Array, Array]:
        """Poses that agree with each other: raw readings (n, 6), accelerations (n, 3)."""
        kept = [one for one, why in zip(self.poses, self.rejected, strict=True) if not why]
        raw = np.array([one.raw for one in kept]).reshape(-1, 6)
        return raw, np.array([one.acceleration for one in kept]).reshape(-1, 3)

    def counts(self) -> dict[str, int]:
        """Return the number of readings that are kept, and of those left out by reason."""
        left_out, kept = Counter(self.left_out), 0
        for pose, why in zip(self.poses, self.rejected, strict=True):
            if why:
                left_out[why] += pose.n_readings
            else:
                kept += pose.n_readings
        return {KEPT: kept, **{why: n for why, n in left_out.most_common() if n}}

    def coverage(self) -> Coverage:
        """Return the coverage of the poses."""
        rejected = self.rejected
        if self._coverage is None:
            raw, accelerations = self.samples
            gap = residual = np.nan
            if len(raw) >= MIN_SAMPLES and orientations(accelerations).n_excited == 3:
                subspace, metric = affine_subspace(raw, self._metric), self._metric
                gap = subspace.gap
                noise = fit_slopes(raw, accelerations).noise
                left = np.sqrt(np.diagonal(metric @ noise @ metric.T))
                spreads = [one.spread for one, why in zip(self.poses, rejected) if not why]
                usual = np.sqrt(metric**2 @ np.median(spreads, axis=0) ** 2)
                beyond = np.where(left > MIN_RESIDUAL_RATIO * usual, left, 0.0).max()
                residual = float(beyond / subspace.spreads[DIMENSIONS - 1])
            self._coverage = coverage_of(accelerations, gap, self._wanted, residual)
        return self._coverage

    def _take(
        self, stamp_ns: int, raw: Array, acceleration: Array, turning: Array | None, why: str
    ) -> str:
        """Take a reading; return what becomes of it."""
        if stamp_ns <= self._last_ns:
            self.left_out[DISORDER] += 1
            return DISORDER
        if self._block and stamp_ns - self._last_ns > MAX_PAUSE_NS:
            self._drop(SETTLING)
        self._last_ns = stamp_ns
        if why := why or _why_not_still(raw, acceleration, turning):
            self._drop(why)
            self.left_out[why] += 1
            self._quiet_from_ns = stamp_ns + SETTLE_NS
            return why
        if stamp_ns < self._quiet_from_ns:
            self.left_out[SETTLING] += 1
            return SETTLING
        self._block.append((stamp_ns, raw.copy(), acceleration.copy()))
        if stamp_ns - self._block[0][0] < POSE_NS or len(self._block) < MIN_READINGS:
            return WAITING
        return self._close()

    def _close(self) -> str:
        """Make a pose of the block, unless it moved or there are enough like it."""
        stamps, raw, accelerations = zip(*self._block, strict=True)
        a = np.array(accelerations)
        # Of the mean: single readings have the noise of the accelerometer.
        off = abs(np.linalg.norm(a.mean(axis=0)) - self._gravity)
        if _tilts(a) or off > MAX_REST_ACCELERATION:
            self._drop(MOVING)
            return MOVING
        pose = Pose(
            stamps[-1], np.mean(raw, axis=0), a.mean(axis=0), np.std(raw, axis=0), len(stamps)
        )
        self._block.clear()
        return self._keep(pose)

    def _keep(self, pose: Pose) -> str:
        """Keep a pose unless there are enough like it; a rejected one makes room."""
        alike = self._cells.setdefault(cell_of(pose.acceleration), [])
        if len(alike) >= MAX_ALIKE:
            spare = [
                k for k, why in enumerate(self.rejected)
                if why and any(self.poses[k] is one for one in alike)
            ]  # fmt: skip
            if not spare:
                self.left_out[REPEATED] += pose.n_readings
                return REPEATED
            gone = self.poses.pop(spare[0])
            self.left_out[self.rejected[spare[0]]] += gone.n_readings
            alike[:] = [one for one in alike if one is not gone]
        alike.append(pose)
        self.poses.append(pose)
        self._rejected = None
        if len(self.poses) >= MIN_SIZES:
            sizes = [np.linalg.norm(one.acceleration) for one in self.poses]
            self._gravity = float(np.median(sizes))
        return KEPT

    def _drop(self, why: str) -> None:
        """Leave the readings of the block out."""
        if self._block:
            self.left_out[why] += len(self._block)
            self._block.clear()


def _why_not_still(raw: Array, acceleration: Array, turning: Array | None) -> str:
    """Return why a reading is not at rest; empty: it may be."""
    size = float(np.sqrt(acceleration @ acceleration))
    if not (np.isfinite(raw).all() and np.isfinite(size)):
        return NOT_FINITE
    if abs(size - GRAVITY) > MAX_GRAVITY_ERROR * GRAVITY:
        return MOVING
    if turning is not None and float(turning @ turning) > MAX_REST_TURNING**2:
        return MOVING
    return ''


def _tilts(accelerations: Array) -> bool:
    """Return whether the accelerometer changes within a pose; (n, 3) [m/s^2]."""
    n = len(accelerations) // 2
    first, second = accelerations[:n], accelerations[-n:]
    noise = np.sqrt((first.var(axis=0) + second.var(axis=0)).sum() / n)
    change = np.linalg.norm(second.mean(axis=0) - first.mean(axis=0))
    return bool(change > MAX_TILT + TILT_DEVIATIONS * noise)


def _reject(poses: list[Pose]) -> list[str]:
    """Return why poses do not agree with the others; empty: they do."""
    if not poses:
        return []
    why = np.full(len(poses), '', dtype=object)
    raw = np.array([one.raw for one in poses])
    why[_unsteady(np.array([one.spread for one in poses]), raw)] = UNSTEADY
    steady = np.flatnonzero(why == '')
    accelerations = np.array([poses[k].acceleration for k in steady]).reshape(-1, 3)
    few = len({cell_of(one) for one in accelerations}) < MIN_DIRECTIONS
    if few or len(steady) < MIN_SAMPLES or orientations(accelerations).n_excited < 3:
        return list(why)
    fits = untouched(raw[steady], accelerations)
    # With more of them it is uncertain which are touched: `Coverage.gap` shows it.
    if (~fits).mean() <= MAX_TOUCHED:
        why[steady[~fits]] = TOUCHED
    return list(why)


def _unsteady(spreads: Array, raw: Array) -> Mask:
    """Return the poses within which readings spread far more than usual, (n,)."""
    if len(spreads) < MIN_SPREADS:
        return np.zeros(len(spreads), dtype=bool)
    usual = np.quantile(spreads, USUAL_QUANTILE, axis=0)
    # A channel that mostly is constant within a pose is as fine as its steps.
    usual = np.where(usual > 0.0, usual, spreads.max(axis=0))
    usual = np.maximum(usual, MIN_NOISE * raw.std(axis=0))
    ratios = np.sqrt(((spreads / np.where(usual > 0.0, usual, 1.0)) ** 2).mean(axis=1))
    return np.asarray(ratios > MAX_SPREAD_RATIO)
