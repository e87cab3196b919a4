# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of a body and their physical consistency [T Definition 6.2; W].

The ten parameters of a body are mass, first moment and the inertia about the origin of its frame
in the order xx, xy, yy, xz, yz, zz [kg, kg m, kg m^2].
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.spatial import hat, wrench_transform

INERTIAL = ('m', 'mc_x', 'mc_y', 'mc_z', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
"""Inertial parameters of a link about its origin in its axes [kg, kg m, kg m^2]."""
INERTIAL_UNITS = ('kg', *('kg m',) * 3, *('kg m^2',) * 6)

FARTHEST = 1e6
"""
Limit of |h|^2 / m, in units of 1 m and of the robot's largest parameter.

Pinocchio holds mass, centre of mass and the inertia about it. The inertia about the link's origin
is the small difference of numbers of that size; at the limit it keeps ten digits.
"""

LARGEST_MASS, LARGEST_ARM = 1e4, 10.0
"""Largest mass of a link [kg] and distance of its centre of mass from its origin [m]."""
MAX_MASS_RATIO = 3.0
"""Largest ratio of the mass of a robot to that of its URDF, and its inverse."""
LOAD_SHARE = 0.1
"""Largest load of a link beside its own mass, as a share of the robot's mass."""


def spatial_inertia(parameters: Array) -> Array:
    """Return the inertia [m 1, -(mc)^; (mc)^, I] about the origin of a body's frame [T 2.67]."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = np.moveaxis(parameters, -1, 0)
    M = np.zeros((*m.shape, 6, 6))
    M[..., range(3), range(3)] = m[..., None]
    M[..., 3:, :3] = hat(np.stack([hx, hy, hz], axis=-1))
    M[..., :3, 3:] = -M[..., 3:, :3]
    rows = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    M[..., 3:, 3:] = np.moveaxis(rows, (0, 1), (-2, -1))
    return M


def parameters_of(M: Array) -> Array:
    """Return the inertial parameters of an inertia: the inverse of `spatial_inertia`."""
    return M[..., [0, 5, 3, 4, 3, 3, 4, 3, 4, 5], [0, 1, 2, 0, 3, 4, 4, 5, 5, 5]]


def inertia_seen_from(M: Array, C_H_B: Array) -> Array:
    """Return the inertia of a body in another frame, C_Xf_B M B_X_C [T section 2.7]."""
    C_Xf_B = wrench_transform(C_H_B)
    return np.asarray(C_Xf_B @ M @ np.swapaxes(C_Xf_B, -1, -2), dtype=np.float64)


def pseudo_inertia(parameters: Array) -> Array:
    """
    Return the pseudo-inertia J = [[Sigma, h], [h', m]] with Sigma = tr(I) / 2 1 - I [W].

    parameters (..., 10); returns (..., 4, 4).
    """
    m, hx, hy, hz, ixx, ixy, iyy, ixz, iyz, izz = np.moveaxis(parameters, -1, 0)
    half_trace = (ixx + iyy + izz) / 2
    rows = [
        [half_trace - ixx, -ixy, -ixz, hx],
        [-ixy, half_trace - iyy, -iyz, hy],
        [-ixz, -iyz, half_trace - izz, hz],
        [hx, hy, hz, m],
    ]
    return np.moveaxis(np.array(rows), (0, 1), (-2, -1))


def consistency_margin(parameters: Array) -> Array:
    """
    Return the smallest eigenvalue of the pseudo-inertia: positive for a body with volume.

    parameters (..., 10); returns (...).
    """
    return np.asarray(np.linalg.eigvalsh(pseudo_inertia(parameters))[..., 0], dtype=np.float64)


def principal_axes(parameters: Array) -> tuple[Array, Array, Array, Array]:
    """
    Return mass, centre of mass, principal axes and central second moments along them, ascending.

    parameters (n, 10) of positive masses; returns (n,), (n, 3), (n, 3, 3), (n, 3).
    """
    J = pseudo_inertia(parameters)
    mass, center = J[:, 3, 3], J[:, :3, 3] / J[:, 3, 3:]
    central = J[:, :3, :3] - mass[:, None, None] * center[:, :, None] * center[:, None]
    moments, axes = np.linalg.eigh(central)
    axes[np.linalg.det(axes) < 0, :, 0] *= -1
    return mass, center, axes, moments


def inertia_complaint(parameters: Array) -> str:
    """Return the reason why parameters (10,) are inconsistent, or an empty string."""
    if not np.isfinite(parameters).all():
        return 'holds NaN or infinity'
    if not parameters.any():
        return 'has no mass and no inertia'
    if parameters[0] <= 0:
        return f'has a mass of {parameters[0]:g} kg'
    margin = float(consistency_margin(parameters))
    if margin <= 0:
        return f'is not fully physically consistent (pseudo-inertia eigenvalue {margin:.2g})'
    return ''


def check_centres(names: Sequence[str], parameters: Array, largest: float | None = None) -> None:
    """Raise unless parameters (n, 10) are finite and mass and first moment have a centre."""
    finite = np.isfinite(parameters).all(axis=1)
    if not finite.all():
        name = names[int(np.argmin(finite))]
        raise ModelError(f"'{name}' has inertial parameters that are not finite")
    if largest is None:
        largest = float(np.abs(parameters).max())
    mass, h = parameters[:, 0], parameters[:, 1:4]
    near = np.einsum('ki,ki->k', h, h) <= FARTHEST * largest * np.abs(mass)
    fine = near & ((mass != 0.0) | ~h.any(axis=1))
    if not fine.all():
        k = int(np.argmin(fine))
        raise ModelError(
            f"'{names[k]}' has a first moment of {h[k]} kg m but a mass of {mass[k]:g} kg: the "
            'digits of its inertia are lost'
        )


def check_usable(names: Sequence[str], parameters: Array) -> None:
    """Raise unless parameters (n_links, 10) are consistent and of the size of a robot."""
    for name, row in zip(names, parameters, strict=True):
        complaint = inertia_complaint(row)
        if not complaint and row[0] > LARGEST_MASS:
            complaint = f'has a mass of {row[0]:g} kg, expected up to {LARGEST_MASS:g}'
        if not complaint and np.linalg.norm(row[1:4]) > LARGEST_ARM * row[0]:
            complaint = f'has its centre of mass more than {LARGEST_ARM:g} m off its origin'
        if complaint:
            raise ModelError(f"'{name}' {complaint}")


def check_masses(names: Sequence[str], parameters: Array, expected: Array) -> None:
    """
    Raise unless masses are near enough to those of the URDF to be of the same robot.

    parameters, expected (n_links, 10).
    """
    whole, total = float(expected[:, 0].sum()), float(parameters[:, 0].sum())
    if not whole > 0.0:
        return
    if not whole / MAX_MASS_RATIO <= total <= whole * MAX_MASS_RATIO:
        raise ModelError(
            f'the robot would weigh {total:.4g} kg, the URDF has {whole:.4g} kg, expected up to '
            f'{MAX_MASS_RATIO:g} times more or less'
        )
    bounds = MAX_MASS_RATIO * (expected[:, 0] + LOAD_SHARE * whole)
    for name, mass, bound in zip(names, parameters[:, 0], bounds, strict=True):
        if mass > bound:
            raise ModelError(f"'{name}' has a mass of {mass:.4g} kg, expected up to {bound:.4g}")
