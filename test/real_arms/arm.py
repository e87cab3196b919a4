# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A real arm, what its logs say, and the methods that are compared on it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.priors import DEFAULT_PRIOR_WEIGHT, widened
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import Fill, solve_least_squares
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, no_progress
from inertial_estimation.logs.log_reader import LogReader, open_logs
from inertial_estimation.logs.reduction import reduce_logs
from real_arms.robots import RealRobot

Array = NDArray[np.float64]

PRIOR, OLS, WLS = 'description, friction refitted', 'least squares', 'weighted least squares'
LMI, LMI_EUCLIDEAN = 'LMI, no prior', 'LMI, Euclidean prior'
LMI_PULLBACK, ENTROPIC = 'LMI, pullback prior', 'entropic prior'
DEFAULT = 'identify, as it is'


class Found(NamedTuple):
    """What a method gives."""

    x: Array
    rank: int
    time: float
    """[s]."""


Methods = dict[str, Callable[[], Found]]


def _found(answer: Identification) -> Found:
    """Return what is compared of an identification."""
    return Found(answer.x, answer.rank, answer.solve_time)


class Arm:
    """A robot with what its logs say."""

    def __init__(self, robot: RealRobot, data: Path, configs: Path) -> None:
        self.robot = robot
        self.settings = IdentifySettings.from_yaml(configs / robot.config)
        self._data = data
        urdf = robot.description(data)
        first = self.stretch(robot.fitted[0])
        self.reader: LogReader = open_logs(urdf, self.settings, (), first, no_progress)
        self._builder = EquationBuilder(self.reader.robot, self.settings.choice(self.reader.robot))
        (self.block,) = self._builder.blocks
        links = list(self.block.submodel.links)
        self.prior = widened(self.block.unknowns.links, self.reader.robot.parameters[links])[0]

    def stretch(self, said: str) -> LogSlice:
        """Return a part of a log of the data."""
        return LogSlice.parse(self._data / said)

    def evidence(self, stretches: Sequence[LogSlice]) -> Evidence:
        """Return what logs say."""
        (found,) = reduce_logs(stretches, self.reader, self._builder, self.settings).evidence
        return found

    def methods(self, seen: Evidence, noise: Mapping[str, float]) -> Methods:
        """
        Return what gives unknowns and rank, by method.

        noise [N, Nm].
        """
        unknowns, scales = self.block.unknowns, friction_scales(seen)
        kinds = {kind: rows for kind, rows in seen.kinds.items() if rows.count}
        rows = weighted_sum(kinds.values(), [1.0 / noise[kind] for kind in kinds])
        weighted = Problem.of(unknowns, rows, self.prior, extra_scales=scales)
        plain = Problem.of(unknowns, weighted_sum(kinds.values(), [1.0] * len(kinds)), self.prior)

        def squares(problem: Problem) -> Callable[[], Found]:
            return lambda: _found(solve_least_squares(problem, fill=Fill.MINIMUM_NORM))

        weight = DEFAULT_PRIOR_WEIGHT.rows / rows.count

        def cones(prior: PriorTerm) -> Callable[[], Found]:
            return lambda: _found(solve_semidefinite(weighted, prior=prior, weight=weight))

        return {
            PRIOR: lambda: Found(weighted.fitted_extras(), 0, 0.0),
            OLS: squares(plain),
            WLS: squares(weighted),
            LMI: cones(PriorTerm.NONE),
            LMI_EUCLIDEAN: cones(PriorTerm.EUCLIDEAN),
            LMI_PULLBACK: cones(PriorTerm.PULLBACK),
            ENTROPIC: lambda: _found(solve_entropic(weighted, weight=weight)),
            DEFAULT: lambda: _found(fit(self.reader.robot, [seen]).blocks[0].answer),
        }
