# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How fast links are identified, beside the same problem built and solved in cvxpy with Clarabel.

The robot is the iCub of icub-models without cuts: 33 links, the wrench at its base and the efforts
of all joints, reduced to a triangle beforehand for all contenders.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bench.run import Goal
from bench.timing import Array, Progress, Timed, interleave, ratio
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.evidence import Gathering, gather
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.semidefinite import PriorTerm, solve_semidefinite
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf

ROUNDS = 15
INSTANTS = 300
AT_ONCE = 100
"""Instants whose rows are added at once: a tenth of a second at 1 kHz."""
SPAN_US = 1e6 * AT_ONCE / 1000
NOISE = 0.05
"""Of each row [N, Nm]."""
WRONG = 0.2
"""The prior's masses are off by so much of them, as a standard deviation."""
WEIGHT = 1e-2
PEER = 'cvxpy and Clarabel, built and solved'
COLD, WARM = 'entropic, cold', 'entropic, warm'
CONES = 'semidefinite'
ADDED = f'rows of {AT_ONCE} instants added, by submodel'
COLUMNS = ('call', 'median [ms]', f'/ {PEER}')
TITLE = 'Identification of 33 links'


def measure(rounds: int = ROUNDS, progress: Progress | None = None) -> dict[str, Array]:
    """
    Time all contenders side by side.

    Returns (rounds, 1) [us].
    """
    problem, earlier = _problems()
    start = solve_entropic(earlier, weight=WEIGHT).x
    calls: dict[str, Callable[[], object]] = {
        PEER: lambda: _with_cvxpy(problem),
        COLD: lambda: solve_entropic(problem, weight=WEIGHT, with_deviations=False),
        WARM: lambda: solve_entropic(problem, weight=WEIGHT, start=start, with_deviations=False),
        CONES: lambda: solve_semidefinite(
            problem, weight=WEIGHT, prior=PriorTerm.EUCLIDEAN, with_deviations=False
        ),
        ADDED: _adding(),
    }
    return interleave({name: Timed(call, 1) for name, call in calls.items()}, rounds, progress)


def rows(durations: dict[str, Array]) -> list[tuple[str, ...]]:
    """Return the table of durations."""
    return [
        (name, f'{np.median(times) / 1e3:.1f}', f'{ratio(times, durations[PEER]):.3f}')
        for name, times in durations.items()
    ]


def goals(durations: dict[str, Array]) -> tuple[Goal, ...]:
    """Hold durations against the goals."""
    limits = {COLD: 0.06, WARM: 0.04, CONES: 0.4}
    found = [
        Goal(f'{name} / {PEER}', ratio(durations[name], durations[PEER]), limit)
        for name, limit in limits.items()
    ]
    share = float(np.median(durations[ADDED])) / SPAN_US
    return (*found, Goal(f'{ADDED} / time that they span', share, 0.1))


def as_dict(durations: dict[str, Array]) -> dict[str, Any]:
    """Return the figures for a machine."""
    return {
        'median_ms': {name: float(np.median(times)) / 1e3 for name, times in durations.items()},
        'goals': {goal.name: goal.value for goal in goals(durations)},
    }


def _problems() -> tuple[Problem, Problem]:
    """Return a problem, and the one of a little while before."""
    robot = Robot.from_urdf(icub_urdf(), ft_sensors=[], imus=['root_link'])
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    (evidence,) = gather(builder, _motion(robot, INSTANTS))
    rng = np.random.default_rng(2)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    merged = weighted_sum(evidence.kinds.values(), [1 / NOISE] * len(evidence.kinds))
    found = []
    for seed in (3, 4):
        noise = np.random.default_rng(seed).standard_normal(merged.n)
        rho = merged.R @ truth.reshape(-1) + noise
        found.append(
            Problem(
                evidence.block.unknowns, merged.R, rho, merged.count - merged.n, merged.count,
                robot.parameters,
            )
        )  # fmt: skip
    return found[0], found[1]


def _adding() -> Callable[[], object]:
    """Return what reduces a tenth of a second of the iCub with its six FT sensors."""
    robot = Robot.from_urdf(icub_urdf(), imus=['root_link'])
    gathering, samples = Gathering(EquationBuilder(robot)), _motion(robot, AT_ONCE)
    return lambda: gathering.add(samples)


def _motion(robot: Robot, n: int) -> SampleBatch:
    """Return instants of a robot that moves at random, its sensors reading nothing."""
    rng = np.random.default_rng(1)
    n_joints, n_imus = len(robot.joint_names), len(robot.imus)
    return SampleBatch(
        np.arange(1, n + 1),
        rng.uniform(-1.0, 1.0, (n, n_joints)),
        rng.normal(0.0, 1.0, (n, n_joints)),
        rng.normal(0.0, 4.0, (n, n_joints)),
        rng.normal(0.0, 0.5, (n, n_imus, 3)),
        rng.normal(0.0, 2.0, (n, n_imus, 3)) + np.array([0.0, 0.0, 9.81]),
        rng.normal(0.0, 2.0, (n, n_imus, 3)),
        np.zeros((n, len(robot.ft_sensors), 6)),
        efforts=np.zeros((n, n_joints)),
    )


def _with_cvxpy(problem: Problem) -> Array:
    """Build and solve the problem with the Euclidean prior, as users of cvxpy do."""
    import cvxpy as untyped

    cvxpy: Any = untyped
    x = cvxpy.Variable(len(problem.unknowns))
    residual = problem.factor @ x - problem.target
    constraints = [
        cvxpy.reshape(pseudo_inertia_map() @ x[10 * k : 10 * k + 10], (4, 4), order='C') >> 0
        for k in range(len(problem.unknowns.links))
    ]
    distance = cvxpy.sum_squares(x - problem.prior_point())
    objective = cvxpy.sum_squares(residual) / (2 * problem.count) + WEIGHT * distance
    cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(solver=cvxpy.CLARABEL)
    return np.asarray(x.value)


def pseudo_inertia_map() -> Array:
    """Return the matrix from ten parameters to the sixteen entries of the pseudo-inertia."""
    return np.asarray(pseudo_inertia(np.eye(10)).reshape(10, 16).T)
