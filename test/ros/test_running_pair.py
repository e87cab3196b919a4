# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Estimator and identifier side by side: torques depend on the identified base parameters only.

T Theorem 7.3: torques are predictable from base parameters (T 7.19). Not covered: their errors
(`test_identifier_node.py`), refused updates (`test_model_updates.py`).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import LATCHED, BenchRobot
from rclpy.lifecycle import TransitionCallbackReturn
from robots import nested_humanoid_urdf
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from test_identifier_node import motion

from bench.live_robots import wrong_robot
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.ros import estimator_node
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    from_message,
    offsets_from_message,
)
from inertial_estimation.signals.assembler import SampleAssembler

TORQUES = 'wrench_estimator/joint_torques'
SECONDS, AFTER = 8.0, 10
"""Length of the motion [s], of which the last samples are compared."""
UNCHANGED = 1e-10
"""Round-off of torques over the largest: parameters with the same base parameters may be large."""
SEEN = 1e-3
"""A change that is no round-off, over the largest."""


def test_torques_depend_on_identified_base_parameters_only(context, keep, rng, monkeypatch):
    truth = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')
    urdf = export_urdf(truth, wrong_robot(truth, np.random.default_rng(3), 0.1).parameters)
    given = {'robot_description': urdf, 'fixed_link': 'root'}
    monkeypatch.setattr(estimator_node, 'BLEND_TIME', 0.0)
    own = given | {'contacts': ['root', 'hand', 'thigh', 'sole']}
    settings = EstimatorSettings.from_dict(own)
    robot, names = build_robot(settings, urdf), truth.joint_names
    samples = motion(truth, SECONDS)
    bench = keep(BenchRobot(context, own))
    beside = keep(BenchRobot(context, given, IdentifierNode))
    for topic in (TOPIC, OFFSETS_TOPIC):
        bench.listen(Float64MultiArray, topic, LATCHED)
    bench.listen(JointState, TORQUES)
    for k in range(len(samples)):
        sample = samples[k]
        if k == len(samples) - AFTER:
            assert beside.estimator.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
            bench.spin_until(lambda: bench.heard[TOPIC])
            bench.spin_for(0.1)
        for sensor, reading in zip(robot.ft_sensors, sample.ft_readings):
            bench.send_ft(sensor.name, sample.stamp_ns, reading)
        # Readings are there before the joint states that they belong to.
        bench.spin_briefly(len(robot.ft_sensors))
        bench.send_joints(
            sample.stamp_ns, names, position=sample.positions, velocity=sample.velocities
        )
        bench.wait_for_stamp(bench.heard[TORQUES], sample.stamp_ns)
        beside.spin_briefly(5)
    parameters = from_message(robot, bench.heard[TOPIC][-1])
    *_, offsets = offsets_from_message(robot, bench.heard[OFFSETS_TOPIC][-1])
    torques = np.array([message.effort for message in bench.heard[TORQUES][-AFTER:]])

    def predicted(others):
        """Return the torques by the library."""
        assembler, found = SampleAssembler(robot, settings), []
        estimator = build_estimator(settings, robot.with_parameters(others))
        estimator.set_calibration(estimator.calibration.with_offsets(offsets))
        for k in range(len(samples)):
            sample = samples[k]
            for sensor, reading in enumerate(sample.ft_readings):
                assembler.push_ft(sensor, sample.stamp_ns, reading)
            values = sample.positions, sample.velocities, np.empty(0)
            found.append(assembler.push_joints(0, sample.stamp_ns, names, *values))
        return np.array([estimator.update(sample).torques for sample in found[-AFTER:]])

    def change(others):
        """Return the change of torques by other parameters, over the largest torque."""
        return np.abs(predicted(others) - torques).max() / np.abs(torques).max()

    assert change(parameters) < UNCHANGED
    assert change(robot.parameters) > SEEN
    others = parameters.copy()
    for submodel in robot.submodels:
        links = list(submodel.links)
        base = BaseParameters.of_null_space(null_space(robot, submodel))
        values = base.of(parameters[links].ravel())
        others[links] = base.standard(values, rng.normal(size=10 * len(links))).reshape(-1, 10)
        moved = parameters.copy()
        moved[links] += 0.1 * base.basis().sum(axis=1).reshape(-1, 10)
        # Beyond its sensor the foot has no joint.
        assert change(moved) < UNCHANGED if submodel.name == 'foot' else change(moved) > SEEN
    # They are not even consistent.
    assert consistency_margin(others).min() < 0.0
    assert change(others) < UNCHANGED
