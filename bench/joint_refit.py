# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How fast the identifier refits a robot: all submodels, and the FT offsets that they share.

The robot is the iCub of icub-models: 33 links, six of which its FT sensors cut in two, so 39 in 7
submodels. Rows of half a minute have been worked in. Beside it the same problem, of the same
triangles, is built and solved in cvxpy with Clarabel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.background.node_settings import node_settings
from bench.background.pole_log import smooth_motion
from bench.refit import PEER, pseudo_inertia_map
from bench.run import Goal
from bench.timing import Array, Progress, Timed, interleave, ratio
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.equations.wrenches import with_readings
from inertial_estimation.identification.errors_in_variables import StateNoise, without_state_errors
from inertial_estimation.identification.recursion.base_values import BaseTable
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.memory import SubmodelMemory, excitation
from inertial_estimation.identification.recursion.parameter_roots import parameter_roots
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf

ROUNDS = 15
SECONDS = 30
"""Whose rows are known."""
SWING = 0.6
"""Of each sine of a joint [rad]."""
GRAVITY = np.array([0.0, 0.0, 9.81])
BASE = 'root_link'
WRONG = 0.2
"""The description's masses are off by so much of them at most."""
NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
"""Of FT sensors [N, Nm]."""
JOINT_NOISE = np.diag([1e-4, 1e-3, 2e-2])
"""Of position, velocity and acceleration [rad, rad/s, rad/s^2]."""
IMU_NOISE = np.diag([1e-3, 2e-2, 2e-2])
"""Of angular velocity, proper and angular acceleration [rad/s, m/s^2, rad/s^2]."""
OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
"""Theirs [N, Nm]."""
ERRORS = 'errors of the motion taken out of rows'
"""Before a refit; cvxpy is given rows without."""
COLD, WARM = 'joint refit, cold', 'joint refit, warm'
WITH_ERRORS = ', with errors of the motion'
REST = 'deviations, base parameters and URDF of an update'
COLUMNS = ('call', 'median [ms]', 'fastest round [ms]', f'/ {PEER}')
TITLE = 'Refit of the identifier: 33 links, six cut in two, in 7 submodels that share FT offsets'
LIMITS_MS = {COLD: 25.0, WARM: 10.0}
LIMIT = 0.06
"""Of both, over cvxpy's."""


@dataclass(frozen=True, eq=False)
class Situation:
    """A robot that has been moving."""

    identifier: RecursiveIdentifier
    memories: tuple[SubmodelMemory, ...]
    """Its submodels."""
    start: Mapping[str, Array]
    """Bodies of the refit a second ago, by submodel."""
    weight: float
    """Of the prior."""


def situation(seconds: int = SECONDS) -> Situation:
    """Return a robot that has been moving."""
    robot = Robot.from_urdf(icub_urdf(), imus=[BASE])
    identifier = RecursiveIdentifier(robot, node_settings(robot))
    identifier.noise = StateNoise(
        np.tile(JOINT_NOISE, (len(robot.joint_names), 1, 1)),
        np.tile(IMU_NOISE, (len(robot.imus), 1, 1)),
        measures_velocities=True,
    )
    samples, external = _log(robot, seconds, identifier.noise)
    start: dict[str, Array] = {}
    weight = identifier.settings.weight
    for part in equal_parts(samples, 1.0):
        if all(one.information is not None for one in identifier.memories):
            found = joint_refit(identifier.memories, weight, start)
            start = {one.memory.block.submodel.name: one.parameters for one in found.fits}
        rows = np.searchsorted(samples.stamp_ns, part.stamp_ns)
        identifier.add(part, external={BASE: external[rows]})
    return Situation(identifier, identifier.memories, start, weight)


def measure(rounds: int = ROUNDS, progress: Progress | None = None) -> dict[str, Array]:
    """
    Time all contenders side by side.

    Returns (rounds, 1) [us].
    """
    now = situation()
    calls: dict[str, Callable[[], object]] = {
        PEER: lambda: with_cvxpy(now.memories, now.weight),
        ERRORS: lambda: _without_errors(now),
        COLD: lambda: joint_refit(now.memories, now.weight),
        WARM: lambda: joint_refit(now.memories, now.weight, now.start),
        REST: _rest(now),
    }
    return interleave({name: Timed(call, 1) for name, call in calls.items()}, rounds, progress)


def rows(durations: dict[str, Array]) -> list[tuple[str, ...]]:
    """Return the table of durations."""
    return [
        (
            name,
            f'{np.median(times) / 1e3:.1f}',
            f'{times.min() / 1e3:.1f}',
            f'{ratio(times, durations[PEER]):.3f}',
        )
        for name, times in durations.items()
    ]


def goals(durations: dict[str, Array]) -> tuple[Goal, ...]:
    """Hold durations against the goals."""
    whole = {name: durations[name] + durations[ERRORS] for name in LIMITS_MS}
    return (
        *(
            Goal(f'{name}{WITH_ERRORS} [ms]', float(np.median(whole[name])) / 1e3, limit)
            for name, limit in LIMITS_MS.items()
        ),
        *(
            Goal(f'{name} / {PEER}', ratio(durations[name], durations[PEER]), LIMIT)
            for name in LIMITS_MS
        ),
        *(
            Goal(f'{name}{WITH_ERRORS} / {PEER}', ratio(whole[name], durations[PEER]), LIMIT)
            for name in LIMITS_MS
        ),
    )


def as_dict(durations: dict[str, Array]) -> dict[str, Any]:
    """Return the figures for a machine."""
    return {
        'median_ms': {name: float(np.median(times)) / 1e3 for name, times in durations.items()},
        'fastest_ms': {name: float(times.min()) / 1e3 for name, times in durations.items()},
        'goals': {goal.name: goal.value for goal in goals(durations)},
    }


def with_cvxpy(known: Sequence[SubmodelMemory], weight: float) -> tuple[dict[str, Array], Array]:
    """
    Build and solve the joint problem with the Euclidean prior, as users of cvxpy do.

    Returns bodies (n_links, 10); offsets (n_offsets,) [N, Nm].
    """
    import cvxpy as untyped

    cvxpy: Any = untyped
    names = tuple(dict.fromkeys(name for one in known for name in one.offset_names))
    offsets = cvxpy.Variable(len(names))
    to_matrix = pseudo_inertia_map()
    cost, constraints, bodies = 0.0, [], {}
    for one in known:
        information = one.information
        assert information is not None
        n = one.block.unknowns.n_inertial
        x = bodies[one.block.submodel.name] = cvxpy.Variable(n)
        own = [names.index(name) for name in one.offset_names]
        left = information.R[:, :n] @ x + information.R[:, one.offsets] @ offsets[own]
        drawn = weight * information.count
        cost += cvxpy.sum_squares(left - information.rho) / 2
        cost += drawn * cvxpy.sum_squares(x - one.prior.reshape(-1))
        constraints += [
            cvxpy.reshape(to_matrix @ x[k : k + 10], (4, 4), order='C') >> 0
            for k in range(0, n, 10)
        ]
    cvxpy.Problem(cvxpy.Minimize(cost), constraints).solve(solver=cvxpy.CLARABEL)
    return {name: x.value.reshape(-1, 10) for name, x in bodies.items()}, offsets.value


def _without_errors(now: Situation) -> None:
    """Take out of all rows what errors of the motion add, as after new rows."""
    for one in now.memories:
        assert one.information is not None and one.errors is not None
        prior = one.block.unknowns.join(one.prior)
        without_state_errors(one.information, one.errors, prior)


def _rest(now: Situation) -> Callable[[], object]:
    """Return what finds all else that an update of the node says."""
    robot, identifier = now.identifier.robot, now.identifier
    table = BaseTable(identifier.builder)
    found = joint_refit(now.memories, now.weight, now.start)
    parameters = identifier.prior.copy()
    for bodies in found.fits:
        parameters[list(bodies.memory.block.submodel.links)] = bodies.parameters
    unknowns = {one.memory.block.submodel.name: one.x for one in found.fits}
    return lambda: (
        parameter_roots(found, now.weight),
        [excitation(one, now.weight) for one in now.memories],
        table.values(now.memories, unknowns),
        export_urdf(robot, parameters),
    )


def _log(robot: Robot, seconds: int, motion: StateNoise) -> tuple[SampleBatch, Array]:
    """Return samples of a robot on the move, and the wrench that holds its base, (n, 6)."""
    rng = np.random.default_rng(2)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    samples = smooth_motion(robot, seconds, swing=SWING)
    samples = replace(samples, proper_accelerations=samples.proper_accelerations + GRAVITY)
    samples = with_readings(robot, samples, truth)
    builder = EquationBuilder(robot)
    base, own = robot.submodels[0], truth[list(robot.submodels[0].links)].reshape(-1)
    assert robot.link_names[base.root] == BASE
    missing = [part.Y @ own - part.y for part in builder.rows(samples)[0].values()]
    noise = OFFSET + NOISE * rng.normal(size=samples.ft_readings.shape)
    noisy = replace(samples, ft_readings=samples.ft_readings + noise)
    return motion.shaken(noisy, rng), np.stack(missing, axis=1)
