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
from free_air import smooth_motion, with_readings
from rclpy.lifecycle import TransitionCallbackReturn
from robots import nested_humanoid_urdf
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.identifiable import null_space
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.identifier_outputs import SEPARATOR
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    from_message,
    offsets_from_message,
)
from inertial_estimation.signals.assembler import SampleAssembler

TORQUES = 'wrench_estimator/joint_torques'
BASE = 'parameter_identifier/base_parameters'
FREE = ('upper_arm', 'thigh', 'foot')
"""Submodels that nothing holds."""
SECONDS, AFTER = 8.0, 0.1
"""Of motion to learn from, and of what is compared [s]."""
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
NOISE = np.array([0.02, 0.02, 0.02, 0.001, 0.001, 0.001])
UNCHANGED = 1e-10
"""Round-off of torques over the largest: parameters with the same base parameters may be large."""
SEEN = 1e-3
"""A change that is no round-off, over the largest."""


class Pair(BenchRobot):
    """The estimator, the identifier beside it, and a robot that moves."""

    def __init__(self, context, parameters):
        alone = {'contacts': ['root', 'hand', 'thigh', 'sole'], 'model.blend_time': 0.0}
        super().__init__(context, parameters | alone)
        learns = {'refit.min_determined': 3}
        self._beside = BenchRobot(context, parameters | learns, IdentifierNode)
        self.identifier = self._beside.estimator
        self.settings = EstimatorSettings.from_dict(parameters | alone)
        self.robot = build_robot(self.settings, parameters['robot_description'])
        for topic in (TOPIC, OFFSETS_TOPIC, BASE):
            self.listen(Float64MultiArray, topic, LATCHED)
        self.listen(JointState, TORQUES)

    def play(self, samples):
        """Publish samples; return the torques that the estimator publishes."""
        self.heard[TORQUES].clear()
        for k in range(len(samples)):
            sample = samples[k]
            for sensor, reading in zip(self.robot.ft_sensors, sample.ft_readings):
                self.send_ft(sensor.name, sample.stamp_ns, reading)
            # Readings are there before the joint states that they belong to.
            self.spin_briefly(len(self.robot.ft_sensors))
            self.send_joints(
                sample.stamp_ns, self.robot.joint_names,
                position=sample.positions, velocity=sample.velocities,
            )  # fmt: skip
            self.wait_for_stamp(self.heard[TORQUES], sample.stamp_ns)
            self._beside.spin_briefly(5)
        return np.array([message.effort for message in self.heard[TORQUES]])

    def predicted(self, samples, parameters, offsets, n):
        """Return torques of the last samples by the library with these numbers."""
        assembler = SampleAssembler(self.robot, self.settings)
        estimator = build_estimator(self.settings, self.robot.with_parameters(parameters))
        estimator.set_calibration(estimator.calibration.with_offsets(offsets))
        found = []
        for k in range(len(samples)):
            sample = samples[k]
            for sensor, reading in enumerate(sample.ft_readings):
                assembler.push_ft(sensor, sample.stamp_ns, reading)
            made = assembler.push_joints(
                0, sample.stamp_ns, self.robot.joint_names, sample.positions,
                sample.velocities, np.empty(0),
            )  # fmt: skip
            if k >= len(samples) - n:
                found.append(estimator.update(made).torques)
        return np.array(found)

    def close(self):
        super().close()
        self._beside.close()


@pytest.fixture(scope='module')
def truth():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def urdf(truth):
    """Return a URDF whose parameters are off by a tenth in each whitened coordinate."""
    rng = np.random.default_rng(3)
    parameters, _ = widened(truth.link_names, truth.parameters)
    moves = 0.1 * rng.normal(size=(len(parameters), 10))
    return export_urdf(truth, parameters + np.einsum('lij,lj->li', whitening(parameters), moves))


@pytest.fixture
def ran(context, truth, urdf):
    """Return a pair that has run, its samples, the last torques, and parameters and offsets."""
    pair = Pair(context, {'robot_description': urdf, 'fixed_link': 'root'})
    samples = smooth_motion(truth, SECONDS + AFTER, swing=0.8)
    samples = with_readings(truth, samples, truth.parameters)
    noise = np.random.default_rng(0).normal(size=samples.ft_readings.shape)
    samples.ft_readings[:] += OFFSET + NOISE * noise
    last = round(len(samples) * AFTER / (SECONDS + AFTER))
    try:
        pair.play(samples.take(slice(None, -last)))
        assert pair.identifier.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
        pair.spin_until(lambda: pair.heard[TOPIC])
        pair.spin_for(0.1)
        published = pair.play(samples.take(slice(-last, None)))
        parameters = from_message(pair.robot, pair.heard[TOPIC][-1])
        *_, offsets = offsets_from_message(pair.robot, pair.heard[OFFSETS_TOPIC][-1])
        yield pair, samples, published, parameters, offsets
    finally:
        pair.close()


def test_torques_depend_on_identified_base_parameters_only(ran, rng):
    pair, samples, published, parameters, offsets = ran

    def change(others):
        """Return the change of torques by other parameters, over the largest torque."""
        torques = pair.predicted(samples, others, offsets, len(published))
        return np.abs(torques - published).max() / np.abs(published).max()

    assert change(parameters) < UNCHANGED
    assert change(pair.robot.parameters) > SEEN
    others = parameters.copy()
    for submodel in pair.robot.submodels:
        links = list(submodel.links)
        base = BaseParameters.of_null_space(null_space(pair.robot, submodel))
        values = base.of(parameters[links].ravel())
        others[links] = base.standard(values, rng.normal(size=10 * len(links))).reshape(-1, 10)
        if submodel.name in FREE:
            moved = parameters.copy()
            moved[links] += 0.1 * base.basis().sum(axis=1).reshape(-1, 10)
            # Beyond its sensor the foot has no joint.
            assert change(moved) < UNCHANGED if submodel.name == 'foot' else change(moved) > SEEN
    # They are not even consistent.
    assert consistency_margin(others).min() < 0.0
    assert change(others) < UNCHANGED


def test_published_base_parameters_are_sufficient(ran, rng):
    pair, samples, published, parameters, offsets = ran
    message = pair.heard[BASE][-1]
    labels = message.layout.dim[0].label.split(SEPARATOR)
    values = dict(zip(labels, np.reshape(message.data, (len(labels), -1))[:, 0]))
    sensors = tuple(sensor.name for sensor in pair.robot.ft_sensors)
    builder = EquationBuilder(pair.robot, EquationChoice(offsets=sensors))
    for block, base in zip(builder.blocks, builder.base_parameters(), strict=True):
        name, unknowns = block.submodel.name, block.unknowns
        if name in FREE:
            own = [values.pop(f'{name}: {one}') for one in base.combinations(unknowns.names)]
            x = base.standard(np.array(own), rng.normal(size=len(unknowns)))
            parameters[list(block.submodel.links)] = x[: unknowns.n_inertial].reshape(-1, 10)
    assert not values
    torques = pair.predicted(samples, parameters, offsets, len(published))
    assert np.abs(torques - published).max() < UNCHANGED * np.abs(published).max()
