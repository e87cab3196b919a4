# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Touches that do not end, at the edges of what a fit leaves out.

Not covered: what is said of them, and a real log, which are in test_calibrate_from_model.py.
"""

import numpy as np
import pytest

from inertial_estimation.calibration.affine_types import AffineSettings
from inertial_estimation.calibration.lasting_steps import lasting_steps

N, RATE = 1000, 100.0
TIMES = np.arange(N) / RATE
LEFT_OUT = slice(400, 460)
STEP = np.array([-20.0, 12.0, 0.0, 0.4, -0.8, 0.0])
NOISE = np.repeat([0.15, 0.007], 3)


def found(beyond, predicted, used, **settings):
    return lasting_steps(TIMES, beyond, predicted, used, AffineSettings(**settings))


@pytest.fixture
def used():
    mask = np.ones(N, dtype=bool)
    mask[LEFT_OUT] = False
    return mask


@pytest.fixture
def load():
    """Return a load that swings from 30 N along one axis to 30 N along another in ten seconds."""
    angle = np.linspace(0.0, np.pi / 2.0, N)
    wrenches = np.zeros((N, 6))
    wrenches[:, 1], wrenches[:, 2] = 30.0 * np.cos(angle), 30.0 * np.sin(angle)
    return wrenches


def test_what_stays_after_what_was_left_out_is_found(rng, used, load):
    beyond = NOISE * rng.normal(size=(N, 6))
    beyond[430:] += STEP
    (step,) = found(beyond, load, used)
    assert (step.start, step.stop) == (TIMES[399], TIMES[460])
    # Two means of fifty samples.
    np.testing.assert_allclose(step.change, STEP, atol=5.0 * NOISE.max() * np.sqrt(2.0 / 50.0))
    assert step.size == pytest.approx(np.linalg.norm(STEP / np.repeat([1.0, 0.1], 3)), rel=0.02)
    # From the middle of one half second to that of the other, 1.1 s of 90 degrees in 10 s.
    assert step.load == pytest.approx(60.0 * np.sin(0.11 * np.pi / 4.0), rel=0.02)


def test_a_touch_that_ends_leaves_no_step(rng, used, load):
    beyond = NOISE * rng.normal(size=(N, 6))
    beyond[LEFT_OUT] += STEP
    assert found(beyond, load, used) == ()


def test_a_matrix_that_is_off_makes_none_however_far_the_load_moves(used, load):
    """Its errors are off by up to 0.4 of the load, and go by 12 N across what is left out."""
    swing = load.copy()
    swing[430:] *= -1.0
    off = np.zeros((6, 6))
    off[0, 1], off[1, 1], off[2, 2] = 0.2, 0.3, -0.4
    beyond = swing @ off.T
    assert np.linalg.norm(beyond[460] - beyond[399]) > 12.0
    assert found(beyond, swing, used) == ()
    # The same errors without the load are no matrix's.
    assert len(found(beyond, load, used)) == 1


def test_what_is_smaller_than_a_touch_is_none(used, load):
    beyond = np.zeros((N, 6))
    beyond[430:, 0] = 2.9
    assert found(beyond, 0.0 * load, used) == ()
    assert len(found(beyond, 0.0 * load, used, least_touch=2.8)) == 1


def test_nothing_is_known_at_the_ends_of_a_log_or_beside_little(used, load):
    beyond = np.zeros((N, 6))
    beyond[430:] = STEP
    at_the_end = np.arange(N) < 400
    assert found(beyond, load, at_the_end) == ()
    assert found(beyond, load, ~at_the_end) == ()
    alone = used.copy()
    alone[464:] = False
    assert found(beyond, load, alone) == ()


def test_instants_without_values_are_no_touch(load):
    beyond = np.zeros((N, 6))
    beyond[430:] = STEP
    beyond[LEFT_OUT] = np.nan
    known = np.isfinite(beyond).all(axis=1)
    # Nobody has left anything out, and what happened meanwhile may be anything.
    assert found(beyond, load, known) == ()


def test_each_of_several_is_found(used, load):
    beyond = np.zeros((N, 6))
    beyond[430:700] = STEP
    used[690:710] = False
    there, back = found(beyond, load, used)
    np.testing.assert_allclose(there.change, STEP, atol=1e-12)
    np.testing.assert_allclose(back.change, -STEP, atol=1e-12)
