# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets from the model are refused where two feet stand, though every number would look well.

The readings come from a robot on two feet under known wrenches, computed without the engine. Not
covered: the log of a real robot that shifts its weight, which is in test_replay.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, Motion

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.logs.log import Log
from inertial_estimation.logs.offsets import OffsetRequest, compute_offsets
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler

# Round-off of forces of about 1e3 N.
EXACT = 1e-8
SECOND = 1_000_000_000
WEIGHT = 9.81 * (2 * 1.0 + 2 * 4.0 + 20.0)
LIFTED = 0.4
OFFSETS = np.array([[3.0, -20.0, 45.0, 1.0, -0.4, 0.2], [-8.0, 12.0, -60.0, 0.3, 2.0, -0.7]])
CONTACTS = ['l_foot', 'r_foot', 'pelvis']


def two_feet_urdf():
    """Return a chain from a left foot over a pelvis to a right foot at the same height."""

    def link(name, mass):
        return (
            f'<link name="{name}"><inertial><mass value="{mass}"/><inertia ixx="0.01" iyy="0.01" '
            'izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
        )

    def joint(name, parent, child, xyz):
        kind = 'revolute' if name.endswith('hip') else 'fixed'
        return (
            f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="{xyz}"/><axis xyz="1 0 0"/>'
            '<limit lower="-1" upper="1" effort="9" velocity="9"/></joint>'
        )

    def sensor(name, at):
        return (
            f'<sensor name="{name}" type="force_torque"><parent joint="{at}"/><force_torque>'
            '<frame>child</frame><measure_direction>child_to_parent</measure_direction>'
            '</force_torque></sensor>'
        )

    return (
        '<robot name="two_feet">'
        + ''.join(link(f'{side}_foot', 1.0) + link(f'{side}_leg', 4.0) for side in 'lr')
        + link('pelvis', 20.0)
        + joint('l_ft_joint', 'l_foot', 'l_leg', '0 0 0.1')
        + joint('l_hip', 'l_leg', 'pelvis', '0 0 0.5')
        + joint('r_hip', 'pelvis', 'r_leg', '0 -0.2 0')
        + joint('r_ft_joint', 'r_leg', 'r_foot', '0 0 -0.6')
        + sensor('l_ft', 'l_ft_joint')
        + sensor('r_ft', 'r_ft_joint')
        + '</robot>'
    )


@pytest.fixture
def robot():
    return Robot.from_urdf(two_feet_urdf(), imus=[], fixed_link='l_foot')


def stand(robot, right_hip, pushes):
    """Return one still instant for each upward force at the right foot [N]."""
    source = ConsistentReadings(robot)
    hips = {'l_hip': 0.0, 'r_hip': right_hip}
    positions = np.array([hips[joint] for joint in robot.joint_names])
    still = Motion(positions, *np.zeros((2, 2)), np.zeros(3))
    samples = []
    for k, push in enumerate(pushes):
        sample, *_ = source.sample(still, {'r_foot': np.array([0.0, 0.0, push, 0.0, 0.0, 0.0])})
        readings = sample.ft_readings + OFFSETS
        samples.append(sample._replace(stamp_ns=(k + 1) * SECOND, ft_readings=readings))
    statistics = SampleAssembler(
        robot.joint_names, ('l_ft', 'r_ft'), (), EstimatorSettings()
    ).statistics()
    return Log(SampleBatch.stack(samples), SECOND, statistics)


def settings(**more):
    return EstimatorSettings.from_dict({'fixed_link': 'l_foot', 'contacts': CONTACTS, **more})


def test_one_foot_in_the_air_gives_the_offsets_without_doubt(robot):
    recording = stand(robot, LIFTED, [0.0] * 4)
    found = compute_offsets(OffsetRequest('model'), recording, robot, settings())
    np.testing.assert_allclose(found.calibration.offsets, OFFSETS, atol=EXACT)
    assert found.findings == ()


def test_two_feet_that_stand_still_are_refused(robot):
    recording = stand(robot, 0.0, [WEIGHT / 2] * 4)
    with pytest.raises(LogError):
        compute_offsets(OffsetRequest('model'), recording, robot, settings())


def test_a_named_support_is_believed_but_the_doubt_is_told(robot):
    recording = stand(robot, 0.0, [WEIGHT / 2] * 4)
    request = OffsetRequest('model', support='l_foot')
    found = compute_offsets(request, recording, robot, settings())
    # What the other foot carries goes into the offsets, and the fit shows nothing of it.
    assert np.abs(found.calibration.offsets - OFFSETS).max() > 0.4 * WEIGHT
    np.testing.assert_allclose(found.model.deviations, 0.0, atol=EXACT)
    (one,) = found.findings
    assert (one.subject, one.code, one.values['share']) == ('r_foot', 'second_support', 1.0)


def test_a_force_that_comes_and_goes_is_refused_wherever_it_is(robot):
    recording = stand(robot, LIFTED, [0.0, 0.3 * WEIGHT] * 2)
    with pytest.raises(LogError):
        compute_offsets(OffsetRequest('model'), recording, robot, settings())
    slight = stand(robot, LIFTED, [0.0, 0.1 * WEIGHT] * 2)
    found = compute_offsets(OffsetRequest('model'), slight, robot, settings())
    assert found.findings == ()


def test_feet_that_stand_now_and_then_are_no_reason(robot):
    lifted, level = (stand(robot, hip, [0.0] * 4).samples for hip in (LIFTED, 0.0))
    positions = np.concatenate([lifted.positions[:3], level.positions[:1]])
    readings = np.concatenate([lifted.ft_readings[:3], level.ft_readings[:1]])
    samples = replace(lifted, positions=positions, ft_readings=readings)
    recording = replace(stand(robot, 0.0, [0.0]), samples=samples)
    assert not compute_offsets(OffsetRequest('model'), recording, robot, settings()).findings


def test_an_imu_tells_which_way_is_up(robot):
    floating = Robot.from_urdf(two_feet_urdf(), imus=['pelvis'])
    given = settings(fixed_link='', imus=['pelvis'])
    request = OffsetRequest('model', support='l_foot')
    # On a slope of 30 degrees the feet are no longer level.
    for tilt, doubtful in ((0.0, True), (np.pi / 6, False)):
        recording = stand(robot, 0.0, [0.0] * 4)
        up = 9.81 * np.array([[[0.0, np.sin(tilt), np.cos(tilt)]]] * 4)
        samples = replace(
            recording.samples,
            angular_velocities=0.0 * up,
            proper_accelerations=up,
            angular_accelerations=0.0 * up,
        )
        found = compute_offsets(request, replace(recording, samples=samples), floating, given)
        assert bool(found.findings) == doubtful


def test_a_contact_whose_height_is_unknown_is_not_level(robot):
    recording = stand(robot, 0.0, [0.0] * 4)
    positions = recording.samples.positions.copy()
    positions[:3, robot.joint_names.index('r_hip')] = np.nan
    recording = replace(recording, samples=replace(recording.samples, positions=positions))
    (one,) = compute_offsets(
        OffsetRequest('model', support='l_foot'), recording, robot, settings()
    ).findings
    assert one.values['share'] == 1.0, 'of the one pose that is known'
