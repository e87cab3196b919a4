# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Tracked FT offsets, and offsets beside the parameters in use.

Not covered: whole recursions.
"""

from itertools import pairwise

import numpy as np
import pytest
from test_recursion import KINDS, NOISE, log, prior, robot, settings

from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.recursion import offsets as offset_module
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.offsets import (
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
    fitted_offsets,
)
from inertial_estimation.identification.recursion.refit import joint_refit

FORCES = tuple(f'arm.force_{axis}' for axis in 'xyz')
MOMENTS = tuple(f'arm.moment_{axis}' for axis in 'xyz')
NAMES = FORCES + MOMENTS
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13
# A force that is alike in all three coordinates, over one of them.
ALONG = 3**0.5


def offsets(*values):
    """Return offsets of a sensor by their columns."""
    return dict(zip(NAMES, np.broadcast_to(values, 6).tolist(), strict=True))


def force(proposal):
    """Return the force that would be subtracted."""
    return tuple(proposal.values[name] for name in FORCES)


@pytest.fixture
def followed():
    """Return what subtracts ten of each."""
    followed = OffsetTracker(0.1, 0.01)
    first = followed.proposed(offsets(10.0), offsets(0.0), NAMES, 0.0)
    # What is told for the first time is taken at once: it comes with the bodies.
    assert first.values == offsets(10.0)
    followed.take(first, NAMES, 0.0)
    # It has been there for long.
    for _ in range(2):
        followed.take(first, NAMES, MAX_INTERVAL)
    return followed


def test_tracker_follows_at_drift_rate(followed):
    asked = offsets(13.0, 10.0, 6.0, 10.0, 9.0, 10.0)
    found = followed.proposed(asked, asked, NAMES, 2.0)
    # Along the way there: 5 N, 1 Nm.
    assert found.values == pytest.approx(
        offsets(10.12, 10.0, 9.84, 10.0, 9.98, 10.0), abs=ROUND_OFF
    )
    # Nothing is changed by asking.
    assert followed.proposed(asked, asked, NAMES, 2.0) == found
    for _ in range(60):
        followed.take(followed.proposed(asked, asked, NAMES, 2.0), NAMES, 2.0)
    assert followed.values == pytest.approx(asked, abs=ROUND_OFF)
    # Time in which nobody looked is no time in which it drifted at that speed.
    far = offsets(1e6)
    short = followed.proposed(far, far, NAMES, MAX_INTERVAL)
    assert followed.proposed(far, far, NAMES, 1e4) == short
    # Time that was set back is none.
    assert followed.proposed(far, far, NAMES, -5.0).values == pytest.approx(asked, abs=ROUND_OFF)


def test_at_first_it_is_the_mean_of_what_readings_ask_for(rng):
    followed = OffsetTracker(0.0, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for k, values in enumerate(swaying):
        asked = offsets(*values)
        followed.take(followed.proposed(asked, asked, NAMES, 1.0), NAMES, 1.0 if k else 0.0)
    # The first one stands for no time yet.
    expected = offsets(*swaying[1:].mean(axis=0))
    assert followed.values == pytest.approx(expected, abs=ROUND_OFF)
    # After that nothing is followed beyond a drift, here none.
    for _ in range(2):
        before, far = dict(followed.values), offsets(1e3)
        followed.take(followed.proposed(far, far, NAMES, 1.0), NAMES, 1.0)
    assert followed.values == before


def test_what_bodies_change_is_taken_at_once(followed):
    # Beside the bodies so far rows ask for nothing else; beside the new ones for three more.
    found = followed.proposed(offsets(13.0), offsets(10.0), NAMES, 1.0)
    assert found.values == offsets(13.0)
    followed.take(found, NAMES, 1.0)
    # Back again, while somebody pushes, which is hidden no faster than a drift.
    found = followed.proposed(offsets(-10.0), offsets(-7.0), NAMES, 1.0)
    assert force(found) == pytest.approx((10.0 - 0.1 / ALONG,) * 3)


def test_tracker_refuses_parameter_changes_against_readings(followed):
    followed.take(followed.proposed(offsets(13.0), offsets(10.0), NAMES, 1.0), NAMES, 1.0)
    # Beside these bodies rows asked for ten again, were it not for twenty newtons.
    found = followed.proposed(offsets(30.0), offsets(33.0), NAMES, 1.0)
    assert force(found) == pytest.approx((13.0 + 0.1 / ALONG,) * 3)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_swaying_parameters_hide_no_push(followed, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = followed.proposed(
            offsets(*(10.0 + push + after)), offsets(*(10.0 + push + before)), NAMES, 1.0
        )
        followed.take(found, NAMES, 1.0)
    hidden = np.linalg.norm(np.array(force(found)) - 10.0)
    # A drift of 20 s, and from one end of the sways to the other.
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_tracker_moves_load_from_offset_to_parameters(followed):
    # Readings ask for five more, as if somebody pushed, until a body explains them.
    for _ in range(4):
        pushed = followed.proposed(offsets(15.0), offsets(15.0), NAMES, 1.0)
        followed.take(pushed, NAMES, 1.0)
    assert 10.0 < followed.values[FORCES[0]] < 10.5
    found = followed.proposed(offsets(10.0), offsets(15.0), NAMES, 1.0)
    assert found.values == pytest.approx(offsets(10.0), abs=ROUND_OFF)


def test_what_is_not_told_comes_with_bodies_alone(followed):
    found = followed.proposed(offsets(25.0), offsets(20.0), (), 1.0)
    assert found.values == offsets(15.0)
    fresh = OffsetTracker(0.1, 0.01)
    assert fresh.proposed(offsets(25.0), offsets(20.0), FORCES, 1.0).values.keys() == set(FORCES)


def test_what_has_jumped_is_taken_anew_and_a_tare_shifts_it(followed):
    followed.forget(FORCES)
    found = followed.proposed(offsets(20.0), offsets(20.0), NAMES, 1.0)
    assert force(found) == (20.0,) * 3
    assert found.values[MOMENTS[0]] < 10.1
    followed.take(found, NAMES, 1.0)
    followed.recalibrate({FORCES[0]: 20.0, 'leg.force_x': 1.0})
    assert followed.values[FORCES[0]] == 0.0
    assert followed.values[FORCES[1]] == 20.0
    assert 'leg.force_x' not in followed.values


__all__ = ['prior', 'robot']

# Least squares of a thousand rows two ways; offsets are of the size of 10.
SAME = 1e-6
APART = 0.1
"""Of offsets by the rows of one submodel and by those of both beside a sensor [N, Nm]."""
STATED = dict(zip(KINDS, NOISE.tolist(), strict=True))
NOBODY = 10_000
"""Combinations that no rows tell."""


@pytest.fixture(scope='module')
def told(robot, prior):
    """Return an identification that tells no body, its samples, and a refit."""
    samples, _ = log(robot, 4.0)
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior),
        settings(robot, noise=STATED, warm_up=1.0, weight=0.1, excited=NOBODY),
    )
    identifier.add(samples)
    return identifier, samples, identifier.refit()


def test_without_bodies_they_fit_the_description(robot, prior, told):
    """Of two submodels beside a sensor the outer one says its offset."""
    identifier, samples, refit = told
    assert refit.refitted == ()
    np.testing.assert_array_equal(refit.parameters, prior)
    offsets = {}
    rows = list(zip(identifier.builder.blocks, identifier.builder.equations(samples), strict=True))
    for block, kinds in reversed(rows):
        n, names = block.unknowns.n_inertial, block.unknowns.names
        bodies = prior[list(block.submodel.links)].reshape(-1)
        new = [k for k, name in enumerate(names[n:], start=n) if name not in offsets]
        known = [k for k in range(n, len(names)) if k not in new]
        Y, y = [], []
        for kind, part in kinds.items():
            given = part.Y[:, known] @ [offsets[names[k]] for k in known] if known else 0.0
            Y.append(part.Y[:, new] / STATED[kind])
            y.append((part.y - part.Y[:, :n] @ bodies - given) / STATED[kind])
        if new:
            found = np.linalg.lstsq(np.concatenate(Y), np.concatenate(y), rcond=None)[0]
            offsets |= dict(zip([names[k] for k in new], found.tolist(), strict=True))
    for sensor in robot.ft_sensors:
        wanted = [offsets[f'{sensor.name}.{part}'] for part in COMPONENTS]
        # The other submodel counts a thousandth, and offsets are drawn to zero a little.
        np.testing.assert_allclose(refit.offsets[sensor.name], wanted, atol=1e-4)


def test_offset_of_innermost_submodel_counts_at_any_depth(prior, told, monkeypatch):
    identifier, *_ = told
    inner, *outer = (one for one in identifier.memories if one.information is not None)
    beside = next(one for one in outer if set(one.offset_names) & set(inner.offset_names))
    others = [one for one in outer if one is not beside]
    bodies = {
        one.block.submodel.name: prior[list(one.block.submodel.links)] for one in (inner, *others)
    }
    alone = set(inner.offset_names) - {name for one in others for name in one.offset_names}
    assert alone
    found = fitted_offsets([inner, *others], bodies)
    monkeypatch.setattr(offset_module, '_depths', lambda known: [0] + [6] * len(others))
    far = fitted_offsets([inner, *others], bodies)
    for name in alone:
        assert far[name] == pytest.approx(found[name], abs=1e-4)


def test_beside_bodies_that_are_told_they_are_those_of_the_refit(told):
    identifier, _, refit = told
    known = [one for one in identifier.memories if one.information is not None]
    fit = joint_refit(known, 0.1)
    found = fit.offsets
    bodies = {one.memory.block.submodel.name: one.parameters for one in fit.fits}
    # The refit's minimum, which all submodels agree on, is one beside its bodies as well.
    everything = fitted_offsets(known, bodies)
    for name, value in found.items():
        assert everything[name] == pytest.approx(value, abs=APART)
    mixed = {one.block.submodel.name: one.prior for one in known}
    mixed['l_upper_arm'] = bodies['l_upper_arm']
    used = fitted_offsets(known, mixed)
    assert used.keys() == found.keys()
    for name, value in used.items():
        sensor, part = name.split('.')
        # Whatever is told of the trunk and of the other arm.
        if sensor == 'r_arm_ft':
            wanted = refit.offsets[sensor][COMPONENTS.index(part)]
            assert value == pytest.approx(wanted, abs=1e-4)
        elif sensor == 'l_arm_ft':
            assert value == pytest.approx(everything[name], abs=1e-4)
    # With other bodies they were others.
    right = [name for name in found if name.startswith('r_arm_ft.force')]
    assert max(abs(used[name] - found[name]) for name in right) > 0.1
