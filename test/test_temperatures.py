# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Temperatures of FT sensors: in samples, bags and tables; coefficients of a synthetic sensor.

The node is in `ros/test_model_updates.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from bag_messages import TEMPERATURE, temperature, write_bag
from replays import MS, SETTINGS, START, humanoid_messages
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.temperature import fit_temperature
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError, NameNotFound, ShapeError
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


# Round-off of 100 N over a few kelvins.
EXACT = 1e-10
K = np.array([0.5, -0.2, 1.0, 0.01, 0.02, -0.03])
OFFSET = np.array([30.0, -80.0, 12.0, 1.5, -0.7, 0.3])
NOISE = np.repeat([0.15, 0.007], 3)


def warming(rng, settles=120.0):
    """Return times, temperatures, loads and readings of a sensor that is switched on."""
    times = np.arange(3000) * 0.2
    temperatures = 25.0 + 8.0 * (1.0 - np.exp(-times / settles))
    rates = rng.uniform(0.02, 0.2, 6)
    predicted = np.sin(6.283 * rates * times[:, None]) * np.repeat([20.0, 2.0], 3)
    wrenches = predicted + OFFSET - K * (temperatures[:, None] - 25.0)
    return times, temperatures, predicted, wrenches


def test_without_noise_coefficients_and_offset_are_exact(rng):
    times, temperatures, predicted, wrenches = warming(rng)
    for load in (predicted, 0.0 * predicted):
        fit = fit_temperature(
            wrenches - predicted + load, load, temperatures, times, reference=25.0
        )
        np.testing.assert_allclose(fit.coefficients, K, atol=EXACT)
        np.testing.assert_allclose(fit.offset, OFFSET, atol=100.0 * EXACT)
        assert fit.used.all() and fit.reference == 25.0


@pytest.mark.parametrize(('settles', 'lasting'), [(40.0, 1), (120.0, 50)])
def test_deviations_are_as_large_as_errors(rng, settles, lasting):
    """Also where the sensor warms up within the first of ten blocks."""
    ratios, offsets = [], []
    for _ in range(40):
        times, temperatures, predicted, wrenches = warming(rng, settles)
        slow = np.repeat(rng.normal(size=(3000 // lasting, 6)), lasting, axis=0) * NOISE
        fit = fit_temperature(wrenches + slow, predicted, temperatures, times, reference=25.0)
        ratios.append((fit.coefficients - K) / fit.deviations)
        offsets.append((fit.offset - OFFSET) / fit.offset_deviations)
    # 240 ratios; deviations of which some blocks hold most vary by a third.
    for found in (ratios, offsets):
        assert 0.7 < np.sqrt(np.mean(np.square(found))) < 1.6


def test_temperatures_that_determine_nothing_are_refused(rng):
    times, temperatures, predicted, wrenches = warming(rng)
    for error, given in (
        (LogError, 25.0 + 0.1 * (temperatures - 25.0)),
        (LogError, 25.0 + 0.2 * predicted[:, 2]),
        (LogError, 273.15 + temperatures),
        (ShapeError, temperatures[:-1]),
    ):
        with pytest.raises(error):
            fit_temperature(wrenches, predicted, given, times)
