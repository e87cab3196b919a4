# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Priors of points, sticks and nothing become bodies; impossible ones are refused."""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.priors import widened
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])


def masses_at(points, mass=0.5):
    """Return the parameters of point masses."""
    total = np.zeros(10)
    for x, y, z in points:
        total += mass * np.array(
            [1, x, y, z, y * y + z * z, -x * y, x * x + z * z, -x * z, -y * z, x * x + y * y]
        )
    return total


def test_what_has_volume_stays_and_the_rest_gets_some():
    thin = [np.zeros(10), masses_at([(1, 2, 3)]), masses_at([(0, 0, 1), (0, 0, 2)])]
    found, changed = widened('abcd', np.array([BODY, *thin]))
    np.testing.assert_array_equal(found[0], BODY)
    assert changed == ('b', 'c', 'd')
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[2:, :4], np.array(thin[1:])[:, :4])
    # Nobody notices beside a link of a few hundred grams.
    assert np.abs(found - np.array([BODY, *thin])).max() <= 1e-3


@pytest.mark.parametrize(('index', 'value'), [(0, -1.0), (4, -0.1), (4, 1.0), (9, np.nan)])
def test_the_impossible_is_refused_by_name(index, value):
    bad = BODY.copy()
    bad[index] = value
    with pytest.raises(ModelError, match='leg'):
        widened(['arm', 'leg'], np.array([BODY, bad]))
    assert np.isnan(value) or np.linalg.eigvalsh(pseudo_inertia(bad))[0] < 0


def test_ten_parameters_for_each_name():
    with pytest.raises(ShapeError):
        widened(['arm'], np.zeros((2, 10)))
