# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Information state of one submodel, its base parameters with deviations, tracked FT offsets.

The oracles are covariances and least squares written out, in which an offset is one unknown.
Whole recursions are in test_recursion.py.
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from test_recursion import assert_minimum, identify, known_of, settings

from bench.live_robots import equal_parts, smooth_motion, with_readings
from inertial_estimation import Information, RecursionSettings, RecursiveIdentifier, Robot
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.offsets import (
    DRIFT,
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
)
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.unknowns import Term

NOISE, EFFORT_NOISE, FRICTION = 0.02, 0.1, 0.3
# Inverses of random triangles of a few dozen unknowns.
DENSE = 1e-8


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def log(robot, seconds, rate=100.0, seed=0, noise=NOISE, swing=0.8):
    samples = smooth_motion(robot, seconds, rate=rate, seed=seed, swing=swing)
    samples = with_readings(robot, samples, robot.parameters)
    rng = np.random.default_rng(seed)
    samples.ft_readings[:] += 3.0 + noise * rng.normal(size=samples.ft_readings.shape)
    efforts = FRICTION * samples.velocities
    return replace(samples, efforts=efforts + EFFORT_NOISE * rng.normal(size=efforts.shape))


def by_name(identifier, name):
    return next(one for one in identifier.memories if one.name == name)


def test_offsets_walk_by_the_root_of_time_and_equations_fade(robot, rng):
    chosen = settings(robot, force_walk=0.3, half_life=8.0)
    block = EquationBuilder(robot, chosen.equations).blocks[-1]
    known = SubmodelMemory(block, robot.parameters[[*block.submodel.links]], chosen)
    n = len(block.unknowns)
    before = Information.of(rng.normal(size=(3 * n, n)), rng.normal(size=3 * n))

    def covariance():
        return np.linalg.inv(known.information.R.T @ known.information.R)

    known.information = before
    wanted = covariance()
    wanted[known.offsets, known.offsets] += [0.81] * 3 + [0.0081] * 3
    for seconds in (4.0, 0.0, 5.0):
        known.drift(seconds)
    np.testing.assert_allclose(covariance(), wanted, atol=DENSE)
    known.information = before
    for _ in range(4):
        known.absorb(Information.empty(n), known.errors, 2.0)
    faded = known.information
    np.testing.assert_allclose(faded.R.T @ faded.R, 0.5 * before.R.T @ before.R, rtol=1e-10)
    assert faded.count == pytest.approx(0.5 * before.count)
    assert faded.energy == pytest.approx(0.5 * before.energy)
    assert known.seconds == 8.0


def test_single_samples_count_for_time_and_time_set_back_does_not(robot):
    identifier = RecursiveIdentifier(robot, settings(robot, warm_up=3.0, half_life=300.0))
    parts = equal_parts(log(robot, 60.0, rate=1.0), 1.0)
    for part in parts:
        identifier.add(part)
        refit = identifier.refit()
    thigh = by_name(identifier, 'thigh')
    assert thigh.seconds == pytest.approx(60.0, rel=0.05)
    assert 'thigh' in refit.refitted
    assert set(thigh.noise) == set(thigh.block.kinds)
    # A pause of an hour is no time with equations, and the way back strengthens no old ones.
    late = parts[-1].take(slice(0, 1))
    for hours in (3_600_000_000_000, -3_600_500_000_000):
        late.stamp_ns[:] += hours
        before, count = thigh.seconds, thigh.information.count
        identifier.add(late)
        assert 0.0 <= thigh.seconds - before <= 1.0
        assert thigh.information.count <= count + len(thigh.block.kinds)
        assert identifier.stamp_ns == int(late.stamp_ns[-1])


def with_efforts(arm, **others):
    choice = EquationChoice(efforts=arm.joint_names, friction=(Term.VISCOUS,))
    return RecursiveIdentifier(arm, RecursionSettings(choice, **others))


def test_efforts_that_come_late_are_used(arm):
    samples = log(arm, 24.0)
    samples.efforts[:800, arm.joint_names.index('elbow')] = np.nan
    identifier = with_efforts(arm, half_life=600.0, gate=4.0, warm_up=3.0)
    base = by_name(identifier, 'base')
    for k, part in enumerate(equal_parts(samples, 1.0)):
        identifier.add(part)
        identifier.refit()
        assert ('effort elbow' in base.noise) == (k >= 8)
    assert base.noise['effort elbow'] < 3 * base.noise['effort shoulder']
    assert np.isfinite(base.scales).all()


def test_refit_with_friction_is_the_minimum_with_its_prior(arm):
    identifier, samples = with_efforts(arm), log(arm, 4.0)
    identifier.add(samples)
    base = by_name(identifier, 'base')
    # As large as all of the effort at 1 rad/s.
    kinds = next(own for own in identifier.builder.equations(samples) if 'effort elbow' in own)
    sizes = [np.sqrt(np.mean(kinds[f'effort {name}'].y ** 2)) for name in arm.joint_names]
    np.testing.assert_allclose(base.scales, sizes, rtol=DENSE)
    # Larger scales would not show.
    base.scales = 0.1 * base.scales
    found = joint_refit(known_of(identifier), 0.1)
    assert_minimum(found, 0.1, np.random.default_rng(0), size=3e-5)


@pytest.mark.parametrize(('gate', 'over'), [(2.0, 1.15), (4.0, 0.85)])
def test_equations_are_rejected_from_the_gate_times_their_noise(robot, gate, over):
    identifier = RecursiveIdentifier(robot, settings(robot, gate=gate))
    samples = log(robot, 5.0)
    loud = samples.ft_readings[400:]
    # White noise is no offset that jumps, only larger than usual.
    sensor = [s.name for s in robot.ft_sensors].index('arm_sensor')
    more = np.random.default_rng(1).normal(size=(len(loud), 6))
    loud[:, sensor] += NOISE * np.sqrt((over * gate) ** 2 - 1.0) * more
    changes = [change for part in equal_parts(samples, 1.0) for change in identifier.add(part)]
    assert changes == ([('upper_arm', Change.TOUCHED)] if over > 1.0 else [])


def test_base_deviations_are_those_of_all_submodels(robot):
    identifier = identify(robot, robot.parameters, log(robot, 10.0))
    identifier.refit()
    known, values = known_of(identifier), identifier.base_values()
    names = list(dict.fromkeys(name for one in known for name in one.block.unknowns.names))
    columns = [[names.index(name) for name in one.block.unknowns.names] for one in known]
    rows = [np.zeros((one.information.n, len(names))) for one in known]
    for one, own, part in zip(known, columns, rows, strict=True):
        part[:, own] = one.information.R
    stacked = np.vstack(rows)
    scales = np.linalg.norm(stacked, axis=0)
    scales[scales == 0.0] = 1.0
    root = np.linalg.pinv(stacked / scales, rcond=1e-9) / scales[:, None]
    for one, own in zip(known, columns, strict=True):
        found, unknowns = values[one.name], one.block.unknowns.names
        determined = np.isfinite(found.deviations)
        assert determined.sum() == found.rank > 10
        grouping = identifier._bases[one.name][0].grouping
        assert len(found.names) == len(grouping) and grouping.shape[1] == len(unknowns)
        wanted = np.linalg.norm(grouping @ root[own], axis=1)
        np.testing.assert_allclose(found.deviations[determined], wanted[determined], rtol=1e-6)
    # At rest, in one pose, a weight and an offset are the same.
    identifier = identify(robot, robot.parameters, log(robot, 6.0, swing=0.0))
    identifier.refit()
    values = identifier.base_values()
    assert len(values) == 3
    for one in values.values():
        assert np.isinf(one.deviations).all()
        assert 0 < one.rank < len(one.names)


# ---- Tracked offsets

ALL = np.ones(6, dtype=bool)
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13


@pytest.fixture
def tracker():
    """Return a tracker that has subtracted ten of each for long."""
    tracker, ten = OffsetTracker(6, 0.1 / DRIFT), np.full(6, 10.0)
    first = tracker.proposed(ten, np.zeros(6), ALL, 0.0)
    # Offsets that are determined for the first time are taken at once.
    assert (first.values == 10.0).all()
    for seconds in (0.0, MAX_INTERVAL, MAX_INTERVAL):
        tracker.now = tracker.proposed(ten, ten, ALL, seconds)
    return tracker


def ask(tracker, found, before, seconds=1.0, determined=ALL):
    """Return what is proposed, and take it."""
    pair = np.broadcast_to(found, 6), np.broadcast_to(before, 6)
    tracker.now = tracker.proposed(*pair, determined, seconds)
    return tracker.now.values


def test_tracker_follows_at_drift_rate(tracker):
    asked = np.array([13.0, 10.0, 6.0, 10.0, 9.0, 10.0])
    # Along the way there: 5 N, 1 Nm.
    wanted = [10.12, 10.0, 9.84, 10.0, 9.98, 10.0]
    # A proposal changes nothing.
    for _ in range(2):
        found = tracker.proposed(asked, asked, ALL, 2.0).values
        np.testing.assert_allclose(found, wanted, atol=ROUND_OFF)
    for _ in range(60):
        ask(tracker, asked, asked, 2.0)
    np.testing.assert_allclose(tracker.now.values, asked, atol=ROUND_OFF)
    # Long intervals count as MAX_INTERVAL, time set back as none.
    far = np.full(6, 1e6)
    short, long, back = (
        tracker.proposed(far, far, ALL, seconds).values for seconds in (MAX_INTERVAL, 1e4, -5.0)
    )
    np.testing.assert_array_equal(long, short)
    np.testing.assert_allclose(back, asked, atol=ROUND_OFF)


def test_tracker_begins_with_the_mean(rng):
    tracker = OffsetTracker(6, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for values in swaying:
        ask(tracker, values, values)
    # The first one counts for no time yet.
    np.testing.assert_allclose(tracker.now.values, swaying[1:].mean(axis=0), atol=ROUND_OFF)
    for _ in range(2):
        before = tracker.now.values
        ask(tracker, 1e3, 1e3)
    np.testing.assert_array_equal(tracker.now.values, before)


def test_tracker_takes_what_parameters_change(tracker):
    np.testing.assert_array_equal(ask(tracker, 13.0, 10.0), 13.0)
    # Back again while a push acts, which is hidden no faster than a drift; but not away from the
    # readings.
    for found, before, sign in ((-10.0, -7.0, -1.0), (30.0, 33.0, 1.0)):
        pair = np.full(6, found), np.full(6, before)
        values = tracker.proposed(*pair, ALL, 1.0).values
        start = 10.0 if sign < 0.0 else 13.0
        np.testing.assert_allclose(values[:3], start + sign * 0.1 / 3**0.5)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_swaying_parameters_hide_no_push(tracker, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = ask(tracker, 10.0 + push + after, 10.0 + push + before)
    # A drift of 20 s, and from one end of the sways to the other.
    hidden = np.linalg.norm(found[:3] - 10.0)
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_offsets_that_are_forgotten_or_without_equations(tracker):
    tracker.forget(np.arange(3))
    found = ask(tracker, 20.0, 20.0)
    np.testing.assert_array_equal(found[:3], 20.0)
    assert (found[3:] < 10.1).all()
    # What is not determined changes with parameters only.
    np.testing.assert_array_equal(ask(tracker, 25.0, 20.0, determined=~ALL), found + 5.0)
    found, nothing = tracker.now.values, np.full(6, np.nan)
    np.testing.assert_array_equal(ask(tracker, nothing, nothing, determined=~ALL), found)
