# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples and batches of them."""

import numpy as np
import pytest
from robots import random_sample

from inertial_estimation.errors import ModelError
from inertial_estimation.sample import SampleBatch

STAMP_NS = 1_700_000_000_123_456_789


@pytest.fixture
def samples(nested_humanoid, rng):
    made = [random_sample(nested_humanoid, rng) for _ in range(7)]
    return [sample._replace(stamp_ns=STAMP_NS + k) for k, sample in enumerate(made)]


def with_options(sample):
    n, m, k = (len(a) for a in (sample.positions, sample.angular_velocities, sample.ft_readings))
    states = [np.zeros(size, dtype=np.uint8) for size in (n, m, k)]
    return sample._replace(
        joint_states=states[0], imu_states=states[1], ft_states=states[2], efforts=np.ones(n)
    )


def assert_equal(got, expected):
    assert got.stamp_ns == expected.stamp_ns and isinstance(got.stamp_ns, int)
    for a, b in zip(got[1:], expected[1:], strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize('optional', [False, True])
def test_stacking_indexing_and_taking(samples, optional):
    samples = [with_options(s) for s in samples] if optional else samples
    batch = SampleBatch.stack(samples)
    assert len(batch) == len(list(batch)) == 7
    for k in range(-7, 7):
        assert_equal(batch[k], samples[k])
    for taken in (slice(1, 4), slice(None, None, 2), np.array([5, 0])):
        part, expected = batch.take(taken), np.arange(7)[taken]
        assert len(part) == len(expected)
        for sample, k in zip(part, expected):
            assert_equal(sample, samples[k])
    samples[0].positions[:] = 100.0
    assert (batch[0].positions != 100.0).all()
    assert np.shares_memory(batch[0].positions, batch.positions)


def test_an_optional_field_that_one_sample_lacks_is_left_out(samples):
    mixed = [with_options(samples[0]), with_options(samples[1])._replace(efforts=None)]
    batch = SampleBatch.stack(mixed)
    assert batch.efforts is None and batch.joint_states is not None
    with pytest.raises(ModelError):
        SampleBatch.stack([])
