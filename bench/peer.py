# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One step of iDynTree's estimator from Python, as its users write it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample

MOTION = 'proper_accelerations', 'angular_velocities', 'angular_accelerations'


class PeerStep:
    """IDynTree on a robot with one IMU and one full wrench at each of some frames."""

    def __init__(self, robot: Robot, frames: Sequence[str]) -> None:
        self._lib = lib = import_module('idyntree.bindings')
        loader = lib.ModelLoader()
        if not loader.loadModelFromString(robot.urdf):
            raise ModelError(f"iDynTree does not read the URDF of robot '{robot.name}'")
        self._estimator = lib.ExtWrenchesAndJointTorquesEstimator()
        self._estimator.setModelAndSensors(loader.model(), loader.sensors())
        self._model = model = self._estimator.model()
        self.columns: list[int] = [
            model.getJoint(model.getJointIndex(name)).getDOFsOffset() for name in robot.joint_names
        ]
        """Where each of the robot's joints stands in iDynTree's order."""
        self._imu = model.getFrameIndex(robot.imus[0].frame)
        self._frames = [model.getFrameIndex(frame) for frame in frames]
        self._links = [model.getFrameLink(frame) for frame in self._frames]
        kinds = lib.JointPosDoubleArray, *[lib.JointDOFsDoubleArray] * 2
        self._joints = [kind(model) for kind in kinds]
        self._motion = [lib.Vector3() for _ in range(3)]
        self._measurements = lib.SensorsMeasurements(self._estimator.sensors())
        self._contacts = lib.LinkUnknownWrenchContacts(model)
        self._wrenches = lib.LinkContactWrenches(model)
        self._torques = lib.JointDOFsDoubleArray(model)

    def step(self, sample: Sample) -> tuple[list[Array], Array]:
        """
        Estimate one instant the way the library's examples write it: value by value.

        Returns wrenches (6,) [N, Nm]; torques (n_joints,) [Nm].
        """
        rows = (sample.positions, sample.velocities, sample.accelerations)
        for values, target in zip(rows, self._joints):
            for column, value in zip(self.columns, values):
                target.setVal(column, float(value))
        for name, vector in zip(MOTION, self._motion):
            for k, value in enumerate(getattr(sample, name)[0]):
                vector.setVal(k, float(value))
        kind = self._lib.SIX_AXIS_FORCE_TORQUE
        for k, reading in enumerate(sample.ft_readings):
            wrench = self._lib.Wrench()
            for i in range(6):
                wrench.setVal(i, float(reading[i]))
            self._measurements.setMeasurement(kind, k, wrench)
        self._contacts.clear()
        for frame in self._frames:
            contact = self._lib.UnknownWrenchContact(
                self._lib.FULL_WRENCH, self._lib.Position(0.0, 0.0, 0.0)
            )
            self._contacts.addNewContactInFrame(self._model, frame, contact)
        self.call()
        wrenches = [
            self._wrenches.contactWrench(link, 0).contactWrench.toNumPy() for link in self._links
        ]
        return wrenches, self._torques.toNumPy()

    def call(self) -> None:
        """Call the two C++ functions on whatever the last step has set."""
        self._estimator.updateKinematicsFromFloatingBase(*self._joints, self._imu, *self._motion)
        self._estimator.estimateExtWrenchesAndJointTorques(
            self._contacts, self._measurements, self._wrenches, self._torques
        )
