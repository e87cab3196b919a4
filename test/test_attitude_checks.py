# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Orientations of Imu messages of a bag in a replay.

Not covered: the residuals themselves (test_sensor_residuals.py).
"""

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import IMU, STORE, imu, write_bag
from replays import MS, SETTINGS, START, codes, humanoid_messages, replay_bag
from robots import nested_humanoid_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.orientations import OrientationTrack
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.sensor_models import SensorModels

INTERPOLATED = 0.03
"""Degrees: messages 10 ms apart, turns that accelerate with up to 40 rad/s^2 between two IMUs."""
EXACT = 1e-6
"""Degrees, at the stamps of messages: single differences of angles in double precision."""
IMUS = ('head', 'thigh')
CYCLES = 120
NS = 1_000_000_000


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS | {'imus': list(IMUS)})


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


def imu_bytes(stamp_ns, frame, quaternion, variance=0.0, little_endian=True):
    """Return an Imu message with an orientation; a variance of -1 declares it absent."""
    message = STORE.deserialize_cdr(imu(stamp_ns, frame, np.zeros(3), [0.1, 0.2, 9.8]), IMU)
    message.orientation = STORE.types['geometry_msgs/msg/Quaternion'](*map(float, quaternion))
    covariance = np.diag(np.full(3, float(variance))).reshape(9)
    message.orientation_covariance = covariance
    # Values that never change would count as frozen.
    message.linear_acceleration.x = 1e-9 * (stamp_ns - START)
    return bytes(STORE.serialize_cdr(message, IMU, little_endian=little_endian))


def truth(robot, ms):
    """Return ref_R_S of all IMUs at a time of `humanoid_messages`, as quaternions."""
    n = len(robot.joint_names)
    pose = np.eye(4)
    pose[:3, :3] = Rotation.from_rotvec(
        [np.sin(4e-3 * ms), 0.5 * np.cos(3e-3 * ms), 2e-3 * ms]
    ).as_matrix()
    positions = np.sin(1e-3 * ms * np.arange(1.0, n + 1.0))
    state = FreeFloating(robot).state(positions, np.zeros(n), pose)
    equations = state.equations('', Representation.LEFT)
    models = SensorModels(state, equations, np.zeros(6 + n))
    references = Rotation.random(len(robot.imus), random_state=5).as_matrix()
    return [
        Rotation.from_matrix(models.orientation(one, ref_R_A)).as_quat()
        for one, ref_R_A in zip(robot.imus, references, strict=True)
    ]


def write(folder, robot, every_ms=5, shift_ms=0, change=None, offset_ms=0, **message):
    """Write a bag in which all IMUs report orientations; ``change(k, ms, quaternion)``."""
    messages = [m for m in humanoid_messages(robot, CYCLES) if m[1] != IMU]
    for ms in range(shift_ms, 5 * CYCLES, every_ms):
        for k, quaternion in enumerate(truth(robot, ms)):
            stamp = START + ms * MS
            given = quaternion if change is None else change(k, ms, quaternion)
            data = imu_bytes(stamp + offset_ms * MS, IMUS[k], given, **message)
            messages.append((f'/imu/{IMUS[k]}', IMU, stamp, data))
    return write_bag(folder / 'bag', sorted(messages, key=lambda m: m[2]))


def report_of(bag, settings):
    report = replay_bag(bag, nested_humanoid_urdf(), settings)
    found = [r for r in report.checks.sensor_residuals if r.quantity == 'orientation']
    return report, {r.sensor: r for r in found}


def turned(k, ms, quaternion):
    """Return what the second IMU reports with axes that are wrong by a quarter turn."""
    wrong = Rotation.from_quat(quaternion) * Rotation.from_euler('z', 90, degrees=True)
    return wrong.as_quat() if k == 1 else quaternion


def test_orientations_that_agree_leave_nothing(tmp_path, robot, settings):
    _, found = report_of(write(tmp_path, robot), settings)
    assert set(found) == set(IMUS)
    for residual in found.values():
        assert (residual.kind, residual.unit) == ('imu', 'deg')
        assert residual.n_instants == CYCLES
        assert residual.largest < EXACT
        assert residual.rms_reading > 20.0
        assert not residual.doubtful


def test_wrong_axes_are_a_warning(tmp_path, robot, settings):
    report, found = report_of(write(tmp_path, robot, change=turned), settings)
    assert all(residual.doubtful for residual in found.values())
    assert {('sensor_residual', 'head'), ('sensor_residual', 'thigh')} <= codes(report)


def test_the_time_offset_of_an_imu_counts(tmp_path, robot):
    settings = EstimatorSettings.from_dict(
        SETTINGS
        | {'imus': list(IMUS), 'imu.head.time_offset': 0.02, 'imu.thigh.time_offset': 0.02}
    )
    bag = write(tmp_path, robot, offset_ms=-20)
    _, found = report_of(bag, settings)
    assert max(residual.largest for residual in found.values()) < EXACT


@pytest.mark.parametrize(
    ('quaternion', 'variance'),
    [((0, 0, 0, 1), 0.0), ((0, 0, 0, 0), 0.0), ((0, 0.6, 0, 0.8), -1.0), ((0, 0, 0, 0.5), 0.0)],
    ids=['never filled in', 'zero', 'declared absent', 'no rotation'],
)
def test_invalid_orientations_are_ignored(quaternion, variance, tmp_path, robot, settings):
    bag = write(tmp_path, robot, change=lambda *_: quaternion, variance=variance)
    assert open_log(bag, robot, settings).orientations == ()
    assert report_of(bag, settings)[1] == {}


def test_gaps_are_left_out(tmp_path, robot, settings):
    """No reading within ``max_age`` on one side: the instants between have no residual."""
    gap = range(200, 400)
    bag = write(tmp_path, robot, change=lambda k, ms, q: np.zeros(4) if k and ms in gap else q)
    _, found = report_of(bag, settings)
    # From 195 ms to 400 ms is more than twice 50 ms: only what lies on a message is known.
    assert found['thigh'].n_instants == CYCLES - len(gap) // 5
    assert found['thigh'].largest < EXACT


# ---- Decoding and interpolation ----------------------------------------------------------------


def test_orientations_between_messages_are_interpolated():
    """Also where the signs of the quaternions differ, which mean the same."""
    rotations = Rotation.from_rotvec([[0, 0, 0], [0, 0, 0.4], [0, 0, 0.4]])
    quaternions = rotations.as_quat() * [[1], [-1], [1]]
    stamps = np.array([0, 10, 200])
    track = OrientationTrack('head', stamps, quaternions, 0.0, 50)
    found = track.at(np.array([-1, 0, 4, 10, 70, 200, 201]))
    angles = Rotation.from_matrix(found[[1, 2, 3, 5]]).as_rotvec()[:, 2]
    np.testing.assert_allclose(angles, [0.0, 0.16, 0.4, 0.4], rtol=0, atol=1e-12)
    assert np.isnan(found[[0, 4, 6]]).all()
