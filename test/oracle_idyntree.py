# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
iDynTree's estimator of external wrenches and joint torques, called in our conventions.

iDynTree gives every wrench at the contact point in the axes of its link, wants a known wrench
about the link's origin, and orders joints and sensors in its own way; all that is undone here.
Joints that the robot has locked stay at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample

iDynTree = pytest.importorskip('idyntree.bindings', reason='iDynTree is the oracle')


class OracleEstimate(NamedTuple):
    """Wrenches (n_contacts, 6), in and about the contact frames, and torques (n_joints,)."""

    wrenches: np.ndarray
    torques: np.ndarray


class IDynTreeOracle:
    """
    One robot in iDynTree.

    Parameters
    ----------
    robot : Robot
        With one IMU, or with a fixed frame. The FT sensors must be all those of the URDF.

    """

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._loader = iDynTree.ModelLoader()
        if not self._loader.loadModelFromString(robot.urdf):
            raise ValueError(f"iDynTree does not read the URDF of '{robot.name}'")
        self.estimator = iDynTree.ExtWrenchesAndJointTorquesEstimator()
        self.estimator.setModelAndSensors(self._loader.model(), self._loader.sensors())
        self.model = self.estimator.model()
        self._columns = [
            self.model.getJoint(self.model.getJointIndex(name)).getDOFsOffset()
            for name in robot.joint_names
        ]
        sensors = self.estimator.sensors()
        self._ft_type = iDynTree.SIX_AXIS_FORCE_TORQUE
        self.ft_names = [
            sensors.getSensor(self._ft_type, k).getName()
            for k in range(sensors.getNrOfSensors(self._ft_type))
        ]
        ours = [sensor.name for sensor in robot.ft_sensors]
        self._ft_rows = [ours.index(name) for name in self.ft_names]

    def has_frame(self, name: str) -> bool:
        """Tell whether iDynTree knows a frame."""
        return bool(self.model.isFrameNameUsed(name))

    def frame_in_link(self, name: str) -> np.ndarray:
        """Return the pose of a frame in the link that iDynTree counts it to, shape (4, 4) [m]."""
        H = self.model.getFrameTransform(self.model.getFrameIndex(name))
        return H.asHomogeneousTransform().toNumPy().copy()

    def estimate(self, sample: Sample, contacts: Sequence[Contact]) -> OracleEstimate:
        """Return what iDynTree makes of a sample; at least one contact in each submodel."""
        self._update_kinematics(sample)
        measurements = iDynTree.SensorsMeasurements(self.estimator.sensors())
        for k, row in enumerate(self._ft_rows):
            wrench = iDynTree.Wrench.FromPython(sample.ft_readings[row])
            assert measurements.setMeasurement(self._ft_type, k, wrench)
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

    def _update_kinematics(self, sample: Sample) -> None:
        """Hand over the motion of the joints and of the IMU or the fixed frame."""
        values = np.zeros((3, self.model.getNrOfDOFs()))
        values[:, self._columns] = sample.positions, sample.velocities, sample.accelerations
        kinds = (
            iDynTree.JointPosDoubleArray,
            *[iDynTree.JointDOFsDoubleArray] * 2,
        )
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

    def _add(self, unknowns: object, contact: Contact) -> tuple[int, int, np.ndarray]:
        """Add a contact; return its link, its number there, and the pose of its frame in it."""
        link = self.model.getFrameLink(self.model.getFrameIndex(contact.frame))
        L_H_C = self.frame_in_link(contact.frame)
        number = unknowns.getNrOfContactsForLink(link)
        unknowns.addNewContactForLink(link, _translated(contact, L_H_C))
        return link, number, L_H_C

    def _read(self, wrenches: object, link: int, number: int, L_H_C: np.ndarray) -> np.ndarray:
        """Return a wrench in and about its contact frame."""
        found = wrenches.contactWrench(link, number)
        force, moment = np.split(found.contactWrench.toNumPy().copy(), 2)
        arm = found.contactPoint.toNumPy() - L_H_C[:3, 3]
        L_R_C = L_H_C[:3, :3]
        return np.concatenate([force @ L_R_C, (moment + np.cross(arm, force)) @ L_R_C])


def _translated(contact: Contact, L_H_C: np.ndarray) -> object:
    """Return a contact of ours as iDynTree's, in link coordinates."""
    L_R_C, origin = L_H_C[:3, :3], L_H_C[:3, 3]
    kinds = {
        'wrench': iDynTree.FULL_WRENCH,
        'force': iDynTree.PURE_FORCE,
        'axial_force': iDynTree.PURE_FORCE_WITH_KNOWN_DIRECTION,
        'known': iDynTree.NO_UNKNOWNS,
    }
    point = np.zeros(3) if contact.kind == 'known' else origin + L_R_C @ contact.point
    force, moment = np.split(np.array(contact.wrench), 2)
    force, moment = L_R_C @ force, L_R_C @ moment
    known = np.concatenate([force, moment + np.cross(origin, force)])
    return iDynTree.UnknownWrenchContact(
        kinds[contact.kind],
        iDynTree.Position(*point),
        iDynTree.Direction(*(L_R_C @ contact.direction)),
        iDynTree.Wrench.FromPython(known),
    )
