# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Masses at points identify a humanoid from its base link as A's do.

A's robot is another one; the relations between methods are compared with A's, not the figures.
"""

import numpy as np
import pytest
from published_experiments.humanoid_experiment import NOISE, icub_experiment
from published_experiments.humanoid_identification import (
    compare,
)

# A's Table V: forces differ by less between (A) and (D), and from least squares.
WITH_AND_WITHOUT, WORSE = 0.05, 0.40
# Root mean squares of 3000 values of noise.
NOISE_ERROR = 0.1


@pytest.fixture(scope='module')
def experiment():
    pytest.importorskip('icub_models')
    pytest.importorskip('clarabel')
    return icub_experiment()


@pytest.fixture(scope='module')
def scores(experiment):
    return compare(experiment)


def test_the_rows_tell_all_base_parameters_of_33_links(experiment):
    assert len(experiment.links) == 33
    assert all(len(grid.points) == 27 and grid.source == 'collision'
               for grid in experiment.grids())  # fmt: skip
    strengths = np.linalg.svd(experiment.problem().factor, compute_uv=False)
    assert strengths[233] > 1e-4 * strengths[0] > 1e6 * strengths[234]


def test_links_are_bodies_in_their_boxes_unlike_those_of_least_squares(scores):
    with_prior, plain, prior, without = scores
    for score in (with_prior, prior, without):
        assert score.consistent == score.inside == 33
    assert plain.consistent < 10 and plain.inside < 33


def test_the_prior_does_not_disturb_the_fit(scores):
    with_prior, plain, prior, without = scores
    for one, other in ((with_prior.seen, without.seen), (with_prior.unseen, without.unseen)):
        assert np.abs(one / other - 1.0).max() < WITH_AND_WITHOUT
    assert (with_prior.unseen < (1.0 + WORSE) * plain.unseen).all()
    # What the prior does not know of weighs, as in A's table, most in the vertical force.
    assert prior.unseen[2] > 10.0 * with_prior.unseen[2]


def test_a_motion_that_was_not_used_is_predicted_to_its_noise(scores):
    with_prior, plain, _, _ = scores
    np.testing.assert_allclose(with_prior.unseen, NOISE, rtol=NOISE_ERROR)
    assert (with_prior.exact < plain.exact).all()


def test_masses_come_nearer_than_the_prior_and_with_it_nearest(scores):
    with_prior, plain, prior, without = scores
    assert with_prior.mass_error < min(plain.mass_error, prior.mass_error, without.mass_error)
