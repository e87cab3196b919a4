# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Settings of the recursive identification."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inertial_estimation.config.schema import ALL
from inertial_estimation.config.settings import IdentifierSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.unknowns import OF_A_JOINT
from inertial_estimation.model.robot import Robot

INNOVATION_GATE = 4.0
"""Residual over the usual one from which equations are rejected."""
FORCE_WALK = 0.3
"""Random walk of force offsets [N/sqrt(s)]: a drift of 20 N in ten minutes is followed."""
WARM_UP = 3.0
"""Time with data before their noise is estimated [s]."""


@dataclass(frozen=True)
class RecursionSettings:
    """
    Settings of the recursive identification.

    Raises
    ------
    ConfigError
        If a number is out of its range.

    """

    equations: EquationChoice = field(default_factory=EquationChoice)
    """Equations, and unknowns beside the inertial parameters."""
    prior_error: float = 0.2
    """
    Relative error of the prior's inertial parameters, or less where equations show less. The prior
    counts as one measurement of each direction.
    """
    half_life: float = np.inf
    """Time with equations after which they count half [s]; infinite: no forgetting."""
    force_walk: float = 0.0
    """Random walk of force offsets; that of moments is 0.1 m times it [N/sqrt(s)]."""
    warm_up: float = 2.0
    """Time with equations before their noise is estimated and a submodel refitted [s]."""
    effort_gains: Mapping[str, float] = field(default_factory=dict)
    """Torque or force over what a joint reports as its effort, e.g. a current. Default: 1."""
    gate: float = 0.0
    """Innovation over its usual size from which equations are rejected; 0: never."""
    payload_links: tuple[str, ...] = ()
    """Links that carry payloads. Default: the last one of each submodel."""
    excited: int = 4
    """Combinations that an update needs, determined better than the prior is stated to."""

    def __post_init__(self) -> None:
        for name, value, valid in (
            ('prior_error', self.prior_error, 1e-3 <= self.prior_error <= 3.0),
            ('half_life', self.half_life, self.half_life > 0.0),
            ('force_walk', self.force_walk, 0.0 <= self.force_walk < np.inf),
            ('warm_up', self.warm_up, 0.0 <= self.warm_up < np.inf),
            ('gate', self.gate, self.gate == 0.0 or 2.0 <= self.gate < np.inf),
            *(
                (f"effort gain of '{joint}'", gain, np.isfinite(gain) and gain != 0.0)
                for joint, gain in self.effort_gains.items()
            ),
        ):
            if not valid:
                raise ConfigError(f'{name} is {value}, out of its range')


def recursion_settings(settings: IdentifierSettings, robot: Robot) -> RecursionSettings:
    """Return the settings of the recursion from those of the identifier."""
    chosen = settings.efforts
    efforts = robot.joint_names if chosen.joints == ALL else chosen.joints
    if chosen.gains and len(chosen.gains) != len(efforts):
        raise ConfigError(
            f"'efforts.gains' has {len(chosen.gains)} numbers for {len(efforts)} joints"
        )
    terms = {term.value: term for term in OF_A_JOINT}
    if unknown := [name for name in chosen.friction if name not in terms]:
        raise ConfigError(
            f"'efforts.friction' has '{unknown[0]}', expected some of {', '.join(terms)}"
        )
    offsets = tuple(sensor.name for sensor in robot.ft_sensors)
    return RecursionSettings(
        equations=EquationChoice(
            efforts=efforts,
            friction=tuple(terms[name] for name in chosen.friction),
            dead_zones=dict.fromkeys(efforts, chosen.dead_zone),
            offsets=offsets,
        ),
        half_life=settings.half_life,
        force_walk=FORCE_WALK,
        warm_up=WARM_UP,
        effort_gains=dict(zip(efforts, chosen.gains)),
        gate=INNOVATION_GATE,
        payload_links=settings.payload_links,
    )
