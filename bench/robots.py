# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is estimated in the benchmark: the iCub, larger robots of its shape, random samples."""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample

CONTACTS = tuple(
    Contact(link)
    for link in (
        'root_link', 'l_foot', 'r_foot', 'l_lower_leg', 'r_lower_leg', 'l_forearm', 'r_forearm'
    )
)  # fmt: skip
"""One full wrench in each of the iCub's seven submodels."""
SQUEEZE = (
    *CONTACTS[:-1],
    Contact('r_upper_arm', 'force', point=(0.0, 0.0, 0.05)),
    Contact('r_forearm', 'force', point=(0.0, 0.05, 0.0)),
)
"""The same, with two forces at points in the last submodel."""
_SOLE = {'kind': 'surface', 'friction': 0.5, 'size': (0.17, 0.072)}
PUSHING = (
    *CONTACTS[:1], Contact('l_foot', **_SOLE), Contact('r_foot', **_SOLE), *CONTACTS[3:-1],
    Contact('r_hand', 'friction_cone', friction=0.5),
)  # fmt: skip
"""The same, with two soles and a hand that only push."""
ONE_IMU = ('root_link',)
SEVERAL_IMUS = (
    *('root_link', 'chest'),
    *(f'{side}_{link}' for link in ('upper_arm', 'forearm') for side in 'lr'),
    *(f'{side}_{link}' for link in ('upper_leg', 'lower_leg', 'foot') for side in 'lr'),
)
"""Twelve."""
_LIMBS = (
    # Joints from the first to the last link, and the FT sensor that ends the piece, if any.
    (('spine', 3, ''), ('neck', 3, '')),
    (('l_shoulder', 3, 'l_arm_ft'), ('l_arm', 4, '')),
    (('r_shoulder', 3, 'r_arm_ft'), ('r_arm', 4, '')),
    (('l_hip', 2, 'l_leg_ft'), ('l_leg', 4, 'l_foot_ft'), ('l_foot', 0, '')),
    (('r_hip', 2, 'r_leg_ft'), ('r_leg', 4, 'r_foot_ft'), ('r_foot', 0, '')),
)
_LIMIT = '<limit lower="-2" upper="2" effort="50" velocity="10"/>'
_READS = (
    '<force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction>'
    '</force_torque>'
)


def synthetic_urdf(scale: int) -> str:
    """Return a humanoid with six FT sensors and seven submodels, whatever its number of joints."""

    def link(name: str, mass: float) -> str:
        inertia = f'ixx="{0.004 * mass}" iyy="{0.004 * mass}" izz="{0.002 * mass}"'
        return (
            f'<link name="{name}"><inertial><origin xyz="0 0.01 0.02"/><mass value="{mass}"/>'
            f'<inertia {inertia} ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )

    def joint(name: str, parent: str, child: str, kind: str, more: str) -> str:
        ends = f'<parent link="{parent}"/><child link="{child}"/>'
        return f'<joint name="{name}_joint" type="{kind}">{ends}{more}</joint>'

    parts = [link('root', 5.0)]
    for limb in _LIMBS:
        parent = 'root'
        for piece, joints, sensor in limb:
            for k in range(joints * scale):
                child, axis = f'{piece}_{k}', ('1 0 0', '0 1 0', '0 0 1')[k % 3]
                more = f'<origin xyz="0 0.02 0.05" rpy="0.1 0 0.2"/><axis xyz="{axis}"/>{_LIMIT}'
                parts += [link(child, 1.0 / scale), joint(child, parent, child, 'revolute', more)]
                parent = child
            if sensor:
                child, more = f'{sensor}_link', '<origin xyz="0 0 0.05" rpy="0 0.3 0"/>'
                parts += [link(child, 0.3), joint(sensor, parent, child, 'fixed', more),
                          f'<sensor name="{sensor}" type="force_torque">'
                          f'<parent joint="{sensor}_joint"/>{_READS}</sensor>']  # fmt: skip
                parent = child
    return f'<robot name="synthetic">{"".join(parts)}</robot>'


def random_sample(robot: Robot, rng: np.random.Generator) -> Sample:
    """Return a moving state with readings of a usual size."""
    n, n_imus, n_fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
    upright = np.array([0.0, 0.0, 9.81])
    readings: Array = rng.normal(size=(n_fts, 6)) * np.array([50.0] * 3 + [5.0] * 3)
    return Sample(
        stamp_ns=0,
        positions=rng.uniform(-1.0, 1.0, n),
        velocities=rng.normal(0.0, 1.0, n),
        accelerations=rng.normal(0.0, 5.0, n),
        angular_velocities=rng.normal(0.0, 0.5, (n_imus, 3)),
        proper_accelerations=rng.normal(0.0, 1.0, (n_imus, 3)) + upright,
        angular_accelerations=rng.normal(0.0, 2.0, (n_imus, 3)),
        ft_readings=readings,
    )
