# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reduced equations: triangles and rank.

Not covered: speed.
"""

from fractions import Fraction

import numpy as np
import pytest

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.row_space import RowSpace, column_basis

ILL = 1e-9
"""Error over the largest unknown at condition 1e7; normal equations lose to 1e-2 there."""


@pytest.mark.parametrize('m', [3, 60])
def test_squared_residual_is_that_of_the_equations(rng, m):
    Y, y, x = rng.normal(size=(m, 7)), rng.normal(size=m), rng.normal(size=7)
    information, half = Information.of(Y, y), m // 2
    merged = Information.of(Y[half:], y[half:]).merge(Information.of(Y[:half], y[:half]))
    for one in (information, merged):
        assert one.squared_residual(x) == pytest.approx(np.sum((Y @ x - y) ** 2), rel=1e-12)
        assert one.count == m
        np.testing.assert_array_equal(one.R, np.triu(one.R))


def test_ill_conditioned_equations_against_exact_arithmetic():
    """Integers below 2^53, so that the equations are exact; condition 1e7."""
    rng = np.random.default_rng(7)
    base = rng.integers(-(2**23), 2**23, size=(400, 5))
    Y = np.hstack([base, base + rng.integers(-1, 2, size=(400, 5))]).astype(float)
    assert np.linalg.cond(Y) > 1e7
    y = Y @ rng.integers(-9, 10, size=10) + rng.integers(-3, 4, size=400)
    information = Information.of(Y[:150], y[:150]).merge(Information.of(Y[150:], y[150:]))
    expected = np.array(exact_least_squares(Y, y), dtype=float)
    found = np.linalg.solve(information.R, information.rho)
    np.testing.assert_allclose(found, expected, atol=ILL * np.abs(expected).max())


def exact_least_squares(Y, y):
    """Return the least squares of integer equations by fractions."""
    whole = np.column_stack([Y, y]).astype(int).astype(object)
    rows = [[Fraction(int(v)) for v in row] for row in whole[:, :-1].T @ whole]
    for k, pivot in enumerate(rows):
        for i, row in enumerate(rows):
            if i != k:
                share = row[k] / pivot[k]
                rows[i] = [a - share * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[k] for k, row in enumerate(rows)]


@pytest.mark.parametrize('weak', [1.0, 1e-4, 1e-8, 1e-11, 1e-14, 0.0])
def test_column_basis_spans_the_left_singular_vectors(rng, weak):
    left, _ = np.linalg.qr(rng.normal(size=(30, 8)))
    right, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    factor = left * np.array([*np.ones(7), weak]) @ right
    wanted, found = RowSpace.of(factor).left, column_basis(factor)
    assert found.shape == wanted.shape
    # The weakest direction is known to round-off over its strength.
    known = 1e-13 if weak < 1e-10 else 1e-13 / weak
    np.testing.assert_allclose(found @ found.T, wanted @ wanted.T, atol=known)
