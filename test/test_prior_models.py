# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that stand for the entropic divergence near some bodies, against its own differences."""

import numpy as np
import pytest

from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns

STEP = 1e-4
# Differences of second order over STEP: their own error, and round-off over its square.
SMOOTH = 1e-5
WEIGHT = 7.0
UNKNOWNS = Unknowns(('one', 'two'), (Extra('j', Term.VISCOUS), Extra('s', Term.FORCE_X)))
SCALES = np.array([0.5, np.inf])


@pytest.fixture
def prior():
    one = [2.0, 0.1, -0.2, 0.3, 0.5, 0.01, 0.4, -0.02, 0.03, 0.3]
    two = [0.4, 0.0, 0.01, 0.02, 0.01, 0.0, 0.012, 0.0, 0.001, 0.008]
    return np.array([one, two])


def moved(prior, z):
    return prior + np.einsum('lij,lj->li', whitening(prior), z)


def quadratic(model, x):
    return 0.5 * np.sum((model.R @ x - model.rho) ** 2)


def test_the_model_has_slope_and_curvature_of_the_divergence(prior, rng):
    at = rng.uniform(-0.35, 0.35, size=(2, 10))
    near = moved(prior, at)
    model = entropic_model(UNKNOWNS, prior, near, SCALES, WEIGHT)
    assert model.count == 0.0

    def divergence(z):
        return WEIGHT * entropic_divergence(moved(prior, z), prior).sum()

    def said(z):
        return quadratic(model, UNKNOWNS.join(moved(prior, z), np.zeros(2)))

    for _ in range(10):
        step = STEP * rng.normal(size=(2, 10))
        for of in (divergence, said):
            ahead, here, behind = (of(at + k * step) for k in (1, 0, -1))
            found = (ahead - behind) / (2 * STEP), (ahead + behind - 2 * here) / STEP**2
            if of is divergence:
                wanted = found
        np.testing.assert_allclose(found[0], wanted[0], rtol=SMOOTH, atol=SMOOTH)
        np.testing.assert_allclose(found[1], wanted[1], rtol=1e-3)


def test_far_from_the_prior_curvature_is_not_that_of_the_prior(prior):
    # A body of twice and one of half the prior's pseudo-inertia.
    for k, share in enumerate((1.0, -0.5)):
        near = prior.copy()
        near[k] *= 1.0 + share
        model = entropic_model(UNKNOWNS, prior, near, SCALES, WEIGHT)
        rows = model.R[:, 10 * k : 10 * k + 10] @ whitening(prior)[k]
        # The Hessian of tr S - log det (1 + S) at S = share 1.
        np.testing.assert_allclose(
            rows.T @ rows, WEIGHT * np.eye(10) / (1.0 + share) ** 2, atol=1e-9 * WEIGHT
        )


def test_bodies_that_could_not_exist_are_taken_for_the_prior(prior):
    near = prior.copy()
    # Its own principal second moment is negative, those of its pseudo-inertia with it.
    near[1] = moved(prior, np.array([np.zeros(10), [-1.5, *[0.0] * 9]]))[1]
    found = entropic_model(UNKNOWNS, prior, near, SCALES, WEIGHT)
    wanted = entropic_model(UNKNOWNS, prior, prior, SCALES, WEIGHT)
    np.testing.assert_allclose(found.R, wanted.R, atol=1e-12 * np.abs(wanted.R).max())
    np.testing.assert_allclose(found.rho, wanted.rho, atol=1e-12 * np.abs(wanted.rho).max())


def test_other_unknowns_are_drawn_to_zero_by_their_scales(prior):
    model = entropic_model(UNKNOWNS, prior, prior, SCALES, WEIGHT)
    x = UNKNOWNS.join(prior, np.array([0.25, 1e6]))
    assert quadratic(model, x) == pytest.approx(WEIGHT * 0.5 * 0.25)
