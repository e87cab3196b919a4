# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External wrenches and joint torques are those of iDynTree, for every kind of contact.

One IMU or a fixed base, as iDynTree knows nothing else. Not covered: answers that are not unique
(iDynTree takes a basic solution), readings that several contacts cannot explain (its least squares
has no weights), missing sensors.
"""

from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

iDynTree = pytest.importorskip('idyntree.bindings', reason='iDynTree is the oracle')
FT = iDynTree.SIX_AXIS_FORCE_TORQUE
KINDS = {
    'wrench': iDynTree.FULL_WRENCH,
    'force': iDynTree.PURE_FORCE,
    'axial_force': iDynTree.PURE_FORCE_WITH_KNOWN_DIRECTION,
    'known': iDynTree.NO_UNKNOWNS,
}
EXACT = 1e-9  # N and Nm: some hundred N through 57 joints and solves of condition 1e4
STATES = 5
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
ROBOTS = {
    'icub_v2_5 head': ('icub_v2_5', {'imus': ['head']}),
    'icub_genova01 root': ('icub_genova01', {'imus': ['root_link']}),
    'icub_sensorised head': ('icub_sensorised', {'imus': ['head']}),
    'ergocub root': ('ergocub_sn001', {'imus': ['root_link']}),
    'nested humanoid': ('', {'imus': ['head']}),
    'panda': ('panda_wrist_ft', {'fixed_link': 'panda_link0', 'joints': PANDA_JOINTS}),
}


class IDynTreeOracle:
    """
    A robot with one IMU or a fixed frame, and all the FT sensors of its URDF, in iDynTree.

    iDynTree gives every wrench at the contact point and orders joints and sensors in its own way;
    that is undone here. Joints that the robot has locked stay at zero.
    """

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

    def estimate(self, sample, contacts) -> tuple[np.ndarray, np.ndarray]:
        """
        Return wrenches (n_contacts, 6), in and about the contact links, and torques (n_joints,).

        Every submodel needs a contact.
        """
        self._update_kinematics(sample)
        measurements = iDynTree.SensorsMeasurements(self.estimator.sensors())
        for k, row in enumerate(self._ft_rows):
            wrench = iDynTree.Wrench.FromPython(sample.ft_readings[row])
            assert measurements.setMeasurement(FT, k, wrench)
        unknowns, places = iDynTree.LinkUnknownWrenchContacts(self.model), []
        for contact in contacts:
            link = self.model.getLinkIndex(contact.frame)
            places.append((link, unknowns.getNrOfContactsForLink(link)))
            point = np.zeros(3) if contact.kind == 'known' else contact.point
            translated = iDynTree.UnknownWrenchContact(
                KINDS[str(contact.kind)],
                iDynTree.Position(*point),
                iDynTree.Direction(*contact.direction),
                iDynTree.Wrench.FromPython(np.array(contact.wrench)),
            )
            unknowns.addNewContactForLink(link, translated)
        wrenches = iDynTree.LinkContactWrenches(self.model)
        torques = iDynTree.JointDOFsDoubleArray(self.model)
        assert self.estimator.estimateExtWrenchesAndJointTorques(
            unknowns, measurements, wrenches, torques
        )
        found = [wrenches.contactWrench(*place) for place in places]
        values = np.array([one.contactWrench.toNumPy() for one in found])
        points = np.array([one.contactPoint.toNumPy() for one in found])
        values[:, 3:] += np.cross(points, values[:, :3])
        return values, torques.toNumPy().copy()[self._columns]

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


@cache
def case_of(key, folder):
    """Return a robot in iDynTree's view and in that of Newton and Euler, and links by submodel."""
    name, arguments = ROBOTS[key]
    urdf = folder / f'{name}.urdf' if name else nested_humanoid_urdf()
    robot = Robot.from_urdf(urdf, **arguments)
    oracle, readings = IDynTreeOracle(robot), ConsistentReadings(robot)
    used = [n for n in sorted(readings.frames) if oracle.model.isLinkNameUsed(n)]
    links = [
        [name for name in used if name in robot.frames and robot.submodel_of(name) == k]
        for k in range(len(robot.submodels))
    ]
    return SimpleNamespace(robot=robot, oracle=oracle, readings=readings, links=links)


@pytest.fixture(params=ROBOTS)
def case(request, shared_models):
    return case_of(request.param, shared_models)


def draw_contacts(case, kinds, rng):
    """Return contacts of these kinds for every submodel; a fixed root gets its reaction."""
    contacts = []
    for s, links in enumerate(case.links):
        if s == 0 and case.robot.fixed_frame:
            contacts.append(Contact(case.robot.fixed_frame))
            continue
        contacts += [
            Contact(
                str(rng.choice(links)),
                kind,
                point=tuple(rng.uniform(-0.2, 0.2, 3)),
                direction=tuple(rng.normal(size=3)),
                wrench=tuple(rng.normal(size=6) * ([20.0] * 3 + [2.0] * 3)),
            )
            for kind in kinds
        ]
    return contacts


def draw_consistent(case, contacts, rng):
    """Return readings under random wrenches at the contacts."""
    total = {}
    for contact in contacts:
        unknowns = rng.normal(size=contact.unknowns) * ([30.0] * 3 + [3.0] * 3)[: contact.unknowns]
        wrench = contact.basis() @ unknowns + (contact.kind == 'known') * np.array(contact.wrench)
        # Frames may carry several contacts: what acts there together is measured.
        total[contact.frame] = total.get(contact.frame, np.zeros(6)) + wrench
    return case.readings.sample(random_motion(case.robot, rng), total)[0]


def assert_exact(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)


@pytest.mark.parametrize(
    'kinds',
    [('wrench',), ('wrench', 'known'), ('force', 'axial_force'), ('axial_force',) * 3,
     ('known', 'known', 'axial_force', 'force')],
    ids='+'.join,
)  # fmt: skip
def test_contacts_that_the_sensors_distinguish(case, kinds, rng):
    for _ in range(STATES):
        contacts = draw_contacts(case, kinds, rng)
        # Well above rounding, well below the singular values of lever arms that nearly meet.
        estimator = WrenchEstimator(case.robot, contacts, rank_tolerance=1e-6)
        # One full wrench per submodel explains any readings.
        anything = kinds == ('wrench',)
        sample = (
            random_sample(case.robot, rng) if anything else draw_consistent(case, contacts, rng)
        )
        ours, (wrenches, torques) = (
            estimator.update(sample),
            case.oracle.estimate(sample, contacts),
        )
        assert not ours.contact_quality.any()
        assert_exact(ours.wrenches, wrenches)
        assert_exact(ours.torques, torques)
        assert_exact(ours.residuals, 0.0)
