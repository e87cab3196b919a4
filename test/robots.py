# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Small robots as short URDF text, and random samples of any robot."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample


def _link(name: str, mass: float, com: str = '0.02 -0.01 0.1') -> str:
    """Return a link with a solid inertia."""
    return f"""
      <link name="{name}"><inertial>
        <origin xyz="{com}" rpy="0.1 0.2 0.3"/><mass value="{mass}"/>
        <inertia ixx="{0.02 * mass}" ixy="0.0001" ixz="-0.0002"
                 iyy="{0.018 * mass}" iyz="0.0003" izz="{0.011 * mass}"/>
      </inertial></link>"""


def _links(**masses: float) -> str:
    return ''.join(_link(name, mass) for name, mass in masses.items())


def _joint(name: str, kind: str, parent: str, child: str, xyz: str, axis: str = '0 0 1') -> str:
    """Return a joint with generous limits."""
    limit = '<limit lower="-3" upper="3" effort="50" velocity="10"/>'
    limit = '' if kind in ('fixed', 'continuous') else limit
    axis_tag = '' if kind == 'fixed' else f'<axis xyz="{axis}"/>'
    return f"""
      <joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>
        <origin xyz="{xyz}" rpy="0.3 -0.2 0.5"/>{axis_tag}{limit}</joint>"""


def _ft(name, joint, frame='child', direction='child_to_parent', origin='') -> str:
    """Return a force_torque tag."""
    return f"""
      <sensor name="{name}" type="force_torque"><parent joint="{joint}"/><force_torque>
        <frame>{frame}</frame><measure_direction>{direction}</measure_direction>
      </force_torque>{origin}</sensor>"""


def two_link_urdf() -> str:
    """Return a floating pair of links: one joint, no FT sensor."""
    return (
        '<robot name="two_link">'
        + _link('body', 3.0)
        + _link('arm', 1.5)
        + _joint('elbow', 'revolute', 'body', 'arm', '0.1 0 0.3', '0 1 0')
        + '</robot>'
    )


def arm_with_wrist_sensor_urdf() -> str:
    """Return a fixed-base arm: continuous, revolute and prismatic joints, FT at the wrist."""
    return (
        '<robot name="arm_with_wrist_sensor">'
        + _links(base=5.0, upper=2.0, lower=1.5, slider=0.8, tool=0.5, tip=0.1)
        + _joint('shoulder', 'continuous', 'base', 'upper', '0 0 0.3')
        + _joint('elbow', 'revolute', 'upper', 'lower', '0.3 0 0', '0 1 0')
        + _joint('lift', 'prismatic', 'lower', 'slider', '0.2 0 0', '0.6 0 0.8')
        + _joint('wrist_sensor_joint', 'fixed', 'slider', 'tool', '0.1 0.02 0')
        + _joint('tip_joint', 'fixed', 'tool', 'tip', '0 0 0.1')
        + _ft('wrist_sensor', 'wrist_sensor_joint')
        + '</robot>'
    )


def nested_humanoid_urdf() -> str:
    """
    Return a floating body with a head, an arm and a leg.

    The leg carries two nested FT sensors, one turned and one that reads parent on child, so that
    submodels hang below submodels.
    """
    origin = '<origin xyz="0.01 -0.02 0.03" rpy="0.4 0.1 -2.0"/>'
    return (
        '<robot name="nested_humanoid">'
        + _links(root=5.0, chest=6.0, head=2.0, shoulder=1.0, upper_arm=1.2, hand=0.7)
        + _links(hip=1.5, thigh=2.5, shank=2.0, foot=0.9)
        + _link('sole', 0.0001, '0 0 0')
        + _joint('waist', 'revolute', 'root', 'chest', '0 0 0.2', '0 0.6 0.8')
        + _joint('neck', 'revolute', 'chest', 'head', '0 0 0.3', '1 0 0')
        + _joint('shoulder_joint', 'revolute', 'chest', 'shoulder', '0 0.2 0.2', '0 1 0')
        + _joint('arm_sensor_joint', 'fixed', 'shoulder', 'upper_arm', '0 0.05 0')
        + _joint('elbow', 'revolute', 'upper_arm', 'hand', '0 0 -0.25', '1 0 0')
        + _joint('hip_joint', 'revolute', 'root', 'hip', '0 0.1 -0.1', '0 1 0')
        + _joint('leg_sensor_joint', 'fixed', 'hip', 'thigh', '0 0 -0.05')
        + _joint('knee', 'revolute', 'thigh', 'shank', '0 0 -0.3', '0 1 0')
        + _joint('foot_sensor_joint', 'fixed', 'shank', 'foot', '0 0 -0.3')
        + _joint('sole_joint', 'fixed', 'foot', 'sole', '0.03 0 -0.05')
        + _ft('arm_sensor', 'arm_sensor_joint')
        + _ft('leg_sensor', 'leg_sensor_joint', 'sensor', 'child_to_parent', origin)
        + _ft('foot_sensor', 'foot_sensor_joint', 'sensor', 'parent_to_child', origin)
        + '</robot>'
    )


def random_pose(rng: np.random.Generator) -> np.ndarray:
    """Return a pose with any rotation, its origin within metres."""
    H = np.eye(4)
    H[:3, :3] = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
    H[:3, 3] = rng.uniform(-2.0, 2.0, 3)
    return H


def random_sample(robot: Robot, rng: np.random.Generator) -> Sample:
    """Return a moving state with readings that need not fit together."""
    n, n_imus, n_fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
    return Sample(
        stamp_ns=int(rng.integers(1, 10**15)),
        positions=rng.uniform(-1.5, 1.5, n),
        velocities=rng.normal(0.0, 2.0, n),
        accelerations=rng.normal(0.0, 8.0, n),
        angular_velocities=rng.normal(0.0, 1.0, (n_imus, 3)),
        proper_accelerations=rng.normal(0.0, 3.0, (n_imus, 3)) + np.array([0.0, 0.0, 9.81]),
        angular_accelerations=rng.normal(0.0, 4.0, (n_imus, 3)),
        ft_readings=rng.normal(0.0, 1.0, (n_fts, 6)) * ([50.0] * 3 + [5.0] * 3),
    )


def at_roots(robot: Robot) -> tuple[Contact, ...]:
    """Return a full wrench at the root link of each submodel."""
    return tuple(Contact(submodel.name) for submodel in robot.submodels)


def at_ends(robot: Robot) -> tuple[Contact, ...]:
    """Return a full wrench at the last link of each submodel."""
    return tuple(Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels)


def all_kinds(robot: Robot) -> list[Contact]:
    """Return a contact at every link, of all kinds in turn."""
    kinds = ['force', 'wrench', 'axial_force', 'known']
    given = {'point': (0.1, 0.2, -0.1), 'wrench': (1, 2, 3, 4, 5, 6)}
    return [Contact(name, kinds[k % 4], **given) for k, name in enumerate(robot.link_names)]


def assert_close(
    got: np.ndarray, expected: np.ndarray, tolerance: float = 1e-12, what: str = ''
) -> None:
    """Compare relative to the largest number that is expected, at least one."""
    size = max(1.0, np.nanmax(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * size, err_msg=what)
