# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identifiable combinations of inertial parameters, from ranks of regressors at random states.

A mass on the axis of a revolute joint can belong to either side of it: three directions. A
rotational inertia can belong to either side of a prismatic joint: six. Cut at its FT sensors, a
robot is identified submodel by submodel. That determines every torque inside a submodel [T Theorem
7.3] and the equations of motion of the whole robot [T 7.1, 7.2], as far as the wrench on each
submodel is known at times. A bolted base is held by a wrench that is not measured unless it stands
on a force plate: there only joints that report their effort help.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.model.arguments import indices
from inertial_estimation.model.base_parameters import BaseParameters, unexcited_directions
from inertial_estimation.model.regressor import SubmodelRegressor, submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu
from inertial_estimation.model.tree import Submodel, decompose
from inertial_estimation.sample import SampleBatch

STATES_PER_COLUMN = 0.5
"""Random states for each column of a regressor: equations outnumber columns at least threefold."""
ROUND_OFF = 1e-9
"""Singular values and effects below this share of the largest are round-off."""
MIN_STATES = 40
"""Random states that predictions are tested in; at most as many lacking combinations count."""


def null_space(robot: Robot, submodel: Submodel) -> Array:
    """
    Return directions of the parameters of a submodel's links that change no wrench on it.

    Returns orthonormal columns, (10 n_links, n - rank).
    """
    n = 10 * len(submodel.links)
    samples = random_states(robot, int(np.ceil(STATES_PER_COLUMN * n)) + 8)
    found = submodel_regressors(excitable(robot), samples, [submodel], _ground(robot))[0]
    Y = found.wrench.reshape(-1, n)
    # A column of round-off must not be scaled up to the others.
    sizes = np.linalg.norm(Y, axis=0)
    return unexcited_directions(np.where(sizes < ROUND_OFF * sizes.max(), 0.0, Y), ROUND_OFF)


def base_parameters(robot: Robot, submodel: Submodel | None = None) -> BaseParameters:
    """
    Return the base parameters of a submodel: those that wrenches on it and torques in it show.

    Parameters
    ----------
    robot : Robot
        Its joints; parameters do not matter.
    submodel : Submodel, optional
        One of ``robot.submodels``. Default: the whole robot, no FT sensor used.

    Returns
    -------
    BaseParameters
        Of the ten parameters of each of its links, in their order [T 7.9].

    """
    chosen = submodel or decompose(robot.links, robot.ft_sensors, ())[0]
    return BaseParameters.of_null_space(null_space(robot, chosen))


def random_states(robot: Robot, n: int) -> SampleBatch:
    """Return motions that excite all that can be excited, for the robot of `excitable`."""
    rng = np.random.default_rng(0)
    joints = len(robot.joint_names)
    floating = 0 if robot.fixed_frame else 1
    return SampleBatch(
        stamp_ns=np.arange(n),
        positions=rng.uniform(-np.pi, np.pi, (n, joints)),
        velocities=rng.normal(0.0, 2.0, (n, joints)),
        accelerations=rng.normal(0.0, 8.0, (n, joints)),
        angular_velocities=rng.normal(0.0, 2.0, (n, floating, 3)),
        proper_accelerations=rng.normal(0.0, 8.0, (n, floating, 3)),
        angular_accelerations=rng.normal(0.0, 8.0, (n, floating, 3)),
        ft_readings=np.zeros((n, len(robot.ft_sensors), 6)),
    )


def excitable(robot: Robot) -> Robot:
    """Return the robot with the motion of its fixed link, else of its root, as only source."""
    if robot.fixed_frame:
        return replace(robot, imus=())
    return replace(robot, imus=(Imu('root', robot.links[0].name, 0, np.eye(4)),))


@dataclass(frozen=True)
class Predictability:
    """Number of combinations of parameters that each prediction lacks; 0: it can be made."""

    rank: int
    """Identifiable combinations of all inertial parameters."""
    torques: dict[str, int]
    """Of each joint, by the links up to the next FT sensors and their readings [T 7.5]."""
    torques_without_fts: dict[str, int]
    """Of each joint, by all links beyond it: inverse dynamics without external wrenches."""
    wrenches: dict[str, int]
    """Sum of the external wrenches on each submodel, by its name [T 7.2]."""


def predictability(
    robot: Robot,
    *,
    efforts: Iterable[str] = (),
    wrenches: Collection[str] | None = None,
    contacts: Iterable[str] = (),
) -> Predictability:
    """
    Return the predictions possible once all that some sensors determine was identified.

    efforts, wrenches: joints and submodels that are measured, by default every submodel but a
    bolted one; contacts: frames that are always touched.
    """
    measured = indices('efforts', efforts, 'joint', robot.joint_names)
    touched = {robot.frame(frame)[0] for frame in contacts}
    ground, whole = _ground(robot), decompose(robot.links, robot.ft_sensors, ())[0]
    samples = random_states(robot, max(MIN_STATES, 5 * len(robot.links)))
    every = [*robot.submodels, whole]
    *parts, undivided = submodel_regressors(excitable(robot), samples, every, ground)
    if wrenches is None:
        wrenches = [one.name for one in robot.submodels if ground not in one.links]
    invisible = []
    for submodel, equations in zip(robot.submodels, parts, strict=True):
        n = 10 * len(submodel.links)
        chosen = [k for k, side in enumerate(equations.sides) if side.joint in measured]
        null = np.eye(n)
        if not touched.intersection(submodel.links):
            if submodel.name in wrenches:
                null = null_space(robot, submodel)
            elif chosen:
                null = unexcited_directions(equations.torques[:, chosen].reshape(-1, n))
        placed = np.zeros((len(robot.links), 10, null.shape[1]))
        placed[list(submodel.links)] = null.reshape(len(submodel.links), 10, -1)
        invisible.append(placed)
    N = np.concatenate(invisible, axis=2)

    def lacking(submodel: Submodel, Y: Array) -> int:
        """Return the number of invisible combinations that equations depend on."""
        effects = Y.reshape(-1, Y.shape[-1]) @ N[list(submodel.links)].reshape(Y.shape[-1], -1)
        if not effects.size:
            return 0
        values = np.linalg.svd(effects, compute_uv=False)
        return int(np.sum(values > ROUND_OFF * np.linalg.norm(Y)))

    def torques(submodel: Submodel, equations: SubmodelRegressor) -> dict[str, int]:
        return {
            robot.joint_names[side.joint]: lacking(submodel, equations.torques[:, k])
            for k, side in enumerate(equations.sides)
        }

    found: dict[str, int] = {}
    for submodel, equations in zip(robot.submodels, parts, strict=True):
        found |= torques(submodel, equations)
    return Predictability(
        rank=10 * len(robot.links) - N.shape[2],
        torques={name: found[name] for name in robot.joint_names},
        torques_without_fts=torques(whole, undivided),
        wrenches={
            submodel.name: lacking(submodel, equations.wrench)
            for submodel, equations in zip(robot.submodels, parts, strict=True)
        },
    )


def _ground(robot: Robot) -> int:
    """Return the fixed link, -1 if the robot floats."""
    return robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
