# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters of a body and whether any body could have them [T Definition 6.2; W]."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.arguments import numbers, stacked

Array = NDArray[np.float64]

FARTHEST = 1e6
"""
What |h|^2 / m may be at most, in units of 1 m and of the robot's largest parameter.

Pinocchio holds mass, centre of mass and the inertia about it. The inertia about the link's origin
is the small difference of numbers of that size; at the limit it keeps ten digits.
"""

LARGEST_MASS, LARGEST_ARM = 1e4, 10.0
"""Largest mass of a link [kg] and distance of its centre of mass from its origin [m]."""
LOAD_SHARE = 0.1
"""Of the robot's mass, what a link may weigh beside its own."""


def pseudo_inertia(parameters: Array) -> Array:
    """
    Return the pseudo-inertia J = [[Sigma, h], [h', m]] with Sigma = tr(I) / 2 1 - I [W].

    parameters (..., 10) [kg, kg m, kg m^2]; returns (..., 4, 4).
    """
    m, hx, hy, hz, ixx, ixy, iyy, ixz, iyz, izz = np.moveaxis(
        stacked('parameters', parameters, 10), -1, 0
    )
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


def inertia_complaint(parameters: Array) -> str:
    """
    Return what is wrong with the inertial parameters of one link, or an empty string.

    parameters (10,).
    """
    parameters = numbers('parameters', parameters, (10,), finite=False)
    mass = parameters[0]
    if not np.isfinite(parameters).all():
        return 'holds NaN or infinity'
    if not parameters.any():
        return 'has no mass and no inertia'
    if mass <= 0:
        return f'has a mass of {mass:g} kg'
    margin = float(consistency_margin(parameters))
    if margin <= 0:
        return f'is not fully physically consistent (pseudo-inertia eigenvalue {margin:.2g})'
    return ''


def has_centre_of_mass(parameters: Array, largest: float) -> NDArray[np.bool_]:
    """
    Tell whether mass and first moment can become a centre of mass.

    parameters (..., 10); returns (...).
    """
    mass, h = parameters[..., 0], parameters[..., 1:4]
    size = np.einsum('...i,...i->...', h, h)
    near = size <= FARTHEST * largest * np.abs(mass)
    return np.asarray(near & ((mass != 0.0) | ~h.any(axis=-1)))


def first_moment_complaint(parameters: Array, largest: float) -> str:
    """
    Return why mass and first moment cannot become a centre of mass, or an empty string.

    parameters (10,).
    """
    if has_centre_of_mass(parameters, largest):
        return ''
    mass, h = float(parameters[0]), parameters[1:4]
    if mass == 0.0:
        return f'has a first moment of {h} kg m but no mass'
    return (
        f'has a first moment of {h} kg m but a mass of {mass:g} kg: with the centre of mass '
        f'{np.linalg.norm(h) / abs(mass):.1g} m away the digits of its inertia are lost'
    )


def check_usable(names: Sequence[str], parameters: Array) -> None:
    """
    Raise unless every link is a body that could exist and belong to a robot.

    parameters (n_links, 10) [kg, kg m, kg m^2].
    """
    for name, row, margin in zip(names, parameters, _margins(parameters), strict=True):
        if not np.isfinite(row).all():
            raise ModelError(f"'{name}' has parameters that are not finite")
        mass = row[0]
        if not 0.0 < mass <= LARGEST_MASS:
            raise ModelError(
                f"'{name}' has a mass of {mass:g} kg, expected up to {LARGEST_MASS:g}"
            )
        arm = float(np.linalg.norm(row[1:4]) / mass)
        if arm > LARGEST_ARM:
            raise ModelError(f"'{name}' has its centre of mass {arm:g} m off its origin")
        if not margin > 0.0:
            raise ModelError(
                f"'{name}' is no body that could exist (smallest eigenvalue of its "
                f'pseudo-inertia: {margin:.3g})'
            )


def check_masses(names: Sequence[str], parameters: Array, described: Array, factor: float) -> None:
    """
    Raise unless masses are near enough to those of a description to be of the same robot.

    parameters, described (n_links, 10).
    """
    whole, total = float(described[:, 0].sum()), float(parameters[:, 0].sum())
    if factor == 0.0 or not whole > 0.0:
        return
    if not whole / factor <= total <= whole * factor:
        raise ModelError(
            f'the robot would weigh {total:.4g} kg, the URDF has {whole:.4g} kg, expected '
            f'{whole / factor:.4g} to {whole * factor:.4g} (update_mass_factor {factor:g})'
        )
    bounds = factor * (described[:, 0] + LOAD_SHARE * whole)
    for name, mass, own, bound in zip(
        names, parameters[:, 0], described[:, 0], bounds, strict=True
    ):
        if mass > bound:
            raise ModelError(
                f"'{name}' has a mass of {mass:.4g} kg, the URDF has {own:.4g} kg, expected up to "
                f'{bound:.4g} (update_mass_factor {factor:g})'
            )


def _margins(parameters: Array) -> Array:
    """Return consistency margins, NaN for links that are not finite."""
    finite = np.isfinite(parameters).all(axis=1)
    margins = np.full(len(parameters), np.nan)
    margins[finite] = consistency_margin(parameters[finite])
    return margins
