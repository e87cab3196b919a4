# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A humanoid's links from the wrench on its base link alone, by masses at points [A section V].

An iCub without FT cuts, 33 links, moves at random. What it weighs is what its model says and
three more masses in the box of each link, cables and boards say, of which the prior knows nothing.
The six equations of the base link [A 33] hold that, with noise. Four methods are compared on that
motion and on another one: masses at points (A), least squares (B), the prior alone (C), masses at
points without prior (D).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.least_squares import solve_least_squares
from inertial_estimation.identification.mass_points import solve_mass_points
from inertial_estimation.identification.point_grids import PointGrid, composition, link_grids
from inertial_estimation.identification.principal_bodies import PrincipalBodies
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.geometry import Shape, link_shapes
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.regressor import submodel_regressors
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.table import Table

Array = NDArray[np.float64]

MODEL = 'iCubGenova02'
"""The one of icub-models whose inertias are those of its shapes, not enlarged for simulators."""
BASE = 'root_link'
LINKS = {
    'L1 upper trunk': 'chest', 'L2 lower trunk': 'root_link', 'L3 right upper leg': 'r_upper_leg',
    'L4 right foot': 'r_ankle_2', 'L5 left upper arm': 'l_shoulder_3', 'L6 left hand': 'l_hand',
}  # fmt: skip
"""Links of A's tables."""
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
PER_AXIS = (3, 4, 5)
"""Points along each edge of the boxes."""
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

        Parameters
        ----------
        description : str
            Its URDF.
        mesh_folders : sequence of str or Path
            As in `model.geometry.link_shapes`.
        base : str
            Link whose motion is given.
        duration : float
            Of each motion [s].
        seed : int
            Of motions, masses and noise.

        Returns
        -------
        Experiment

        Raises
        ------
        ModelError
            If the robot cannot be read.

        """
        robot = Robot.from_urdf(description, ft_sensors=[], imus=[base])
        shapes = link_shapes(robot, mesh_folders).by_link
        rng = np.random.default_rng(seed)
        grids = link_grids(robot.link_names, robot.parameters, shapes)
        truth = robot.parameters + _more_masses(grids, robot.parameters[:, 0], rng)
        seen, unseen = (_rows(robot, _motion(robot, duration, rng), truth, rng) for _ in range(2))
        return cls(robot.link_names, truth, np.array(robot.parameters), shapes, seen, unseen)

    def grids(self, per_axis: int = 3, *, hulls: bool = False) -> tuple[PointGrid, ...]:
        """
        Return points of the links.

        Parameters
        ----------
        per_axis : int
            Along each edge of a box.
        hulls : bool
            Of convex hulls instead of boxes.

        Returns
        -------
        tuple of PointGrid

        """
        return link_grids(self.links, self.prior, self.shapes, per_axis=per_axis, hulls=hulls)

    def problem(self) -> Problem:
        """Return the problem of the motion that is used, in units of the noise."""
        rows = weighted_sum(self.seen, (1.0 / NOISE).tolist())
        return Problem.of(Unknowns(self.links), rows, self.prior)


@dataclass(frozen=True, eq=False)
class Score:
    """How well one method does."""

    method: str
    parameters: Array
    """Shape (n_links, 10)."""
    seen: Array
    """Root mean square error of each component on the motion that was used, (6,) [N, Nm]."""
    unseen: Array
    """The same on the other motion."""
    consistent: int
    """Links that are bodies that could exist."""
    inside: int
    """Links whose centre of mass is in their box."""
    mass_error: float
    """Mean error of a link's mass [kg]."""
    time: float
    """[s]."""

    @property
    def error_rows(self) -> tuple[tuple[str, ...], ...]:
        """The errors as rows of `ERROR_COLUMNS`."""
        return tuple(
            (self.method, motion, *(f'{value:.2f}' for value in errors))
            for motion, errors in (('used', self.seen), ('other', self.unseen))
        )

    @property
    def row(self) -> tuple[str, ...]:
        """What the links are as a row of `BODY_COLUMNS`."""
        n = len(self.parameters)
        counts = f'{self.consistent} of {n}', f'{self.inside} of {n}'
        return self.method, *counts, f'{self.mass_error:.3f}', f'{self.time:.2f}'

    def as_dict(self) -> dict[str, Any]:
        """
        Return the figures for a machine.

        Returns
        -------
        dict
            Errors in N and Nm.

        """
        return {
            'method': self.method,
            'rms_error': self.seen.tolist(),
            'rms_error_unseen': self.unseen.tolist(),
            'consistent_links': self.consistent,
            'links_inside_their_box': self.inside,
            'mean_mass_error_kg': self.mass_error,
            'time_s': self.time,
        }


ERROR_COLUMNS = ('method', 'motion', *COMPONENTS)
BODY_COLUMNS = ('method', 'consistent', 'centre in box', 'mass error [kg]', 'time [s]')
POINT_COLUMNS = ('points per link', 'mean square', 'unseen', 'mass error [kg]', 'time [s]')
CENTER_COLUMNS = ('link', 'of', 'm/M', 's_x', 's_y', 's_z', 'tr Ic/m [m^2]')


def icub_experiment(seed: int = 0) -> Experiment:
    """
    Return the experiment with an iCub.

    Parameters
    ----------
    seed : int
        As in `Experiment.make`.

    Returns
    -------
    Experiment

    Raises
    ------
    ModelError
        If icub-models is not installed.

    """
    from inertial_estimation.simulation.description import demo_package, icub_urdf

    share = Path(demo_package('icub_models').get_models_path()).parent.parent
    return Experiment.make(icub_urdf(MODEL), [share], seed=seed)


def compare(experiment: Experiment) -> tuple[Score, ...]:
    """
    Compare the four methods of A's Table V.

    Parameters
    ----------
    experiment : Experiment
        Rows.

    Returns
    -------
    tuple of Score

    """
    problem, grids = experiment.problem(), experiment.grids()
    results = {
        '(A) mass points': solve_mass_points(problem, grids),
        '(B) least squares': solve_least_squares(problem),
        '(D) mass points, no prior': solve_mass_points(problem, grids, weight=None),
    }
    scores = [
        _score(experiment, name, result.parameters, result.solve_time)
        for name, result in results.items()
    ]
    scores.insert(2, _score(experiment, '(C) prior', experiment.prior, 0.0))
    return tuple(scores)


def points(experiment: Experiment, per_axis: Sequence[int] = PER_AXIS) -> tuple[Score, ...]:
    """
    Compare numbers of points.

    Parameters
    ----------
    experiment : Experiment
        Rows.
    per_axis : sequence of int
        Points along each edge of the boxes.

    Returns
    -------
    tuple of Score
        Named by their numbers of points.

    """
    scores = []
    for number in per_axis:
        grids = experiment.grids(number)
        start = perf_counter()
        result = solve_mass_points(experiment.problem(), grids)
        duration = perf_counter() - start
        scores.append(_score(experiment, f'{number**3}', result.parameters, duration))
    return tuple(scores)


def tables(
    experiment: Experiment, scores: Sequence[Score], over_points: Sequence[Score]
) -> tuple[Table, ...]:
    """
    Return what was found as tables.

    Parameters
    ----------
    experiment : Experiment
        What was measured.
    scores : sequence of Score
        From `compare`.
    over_points : sequence of Score
        From `points`.

    Returns
    -------
    tuple of Table

    """
    bodies = {'truth': experiment.truth, **{score.method: score.parameters for score in scores}}
    return (
        Table(
            'Wrench on the base link: root mean square errors', ERROR_COLUMNS,
            tuple(row for score in scores for row in score.error_rows),
        ),
        Table('Links', BODY_COLUMNS, tuple(score.row for score in scores)),
        Table('Links in their boxes', CENTER_COLUMNS, tuple(_centers(experiment, bodies))),
        Table(
            'Number of points: errors in units of the noise, and time', POINT_COLUMNS,
            tuple(_point_row(score) for score in over_points),
        ),
    )  # fmt: skip


def _point_row(score: Score) -> tuple[str, ...]:
    """Return errors over the noise and time."""
    errors = (float(np.mean((rms / NOISE) ** 2)) for rms in (score.seen, score.unseen))
    return (
        score.method,
        *(f'{error:.4f}' for error in errors),
        f'{score.mass_error:.3f}',
        f'{score.time:.2f}',
    )


def _centers(experiment: Experiment, bodies: Mapping[str, Array]) -> list[tuple[str, ...]]:
    """Return mass, centre in the box and spread of A's links, as in A's Tables I-IV."""
    rows = []
    grids = experiment.grids()
    for label, link in LINKS.items():
        if link not in experiment.links:
            continue
        k = experiment.links.index(link)
        for name, parameters in bodies.items():
            body = PrincipalBodies.of(parameters[k : k + 1])
            share = body.mass[0] / parameters[:, 0].sum()
            place = grids[k].box.to_unit(body.center[0])
            spread = 2.0 * body.moments.sum() / body.mass[0]
            figures = (f'{value:.3f}' for value in (share, *place))
            rows.append((label, name, *figures, f'{spread:.4f}'))
    return rows


def _score(experiment: Experiment, method: str, parameters: Array, time: float) -> Score:
    """Return how good parameters are."""
    x = parameters.reshape(-1)
    seen, unseen = (
        np.array([np.sqrt(rows.squared_residual(x) / rows.count) for rows in motion])
        for motion in (experiment.seen, experiment.unseen)
    )
    inside = [
        mass > 0 and bool((np.abs(grid.box.to_unit(first / mass)) <= 1.0).all())
        for grid, mass, first in zip(experiment.grids(), parameters[:, 0], parameters[:, 1:4])
    ]
    return Score(
        method=method,
        parameters=parameters,
        seen=seen,
        unseen=unseen,
        consistent=int(np.count_nonzero(consistency_margin(parameters) > 0)),
        inside=sum(inside),
        mass_error=float(np.abs(parameters[:, 0] - experiment.truth[:, 0]).mean()),
        time=time,
    )


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
