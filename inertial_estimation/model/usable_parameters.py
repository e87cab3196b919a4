# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether inertial parameters from elsewhere may be used as they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]

LARGEST_MASS, LARGEST_ARM = 1e4, 10.0
"""What no link of a robot exceeds: its mass [kg], and how far its centre of mass is off [m]."""
LOAD_SHARE = 0.1
"""Of the robot's mass, what a link may weigh beside its own."""


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
    remedy = f"raise 'update_mass_factor' ({factor:g}) if the description is that wrong"
    if not whole / factor <= total <= whole * factor:
        raise ModelError(
            f'the robot would weigh {total:.4g} kg, its description says {whole:.4g} kg, expected '
            f'{whole / factor:.4g} to {whole * factor:.4g}: check units and sender, or {remedy}'
        )
    bounds = factor * (described[:, 0] + LOAD_SHARE * whole)
    for name, mass, own, bound in zip(
        names, parameters[:, 0], described[:, 0], bounds, strict=True
    ):
        if mass > bound:
            raise ModelError(
                f"'{name}' has a mass of {mass:.4g} kg, its description says {own:.4g} kg, "
                f'expected up to {bound:.4g}: check units and sender, or {remedy}'
            )


def _margins(parameters: Array) -> Array:
    """Return consistency margins, NaN for links that are not finite."""
    finite = np.isfinite(parameters).all(axis=1)
    margins = np.full(len(parameters), np.nan)
    margins[finite] = consistency_margin(parameters[finite])
    return margins
