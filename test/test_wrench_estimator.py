# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts, and properties of the estimator: independence, batches, limits of its memory and inputs.

Not covered: the equations and what depends on which joint (test_newton_euler.py), marks of missing
sensors (test_quality.py).
"""

import gc
from itertools import combinations

import numpy as np
import pytest
from robots import (
    all_kinds,
    assert_close,
    at_ends,
    at_roots,
    nested_humanoid_urdf,
    random_sample,
)
from test_newton_euler import nested
from test_set_parameters import make

from inertial_estimation.errors import (
    InertialEstimationError,
    ModelError,
    NameNotFound,
    ShapeError,
)
from inertial_estimation.estimation import dynamics, step, wrench_estimator
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

EXACT = 1e-9  # N and Nm: round-off of some hundred N
RESULTS = ('wrenches', 'torques', 'external_torques', 'residuals')
ARRAYS = [name for name in WrenchEstimate._fields if name not in ('stamp_ns', 'contacts')]
FIELDS = Sample._fields[1:8]


def assert_same(got, expected, tolerance=0.0):
    """Compare two estimates; bit by bit where no tolerance is given."""
    assert np.array_equal(got.stamp_ns, expected.stamp_ns)
    assert got.contacts == expected.contacts
    for name in ARRAYS:
        one, other = getattr(got, name), getattr(expected, name)
        assert one.dtype == other.dtype
        if name in RESULTS:
            assert_close(one, other, tolerance, name)
        else:
            np.testing.assert_array_equal(one, other, err_msg=name)


# Contacts


def test_equal_contacts_are_one_key():
    """A plan is kept for each set of contacts: numbers must not come as different objects."""
    first = Contact('hand', 'force', point=np.array([0.1, 0.2, 0.3]), direction=[0, 0, 2])
    second = Contact('hand', 'force', point=(0.1, 0.2, 0.3), direction=(0.0, 0.0, 1.0))
    assert first == second and len({first, second}) == 1 and first.direction == (0.0, 0.0, 1.0)
    assert first != second.moved((0.1, 0.2, 0.4)) == Contact('hand', 'force', (0.1, 0.2, 0.4))


# Faults measured in other estimators


def test_two_forces_on_a_link_never_blow_up(nested_humanoid, rng):
    """
    The squeeze of two pure forces is invisible; a peer exceeded 1e6 N in 1 solve of 130.

    The shortest answer holds no squeeze.
    """
    names = [submodel.name for submodel in nested_humanoid.submodels]
    for _ in range(20):
        half, middle = rng.normal(size=(len(names), 3)), rng.uniform(-0.1, 0.1, (len(names), 3))
        half *= rng.uniform(0.05, 0.1) / np.linalg.norm(half, axis=1)[:, None]
        contacts = [
            Contact(name, 'force', point=tuple(point), name=f'{name} {k}')
            for name, *pair in zip(names, middle - half, middle + half)
            for k, point in enumerate(pair)
        ]
        samples = SampleBatch.stack([random_sample(nested_humanoid, rng) for _ in range(50)])
        estimate = WrenchEstimator(nested_humanoid, contacts).batch(samples)
        assert (estimate.ranks == 5).all()
        assert ((estimate.contact_quality & Quality.UNDETERMINED) != 0).all()
        forces = estimate.wrenches.reshape(50, len(names), 2, 6)[..., :3]
        squeeze = np.einsum('nsi,si->ns', forces[:, :, 1] - forces[:, :, 0], 2.0 * half)
        np.testing.assert_allclose(squeeze, 0.0, atol=EXACT)


# Memory


def test_contacts_may_change_and_earlier_estimates_stay(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    estimator, sample = WrenchEstimator(robot, at_ends(robot)), random_sample(robot, rng)
    for array in sample[1:8]:
        array.flags.writeable = False
    default = estimator.update(sample)
    kept = WrenchEstimate(*(np.copy(v) if isinstance(v, np.ndarray) else v for v in default))
    for k in range(130):
        contacts = tuple(
            Contact(str(frame), ('wrench', 'force')[k % 2], point=tuple(rng.normal(size=3)))
            for frame in rng.choice(list(robot.frames), rng.integers(0, 6))
        )
        got = estimator.update(sample, contacts)
        if k % 8 == 0:
            assert_same(got, WrenchEstimator(robot, contacts).update(sample))
    assert_same(estimator.update(sample), default)
    assert_same(default, kept)


def test_models_for_failed_imus_do_not_pile_up(rng):
    """Each holds tens of megabytes for a humanoid, and any number of IMUs may come and go."""
    links = Robot.from_urdf(nested_humanoid_urdf()).link_names
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=links)
    estimator = WrenchEstimator(robot, at_roots(robot))
    sample = random_sample(robot, rng)
    expected = estimator.update(sample)

    def count_models():
        gc.collect()
        return sum(isinstance(thing, Dynamics) for thing in gc.get_objects())

    before = count_models()
    for pair in combinations(range(len(links)), 2):
        readings = sample.angular_velocities.copy()
        readings[list(pair)] = np.nan
        estimator.update(sample._replace(angular_velocities=readings))
    assert count_models() <= before + 3
    assert_same(estimator.update(sample), expected)


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


@pytest.mark.parametrize('assumed', [False, True])
@pytest.mark.parametrize('name', ['two_link', 'arm', 'nested'])
def test_batch_is_its_steps(name, assumed, rng, monkeypatch):
    """In chunks of ten instants."""
    monkeypatch.setattr(wrench_estimator, 'CHUNK', 10)
    robot = nested() if name == 'nested' else make(name)
    samples = faulty_samples(robot, rng, 25)
    if assumed:
        states = rng.integers(0, 2, (25, len(robot.joint_names))).astype(np.uint8)
        samples = [s._replace(joint_states=x) for s, x in zip(samples, states)]
    batch = SampleBatch.stack(samples)
    last = robot.link_names[-1]
    mixed = (Contact(last, 'force'), Contact(last), Contact(last, 'known', wrench=(1,) * 6))
    for contacts in ((), at_roots(robot), at_ends(robot)[:1], mixed):
        for estimator, given in (
            (WrenchEstimator(robot, contacts), None),
            (WrenchEstimator(robot, at_roots(robot)), contacts),
        ):
            together = estimator.batch(batch, given)
            for k, sample in enumerate(samples):
                assert_same(together.at(k), estimator.update(sample, given), 1e-12)
            assert len(estimator.batch(batch.take(slice(0)), given).torques) == 0


@pytest.mark.skipif(dynamics.compiled is None, reason='installed without a compiler')
@pytest.mark.parametrize('name', ['two_link', 'arm', 'nested'])
def test_compiled_steps_are_those_of_numpy(name, rng, monkeypatch):
    robot = nested() if name == 'nested' else make(name)
    samples = faulty_samples(robot, rng, 15)
    for contacts in ((), at_roots(robot), at_ends(robot)[:1], all_kinds(robot)):
        found = []
        for compiled in (dynamics.compiled, None):
            for module in (dynamics, step, wrench_estimator):
                monkeypatch.setattr(module, 'compiled', compiled)
            estimator = WrenchEstimator(robot, contacts)
            estimates = [estimator.update(sample) for sample in samples]
            found.append([*estimates, estimator.batch(SampleBatch.stack(samples))])
        monkeypatch.undo()
        for got, expected in zip(*found):
            assert_same(got, expected, 1e-12)


# Inputs


def test_arrays_of_other_kinds_are_read_as_their_numbers(nested_humanoid, rng):
    """Another byte order, single precision, columns first, every other row of an array."""
    estimator, sample = WrenchEstimator(nested_humanoid), random_sample(nested_humanoid, rng)
    for name in Sample._fields[1:8]:
        given = getattr(sample, name).astype(np.float32)
        plain = estimator.update(sample._replace(**{name: given.astype(float)}))
        spaced = np.repeat(given, 2, axis=0)[::2]
        for other in (given, given.astype('>f8'), np.asfortranarray(given), spaced):
            changed = sample._replace(**{name: other})
            steps = estimator.update(changed), estimator.batch(SampleBatch.stack([changed])).at(0)
            for found in steps:
                np.testing.assert_allclose(found.torques, plain.torques, atol=EXACT)
                np.testing.assert_allclose(found.residuals, plain.residuals, atol=EXACT)


def test_values_that_cannot_be_used_are_refused(two_link):
    for index, value in ((4, np.nan), (0, 0.0), (0, -1e-9)):
        parameters = two_link.parameters.copy()
        parameters[1, index] = value
        with pytest.raises(ModelError):
            WrenchEstimator(two_link.with_parameters(parameters))
    for options in ({'length_scale': -1.0}, {'rank_tolerance': np.nan}, {'calibration': 'x'}):
        with pytest.raises(InertialEstimationError):
            WrenchEstimator(two_link, (), **options)
    for options in (
        {'kind': 'push'}, {'point': (0, np.nan, 0)}, {'point': (0.0, 0.0)}, {'direction': (0,) * 3}
    ):  # fmt: skip
        with pytest.raises((ModelError, ShapeError)):
            Contact('hand', **options)


def test_wrong_samples_and_contacts_do_not_spoil_the_next(nested_humanoid, rng):
    estimator = WrenchEstimator(nested_humanoid, at_roots(nested_humanoid))
    sample = random_sample(nested_humanoid, rng)
    before, batch = estimator.update(sample), SampleBatch.stack([sample, sample])
    for given in (sample._replace(positions=np.zeros(1)), batch):
        with pytest.raises(InertialEstimationError):
            estimator.update(given)
    for method, given in ((estimator.update, sample), (estimator.batch, batch)):
        with pytest.raises(NameNotFound):
            method(given, (Contact('hand'), Contact('hnd')))
        with pytest.raises(InertialEstimationError):
            method(given, ['sole'])
    with pytest.raises(NameNotFound):
        InternalWrenches(estimator).frames(['elbo'])
    assert_same(estimator.update(sample), before)


@pytest.mark.filterwarnings('error')
@pytest.mark.parametrize('name', ['velocities', 'ft_readings', 'positions'])
def test_absurd_numbers_count_as_missing(name, nested_humanoid, rng):
    estimator = WrenchEstimator(nested_humanoid, [Contact('sole'), Contact('hand')])
    sample, found = random_sample(nested_humanoid, rng), []
    for value in (1e200, np.nan):
        array = np.array(getattr(sample, name))
        array.flat[2] = value
        found.append(estimator.update(sample._replace(**{name: array})))
    assert_same(*found)
