# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Temperatures of FT sensors: into samples, from bags and tables, through the preparation of rows.

The node is in `ros/test_calibration_updates.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from bag_messages import (
    IMU,
    JOINT_STATE,
    TEMPERATURE,
    WRENCH,
    imu,
    joint_state,
    temperature,
    wrench,
    write_bag,
)
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import NameNotFound
from inertial_estimation.logs.layout import Layout
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.assembler import SampleAssembler

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND
SENSORS = ('arm_sensor', 'leg_sensor', 'foot_sensor')
SETTINGS = {
    'imus': ['head'],
    'ft_sensors': list(SENSORS),
    'contacts': ['sole', 'hand', 'thigh', 'root'],
    'joint_states.acceleration_source': 'zero',
    'angular_acceleration_source': 'zero',
    'ft.leg_sensor.temperature_topic': 'leg/temperature',
}
LEG = SENSORS.index('leg_sensor')


@pytest.fixture
def assembler():
    settings = EstimatorSettings.from_dict(SETTINGS)
    return SampleAssembler(build_robot(settings, nested_humanoid_urdf()), settings)


def sample_at(assembler, stamp_ns):
    """Return the sample of a joint state."""
    return assembler.push_joints(0, stamp_ns, ('knee',), np.zeros(1), np.zeros(1), np.zeros(0))


def test_the_newest_temperature_is_held_until_it_is_too_old(assembler):
    assert np.isnan(sample_at(assembler, START).ft_temperatures).all()
    for after, celsius in ((1, 20.0), (2, 21.0)):
        assembler.push_temperature(LEG, START + after * SECOND, celsius)
    # Of a sensor without a topic nobody asks.
    assembler.push_temperature(0, START + SECOND, 50.0)
    for tenths, celsius in ((5, np.nan), (10, 20.0), (19, 20.0), (20, 21.0), (620, 21.0)):
        found = sample_at(assembler, START + tenths * SECOND // 10).ft_temperatures
        np.testing.assert_array_equal(found, [np.nan, celsius, np.nan])
    assert np.isnan(sample_at(assembler, START + 62 * SECOND + 1).ft_temperatures[LEG])
    counted = assembler.statistics().temperatures['leg_sensor']
    assert (counted.received, counted.used) == (2, 4)


def messages(robot, rng, *, with_temperature=True):
    """Yield ten cycles, the temperature at every other one."""
    joints = list(robot.joint_names)
    for k in range(10):
        stamp = START + k * SECOND // 100
        if with_temperature and k % 2:
            data = temperature(stamp, 'anywhere', 20.0 + k)
            yield '/leg/temperature', TEMPERATURE, stamp, data
        for name in SENSORS:
            yield f'/ft/{name}', WRENCH, stamp, wrench(stamp, name, rng.normal(size=6))
        data = imu(stamp, 'head', rng.normal(size=3), rng.normal(size=3))
        yield '/imu/head', IMU, stamp, data
        data = joint_state(stamp, joints, rng.normal(size=len(joints)), np.zeros(len(joints)))
        yield '/joint_states', JOINT_STATE, stamp, data


def test_bags_have_them_and_estimates_use_them(tmp_path, rng):
    path = tmp_path / 'calibration.yaml'
    thermal = SensorCalibration(temperature_coefficients=np.arange(6.0), reference_temperature=20)
    settings = EstimatorSettings.from_dict(SETTINGS | {'calibration_file': str(path)})
    robot = build_robot(settings, nested_humanoid_urdf())
    write(path, robot.name, {'leg_sensor': thermal})
    bag = write_bag(tmp_path / 'bag', messages(robot, rng))
    samples = open_log(bag, robot, settings).samples
    expected = np.full((10, 3), np.nan)
    expected[1:, LEG] = 20.0 + np.array([1, 1, 3, 3, 5, 5, 7, 7, 9])
    np.testing.assert_array_equal(samples.ft_temperatures, expected)
    estimator = build_estimator(settings, robot)
    found = estimator.batch(samples)
    # Before the first one the sensor counts as missing: its submodels are one.
    assert np.isnan(found.wrenches[0]).any() and np.isfinite(found.wrenches[1:]).all()
    warmth = np.nan_to_num(expected[:, LEG, None] - 20.0)
    by_hand = samples.ft_readings.copy()
    by_hand[:, LEG] += warmth * np.arange(6.0)
    by_hand[0, LEG] = np.nan
    plain = build_estimator(replace(settings, calibration_file=''), robot)
    same = plain.batch(replace(samples, ft_readings=by_hand, ft_temperatures=None))
    np.testing.assert_allclose(found.wrenches, same.wrenches, rtol=1e-12, atol=1e-12)


def test_a_bag_without_the_topic_is_refused_only_if_it_is_needed(tmp_path, rng):
    path = tmp_path / 'calibration.yaml'
    settings = EstimatorSettings.from_dict(SETTINGS | {'calibration_file': str(path)})
    robot = build_robot(settings, nested_humanoid_urdf())
    write(path, robot.name, {'leg_sensor': SensorCalibration()})
    bag = write_bag(tmp_path / 'bag', messages(robot, rng, with_temperature=False))
    assert np.isnan(open_log(bag, robot, settings).samples.ft_temperatures).all()
    write(path, robot.name, {'leg_sensor': SensorCalibration(temperature_coefficients=np.ones(6))})
    with pytest.raises(NameNotFound):
        open_log(bag, robot, settings)


def test_tables_have_them(tmp_path):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    path = tmp_path / 'log.npz'
    np.savez(path, t=np.arange(5.0), q=np.zeros(5), warm=np.arange(20.0, 25.0))
    said = {'time': 't', 'joints': ['knee'], 'positions': 'q'}
    assert Layout.read(said).samples(path, robot).ft_temperatures is None
    said['temperatures'] = {'leg_sensor': {'columns': 'warm', 'unit': 'degC', 'offset': 1.0}}
    found = Layout.read(said).samples(path, robot).ft_temperatures
    leg = [ft.name for ft in robot.ft_sensors].index('leg_sensor')
    np.testing.assert_array_equal(found[:, leg], np.arange(21.0, 26.0))
    assert np.isnan(np.delete(found, leg, axis=1)).all()
