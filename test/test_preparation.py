# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Filtered logs: delay, gaps, derivatives, and the weight of correlated equations.

Not covered: which cutoff is best for a log.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import two_link_urdf

from inertial_estimation import EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.preparation import (
    Preparation,
    folded_back,
    independent_share,
    prepare,
)
from inertial_estimation.identification.unknowns import Term

RATE = 500.0
# What jittering stamps leave of 1 Hz, between which straight lines are drawn.
SMALL = 1e-3


def joint_log(t, positions, efforts=None):
    """Return a log of joints, (n, n_joints)."""
    nothing = np.full(positions.shape, np.nan)
    empty = np.zeros((len(t), 0, 3))
    return SampleBatch(
        np.round(t * 1e9).astype(np.int64) + 10**9, positions, nothing, nothing, empty, empty,
        empty, np.zeros((len(t), 0, 6)), efforts=efforts,
    )  # fmt: skip


def sines(t):
    """Return a log of two joints, an IMU and an FT sensor that follow sines of 1 Hz."""
    phase = 2 * np.pi * t[:, None] + np.arange(2)
    turning = (2 * np.pi * t[:, None] + np.arange(3))[:, None]
    return replace(
        joint_log(t, np.sin(phase), np.cos(phase)),
        angular_velocities=np.sin(turning),
        proper_accelerations=np.cos(turning),
        angular_accelerations=np.full(turning.shape, np.nan),
        ft_readings=np.tile(np.sin(phase[:, :1, None]), (1, 1, 6)),
    )


def assert_sines(found):
    w, t = 2 * np.pi, (found.stamp_ns * 1e-9 - 1)[:, None]
    phase = w * t + np.arange(2)
    for values, truth in (
        (found.positions, np.sin(phase)),
        (found.velocities / w, np.cos(phase)),
        (found.accelerations / w**2, -np.sin(phase)),
        (found.efforts, np.cos(phase)),
        (found.angular_accelerations[:, 0] / w, np.cos(w * t + np.arange(3))),
    ):
        np.testing.assert_allclose(values, truth, rtol=0, atol=SMALL)


@pytest.mark.parametrize('jitter', [0.0, 0.3])
def test_signals_and_their_derivatives_have_no_delay(jitter, rng):
    t = (np.arange(2000) + jitter * rng.uniform(-1, 1, 2000)) / RATE
    found = prepare(sines(t), Preparation(cutoff=20.0))
    assert_sines(found.samples)
    assert found.period == pytest.approx(1 / RATE, rel=jitter + 1e-9)


def test_edges_short_parts_and_missing_values_are_cut_off():
    t = np.arange(3000) / RATE
    t = np.delete(t, np.s_[1500:1700])
    t = np.delete(t, np.s_[-120:-80])
    raw = sines(t)
    raw.ft_readings[700, 0, 2] = np.nan
    found = prepare(raw, Preparation(cutoff=20.0, largest_gap=0.05)).samples
    assert_sines(found)
    kept = found.stamp_ns * 1e-9 - 1
    assert not ((kept > 3.0 - 0.2) & (kept < 3.4 + 0.19)).any()
    near = np.abs(kept - 700 / RATE) <= 0.2 + 1e-9
    assert (np.isnan(found.ft_readings[:, 0, 2]) == near).all()
    assert np.isfinite(found.ft_readings[:, 0, :2]).all()


def test_decimation_and_measured_velocities():
    raw = sines(np.arange(2000) / RATE)
    found, every = (prepare(raw, Preparation(every=n)).samples for n in (1, 7))
    np.testing.assert_array_equal(every.accelerations, found.accelerations[::7])
    raw = replace(raw, velocities=2 * raw.positions)
    found = prepare(raw, Preparation(measured_velocities=True)).samples
    np.testing.assert_allclose(found.velocities, 2 * found.positions, atol=1e-12)


@pytest.mark.parametrize(
    ('cutoff', 'every', 'folds'), [(20, 10, False), (21, 10, True), (0, 10, True), (240, 1, False)]
)
def test_decimation_below_the_cutoff_folds_back(cutoff, every, folds):
    assert bool(folded_back(Preparation(cutoff=cutoff, every=every), 1 / RATE)) == folds


def test_friction_turns_like_filtered_efforts_and_not_at_rest():
    t, w = np.arange(8000)[:, None] * 0.001000123, 2 * np.pi * 1.1
    moving, still = np.sin(w * t), np.full_like(t, 2.345)
    raw = joint_log(t[:, 0], np.hstack([moving, still]), np.tile(np.sign(np.cos(w * t)), 2))
    found = prepare(raw, Preparation()).samples
    # A turn falls between two samples: 1 ms at 40 per second, the slope of the low pass.
    direction = found.directions[:, 0]
    np.testing.assert_allclose(direction, found.efforts[:, 0], rtol=0, atol=0.05)
    assert np.abs(direction - np.sign(found.velocities[:, 0])).max() > 0.9
    for values in (found.velocities, found.accelerations, found.directions):
        assert not values[:, 1].any()


STEP = 1e-3
LOGS = 60
# Of a standard deviation from 60 logs; three times 1 / sqrt(2 * 60).
SCATTER = 0.27
TERMS = (Term.VISCOUS, Term.OFFSET)


@pytest.fixture(scope='module')
def builder():
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    return EquationBuilder(
        robot, EquationChoice(wrenches=False, efforts=('elbow',), friction=TERMS)
    )


@pytest.fixture(scope='module')
def motion(builder):
    """Return a log without noise."""
    t = np.arange(5000)[:, None] * STEP
    q = 0.8 * np.sin(3.1 * t) + 0.5 * np.sin(6.9 * t + 1.0)
    raw = joint_log(t[:, 0], q, np.zeros_like(q))
    found = prepare(raw, Preparation(cutoff=0.0, edges=0.0)).samples
    Y, y, _ = builder.equations(found)[0]['effort elbow']
    x = builder.blocks[0].unknowns.join(builder.robot.parameters, np.array([0.7, 0.2]))
    return replace(found, efforts=(Y @ x - y)[:, None])


@pytest.mark.parametrize('every', [1, 40, 100])
# A prior of more weight would hold answers together that are as uncertain as stated.
@pytest.mark.parametrize(
    ('method', 'options'), [('least_squares', {}), ('entropic', {'weight': 0.1})]
)
def test_deviations_are_those_of_many_logs(builder, motion, every, method, options):
    how = Preparation(every=every)
    values, stated = [], []
    for k in range(LOGS):
        noise = 0.3 * np.random.default_rng(k).normal(size=motion.efforts.shape)
        samples = prepare(replace(motion, efforts=motion.efforts + noise), how).samples
        evidence = gather(builder, samples, share=independent_share(how, STEP))
        answer = fit(builder.robot, evidence, method, options).blocks[0].answer
        values.append(answer.x[-len(TERMS) :])
        stated.append(answer.deviations[-len(TERMS) :])
    mean = np.sqrt(np.mean(np.square(stated), axis=0))
    np.testing.assert_allclose(mean / np.std(values, axis=0), 1.0, rtol=0, atol=SCATTER)
