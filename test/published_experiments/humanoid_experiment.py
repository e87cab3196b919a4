# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A humanoid that moves at random, and the wrench on its base link [A section V].

An iCub without FT cuts, 33 links. What it weighs is what its model says and three more masses in
the box of each link, cables and boards say, of which the prior knows nothing. The six equations
of the base link [A 33] hold that, with noise on the wrench; the motion is known exactly.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.point_grids import (
    PointGrid,
    composition,
    link_grids,
)
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.geometry import Shape, link_shapes
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

MODEL = 'iCubGenova02'
"""The one of icub-models whose inertias are those of its shapes, not enlarged for simulators."""
BASE = 'root_link'
DURATION, RATE = 60.0, 50
"""Of each motion [s, Hz]."""
CHUNK = 500
"""Instants whose regressors are in memory at a time."""
NOISE = np.array([2.0, 2.0, 2.0, 0.5, 0.5, 0.5])
"""Standard deviation of the measured wrench [N, Nm]."""
FREQUENCIES = 0.1, 1.0
"""Of the sines that make up motions [Hz]."""
SINES = 4
SWING, TURN, SHIFT = 0.6, 0.2, 0.1
"""Size of the motion of joints and of the base [rad, rad, m]."""
MORE_MASSES, MORE_MASS, MORE_PLACE = 3, 0.1, 0.8
"""Masses that the prior does not know: how many, their share of the link at most, of the box."""
COMPONENTS = ('Fx [N]', 'Fy [N]', 'Fz [N]', 'Nx [Nm]', 'Ny [Nm]', 'Nz [Nm]')


@dataclass(frozen=True, eq=False)
class Experiment:
    """A humanoid, what it weighs, what is presumed, and rows of two motions."""

    links: tuple[str, ...]
    truth: Array
    """Shape (n_links, 10)."""
    prior: Array
    """Shape (n_links, 10)."""
    shapes: Mapping[str, Shape]
    seen: tuple[Information, ...]
    """Of each component of the wrench, on the motion that is used."""
    unseen: tuple[Information, ...]
    """The same on the other motion."""

    @classmethod
    def make(
        cls,
        description: str,
        mesh_folders: Sequence[str | Path] = (),
        *,
        base: str = BASE,
        duration: float = DURATION,
        seed: int = 0,
    ) -> Experiment:
        """
        Let a humanoid move.

        duration [s].
        """
        robot = Robot.from_urdf(description, ft_sensors=[], imus=[base])
        shapes = link_shapes(robot, mesh_folders).by_link
        rng = np.random.default_rng(seed)
        grids = link_grids(robot.link_names, robot.parameters, shapes)
        truth = robot.parameters + _more_masses(grids, robot.parameters[:, 0], rng)
        seen, unseen = (_rows(robot, _motion(robot, duration, rng), truth, rng) for _ in range(2))
        return cls(robot.link_names, truth, np.array(robot.parameters), shapes, seen, unseen)

    def grids(self, per_axis: int = 3, *, hulls: bool = False) -> tuple[PointGrid, ...]:
        """Return points of the links."""
        return link_grids(self.links, self.prior, self.shapes, per_axis=per_axis, hulls=hulls)

    def problem(self) -> Problem:
        """Return the problem of the motion that is used, in units of the noise."""
        rows = weighted_sum(self.seen, (1.0 / NOISE).tolist())
        return Problem.of(Unknowns(self.links), rows, self.prior)


def icub_experiment(seed: int = 0) -> Experiment:
    from inertial_estimation.simulation.description import demo_package, icub_urdf

    share = Path(demo_package('icub_models').get_models_path()).parent.parent
    return Experiment.make(icub_urdf(MODEL), [share], seed=seed)


def _more_masses(grids: Sequence[PointGrid], masses: Array, rng: np.random.Generator) -> Array:
    """Return what masses at random points of the boxes add, shape (n_links, 10)."""
    added = []
    for grid, mass in zip(grids, masses, strict=True):
        places = rng.uniform(-MORE_PLACE, MORE_PLACE, (MORE_MASSES, 3))
        sizes = mass * rng.uniform(0.0, MORE_MASS, MORE_MASSES)
        added.append(composition(grid.box.from_unit(places)) @ sizes)
    return np.array(added)


def _motion(robot: Robot, duration: float, rng: np.random.Generator) -> SampleBatch:
    """Return a motion of joints and base, without noise."""
    times = np.arange(round(duration * RATE)) / RATE
    n, n_joints = len(times), len(robot.joint_names)
    q, v, a = _waves(times, n_joints, SWING, rng)
    turn, rate, rate_of_rate = _waves(times, 3, TURN, rng)
    shift = _waves(times, 3, SHIFT, rng)[2]
    # The attitude need not belong to the rates: gravity only has to come from all around.
    proper = Rotation.from_rotvec(turn).inv().apply(shift - robot.gravity)
    return SampleBatch(
        np.round(1e9 * times).astype(np.int64), q, v, a, rate[:, None], proper[:, None],
        rate_of_rate[:, None], np.zeros((n, 0, 6)),
    )  # fmt: skip


def _waves(times: Array, n: int, size: float, rng: np.random.Generator) -> Array:
    """Return sums of sines and their first two derivatives, shape (3, n_times, n)."""
    rates = 2.0 * np.pi * rng.uniform(*FREQUENCIES, (n, SINES))
    sizes = size * rng.uniform(0.5, 1.0, (n, SINES)) / SINES
    angles = rates * times[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, (n, SINES))
    waves = sizes * np.sin(angles), sizes * rates * np.cos(angles)
    return np.array([wave.sum(axis=-1) for wave in (*waves, -(rates**2) * waves[0])])


def _rows(
    robot: Robot, samples: SampleBatch, truth: Array, rng: np.random.Generator
) -> tuple[Information, ...]:
    """Return the equations of the base link with noise, by component [A 33]."""
    x = truth.reshape(-1)
    found = [Information.empty(len(x)) for _ in COMPONENTS]
    for start in range(0, len(samples), CHUNK):
        (rows,) = submodel_regressors(robot, samples.take(slice(start, start + CHUNK)))
        measured = rows.wrench @ x + NOISE * rng.normal(size=rows.wrench.shape[:2])
        found = [known.add(rows.wrench[:, k], measured[:, k]) for k, known in enumerate(found)]
    return tuple(found)
