# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Momentum of the robot about its centre of mass, and the equations in its terms [T section 3.9].

G stands for the frame at the centre of mass with the axes of the inertial frame A. About any
other frame the momentum is ``equations.momentum``; its rate is the sum of weight and external
wrenches if that frame is A [T 2.84] or G [T 2.85].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.free_floating import EquationsOfMotion, State
from inertial_estimation.model.inertia import parameters_of
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.sensors import read_only
from inertial_estimation.model.spatial import motion_cross, motion_transform

LEAST_RATIO = 1e-12
"""Principal moments below this part of the moments about the root link count as zero."""


@dataclass(frozen=True, eq=False)
class Centroidal:
    """The whole robot with all joints locked; all arrays are read-only."""

    mass: float
    """Total [kg]."""
    com: Array
    """Centre of mass in A, shape (3,) [m] [T 3.53]."""
    com_velocity: Array
    """Its rate, shape (3,) [m/s]."""
    inertia: Array
    """
    Locked inertia G_I, shape (6, 6): mass, zeros, and the 3 x 3 inertia about the centre of mass
    in the axes of A [T 3.83, 3.84].
    """
    momentum: Array
    """G_h, shape (6,) [N s, Nm s] [T 3.83, 3.84]."""


def centroidal(state: State) -> Centroidal:
    """Return mass, centre of mass, locked inertia and momentum [T 3.83, 3.84]."""
    mixed = state.equations('', Representation.MIXED)
    mass, com = _mass_and_com(mixed)
    G_Xf_B = motion_transform(_pose_at(com)).T
    momentum = G_Xf_B @ mixed.momentum
    return Centroidal(
        mass=mass,
        com=read_only(state.pose()[:3, 3] + com),
        com_velocity=read_only(momentum[:3] / mass),
        inertia=read_only(G_Xf_B @ mixed.mass_matrix[:6, :6] @ G_Xf_B.T),
        momentum=read_only(momentum),
    )


def momentum_matrix(state: State, variables: EquationsOfMotion) -> Array:
    """Return the centroidal momentum matrix, (6, 6 + n_joints) [T 3.85]."""
    mixed = state.equations('', Representation.MIXED)
    _, com = _mass_and_com(mixed)
    G_A = motion_transform(_pose_at(com)).T @ mixed.momentum_matrix
    return np.asarray(G_A @ mixed.velocity_map(variables), dtype=np.float64)


def average_equations(state: State) -> EquationsOfMotion:
    """
    Return the equations with the average velocity of the robot as base velocity [T 3.92-3.98].
    """
    mixed = state.equations('', Representation.MIXED)
    mass, com = _mass_and_com(mixed)
    M = mixed.mass_matrix[:6]
    # The property of the Coriolis matrix gives the rate of the mass matrix.
    M_rate = (mixed.coriolis_matrix + mixed.coriolis_matrix.T)[:6]
    moments = np.linalg.eigvalsh(centroidal(state).inertia[3:, 3:])
    if not np.abs(moments).min() > LEAST_RATIO * np.trace(M[3:, 3:6]):
        raise ModelError(f'no average angular velocity: principal moments {moments} kg m^2')
    # The average velocity as seen from B[A], then from G, which B[A] leaves without turning.
    J = np.linalg.solve(M[:, :6], M)
    J_rate = np.linalg.solve(M[:, :6], M_rate - M_rate[:, :6] @ J)
    v = np.zeros(6)
    v[:3] = mixed.velocity[:3] - mixed.momentum[:3] / mass
    G_X_B = motion_transform(_pose_at(-com))
    return mixed.change_base_rows(G_X_B @ J, G_X_B @ (motion_cross(v) @ J + J_rate))


def _mass_and_com(mixed: EquationsOfMotion) -> tuple[float, Array]:
    """Return total mass and the centre of mass in B[A], from the locked inertia [T 3.54]."""
    parameters = parameters_of(mixed.mass_matrix[:6, :6])
    if not parameters[0] > 0.0:
        raise ModelError(f'the robot has a mass of {parameters[0]:g} kg: no centre of mass')
    return float(parameters[0]), parameters[1:4] / parameters[0]


def _pose_at(origin: Array) -> Array:
    """Return the pose of a frame that is not turned."""
    pose = np.eye(4)
    pose[:3, 3] = origin
    return pose
