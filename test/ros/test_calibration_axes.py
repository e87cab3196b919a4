# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whose axes a matrix from ``calibrate live`` is in, from topics to the running estimator.

Not covered: a rotation that is told on the command line, in `test_calibration_session`.
"""

import numpy as np
import pinocchio as pin
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, JOINTS
from hanging_body import MATRIX, OFFSET
from rclpy.executors import SingleThreadedExecutor
from session_bench import (
    ACCELEROMETER,
    READINGS,
    RPY,
    SENSOR,
    TILTED,
    WORKSHOP,
    Body,
    SessionBench,
    end_call,
    lead_through,
    stated,
)
from test_body_readings import humanoid

from inertial_estimation.calibration.calibration_file import read
from inertial_estimation.errors import ConfigError
from inertial_estimation.ros.calibration_session import SessionNode
from inertial_estimation.ros.calibration_setup import plan_of, set_up
from inertial_estimation.ros.conversions import point_to_message

pytestmark = pytest.mark.live

TWO_TOPICS = '--readings', READINGS, '--imu', ACCELEROMETER
DOUBT = 6.0
"""Deviations by which the largest of 36 errors may be off."""
OFF = 2.0
"""Of an offset: what an error of the matrix makes of 60 N [N, Nm]."""


@pytest.fixture
def bench(context, tmp_path):
    """Return an estimator with a calibration file."""
    robot = SessionBench(context, tmp_path / 'robot.yaml')
    yield robot
    robot.close()


def test_without_a_rotation_the_file_says_so_and_no_estimator_takes_it(bench, rng, tmp_path):
    session, turned = tmp_path / 's.json', tmp_path / 'turned.yaml'
    files = '--calibration', bench.path, '--session', session
    call = *TWO_TOPICS, *files
    ended = lead_through(
        bench, Body(rng, bench, TILTED), (*call, '--out', turned, *stated(rotation=TILTED))
    )
    assert ended.code == 0, ended.errors
    one = check_turned(turned, ended)
    assert ended.figures['estimator'] is None
    # Nor does it take the file from whoever puts it there.
    before = bench.path.read_text()
    bench.path.write_text(turned.read_text())
    answer = bench.restore()
    assert not answer.success
    np.testing.assert_array_equal(bench.matrix, WORKSHOP)
    # With the rotation the same readings tell the matrix in the sensor's axes.
    bench.path.write_text(before)
    ended = end_call(
        bench, (*call, '--out', bench.path, *stated(), '--imu-rpy', *RPY, '--restate')
    )
    assert ended.code == 0, ended.errors
    assert ended.figures['axes'] == 'sensor' and ended.figures['estimator']['taken_over']
    # The same equations in other axes, through a matrix of condition 200.
    np.testing.assert_allclose(
        bench.matrix, np.kron(np.eye(2), TILTED) @ one.matrix, rtol=1e-6, atol=1e-9
    )


def check_turned(path, ended):
    """Check a file with a matrix in the accelerometer's axes; return what it holds."""
    assert '    axes: accelerometer\n' in path.read_text()
    one = read(path)[1][SENSOR]
    assert one.axes == 'accelerometer' == ended.figures['axes']
    A_Xf_S = np.kron(np.eye(2), TILTED.T)
    deviations = np.array(ended.figures['deviations'])
    assert np.abs((one.matrix - A_Xf_S @ MATRIX) / deviations).max() < DOUBT
    # In the sensor's axes it is another one by far.
    assert np.abs((one.matrix - MATRIX) / deviations).max() > 10.0 * DOUBT
    np.testing.assert_allclose(one.offset, A_Xf_S @ OFFSET, atol=OFF)
    return one


JOB = {
    'sensor': SENSOR, 'config': None, 'calibration': None, 'robot_name': '', 'direction': 1,
    'ft_topic': READINGS, 'imu_topic': ACCELEROMETER, 'moments': 40, 'directions': 12,
    'spread': 0.1,
}  # fmt: skip
NONE, FAR, SIDE = ['nothing', 0.0, 0, 0, 0], ['far', 0.5, 0.3, 0, 0], ['side', 0.5, 0, 0.2, 0]


def test_what_would_shut_the_estimator_out_is_refused_before_anybody_turns_a_body(bench):
    node, executor = SessionNode(context=bench.node.context), SingleThreadedExecutor(
        context=bench.node.context
    )  # fmt: skip

    def plan(rotation, *loads):
        job = JOB | {'output': str(bench.path), 'rotation': rotation, 'loads': list(loads)}
        found = set_up(node, executor, job, lambda _: None)
        found.feed.destroy()
        return plan_of(job, found)

    try:
        with pytest.raises(ConfigError):
            plan(None, NONE, FAR, SIDE)
        assert plan(RPY, NONE, FAR, SIDE).wrench_axes == 'sensor'
        # An offset holds whatever the rotation is.
        assert plan(None, NONE).wrench_axes == 'sensor'
    finally:
        executor.shutdown()
        node.destroy_node()


class BodyOfRobot(Body):
    """What hangs below the foot of a robot, whose head tells gravity through the joints."""

    def __init__(self, rng, bench):
        super().__init__(rng, bench)
        self.robot = humanoid('head')
        self.model = pin.buildModelFromXML(self.robot.urdf)

    def is_heard(self):
        """Tell whether somebody takes the readings, besides the estimator."""
        return self.bench.node.count_subscribers(f'ft/{SENSOR}') > 1

    def head_R_sensor(self, positions):
        """Return the rotation of the sensor in the head's IMU, by Pinocchio."""
        model, data = self.model, self.model.createData()
        q = pin.neutral(model)
        for name, position in zip(self.robot.joint_names, positions, strict=True):
            q[model.joints[model.getJointId(name)].idx_q] = position
        pin.framesForwardKinematics(model, data, q)
        sensor = next(one for one in self.robot.ft_sensors if one.name == SENSOR)
        foot = model.getFrameId(self.robot.link_names[sensor.child])
        root_R_S = data.oMf[foot].rotation @ sensor.child_H_sensor[:3, :3]
        return data.oMf[model.getFrameId('head')].rotation.T @ root_R_S

    def publish(self, gravity, n, touched=False):
        """Publish a pose that is held, with the joints on the way anywhere."""
        positions = self.rng.uniform(-1.0, 1.0, len(JOINTS))
        head_R_S = self.head_R_sensor(positions)
        bench, contacts = self.bench, self.contacts
        # Upside down, as this sensor reads the wrench on the body: `parent_to_child`.
        for stamp, raw, a, w in self.readings(-gravity, n):
            bench.send_ft(SENSOR, stamp, raw)
            bench.send_imu('head', stamp, head_R_S @ w, head_R_S @ -a)
            if touched:
                contacts.publish(point_to_message(stamp, 'sole', (0, 0, 0)))
            bench.send_joints(stamp, self.robot.joint_names, position=positions)
        bench.spin_for(0.03)


def test_through_the_joints_it_is_in_the_axes_of_the_sensor(bench, rng, tmp_path):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    config = tmp_path / 'parameters.yaml'
    given = HUMANOID | {'calibration_file': str(bench.path)}
    config.write_text(yaml.safe_dump({'wrench_estimator': {'ros__parameters': given}}))
    ended = lead_through(bench, BodyOfRobot(rng, bench), ('--config', config, *stated()))
    assert ended.code == 0, ended.errors
    assert ended.figures['gravity'].startswith("IMU 'head' through ")
    assert ended.figures['axes'] == 'sensor'
    one = read(bench.path)[1][SENSOR]
    assert one.axes == 'sensor'
    errors = (one.matrix - MATRIX) / ended.figures['deviations']
    assert np.abs(errors).max() < DOUBT
    assert ended.figures['estimator']['taken_over'], ended.figures['estimator']
    np.testing.assert_array_equal(bench.matrix, one.matrix)
