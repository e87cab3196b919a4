# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of each kind of equation by reweighting, and equations without noise.

Not covered: correlated noise.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from identification_problems import humanoid_case
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.noise import MIN_RELATIVE_NOISE, noise_levels, spread
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.divergence import pullback_distance, whitening
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

LEVELS = {'force': 2.0, 'moment': 0.05, 'effort': 0.4}
ROWS = {'force': 300, 'moment': 240, 'effort': 15}
FIVE_SIGMA = 5.0
"""Of the estimate of a standard deviation from f rows, which is sure to 1 / sqrt(2 f)."""


def rows_of(rng, n=8):
    """Return rows of each kind with its noise."""
    x = rng.normal(size=n)
    rows = {}
    for kind, level in LEVELS.items():
        Y = rng.normal(size=(ROWS[kind], n)) * level * 3.0
        rows[kind] = (Y, Y @ x + level * rng.normal(size=len(Y)))
    return rows


@pytest.fixture
def kinds(rng):
    """Return the reduced rows of each kind."""
    return {kind: Information.of(*rows) for kind, rows in rows_of(rng).items()}


def test_noise_of_each_kind_is_found(kinds):
    found = noise_levels(kinds)
    assert found.settled
    for kind, level in LEVELS.items():
        error = FIVE_SIGMA / np.sqrt(2.0 * found.freedom[kind])
        assert found.deviations[kind] == pytest.approx(level, rel=error)


def test_rows_that_are_used_up_sum_to_the_rank(kinds):
    found = noise_levels(kinds)
    used = sum(ROWS.values()) - sum(found.freedom.values())
    assert used == pytest.approx(8.0, rel=1e-9)


def test_the_noise_is_not_biased_by_few_rows(rng):
    # 15 rows of which the fit takes several: without counting them the noise came out low.
    squares, naive = [], []
    for _ in range(200):
        found = noise_levels({kind: Information.of(*rows) for kind, rows in rows_of(rng).items()})
        share = found.deviations['effort'] ** 2 / LEVELS['effort'] ** 2
        squares.append(share)
        naive.append(share * found.freedom['effort'] / ROWS['effort'])
    sure = FIVE_SIGMA * np.std(squares) / np.sqrt(len(squares))
    assert np.mean(squares) == pytest.approx(1.0, abs=max(sure, 0.02))
    assert np.mean(naive) < 1.0


def test_merged_rows_are_in_units_of_their_noise(kinds):
    found = noise_levels(kinds)
    x = np.linalg.solve(found.information.R, found.information.rho)
    assert found.information.squared_residual(x) == pytest.approx(
        sum(found.freedom.values()), rel=1e-4
    )


def test_units_of_a_kind_do_not_matter(kinds):
    scaled = {**kinds, 'force': kinds['force'].scaled(1000.0)}
    one, other = noise_levels(kinds), noise_levels(scaled)
    assert other.deviations['force'] == pytest.approx(1000.0 * one.deviations['force'], rel=1e-4)
    assert other.deviations['moment'] == pytest.approx(one.deviations['moment'], rel=1e-4)


def test_unknowns_that_no_row_determines_do_not_matter(rng, kinds):
    wider = {}
    for kind, part in kinds.items():
        R = np.pad(part.R, ((0, 2), (0, 2)))
        wider[kind] = Information(R, np.pad(part.rho, (0, 2)), part.energy, part.count)
    one, other = noise_levels(kinds), noise_levels(wider)
    assert other.deviations == pytest.approx(one.deviations, rel=1e-4)


def test_rows_without_noise_get_a_stated_least(rng):
    x = rng.normal(size=4)
    Y = rng.normal(size=(40, 4))
    found = noise_levels({'exact': Information.of(Y, Y @ x)})
    size = np.sqrt(np.mean((Y @ x) ** 2))
    assert found.deviations['exact'] == pytest.approx(MIN_RELATIVE_NOISE * size)


def test_a_kind_that_the_fit_uses_up_is_named(rng):
    few = Information.of(rng.normal(size=(3, 5)), rng.normal(size=3))
    with pytest.raises(ModelError):
        noise_levels({'wrist': few})


def test_spread_is_the_noise_in_spite_of_outliers(rng):
    residuals = 0.3 * rng.normal(size=(4000, 2)) * [1.0, 10.0]
    residuals[:200] = 1e6
    residuals[200:300] = np.nan
    # Five in a hundred outliers move the median by a few percent.
    np.testing.assert_allclose(spread(residuals), [0.3, 3.0], rtol=0.12)
    assert np.isnan(spread(np.full((3, 2), np.nan))).all()


def test_a_prior_keeps_short_logs_from_fitting_their_noise(rng):
    # 30 rows for 20 unknowns of which a prior knows all but a little.
    prior = Information.of(np.eye(20) / 0.01, np.zeros(20))
    levels = []
    for _ in range(60):
        kinds = {
            kind: Information.of(
                Y := rng.normal(size=(15, 20)), Y @ x + level * rng.normal(size=15)
            )
            for x in [0.01 * rng.normal(size=20)]
            for kind, level in (('force', 2.0), ('moment', 0.5))
        }
        found = noise_levels(kinds, prior=prior)
        levels.append([found.deviations['force'], found.deviations['moment']])
        assert found.information.count == 30.0
    mean = np.sqrt(np.mean(np.square(levels), axis=0))
    # 60 estimates from 15 rows each: sure to 1 / sqrt(2 * 900), times five.
    np.testing.assert_allclose(mean, [2.0, 0.5], rtol=0.12)


def test_a_wrong_prior_does_not_pass_for_noise(rng):
    # Seen from noise as large as the signal, the prior outweighs the rows, and they look like it.
    prior = Information.of(15.0 * np.eye(10), np.zeros(10))
    Y, x = rng.normal(size=(200, 10)), np.ones(10)
    exact = noise_levels({'exact': Information.of(Y, Y @ x)}, prior=prior)
    assert exact.deviations['exact'] <= 2.0 * MIN_RELATIVE_NOISE * np.sqrt(10.0)
    y = Y @ x + 0.1 * rng.normal(size=200)
    noisy = noise_levels({'noisy': Information.of(Y, y)}, prior=prior)
    assert noisy.deviations['noisy'] == pytest.approx(0.1, rel=FIVE_SIGMA / np.sqrt(2.0 * 190))


def test_rows_of_a_prior_are_its_pullback_distance(rng):
    case = humanoid_case(rng)
    rows = entropic_model(case.unknowns, case.prior, case.prior, None, 3.0)
    distance = pullback_distance(case.parameters, case.prior).sum()
    assert 0.5 * rows.squared_residual(case.truth) == pytest.approx(3.0 * distance, rel=1e-9)
    assert rows.count == 0.0


def test_a_kind_of_few_rows_stops_nothing(kinds):
    wide = {
        kind: Information(
            np.pad(part.R, (0, 2)), np.pad(part.rho, (0, 2)), part.energy, part.count
        )
        for kind, part in kinds.items()
    }
    few = Information.of(np.eye(10)[8:], np.ones(2))
    found, without = noise_levels(wide | {'wrist': few}), noise_levels(wide)
    assert found.deviations == pytest.approx(without.deviations)
    assert found.information.count == without.information.count
    (note,) = found.notes
    assert 'wrist' in note

    assert without.notes == ()


def test_few_rows_are_used_where_a_prior_leaves_some(rng, kinds):
    few = Information.of(rng.normal(size=(3, 8)), rng.normal(size=3))
    prior = Information.of(1e3 * np.eye(8), np.zeros(8))
    found = noise_levels(kinds | {'wrist': few}, prior=prior)
    assert 'wrist' in found.deviations
    assert found.notes == ()


INSTANTS = 200
OFF = 0.1
"""Of the prior, in each whitened coordinate."""
REACHED = dict.fromkeys(SOLVERS, 1e-9) | {'mass_points': 10 * MIN_RELATIVE_NOISE}
"""
Relative error. A prior pulls by about its weight times the square of the noise that exact rows are
given, 1e-12 of the signal. Masses at points are held by their regularization, which moves the fit
by about that noise itself.
"""


@pytest.fixture
def arm():
    """Return an arm on a table with a sensor at its wrist."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


@pytest.fixture
def exact(arm, rng):
    """Return evidence of each submodel without noise, with its truth."""
    q, v, a = rng.normal(size=(3, INSTANTS, 3))
    none = np.zeros((INSTANTS, 0, 3))
    samples = SampleBatch(
        np.arange(1, INSTANTS + 1), q, v, a, none, none, none, np.zeros((INSTANTS, 1, 6)),
        efforts=np.zeros((INSTANTS, 3)),
    )  # fmt: skip
    found = []
    for one in gather(EquationBuilder(arm, EquationChoice(efforts=arm.joint_names)), samples):
        prior = arm.parameters[list(one.block.submodel.links)]
        moves = OFF * rng.normal(size=(len(prior), 10, 1))
        truth = one.block.unknowns.join(prior + (whitening(prior) @ moves)[..., 0])
        kinds = {
            name: replace(part, rho=part.R @ truth, energy=0.0) for name, part in one.kinds.items()
        }
        found.append((replace(one, kinds=kinds), truth))
    return found


@pytest.mark.parametrize('method', sorted(SOLVERS))
def test_base_parameters_are_exact(method, arm, exact):
    result = fit(arm, [one for one, _ in exact], method)
    assert len(result.blocks) == len(exact) == 2
    for block, (one, truth) in zip(result.blocks, exact, strict=True):
        answer = block.answer
        assert answer.grade is Grade.OPTIMAL
        parts = list(one.kinds.values())
        space = RowSpace.of(weighted_sum(parts, [1.0] * len(parts)).R)
        base, expected = (space.directions.T @ (space.scales * x) for x in (answer.x, truth))
        error = np.linalg.norm(base - expected) / np.linalg.norm(expected)
        assert error <= REACHED[method]
        assert not np.isnan(answer.deviations).any()
