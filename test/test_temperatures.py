# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Temperatures of FT sensors in samples and bags.

Coefficients are in `test_affine.py`, the node is in `ros/test_model_updates.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from bag_messages import TEMPERATURE, temperature, write_bag
from replays import MS, SETTINGS, START, humanoid_messages
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import NameNotFound
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.signals.assembler import SampleAssembler

SECOND = 1_000_000_000
SENSORS = SETTINGS['ft_sensors']
GIVEN = {
    'imus': ['head'],
    'ft_sensors': SENSORS,
    'contacts': SETTINGS['contacts'],
    'joint_states.acceleration_source': 'zero',
    'angular_acceleration_source': 'zero',
    'ft.leg_sensor.frame_id': 'leg_frame',
    'ft.leg_sensor.temperature_topic': 'leg/temperature',
}
LEG = SENSORS.index('leg_sensor')


@pytest.fixture
def assembler():
    settings = EstimatorSettings.from_dict(GIVEN)
    return SampleAssembler(build_robot(settings, nested_humanoid_urdf()), settings)


def sample_at(assembler, stamp_ns):
    """Return the sample of a joint state."""
    return assembler.push_joints(0, stamp_ns, ('knee',), np.zeros(1), np.zeros(1), np.zeros(0))


def test_the_newest_temperature_is_held_until_it_is_too_old(assembler):
    assert np.isnan(sample_at(assembler, START).ft_temperatures).all()
    for after, celsius in ((1, 20.0), (2, 21.0)):
        assembler.push_temperature(LEG, START + after * SECOND, celsius)
    # A sensor without a topic.
    assembler.push_temperature(0, START + SECOND, 50.0)
    for tenths, celsius in ((5, np.nan), (10, 20.0), (19, 20.0), (20, 21.0), (620, 21.0)):
        found = sample_at(assembler, START + tenths * SECOND // 10).ft_temperatures
        np.testing.assert_array_equal(found, [np.nan, celsius, np.nan])
    assert np.isnan(sample_at(assembler, START + 62 * SECOND + 1).ft_temperatures[LEG])
    counted = assembler.statistics().temperatures['leg_sensor']
    assert (counted.received, counted.used) == (2, 4)


def test_bags_have_them_and_estimates_use_them(tmp_path):
    path = tmp_path / 'calibration.yaml'
    settings = EstimatorSettings.from_dict(GIVEN | {'calibration_file': str(path)})
    robot = build_robot(settings, nested_humanoid_urdf())
    sensor = SensorCalibration(temperature_coefficients=np.arange(6.0), reference_temperature=20)
    write(path, robot.name, {'leg_sensor': sensor})
    cold = humanoid_messages(robot, 10)
    warm = [
        ('/leg/temperature', TEMPERATURE, stamp, temperature(stamp, 'anywhere', 20.0 + k))
        for k, stamp in ((k, START + 5 * k * MS) for k in range(1, 10, 2))
    ]
    bag = write_bag(tmp_path / 'bag', sorted([*cold, *warm], key=lambda message: message[2]))
    samples = open_log(bag, robot, settings).samples
    expected = np.full((10, 3), np.nan)
    expected[1:, LEG] = 20.0 + np.array([1, 1, 3, 3, 5, 5, 7, 7, 9])
    np.testing.assert_array_equal(samples.ft_temperatures, expected)
    found = build_estimator(settings, robot).batch(samples)
    # Before the first temperature the sensor counts as missing, which merges its submodels.
    assert np.isnan(found.wrenches[0]).any() and np.isfinite(found.wrenches[1:]).all()
    by_hand = samples.ft_readings.copy()
    by_hand[:, LEG] += (expected[:, LEG, None] - 20.0) * np.arange(6.0)
    plain = build_estimator(replace(settings, calibration_file=''), robot)
    same = plain.batch(replace(samples, ft_readings=by_hand, ft_temperatures=None))
    np.testing.assert_allclose(found.wrenches, same.wrenches, rtol=1e-12, atol=1e-12)
    # A bag without the topic is refused if a sensor needs it.
    bag = write_bag(tmp_path / 'cold', cold)
    with pytest.raises(NameNotFound):
        open_log(bag, robot, settings)
    write(path, robot.name, {'leg_sensor': SensorCalibration()})
    assert np.isnan(open_log(bag, robot, settings).samples.ft_temperatures).all()
