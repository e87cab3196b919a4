# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The file of a robot's FT calibration: what is written is read, and applied by an estimator."""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.calibration.calibration_file import (
    ActiveCalibration,
    Provenance,
    SensorCalibration,
    read,
    write,
)
from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.configured_robot import build_robot

STEP = Provenance(
    'offsets from the model, one support: sole', '2026-11-22T10:00:00+00:00', 1200, 31.5,
    (0.1, 0.2, 0.3, 0.01, 0.02, 0.03), ('legs share the load',),
)  # fmt: skip
ARM = 'arm_with_wrist_sensor'
SINGULAR = np.eye(6)[[0, 1, 2, 3, 3, 5]]


def some_sensor(seed=0):
    rng = np.random.default_rng(seed)
    return SensorCalibration(
        rng.normal(size=(6, 6)), rng.normal(size=6), rng.normal(size=6), 25.125, (STEP,)
    )


def test_all_digits_are_read_back_and_other_sensors_stay(tmp_path):
    path = tmp_path / 'icub.yaml'
    write(path, 'icub', {'left': some_sensor(0), 'right': some_sensor(2)})
    write(path, 'icub', {'left': some_sensor(1)})
    robot, found = read(path)
    assert robot == 'icub' and list(found) == ['left', 'right']
    for k, one in enumerate(found.values(), 1):
        assert one.same_as(some_sensor(k)) and one.provenance == (STEP,)
    before = path.read_text()
    with pytest.raises(ConfigError):
        write(path, 'ergocub', {'left': some_sensor(2)})
    # An offset does not go beside another matrix.
    one = some_sensor(1)
    with pytest.raises(ConfigError):
        write(path, 'icub', {'left': replace(one, matrix=2.0 * one.matrix)}, keeps=('matrix',))
    assert path.read_text() == before
    write(path, 'icub', {'left': replace(one, offset=np.ones(6))}, keeps=('matrix',))
    np.testing.assert_array_equal(read(path)[1]['left'].offset, np.ones(6))
    for right, wrong in ('version: 1', 'version: 7'), ('temperature: 25.125', 'temperature: .nan'):
        path.write_text(before.replace(right, wrong, 1))
        with pytest.raises(ConfigError):
            read(path)
    path.write_text(
        'ft_calibration: {version: 1, robot: arm, sensors: {wrist: {offset: [1, 2, 3, 4, 5, 6], '
        'provenance: [{date: 2026-11-24}]}}}'
    )
    wrist = read(path)[1]['wrist']
    assert wrist.same_as(SensorCalibration(offset=np.arange(1.0, 7.0)))
    assert [step.date for step in wrist.provenance] == ['2026-11-24']


def arm(path, **given):
    """Return the calibration of an arm whose parameters name a file."""
    settings = EstimatorSettings.from_dict(
        {'fixed_link': 'base', 'contacts': ['tip'], 'calibration_file': str(path), **given}
    )
    return build_calibration(settings, build_robot(settings, arm_with_wrist_sensor_urdf()))


def test_unusable_calibrations_are_refused(tmp_path):
    path = tmp_path / 'arm.yaml'
    settings = EstimatorSettings.from_dict({'fixed_link': 'base', 'contacts': ['tip']})
    built = build_robot(settings, arm_with_wrist_sensor_urdf())
    for robot, sensor in ('leg', some_sensor(5)), (ARM, SensorCalibration(SINGULAR)):
        path.unlink(missing_ok=True)
        write(path, robot, {'wrist_sensor': sensor})
        with pytest.raises(ConfigError):
            arm(path)
        active = ActiveCalibration(built, {'wrist_sensor': SensorCalibration()}, [])
        with pytest.raises(ConfigError):
            active.restore(str(path), *read(path))
        assert active.sensors['wrist_sensor'].same_as(SensorCalibration())
    path.unlink()
    write(path, ARM, {'wrst_sensor': some_sensor(5)})
    with pytest.raises(NameNotFound) as error:
        arm(path)
    assert error.value.name == 'wrst_sensor'
    write(path, ARM, {'wrist_sensor': some_sensor(5), 'not_in_use': some_sensor(6)})
    found = arm(path)
    np.testing.assert_array_equal(found.matrices[0], some_sensor(5).matrix)
    np.testing.assert_array_equal(found.offsets[0], some_sensor(5).offset)
    with pytest.raises(ConfigError):
        arm(path, **{'ft.wrist_sensor.offset': [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]})
    # A file is found beside the parameters that name it.
    node = tmp_path / 'node.yaml'
    node.write_text('/**: {ros__parameters: {fixed_link: base, calibration_file: arm.yaml}}')
    assert EstimatorSettings.from_yaml(node).calibration_file == str(path)
