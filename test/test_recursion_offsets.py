# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tracked FT offsets, and offsets beside the parameters in use; not covered: whole recursions."""

from itertools import pairwise

import numpy as np
import pytest
from test_recursion import KINDS, NOISE, log, settings
from test_recursion import prior as prior
from test_recursion import robot as robot

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.offsets import (
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
    calibration_shift,
)
from inertial_estimation.model.ft_calibration import FtCalibration

FORCES = tuple(f'arm.force_{axis}' for axis in 'xyz')
NAMES = FORCES + tuple(f'arm.moment_{axis}' for axis in 'xyz')
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13


def offsets(*values):
    """Return offsets of a sensor by their columns."""
    return dict(zip(NAMES, np.broadcast_to(values, 6).tolist(), strict=True))


def force(proposal):
    return tuple(proposal.values[name] for name in FORCES)


@pytest.fixture
def tracker():
    """Return a tracker that has subtracted ten of each for long."""
    tracker = OffsetTracker(0.1, 0.01)
    first = tracker.proposed(offsets(10.0), offsets(0.0), NAMES, 0.0)
    # Offsets that are determined for the first time are taken at once.
    assert first.values == offsets(10.0)
    for seconds in (0.0, MAX_INTERVAL, MAX_INTERVAL):
        tracker.take(first, NAMES, seconds)
    return tracker


def ask(tracker, found, before, seconds=1.0):
    """Return a proposal and take it."""
    proposal = tracker.proposed(offsets(*found), offsets(*before), NAMES, seconds)
    tracker.take(proposal, NAMES, seconds)
    return proposal


def test_tracker_follows_at_drift_rate(tracker):
    asked = offsets(13.0, 10.0, 6.0, 10.0, 9.0, 10.0)
    found = tracker.proposed(asked, asked, NAMES, 2.0)
    # Along the way there: 5 N, 1 Nm.
    wanted = offsets(10.12, 10.0, 9.84, 10.0, 9.98, 10.0)
    assert found.values == pytest.approx(wanted, abs=ROUND_OFF)
    # A proposal changes nothing.
    assert tracker.proposed(asked, asked, NAMES, 2.0) == found
    for _ in range(60):
        tracker.take(tracker.proposed(asked, asked, NAMES, 2.0), NAMES, 2.0)
    assert tracker.values == pytest.approx(asked, abs=ROUND_OFF)
    # Long intervals count as MAX_INTERVAL, time set back as none.
    far = offsets(1e6)
    short = tracker.proposed(far, far, NAMES, MAX_INTERVAL)
    assert tracker.proposed(far, far, NAMES, 1e4) == short
    assert tracker.proposed(far, far, NAMES, -5.0).values == pytest.approx(asked, abs=ROUND_OFF)


def test_tracker_begins_with_the_mean(rng):
    tracker = OffsetTracker(0.0, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for k, values in enumerate(swaying):
        asked = offsets(*values)
        tracker.take(tracker.proposed(asked, asked, NAMES, 1.0), NAMES, 1.0 if k else 0.0)
    # The first one counts for no time yet.
    assert tracker.values == pytest.approx(offsets(*swaying[1:].mean(axis=0)), abs=ROUND_OFF)
    for _ in range(2):
        before = dict(tracker.values)
        ask(tracker, (1e3,), (1e3,))
    assert tracker.values == before


def test_tracker_takes_what_parameters_change(tracker):
    assert ask(tracker, (13.0,), (10.0,)).values == offsets(13.0)
    # Back again while a push acts, which is hidden no faster than a drift.
    found = tracker.proposed(offsets(-10.0), offsets(-7.0), NAMES, 1.0)
    assert force(found) == pytest.approx((10.0 - 0.1 / 3**0.5,) * 3)
    # But not away from the readings.
    found = tracker.proposed(offsets(30.0), offsets(33.0), NAMES, 1.0)
    assert force(found) == pytest.approx((13.0 + 0.1 / 3**0.5,) * 3)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_swaying_parameters_hide_no_push(tracker, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = ask(tracker, 10.0 + push + after, 10.0 + push + before)
    hidden = np.linalg.norm(np.array(force(found)) - 10.0)
    # A drift of 20 s, and from one end of the sways to the other.
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_tracker_moves_load_from_offset_to_parameters(tracker):
    # Readings ask for five more, as if pushed, until parameters explain them.
    for _ in range(4):
        ask(tracker, (15.0,), (15.0,))
    assert 10.0 < tracker.values[FORCES[0]] < 10.5
    found = tracker.proposed(offsets(10.0), offsets(15.0), NAMES, 1.0)
    assert found.values == pytest.approx(offsets(10.0), abs=ROUND_OFF)


def test_undetermined_offsets_change_with_parameters_only(tracker):
    found = tracker.proposed(offsets(25.0), offsets(20.0), (), 1.0)
    assert found.values == offsets(15.0)
    fresh = OffsetTracker(0.1, 0.01)
    assert fresh.proposed(offsets(25.0), offsets(20.0), FORCES, 1.0).values.keys() == set(FORCES)


def test_tracker_starts_again_after_a_jump_and_a_tare_shifts_it(tracker):
    tracker.forget(FORCES)
    found = ask(tracker, (20.0,), (20.0,))
    assert force(found) == (20.0,) * 3
    assert found.values[NAMES[3]] < 10.1
    tracker.recalibrate({FORCES[0]: 20.0, 'leg.force_x': 1.0})
    assert [tracker.values[name] for name in FORCES[:2]] == [0.0, 20.0]
    assert 'leg.force_x' not in tracker.values


def test_a_reference_temperature_is_an_offset(robot, rng):
    """A reading above it is a drift: what is subtracted at any temperature changes alike."""
    n = len(robot.ft_sensors)
    given = np.eye(6) * np.ones((n, 1, 1)), rng.normal(size=(n, 6)), rng.normal(size=(n, 6))
    before, after = (FtCalibration(*given, rng.uniform(20.0, 40.0, n)) for _ in range(2))
    raw, temperatures = rng.normal(size=(n, 6)), rng.uniform(10.0, 50.0, n)
    change = before.apply(raw, temperatures) - after.apply(raw, temperatures)
    for block in EquationBuilder(robot, settings(robot).equations).blocks:
        names = [
            block.unknowns.names[k] for k in range(block.unknowns.n_inertial, len(block.unknowns))
        ]
        wanted = [
            change[k, COMPONENTS.index(name.rpartition('.')[2])]
            for name in names
            for k, sensor in enumerate(robot.ft_sensors) if sensor.name == name.rpartition('.')[0]
        ]  # fmt: skip
        found = calibration_shift(robot, before, after, block)
        np.testing.assert_allclose(found, wanted, atol=ROUND_OFF * 1e2)


STATED = dict(zip(KINDS, NOISE.tolist(), strict=True))


@pytest.fixture(scope='module')
def held(robot, prior):
    """Return an identifier that keeps the prior, its samples, and a refit."""
    samples, _ = log(robot, 4.0)
    chosen = settings(robot, noise=STATED, warm_up=1.0, weight=0.1, excited=10_000)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(samples)
    return identifier, samples, identifier.refit()


def test_offsets_fit_the_prior_from_the_outside_in(robot, prior, held):
    identifier, samples, refit = held
    assert refit.refitted == ()
    np.testing.assert_array_equal(refit.parameters, prior)
    offsets, blocks = {}, identifier.builder.blocks
    for block, kinds in reversed([*zip(blocks, identifier.builder.equations(samples))]):
        n, names = block.unknowns.n_inertial, block.unknowns.names
        parameters = prior[list(block.submodel.links)].reshape(-1)
        new = [k for k, name in enumerate(names[n:], start=n) if name not in offsets]
        known = [k for k in range(n, len(names)) if k not in new]
        Y, y = [], []
        for kind, part in kinds.items():
            given = part.Y[:, known] @ [offsets[names[k]] for k in known] if known else 0.0
            Y.append(part.Y[:, new] / STATED[kind])
            y.append((part.y - part.Y[:, :n] @ parameters - given) / STATED[kind])
        if new:
            found = np.linalg.lstsq(np.concatenate(Y), np.concatenate(y), rcond=None)[0]
            offsets |= dict(zip([names[k] for k in new], found.tolist(), strict=True))
    for sensor in robot.ft_sensors:
        wanted = [offsets[f'{sensor.name}.{part}'] for part in COMPONENTS]
        # The inner submodel counts a thousandth, and the weak prior a little.
        np.testing.assert_allclose(refit.offsets[sensor.name], wanted, atol=1e-4)
