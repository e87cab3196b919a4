# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Errors in variables: what noise of the measured motion adds to equations, and its removal.

Equations are Y = Y0 + E with errors E of the measured motion. Their products

    Y'Y = Y0'Y0 + N,    Y'(y - Y x0) = Y0'(y0 - Y0 x0) - N x0 + n,    N = E'E, n = E'e

contain N and n, with e what the same errors do to y: they bias a link that hardly turns towards
zero, as errors count as motion without weight. N and n are known on the average of many samples,
by perturbing some of them once more with as much noise, in which equations are linear.
They are subtracted: n - N x0 about a prior x0, so that an exact one stays exact, and N where it is
the smaller part of what equations determine. Where it is the larger part they determine nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.information import Information
from inertial_estimation.sample import SampleBatch

DIFFERENCE_ORDER, DIFFERENCE_GAIN = 4, 70.0
"""Of the differences that isolate white noise, and the sum of their squared coefficients."""
LEVEL_RATIO = 2.0
"""Ratio of levels that count as one: a level of 100 samples errs by a fifth."""
MIN_DIFFERENCES = 90
"""Differences that make a level: the lowest of smaller ones would be far below the noise."""
MAX_AVERAGED_LEVELS = 100
PERTURBED_SAMPLES = 25
"""Of a window: many windows determine the size of errors, and each costs time."""
JOINT_SIGNALS = ('positions', 'velocities', 'accelerations')
IMU_SIGNALS = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
MAX_ERROR_SHARE = 0.25
"""Of errors in a direction that is used: N is known to a tenth after a few seconds."""
ZERO_EIGENVALUE = 1e-12
"""Pivots of a scaled Gram matrix below it are zero."""
ZERO_COLUMN = 1e-8
"""Share of the longest column below which others are zero."""


class WhiteNoise:
    """
    Lowest level of white noise of signals so far.

    Fourth differences leave hardly anything of a motion that is slow beside the rate, and 70 times
    the variance of white noise. They leave more than noise while something shakes the robot, so
    the lowest level counts.
    """

    def __init__(self) -> None:
        self._level = np.zeros(0)

    def update(self, signals: Array) -> Array:
        """Add a window of signals, (n, k); return their variances, (k,)."""
        if (k := signals.shape[1]) != len(self._level):
            self._level, self._alike = np.full(k, np.inf), np.zeros(k)
            self._squares, self._count = np.zeros(k), np.zeros(k)
        # None of a window of less than five samples.
        differences = np.diff(signals, DIFFERENCE_ORDER, axis=0)
        finite = np.isfinite(differences)
        squares = np.sum(np.where(finite, differences, 0.0) ** 2, axis=0)
        count = finite.sum(axis=0)
        constant = (count > 0) & (squares == 0.0)
        self._squares += squares
        self._count += np.where(constant, 0, count)
        whole = self._count >= MIN_DIFFERENCES
        mean = self._squares / (DIFFERENCE_GAIN * np.maximum(self._count, 1))
        new = np.where(whole, mean, np.inf)
        lower = new * LEVEL_RATIO < self._level
        alike = ~lower & (new < self._level * LEVEL_RATIO)
        self._alike[alike] = np.minimum(self._alike[alike] + 1.0, MAX_AVERAGED_LEVELS)
        self._level[alike] += (new[alike] - self._level[alike]) / self._alike[alike]
        self._level[lower], self._alike[lower] = new[lower], 1.0
        self._squares[whole] = self._count[whole] = 0.0
        return np.where(constant, 0.0, self._level)


@dataclass(frozen=True, eq=False)
class StateNoise:
    """Noise of the measured motion."""

    joints: Array
    """Root L of the covariance L L' of position, velocity, acceleration, (n_joints, 3, 3)."""
    imus: Array
    """
    Likewise of angular velocity, proper acceleration and angular acceleration along each axis,
    shape (n_imus, 3, 3).
    """
    is_white: bool = True
    """Readings that no filter derives are unfiltered, so that they show their noise."""
    measures_velocities: bool = False
    """Joint velocities are readings too, and not derived from positions."""

    @classmethod
    def of(cls, joints: Array, imus: Array, **known: bool) -> StateNoise:
        """Return the noise of covariances, (n, 3, 3) each, which may be singular."""

        def root(covariances: Array) -> Array:
            values, vectors = np.linalg.eigh(covariances)
            return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :])

        return cls(root(joints), root(imus), **known)

    def measured(self, samples: SampleBatch, levels: WhiteNoise) -> StateNoise:
        """Return the noise in the size that samples show, if they do."""
        if not self.is_white:
            return self
        n, n_joints, n_imus = len(samples), len(self.joints), len(self.imus)
        measured = ('positions', 'velocities', 'angular_velocities', 'proper_accelerations')
        found = levels.update(
            np.hstack([getattr(samples, name).reshape(n, -1) for name in measured])
        )
        at, rates = found[:n_joints], found[n_joints : 2 * n_joints]
        turning, pulling = found[2 * n_joints :].reshape(2, n_imus, 3).mean(axis=2)
        # Derivatives err with what they are derived from.
        position = _factors(self.joints[:, 0], at)
        velocity = _factors(self.joints[:, 1], rates) if self.measures_velocities else position
        turn = _factors(self.imus[:, 0], turning)
        joints = np.stack([position, velocity, position], axis=1)
        imus = np.stack([turn, _factors(self.imus[:, 1], pulling), turn], axis=1)
        return replace(
            self, joints=joints[..., None] * self.joints, imus=imus[..., None] * self.imus
        )

    def perturbed(self, samples: SampleBatch, rng: np.random.Generator) -> SampleBatch:
        """Return samples with noise added."""
        n = len(samples)
        joints = np.einsum(
            'jab,njb->anj', self.joints, rng.normal(size=(n, *self.joints.shape[:2]))
        )
        imus = np.einsum('iab,nibx->anix', self.imus, rng.normal(size=(n, len(self.imus), 3, 3)))
        noise = dict(zip((*JOINT_SIGNALS, *IMU_SIGNALS), (*joints, *imus), strict=True))
        return replace(samples, **{name: getattr(samples, name) + noise[name] for name in noise})


def _factors(roots: Array, variances: Array) -> Array:
    """Return the factors of one signal, (n,), to known finite variances; roots (n, 3)."""
    stated = np.sum(roots**2, axis=1)
    known = np.isfinite(variances) & (stated > 0.0)
    ratios = np.divide(variances, stated, out=np.ones(len(stated)), where=known)
    return np.asarray(np.sqrt(ratios))


def perturbation_errors(
    builder: EquationBuilder, observed: Observed, noise: StateNoise, rng: np.random.Generator
) -> list[dict[str, Array]]:
    """Return errors [dY dy], (m, n_unknowns + 1), by kind for each submodel, as if of a window."""
    n = len(observed.samples)
    chosen = np.unique(np.linspace(0, n - 1, min(n, PERTURBED_SAMPLES)).astype(int))
    m, both = len(chosen), observed.take(np.tile(chosen, 2))
    again = noise.perturbed(observed.samples.take(chosen), rng)
    for name in (*JOINT_SIGNALS, *IMU_SIGNALS):
        getattr(both.samples, name)[m:] = getattr(again, name)
    found = []
    for _, kinds in builder.sparse(both):
        errors = {}
        for kind, rows in kinds:
            system = rows.dense()
            moved = system[m:] - system[:m]
            errors[kind] = np.sqrt(n / m) * moved[np.isfinite(moved).all(axis=1)]
        found.append(errors)
    return found


def errors_of_wandered(
    errors: Array, information: Information, columns: Indices, deviations: Array
) -> Array:
    """Return the products of errors that are left in `row_space.wandered` information."""
    moved, n = columns[deviations > 0.0], information.n
    if not len(moved):
        return errors
    held = np.diag(1.0 / deviations[deviations > 0.0])
    right = np.zeros((n + len(moved), n + 1))
    right[:n, :n], right[:n, n] = -information.R, information.rho
    right[:, moved] = 0.0
    right[n:, moved] = held
    # The former values of these unknowns by all others, with [x; -1] on the right.
    T = np.eye(n + 1)
    T[moved] = np.linalg.lstsq(np.vstack([information.R[:, moved], held]), right, rcond=None)[0]
    T[moved, n] *= -1.0
    return np.asarray(T.T @ errors @ T)


def without_state_errors(
    information: Information, errors: Array, x0: Array
) -> tuple[Information, Array]:
    """
    Return information without the errors of the state, about a prior x0, (n,).

    errors (n + 1, n + 1): [E e]' [E e], the products of errors in units of the noise. Returns also
    the projection of products Y'y on the directions that are left, (n, n).
    """
    from scipy.linalg import solve_triangular
    from scipy.linalg.lapack import dpstrf

    gram, cross = errors[:-1, :-1], errors[:-1, -1]
    if not gram.any():
        return information, np.eye(information.n)
    R, left = information.R, information.rho - information.R @ x0
    H = R.T @ R
    # A column may hold nothing but errors, or round-off.
    squares = np.diag(H) + np.diag(gram)
    sizes = np.sqrt(np.maximum(squares, ZERO_COLUMN**2 * squares.max()))
    scaled, N = (one / np.outer(sizes, sizes) for one in (H, gram))
    # Shares of the sum are at most one; of the equations alone they could be huge. Both are in the
    # span of the columns L of a root of the sum, whose first rows, in some order, are a triangle.
    root, order, rank, _ = dpstrf(scaled + N, tol=ZERO_EIGENVALUE, lower=1)
    some, L = order[:rank] - 1, np.empty((len(N), rank))
    L[order - 1] = np.tril(root[:, :rank])
    triangle = L[some]
    half = solve_triangular(triangle, scaled[np.ix_(some, some)], lower=True)
    shares, V = np.linalg.eigh(solve_triangular(triangle, half.T, lower=True))
    used = shares > 1.0 / (1.0 + MAX_ERROR_SHARE)
    V = V[:, used]
    # A share t of equations contains 1 - t of errors: 2 t - 1 is left.
    kept = np.sqrt(2.0 * shares[used] - 1.0)
    rows = kept[:, None] * (V.T @ L.T) * sizes
    right = (R.T @ left + gram @ x0 - cross) / sizes
    right = V.T @ solve_triangular(triangle, right[some], lower=True) / kept
    found = Information.of(rows, right + rows @ x0)
    before = information.squared_residual(x0)
    energy = max(before - float(right @ right), 0.0)
    inverse = solve_triangular(triangle, np.eye(len(N))[some], lower=True)
    onto = sizes[:, None] * (L @ V) @ (V.T @ inverse) / sizes
    return Information(found.R, found.rho, energy, information.count), onto
