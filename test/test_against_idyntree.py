# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
External wrenches and joint torques are those of iDynTree, for every kind of contact.

One IMU or a fixed base, as iDynTree knows nothing else. Not covered: answers that are not unique
(iDynTree takes a basic solution), readings that several contacts cannot explain (its least squares
has no weights), missing sensors.
"""

from functools import cache

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from oracle_idyntree import IDynTreeOracle
from robots import random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

EXACT = 1e-9  # N and Nm: some hundred N through 57 joints and solves of condition 1e4
STORED = 1e-6  # N and Nm: digits that the stored inputs and results of the oracle share
STATES = 5
PANDA_JOINTS = [f'panda_joint{k}' for k in range(1, 8)]
ROBOTS = {
    'icub_v2_5 head': ('icub_v2_5', {'imus': ['head']}),
    'icub_genova01 root': ('icub_genova01', {'imus': ['root_link']}),
    'icub_sensorised head': ('icub_sensorised', {'imus': ['head']}),
    'ergocub root': ('ergocub_sn001', {'imus': ['root_link']}),
    'panda': ('panda_wrist_ft', {'fixed_link': 'panda_link0', 'joints': PANDA_JOINTS}),
}


class Case:
    """One robot in the engine's view, in iDynTree's, and in that of Newton and Euler."""

    def __init__(self, robot):
        self.robot, self.oracle = robot, IDynTreeOracle(robot)
        self.readings = ConsistentReadings(robot)
        self.frames = [
            [
                name
                for name, (link, _) in sorted(robot.frames.items())
                if link in submodel.links
                and name in self.readings.frames
                and self.oracle.model.isFrameNameUsed(name)
            ]
            for submodel in robot.submodels
        ]


@cache
def case_of(key, folder):
    name, arguments = ROBOTS[key]
    return Case(Robot.from_urdf(folder / f'{name}.urdf', **arguments))


@pytest.fixture(params=ROBOTS)
def case(request, shared_models):
    return case_of(request.param, shared_models)


def draw_contacts(case, kinds, rng):
    """Return contacts of these kinds for every submodel; a fixed root gets its reaction."""
    contacts = []
    for s, frames in enumerate(case.frames):
        if s == 0 and case.robot.fixed_frame:
            contacts.append(Contact(case.robot.fixed_frame))
            continue
        contacts += [
            Contact(
                str(rng.choice(frames)),
                kind,
                point=tuple(rng.uniform(-0.2, 0.2, 3)),
                direction=tuple(rng.normal(size=3)),
                wrench=tuple(rng.normal(size=6) * ([20.0] * 3 + [2.0] * 3)),
            )
            for kind in kinds
        ]
    return contacts


def draw_consistent(case, contacts, rng):
    """Return readings under random wrenches at the contacts, these wrenches, and torques."""
    truth, total = [], {}
    for contact in contacts:
        unknowns = rng.normal(size=contact.unknowns) * ([30.0] * 3 + [3.0] * 3)[: contact.unknowns]
        wrench = contact.basis() @ unknowns + (contact.kind == 'known') * np.array(contact.wrench)
        truth.append(wrench)
        # Frames may carry several contacts: what acts there together is measured.
        total[contact.frame] = total.get(contact.frame, np.zeros(6)) + wrench
    sample, torques, reaction = case.readings.sample(random_motion(case.robot, rng), total)
    if case.robot.fixed_frame:
        truth[0] = truth[0] + reaction
    return sample, np.array(truth), torques


def assert_exact(ours, theirs):
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=EXACT)


def test_one_full_wrench_per_submodel_on_any_readings(case, rng):
    for _ in range(STATES):
        contacts = [Contact(str(rng.choice(frames))) for frames in case.frames]
        sample = random_sample(case.robot, rng)
        ours = WrenchEstimator(case.robot, contacts).update(sample)
        theirs = case.oracle.estimate(sample, contacts)
        assert_exact(ours.wrenches, theirs.wrenches)
        assert_exact(ours.torques, theirs.torques)


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
        sample, truth, torques = draw_consistent(case, contacts, rng)
        ours, theirs = estimator.update(sample), case.oracle.estimate(sample, contacts)
        assert not ours.contact_quality.any()
        for expected in (theirs, (truth, torques)):
            assert_exact(ours.wrenches, expected[0])
            assert_exact(ours.torques, expected[1])
        assert_exact(ours.residuals, 0.0)


def test_reference_of_a_real_log(shared_models):
    """The stored iDynTree run on the log of a real iCub that stands on its left foot."""
    log = np.load(shared_models.parent / 'icub_yoga_left' / 'reference_idyntree.npz')
    robot = Robot.from_urdf(
        shared_models / 'icub_v2_5.urdf', ft_sensors=log['ft_names'].tolist(), fixed_link='l_sole'
    )
    columns = [log['joint_names'].tolist().index(name) for name in robot.joint_names]
    estimator = WrenchEstimator(robot, [Contact(name) for name in log['contact_frames'].tolist()])
    n = len(log['t'])
    joints = (log[key][:, columns] for key in ('q', 'dq', 'ddq'))
    ours = estimator.batch(
        SampleBatch(np.arange(n), *joints, *[np.zeros((n, 0, 3))] * 3, log['ft'])
    )
    oracle = IDynTreeOracle(robot)
    for k, contact in enumerate(estimator.contacts):
        H = oracle.frame_in_link(contact.frame)
        forces, moments, points = np.split(log['wrench'][:, k], 3, axis=1)
        np.testing.assert_allclose(points, np.tile(H[:3, 3], (n, 1)), atol=STORED)
        theirs = np.hstack([forces @ H[:3, :3], moments @ H[:3, :3]])
        np.testing.assert_allclose(ours.wrenches[:, k], theirs, rtol=0.0, atol=STORED)
    np.testing.assert_allclose(ours.torques, log['tau'][:, columns], rtol=0.0, atol=STORED)
    assert np.abs(log['tau']).max() > 20.0
