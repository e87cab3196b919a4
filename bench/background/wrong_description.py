# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A wrong description, offsets of FT sensors, and the tare that goes with a description."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

WRONG = 0.2
"""Standard deviation of each whitened coordinate of a body: 20 % of its size."""
OFFSETS = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0])
"""Standard deviation of offsets [N, Nm]."""


def wrong_robot(robot: Robot, rng: np.random.Generator, wrong: float = WRONG) -> Robot:
    """Return the robot with bodies that are wrong at random, each still a possible one."""
    bodies, _ = widened(robot.link_names, robot.parameters)
    moves = wrong * rng.normal(size=bodies.shape)
    return robot.with_parameters(bodies + np.einsum('lij,lj->li', whitening(bodies), moves))


def tare(robot: Robot, rest: SampleBatch, submodels: Sequence[str]) -> Array:
    """
    Return the offsets with which a robot at rest fits its description best.

    Returns (n_fts, 6) [N, Nm].
    """
    names = [sensor.name for sensor in robot.ft_sensors]
    choice = EquationChoice(wrenches=tuple(submodels), offsets=tuple(names))
    builder = EquationBuilder(robot, choice)
    found = np.zeros((len(names), 6))
    for block, kinds in zip(builder.blocks, builder.rows(rest), strict=True):
        if not kinds:
            continue
        n, links = block.unknowns.n_inertial, list(block.submodel.links)
        Y = np.concatenate([rows.Y for rows in kinds.values()])
        y = np.concatenate([rows.y for rows in kinds.values()])
        rest_of = y - Y[:, :n] @ robot.parameters[links].reshape(-1)
        values = np.linalg.lstsq(Y[:, n:], rest_of, rcond=None)[0]
        for extra, value in zip(block.unknowns.extras, values.tolist(), strict=True):
            found[names.index(extra.of), COMPONENTS.index(extra.term.value)] = value
    return found
