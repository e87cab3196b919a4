# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the models of chapters 2 to 4 say to arguments of the wrong kind or shape.

Never an error of Python or NumPy alone; lists of numbers are as good as arrays, and names as good
as what they are of. Not covered: the estimator (test_arguments.py); NaN, which the models take for
a number and hand on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.errors import InertialEstimationError, NameNotFound, ShapeError
from inertial_estimation.model import inertia, momentum, rigid_body, spatial
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    convert_velocity,
    convert_wrench,
    gravity_acceleration,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels, accelerometer, gyroscope
from inertial_estimation.model.sensors import FtCalibration, FtSpec, LinkSensorSpec
from inertial_estimation.sample import SampleBatch

ROBOT = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
N = len(ROBOT.joint_names)
ZERO, POSE, FORM = np.zeros(N), np.eye(4), Representation.LEFT
MODEL = FreeFloating(ROBOT)
STATE = MODEL.state(np.linspace(-1.0, 1.0, N), np.linspace(0.5, 2.0, N))
EQUATIONS = STATE.equations()
SENSORS = SensorModels.floating(STATE, ZERO, {'foot': [0.0, 0.0, 200.0, 1.0, 2.0, 3.0]})
NO_NUMBERS = [None, 'abc', [[1.0], [1.0, 2.0]], {}]
Call = Callable[[Any], Any]

NUMBERS: list[tuple[Call, tuple[int, ...]]] = [
    (lambda x: MODEL.state(x, ZERO), (N,)),
    (lambda x: MODEL.state(ZERO, x), (N,)),
    (lambda x: MODEL.proper_dynamics(ZERO, ZERO, ZERO, x, np.zeros(6)), (3,)),
    (lambda x: SensorModels.floating(STATE, x), (N,)),
    (lambda x: SensorModels(STATE, EQUATIONS, x), (6 + N,)),
    (lambda x: SensorModels.floating(STATE, ZERO, {'foot': x}), (6,)),
    (lambda x: SENSORS.magnetometer('head', x), (3,)),
    (lambda x: SENSORS.orientation('head', x), (3, 3)),
    (lambda x: gyroscope(x, POSE), (3,)),
    (lambda x: gyroscope(np.zeros(3), x), (4, 4)),
    (lambda x: accelerometer(np.zeros(3), x, POSE), (6,)),
    (lambda x: convert_velocity(x, POSE, FORM, FORM), (6,)),
    (lambda x: convert_velocity(np.zeros(6), x, FORM, FORM), (4, 4)),
    (lambda x: convert_wrench(x, POSE, FORM, FORM), (6,)),
    (lambda x: convert_acceleration(np.zeros(6), x, POSE, FORM, FORM), (6,)),
    (lambda x: gravity_acceleration(POSE, x, FORM), (3,)),
    (lambda x: EQUATIONS.inverse_dynamics(x), (6 + N,)),
    (lambda x: EQUATIONS.acceleration_from(EQUATIONS, x), (6 + N,)),
    (lambda x: EQUATIONS.forces_from(EQUATIONS, x), (6 + N,)),
    (lambda x: EQUATIONS.change_base_rows(EQUATIONS.T[:6], x), (6, 6 + N)),
    (spatial.hat, (3,)),
    (spatial.inverse_pose, (4, 4)),
    (spatial.motion_transform, (4, 4)),
    (spatial.wrench_transform, (4, 4)),
    (spatial.motion_cross, (6,)),
    (spatial.wrench_cross, (6,)),
    (rigid_body.spatial_inertia, (10,)),
    (rigid_body.parameters_of, (6, 6)),
    (lambda x: rigid_body.net_wrench(np.zeros(10), np.zeros(3), x), (6,)),
    (lambda x: rigid_body.net_wrench(np.zeros(10), x, np.zeros(6)), (3,)),
    (lambda x: rigid_body.momentum(np.zeros(10), POSE, x, FORM), (6,)),
    (lambda x: rigid_body.coriolis_matrix(np.eye(6), x), (6,)),
    (inertia.pseudo_inertia, (10,)),
    (inertia.consistency_margin, (10,)),
    (inertia.inertia_complaint, (10,)),
    (lambda x: FtCalibration(x, np.zeros((2, 6))), (2, 6, 6)),
    (lambda x: FtCalibration(np.zeros((2, 6, 6)), x), (2, 6)),
    (lambda x: FtSpec('a', 'b', 'sensor', pose=x), (4, 4)),
    (lambda x: LinkSensorSpec('a', 'b', 'none' if x is None else x), (4, 4)),
    (lambda x: LinkSensorSpec('a', accelerometer_noise=x), ()),
    (lambda x: ROBOT.frames_at(0, x), (4, 4)),
    (ROBOT.with_parameters, (10, 10)),
]


@pytest.mark.parametrize(('call', 'shape'), NUMBERS)
def test_what_is_no_number_is_refused(call: Call, shape: tuple[int, ...]) -> None:
    for given in NO_NUMBERS:
        with pytest.raises(InertialEstimationError):
            call(given)


@pytest.mark.parametrize(('call', 'shape'), [(c, s) for c, s in NUMBERS if s])
def test_other_shapes_are_refused(call: Call, shape: tuple[int, ...]) -> None:
    wrong: tuple[Any, ...] = (0.0, np.zeros(shape[-1] + 1).tolist(), np.zeros((shape[-1] - 1, 2)))
    for given in wrong:
        with pytest.raises(InertialEstimationError):
            call(given)


LISTS = [
    (lambda x: MODEL.state(x, ZERO).pose('head'), np.linspace(-1.0, 1.0, N)),
    (spatial.motion_transform, STATE.pose('head')),
    (spatial.hat, np.arange(3.0)),
    (lambda x: gyroscope(np.arange(3.0), x), STATE.pose('head')),
    (rigid_body.spatial_inertia, ROBOT.parameters[0]),
    (lambda x: convert_velocity(x, STATE.pose('head'), 'left', 'mixed'), np.arange(6.0)),
    (lambda x: EQUATIONS.inverse_dynamics(x), np.arange(6.0 + N)),
]


@pytest.mark.parametrize(('call', 'given'), LISTS)
def test_lists_are_as_good_as_arrays(call: Call, given: np.ndarray) -> None:
    np.testing.assert_array_equal(call(given.tolist()), call(given))


@pytest.mark.parametrize('given', ['lft', None, 1])
def test_representations_are_named(given: Any) -> None:
    calls: list[Call] = [
        lambda x: convert_velocity(np.zeros(6), POSE, x, FORM),
        lambda x: convert_acceleration(np.zeros(6), np.zeros(6), POSE, FORM, x),
        lambda x: STATE.velocity('head', x),
        lambda x: STATE.equations('head', x),
        lambda x: STATE.jacobian('head', EQUATIONS, x),
    ]
    for call in calls:
        with pytest.raises(InertialEstimationError, match="'representation' is .*'left'"):
            call(given)
    any_form: Any = 'left'
    np.testing.assert_array_equal(STATE.velocity('head', any_form), STATE.velocity('head', FORM))


def test_sensors_are_taken_by_name() -> None:
    """All of them, and what the robot has is preferred to what is beside it."""
    (ft, *_), (imu, *_) = ROBOT.ft_sensors, ROBOT.imus
    np.testing.assert_array_equal(SENSORS.force_torque(ft.name), SENSORS.force_torque(ft))
    for read in (SENSORS.gyroscope, SENSORS.accelerometer, SENSORS.angular_accelerometer):
        np.testing.assert_array_equal(read(imu.name), read(imu))
    field = np.arange(3.0)
    by_name = SENSORS.magnetometer(imu.name, field)
    np.testing.assert_array_equal(by_name, SENSORS.magnetometer(imu, field))
    by_name = SENSORS.orientation(imu.name, np.eye(3))
    np.testing.assert_array_equal(by_name, SENSORS.orientation(imu, np.eye(3)))


def test_a_name_means_the_sensor_that_reads_so() -> None:
    """Where an accelerometer and a gyroscope elsewhere share a name, and with an IMU."""
    tags = ''.join(
        f'<sensor name="board" type="{kind}"><parent link="{link}"/></sensor>'
        for kind, link in (('accelerometer', 'hand'), ('gyroscope', 'shank'))
    )
    urdf = nested_humanoid_urdf().replace('</robot>', f'{tags}</robot>')
    robot = Robot.from_urdf(urdf, imus=[('board', 'head')])
    state = FreeFloating(robot).state(ZERO, np.linspace(0.5, 2.0, N))
    models = SensorModels.floating(state, ZERO)
    read = models.gyroscope('board')
    np.testing.assert_array_equal(read, models.gyroscope(robot.gyroscopes[0]))
    assert np.abs(read - models.gyroscope(robot.imus[0])).max() > 0.1
    read = models.accelerometer('board')
    np.testing.assert_array_equal(read, models.accelerometer(robot.accelerometers[0]))
    whole = models.orientation('board', np.eye(3))
    np.testing.assert_array_equal(whole, models.orientation(robot.imus[0], np.eye(3)))


@pytest.mark.parametrize('read', ['force_torque', 'gyroscope', 'accelerometer'])
@pytest.mark.parametrize('given', [0, None, 7.5, 'other kind'])
def test_what_is_no_sensor_is_refused(read: str, given: Any) -> None:
    if given == 'other kind':
        given = ROBOT.imus[0] if read == 'force_torque' else ROBOT.ft_sensors[0]
    with pytest.raises(InertialEstimationError, match=r"'sensor' is .*take one of robot\."):
        getattr(SENSORS, read)(given)
    with pytest.raises(NameNotFound, match="is named 'hed'"):
        getattr(SENSORS, read)('hed')


@pytest.mark.parametrize('given', [[1], 'foot', [np.zeros(6)], {'foott': np.zeros(6)}])
def test_wrenches_are_a_dict_by_frame(given: Any) -> None:
    for make in (
        lambda wrenches: SensorModels.floating(STATE, ZERO, wrenches),
        lambda wrenches: SensorModels(STATE, EQUATIONS, np.zeros(6 + N), wrenches),
    ):
        with pytest.raises(InertialEstimationError, match=r'wrenches|foott'):
            make(given)


@pytest.mark.parametrize('given', [None, 'x', ROBOT])
def test_states_and_variables_are_such(given: Any) -> None:
    calls: list[Call] = [
        lambda x: SensorModels(x, EQUATIONS, np.zeros(6 + N)),
        lambda x: SensorModels.floating(x, ZERO),
        lambda x: SensorModels(STATE, x, np.zeros(6 + N)),
        lambda x: EQUATIONS.velocity_map(x),
        lambda x: EQUATIONS.acceleration_from(x, ZERO),
        lambda x: FreeFloating(None if x is ROBOT else x),
        momentum.centroidal,
        momentum.average_equations,
        momentum.com_equations,
        lambda x: momentum.momentum_matrix(x, EQUATIONS),
        lambda x: momentum.momentum_matrix(STATE, x),
    ]
    for call in calls:
        with pytest.raises(InertialEstimationError, match='expected'):
            call(given)


@pytest.mark.parametrize('given', [[], None, 3, [1], [None]])
def test_batches_are_stacked_of_samples(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match='sample'):
        SampleBatch.stack(given)


def test_batches_are_stacked_of_samples_alike() -> None:
    sample = random_sample(ROBOT, np.random.default_rng(1))
    with pytest.raises(InertialEstimationError, match='expected a list of Sample'):
        SampleBatch.stack(sample)  # type: ignore[arg-type]
    with pytest.raises(ShapeError, match='that of the first sample'):
        SampleBatch.stack([sample, sample._replace(positions=np.zeros(2))])


@pytest.mark.parametrize('key', ['name', 'joint', 'frame'])
def test_texts_of_sensors_are_texts(key: str) -> None:
    texts: dict[str, Any] = {'name': 'a', 'joint': 'b', 'frame': 'sensor', key: ['c']}
    with pytest.raises(InertialEstimationError, match=f'{key} of an FT sensor'):
        FtSpec(**texts)
    if key != 'joint':
        texts = {'name': 'a', 'frame': 'b', key: ['c']}
        with pytest.raises(InertialEstimationError, match=f'{key} of a sensor'):
            LinkSensorSpec(**texts)


@pytest.mark.parametrize('given', [None, -1, 2.0, 'a'])
def test_calibrations_are_for_a_number_of_sensors(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match="'n_fts' is"):
        FtCalibration.identity(given)


@pytest.mark.parametrize('given', NO_NUMBERS)
def test_readings_are_numbers(given: Any) -> None:
    with pytest.raises(InertialEstimationError, match='raw is'):
        FtCalibration.identity(2).apply(given)
