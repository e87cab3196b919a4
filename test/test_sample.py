# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Samples and batches of them.

Not covered: how samples come about (test_streams.py).
"""

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from robots import random_sample

from inertial_estimation.errors import ModelError
from inertial_estimation.sample import Sample, SampleBatch, SensorState


@pytest.fixture
def samples(nested_humanoid, rng):
    return [random_sample(nested_humanoid, rng) for _ in range(7)]


def with_options(sample):
    n, m, k = (len(a) for a in (sample.positions, sample.angular_velocities, sample.ft_readings))
    states = [np.zeros(size, dtype=np.uint8) for size in (n, m, k)]
    return sample._replace(
        joint_states=states[0], imu_states=states[1], ft_states=states[2], efforts=np.ones(n)
    )


def assert_equal(got, expected):
    assert got.stamp_ns == expected.stamp_ns
    for a, b in zip(got[1:], expected[1:], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


def test_sample_and_batch_have_the_same_fields():
    assert Sample._fields == tuple(field.name for field in fields(SampleBatch))


@pytest.mark.parametrize('optional', [False, True])
def test_stacking_and_taking_apart(samples, optional):
    samples = [with_options(s) for s in samples] if optional else samples
    batch = SampleBatch.stack(samples)
    assert len(batch) == 7
    assert batch.stamp_ns.dtype == np.int64
    for k in range(-7, 7):
        assert isinstance(batch[k].stamp_ns, int)
        assert_equal(batch[k], samples[k])


def test_an_optional_field_that_one_sample_lacks_is_left_out(samples):
    mixed = [with_options(samples[0]), with_options(samples[1])._replace(efforts=None)]
    batch = SampleBatch.stack(mixed)
    assert batch.efforts is None
    assert batch.joint_states is not None


def test_large_stamps_keep_every_nanosecond(samples):
    stamp = 1_700_000_000_123_456_789
    assert SampleBatch.stack([samples[0]._replace(stamp_ns=stamp)])[0].stamp_ns == stamp


def test_stacking_copies_and_indexing_does_not(samples):
    batch = SampleBatch.stack(samples)
    samples[0].positions[:] = 100.0
    assert (batch[0].positions != 100.0).all()
    assert np.shares_memory(batch[0].positions, batch.positions)


def test_taking_some_instants(samples):
    batch = SampleBatch.stack(samples)
    for rows in (slice(1, 4), slice(None, None, 2), np.array([5, 0])):
        part = batch.take(rows)
        expected = [samples[k] for k in np.arange(7)[rows]]
        assert len(part) == len(expected)
        for k, sample in enumerate(expected):
            assert_equal(part[k], sample)


def test_past_the_end(samples):
    with pytest.raises(IndexError):
        SampleBatch.stack(samples)[7]


def test_iteration_ends(samples):
    assert len(list(SampleBatch.stack(samples))) == 7


def test_no_samples_at_all():
    with pytest.raises(ModelError):
        SampleBatch.stack([])


def test_a_batch_keeps_its_fields(samples):
    with pytest.raises(FrozenInstanceError):
        SampleBatch.stack(samples).positions = np.zeros(3)


def test_states_are_ordered_as_documented():
    assert [state.name for state in sorted(SensorState)] == [
        'FRESH',
        'ASSUMED',
        'ABSENT',
        'STALE',
        'FROZEN',
        'INVALID',
        'WARMING',
        'PARTIAL',
    ]
