# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The equations of motion in one choice of base variables, and the way to another [T section 3.6].

    mass_matrix @ acceleration + coriolis_matrix @ velocity + gravity_forces
        = [0; joint torques] + sum over the contacts of jacobian.T @ wrench            [T 3.57]

The velocity is [base (6); joints (n)]. Choices differ in the base rows only: the base link, the
representation of its velocity, or the average velocity of the robot in its place.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.sensors import read_only

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EquationsOfMotion:
    """
    Terms of the equations at one instant; all arrays are read-only.

    Units follow from the rows: N and Nm for forces, m/s and rad/s for velocities.
    """

    velocity: Array
    """Of base and joints, shape (6 + n,)."""
    mass_matrix: Array
    """Symmetric, shape (6 + n, 6 + n) [T 3.63a]."""
    coriolis_matrix: Array
    """Twice it, taken from the rate of the mass matrix, leaves a skew matrix [T 3.63b]."""
    gravity_forces: Array
    """Minus the weight, shape (6 + n,) [T 3.63c]."""
    T: Array
    """Takes the velocity in root variables to this one, shape (6 + n, 6 + n) [T 3.58f]."""
    T_rate: Array
    """Its rate."""

    @property
    def momentum_matrix(self) -> Array:
        """Takes the velocity to the momentum, shape (6, 6 + n) [T 3.56]."""
        return self.mass_matrix[:6]

    @property
    def momentum(self) -> Array:
        """Momentum of the robot in the frame C of the base velocity, C_h, (6,) [N s, Nm s]."""
        return np.asarray(self.momentum_matrix @ self.velocity, dtype=np.float64)

    @property
    def kinetic_energy(self) -> float:
        """The same in all variables [J] [T 3.61]."""
        return float(self.velocity @ self.mass_matrix @ self.velocity) / 2

    def inverse_dynamics(self, acceleration: Array) -> Array:
        """
        Return the generalised forces of a motion [T 3.57].

        acceleration (6 + n,); returns (6 + n,).
        """
        acceleration = numbers('acceleration', acceleration, self.velocity.shape, finite=False)
        return np.asarray(
            self.mass_matrix @ acceleration
            + self.coriolis_matrix @ self.velocity
            + self.gravity_forces,
            dtype=np.float64,
        )

    def velocity_map(self, source: EquationsOfMotion) -> Array:
        """
        Return the matrix that takes the velocity in other variables to these [T 3.71].

        Returns (6 + n, 6 + n).
        """
        _check_equations(source)
        return np.asarray(self.T @ _inverse(source.T), dtype=np.float64)

    def acceleration_from(self, source: EquationsOfMotion, acceleration: Array) -> Array:
        """
        Return an acceleration given in other variables in these [T 3.99].

        acceleration (6 + n,); returns (6 + n,).
        """
        _check_equations(source)
        acceleration = numbers('acceleration', acceleration, source.velocity.shape, finite=False)
        T_inverse = _inverse(source.T)
        root_velocity = T_inverse @ source.velocity
        root_acceleration = T_inverse @ (acceleration - source.T_rate @ root_velocity)
        return np.asarray(self.T @ root_acceleration + self.T_rate @ root_velocity)

    def forces_from(self, source: EquationsOfMotion, forces: Array) -> Array:
        """
        Return generalised forces given in other variables in these [T 3.72].

        forces (6 + n,); returns (6 + n,).
        """
        _check_equations(source)
        forces = numbers('forces', forces, source.velocity.shape, finite=False)
        return np.asarray(source.velocity_map(self).T @ forces, dtype=np.float64)

    def change_base_rows(self, J: Array, J_rate: Array) -> EquationsOfMotion:
        """
        Return the equations in other base variables [T 3.58-3.60].

        J (6, 6 + n); J_rate (6, 6 + n).
        """
        shape = (6, self.velocity.size)
        J, J_rate = (
            numbers(name, rows, shape, finite=False)
            for name, rows in (('J', J), ('J_rate', J_rate))
        )
        T = np.eye(self.velocity.size)
        T[:6] = J
        T_rate = np.zeros_like(T)
        T_rate[:6] = J_rate
        inverse = _inverse(T)
        inverse_rate = -inverse @ T_rate @ inverse
        C = inverse.T @ (self.mass_matrix @ inverse_rate + self.coriolis_matrix @ inverse)
        return EquationsOfMotion(
            velocity=read_only(T @ self.velocity),
            mass_matrix=read_only(inverse.T @ self.mass_matrix @ inverse),
            coriolis_matrix=read_only(C),
            gravity_forces=read_only(inverse.T @ self.gravity_forces),
            T=read_only(T @ self.T),
            T_rate=read_only(T_rate @ self.T + T @ self.T_rate),
        )


def _check_equations(given: object) -> None:
    """Refuse variables that are something else."""


def _inverse(T: Array) -> Array:
    """Return the inverse of a matrix that is the identity below its first six rows."""
    inverse = np.eye(len(T))
    inverse[:6, :6] = np.linalg.inv(T[:6, :6])
    inverse[:6, 6:] = -inverse[:6, :6] @ T[:6, 6:]
    return inverse
