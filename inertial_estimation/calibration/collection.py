# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Still poses of one data set, collected while the body beyond an FT sensor is turned by hand.

A pose is the mean of a fifth of a second at rest: the accelerometer reads the size of gravity and
does not tilt, the gyroscope reads little, no contact is reported and no joint moves. How well it
fits one rigid body with the others may change later.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
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
from inertial_estimation.calibration.raw_slopes import MIN_SAMPLES, fit_slopes, untouched

CONTACT, JOINTS = 'contact', 'joints moved'
SETTLING, REPEATED, DISORDER = 'settling', 'enough of this direction', 'out of order'
"""Reasons for which readings are left out, besides those of `accelerometer`."""
KEPT, WAITING = 'kept', 'at rest'

POSE_NS = 200_000_000
MIN_READINGS = 6
"""Of a pose: three in each half."""
SETTLE_NS = 300_000_000
"""After a motion or a contact, until the body is at rest."""
MAX_PAUSE_NS = 250_000_000
"""Between two readings of a pose."""
MAX_TILT, TILT_DEVIATIONS = 0.1, 4.0
"""Change of the accelerometer between the halves of a pose, beside noise [m/s^2]: 6 degrees/s."""
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

STEPS: Array = np.array([step for step in product((1, 0, -1), repeat=3) if any(step)], dtype=float)
DIRECTIONS: Array = STEPS / np.linalg.norm(STEPS, axis=1, keepdims=True)
"""Axes, edges and corners of a cube, shape (26, 3)."""
NAMES = tuple(
    ' '.join(f'{"+" if sign > 0 else "-"}{axis}' for axis, sign in zip('xyz', step) if sign)
    for step in STEPS
)
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


class Coverage(NamedTuple):
    """Directions of gravity in a data set."""

    counts: Indices
    """Poses with gravity nearest to each of the 26 directions, shape (26,)."""
    orientations: Orientations | None
    """None: no pose yet."""
    n_directions: int
    """That differ, see `cell_of`."""
    gap: float
    """Third singular value of the readings over the fourth; NaN: not known yet."""
    suggestions: tuple[str, ...]
    """Near directions that excite most, best first."""
    shortfalls: tuple[str, ...]
    """Limits that are not reached; empty: complete."""

    @property
    def is_enough(self) -> bool:
        """True if the data set is complete."""
        return not self.shortfalls

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the directions that were not reached."""
        return tuple(name for name, n in zip(NAMES, self.counts, strict=True) if not n)


def cell_of(acceleration: Array) -> tuple[int, ...]:
    """Return a key that like directions share; acceleration (3,)."""
    unit = acceleration / np.linalg.norm(acceleration)
    return tuple(int(x) for x in np.round(DIRECTION_CELLS * unit))


def _suggestions(down: Array, counts: Indices) -> tuple[str, ...]:
    """Return near directions that raise the smallest spread most; down (n, 3)."""
    reached = DIRECTIONS[counts > 0]
    mean = down.mean(axis=0)
    square = (down - mean).T @ (down - mean) / len(down)
    share = SUGGESTED_WEIGHT / (1.0 + SUGGESTED_WEIGHT)
    off = DIRECTIONS - mean
    raised = (square + share * off[:, :, None] * off[:, None]) / (1.0 + SUGGESTED_WEIGHT)
    near = (counts == 0) & ((DIRECTIONS @ reached.T).max(axis=1) >= MIN_COSINE)
    gains = np.where(near, np.linalg.eigvalsh(raised)[:, 0], -np.inf)
    best = np.argsort(-gains, kind='stable')[:SUGGESTED]
    return tuple(NAMES[k] for k in best if near[k])


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
        """Use of the last reading."""
        self._block: list[tuple[int, Array, Array]] = []
        self._last_ns = self._quiet_from_ns = 0
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
        Take the readings of one sample; return their use.

        raw (6,); acceleration (3,) [m/s^2]; turning (3,) [rad/s]; disturbance: why it is not
        to be used, known otherwise.
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
            raw, accelerations = _arrays(self.poses)
            self._rejected, self._coverage = [''] * len(raw), None
            if len({cell_of(one) for one in accelerations}) >= MIN_DIRECTIONS and (
                len(raw) >= MIN_SAMPLES and orientations(accelerations).n_excited == 3
            ):
                fits = untouched(raw, accelerations)
                # With more of them it is uncertain which are touched: `Coverage.gap` shows it.
                if (~fits).mean() <= MAX_TOUCHED:
                    self._rejected = ['' if fit else TOUCHED for fit in fits]
        return self._rejected

    @property
    def agreeing(self) -> list[Pose]:
        """Poses that agree with each other."""
        return [one for one, why in zip(self.poses, self.rejected, strict=True) if not why]

    @property
    def samples(self) -> tuple[Array, Array]:
        """Raw readings (n, 6) and accelerations (n, 3) of poses that agree with each other."""
        return _arrays(self.agreeing)

    def counts(self) -> dict[str, int]:
        """Return the number of readings that are kept, and of those left out by reason."""
        counts = Counter({KEPT: 0}) + self.left_out
        for pose, why in zip(self.poses, self.rejected, strict=True):
            counts[why or KEPT] += pose.n_readings
        return {KEPT: counts.pop(KEPT, 0), **dict(counts.most_common())}

    def coverage(self) -> Coverage:
        """Return the coverage of the poses."""
        kept = self.agreeing
        if self._coverage is None:
            self._coverage = self._cover(kept)
        return self._coverage

    def _cover(self, kept: list[Pose]) -> Coverage:
        """Return the coverage of poses."""
        (raw, accelerations), n, wanted = _arrays(kept), len(kept), self._wanted
        if not n:
            nothing = (f'0 poses, expected {wanted.poses}',)
            return Coverage(np.zeros(26, dtype=np.intp), None, 0, np.nan, NAMES[:1], nothing)
        down = -accelerations / np.linalg.norm(accelerations, axis=1)[:, None]
        counts = np.bincount(np.argmax(down @ DIRECTIONS.T, axis=-1), minlength=26)
        found, gap, residual = orientations(accelerations), np.nan, 0.0
        if n >= MIN_SAMPLES and found.n_excited == 3:
            subspace, metric = affine_subspace(raw, self._metric), self._metric
            gap = subspace.gap
            noise = fit_slopes(raw, accelerations).noise
            left = np.sqrt(np.diagonal(metric @ noise @ metric.T))
            usual = np.sqrt(metric**2 @ np.median([one.spread for one in kept], axis=0) ** 2)
            beyond = np.where(left > MIN_RESIDUAL_RATIO * usual, left, 0.0).max()
            residual = float(beyond / subspace.spreads[DIMENSIONS - 1])
        n_directions = len({cell_of(one) for one in accelerations})
        least = max(wanted.spread, MIN_GRAVITY_SPREAD)
        short = [f'{number} {what}, expected {limit}'
                 for number, what, limit in ((n, 'poses', wanted.poses),
                                             (n_directions, 'directions', wanted.directions))
                 if number < limit]  # fmt: skip
        for spread, axis in zip(found.spreads, found.directions, strict=True):
            if spread < least:
                along = ', '.join(f'{x + 0.0:.2f}' for x in axis)
                short.append(
                    f'gravity along ({along}) spreads by {spread:.1%}, expected {least:.0%}'
                )
        if gap < MIN_GAP:
            short.append(f'readings move along more than three directions: gap {gap:.1f}, '
                         f'expected {MIN_GAP:g}')  # fmt: skip
        if residual > MAX_RESIDUAL:
            short.append(f'poses do not fit one rigid body: residual {residual:.0%}, limit '
                         f'{MAX_RESIDUAL:.0%}')  # fmt: skip
        return Coverage(counts, found, n_directions, gap, _suggestions(down, counts), tuple(short))

    def _take(
        self, stamp_ns: int, raw: Array, acceleration: Array, turning: Array | None, why: str
    ) -> str:
        """Take a reading; return its use."""
        if stamp_ns <= self._last_ns:
            self.left_out[DISORDER] += 1
            return DISORDER
        if self._block and stamp_ns - self._last_ns > MAX_PAUSE_NS:
            self._drop(SETTLING)
        self._last_ns = stamp_ns
        if not why:
            size = float(np.sqrt(acceleration @ acceleration))
            if not (np.isfinite(raw).all() and np.isfinite(size)):
                why = NOT_FINITE
            elif abs(size - GRAVITY) > MAX_GRAVITY_ERROR * GRAVITY or (
                turning is not None and float(turning @ turning) > MAX_REST_TURNING**2
            ):
                why = MOVING
        if why:
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
        a, half = np.array(accelerations), len(stamps) // 2
        first, second = a[:half], a[-half:]
        noise = np.sqrt((first.var(axis=0) + second.var(axis=0)).sum() / half)
        tilt = np.linalg.norm(second.mean(axis=0) - first.mean(axis=0))
        # Of the mean: single readings have the noise of the accelerometer.
        off = abs(np.linalg.norm(a.mean(axis=0)) - self._gravity)
        if tilt > MAX_TILT + TILT_DEVIATIONS * noise or off > MAX_REST_ACCELERATION:
            self._drop(MOVING)
            return MOVING
        self._block.clear()
        return self._keep(Pose(
            stamps[-1], np.mean(raw, axis=0), a.mean(axis=0), np.std(raw, axis=0), len(stamps)
        ))  # fmt: skip

    def _keep(self, pose: Pose) -> str:
        """Keep a pose unless there are enough like it; a rejected one makes room."""
        cell = cell_of(pose.acceleration)
        alike = [k for k, one in enumerate(self.poses) if cell_of(one.acceleration) == cell]
        if len(alike) >= MAX_ALIKE:
            spare = [k for k in alike if self.rejected[k]]
            if not spare:
                self.left_out[REPEATED] += pose.n_readings
                return REPEATED
            self.left_out[self.rejected[spare[0]]] += self.poses.pop(spare[0]).n_readings
        self.poses.append(pose)
        self._rejected = None
        if len(self.poses) >= MIN_SIZES:
            sizes = [np.linalg.norm(one.acceleration) for one in self.poses]
            self._gravity = float(np.median(sizes))
        return KEPT

    def _drop(self, why: str) -> None:
        """Leave the readings of the block out."""
        self.left_out[why] += len(self._block)
        self._block.clear()


def _arrays(poses: list[Pose]) -> tuple[Array, Array]:
    """Return raw readings (n, 6) and accelerations (n, 3)."""
    raw = np.array([one.raw for one in poses]).reshape(-1, 6)
    return raw, np.array([one.acceleration for one in poses]).reshape(-1, 3)
