# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The weighted, rank-revealing least squares that splits a submodel's wrench among its contacts.

Held against numpy's on the whitened and scaled problem, and against what defines the answer:
smallest weighted residual, then smallest length. Not covered: which wrench is split
(test_newton_euler.py), and what is marked then (test_quality.py).
"""

from typing import NamedTuple

import numpy as np
import pytest
from brute_force import wrench_transform
from scipy.linalg import block_diag, null_space, sqrtm
from scipy.spatial.transform import Rotation

from inertial_estimation.estimation.contacts import (
    Contact,
    ContactKind,
    noise_scale,
    scaled_basis,
)
from inertial_estimation.estimation.step import split_wrench

# Round-off of a 6 x n problem of order 100 times its condition, here below 1e3.
ROUND_OFF = 1e-9
LENGTH = 0.1
TOLERANCE = 1e-3


def random_pose(rng, spread=0.5):
    pose = np.eye(4)
    pose[:3, :3] = Rotation.random(random_state=rng.integers(2**31)).as_matrix()
    pose[:3, 3] = rng.normal(0.0, spread, 3)
    return pose


class Split(NamedTuple):
    """What became of a sum of wrenches."""

    wrenches: np.ndarray
    residual: np.ndarray
    rank: int


class Problem:
    """A sum of wrenches, contacts and sensors, all seen from a reference frame B."""

    def __init__(self, contacts, B_H_C, B_H_S, total):
        self.bases = [contact.basis() for contact in contacts]
        self.B_H_C, self.B_H_S = B_H_C, B_H_S
        self.total = np.asarray(total, dtype=float)

    @classmethod
    def random(cls, kinds, n_sensors, rng):
        contacts = [
            Contact('any', kind, tuple(rng.normal(0, 0.1, 3)), tuple(rng.normal(size=3)))
            for kind in kinds
        ]
        poses = [random_pose(rng) for _ in range(len(kinds) + n_sensors)]
        total = rng.normal(0.0, 1.0, 6) * ([50.0] * 3 + [5.0] * 3)
        return cls(contacts, poses[: len(kinds)], poses[len(kinds) :], total)

    @property
    def transforms(self):
        return (
            np.array([wrench_transform(pose) for pose in self.B_H_C]),
            np.array([wrench_transform(pose) for pose in self.B_H_S]).reshape(-1, 6, 6),
        )

    def arguments(self, length=LENGTH):
        """Return what the engine makes of a submodel: sum, columns and noise, as rows."""
        X_C, X_S = self.transforms
        units = [scaled_basis(basis, length) for basis in self.bases]
        columns = np.vstack([rows @ X.T for X, rows in zip(X_C, units)])
        noise = noise_scale(length)
        if len(X_S):
            noise = np.vstack([np.diag(noise) @ X.T for X in X_S])
        return self.total, columns, noise

    def solve(self, length=LENGTH, tolerance=TOLERANCE):
        """Split the sum; return the wrenches in their frames, what is left, and the rank."""
        total, columns, noise = self.arguments(length)
        return self.split(*split_wrench(total, columns, noise, tolerance)[:2], length)

    def split(self, unknowns, rank, length=LENGTH):
        """Return what unknowns in newtons mean."""
        A, wrenches = self.matrix()
        x = self.scales(length) * unknowns
        return Split((wrenches @ x).reshape(-1, 6), self.total - A @ x, rank)

    def matrix(self):
        """Return what the unknowns do to the sum, and the wrenches that they stand for."""
        X_C, _ = self.transforms
        return np.hstack([X @ basis for X, basis in zip(X_C, self.bases)]), block_diag(*self.bases)

    def whitening(self, length):
        _, X_S = self.transforms
        noise = np.diag([1.0] * 3 + [length] * 3)
        covariance = sum((X @ noise) @ (X @ noise).T for X in X_S) if len(X_S) else noise @ noise
        return np.linalg.inv(sqrtm(covariance).real)

    def scales(self, length):
        """Return the length of each unknown: a moment is worth `length`."""
        return np.concatenate(
            [np.where(np.abs(basis[:3]).any(axis=0), 1.0, length) for basis in self.bases]
        )

    def moved(self, B2_H_B):
        """Return the same problem seen from another reference frame."""
        other = Problem([], [B2_H_B @ H for H in self.B_H_C], [B2_H_B @ H for H in self.B_H_S], 0)
        other.bases, other.total = self.bases, wrench_transform(B2_H_B) @ self.total
        return other


MIXES = [
    ['wrench'],
    ['force'],
    ['axial_force'],
    ['force', 'axial_force'],
    ['axial_force'] * 5,
    ['force', 'force'],
    ['wrench', 'force'],
    ['wrench', 'wrench'],
    ['force'] * 4,
    ['wrench', 'force', 'known', 'axial_force', 'wrench'],
    ['known', 'force'],
]


@pytest.mark.parametrize('length', [0.01, LENGTH, 1.0])
@pytest.mark.parametrize('n_sensors', [0, 1, 3])
@pytest.mark.parametrize('kinds', MIXES)
def test_against_numpy(kinds, n_sensors, length, rng):
    for _ in range(5):
        problem = Problem.random(kinds, n_sensors, rng)
        split = problem.solve(length)
        A, wrenches = problem.matrix()
        W, scales = problem.whitening(length), problem.scales(length)
        white = W @ A * scales
        largest = np.linalg.svd(white, compute_uv=False)[0]
        x, _, rank, s = np.linalg.lstsq(white, W @ problem.total, rcond=TOLERANCE / largest)
        expected = (wrenches @ (scales * x)).reshape(-1, 6)
        assert split.rank == rank == (s > TOLERANCE).sum()
        size = np.abs(expected).max()
        np.testing.assert_allclose(split.wrenches, expected, rtol=0, atol=ROUND_OFF * size)
        left = problem.total - A @ (scales * x)
        np.testing.assert_allclose(split.residual, left, rtol=0, atol=ROUND_OFF * size)


@pytest.mark.parametrize('kinds', MIXES)
def test_nothing_explains_more_and_nothing_as_good_is_shorter(kinds, rng):
    problem = Problem.random(kinds, 2, rng)
    split = problem.solve()
    A, wrenches = problem.matrix()
    W, scales = problem.whitening(LENGTH), problem.scales(LENGTH)
    white = W @ A * scales
    residual = W @ split.residual
    slope = white.T @ residual / np.abs(white).max() / np.abs(W @ problem.total).max()
    np.testing.assert_allclose(slope, 0.0, atol=ROUND_OFF)
    x = np.linalg.pinv(wrenches * scales) @ split.wrenches.ravel()
    for direction in null_space(white, rcond=TOLERANCE).T:
        np.testing.assert_allclose(x @ direction, 0.0, atol=ROUND_OFF * np.abs(x).max())


FEW = [kinds for kinds in MIXES if sum(ContactKind(kind).unknowns for kind in kinds) < 6]


@pytest.mark.parametrize('kinds', FEW)
def test_what_can_be_told_apart_is_recovered(kinds, rng):
    for _ in range(5):
        problem = Problem.random(kinds, 2, rng)
        A, wrenches = problem.matrix()
        x = rng.normal(0.0, 30.0, A.shape[1])
        problem.total = A @ x
        split = problem.solve()
        assert split.rank == len(x)
        expected = (wrenches @ x).reshape(-1, 6)
        np.testing.assert_allclose(split.wrenches, expected, rtol=0, atol=100 * ROUND_OFF)
        np.testing.assert_allclose(split.residual, 0.0, atol=100 * ROUND_OFF)


@pytest.mark.parametrize('kinds', MIXES)
def test_the_point_of_the_sum_does_not_matter(kinds, rng):
    problem = Problem.random(kinds, 2, rng)
    split = problem.solve()
    size = max(np.abs(split.wrenches).max(), np.abs(problem.total).max())
    for spread in (0.1, 1.0, 10.0):
        B2_H_B = random_pose(rng, spread)
        other = problem.moved(B2_H_B).solve()
        assert other.rank == split.rank
        atol = ROUND_OFF * size * (1 + spread) ** 2
        np.testing.assert_allclose(other.wrenches, split.wrenches, rtol=0, atol=atol)
        moved = wrench_transform(B2_H_B) @ split.residual
        np.testing.assert_allclose(other.residual, moved, rtol=0, atol=atol)


@pytest.mark.parametrize('n_sensors', [0, 2])
@pytest.mark.parametrize('lead', [(4,), (2, 3), (0,)])
def test_many_at_once(lead, n_sensors, rng):
    kinds = ['wrench', 'force', 'axial_force']
    template = Problem.random(kinds, n_sensors, rng)
    problems = {index: Problem.random(kinds, n_sensors, rng) for index in np.ndindex(*lead)}
    stacked = [
        np.array([p.arguments()[k] for p in problems.values()]).reshape(*lead, *a.shape)
        for k, a in enumerate(template.arguments())
    ]
    noise = stacked[2] if n_sensors else noise_scale(LENGTH)
    unknowns, rank, *_ = split_wrench(stacked[0], stacked[1], noise, TOLERANCE)
    assert unknowns.shape == (*lead, 10)
    assert rank.shape == lead
    for index, problem in problems.items():
        together, alone = problem.split(unknowns[index], rank[index]), problem.solve()
        atol = ROUND_OFF * np.abs(alone.wrenches).max()
        np.testing.assert_allclose(together.wrenches, alone.wrenches, rtol=0, atol=atol)
        np.testing.assert_allclose(together.residual, alone.residual, rtol=0, atol=atol)
        assert together.rank == alone.rank


# Near degeneracy


def forces_at(points, total):
    contacts = [Contact('any', 'force', tuple(point)) for point in points]
    return Problem(contacts, [np.eye(4)] * len(points), [np.eye(4)], total)


def test_a_squeeze_is_invisible_and_left_at_zero(rng):
    """Two forces: rank 5 of 6; the moment about the line that joins them is residual."""
    a, b = np.array([0.1, 0.2, 0.0]), np.array([-0.3, 0.1, 0.4])
    line = (b - a) / np.linalg.norm(b - a)
    problem = forces_at([a, b], rng.normal(0.0, 30.0, 6))
    split = problem.solve()
    assert split.rank == 5
    first, second = split.wrenches[:, :3] @ line
    np.testing.assert_allclose(first, second, rtol=0, atol=100 * ROUND_OFF)


@pytest.mark.parametrize('apart', [1.0, 1e-1, 1e-2, 1e-4, 1e-6, 1e-9, 1e-12, 1e-15, 0.0])
@pytest.mark.parametrize('n', [2, 3])
def test_forces_that_nearly_coincide_stay_bounded(n, apart, rng):
    """A singular value that is kept is at least the tolerance times the largest."""
    points = np.array([0.2, -0.1, 0.3]) + apart * rng.normal(size=(n, 3))
    problem = forces_at(points, rng.normal(0.0, 30.0, 6))
    split = problem.solve()
    A, _ = problem.matrix()
    W = problem.whitening(LENGTH)
    largest = np.linalg.svd(W @ A, compute_uv=False)[0]
    bound = np.linalg.norm(W @ problem.total) / (TOLERANCE * largest)
    assert np.linalg.norm(split.wrenches[:, :3]) <= bound
    assert 3 <= split.rank <= (5 if n == 2 else 6)
    if apart <= TOLERANCE * LENGTH**2:
        assert split.rank == 3
        expected = np.tile(split.wrenches[:, :3].mean(axis=0), (n, 1))
        np.testing.assert_allclose(split.wrenches[:, :3], expected, rtol=1e-3)


# What weighting means


def test_two_feet_share_the_weight():
    """Full wrenches on both sides of the middle carry half each, whatever a moment is worth."""
    left, right = np.eye(4), np.eye(4)
    left[1, 3], right[1, 3] = 0.1, -0.1
    weight = [0.0, 0.0, 353.7, 0.0, 0.0, 0.0]
    for length in (0.05, 0.1, 1.0):
        problem = Problem([Contact('l'), Contact('r')], [left, right], [], weight)
        split = problem.solve(length)
        np.testing.assert_allclose(split.wrenches[:, 2], 353.7 / 2, rtol=0, atol=1e-6)
        np.testing.assert_allclose(split.residual, 0.0, atol=1e-6)


def test_a_far_sensor_is_trusted_less_about_moments():
    """Where force and moment contradict each other, the place of the sensor decides."""
    contact = Contact('any', 'axial_force', point=(0.1, 0.0, 0.0))
    near, far = np.eye(4), np.eye(4)
    far[0, 3] = 1.0
    total = [0.0, 0.0, 10.0, 0.0, -3.0, 0.0]
    found = []
    for pose in (near, far):
        problem = Problem([contact], [np.eye(4)], [pose], total)
        W, A = problem.whitening(LENGTH), problem.matrix()[0]
        split = problem.solve()
        expected = np.linalg.lstsq(W @ A, W @ problem.total, rcond=None)[0][0]
        np.testing.assert_allclose(split.wrenches[0, 2], expected, rtol=0, atol=100 * ROUND_OFF)
        found.append(split.wrenches[0, 2])
    assert abs(found[0] - found[1]) > 1.0
