# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts, and the split of a wrench among them, against weighted least squares of numpy.

Not covered: whole estimates (test_newton_euler.py), and frames that a robot does not have
(test_wrench_estimator.py).
"""

import numpy as np
import pytest
from brute_force import wrench_transform
from scipy.linalg import block_diag, sqrtm
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.contacts import (
    Contact,
    ContactKind,
    noise_scale,
    unit_scales,
)
from inertial_estimation.estimation.step import split_wrench

LENGTH, TOLERANCE = 0.1, 1e-3
# Relative: a condition of 1e3 by the rank tolerance, times levers of some metres.
ROUND_OFF = 1e-10


@pytest.mark.parametrize('kind', ContactKind)
def test_basis_holds_the_moment_of_the_force_about_the_frame(kind, rng):
    point, direction = rng.normal(size=(2, 3))
    contact = Contact('hand', kind, tuple(point), tuple(7.0 * direction))
    assert contact == Contact('hand', str(kind), tuple(point), tuple(direction))
    basis, axis = contact.basis(), direction / np.linalg.norm(direction)
    assert basis.shape == (6, contact.unknowns)
    forces = {'wrench': None, 'force': np.eye(3), 'axial_force': axis[:, None], 'known': None}[
        kind
    ]
    if forces is not None:
        expected = np.vstack([forces, np.cross(point, forces.T).T])
        np.testing.assert_allclose(basis, expected, rtol=0, atol=1e-14)
    elif contact.unknowns:
        np.testing.assert_array_equal(basis, np.eye(6))


def test_equal_contacts_are_one_key():
    """A plan is kept for each set of contacts: numbers must not come as different objects."""
    first = Contact('hand', 'force', point=np.array([0.1, 0.2, 0.3]), direction=[0, 0, 2])
    second = Contact('hand', 'force', point=(0.1, 0.2, 0.3), direction=(0.0, 0.0, 1.0))
    assert first == second and len({first, second}) == 1
    assert first != Contact('hand', 'force', point=(0.1, 0.2, 0.4))
    moved = second.moved((0.1, 0.2, 0.4))
    assert moved == Contact('hand', 'force', point=(0.1, 0.2, 0.4)) and hash(moved) != hash(second)
    assert (first.name, Contact('hand', name='left').name) == ('hand', 'left')


@pytest.mark.parametrize(
    ('options', 'error'),
    [
        ({'kind': 'push'}, ModelError),
        ({'kind': ['wrench']}, ModelError),
        ({'frame': None}, ModelError),
        ({'point': (0.0, 0.0)}, ShapeError),
        ({'point': (0.0, np.nan, 0.0)}, ModelError),
        ({'direction': (0.0, 0.0, 0.0)}, ModelError),
        ({'point': ('a', 0.0, 0.0)}, ModelError),
        ({'wrench': None}, ModelError),
    ],
)
def test_values_that_a_contact_cannot_have_are_refused(options, error):
    with pytest.raises(error):
        Contact(**{'frame': 'hand', **options})


# The split of a wrench


def random_pose(rng, spread=0.5):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=int(rng.integers(2**31))).as_matrix()
    pose[:3, 3] = spread * rng.normal(size=3)
    return pose


class Problem:
    """A wrench in a frame B, contacts and FT sensors at poses in it."""

    def __init__(self, contacts, B_H_C, B_H_S, total):
        self.bases = [contact.basis() for contact in contacts]
        self.B_H_C, self.B_H_S = B_H_C, B_H_S
        self.total = np.array(total, dtype=float)

    @classmethod
    def random(cls, kinds, n_sensors, rng):
        contacts = [
            Contact('any', kind, tuple(rng.normal(0, 0.1, 3)), tuple(rng.normal(size=3)))
            for kind in kinds
        ]
        poses = [random_pose(rng) for _ in range(len(kinds) + n_sensors)]
        total = rng.normal(0, 30, 6)
        return cls(contacts, poses[: len(kinds)], poses[len(kinds) :], total)

    def arguments(self, length=LENGTH):
        """Return what `split_wrench` takes."""
        columns = [
            unit_scales(basis, length) * basis.T @ wrench_transform(H).T
            for basis, H in zip(self.bases, self.B_H_C)
        ]
        diagonal = np.diag(noise_scale(length))
        noise = [diagonal @ wrench_transform(H).T for H in self.B_H_S]
        return self.total, np.vstack(columns), np.vstack(noise) if noise else noise_scale(length)

    def solve(self, length=LENGTH):
        """Return wrenches of the contacts, what is left of the total, and the rank."""
        unknowns, rank, *_ = split_wrench(*self.arguments(length), TOLERANCE)
        return *self.meaning(unknowns, length), rank

    def meaning(self, unknowns, length=LENGTH):
        A, wrenches = self.matrix()
        x = self.scales(length) * unknowns
        return (wrenches @ x).reshape(-1, 6), self.total - A @ x

    def matrix(self):
        """Return what the unknowns do to the sum, and the wrenches that they stand for."""
        columns = [wrench_transform(H) @ basis for H, basis in zip(self.B_H_C, self.bases)]
        return np.hstack(columns), block_diag(*self.bases)

    def whitening(self, length=LENGTH):
        noise = np.diag(noise_scale(length))
        factors = [wrench_transform(H) @ noise for H in self.B_H_S] or [noise]
        return np.linalg.inv(sqrtm(sum(F @ F.T for F in factors)).real)

    def scales(self, length=LENGTH):
        """Return the length of each unknown: a moment is worth `length`."""
        is_force = [np.abs(basis[:3]).any(axis=0) for basis in self.bases]
        return np.where(np.concatenate(is_force), 1.0, length)


MIXES = [
    ['wrench'],
    ['axial_force'] * 5,
    ['force', 'force'],
    ['wrench', 'force'],
    ['force'] * 4,
    ['wrench', 'force', 'known', 'axial_force', 'wrench'],
]


@pytest.mark.parametrize('length', [0.01, LENGTH, 1.0])
@pytest.mark.parametrize('n_sensors', [0, 1, 3])
@pytest.mark.parametrize('kinds', MIXES)
def test_split_is_the_shortest_weighted_least_squares(kinds, n_sensors, length, rng):
    for _ in range(5):
        problem = Problem.random(kinds, n_sensors, rng)
        found, left, rank = problem.solve(length)
        A, wrenches = problem.matrix()
        W, scales = problem.whitening(length), problem.scales(length)
        white = W @ A * scales
        largest = np.linalg.svd(white, compute_uv=False)[0]
        x, _, _, s = np.linalg.lstsq(white, W @ problem.total, rcond=TOLERANCE / largest)
        expected = (wrenches @ (scales * x)).reshape(-1, 6)
        assert rank == (s > TOLERANCE).sum()
        atol = ROUND_OFF * np.abs(expected).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=atol)
        np.testing.assert_allclose(left, problem.total - A @ (scales * x), rtol=0, atol=atol)


@pytest.mark.parametrize('kinds', MIXES)
def test_split_does_not_depend_on_the_point_of_the_sum(kinds, rng):
    problem = Problem.random(kinds, 2, rng)
    found, _, rank = problem.solve()
    size = max(np.abs(found).max(), np.abs(problem.total).max())
    for spread in (0.1, 10.0):
        B2_H_B = random_pose(rng, spread)
        other = Problem([], [B2_H_B @ H for H in problem.B_H_C],
                        [B2_H_B @ H for H in problem.B_H_S], 0)  # fmt: skip
        other.bases, other.total = problem.bases, wrench_transform(B2_H_B) @ problem.total
        moved, _, other_rank = other.solve()
        assert other_rank == rank
        atol = ROUND_OFF * size * (1 + spread) ** 2
        np.testing.assert_allclose(moved, found, rtol=0, atol=atol)


@pytest.mark.parametrize('n_sensors', [0, 2])
@pytest.mark.parametrize('lead', [(4,), (2, 3), (0,)])
def test_splits_come_in_stacks(lead, n_sensors, rng):
    kinds = ['wrench', 'force', 'axial_force']
    problems = {index: Problem.random(kinds, n_sensors, rng) for index in np.ndindex(*lead)}
    template = Problem.random(kinds, n_sensors, rng).arguments()
    total, columns, noise = (
        np.array([p.arguments()[k] for p in problems.values()]).reshape(*lead, *one.shape)
        for k, one in enumerate(template)
    )
    noise = noise if n_sensors else noise_scale(LENGTH)
    unknowns, rank, *_ = split_wrench(total, columns, noise, TOLERANCE)
    assert unknowns.shape == (*lead, 10) and rank.shape == lead
    for index, problem in problems.items():
        alone, _, one = problem.solve()
        atol = ROUND_OFF * np.abs(alone).max()
        together = problem.meaning(unknowns[index])[0]
        np.testing.assert_allclose(together, alone, rtol=0, atol=atol)
        assert rank[index] == one
