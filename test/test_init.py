# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""First settings of robots by their URDFs and logs."""

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation import EstimatorSettings, WrenchEstimator
from inertial_estimation.calibration.configured_estimator import build_contacts
from inertial_estimation.cli import main
from inertial_estimation.cli.first_columns import first_columns
from inertial_estimation.cli.first_settings import first_settings
from inertial_estimation.errors import CallError, LogError, NameNotFound
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

DATA = SHARED / 'data'
ARM = """<robot name="arm">
  <link name="world"/><link name="upper"/><link name="lower"/><link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="world"/><child link="upper"/>
    <limit lower="-3" upper="3" velocity="2" effort="100"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="lower"/>
    <limit lower="-3" upper="3" velocity="2" effort="100"/></joint>
  <joint name="flange" type="fixed"><parent link="lower"/><child link="tool"/></joint>
</robot>"""


def written(urdf, tmp_path, *arguments):
    """Return the settings file that the command writes."""
    (tmp_path / 'robot.urdf').write_text(urdf)
    out = tmp_path / 'robot.yaml'
    call = ['init', '--robot', str(tmp_path / 'robot.urdf'), '--out', str(out), *arguments]
    assert main(call) == 0
    return out


@pytest.mark.parametrize(
    ('name', 'fts', 'joints'),
    [('icub_v2_5', 6, 32), ('icub_genova01', 6, 32), ('ergocub_sn001', 8, 57),
     ('panda_wrist_ft', 1, 8)],
)  # fmt: skip
def test_a_urdf_alone_gives_settings_of_all_joints_and_ft_sensors(name, fts, joints, tmp_path):
    path = DATA / 'models' / f'{name}.urdf'
    if not path.exists():
        pytest.skip(f'there is no {path.name}')
    urdf = path.read_text()
    settings = EstimatorSettings.from_yaml(written(urdf, tmp_path))
    robot = build_robot(settings, urdf)
    assert (len(robot.ft_sensors), len(robot.joint_names)) == (fts, joints)
    contacts = build_contacts(settings)
    assert {robot.submodel_of(one.frame) for one in contacts} == {*range(len(robot.submodels))}
    WrenchEstimator(robot, contacts)


def test_humanoid_without_imu_stands_on_its_left_foot(tmp_path):
    bag = DATA / 'icub_yoga_left' / 'bag'
    if not bag.exists():
        pytest.skip('there is no log of the real iCub')
    urdf = (DATA / 'models' / 'icub_v2_5.urdf').read_text()
    found = first_settings(urdf, bag)
    settings = EstimatorSettings.from_yaml(written(urdf, tmp_path, '--bag', str(bag)))
    assert settings.fixed_link == settings.contacts[0] == 'l_sole'
    # By hand: 13.07 s to 65.64 s; it looks at samples 0.1 s apart.
    np.testing.assert_allclose(found.part, [13.07, 65.64], atol=1.0)
    assert settings.joint_states.velocity_source == 'filter'
    assert len(settings.joint_states.assumed) == 14
    assert {settings.ft_of(name).topic for name in settings.ft_sensors} == {
        f'/icub/ft/{side}_{limb}_ft_sensor' for side in 'lr' for limb in ('arm', 'leg', 'foot')
    }
    log = open_log(bag, build_robot(settings, urdf), settings)
    assert np.isfinite(log.samples.ft_readings[log.times > 1.0]).mean() > 0.9


@pytest.mark.parametrize('factor', [1.0, 180.0 / np.pi], ids=['radians', 'degrees'])
def test_columns_of_a_table_are_found_with_their_units(factor, tmp_path):
    t = np.linspace(0.0, 20.0, 2001)
    q = np.column_stack([2.5 * np.sin(t), 2.0 * np.sin(1.3 * t)])
    v = np.column_stack([2.5 * np.cos(t), 2.6 * np.cos(1.3 * t)])
    table = np.column_stack([1e3 * t, factor * q[:, ::-1], factor * v, np.cos(q)])
    names = 'time,q_elbow,q_shoulder,dq_1,dq_2,tau_1,tau_2,temperature'
    table = np.column_stack([table, 20.0 + t])
    np.savetxt(tmp_path / 'log.csv', table, header=names, delimiter=',', comments='')
    out = written(ARM, tmp_path, '--log', str(tmp_path / 'log.csv'))
    settings = IdentifySettings.from_yaml(out)
    robot = settings.build_robot(ARM)
    log = open_log(tmp_path / 'log.csv', robot, layout=settings.log)
    assert robot.joint_names == ('shoulder', 'elbow')
    # Of 1 ms steps, as text of six digits or more.
    np.testing.assert_allclose(log.samples.positions, q, atol=1e-6)
    np.testing.assert_allclose(np.diff(log.samples.stamp_ns), 10_000_000, atol=10)


def test_what_cannot_be_decided_is_refused(tmp_path):
    np.savez(tmp_path / 'log.npz', t=np.arange(20.0), motor=np.zeros((20, 2)))
    with pytest.raises(LogError) as error:
        first_columns(ARM, tmp_path / 'log.npz')
    assert 'motor' in str(error.value)
    t = 0.01 * np.arange(20.0)
    np.savez(tmp_path / 'log.npz', t=t, q=np.sin(t)[:, None], tau=np.cos(t)[:, None])
    with pytest.raises(CallError):
        first_columns(ARM, tmp_path / 'log.npz')
    found = first_columns(ARM, tmp_path / 'log.npz', ['elbow'])
    assert found.given['log.joints'] == ['elbow']
    with pytest.raises(NameNotFound):
        first_columns(ARM, tmp_path / 'log.npz', ['wrist'])
    np.savez(tmp_path / 'log.npz', t=t, q=np.sin(t)[:, None], tau=np.cos(t[3:])[:, None])
    with pytest.raises(LogError):
        first_columns(ARM, tmp_path / 'log.npz', ['elbow'])
    # Joints that rest show no unit of their velocities.
    rest = np.zeros((20, 2))
    np.savez(tmp_path / 'log.npz', t=t, q=rest, v=rest, tau=rest)
    assert 'log.velocities.unit' not in first_columns(ARM, tmp_path / 'log.npz').given


def test_an_arm_without_sensors_is_at_rest_at_its_base():
    found = first_settings(ARM)
    assert found.settings.fixed_link == 'world'
    assert len(Robot.from_urdf(ARM, fixed_link='world').submodels) == 1
    assert found.settings.contacts == ('world',)
