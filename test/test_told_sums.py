# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sums and differences of sensors that several supports share, held against linear algebra."""

import re

import numpy as np

from inertial_estimation.calibration.told_sums import told_sums


def coefficients(said, names):
    """Return what multiplies each sensor, (len(names),)."""
    found = np.zeros(len(names))
    for sign, name in re.findall(r'([+-]?) ?(\w+)', said):
        found[names.index(name)] = -1.0 if sign == '-' else 1.0
    return found


def sides(rng, m):
    """Return which of m supports are beyond each sensor of a random tree."""
    leaves = [[k] for k in range(m)]
    found = []
    while len(leaves) > 1:
        chosen = rng.choice(len(leaves), min(len(leaves), int(rng.integers(2, 4))), replace=False)
        joint = sorted(one for k in chosen for one in leaves[k])
        leaves = [one for k, one in enumerate(leaves) if k not in chosen] + [joint]
        found.append(joint)
    rows = [[k] for k in range(m) for _ in range(rng.integers(0, 3))]
    rows += [joint for joint in found for _ in range(rng.integers(0, 2)) if len(joint) < m]
    return np.array([np.isin(np.arange(m), row) for row in rows], dtype=bool).reshape(-1, m)


def test_a_trunk_and_its_arms():
    names = ['trunk', 'l_arm', 'r_arm', 'leg']
    beyond = np.array([[1, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=bool)
    assert told_sums(names, beyond) == (
        'trunk - l_arm - r_arm', 'trunk + leg', 'l_arm + r_arm + leg'
    )  # fmt: skip


def test_all_that_is_told_is_said_and_nothing_else(rng):
    for _ in range(60):
        m = int(rng.integers(2, 6))
        beyond = sides(rng, m)
        n = len(beyond)
        if not n:
            continue
        names = [f's{k}' for k in range(n)]
        said = [coefficients(one, names) for one in told_sums(names, beyond)]
        said = np.array(said).reshape(-1, n)
        # Loads of supports, of which the sum is known, must not change it.
        free = beyond @ (np.eye(m) - 1.0 / m)
        np.testing.assert_allclose(said @ free, 0.0, atol=1e-12)
        told = n - np.linalg.matrix_rank(free)
        assert (np.linalg.matrix_rank(said) if len(said) else 0) == told
