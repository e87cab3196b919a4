# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Priors: widened URDF parameters, their form as equations, their weight.

Not covered: solvers.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError, ModelError, ShapeError
from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.priors import (
    DEFAULT_PRIOR_WEIGHT,
    SMALLEST_RADIUS,
    PriorRows,
    against_the_mean,
    entropic_model,
    prior_weight,
    widened,
)
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia
from inertial_estimation.model.robot import Robot

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])
# Parallel axes to and fro.
ROUND_OFF = 1e-12


def masses_at(points, mass=0.5):
    """Return the parameters of point masses."""
    total = np.zeros(10)
    for x, y, z in points:
        total += mass * np.array(
            [1, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
        )
    return total


def second_moments(parameters):
    """Return the principal second moments about the centre of mass, from small to large."""
    J = pseudo_inertia(parameters)
    return np.linalg.eigvalsh(J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3])


def test_what_has_volume_stays_and_the_rest_gets_some():
    thin = [np.zeros(10), masses_at([(1, 2, 3)]), masses_at([(0, 0, 1), (0, 0, 2)])]
    found, changed = widened('abcd', np.array([BODY, *thin]))
    np.testing.assert_array_equal(found[0], BODY)
    assert changed == ('b', 'c', 'd')
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[2:, :4], np.array(thin[1:])[:, :4])
    # Nobody notices beside a link of a few hundred grams.
    assert np.abs(found - np.array([BODY, *thin])).max() <= 1e-3


def test_widened_raises_second_moments_to_a_small_ball():
    found, _ = widened('ab', np.array([masses_at([(1, 2, 3)]), masses_at([(0, 3, 1), (0, 3, 2)])]))
    ball = SMALLEST_RADIUS**2 / 5
    np.testing.assert_allclose(second_moments(found[0]), 0.5 * ball * np.ones(3), atol=ROUND_OFF)
    # Two points a metre apart: 2 * 0.5 kg * (0.5 m)^2 along their line.
    stick = second_moments(found[1])
    np.testing.assert_allclose(stick, [ball, ball, 0.25], atol=ROUND_OFF)


def test_a_broken_triangle_inequality_is_mended():
    """Ixx > Iyy + Izz: the second moment along x is negative, the largest of the others stays."""
    broken = np.array([1.0, 0, 0, 0, 0.052, 0, 0.03, 0, 0, 0.02])
    found, changed = widened(['arm_1_link'], broken[None])
    assert changed == ('arm_1_link',)
    expected = [SMALLEST_RADIUS**2 / 5, 0.021, 0.031]
    np.testing.assert_allclose(second_moments(found[0]), expected, atol=ROUND_OFF)
    np.testing.assert_array_equal(found[0, :4], broken[:4])


def test_a_trace_of_inertia_without_mass_stays_and_gets_one():
    """As descriptions give to links that are frames."""
    found, changed = widened('a', np.array([[0, 0, 0, 0, 5e-8, 0, 5e-8, 0, 0, 5e-8]]))
    assert changed == ('a',)
    np.testing.assert_allclose(found[0, 4:], [5e-8, 0, 5e-8, 0, 0, 5e-8], atol=1e-6 * 5e-8)
    assert found[0, 0] > 0


def test_inertia_without_mass_is_refused():
    with pytest.raises(ModelError):
        widened('a', np.array([[0, 0, 0, 0, 1e-3, 0, 1e-3, 0, 0, 1e-3]]))


@pytest.mark.parametrize(
    ('index', 'value', 'said'),
    [
        (0, -1.0, 'mass of -1'),
        (0, 0.0, 'no mass'),
        (4, -0.1, 'moment of inertia of -0.'),
        (9, np.nan, 'NaN'),
        (2, 1000.0 * BODY[0], 'centre of mass 1000 m off its origin, expected up to 10'),
    ],
)
def test_the_impossible_is_refused_by_name(index, value, said):
    bad = BODY.copy()
    bad[index] = value
    with pytest.raises(ModelError):
        widened(['arm', 'leg'], np.array([BODY, bad]))


def test_ten_parameters_for_each_name():
    with pytest.raises(ShapeError):
        widened(['arm'], np.zeros((2, 10)))


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


@pytest.mark.parametrize('rows', [1.0, 10.0, 0.5, 1e6])
def test_what_is_written_is_read(rows):
    assert prior_weight(str(PriorRows(rows))) == PriorRows(rows)


def test_a_number_is_a_share():
    assert prior_weight('0.01') == 0.01
    assert against_the_mean({'weight': 0.01}, 7.0) == {'weight': 0.01}


def test_rows_weigh_the_less_the_more_were_measured():
    assert against_the_mean({'weight': PriorRows(3.0)}, 600.0) == {'weight': 3.0 / 600.0}
    assert against_the_mean({}, 600.0) == {'weight': DEFAULT_PRIOR_WEIGHT.rows / 600.0}
    assert against_the_mean({'weight': None}, 600.0) == {'weight': None}


@pytest.mark.parametrize(
    'text',
    [
        '',
        'rows',
        '-rows',
        'ten-rows',
        '-1-rows',
        '0-rows',
        'inf-rows',
        '0',
        'nan',
        '1 row',
        '1e-30',
        '1e30',
        '1e30-rows',
    ],
)
def test_what_is_no_weight_is_named(text):
    with pytest.raises(ConfigError):
        prior_weight(text)


@pytest.mark.parametrize('rows', [0.0, -1.0, np.inf, np.nan, 1e-13, 1e13])
def test_a_number_of_rows_is_within_what_numbers_can_tell(rows):
    with pytest.raises(ModelError):
        PriorRows(rows)


def test_a_wrong_prior_is_forgotten_as_rows_grow():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = robot.with_parameters(1.5 * robot.parameters)
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    pulled = {}
    for count, weight in (
        (100, DEFAULT_PRIOR_WEIGHT),
        (10_000, DEFAULT_PRIOR_WEIGHT),
        (10_000, 0.03),
    ):
        model, _ = gather(builder, random_samples(robot, count))
        links = list(model.block.submodel.links)
        truth = model.block.unknowns.join(robot.parameters[links])
        # What is left of the rows has a variance of one, and nothing but the prior pulls.
        kinds = {
            kind: replace(rows, rho=rows.R @ truth, energy=rows.count)
            for kind, rows in model.kinds.items()
        }
        evidence = replace(model, kinds=kinds)
        x = fit(wrong, [evidence], options={'weight': weight}).blocks[0].answer.x
        squares = np.array(list(evidence.residuals(x).values())) ** 2
        pulled[count, weight] = np.sqrt(squares.mean() - 1.0)
    # 600 rows of 100 instants: ten of them are a share between 0.01 and 0.03.
    few, many, share = pulled.values()
    assert 0.0 < many < few / 3 < share
