# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The file of a robot's FT calibration: what is written is read, and nothing else is taken."""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation.calibration.active_calibration import ActiveCalibration
from inertial_estimation.calibration.calibration_file import (
    Provenance,
    SensorCalibration,
    read,
    stack_calibrations,
    to_text,
    write,
)
from inertial_estimation.calibration.configured_estimator import build_calibration, build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

STEP = Provenance(
    'offsets from the model, one support: sole', '2026-11-22T10:00:00+00:00', 1200, 31.5,
    (0.1, 0.2, 0.3, 0.01, 0.02, 0.03), ('the split between the legs is not unique',),
)  # fmt: skip


def some_sensor(seed=0):
    rng = np.random.default_rng(seed)
    return SensorCalibration(
        rng.normal(size=(6, 6)), rng.normal(size=6), rng.normal(size=6), 25.125, (STEP,)
    )


def same(one, other):
    return (
        np.array_equal(one.matrix, other.matrix)
        and np.array_equal(one.offset, other.offset)
        and np.array_equal(one.temperature_coefficients, other.temperature_coefficients)
        and one.reference_temperature == other.reference_temperature
        and one.provenance == other.provenance
    )


def test_every_digit_and_every_word_comes_back(tmp_path):
    path = tmp_path / 'icub.yaml'
    sensors = {'left': some_sensor(1), 'right': some_sensor(2)}
    write(path, 'icub', sensors)
    robot, found = read(path)
    assert robot == 'icub' and list(found) == ['left', 'right']
    assert all(same(found[name], sensors[name]) for name in sensors)


def test_a_sensor_that_is_calibrated_again_leaves_the_others(tmp_path):
    path = tmp_path / 'icub.yaml'
    write(path, 'icub', {'left': some_sensor(1), 'right': some_sensor(2)})
    write(path, 'icub', {'left': some_sensor(3)})
    _, found = read(path)
    assert same(found['left'], some_sensor(3)) and same(found['right'], some_sensor(2))


def test_the_file_of_another_robot_is_not_written_into(tmp_path):
    path = tmp_path / 'icub.yaml'
    write(path, 'icub', {'left': some_sensor(1)})
    before = path.read_text()
    with pytest.raises(ConfigError):
        write(path, 'ergocub', {'left': some_sensor(2)})
    assert path.read_text() == before


@pytest.mark.parametrize(
    ('line', 'other', 'complaint'),
    [
        ('version: 1', 'version: 7', 'version 7, expected 1'),
        ('ft_calibration', 'ft_calibrations', "it has no 'ft_calibration'"),
        ('    offset:', '    offsett:', "'offsett' is not known"),
        ('reference_temperature: 25.125', 'reference_temperature: warm', 'expected numbers'),
        ('    reference_temperature: 25.125', '    reference_temperature: .nan', 'not finite'),
        ('method', 'methood', 'expected method and date'),
        (
            '    offset:',
            '    axes: imu\n      offset:',
            "'axes' is 'imu', expected sensor or accel",
        ),
    ],
)
def test_what_nobody_knows_is_refused_with_its_name(tmp_path, line, other, complaint):
    path = tmp_path / 'icub.yaml'
    text = to_text('icub', {'left': some_sensor(1)})
    changed = (
        text.replace(line, other, 1) if line != 'ft_calibration' else text.replace(line, other)
    )
    assert changed != text
    path.write_text(changed)
    with pytest.raises(ConfigError):
        read(path)


def test_what_the_file_does_not_say_has_its_default(tmp_path):
    path = tmp_path / 'arm.yaml'
    path.write_text(
        'ft_calibration: {version: 1, robot: arm, sensors: {wrist: {offset: [1, 2, 3, 4, 5, 6]}}}'
    )
    _, found = read(path)
    assert np.array_equal(found['wrist'].matrix, np.eye(6))
    assert np.array_equal(found['wrist'].offset, [1, 2, 3, 4, 5, 6])
    assert found['wrist'].provenance == ()


def test_calibrations_are_applied_as_the_file_says():
    sensor = some_sensor(4)
    raw, temperature = np.arange(6.0), 31.0
    expected = (
        sensor.matrix @ raw
        + sensor.temperature_coefficients * (temperature - sensor.reference_temperature)
        - sensor.offset
    )
    found = stack_calibrations([sensor]).apply(raw[None], np.array([temperature]))
    # Sums of products of ten numbers of size ten, in another order.
    np.testing.assert_allclose(found[0], expected, atol=1e-13)
    blind = stack_calibrations([replace(sensor, temperature_coefficients=np.zeros(6))])
    np.testing.assert_allclose(
        blind.apply(raw[None])[0], sensor.matrix @ raw - sensor.offset, atol=1e-13
    )


ARM = 'arm_with_wrist_sensor'


def arm_settings(path, **given):
    return EstimatorSettings.from_dict(
        {'fixed_link': 'base', 'contacts': ['tip'], 'calibration_file': str(path), **given}
    )


def test_settings_take_the_calibration_from_the_file(tmp_path):
    path = tmp_path / 'arm.yaml'
    write(path, ARM, {'wrist_sensor': some_sensor(5), 'not_in_use': some_sensor(6)})
    settings = arm_settings(path)
    found = build_calibration(settings, build_robot(settings, arm_with_wrist_sensor_urdf()))
    assert np.array_equal(found.matrices, some_sensor(5).matrix[None])
    assert np.array_equal(found.offsets, some_sensor(5).offset[None])
    assert found.is_thermal


def test_two_places_that_say_the_offset_of_one_sensor_are_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    write(path, ARM, {'wrist_sensor': some_sensor(5)})
    settings = arm_settings(path, **{'ft.wrist_sensor.offset': [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]})
    robot = build_robot(settings, arm_with_wrist_sensor_urdf())
    with pytest.raises(ConfigError):
        build_calibration(settings, robot)


def test_a_matrix_that_does_not_tell_six_axes_apart_is_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    matrix = np.eye(6)
    matrix[4] = matrix[3]
    write(path, ARM, {'wrist_sensor': SensorCalibration(matrix)})
    settings = arm_settings(path)
    robot = build_robot(settings, arm_with_wrist_sensor_urdf())
    with pytest.raises(ConfigError):
        build_calibration(settings, robot)


def test_wrenches_in_other_axes_than_the_sensors_are_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    write(path, ARM, {'wrist_sensor': SensorCalibration(axes='accelerometer')})
    assert '    axes: accelerometer\n' in path.read_text()
    assert read(path)[1]['wrist_sensor'].axes == 'accelerometer'
    settings = arm_settings(path)
    robot = build_robot(settings, arm_with_wrist_sensor_urdf())
    with pytest.raises(ConfigError):
        build_calibration(settings, robot)
    in_use = ActiveCalibration(robot, {'wrist_sensor': SensorCalibration()}, [])
    with pytest.raises(ConfigError):
        in_use.restore(*read(path))
    assert in_use.sensors['wrist_sensor'].axes == 'sensor'


def test_a_file_that_robots_can_use_stays_one(tmp_path):
    path = tmp_path / 'icub.yaml'
    turned = replace(some_sensor(1), axes='accelerometer')
    write(path, 'icub', {'left': some_sensor(1), 'right': some_sensor(2)})
    before = path.read_text()
    for name in ('left', 'hand'):
        with pytest.raises(ConfigError):
            write(path, 'icub', {name: turned})
    assert path.read_text() == before and 'axes' not in before
    other = tmp_path / 'turned.yaml'
    write(other, 'icub', {'left': turned})
    write(other, 'icub', {'right': turned})
    with pytest.raises(ConfigError):
        write(other, 'icub', {'left': some_sensor(1)})
    write(other, 'icub', {'left': some_sensor(1), 'right': some_sensor(2)})
    assert {one.axes for one in read(other)[1].values()} == {'sensor'}


def test_the_file_of_another_robot_is_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    write(path, 'leg', {'wrist_sensor': some_sensor(5)})
    settings = arm_settings(path)
    robot = build_robot(settings, arm_with_wrist_sensor_urdf())
    with pytest.raises(ConfigError):
        build_calibration(settings, robot)


@pytest.mark.parametrize('changed', ['matrix', 'temperature_coefficients'])
def test_offsets_that_belong_to_another_matrix_are_not_written(tmp_path, changed):
    path, one = tmp_path / 'icub.yaml', some_sensor(1)
    write(path, 'icub', {'left': one})
    before = path.read_text()
    other = replace(one, **{changed: 2.0 * getattr(one, changed)})
    with pytest.raises(ConfigError):
        write(path, 'icub', {'left': other}, keeps_slopes=True)
    assert path.read_text() == before
    write(path, 'icub', {'left': replace(one, offset=np.ones(6))}, keeps_slopes=True)
    assert np.array_equal(read(path)[1]['left'].offset, np.ones(6))


def humanoid(calibration=None):
    settings = EstimatorSettings.from_dict({'imus': ['chest'], 'contacts': ['sole', 'hand']})
    robot = build_robot(settings, nested_humanoid_urdf())
    return robot, build_estimator(settings, robot, calibration)


def warm(robot, sensor=1):
    """Return a calibration in which one sensor follows its temperature."""
    plain = FtCalibration.identity(len(robot.ft_sensors))
    coefficients = np.zeros((len(robot.ft_sensors), 6))
    coefficients[sensor] = [0.5, -0.2, 1.0, 0.01, 0.02, -0.03]
    references = np.full(len(robot.ft_sensors), 25.0)
    return FtCalibration(plain.matrices, plain.offsets, coefficients, references)


def test_a_warm_sensor_with_its_temperature_is_as_a_cold_one():
    robot, cold = humanoid()
    calibration = warm(robot)
    _, estimator = humanoid(calibration)
    sample = random_sample(robot, np.random.default_rng(0))
    drift = 7.0 * calibration.temperature_coefficients
    warmed = sample._replace(
        ft_readings=sample.ft_readings - drift, ft_temperatures=np.array([np.nan, 32.0, np.nan])
    )
    expected, found = cold.update(sample), estimator.update(warmed)
    assert found.used_fts.all()
    # Readings of 50 N, changed and changed back.
    np.testing.assert_allclose(found.torques, expected.torques, atol=1e-11)
    np.testing.assert_allclose(found.wrenches, expected.wrenches, atol=1e-11)


@pytest.mark.parametrize('temperatures', [None, [25.0, np.nan, 25.0]])
def test_without_its_temperature_a_sensor_is_as_one_that_failed(temperatures):
    robot, cold = humanoid()
    _, estimator = humanoid(warm(robot))
    sample = random_sample(robot, np.random.default_rng(1))
    lost = sample.ft_readings.copy()
    lost[1] = np.nan
    given = None if temperatures is None else np.array(temperatures)
    expected = cold.update(sample._replace(ft_readings=lost))
    asked = sample._replace(ft_temperatures=given)
    found = estimator.update(asked)
    assert list(found.used_fts) == [True, False, True]
    np.testing.assert_array_equal(found.torques, expected.torques)
    np.testing.assert_array_equal(found.wrenches, expected.wrenches)
    batch = SampleBatch.stack([asked, asked])
    np.testing.assert_allclose(
        estimator.batch(batch).torques[1], found.torques, rtol=1e-12, atol=1e-12
    )
    through = InternalWrenches(estimator).of(asked, found, ['waist', 'knee'])
    waist = InternalWrenches(cold).of(
        sample._replace(ft_readings=lost), expected, ['waist', 'knee']
    )
    np.testing.assert_array_equal(through, waist)


def test_who_saves_what_is_in_use_loses_no_matrix_in_other_axes(tmp_path):
    path = tmp_path / 'robot.yaml'
    write(path, 'robot', {'foot': SensorCalibration(axes='accelerometer')})
    before = path.read_bytes()
    with pytest.raises(ConfigError):
        write(path, 'robot', {'foot': SensorCalibration()}, keeps_axes=True)
    assert path.read_bytes() == before
    # One that is calibrated anew is another matter.
    write(path, 'robot', {'foot': SensorCalibration()})
