# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Properties of the estimator: what it recovers, what reaches what, and that a batch is its steps.

Not covered: the equations (test_newton_euler.py), marks of missing sensors (test_quality.py) and
joints (test_dependence.py), faults that other estimators have (test_peer_faults.py).
"""

import gc
from itertools import combinations

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, random_motion
from robots import (
    arm_with_wrist_sensor_urdf,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.errors import FrameNotFound, ModelError, ShapeError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.estimation.plan_cache import DYNAMICS_KEPT, STEPS_KEPT
from inertial_estimation.estimation.wrench_estimator import CHUNK, WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

# Relative to the largest number of a result. Readings that fit together: two libraries' round-off
# through some ten joints, and the inverse of the base's inertia. A batch: the order of sums alone.
RECOVERY = 1e-9
ROUND_OFF = 1e-12
RESULTS = ('wrenches', 'torques', 'external_torques', 'residuals')
MARKS = (
    'ranks',
    'contact_quality',
    'torque_quality',
    'external_torque_quality',
    'submodel_quality',
    'used_imus',
    'used_fts',
)
HUMANOIDS = ['nested', 'icub_v2_5', 'icub_genova01', 'icub_sensorised', 'ergocub_sn001']
FIELDS = Sample._fields[1:8]


def humanoid(name, request, **options):
    if name == 'nested':
        return Robot.from_urdf(nested_humanoid_urdf(), **options)
    return Robot.from_urdf(request.getfixturevalue('shared_models') / f'{name}.urdf', **options)


def at_roots(robot):
    return tuple(Contact(submodel.name) for submodel in robot.submodels)


def at_ends(robot):
    return tuple(Contact(robot.link_names[submodel.links[-1]]) for submodel in robot.submodels)


def assert_close(got, expected, tolerance, what=''):
    size = max(1.0, np.nanmax(np.abs(expected), initial=0.0))
    np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * size, err_msg=what)


def assert_same(got, expected, tolerance=0.0):
    """Compare two estimates; bit by bit where no tolerance is given."""
    assert np.array_equal(got.stamp_ns, expected.stamp_ns)
    assert got.contacts == expected.contacts
    for name in RESULTS:
        assert_close(getattr(got, name), getattr(expected, name), tolerance, name)
    for name in MARKS:
        a, b = getattr(got, name), getattr(expected, name)
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b, err_msg=name)


def row(batch, k):
    """Return one instant of a batch estimate."""
    values = batch._asdict()
    return WrenchEstimate(**{n: v if n == 'contacts' else v[k] for n, v in values.items()})


# What is recovered


def pushed(robot, rng):
    """Return a sample that fits together, the pushes at all submodels' ends, and the torques."""
    readings = ConsistentReadings(robot)
    pushes = {
        contact.frame: rng.normal(0.0, 1.0, 6) * ([40.0] * 3 + [4.0] * 3)
        for contact in at_ends(robot)
    }
    sample, torques, _ = readings.sample(random_motion(robot, rng), pushes)
    return sample, np.array(list(pushes.values())), torques


def legs_apart(robot, contacts):
    """Let the contact of the root submodel sit on its root: at a hip it would join the two."""
    first = robot.submodels[0]
    return tuple(
        Contact(first.name) if robot.frame(c.frame)[0] in first.links else c for c in contacts
    )


@pytest.mark.parametrize('name', HUMANOIDS)
def test_true_wrenches_are_recovered_whatever_link_carries_the_imu(name, request, rng):
    links = humanoid(name, request).link_names
    every_link = humanoid(name, request, imus=links)
    sample, pushes, torques = pushed(every_link, rng)
    for k, link in enumerate(links):
        robot = humanoid(name, request, imus=[link])
        estimate = WrenchEstimator(robot, at_ends(robot)).update(with_imus(sample, [k]))
        assert_close(estimate.wrenches, pushes, RECOVERY, f'wrenches, IMU at {link}')
        assert_close(estimate.torques, torques, RECOVERY, f'torques, IMU at {link}')
        np.testing.assert_array_equal(estimate.residuals, 0.0)


@pytest.mark.parametrize('name', HUMANOIDS)
def test_any_number_of_imus_that_agree_says_the_same(name, request, rng):
    links = humanoid(name, request).link_names
    sample, pushes, torques = pushed(humanoid(name, request, imus=links), rng)
    for size in (2, 3, 5, 8):
        chosen = rng.choice(len(links), size, replace=False)
        robot = humanoid(name, request, imus=[links[k] for k in chosen])
        estimate = WrenchEstimator(robot, at_ends(robot)).update(with_imus(sample, chosen))
        assert_close(estimate.wrenches, pushes, RECOVERY)
        assert_close(estimate.torques, torques, RECOVERY)


def with_imus(sample, rows):
    names = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
    return sample._replace(**{name: getattr(sample, name)[rows] for name in names})


def test_a_fixed_robot_needs_no_imu(rng):
    robot = Robot.from_urdf(
        arm_with_wrist_sensor_urdf(), fixed_link='base', joints=['elbow', 'lift']
    )
    readings = ConsistentReadings(robot)
    push = rng.normal(0.0, 20.0, 6)
    sample, torques, reaction = readings.sample(random_motion(robot, rng), {'tip': push})
    estimate = WrenchEstimator(robot, [Contact('base'), Contact('tip')]).update(sample)
    assert_close(estimate.wrenches, [reaction, push], RECOVERY)
    assert_close(estimate.torques, torques, RECOVERY)


def test_several_contacts_that_the_sensors_tell_apart(rng):
    """A force at a point, one along a line, and a known wrench, in each submodel."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand'])
    contacts, pushes = [], {}
    for submodel in robot.submodels:
        names = [robot.link_names[k] for k in (submodel.links[0], submodel.links[-1])]
        known = rng.normal(0.0, 5.0, 6)
        point, direction = rng.normal(0.0, 0.2, 3), rng.normal(size=3)
        force, size = rng.normal(0.0, 30.0, 3), rng.normal(0.0, 30.0)
        along = size * direction / np.linalg.norm(direction)
        contacts += [
            Contact(names[0], 'force', tuple(point), name=f'{submodel.name} force'),
            Contact(names[1], 'axial_force', tuple(-point), tuple(direction)),
            Contact(names[0], 'known', wrench=tuple(known)),
        ]
        forces = [(names[0], [*force, *np.cross(point, force)])]
        forces += [(names[1], [*along, *np.cross(-point, along)]), (names[0], known)]
        for name, wrench in forces:
            pushes[name] = pushes.get(name, 0.0) + np.asarray(wrench)
    sample, torques, _ = ConsistentReadings(robot).sample(random_motion(robot, rng), pushes)
    estimate = WrenchEstimator(robot, contacts).update(sample)
    np.testing.assert_array_equal(estimate.ranks, 4)
    np.testing.assert_array_equal(estimate.contact_quality, 0)
    found = dict.fromkeys(pushes, 0.0)
    for contact, wrench in zip(contacts, estimate.wrenches, strict=True):
        found[contact.frame] = found[contact.frame] + wrench
    assert_close(list(found.values()), list(pushes.values()), RECOVERY)
    assert_close(estimate.torques, torques, RECOVERY)
    assert_close(estimate.residuals, np.zeros((4, 6)), RECOVERY)


def test_free_submodels_feel_nothing_on_consistent_readings(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['chest'])
    push = rng.normal(0.0, 20.0, 6)
    sample, torques, _ = ConsistentReadings(robot).sample(
        random_motion(robot, rng), {'hand': push}
    )
    estimate = WrenchEstimator(robot, [Contact('hand')]).update(sample)
    assert_close(estimate.residuals, np.zeros((4, 6)), RECOVERY)
    assert_close(estimate.wrenches, [push], RECOVERY)
    assert_close(estimate.torques, torques, RECOVERY)


def test_locked_joints_are_merged_links(rng):
    text, locked = arm_with_wrist_sensor_urdf(), {'elbow': 0.7}
    whole = Robot.from_urdf(text, fixed_link='base')
    part = Robot.from_urdf(
        text, fixed_link='base', joints=['shoulder', 'lift'], locked_positions=locked
    )
    sample = random_sample(whole, rng)
    held = whole.joint_names.index('elbow')
    sample.positions[held], sample.velocities[held], sample.accelerations[held] = 0.7, 0.0, 0.0
    fewer = sample._replace(**{n: np.delete(getattr(sample, n), held) for n in FIELDS[:3]})
    contacts = [Contact('slider'), Contact('tip')]
    first = WrenchEstimator(whole, contacts).update(sample)
    second = WrenchEstimator(part, contacts).update(fewer)
    assert_close(second.wrenches, first.wrenches, ROUND_OFF)
    assert_close(second.torques, np.delete(first.torques, held), ROUND_OFF)
    assert_close(second.external_torques, np.delete(first.external_torques, held), ROUND_OFF)


# What reaches what


def joints_of(robot, *parts):
    return [j for j, name in enumerate(robot.joint_names) if any(p in name for p in parts)]


LEGS = ('hip', 'knee', 'ankle')


@pytest.mark.parametrize('disturbance', [1e3, 1e-3, np.nan])
@pytest.mark.parametrize('contacts', [at_roots, at_ends, lambda robot: ()])
@pytest.mark.parametrize('name', HUMANOIDS)
def test_an_arm_sensor_never_reaches_a_leg(name, contacts, disturbance, request, rng):
    robot = humanoid(name, request, imus=['head'])
    legs = joints_of(robot, *LEGS)
    assert len(legs) >= (2 if name == 'nested' else 12)
    arms = [k for k, sensor in enumerate(robot.ft_sensors) if 'arm' in sensor.name]
    assert arms
    estimator = WrenchEstimator(robot, legs_apart(robot, contacts(robot)))
    for _ in range(5):
        sample = random_sample(robot, rng)
        disturbed = sample.ft_readings.copy()
        disturbed[arms] += disturbance * rng.normal(size=(len(arms), 6))
        before = estimator.update(sample)
        after = estimator.update(sample._replace(ft_readings=disturbed))
        # A lost sensor goes another way through linear algebra, which may round otherwise.
        round_off = 1e-13 * np.abs(before.torques).max() if np.isnan(disturbance) else 0.0
        np.testing.assert_allclose(
            after.torques[legs], before.torques[legs], rtol=0.0, atol=round_off
        )
        np.testing.assert_array_equal(after.torque_quality[legs], 0)
        assert not np.array_equal(after.residuals, before.residuals) or not np.array_equal(
            after.wrenches, before.wrenches
        )


def test_the_order_of_contacts_permutes_rows(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand'])
    contacts = [
        *(Contact(name, 'force', point=(0.0, 0.1, 0.2)) for name in ('hand', 'shank', 'chest')),
        *(Contact(name) for name in ('hip', 'upper_arm', 'sole')),
        Contact('head', 'known', wrench=(1, 2, 3, 4, 5, 6)),
    ]
    sample = random_sample(robot, rng)
    expected = WrenchEstimator(robot, contacts).update(sample)
    for _ in range(5):
        order = rng.permutation(len(contacts))
        got = WrenchEstimator(robot, [contacts[c] for c in order]).update(sample)
        assert_close(got.wrenches, expected.wrenches[order], ROUND_OFF)
        for name in RESULTS[1:]:
            assert_close(getattr(got, name), getattr(expected, name), ROUND_OFF, name)
        np.testing.assert_array_equal(got.contact_quality, expected.contact_quality[order])
        np.testing.assert_array_equal(got.torque_quality, expected.torque_quality)


def test_contacts_may_change_at_every_step(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, at_ends(robot))
    default = estimator.update(sample := random_sample(robot, rng))
    for step in range(2 * STEPS_KEPT):
        frames = rng.choice(list(robot.frames), rng.integers(0, 6))
        contacts = tuple(
            Contact(str(frame), ('wrench', 'force')[step % 2], point=tuple(rng.normal(size=3)))
            for frame in frames
        )
        got = estimator.update(sample, contacts)
        assert got.contacts == contacts
        if step % 8 == 0:
            assert_same(got, WrenchEstimator(robot, contacts).update(sample))
    assert_same(estimator.update(sample), default)


def test_models_for_failed_imus_do_not_pile_up(rng):
    """Each holds tens of megabytes for a humanoid, and any number of IMUs may come and go."""
    links = Robot.from_urdf(nested_humanoid_urdf()).link_names
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=links)
    estimator = WrenchEstimator(robot, at_roots(robot))
    sample = random_sample(robot, rng)
    expected = estimator.update(sample)
    before = count_models()
    for pair in combinations(range(len(links)), 2):
        readings = sample.angular_velocities.copy()
        readings[list(pair)] = np.nan
        estimator.update(sample._replace(angular_velocities=readings))
    assert count_models() <= before + DYNAMICS_KEPT
    assert_same(estimator.update(sample), expected)


def count_models():
    gc.collect()
    return sum(isinstance(thing, Dynamics) for thing in gc.get_objects())


def test_an_estimate_is_not_touched_by_the_next_one(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand'])
    for contacts in (at_roots(robot), at_roots(robot)[1:]):
        estimator = WrenchEstimator(robot, contacts)
        first = estimator.update(random_sample(robot, rng))
        kept = WrenchEstimate(*(np.copy(v) if isinstance(v, np.ndarray) else v for v in first))
        estimator.update(random_sample(robot, rng))
        assert_same(first, kept)


def test_samples_are_read_only(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand'])
    estimator = WrenchEstimator(robot, at_roots(robot))
    sample = random_sample(robot, rng)
    sample.ft_readings[1, 2] = sample.positions[0] = np.nan
    for array in sample[1:8]:
        array.flags.writeable = False
    first = estimator.update(sample)
    assert_same(estimator.update(sample), first)


# Batches


def faulty_samples(robot, rng, n):
    """Return samples; most miss one reading, some two, some none."""
    samples = [random_sample(robot, rng) for _ in range(n)]
    for sample in samples:
        for name in rng.choice(FIELDS, rng.integers(0, 3)):
            array = getattr(sample, name)
            if array.size:
                array.flat[rng.integers(array.size)] = rng.choice([np.nan, np.inf, -np.inf])
    return samples


BATCH_ROBOTS = {
    'two_link': (two_link_urdf(), {'imus': ['arm']}),
    'arm': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'lower'}),
    'arm with idle imu': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'base', 'imus': ['tip']}),
    'humanoid': (nested_humanoid_urdf(), {'imus': ['head']}),
    'several imus': (nested_humanoid_urdf(), {'imus': ['head', 'hip', 'shank', 'thigh']}),
    'imus on one link': (
        nested_humanoid_urdf(),
        {'imus': [('a', 'head'), ('b', 'neck'), ('c', 'foot'), ('d', 'sole')]},
    ),
}


def contact_sets(robot):
    mixed = [Contact(name, ('force', 'wrench')[k % 2]) for k, name in enumerate(robot.link_names)]
    known = Contact(robot.link_names[-1], 'known', wrench=(1, 2, 3, 4, 5, 6))
    return at_roots(robot), at_ends(robot)[1:], (), (*mixed, known)


@pytest.mark.parametrize('assumed', [False, True])
@pytest.mark.parametrize('name', BATCH_ROBOTS)
def test_a_batch_is_its_steps(name, assumed, rng):
    text, options = BATCH_ROBOTS[name]
    robot = Robot.from_urdf(text, **options)
    samples = faulty_samples(robot, rng, 25)
    if assumed:
        states = rng.integers(0, 2, (25, len(robot.joint_names))).astype(np.uint8)
        samples = [s._replace(joint_states=x) for s, x in zip(samples, states)]
    batch = SampleBatch.stack(samples)
    for contacts in contact_sets(robot):
        for estimator, given in (
            (WrenchEstimator(robot, contacts), None),
            (WrenchEstimator(robot, at_roots(robot)), contacts),
        ):
            together = estimator.batch(batch, given)
            for k, sample in enumerate(samples):
                assert_same(row(together, k), estimator.update(sample, given), ROUND_OFF)


def test_a_batch_of_several_chunks(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand'])
    n = 2 * CHUNK + 3
    samples = [random_sample(robot, rng) for _ in range(n)]
    for k in range(0, n, 3):
        samples[k].ft_readings[0] = np.nan
    estimator = WrenchEstimator(robot, at_ends(robot))
    together = estimator.batch(SampleBatch.stack(samples))
    for k in (0, 1, 2, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK, n - 2, n - 1):
        assert_same(row(together, k), estimator.update(samples[k]), ROUND_OFF)


# Robots at the edges


# Structural mistakes


def test_a_mistake_does_not_spoil_the_next_step(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator = WrenchEstimator(robot, at_roots(robot))
    sample = random_sample(robot, rng)
    before = estimator.update(sample)
    with pytest.raises(ShapeError):
        estimator.update(sample._replace(positions=np.zeros(1)))
    with pytest.raises(FrameNotFound):
        estimator.update(sample, (Contact('hand'), Contact('hnd')))
    assert_same(estimator.update(sample), before)


def test_contacts_at_unknown_frames_bring_the_closest(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    with pytest.raises(FrameNotFound):
        WrenchEstimator(robot, [Contact('hnd')])
    sample = random_sample(robot, rng)
    with pytest.raises(FrameNotFound):
        WrenchEstimator(robot).update(sample, (Contact('hnd'),))
    with pytest.raises(FrameNotFound):
        WrenchEstimator(robot).batch(SampleBatch.stack([sample]), (Contact('hnd'),))


@pytest.mark.parametrize(
    ('change', 'complaint'),
    [
        ({4: np.nan}, "'arm'.*not finite"),
        ({0: np.inf}, "'arm'.*not finite"),
        ({0: 0.0}, "'arm' has a first moment of .* but no mass; give it a mass"),
        ({0: 1e-9}, "'arm' has a first moment of .* a mass of 1e-09 kg: .* digits"),
        ({0: -1e-9}, "'arm' has a first moment of .* a mass of -1e-09 kg: .* digits"),
    ],
)
def test_parameters_that_cannot_be_used(change, complaint):
    robot = Robot.from_urdf(two_link_urdf(), imus=['body'])
    parameters = robot.parameters.copy()
    for index, value in change.items():
        parameters[1, index] = value
    with pytest.raises(ModelError):
        WrenchEstimator(robot.with_parameters(parameters))


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('absurd', [1e200, -1e40])
@pytest.mark.parametrize('name', ['velocities', 'ft_readings', 'positions'])
def test_absurd_numbers_count_as_missing(name, absurd, nested_humanoid, rng):
    estimator = WrenchEstimator(nested_humanoid, [Contact('sole'), Contact('hand')])
    sample = random_sample(nested_humanoid, rng)
    broken = {'value': np.array(getattr(sample, name)), 'nan': np.array(getattr(sample, name))}
    broken['value'].flat[2], broken['nan'].flat[2] = absurd, np.nan
    estimate = estimator.update(sample._replace(**{name: broken['value']}))
    expected = estimator.update(sample._replace(**{name: broken['nan']}))
    for got, wanted in zip(estimate[2:], expected[2:], strict=True):
        np.testing.assert_array_equal(got, wanted)
