# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Finite Fourier series: periodic motions that are known exactly, and need little bandwidth [S 78].

    q(t) = q_0 + sum over l = 1..L of  a_l / (w l) sin(w l t) - b_l / (w l) cos(w l t)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError, ConfigError, ShapeError

Array = NDArray[np.float64]

MAX_HARMONICS = 500
"""A search over more would not end: it grows with the square of their number."""


@dataclass(frozen=True)
class FourierBasis:
    """
    Which harmonics a motion is made of.

    Its coefficients are velocities a_1..a_L, b_1..b_L and the centre q_0, in this order.
    """

    period: float
    """Of the motion; w is 2 pi over it [s]."""
    harmonics: int
    """L."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        if not (np.isfinite(self.period) and self.period > 0.0):
            raise CallError(f'the period is {self.period} s, expected a positive number')
        if self.harmonics < 2:
            raise CallError(
                f'the number of harmonics is {self.harmonics}, expected two or more: one alone '
                'never rests'
            )
        if self.harmonics > MAX_HARMONICS:
            raise CallError(
                f'the number of harmonics is {self.harmonics}, expected up to {MAX_HARMONICS}'
            )

    @property
    def size(self) -> int:
        """Number of coefficients of a joint."""
        return 2 * self.harmonics + 1

    def instants(self, n: int) -> Array:
        """Return instants that divide the period evenly; returns (n,) [s]."""
        return np.asarray(self.period * np.arange(n) / n)

    def overshoot(self, n: int) -> float:
        """Return by what factor a motion may exceed its largest value at even instants."""
        if n <= 2 * self.harmonics:
            raise ConfigError(f'{n} instants cannot resolve {self.harmonics} harmonics')
        return float(1.0 / np.cos(np.pi * self.harmonics / n))

    def at_rest(self) -> Array:
        """
        Return combinations of coefficients with neither velocity nor acceleration at time zero.

        Returns (2 L + 1, 2 L - 1).
        """
        velocity, acceleration = self.matrices(np.zeros(1))[1:, 0, :-1]
        moving = np.linalg.qr(np.array([velocity, acceleration]).T, mode='complete')[0][:, 2:]
        found = np.zeros((self.size, self.size - 2))
        found[:-1, :-1], found[-1, -1] = moving, 1.0
        return found

    def matrices(self, t: Array) -> Array:
        """
        Return what positions, velocities and accelerations are of the coefficients.

        t (n,) [s]; returns (3, n, 2 L + 1).
        """
        w = 2.0 * np.pi / self.period * np.arange(1, self.harmonics + 1)
        sine, cosine = np.sin(np.outer(t, w)), np.cos(np.outer(t, w))
        one = np.ones((len(t), 1))
        return np.array(
            [
                np.hstack([sine / w, -cosine / w, one]),
                np.hstack([cosine, sine, 0.0 * one]),
                np.hstack([-w * sine, w * cosine, 0.0 * one]),
            ]
        )


@dataclass(frozen=True, eq=False)
class FourierMotion:
    """A periodic motion of some joints."""

    basis: FourierBasis
    joint_names: tuple[str, ...]
    coefficients: Array
    """Shape (n_joints, 2 L + 1), as in `FourierBasis` [rad/s or m/s; the last rad or m]."""

    def __post_init__(self) -> None:
        """Raise unless there is one row for each joint."""
        wanted = (len(self.joint_names), self.basis.size)
        if self.coefficients.shape != wanted:
            raise ShapeError('coefficients', wanted, self.coefficients.shape)

    def at(self, t: Array) -> Array:
        """
        Return positions, velocities and accelerations.

        t (n,) [s]; returns (3, n, n_joints) [rad or m, and their rates].
        """
        return np.asarray(self.basis.matrices(t) @ self.coefficients.T)

    @property
    def centre(self) -> Array:
        """Posture that the motion goes around, shape (n_joints,) [rad or m]."""
        return self.coefficients[:, -1]
