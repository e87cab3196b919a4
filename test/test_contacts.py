# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts, and the split of a wrench among them, against weighted least squares of numpy.

Not covered: whole estimates (test_newton_euler.py), and frames that a robot does not have
(test_wrench_estimator.py).
"""

from typing import NamedTuple

import numpy as np
import pytest
from brute_force import wrench_transform
from floating_states import random_pose
from robots import assert_close
from scipy.linalg import block_diag, sqrtm

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.contacts import Contact, ContactKind, noise_scale, unit_scales
from inertial_estimation.estimation.step import split_wrench

LENGTH, TOLERANCE = 0.1, 1e-3
# Relative: a condition of 1e3 by the rank tolerance, times levers of some metres.
ROUND_OFF = 1e-10


@pytest.mark.parametrize('kind', ContactKind)
def test_basis_holds_the_moment_of_the_force_about_the_frame(kind, rng):
    point, direction = rng.normal(size=(2, 3))
    contact = Contact('hand', kind, tuple(point), tuple(8.0 * direction))
    assert contact == Contact('hand', str(kind), tuple(point), tuple(direction))
    basis, axis = contact.basis(), direction / np.linalg.norm(direction)
    assert basis.shape == (6, contact.unknowns)
    if kind in ('force', 'axial_force'):
        forces = np.eye(3) if kind == 'force' else axis[:, None]
        expected = np.vstack([forces, np.cross(point, forces.T).T])
        np.testing.assert_allclose(basis, expected, rtol=0, atol=1e-14)
    elif contact.unknowns:
        np.testing.assert_array_equal(basis, np.eye(6))


def test_equal_contacts_are_one_key():
    """A plan is kept for each set of contacts: numbers must not come as different objects."""
    first = Contact('hand', 'force', point=np.array([0.1, 0.2, 0.3]), direction=[0, 0, 2])
    second = Contact('hand', 'force', point=(0.1, 0.2, 0.3), direction=(0.0, 0.0, 1.0))
    assert first == second and len({first, second}) == 1
    assert first != second.moved((0.1, 0.2, 0.4)) == Contact('hand', 'force', (0.1, 0.2, 0.4))


def test_values_that_a_contact_cannot_have_are_refused():
    for options in ({'kind': 'push'}, {'point': (0, np.nan, 0)}, {'direction': (0.0, 0.0, 0.0)}):
        with pytest.raises(ModelError):
            Contact('hand', **options)
    with pytest.raises(ShapeError):
        Contact('hand', point=(0.0, 0.0))


# The split of a wrench


class Problem(NamedTuple):
    """A wrench in a frame B, contacts and FT sensors at poses in it."""

    contacts: list
    B_H_C: list
    B_H_S: list
    total: np.ndarray

    @classmethod
    def random(cls, kinds, n_sensors, rng):
        numbers = rng.normal(0, 0.1, (len(kinds), 2, 3))
        contacts = [Contact('any', k, tuple(p), tuple(d)) for k, (p, d) in zip(kinds, numbers)]
        poses = [random_pose(rng) for _ in range(len(kinds) + n_sensors)]
        for pose in poses:
            pose[:3, 3] *= 0.4
        return cls(contacts, poses[: len(kinds)], poses[len(kinds) :], rng.normal(0, 30, 6))

    def solve(self, length=LENGTH):
        """Return wrenches of the contacts and the rank, of the engine and of numpy."""
        bases, noise = [contact.basis() for contact in self.contacts], noise_scale(length)
        scales = np.concatenate([unit_scales(basis, length)[:, 0] for basis in bases])
        A = np.hstack([wrench_transform(H) @ basis for H, basis in zip(self.B_H_C, bases)])
        factors = [wrench_transform(H) * noise for H in self.B_H_S]
        rows = np.vstack([F.T for F in factors]) if factors else noise
        found, rank, *_ = split_wrench(self.total, scales[:, None] * A.T, rows, TOLERANCE)
        covariance = sum(F @ F.T for F in factors or [np.diag(noise)])
        W = np.linalg.inv(sqrtm(covariance).real)
        white, wrenches = W @ A * scales, block_diag(*bases) * scales
        largest = np.linalg.svd(white, compute_uv=False)[0]
        x, _, _, s = np.linalg.lstsq(white, W @ self.total, rcond=TOLERANCE / largest)
        return wrenches @ found, rank, wrenches @ x, (s > TOLERANCE).sum()


MIXES = [
    ['wrench'],
    ['axial_force'] * 5,
    ['force', 'force'],
    ['wrench', 'force'],
    ['force'] * 4,
    ['wrench', 'force', 'known', 'axial_force', 'wrench'],
]


@pytest.mark.parametrize('length', [0.01, 1.0])
@pytest.mark.parametrize('n_sensors', [0, 1, 3])
@pytest.mark.parametrize('kinds', MIXES)
def test_split_is_the_shortest_weighted_least_squares(kinds, n_sensors, length, rng):
    for _ in range(5):
        found, rank, expected, n = Problem.random(kinds, n_sensors, rng).solve(length)
        assert rank == n
        assert_close(found, expected, ROUND_OFF)


@pytest.mark.parametrize('kinds', MIXES)
def test_split_does_not_depend_on_the_point_of_the_sum(kinds, rng):
    problem = Problem.random(kinds, 2, rng)
    found, rank, *_ = problem.solve()
    size = max(np.abs(found).max(), np.abs(problem.total).max())
    for spread in (0.1, 10.0):
        B2_H_B = random_pose(rng)
        B2_H_B[:3, 3] *= spread / 2
        moved, other_rank, *_ = problem._replace(
            B_H_C=[B2_H_B @ H for H in problem.B_H_C],
            B_H_S=[B2_H_B @ H for H in problem.B_H_S],
            total=wrench_transform(B2_H_B) @ problem.total,
        ).solve()
        assert other_rank == rank
        atol = ROUND_OFF * size * (1 + spread) ** 2
        np.testing.assert_allclose(moved, found, rtol=0, atol=atol)
