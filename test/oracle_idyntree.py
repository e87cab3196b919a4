# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
iDynTree's estimator of external wrenches and joint torques, called in our conventions.

iDynTree gives every wrench at the contact point in the axes of its link, wants a known wrench
about the link's origin, and orders joints and sensors in its own way; all that is undone here.
Joints that the robot has locked stay at zero.
"""

from typing import NamedTuple

import numpy as np
import pytest

iDynTree = pytest.importorskip('idyntree.bindings', reason='iDynTree is the oracle')
FT = iDynTree.SIX_AXIS_FORCE_TORQUE
KINDS = {
    'wrench': iDynTree.FULL_WRENCH,
    'force': iDynTree.PURE_FORCE,
    'axial_force': iDynTree.PURE_FORCE_WITH_KNOWN_DIRECTION,
    'known': iDynTree.NO_UNKNOWNS,
}


class OracleEstimate(NamedTuple):
    """Wrenches (n_contacts, 6), in and about the contact frames, and torques (n_joints,)."""

    wrenches: np.ndarray
    torques: np.ndarray


class IDynTreeOracle:
    """A robot with one IMU or a fixed frame, and all the FT sensors of its URDF, in iDynTree."""

    def __init__(self, robot) -> None:
        self.robot = robot
        self._loader = iDynTree.ModelLoader()
        assert self._loader.loadModelFromString(robot.urdf)
        self.estimator = iDynTree.ExtWrenchesAndJointTorquesEstimator()
        self.estimator.setModelAndSensors(self._loader.model(), self._loader.sensors())
        self.model, sensors = self.estimator.model(), self.estimator.sensors()
        joints = [self.model.getJoint(self.model.getJointIndex(n)) for n in robot.joint_names]
        self._columns = [joint.getDOFsOffset() for joint in joints]
        ours = [sensor.name for sensor in robot.ft_sensors]
        n = sensors.getNrOfSensors(FT)
        self._ft_rows = [ours.index(sensors.getSensor(FT, k).getName()) for k in range(n)]

    def frame_in_link(self, name: str) -> np.ndarray:
        """Return the pose of a frame in the link that iDynTree counts it to, shape (4, 4) [m]."""
        H = self.model.getFrameTransform(self.model.getFrameIndex(name))
        return H.asHomogeneousTransform().toNumPy().copy()

    def estimate(self, sample, contacts) -> OracleEstimate:
        """Return what iDynTree makes of a sample; at least one contact in each submodel."""
        self._update_kinematics(sample)
        measurements = iDynTree.SensorsMeasurements(self.estimator.sensors())
        for k, row in enumerate(self._ft_rows):
            wrench = iDynTree.Wrench.FromPython(sample.ft_readings[row])
            assert measurements.setMeasurement(FT, k, wrench)
        unknowns = iDynTree.LinkUnknownWrenchContacts(self.model)
        places = [self._add(unknowns, contact) for contact in contacts]
        wrenches = iDynTree.LinkContactWrenches(self.model)
        torques = iDynTree.JointDOFsDoubleArray(self.model)
        assert self.estimator.estimateExtWrenchesAndJointTorques(
            unknowns, measurements, wrenches, torques
        )
        return OracleEstimate(
            np.array([self._read(wrenches, *place) for place in places]),
            torques.toNumPy().copy()[self._columns],
        )

    def _update_kinematics(self, sample) -> None:
        """Hand over the motion of the joints and of the IMU or the fixed frame."""
        values = np.zeros((3, self.model.getNrOfDOFs()))
        values[:, self._columns] = sample.positions, sample.velocities, sample.accelerations
        kinds = (iDynTree.JointPosDoubleArray, *[iDynTree.JointDOFsDoubleArray] * 2)
        joints = [kind.FromPython(row) for kind, row in zip(kinds, values)]
        vector = iDynTree.Vector3.FromPython
        if self.robot.fixed_frame:
            frame = self.model.getFrameIndex(self.robot.fixed_frame)
            gravity = vector(np.array(self.robot.gravity))
            assert self.estimator.updateKinematicsFromFixedBase(*joints, frame, gravity)
            return
        (imu,) = self.robot.imus
        assert self.estimator.updateKinematicsFromFloatingBase(
            *joints,
            self.model.getFrameIndex(imu.frame),
            vector(sample.proper_accelerations[0]),
            vector(sample.angular_velocities[0]),
            vector(sample.angular_accelerations[0]),
        )

    def _add(self, unknowns, contact) -> tuple[int, int, np.ndarray]:
        """Add a contact; return its link, its number there, and the pose of its frame in it."""
        link = self.model.getFrameLink(self.model.getFrameIndex(contact.frame))
        H, number = self.frame_in_link(contact.frame), unknowns.getNrOfContactsForLink(link)
        R, origin = H[:3, :3], H[:3, 3]
        point = np.zeros(3) if contact.kind == 'known' else origin + R @ contact.point
        force, moment = np.array(contact.wrench).reshape(2, 3) @ R.T
        known = iDynTree.Wrench.FromPython(np.array([*force, *(moment + np.cross(origin, force))]))
        direction = iDynTree.Direction(*(R @ contact.direction))
        translated = iDynTree.UnknownWrenchContact(
            KINDS[str(contact.kind)], iDynTree.Position(*point), direction, known
        )
        unknowns.addNewContactForLink(link, translated)
        return link, number, H

    def _read(self, wrenches, link: int, number: int, H: np.ndarray) -> np.ndarray:
        """Return a wrench in and about its contact frame."""
        found = wrenches.contactWrench(link, number)
        force, moment = np.split(found.contactWrench.toNumPy().copy(), 2)
        arm = found.contactPoint.toNumPy() - H[:3, 3]
        return np.concatenate([force @ H[:3, :3], (moment + np.cross(arm, force)) @ H[:3, :3]])
