# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External wrenches and joint torques are those of iDynTree, for every kind of contact.

One IMU or a fixed base, as iDynTree knows nothing else. Not covered: answers that are not unique
(iDynTree takes a basic solution; here only what both must agree on is compared), answers to
readings that several contacts cannot explain (its least squares has no weights), missing sensors.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, Motion, random_motion
from oracle_idyntree import IDynTreeOracle
from robots import random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9
"""N and Nm: round-off of some hundred N, through 57 joints and solves of condition 1e4."""
STORED = 1e-6
"""N and Nm: digits that the stored inputs and results of the oracle share."""
PRINTED = 1e-8
"""Digits of the poses in the tables [m]."""
STATES = 5
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
ROBOTS = {
    'icub_v2_5 head': ('icub_v2_5', {'imus': ['head']}),
    'icub_v2_5 root': ('icub_v2_5', {'imus': ['root_link']}),
    'icub_genova01 head': ('icub_genova01', {'imus': ['head']}),
    'icub_genova01 root': ('icub_genova01', {'imus': ['root_link']}),
    'icub_sensorised head': ('icub_sensorised', {'imus': ['head']}),
    'icub_sensorised root': ('icub_sensorised', {'imus': ['root_link']}),
    'ergocub head': ('ergocub_sn001', {'imus': ['head']}),
    'ergocub root': ('ergocub_sn001', {'imus': ['root_link']}),
    'panda': ('panda_wrist_ft', {'fixed_link': 'panda_link0', 'joints': PANDA_JOINTS}),
}


class Case:
    """One robot in the engine's view, in iDynTree's, and in that of Newton and Euler."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self.oracle = IDynTreeOracle(robot)
        self.readings = ConsistentReadings(robot)
        self.frames = [
            [
                name
                for name, (link, _) in sorted(robot.frames.items())
                if link in submodel.links
                and name in self.readings.frames
                and self.oracle.has_frame(name)
            ]
            for submodel in robot.submodels
        ]

    def sums(self, motion: Motion, contacts: list[Contact], wrenches: np.ndarray) -> np.ndarray:
        """Return the sum of the wrenches on each submodel about the root link, (n, 6)."""
        sums = np.zeros((len(self.robot.submodels), 6))
        for contact, wrench in zip(contacts, wrenches):
            link = self.robot.frame(contact.frame)[0]
            row = [link in submodel.links for submodel in self.robot.submodels].index(True)
            H = self.readings.pose(motion, contact.frame)
            force, moment = H[:3, :3] @ wrench[:3], H[:3, :3] @ wrench[3:]
            sums[row] += np.concatenate([force, moment + np.cross(H[:3, 3], force)])
        return sums


@pytest.fixture(scope='module')
def cases() -> dict[str, Case]:
    return {}


@pytest.fixture(params=list(ROBOTS))
def case(request: pytest.FixtureRequest, cases: dict[str, Case], shared_models: Path) -> Case:
    name, arguments = ROBOTS[request.param]
    if request.param not in cases:
        cases[request.param] = Case(Robot.from_urdf(shared_models / f'{name}.urdf', **arguments))
    return cases[request.param]


def random_contact(frame: str, kind: str, rng: np.random.Generator) -> Contact:
    """Return a contact at a random point, in a random direction, of a random known wrench."""
    return Contact(
        frame,
        kind,
        point=tuple(rng.uniform(-0.2, 0.2, 3)),
        direction=tuple(rng.normal(size=3)),
        wrench=tuple(rng.normal(size=6) * ([20.0] * 3 + [2.0] * 3)),
        name=f'{kind} at {frame}',
    )


def true_wrench(contact: Contact, rng: np.random.Generator) -> np.ndarray:
    """Return a wrench that a contact can pass on, shape (6,)."""
    if contact.kind == 'known':
        return np.array(contact.wrench)
    return contact.basis() @ (
        rng.normal(size=contact.unknowns) * ([30.0] * 3 + [3.0] * 3)[: contact.unknowns]
    )


def draw_contacts(case: Case, kinds: tuple[str, ...], rng: np.random.Generator) -> list[Contact]:
    """Return contacts of these kinds for every submodel; a fixed root gets its reaction."""
    contacts = []
    for s, frames in enumerate(case.frames):
        if s == 0 and case.robot.fixed_frame:
            contacts.append(Contact(case.robot.fixed_frame))
            continue
        contacts += [random_contact(str(rng.choice(frames)), kind, rng) for kind in kinds]
    return contacts


def draw_consistent(case: Case, contacts: list[Contact], rng: np.random.Generator):
    """Return a motion, the readings under random wrenches at the contacts, and those wrenches."""
    motion = random_motion(case.robot, rng)
    truth = np.array([true_wrench(contact, rng) for contact in contacts])
    # Frames may carry several contacts: what acts there together is what is felt.
    total: dict[str, np.ndarray] = {}
    for contact, wrench in zip(contacts, truth):
        total[contact.frame] = total.get(contact.frame, np.zeros(6)) + wrench
    sample, torques, reaction = case.readings.sample(motion, total)
    if case.robot.fixed_frame:
        truth[0] += reaction
    return motion, sample, truth, torques


def assert_exact(ours: np.ndarray, theirs: np.ndarray) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)


def test_one_full_wrench_per_submodel_on_any_readings(
    case: Case, rng: np.random.Generator
) -> None:
    for _ in range(STATES):
        contacts = [Contact(str(rng.choice(frames))) for frames in case.frames]
        estimator = WrenchEstimator(case.robot, contacts)
        sample = random_sample(case.robot, rng)
        ours, theirs = estimator.update(sample), case.oracle.estimate(sample, contacts)
        assert_exact(ours.wrenches, theirs.wrenches)
        assert_exact(ours.torques, theirs.torques)
        assert np.abs(theirs.torques).max() > 1.0


@pytest.mark.parametrize(
    'kinds',
    [
        ('force',),
        ('axial_force',),
        ('known',),
        ('wrench', 'known'),
        ('force', 'known'),
        ('force', 'axial_force'),
        ('axial_force', 'axial_force', 'axial_force'),
        ('known', 'known', 'axial_force', 'force'),
    ],
    ids='+'.join,
)
def test_contacts_that_the_sensors_tell_apart(
    case: Case, kinds: tuple[str, ...], rng: np.random.Generator
) -> None:
    for _ in range(STATES):
        contacts = draw_contacts(case, kinds, rng)
        # Well above rounding, well below the singular values of lever arms that nearly meet.
        estimator = WrenchEstimator(case.robot, contacts, rank_tolerance=1e-6)
        _, sample, truth, torques = draw_consistent(case, contacts, rng)
        ours, theirs = estimator.update(sample), case.oracle.estimate(sample, contacts)
        assert not ours.contact_quality.any()
        assert_exact(ours.wrenches, theirs.wrenches)
        assert_exact(ours.torques, theirs.torques)
        assert_exact(ours.wrenches, truth)
        assert_exact(ours.torques, torques)
        assert_exact(ours.residuals, 0.0)


@pytest.mark.parametrize(
    'kinds',
    [
        ('wrench', 'wrench'),
        ('wrench', 'force', 'known'),
        ('force', 'force'),
        ('force', 'force', 'axial_force', 'axial_force'),
    ],
    ids='+'.join,
)
def test_sums_where_the_answer_is_not_unique(
    case: Case, kinds: tuple[str, ...], rng: np.random.Generator
) -> None:
    for _ in range(STATES):
        contacts = draw_contacts(case, kinds, rng)
        estimator = WrenchEstimator(case.robot, contacts)
        motion, sample, _, torques = draw_consistent(case, contacts, rng)
        ours, theirs = estimator.update(sample), case.oracle.estimate(sample, contacts)
        compare_sums(case, motion, contacts, ours, theirs)
        assert_exact(ours.residuals, 0.0)
        determined = ours.torque_quality == 0
        assert_exact(ours.torques[determined], torques[determined])


def test_sums_of_two_full_wrenches_on_any_readings(case: Case, rng: np.random.Generator) -> None:
    for _ in range(STATES):
        contacts = draw_contacts(case, ('wrench', 'wrench'), rng)
        estimator = WrenchEstimator(case.robot, contacts)
        sample = random_sample(case.robot, rng)
        motion = Motion(*sample[1:4], rate=np.zeros(3))
        ours, theirs = estimator.update(sample), case.oracle.estimate(sample, contacts)
        compare_sums(case, motion, contacts, ours, theirs)


def compare_sums(case: Case, motion: Motion, contacts: list[Contact], ours, theirs) -> None:
    """Compare what both must agree on: sums, and torques that hold no part of an open split."""
    undetermined = (ours.contact_quality & Quality.UNDETERMINED) != 0
    bolted = bool(case.robot.fixed_frame) & (np.arange(len(contacts)) == 0)
    known = np.array([contact.kind == 'known' for contact in contacts])
    assert undetermined.any()
    assert not (undetermined & (known | bolted)).any()
    determined = ~undetermined & ~known
    assert_exact(ours.wrenches[determined], theirs.wrenches[determined])
    assert_exact(
        case.sums(motion, contacts, ours.wrenches), case.sums(motion, contacts, theirs.wrenches)
    )
    determined = ours.torque_quality == 0
    assert determined.any()
    assert_exact(ours.torques[determined], theirs.torques[determined])


def test_reference_of_a_real_log(shared_models: Path) -> None:
    """The stored iDynTree run on the log of a real iCub that stands on its left foot."""
    log = np.load(shared_models.parent / 'icub_yoga_left' / 'reference_idyntree.npz')
    robot = Robot.from_urdf(
        shared_models / 'icub_v2_5.urdf', ft_sensors=log['ft_names'].tolist(), fixed_link='l_sole'
    )
    columns = [log['joint_names'].tolist().index(name) for name in robot.joint_names]
    estimator = WrenchEstimator(robot, [Contact(name) for name in log['contact_frames'].tolist()])
    n = len(log['t'])
    empty = np.zeros((n, 0, 3))
    batch = SampleBatch(
        np.arange(n),
        *(log[key][:, columns] for key in ('q', 'dq', 'ddq')),
        *[empty] * 3,
        log['ft'],
    )
    ours = estimator.batch(batch)
    oracle = IDynTreeOracle(robot)
    for k, contact in enumerate(estimator.contacts):
        L_H_C = oracle.frame_in_link(contact.frame)
        forces, moments, points = np.split(log['wrench'][:, k], 3, axis=1)
        np.testing.assert_allclose(points, np.tile(L_H_C[:3, 3], (n, 1)), atol=STORED)
        theirs = np.hstack([forces @ L_H_C[:3, :3], moments @ L_H_C[:3, :3]])
        np.testing.assert_allclose(ours.wrenches[:, k], theirs, rtol=0.0, atol=STORED)
    np.testing.assert_allclose(ours.torques, log['tau'][:, columns], rtol=0.0, atol=STORED)
    assert np.abs(log['tau']).max() > 20.0


@pytest.mark.parametrize('name', ['icub_v2_5', 'icub_genova01', 'ergocub_sn001', 'panda_wrist_ft'])
def test_ft_sensors_are_read_alike(shared_models: Path, name: str) -> None:
    """Joint, links, side and pose of each FT sensor are as iDynTree has listed them."""
    joints = PANDA_JOINTS if name == 'panda_wrist_ft' else None
    robot = Robot.from_urdf(shared_models / f'{name}.urdf', joints=joints)
    with (shared_models / f'ft_frames_{name}.csv').open() as table:
        rows = {row['sensor']: row for row in csv.DictReader(table)}
    assert set(rows) == {sensor.name for sensor in robot.ft_sensors}
    for sensor in robot.ft_sensors:
        row = rows[sensor.name]
        assert sensor.joint == row['joint']
        assert sensor.parent == robot.frame(row['first_link'])[0]
        assert robot.link_names[sensor.child] == row['second_link']
        child_to_parent = row['wrench_applied_to_link'] == row['first_link']
        assert sensor.direction == (1 if child_to_parent else -1)
        position = [float(row[key]) for key in ('px', 'py', 'pz')]
        rotation = [float(row[f'r{i}{j}']) for i in (1, 2, 3) for j in (1, 2, 3)]
        H = sensor.child_H_sensor
        np.testing.assert_allclose(H[:3, 3], position, atol=PRINTED)
        np.testing.assert_allclose(H[:3, :3].ravel(), rotation, atol=PRINTED)
