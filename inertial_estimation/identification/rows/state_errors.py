# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What errors of the measured motion do to rows: the errors in the variables of a regression.

Rows of a robot at rest are not constant: noise of its encoders, gyroscopes and accelerometers
shakes them, and shaken rows look like motion. Their size is found by shaking some of them once
more, with noise of the stated size: as small as it is, what it does to rows is linear.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.identification.rows.white_noise import WhiteNoise
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

INSTANTS = 25
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
    builder: RowBuilder,
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
    chosen = np.unique(np.linspace(0, n - 1, min(n, INSTANTS)).astype(int))
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
