# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The robot, its joints and its bodies, as Pinocchio's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.model.inertia import (
    check_centres,
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.robot import Robot

Supports = tuple[NDArray[np.intp], Array]
"""Joint that carries each link, (n_links,), and the link's pose in it, (n_links, 4, 4) [m]."""


def joint_model(motion: Array) -> pin.JointModel:
    """Return the joint of a motion subspace (6,); one row of q for continuous joints too."""
    linear, angular = motion[:3], motion[3:]
    if linear.any():
        return pin.JointModelPrismaticUnaligned(linear)
    return pin.JointModelRevoluteUnaligned(angular)


def make_inertia(parameters: Array) -> pin.Inertia:
    """Return Pinocchio's inertia of parameters (10,) unchecked, massless links included."""
    if parameters[0] != 0.0:
        return pin.Inertia.FromDynamicParameters(parameters)
    inertia = pin.Inertia.Zero()
    xx, xy, yy, xz, yz, zz = parameters[4:]
    inertia.inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return inertia


def free_floating_model(robot: Robot) -> pin.Model:
    """Return the robot on a free joint above its root link, its FT sensors rigid."""
    model = pin.Model()
    model.gravity = pin.Motion.Zero()
    model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), 'root')
    where = supports(robot)
    add_joints(model, robot, where)
    set_carried_inertias(model, robot, where)
    return model


def add_joints(model: pin.Model, robot: Robot, where: Supports) -> None:
    """Add the joints of a robot to a model that has the joint of the root link."""
    joint_of, J_H_L = where
    for link in robot.links:
        if link.joint >= 0:
            placement = pin.SE3(J_H_L[link.parent] @ link.P_H_L)
            name = robot.joint_names[link.joint]
            model.addJoint(int(joint_of[link.parent]), joint_model(link.motion), placement, name)


def set_carried_inertias(model: pin.Model, robot: Robot, where: Supports) -> None:
    """Give a model that `free_floating_model` made the inertial parameters of a robot."""
    joint_of, J_H_L = where
    largest = float(np.abs(robot.parameters).max())
    M = np.zeros((model.njoints, 6, 6))
    np.add.at(M, joint_of, inertia_seen_from(spatial_inertia(robot.parameters), J_H_L))
    carried = parameters_of(M)
    check_centres([f'links of joint {name}' for name in model.names], carried, largest)
    inertias = model.inertias
    for joint, parameters in enumerate(carried[1:], start=1):
        inertias[joint] = make_inertia(parameters)


def supports(robot: Robot) -> Supports:
    """Return the joint of `free_floating_model` that carries each link, and the pose in it."""
    joint_of = np.ones(len(robot.links), dtype=np.intp)
    J_H_L = np.tile(np.eye(4), (len(robot.links), 1, 1))
    for k, link in enumerate(robot.links):
        if link.joint >= 0:
            joint_of[k] = link.joint + 2
        elif link.parent >= 0:
            joint_of[k] = joint_of[link.parent]
            J_H_L[k] = J_H_L[link.parent] @ link.P_H_L
    return joint_of, J_H_L


def pose_view(data: pin.Data) -> Array:
    """Return the joint poses of Pinocchio's data, (n_joints + 1, 4, 3), sharing its memory."""
    return _shared([(pose.rotation.T, pose.translation) for pose in data.oMi]).reshape(-1, 4, 3)


def motion_view(motions: pin.StdVec_Motion | pin.StdVec_Force) -> Array:
    """Return motions or forces of joints, (n_joints + 1, 6), sharing Pinocchio's memory."""
    return _shared([(motion.linear, motion.angular) for motion in motions])


def _shared(objects: Sequence[tuple[Array, ...]]) -> Array:
    """Return the numbers of Pinocchio's objects as rows of one array that shares their memory."""
    first, sizes = objects[0][0], [part.size for part in objects[0]]
    n, step = sum(sizes), first.itemsize
    places = [[part.__array_interface__['data'][0] for part in parts] for parts in objects]
    starts = n * np.arange(len(objects))[:, None] + np.cumsum([0, *sizes[:-1]])
    if not np.array_equal(places, places[0][0] + step * starts):
        raise RuntimeError('this version of Pinocchio keeps its objects in an unknown way')
    shape, strides = (len(objects), n), (n * step, step)
    return np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False)
