# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the settings of the identifier to those of the recursion."""

from collections.abc import Sequence

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot

ALL = ('all',)
"""In place of the names of all joints."""
FRICTION = (Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA)


def recursion_settings(settings: IdentifierSettings, robot: Robot) -> RecursionSettings:
    """Return the settings of the recursion."""
    if not robot.ft_sensors and not settings.efforts:
        raise ConfigError(
            "neither 'ft_sensors' nor 'efforts' names anything: no equations to identify from"
        )
    offsets = tuple(sensor.name for sensor in robot.ft_sensors) if settings.ft_offsets else ()
    terms = tuple(map(_term, settings.friction))
    joint = JointModel(terms, settings.sign_width, settings.dead_zone)
    efforts = robot.joint_names if settings.efforts == ALL else settings.efforts
    return RecursionSettings(
        effort_gains=_gains(settings, efforts),
        equations=EquationChoice(
            wrenches=settings.wrench_rows, efforts=efforts, joint=joint, offsets=offsets
        ),
        weight=settings.prior_weight,
        method=settings.method,
        half_life=settings.half_life,
        force_walk=settings.force_walk,
        moment_walk=settings.moment_walk,
        force_drift=settings.force_drift,
        moment_drift=settings.moment_drift,
        warm_up=settings.warm_up,
        gate=settings.gate,
        payload_links=settings.payload_links,
        excited=settings.least_told,
    )


def _gains(settings: IdentifierSettings, efforts: Sequence[str]) -> dict[str, float]:
    """Return torque over reported effort of each joint, by its name."""
    gains = settings.effort_gains
    if gains and len(gains) != len(efforts):
        raise ConfigError(
            f"'effort_gains' has {len(gains)} numbers for {len(efforts)} joints of 'efforts'"
        )
    return dict(zip(efforts, gains, strict=True)) if gains else {}


def _term(name: str) -> Term:
    """Return a term of friction by its name."""
    found = {term.value: term for term in FRICTION}
    if name not in found:
        raise ConfigError(f"'friction' has '{name}', expected some of {', '.join(found)}")
    return found[name]
