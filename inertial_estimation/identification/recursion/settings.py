# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What may refit the bodies of a robot that works.

How a recursive identification remembers and forgets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.solvers.coordinates import require_weight

METHODS = ('entropic', 'semidefinite', 'pullback', 'euclidean')
"""Of `solvers.methods`: those that are quick, and in which a prior weighs."""


@dataclass(frozen=True)
class RecursionSettings:
    """
    What rows are built, how long they count, and how fast offsets may change.

    Raises
    ------
    ConfigError
        If a number is out of its range.

    """

    rows: EquationChoice = field(default_factory=EquationChoice)
    """Which rows, and which unknowns beside the links' parameters."""
    weight: float = 1.0
    """
    Of the prior, against the mean squared residual in units of the noise. Bodies move where they
    explain more than that: a running robot's sensors are wrong by far more than their noise, for
    long, and all rows have it.
    """
    method: str = 'entropic'
    """What refits the bodies, one of `methods.METHODS`."""
    half_life: float = np.inf
    """Time with rows after which rows count half [s]; infinite: they count for ever."""
    force_walk: float = 0.0
    """How far the force offset of an FT sensor wanders in a second [N/sqrt(s)]."""
    moment_walk: float = 0.0
    """How far its moment offset does [Nm/sqrt(s)]."""
    force_drift: float = 0.045
    """Fastest drift of a force offset that is followed by what is subtracted [N/s]."""
    moment_drift: float = 0.0045
    """The same of a moment offset [Nm/s]."""
    warm_up: float = 2.0
    """Time with rows before the noise of a submodel's rows is told, and anything with it [s]."""
    noise: Mapping[str, float] = field(default_factory=dict)
    """Standard deviation of kinds of rows, where it is known [N, Nm]; others show it."""
    effort_gains: Mapping[str, float] = field(default_factory=dict)
    """Torque or force over what a joint reports as its effort, say a current; others: one."""
    gate: float = 0.0
    """
    Residual over the usual one from which something unknown acts on a submodel, or has changed;
    0: nothing is suspected.
    """
    payload_links: tuple[str, ...] = ()
    """Links that carry what a submodel picks up. Default: the last one of each submodel."""
    excited: int = 4
    """Combinations of a submodel's parameters that rows must tell better than the prior does."""

    def __post_init__(self) -> None:
        """Raise unless the numbers make sense."""
        if self.method not in METHODS:
            raise ConfigError(f"method is '{self.method}', expected one of {', '.join(METHODS)}")
        try:
            require_weight(self.weight)
        except ModelError as error:
            raise ConfigError(str(error)) from error
        if not self.half_life > 0.0:
            raise ConfigError(f'half_life is {self.half_life}, expected more than zero')
        for name in ('force_walk', 'moment_walk', 'force_drift', 'moment_drift', 'warm_up'):
            value = getattr(self, name)
            if not 0.0 <= value < np.inf:
                raise ConfigError(f'{name} is {value}, expected zero or more, finite')
        if not (self.gate == 0.0 or 2.0 <= self.gate < np.inf):
            raise ConfigError(f'gate is {self.gate}, expected 0 (off) or at least 2')
        for joint, gain in self.effort_gains.items():
            if not (np.isfinite(gain) and gain != 0.0):
                raise ConfigError(
                    f"the gain of the efforts of '{joint}' is {gain}, expected a finite number "
                    'other than zero'
                )
        bad = [kind for kind, level in self.noise.items() if not 0.0 < level < np.inf]
        if bad:
            raise ConfigError(f'noise of {", ".join(bad)} must be positive and finite')
