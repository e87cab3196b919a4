# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The basis of columns by pivoted transforms is that of singular values."""

import numpy as np
import pytest

from inertial_estimation.identification.row_space import RowSpace, column_basis


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
