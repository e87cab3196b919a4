# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reduced equations: triangles, merging, forgetting, rank.

Not covered: speed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import RowSpace, column_basis

ROUND_OFF = 1e-12
"""Orthogonal transforms of numbers of about one, a few thousand of them."""
ILL = 1e-9
"""Error over the largest unknown at condition 1e7; normal equations lose to 1e-2 there."""


@pytest.fixture
def rows(rng):
    """Return rows of 7 unknowns and their right-hand sides, with noise."""
    Y = rng.normal(size=(60, 7))
    return Y, Y @ rng.normal(size=7) + 0.1 * rng.normal(size=60)


def same(one: Information, other: Information, tolerance: float = ROUND_OFF) -> None:
    """Compare what two triangles say."""
    np.testing.assert_allclose(one.R.T @ one.R, other.R.T @ other.R, atol=tolerance, rtol=1e-11)
    np.testing.assert_allclose(
        one.R.T @ one.rho, other.R.T @ other.rho, atol=tolerance, rtol=1e-11
    )
    np.testing.assert_allclose(
        [one.energy, one.count], [other.energy, other.count], rtol=1e-10, atol=1e-12
    )


def solution(information: Information) -> np.ndarray:
    """Return the least squares of a triangle of full rank."""
    return np.linalg.solve(information.R, information.rho)


def test_squared_residual_is_that_of_the_rows(rows, rng):
    Y, y = rows
    x = rng.normal(size=7)
    information = Information.of(Y, y)
    assert information.squared_residual(x) == pytest.approx(np.sum((Y @ x - y) ** 2), rel=1e-12)
    assert information.count == len(Y)


def test_triangle_is_one(rows):
    R = Information.of(*rows).R
    np.testing.assert_array_equal(R, np.triu(R))
    assert (np.diag(R) > 0.0).all()


@pytest.mark.parametrize('first', [0, 1, 3, 59])
def test_rows_may_come_one_after_the_other(rows, first):
    Y, y = rows
    together = Information.of(Y, y)
    same(Information.of(Y[:first], y[:first]).add(Y[first:], y[first:]), together)


def test_order_of_rows_does_not_matter(rows, rng):
    Y, y = rows
    order = rng.permutation(len(Y))
    one, other = Information.of(Y, y), Information.of(Y[order], y[order])
    same(one, other)
    np.testing.assert_allclose(one.R, other.R, atol=ROUND_OFF)


def test_merging_is_commutative_and_associative(rows):
    Y, y = rows
    a, b, c = (Information.of(Y[k : k + 20], y[k : k + 20]) for k in (0, 20, 40))
    together = Information.of(Y, y)
    for merged in (a.merge(b).merge(c), a.merge(b.merge(c)), c.merge(a, b), b.merge(c, a)):
        same(merged, together)
        np.testing.assert_allclose(merged.R, together.R, atol=ROUND_OFF)


def test_fewer_rows_than_unknowns(rng):
    Y, y = rng.normal(size=(3, 7)), rng.normal(size=3)
    information = Information.of(Y, y)
    assert information.energy == pytest.approx(0.0, abs=ROUND_OFF)
    x = rng.normal(size=7)
    assert information.squared_residual(x) == pytest.approx(np.sum((Y @ x - y) ** 2))


def nearly_dependent_rows() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return integer rows of condition about 1e7, exact right-hand sides, and the solution."""
    rng = np.random.default_rng(7)
    base = rng.integers(-(2**23), 2**23, size=(400, 5))
    faint = rng.integers(-1, 2, size=(400, 5))
    # Every number is an integer below 2^53: the rows are exact.
    Y = np.hstack([base, base + faint]).astype(float)
    x = rng.integers(-9, 10, size=10).astype(float)
    return Y, Y @ x, x


def test_ill_conditioned_rows_keep_their_solution():
    Y, y, x = nearly_dependent_rows()
    information = Information.empty(10)
    for k in range(0, 400, 8):
        information = information.add(Y[k : k + 8], y[k : k + 8])
    assert np.linalg.cond(Y) > 1e7
    np.testing.assert_allclose(solution(information), x, rtol=0, atol=ILL * np.abs(x).max())


def test_ill_conditioned_equations_against_exact_arithmetic():
    Y, y, _ = nearly_dependent_rows()
    y = y + np.random.default_rng(8).integers(-3, 4, size=len(y))
    information = Information.of(Y[:150], y[:150]).merge(Information.of(Y[150:], y[150:]))
    expected = np.array([float(value) for value in exact_least_squares(Y, y)])
    np.testing.assert_allclose(solution(information), expected, atol=ILL * np.abs(expected).max())


def exact_least_squares(Y: np.ndarray, y: np.ndarray) -> list[Fraction]:
    """Return the least squares of integer rows, in fractions."""
    whole = np.column_stack([Y, y]).astype(int).astype(object)
    rows = [[Fraction(int(v)) for v in row] for row in whole[:, :-1].T @ whole]
    n = len(rows)
    for k in range(n):
        for i in range(n):
            if i != k:
                share = rows[i][k] / rows[k][k]
                rows[i] = [a - share * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [rows[k][n] / rows[k][k] for k in range(n)]


def test_forgetting_fades_all_rows_alike(rows):
    Y, y = rows
    faded = Information.of(Y, y).forget(0.25)
    expected = Information.of(0.5 * Y, 0.5 * y)
    same(faded, Information(expected.R, expected.rho, expected.energy, 15.0))


def test_forgetting_sample_by_sample_weighs_by_age(rows):
    Y, y = rows
    information = Information.empty(7)
    for row, value in zip(Y, y, strict=True):
        information = information.forget(0.9).add(row[None], np.array([value]))
    root = np.sqrt(0.9 ** np.arange(59, -1, -1))
    expected = Information.of(root[:, None] * Y, root * y)
    same(information, Information(expected.R, expected.rho, expected.energy, np.sum(root**2)))


@pytest.mark.parametrize('weak', [1.0, 1e-4, 1e-8, 1e-11, 1e-14, 0.0])
def test_column_basis_spans_what_singular_values_say(rng, weak):
    left, _ = np.linalg.qr(rng.normal(size=(30, 8)))
    right, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    factor = left * np.array([*np.ones(7), weak]) @ right
    wanted = RowSpace.of(factor).left
    found = column_basis(factor)
    assert found.shape == wanted.shape
    # The weakest direction is known to round-off over its strength.
    known = 1e-13 if weak < 1e-10 else 1e-13 / weak
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=known)


def test_column_basis_of_nothing_is_nothing():
    assert column_basis(np.zeros((4, 0))).shape == (4, 0)
    assert column_basis(np.zeros((0, 3))).shape == (0, 0)
