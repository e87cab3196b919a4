# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much white noise signals of a motion can have at most, whatever is stated of them.

Fourth differences of samples hardly leave anything of a motion that is slow beside their rate,
and 70 times the variance of white noise. What they leave is more than noise while something
shakes the robot, so the lowest level counts.

What errors of the measured motion do to rows: the errors in the variables of a regression.

Rows of a robot at rest are not constant: noise of its encoders, gyroscopes and accelerometers
shakes them, and shaken rows look like motion. Their size is found by shaking some of them once
more, with noise of the stated size: as small as it is, what it does to rows is linear.

Information without what errors of the state added to it.

Rows are Y = Y0 + E with errors E of the measured motion [errors in variables]. Their products

    Y'Y = Y0'Y0 + N,    Y'(y - Y x0) = Y0'(y0 - Y0 x0) - N x0 + n,    N = E'E, n = E'e

hold N and n, e being what the same errors do to y: without them a body that hardly turns becomes
lighter, as errors count as motion that weighed nothing. N and n are known on the average of many
rows (`rows.state_errors`), so they are taken out: n - N x0 about a description x0, so that an
exact one stays exact, and N where it is the smaller part of what rows say. Where it is the larger
one rows say nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.information import Information
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

DIFFERENCE_ORDER, DIFFERENCE_GAIN = 4, 70.0
"""Of the differences, and the sum of the squares of their weights."""
LEVEL_RATIO = 2.0
"""Levels that differ by less are one: of a stretch of 100 samples one errs by a fifth."""
MIN_DIFFERENCES = 90
"""Differences that make a level: the lowest ones of a few would be far below the noise."""
MAX_AVERAGED_LEVELS = 100
"""Levels whose mean is kept."""


class WhiteNoise:
    """The lowest level of signals so far."""

    def __init__(self) -> None:
        self._forget(0)

    def _forget(self, k: int) -> None:
        """Begin with so many signals."""
        self._level, self._alike = np.full(k, np.inf), np.zeros(k)
        self._squares, self._count = np.zeros(k), np.zeros(k)

    def update(self, signals: Array) -> Array:
        """
        Look at a further stretch.

        signals (n, k); returns (k,).
        """
        if signals.shape[1] != len(self._level):
            self._forget(signals.shape[1])
        squares, count = _squared_differences(signals)
        stands = (count > 0) & (squares == 0.0)
        self._squares += squares
        self._count += np.where(stands, 0, count)
        whole = self._count >= MIN_DIFFERENCES
        self._learn(
            np.where(whole, self._squares / (DIFFERENCE_GAIN * np.maximum(self._count, 1)), np.inf)
        )
        self._squares[whole] = self._count[whole] = 0.0
        return np.where(stands, 0.0, self._level)

    def _learn(self, new: Array) -> None:
        """Take new levels over that are lower, and the mean of those that are alike."""
        lower = new * LEVEL_RATIO < self._level
        alike = ~lower & (new < self._level * LEVEL_RATIO)
        self._alike[alike] = np.minimum(self._alike[alike] + 1.0, MAX_AVERAGED_LEVELS)
        self._level[alike] += (new[alike] - self._level[alike]) / self._alike[alike]
        self._level[lower], self._alike[lower] = new[lower], 1.0


def _squared_differences(signals: Array) -> tuple[Array, Array]:
    """Return the sum of squares of differences of each signal, and how many there are."""
    if len(signals) <= DIFFERENCE_ORDER:
        return np.zeros(signals.shape[1]), np.zeros(signals.shape[1])
    differences = np.diff(signals, DIFFERENCE_ORDER, axis=0)
    finite = np.isfinite(differences)
    return np.sum(np.where(finite, differences, 0.0) ** 2, axis=0), finite.sum(axis=0)


Mask = NDArray[np.bool_]

PERTURBED_SAMPLES = 25
"""Of a stretch that are shaken: many stretches tell the size of errors, and each costs time."""
JOINT_SIGNALS = ('positions', 'velocities', 'accelerations')
IMU_SIGNALS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')


@dataclass(frozen=True, eq=False)
class StateNoise:
    """Noise of what is measured of the motion; rows follow the robot."""

    joints: Array
    """Root L of the covariance L L' of position, velocity, acceleration, (n_joints, 3, 3)."""
    imus: Array
    """
    The same of angular velocity, proper acceleration and angular acceleration along each axis,
    shape (n_imus, 3, 3).
    """
    is_white: bool = True
    """Whether readings that no filter derives are as they came, so that they tell their noise."""
    measures_velocities: bool = False
    """Whether velocities of joints are readings, too, and not derived from positions."""

    def __post_init__(self) -> None:
        """Check the shapes."""
        for name in ('joints', 'imus'):
            array = getattr(self, name)
            if array.ndim != 3 or array.shape[1:] != (3, 3):
                raise ShapeError(name, ('n', 3, 3), array.shape)

    @classmethod
    def of(
        cls,
        joints: Array,
        imus: Array,
        *,
        is_white: bool = True,
        measures_velocities: bool = False,
    ) -> StateNoise:
        """
        Return the noise of covariances.

        joints, imus (n, 3, 3).
        """
        return cls(_roots(joints), _roots(imus), is_white, measures_velocities)

    def at_most(self, samples: SampleBatch, levels: WhiteNoise) -> StateNoise:
        """Return no more of it than samples can have."""
        if not self.is_white:
            return self
        n, n_joints, n_imus = len(samples), len(self.joints), len(self.imus)
        measured = ('positions', 'velocities', 'angular_velocities', 'proper_accelerations')
        columns = [getattr(samples, name).reshape(n, -1) for name in measured]
        found = levels.update(np.hstack(columns))
        at, rates = found[:n_joints], found[n_joints : 2 * n_joints]
        turning, pulling = found[2 * n_joints :].reshape(2, n_imus, 3).mean(axis=2)
        # What is derived errs with what it is derived from: accelerations with positions.
        joints = _capped(self.joints, [at, rates, None])
        own = joints[:, 1] if self.measures_velocities else joints[:, 0]
        joints = np.stack([joints[:, 0], own, joints[:, 0]], axis=1)
        imus = _capped(self.imus, [turning, pulling, None])
        imus = np.stack([imus[:, 0], imus[:, 1], imus[:, 0]], axis=1)
        return replace(
            self, joints=joints[..., None] * self.joints, imus=imus[..., None] * self.imus
        )

    def shaken(self, samples: SampleBatch, rng: np.random.Generator) -> SampleBatch:
        """Return samples with noise once more."""
        n = len(samples)
        joints = np.einsum(
            'jab,njb->anj', self.joints, rng.normal(size=(n, *self.joints.shape[:2]))
        )
        imus = np.einsum('iab,nibx->anix', self.imus, rng.normal(size=(n, len(self.imus), 3, 3)))
        noise = dict(zip((*JOINT_SIGNALS, *IMU_SIGNALS), (*joints, *imus), strict=True))
        changed = {name: getattr(samples, name) + noise[name] for name in noise}
        return replace(samples, **changed)


def rows_of_errors(
    builder: EquationBuilder,
    samples: SampleBatch,
    noise: StateNoise,
    rng: np.random.Generator,
    *,
    external: Mapping[str, Array] | None = None,
    free: Mask | None = None,
) -> list[dict[str, Array]]:
    """
    Return what noise of the state adds to the rows of a stretch.

    Returns (m, n_unknowns + 1) [dY dy].
    """
    n = len(samples)
    chosen = np.unique(np.linspace(0, n - 1, min(n, PERTURBED_SAMPLES)).astype(int))
    both = np.concatenate([chosen, chosen])
    once, m = samples.take(both), len(chosen)
    again = noise.shaken(samples.take(chosen), rng)
    names = (*JOINT_SIGNALS, *IMU_SIGNALS)
    stacked = {
        name: np.concatenate([getattr(once, name)[:m], getattr(again, name)]) for name in names
    }
    pushes = {name: wrench[both] for name, wrench in (external or {}).items()}
    blocks = builder.sparse(
        replace(once, **stacked), external=pushes, free=None if free is None else free[both]
    )
    size = np.sqrt(n / m)
    return [
        {kind: size * _differences(rows.dense(len(block.unknowns)), m) for kind, rows in kinds}
        for block, kinds in blocks
    ]


def _differences(rows: Array, m: int) -> Array:
    """Return the second half of rows less the first, where both can be used."""
    found = rows[m:] - rows[:m]
    return np.asarray(found[np.isfinite(found).all(axis=1)])


def _covariances(roots: Array) -> Array:
    """Return L L' of each."""
    return roots @ roots.transpose(0, 2, 1)


def _capped(roots: Array, levels: Sequence[Array | None]) -> Array:
    """Return by what each signal is multiplied to have no more than a variance, (n, 3)."""
    stated = np.diagonal(_covariances(roots), axis1=1, axis2=2)
    factors = np.ones_like(stated)
    for k, level in enumerate(levels):
        if level is not None:
            ratio = level / np.maximum(stated[:, k], np.finfo(float).tiny)
            factors[:, k] = np.sqrt(np.minimum(ratio, 1.0))
    return factors


def _roots(covariances: Array) -> Array:
    """Return L with L L' = covariance, for singular ones too."""
    values, vectors = np.linalg.eigh(covariances)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])


Columns = NDArray[np.intp]

LARGEST_SHARE = 0.25
"""
Of errors in what rows say of a direction that is still heard. After a few seconds N is known to a
tenth, which is a thirtieth of what is left then.
"""
NOTHING = 1e-12
"""Directions of which there is less than this, over the size of columns, are none."""
ROUND_OFF = 1e-8
"""Columns that are shorter than this, over the longest one, are none."""


class StateErrors(NamedTuple):
    """Products of what errors of the state add to rows in units of their noise."""

    gram: Array
    """N, shape (n, n)."""
    cross: Array
    """n, shape (n,)."""

    @classmethod
    def of(cls, parts: Iterable[Array], n: int) -> StateErrors:
        """
        Sum up errors of rows.

        parts (m, n + 1) [dY dy].
        """
        stacked = np.vstack([np.zeros((0, n + 1)), *parts])
        products = stacked.T @ stacked
        return cls(products[:n, :n], products[:n, n])

    def add(self, other: StateErrors, kept: float = 1.0) -> StateErrors:
        """Return this, faded, together with another one."""
        return StateErrors(kept * self.gram + other.gram, kept * self.cross + other.cross)

    def shifted(self, columns: Columns, change: Array) -> StateErrors:
        """
        Return the same of rows from whose right sides something known was taken.

        columns (k,); change (k,).
        """
        return StateErrors(self.gram, self.cross - self.gram[:, columns] @ change)

    def without(self, columns: Columns) -> StateErrors:
        """Return what is left once rows no longer tell of some unknowns."""
        gram, cross = self.gram.copy(), self.cross.copy()
        gram[columns], gram[:, columns], cross[columns] = 0.0, 0.0, 0.0
        return StateErrors(gram, cross)


def errors_of_wandered(
    errors: StateErrors, information: Information, columns: Columns, deviations: Array
) -> StateErrors:
    """Return what errors of the state add to what `elimination.wandered` leaves."""
    moved, n = columns[deviations > 0.0], information.n
    if not len(moved):
        return errors
    held = np.diag(1.0 / deviations[deviations > 0.0])
    right = np.zeros((n + len(moved), n + 1))
    right[:n, :n], right[:n, n] = -information.R, information.rho
    right[:, moved] = 0.0
    right[n:, moved] = held
    before = np.linalg.lstsq(np.vstack([information.R[:, moved], held]), right, rcond=None)[0]
    T, t = np.eye(n), np.zeros(n)
    T[moved], t[moved] = before[:, :n], before[:, n]
    return StateErrors(T.T @ errors.gram @ T, T.T @ (errors.cross - errors.gram @ t))


def without_state_errors(information: Information, errors: StateErrors, x0: Array) -> Information:
    """
    Return what rows tell beyond the errors of the state in them.

    x0 (n,).
    """
    if not errors.gram.any():
        return information
    R, left = information.R, information.rho - information.R @ x0
    H = R.T @ R
    # Of a column that rows do not have errors may be all there is, and those of round-off.
    squares = np.diag(H) + np.diag(errors.gram)
    sizes = np.sqrt(np.maximum(squares, ROUND_OFF**2 * squares.max()))
    scaled, N = (one / np.outer(sizes, sizes) for one in (H, errors.gram))
    # Over all that there is no share exceeds one: over rows alone those where they say nothing
    # would be so large that round-off of them is more than others.
    whole = _Factor.of(scaled + N)
    told, V = np.linalg.eigh(whole.shares(scaled))
    heard = told > 1.0 / (1.0 + LARGEST_SHARE)
    V = V[:, heard]
    # Of a share t the rows are 2 t - 1 without the errors, which are the other 1 - t.
    kept = np.sqrt(2.0 * told[heard] - 1.0)
    rows = kept[:, None] * (V.T @ whole.L.T) * sizes
    right = (R.T @ left + errors.gram @ x0 - errors.cross) / sizes
    right = V.T @ whole.solve(right) / kept
    found = Information.of(rows, right + rows @ x0)
    before = information.squared_residual(x0)
    energy = max(before - float(right @ right), 0.0)
    return Information(found.R, found.rho, energy, information.count)


class _Factor(NamedTuple):
    """L with L L' = W, of as many columns as W has directions."""

    L: Array
    """Shape (n, rank)."""
    first: Columns
    """Rows of L that are a triangle, shape (rank,)."""

    @classmethod
    def of(cls, W: Array) -> _Factor:
        """Factor a matrix whose largest entry is about one."""
        from scipy.linalg.lapack import dpstrf

        triangle, order, rank, _ = dpstrf(W, tol=NOTHING, lower=1)
        L = np.empty((len(W), rank))
        L[order - 1] = np.tril(triangle)[:, :rank]
        return cls(L, order[:rank] - 1)

    def solve(self, right: Array) -> Array:
        """Return y with L y = right, which has no part beyond the directions of W."""
        from scipy.linalg import solve_triangular

        return np.asarray(solve_triangular(self.L[self.first], right[self.first], lower=True))

    def shares(self, part: Array) -> Array:
        """Return M with L M L' = part, which has no part beyond the directions of W."""
        half = self.solve(part)
        return self.solve(half.T)
