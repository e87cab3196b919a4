# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the settings of the identifier to those of the recursion."""

from collections.abc import Sequence

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.config.schema import ALL
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot

DRIFT = 0.15
"""Fastest drift of offsets that the estimator follows, over their random walk [1/sqrt(s)]."""
WARM_UP = 3.0
"""Time with data before their noise is estimated [s]."""
FRICTION = (Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA)


def recursion_settings(settings: IdentifierSettings, robot: Robot) -> RecursionSettings:
    """Return the settings of the recursion."""
    if not robot.ft_sensors and not settings.efforts.joints:
        raise ConfigError(
            "'ft_sensors' and 'efforts.joints' are empty: no equations to identify from"
        )
    offsets = tuple(sensor.name for sensor in robot.ft_sensors)
    terms = tuple(map(_term, settings.efforts.friction))
    joint = JointModel(terms, dead_zone=settings.efforts.dead_zone)
    efforts = robot.joint_names if settings.efforts.joints == ALL else settings.efforts.joints
    return RecursionSettings(
        effort_gains=_gains(settings, efforts),
        equations=EquationChoice(efforts=efforts, joint=joint, offsets=offsets),
        weight=settings.refit.prior_weight,
        method=settings.refit.method,
        half_life=settings.half_life,
        force_walk=settings.force_walk,
        moment_walk=settings.moment_walk,
        force_drift=DRIFT * settings.force_walk,
        moment_drift=DRIFT * settings.moment_walk,
        warm_up=WARM_UP,
        gate=settings.innovation_gate,
        payload_links=settings.payload_links,
        excited=settings.refit.min_determined,
    )


def _gains(settings: IdentifierSettings, efforts: Sequence[str]) -> dict[str, float]:
    """Return torque over reported effort of each joint, by its name."""
    gains = settings.efforts.gains
    if gains and len(gains) != len(efforts):
        raise ConfigError(f"'efforts.gains' has {len(gains)} numbers for {len(efforts)} joints")
    return dict(zip(efforts, gains, strict=True)) if gains else {}


def _term(name: str) -> Term:
    """Return a term of friction by its name."""
    found = {term.value: term for term in FRICTION}
    if name not in found:
        raise ConfigError(f"'efforts.friction' has '{name}', expected some of {', '.join(found)}")
    return found[name]
