# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Time identification and joint refits beside cvxpy and Clarabel on the same equations.

cvxpy builds and solves the problem with the Euclidean prior, as its users do. It is not asked to
correct for errors of the motion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from resource import RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

import numpy as np

from bench.live_robots import equal_parts, held_by, node_settings, smooth_motion, with_readings
from bench.report import Array, Goal, Table, Timed, interleave, ratio
from bench.robots import random_sample
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.errors_in_variables import StateNoise, without_state_errors
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.solvers.methods import (
    solve,
    solve_entropic,
    solve_semidefinite,
)
from inertial_estimation.identification.unknowns import OF_A_JOINT
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf

ROUNDS, WEIGHT, WRONG = 15, 1e-2, 0.2
"""Rounds, weight of the prior, and error of the masses of the prior over themselves."""
SAMPLES, ADDED_AT_ONCE = 300, 100
NOISE = 0.05
"""Of each equation [N, Nm]."""
SECONDS = 30
"""Length of the motion before a joint refit [s]."""
JOINT_NOISE = np.diag([1e-4, 1e-3, 2e-2])
"""Position, velocity, acceleration [rad, rad/s, rad/s^2]."""
IMU_NOISE = np.diag([1e-3, 2e-2, 2e-2])
"""Angular velocity, proper and angular acceleration [rad/s, m/s^2, rad/s^2]."""
FT_NOISE = np.array([0.1, 0.1, 0.1, 0.005, 0.005, 0.005])
FT_OFFSET = np.array([6.0, -4.0, 9.0, 0.5, -0.3, 0.2])
BASE = 'root_link'
PEER = 'cvxpy and Clarabel'
ADDED = f'equations of {ADDED_AT_ONCE} samples added'
LOG_SECONDS, LOG_RATE = 60, 1000

Durations = dict[str, Array]


def measure(rounds: int = ROUNDS) -> tuple[list[Table], list[Goal]]:
    """Time all."""
    off_line = interleave(_identification(), rounds)
    live = interleave(_joint_refits(), rounds)
    goals = [
        Goal(f'{name} / {PEER}', ratio(off_line[name], off_line[PEER]), limit)
        for name, limit in (('entropic', 0.06), ('semidefinite', 0.4))
    ]
    share = float(np.median(off_line[ADDED])) / (1e3 * ADDED_AT_ONCE)
    goals.append(Goal(f'{ADDED} / their time at 1 kHz', share, 0.1))
    alone = live['joint refit']
    for name, spent in (
        ('', alone),
        (', errors of the motion', alone + live['errors of the motion']),
    ):
        goals.append(Goal(f'joint refit{name} / {PEER}', ratio(spent, live[PEER]), 0.06))
    with ProcessPoolExecutor(1, mp_context=get_context('spawn')) as process:
        log = process.submit(reduce_log).result()
    goals.append(Goal(f'{LOG_SECONDS} s at 1 kHz reduced [s]', log[1] + log[2], 10.0))
    columns = ('call', 'median [ms]', 'fastest [ms]', f'/ {PEER}')
    log_columns = ('equations', 'filter [s]', 'reduce [s]', 'memory [MB]')
    return [
        Table('Identification of 33 links', columns, _rows(off_line)),
        Table('Joint refit: 33 links, 7 submodels that share FT offsets', columns, _rows(live)),
        Table(f'{LOG_SECONDS} s at {LOG_RATE} Hz', log_columns, [log]),
    ], goals


def _rows(all_: Durations) -> list[tuple[object, ...]]:
    return [
        (name, float(np.median(times)) / 1e3, float(times.min()) / 1e3, ratio(times, all_[PEER]))
        for name, times in all_.items()
    ]


def _identification() -> dict[str, Timed]:
    """Return identifications of the iCub from joint torques, and the reduction of equations."""
    problem = _problem()
    robot = Robot.from_urdf(icub_urdf(), imus=[BASE])
    builder, samples = EquationBuilder(robot), _random_batch(robot, ADDED_AT_ONCE)
    calls: dict[str, Callable[[], object]] = {
        PEER: lambda: _by_cvxpy(problem),
        'entropic': one_thread()(lambda: solve_entropic.solve(problem, WEIGHT)),
        'semidefinite': one_thread()(
            lambda: solve_semidefinite.solve(problem, WEIGHT, prior='euclidean')
        ),
        ADDED: lambda: gather(builder, samples),
    }
    for name in ('manifold', 'mass_points'):
        calls[name] = one_thread()(partial(solve, problem, name, weight=WEIGHT))
    return {name: Timed(call, 1) for name, call in calls.items()}


def _problem() -> Problem:
    """Return the identification of the iCub from joint torques."""
    robot = Robot.from_urdf(icub_urdf(), ft_sensors=[], imus=[BASE])
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    (evidence,) = gather(builder, _random_batch(robot, SAMPLES))
    rng = np.random.default_rng(2)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    merged = weighted_sum(evidence.kinds.values(), [1 / NOISE] * len(evidence.kinds))
    rho = merged.R @ truth.reshape(-1) + np.random.default_rng(3).normal(size=merged.n)
    unknowns, excess = evidence.block.unknowns, merged.count - merged.n
    return Problem(unknowns, merged.R, rho, excess, merged.count, robot.parameters)


def _random_batch(robot: Robot, n: int) -> SampleBatch:
    """Return samples of a robot that moves at random, without load."""
    rng = np.random.default_rng(1)
    batch = SampleBatch.stack([random_sample(robot, rng) for _ in range(n)])
    efforts = np.zeros((n, len(robot.joint_names)))
    return replace(
        batch, stamp_ns=np.arange(1, n + 1), ft_readings=0.0 * batch.ft_readings, efforts=efforts
    )


def _by_cvxpy(problem: Problem) -> Array:
    import cvxpy as untyped

    cvxpy: Any = untyped
    x = cvxpy.Variable(len(problem.unknowns))
    residual = problem.factor @ x - problem.target
    distance = cvxpy.sum_squares(x - problem.prior_point())
    objective = cvxpy.sum_squares(residual) / (2 * problem.count) + WEIGHT * distance
    constraints = _consistent(cvxpy, x, len(problem.unknowns.links))
    cvxpy.Problem(cvxpy.Minimize(objective), constraints).solve(solver=cvxpy.CLARABEL)
    return np.asarray(x.value)


def _consistent(cvxpy: Any, x: Any, n_links: int) -> list[Any]:
    """Return the matrix inequalities of full physical consistency."""
    to_matrix = pseudo_inertia(np.eye(10)).reshape(10, 16).T
    return [
        cvxpy.reshape(to_matrix @ x[10 * k : 10 * k + 10], (4, 4), order='C') >> 0
        for k in range(n_links)
    ]


def _joint_refits() -> dict[str, Timed]:
    """Return refits of a robot that has been moving for a while."""
    robot = Robot.from_urdf(icub_urdf(), imus=[BASE])
    identifier = RecursiveIdentifier(robot, node_settings(robot))
    identifier.noise = StateNoise(
        np.tile(JOINT_NOISE, (len(robot.joint_names), 1, 1)),
        np.tile(IMU_NOISE, (len(robot.imus), 1, 1)),
        measures_velocities=True,
    )
    samples, external = _moving_log(robot, identifier.noise)
    known = identifier.memories
    for part in equal_parts(samples, 1.0):
        at = np.searchsorted(samples.stamp_ns, part.stamp_ns)
        identifier.add(part, external={BASE: external[at]})
    calls: dict[str, Callable[[], object]] = {
        PEER: lambda: _joint_by_cvxpy(known),
        'errors of the motion': lambda: _correct_errors(known),
        'joint refit': lambda: joint_refit(known),
    }
    return {name: Timed(call, 1) for name, call in calls.items()}


def _joint_by_cvxpy(known: Sequence[SubmodelMemory]) -> None:
    import cvxpy as untyped

    cvxpy: Any = untyped
    offsets = cvxpy.Variable(known[0].n_offsets)
    cost, constraints = 0.0, []
    for one in known:
        information = one.information
        assert information is not None
        n = one.block.unknowns.n_inertial
        x = cvxpy.Variable(n)
        left = information.R[:, :n] @ x + information.R[:, one.offsets] @ offsets[one.own]
        cost += cvxpy.sum_squares(left - information.rho) / 2
        cost += cvxpy.sum_squares(x - one.prior.reshape(-1)) / one.prior_variance
        constraints += _consistent(cvxpy, x, n // 10)
    cvxpy.Problem(cvxpy.Minimize(cost), constraints).solve(solver=cvxpy.CLARABEL)


def _correct_errors(known: Sequence[SubmodelMemory]) -> None:
    """Correct the equations for errors of the motion, as after new samples."""
    for one in known:
        assert one.information is not None and one.errors is not None
        without_state_errors(one.information, one.errors, one.block.unknowns.join(one.prior))


def _moving_log(robot: Robot, motion: StateNoise) -> tuple[SampleBatch, Array]:
    """Return noisy samples of a moving robot, and the wrench that holds its base, (n, 6)."""
    rng = np.random.default_rng(2)
    truth = robot.parameters * (1 + WRONG * rng.uniform(-1, 1, (len(robot.links), 1)))
    samples = smooth_motion(robot, SECONDS, swing=0.6)
    upright = np.array([0.0, 0.0, 9.81])
    samples = replace(samples, proper_accelerations=samples.proper_accelerations + upright)
    samples = with_readings(robot, samples, truth)
    held = held_by(robot, samples, truth)
    noise = FT_OFFSET + FT_NOISE * rng.normal(size=samples.ft_readings.shape)
    noisy = replace(samples, ft_readings=samples.ft_readings + noise)
    return motion.perturbed(noisy, rng), held


def reduce_log() -> tuple[int, float, float, float]:
    """Reduce a log in this process: equations, time of filter and reduction [s], memory [MB]."""
    robot = Robot.from_urdf(icub_urdf(), imus=[BASE])
    builder = EquationBuilder(
        robot, EquationChoice(efforts=robot.joint_names, friction=OF_A_JOINT)
    )
    log = smooth_motion(robot, LOG_SECONDS, LOG_RATE)
    unknown = np.full_like(log.positions, np.nan)
    log = replace(log, velocities=unknown, accelerations=unknown, efforts=log.positions)
    start = perf_counter()
    prepared = prepare(log, Preparation()).samples
    middle = perf_counter()
    evidence = gather(builder, prepared)
    end = perf_counter()
    count = sum(int(part.count) for one in evidence for part in one.kinds.values())
    memory = getrusage(RUSAGE_SELF).ru_maxrss / 1024
    return count, middle - start, end - middle, memory
