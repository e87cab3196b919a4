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

from inertial_estimation.errors import ConfigError, InertialEstimationError, LogError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import Gathering, gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.preparation import (
    Preparation,
    derivative,
    folded_back,
    independent_share,
    prepare,
)
from inertial_estimation.identification.priors import PriorRows
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

RATE = 500.0
# What jittering stamps leave of 1 Hz, between which straight lines are drawn.
SMALL = 1e-3
# Share of a velocity or an acceleration by which differences may be off at 4 Hz and 100 Hz.
NEXT_TO_NOTHING = 2e-4
# Of slopes of straight lines: stamps are whole nanoseconds.
STAMPS = 1e-6


def log(t, n_joints=2, n_imus=1, n_fts=1):
    """Return a log of sines of 1 Hz."""
    phase = 2 * np.pi * t[:, None] + np.arange(n_joints)
    nothing = np.full((len(t), n_joints), np.nan)
    turning = 2 * np.pi * t[:, None] + np.arange(3 * n_imus)
    return SampleBatch(
        stamp_ns=np.round(t * 1e9).astype(np.int64) + 10**9,
        positions=np.sin(phase),
        velocities=nothing,
        accelerations=nothing,
        angular_velocities=np.sin(turning).reshape(len(t), n_imus, 3),
        proper_accelerations=np.cos(turning).reshape(len(t), n_imus, 3),
        angular_accelerations=np.full((len(t), n_imus, 3), np.nan),
        ft_readings=np.tile(np.sin(phase[:, :1, None]), (1, n_fts, 6)),
        efforts=np.cos(phase),
    )


def check(found):
    """Hold prepared samples against the sines."""
    t = found.stamp_ns * 1e-9 - 1
    phase = 2 * np.pi * t[:, None] + np.arange(2)
    w = 2 * np.pi
    for ours, true, scale in (
        (found.positions, np.sin(phase), 1),
        (found.velocities, w * np.cos(phase), w),
        (found.accelerations, -(w**2) * np.sin(phase), w**2),
        (found.efforts, np.cos(phase), 1),
        (found.angular_accelerations[:, 0], w * np.cos(w * t[:, None] + np.arange(3)), w),
    ):
        np.testing.assert_allclose(ours / scale, true / scale, rtol=0, atol=SMALL)


@pytest.mark.parametrize('jitter', [0.0, 0.3])
def test_signals_and_their_derivatives_have_no_delay(jitter, rng):
    t = (np.arange(2000) + jitter * rng.uniform(-1, 1, 2000)) / RATE
    found = prepare(log(t), Preparation(cutoff=20.0))
    check(found.samples)
    assert found.stretches == 1
    # The stamps of the last instant that is kept may fall on either side of a recorded one.
    assert abs(found.discarded - 2 * 0.2 * RATE) <= 2


def test_a_gap_is_an_edge_and_short_rests_go(rng):
    t = np.arange(3000) / RATE
    t = np.delete(t, np.s_[1500:1700])
    t = np.delete(t, np.s_[-120:-80])
    found = prepare(log(t), Preparation(cutoff=20.0, largest_gap=0.05))
    check(found.samples)
    assert found.stretches == 2
    late = found.samples.stamp_ns * 1e-9 - 1
    assert not ((late > 3.0 - 0.2) & (late < 3.4 + 0.19)).any()


def test_what_is_missing_spoils_its_surroundings_only(rng):
    raw = log(np.arange(2000) / RATE)
    raw.ft_readings[1000, 0, 2] = np.nan
    found = prepare(raw, Preparation(cutoff=20.0)).samples
    t = found.stamp_ns * 1e-9 - 1
    near = np.abs(t - 2.0) <= 0.2 + 1e-9
    assert (np.isnan(found.ft_readings[:, 0, 2]) == near).all()
    assert np.isfinite(found.ft_readings[:, 0, :2]).all()
    check(found)


def test_fewer_instants_are_the_same_instants(rng):
    raw = log(np.arange(2000) / RATE)
    every = prepare(raw, Preparation(every=7)).samples
    np.testing.assert_array_equal(
        every.accelerations, prepare(raw, Preparation()).samples.accelerations[::7]
    )


def test_measured_velocities_serve_if_asked_for():
    raw = log(np.arange(2000) / RATE)
    raw = replace(raw, velocities=2 * raw.positions)
    found = prepare(raw, Preparation(cutoff=20.0, measured_velocities=True)).samples
    np.testing.assert_allclose(found.velocities, 2 * found.positions, atol=1e-12)


@pytest.mark.parametrize(
    ('how', 'said'),
    [
        ({'cutoff': 20.0, 'every': 10}, ''),
        ({'cutoff': 21.0, 'every': 10}, 'at most 20 Hz'),
        ({'cutoff': 0.0, 'every': 10}, 'cutoff is 0'),
        ({'cutoff': 240.0, 'every': 1}, ''),
    ],
)
def test_what_few_instants_cannot_show_is_told(how, said):
    found = prepare(log(np.arange(2000) / RATE), Preparation())
    assert found.period == pytest.approx(1 / RATE)
    text = folded_back(Preparation(**how), found.period)
    assert said in text
    assert bool(said) == bool(text)


def test_logs_that_cannot_be_filtered_are_refused():
    raw = log(np.arange(2000) / RATE)
    with pytest.raises(ConfigError):
        prepare(raw, Preparation(cutoff=300.0))
    with pytest.raises(LogError):
        prepare(raw.take(slice(0, 100)), Preparation())
    with pytest.raises(LogError):
        prepare(raw.take(np.array([3, 2, 1])), Preparation())
    for bad in ({'cutoff': -1.0}, {'every': 0}, {'largest_gap': 0.0}, {'edges': np.nan}):
        with pytest.raises(ConfigError):
            Preparation(**bad)


def joint_log(t, positions, efforts=None):
    """Return a log of one joint."""
    n = len(t)
    empty = np.zeros((n, 0, 3))
    nothing = np.full((n, 1), np.nan)
    return SampleBatch(
        np.round(t * 1e9).astype(np.int64), positions[:, None], nothing, nothing, empty, empty,
        empty, np.zeros((n, 0, 6)), efforts=None if efforts is None else efforts[:, None],
    )  # fmt: skip


def share_of(found, true):
    """Return by which share of the true signal another is off."""
    return found @ true / (true @ true) - 1.0


def test_derivatives_are_no_lower_than_efforts():
    t, w = np.arange(1000) / 100.0, 2 * np.pi * 4.0
    found = prepare(joint_log(t, np.sin(w * t), -np.sin(w * t)), Preparation()).samples
    # The low pass takes the same of all of them.
    kept = share_of(found.efforts[:, 0], -np.sin(w * found.stamp_ns * 1e-9)) + 1.0
    times = found.stamp_ns * 1e-9
    for ours, true in (
        (found.velocities, w * np.cos(w * times)),
        (found.accelerations, -(w**2) * np.sin(w * times)),
    ):
        assert abs(share_of(ours[:, 0], kept * true)) < NEXT_TO_NOTHING


def test_coulomb_friction_turns_as_slowly_as_filtered_efforts_do():
    t, w = np.arange(8000) / 1000.0, 2 * np.pi * 1.1
    friction = np.sign(np.cos(w * t))
    found = prepare(joint_log(t, np.sin(w * t), friction), Preparation()).samples
    assert found.directions is not None
    # A turn falls between two instants: 1 ms at 40 per second, the slope of the low pass.
    np.testing.assert_allclose(found.directions, found.efforts, rtol=0, atol=0.05)
    assert np.abs(found.directions - np.sign(found.velocities)).max() > 0.9


@pytest.mark.parametrize('at', range(7))
def test_derivatives_are_exact_to_the_sixth_degree(at):
    t = np.arange(9) * 0.5
    found = derivative((t - 1.0)[:, None] ** at, 0.5)
    true = at * (t - 1.0) ** max(at - 1, 0)
    np.testing.assert_allclose(found[:, 0], true, rtol=0, atol=1e-10 * max(true.max(), 1.0))


@pytest.mark.parametrize('cutoff', [1.0, 10.0, 100.0])
def test_what_stands_still_has_no_velocity(cutoff):
    t = np.arange(2000) * 0.001234567
    found = prepare(joint_log(t, np.full(2000, 2.345)), Preparation(cutoff=cutoff)).samples
    assert not found.velocities.any()
    assert not found.accelerations.any()
    assert not found.directions.any()


STEP = 1e-3
LOGS = 60
# Of a standard deviation told from 60 logs; three times 1 / sqrt(2 * 60).
SCATTER = 0.27
# Of values that are equal but for the order of sums.
ROUND_OFF = 1e-9
TERMS = (Term.VISCOUS, Term.OFFSET)


@pytest.fixture(scope='module')
def builder():
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    joint = JointModel(terms=TERMS)
    return EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',), joint=joint))


@pytest.fixture(scope='module')
def motion(builder):
    """Return a log without noise."""
    t = np.arange(5000) * STEP
    q = 0.8 * np.sin(3.1 * t) + 0.5 * np.sin(6.9 * t + 1.0)
    n = len(t)
    empty, nothing = np.zeros((n, 0, 3)), np.full((n, 1), np.nan)
    raw = SampleBatch(
        np.round(t * 1e9).astype(np.int64), q[:, None], nothing, nothing, empty, empty, empty,
        np.zeros((n, 0, 6)), efforts=np.zeros((n, 1)),
    )  # fmt: skip
    found = prepare(raw, Preparation(cutoff=0.0, edges=0.0)).samples
    (rows,) = builder.equations(found)
    x = builder.blocks[0].unknowns.join(builder.robot.parameters, np.array([0.7, 0.2]))
    Y, y, _ = rows['effort elbow']
    return replace(found, efforts=(Y @ x - y)[:, None])


def seen(builder, log, how):
    """Return what a log says."""
    samples = prepare(log, how).samples
    return gather(builder, samples, share=independent_share(how, STEP))


@pytest.mark.parametrize('every', [1, 40, 100])
# A prior of more weight would hold answers together that are as unsure as stated.
@pytest.mark.parametrize(
    ('method', 'options'), [('least_squares', {}), ('entropic', {'weight': PriorRows(0.1)})]
)
def test_deviations_are_those_of_many_logs(builder, motion, every, method, options):
    how = Preparation(every=every)
    values, stated = [], []
    for k in range(LOGS):
        noise = 0.3 * np.random.default_rng(k).normal(size=motion.efforts.shape)
        log = replace(motion, efforts=motion.efforts + noise)
        answer = fit(builder.robot, seen(builder, log, how), method, options).blocks[0].answer
        values.append(answer.x[-len(TERMS) :])
        stated.append(answer.deviations[-len(TERMS) :])
    told = np.sqrt(np.mean(np.square(stated), axis=0))
    np.testing.assert_allclose(told / np.std(values, axis=0), 1.0, rtol=0, atol=SCATTER)


def test_what_every_row_counts_changes_no_fit(builder, motion, rng):
    noisy = replace(motion, efforts=motion.efforts + rng.normal(size=motion.efforts.shape))
    samples = prepare(noisy, Preparation()).samples
    options = {'least_squares': {'noise': 1.0}, 'entropic': {'noise': 1.0, 'weight': 0.01}}
    for method in options:
        whole, part = (
            fit(builder.robot, gather(builder, samples, share=share), method, options[method])
            for share in (1.0, 0.25)
        )
        one, other = whole.blocks[0], part.blocks[0]
        np.testing.assert_allclose(other.answer.x, one.answer.x, rtol=1e-3)
        assert other.evidence.rows == one.evidence.rows
        for kind, residual in one.evidence.residuals(one.answer.x).items():
            assert other.evidence.residuals(one.answer.x)[kind] == pytest.approx(
                residual, rel=ROUND_OFF
            )


def test_shares_of_logs_are_merged(builder, motion):
    one, other = (gather(builder, motion, share=share)[0] for share in (0.5, 0.1))
    both = one.merge(other)
    n = len(motion)
    assert both.rows == {'effort elbow': 2 * n}
    assert both.kinds['effort elbow'].count == pytest.approx(0.6 * n)


@pytest.mark.parametrize('share', [0.0, -1.0, 1.1, np.nan])
def test_a_share_that_is_none_is_refused(builder, motion, share):
    with pytest.raises(InertialEstimationError):
        Gathering(builder).add(motion, share=share)


def test_rows_that_are_far_apart_count_fully():
    assert independent_share(Preparation(cutoff=0.0), STEP) == 1.0
    assert independent_share(Preparation(every=200), STEP) == 1.0
    assert independent_share(Preparation(every=1), STEP) == pytest.approx(
        1.8 * 10 * STEP, rel=0.01
    )
