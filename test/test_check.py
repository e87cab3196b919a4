# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``check``."""

import json

import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.cli import main
from inertial_estimation.cli.robot_check import check_urdf
from inertial_estimation.estimation.contacts import Contact


def codes(check):
    return [(one.code, one.subject) for one in check['findings']]


def test_records_name_sensors_submodels_and_clusters():
    check = check_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    found = json.loads(json.dumps(check, allow_nan=False))
    sensors = {row['sensor']: row for row in found['ft_sensors']}
    assert sensors['foot_sensor']['reads'] == 'shank on foot'
    assert sensors['leg_sensor']['xyz_m'] == [0.01, -0.02, 0.03]
    assert sensors['leg_sensor']['rpy_rad'] == [0.4, 0.1, -2.0]
    submodels = {row['submodel']: row for row in found['submodels']}
    assert submodels['thigh']['mass_kg'] == 4.5
    assert submodels['thigh']['sensors_beyond'] == ['foot_sensor']
    assert submodels['root']['sensor_towards_root'] is None
    clusters = {row['source']: row['serves'] for row in found['clusters']}
    # They have no IMU of their own, and the foot's is near.
    assert clusters['foot'] == ['thigh', 'shank', 'foot']
    assert 'hip' in clusters['head']
    assert check['findings'] == []


def test_parts_that_cannot_be_used_are_reported():
    hidden = '<gazebo reference="{}"><sensor name="other" type="force_torque"/></gazebo>'
    urdf = (
        arm_with_wrist_sensor_urdf()
        .replace('<frame>child</frame>', '<frame>parent</frame>')
        .replace('<axis xyz="0 1 0"/>', '<axis xyz="0 1 0"/><mimic joint="shoulder"/>')
        .replace('<mass value="2.0"/>', '<mass value="-2.0"/>')
    )
    # The wrist has its tag outside as well.
    for joint, found in ('elbow', True), ('wrist_sensor_joint', False):
        check = check_urdf(urdf.replace('</robot>', f'{hidden.format(joint)}</robot>'))
        assert ('inertia', 'upper') in codes(check)
        assert (('suboptimal', 'other') in codes(check)) == found
        refusals = ' '.join(check['refusals'])
        assert all(name in refusals for name in ("'wrist_sensor'", "'elbow'"))


def test_contacts_give_the_dependence():
    contacts = [Contact(name) for name in ('chest', 'upper_arm', 'thigh', 'foot')]
    check = check_urdf(nested_humanoid_urdf(), imus=['head'], contacts=contacts)
    rows = {row['name']: row for row in check['torque_dependence']}
    assert rows['knee']['fts'] == ('foot_sensor',)
    assert set(rows['knee']['joints']) == {'waist', 'neck', 'hip_joint', 'knee'}
    assert rows['elbow']['fts'] == ()
    wrenches = [row['name'] for row in check['wrench_dependence']]
    assert wrenches == ['chest', 'upper_arm', 'thigh', 'foot']
    assert ('uninformed', 'upper_arm') in codes(check)
    without = check_urdf(nested_humanoid_urdf(), imus=['head'])
    lost = check_urdf(nested_humanoid_urdf(), imus=[], contacts=[Contact('foot')])
    assert all('torque_dependence' not in one for one in (without, lost))


@pytest.mark.parametrize(
    ('given', 'name'),
    [
        ({}, ''),
        ({'imus': ['heda']}, "'heda'"),
        ({'imus': ['head'], 'contacts': ['foott']}, "'foott'"),
        ({'imus': ['head'], 'imu.head.measures': 'accelerometer'}, 'gyroscope'),
        (
            {'imus': ['sole'], 'imu.sole': {'frame': 'hand', 'pose': [0.1, 0.0, 0.0] * 2}},
            'imu.sole.frame_id',
        ),
        ({'imus': ['head'], 'ft_sensors': ['knee_ft']}, "'knee_ft'"),
        ({'imus': ['head'], 'joints': ['kne']}, "'kne'"),
    ],
)
def test_settings_that_the_node_refuses_fail(given, name, tmp_path, capsys):
    urdf, config = tmp_path / 'robot.urdf', tmp_path / 'robot.yaml'
    urdf.write_text(nested_humanoid_urdf())
    config.write_text(json.dumps({'/**': {'ros__parameters': given}}))
    assert main(['check', str(urdf), '--config', str(config)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('inertial-estimation check: ') and name in line
