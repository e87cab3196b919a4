# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which combinations of inertial parameters rows of the equations of motion tell of at all.

Two ways to the same subspace. From structure: what a link may hand to its neighbour across a
joint without anybody noticing, joint by joint, so that every decision about a rank is one of ten
columns (the idea of Wensing, Niemeyer and Slotine, 2017: transfers across joints, and motions
that a link never makes). From numbers: the null space of the regressor at random states.

A mass on the axis of a revolute joint can belong to either side of it: three directions. A
rotational inertia can belong to either side of a prismatic joint: six.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.model.motion_spans import (
    NEGLIGIBLE,
    Crossing,
    complement,
    congruence,
)
from inertial_estimation.model.null_space_walks import (
    FixedTorques,
    FreeTorques,
    Walk,
    Wrenches,
)
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

STATES_PER_COLUMN = 0.5
"""Random states for each column of a regressor: rows outnumber columns at least threefold."""


class Rows(str, Enum):
    """What is measured of a submodel; each value names it."""

    WRENCH = 'wrench'
    """The whole wrench on the submodel, so the torques of its joints as well [T 7.4]."""
    TORQUES = 'torques'
    """The torques of its joints only [T 7.5]."""


def structural_null_space(robot: Robot, submodel: Submodel, rows: Rows = Rows.WRENCH) -> Array:
    """
    Return the directions that no row tells of, from the tree and its joints.

    Returns (10 n_links, n - rank).
    """
    if rows is Rows.TORQUES and robot.fixed_frame:
        if _ground(robot) not in submodel.links:
            raise ModelError(
                f"submodel '{submodel.name}' does not hold the fixed link: what the torques of "
                'its joints tell is not known from structure; use `numeric_null_space`'
            )
        walk: Walk = FixedTorques(robot)
    elif rows is Rows.TORQUES:
        walk = FreeTorques()
    else:
        walk = Wrenches(robot)
    return _collect(robot, submodel, walk)


def numeric_null_space(
    robot: Robot, submodel: Submodel, rows: Rows = Rows.WRENCH, seed: int = 0
) -> Array:
    """
    Return the directions that no row tells of, from regressors at random states.

    Returns (10 n_links, n - rank).
    """
    n = 10 * len(submodel.links)
    samples = random_states(robot, int(np.ceil(STATES_PER_COLUMN * n)) + 8, seed)
    found = submodel_regressors(excitable(robot), samples, [submodel], _ground(robot))[0]
    stacked = (found.wrench if rows is Rows.WRENCH else found.torques).reshape(-1, n)
    scales = np.linalg.norm(stacked, axis=0)
    # A column of round-off must not be made as large as the others.
    largest = scales.max() or 1.0
    scales[scales < NEGLIGIBLE * largest] = largest
    return orthonormal(complement(stacked / scales) / scales[:, None])


def random_states(robot: Robot, n: int, seed: int = 0) -> SampleBatch:
    """Return motions that excite all that can be excited, for the robot of `excitable`."""
    rng = np.random.default_rng(seed)
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
    """
    Return the robot with the motion of its root given, or of its fixed link, and of nothing else.
    """
    if robot.fixed_frame:
        return replace(robot, imus=())
    return replace(robot, imus=(Imu('root', robot.links[0].name, 0, np.eye(4)),))


def orthonormal(columns: Array) -> Array:
    """
    Return orthonormal columns that span the same space, each of them independent.

    columns (n, k); returns (n, k).
    """
    return np.asarray(np.linalg.qr(columns)[0])


def subspace_distance(one: Array, other: Array) -> float:
    """
    Return the sine of the largest angle between two subspaces; 1 if their dimensions differ.

    one, other (n, k).
    """
    if one.shape != other.shape:
        return 1.0
    if not one.size:
        return 0.0
    return float(np.linalg.norm(other - one @ (one.T @ other), 2))


def _collect(robot: Robot, submodel: Submodel, walk: Walk) -> Array:
    """Return what each link of a submodel may hand to the one before it, and the first one's."""
    within = {k: column for column, k in enumerate(submodel.links)}
    start = _ground(robot) if robot.fixed_frame else submodel.root
    order = _order(robot, start, within if start in within else range(len(robot.links)))
    known: dict[int, tuple[Array, Array]] = {order[0][0]: walk.start()}
    inner = np.zeros((10 * len(submodel.links), 0))
    for link, before, crossing in order:
        own, handed = np.zeros((0, 10)), None
        if crossing is not None:
            moves, seen, own = walk.cross(*known[before], crossing)
            known[link] = moves, seen
            handed = congruence(crossing.poses[0]) if before in within else None
        if link not in within:
            continue
        given = complement(own if handed is not None else known[link][1])
        columns = np.zeros((len(inner), given.shape[1]))
        columns[10 * within[link] :][:10] = given
        if handed is not None:
            columns[10 * within[before] :][:10] = -handed @ given
        inner = np.hstack([inner, columns])
    return orthonormal(inner)


def _order(
    robot: Robot, start: int, chosen: Container[int]
) -> Sequence[tuple[int, int, Crossing | None]]:
    """Return each link, the one before it and what is between, from where motion is known."""
    order: list[tuple[int, int, Crossing | None]] = [(start, -1, None)]
    for link, before, _ in order:
        for k, other in enumerate(robot.links):
            if other.parent == link and k != before and k in chosen:
                order.append((k, link, Crossing.outwards(other.P_H_L, other.motion)))
        parent = robot.links[link].parent
        if parent >= 0 and parent != before and parent in chosen:
            here = robot.links[link]
            order.append((parent, link, Crossing.inwards(here.P_H_L, here.motion)))
    return order


def _ground(robot: Robot) -> int:
    """Return the fixed link, -1 if the robot floats."""
    return robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
