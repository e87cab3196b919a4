# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Simulated tools at an FT sensor: always bodies that could exist, errors beside least squares.

Not covered: the fourteen tools that the data set does not have; masses at points.
"""

import numpy as np
import pytest
from published_experiments.tools_data import FILES, LEVELS, TOOLS, Body, ball
from published_experiments.tools_experiment import (
    DEFAULT,
    METHODS,
    NOISY,
    ONE_ROW,
    ONE_ROW_PLACED,
    ORDINARY,
    WEIGHTED,
    Score,
    weigh,
    worse,
)
from shared_data import SHARED

from inertial_estimation.model.inertia import consistency_margin

DATA = SHARED / 'data'
needs_data = pytest.mark.skipif(
    not all((DATA / name).exists() for name in FILES), reason='needs ../shared/data'
)
# Enough for a standard error; the command takes twenty.
DRAWS = 6
ROUND_OFF = 1e-12


@pytest.fixture(scope='module')
def scores():
    pytest.importorskip('clarabel')
    return {(s.tool, s.level, s.method): s for s in weigh(DATA, DRAWS)}


@needs_data
@pytest.mark.parametrize('method', [ORDINARY, WEIGHTED, DEFAULT, ONE_ROW, ONE_ROW_PLACED])
def test_without_noise_the_truth_is_found(scores, method):
    for tool in TOOLS:
        limit = 1e-9 if method in (ORDINARY, WEIGHTED) else 1e-6
        assert scores[tool, 'none', method].errors.max() <= limit


@needs_data
def test_answers_are_always_consistent_but_for_least_squares(scores):
    for (_, level, method), score in scores.items():
        assert len(score.consistent) == (DRAWS if LEVELS[level] else 1)
        if METHODS[method].consistent:
            assert score.consistent.all()
    for method in (ORDINARY, WEIGHTED):
        noisy = [scores[tool, level, method].consistent for tool in TOOLS for level in NOISY]
        assert np.mean(noisy) < 0.3


@needs_data
def test_errors_are_no_worse_than_those_of_least_squares(scores):
    assert not worse(scores, ONE_ROW, ORDINARY).cases
    for reference in (ORDINARY, WEIGHTED):
        assert not worse(scores, ONE_ROW_PLACED, reference).cases


def test_a_body_is_its_parameters(rng):
    body = ball(0.7, rng.normal(size=3), 0.2)
    assert consistency_margin(body.parameters) > 0
    np.testing.assert_allclose(Body.of(body.parameters).errors(body), 0.0, atol=ROUND_OFF)
    shift = np.array([0.0, 0.3, 0.4])
    other = Body(1.4, body.center + shift, 3.0 * body.inertia)
    np.testing.assert_allclose(other.errors(body), [1.0, 0.5, 2.0], rtol=ROUND_OFF)


def test_worse_is_what_no_chance_explains(rng):
    def score(tool, level, method, errors):
        flags = np.ones(len(errors), dtype=bool)
        return Score(tool, level, method, flags, flags, 1.0, errors)

    scores = {}
    for tool in TOOLS:
        for level in NOISY:
            errors = 1.0 + 0.1 * rng.uniform(size=(20, 3))
            near = errors + 0.01 * rng.choice([-1.0, 1.0], size=20)[rng.permutation(20)][:, None]
            scores[tool, level, 'a'] = score(tool, level, 'a', errors)
            scores[tool, level, 'b'] = score(tool, level, 'b', near - near.mean() + errors.mean())
    assert worse(scores, 'b', 'a').text == '0 of 54'
    twice = score('ruler', 'high', 'b', scores['ruler', 'high', 'a'].errors * [1.0, 1.0, 2.0])
    found = worse(scores | {('ruler', 'high', 'b'): twice}, 'b', 'a')
    assert found.text == '1 of 54, 2 times at most (inertia, ruler, high)'
