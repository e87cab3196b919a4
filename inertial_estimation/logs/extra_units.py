# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Units of friction, drives, offsets and payloads, which depend on how a joint moves."""

from __future__ import annotations

from collections.abc import Mapping

from inertial_estimation.identification.unknowns import (
    FT_OFFSET,
    INERTIAL_UNITS,
    OF_A_BODY,
    Extra,
    Term,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse

TURNING: Mapping[Term, str] = {
    Term.VISCOUS: 'N m s/rad',
    Term.COULOMB: 'N m',
    Term.OFFSET: 'N m',
    Term.DRIVE_INERTIA: 'kg m^2',
    Term.DRIVE_GAIN: 'N m/A',
}
SLIDING: Mapping[Term, str] = {
    Term.VISCOUS: 'N s/m',
    Term.COULOMB: 'N',
    Term.OFFSET: 'N',
    Term.DRIVE_INERTIA: 'kg',
    Term.DRIVE_GAIN: 'N/A',
}
ANYWHERE: Mapping[Term, str] = {
    **dict(zip(FT_OFFSET, (*('N',) * 3, *('N m',) * 3), strict=True)),
    **dict(zip(OF_A_BODY, INERTIAL_UNITS, strict=True)),
}


def sliding_joints(robot: Robot) -> frozenset[str]:
    """Return the joints that slide."""
    joints = parse(robot.urdf).findall('joint')
    return frozenset(tag.get('name', '') for tag in joints if tag.get('type') == 'prismatic')


def extra_unit(extra: Extra, sliding: frozenset[str]) -> str:
    """Return the unit of an unknown."""
    if extra.term in ANYWHERE:
        return ANYWHERE[extra.term]
    return (SLIDING if extra.of.split('+')[0] in sliding else TURNING)[extra.term]
