# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Shares of identified parameters within stated deviations: simulated logs of an iCub arm."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from bench.report import Table
from inertial_estimation import Robot, SampleBatch, identify
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.solvers.mass_points import link_grids
from inertial_estimation.logs.log import Log
from inertial_estimation.model.geometry import Box
from inertial_estimation.model.inertia import principal_axes
from inertial_estimation.simulation.description import icub_urdf

JOINTS = ['r_shoulder_pitch', 'r_shoulder_roll', 'r_shoulder_yaw']
LOW, HIGH = np.array([[-1.4, -1.6, -0.4], [0.3, -0.3, 1.0]])
"""Positions between which the arm moves [rad]."""
MOTIONS = {'slow': (10.0, 0.1), 'medium': (3.0, 0.1), 'fast': (1.0, 0.1), 'in step': (1.0, 0.0)}
"""
Time from point to point [s], and the share by which it varies. Where it does not, all jumps of
jerk fall on samples, and readings that nothing averages alias them alike.
"""
RATE, SECONDS = 50.0, 60.0
ENCODER, FT = 1e-4, np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
"""Noise [rad; N, N m]."""
DRAWS = {
    'normal': lambda rng, shape: rng.normal(size=shape),
    'Student t, 3 degrees': lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3.0),
}
METHODS = 'least_squares', 'entropic', 'semidefinite', 'manifold', 'mass_points'
LARGEST_BOX = 2.0
"""Of mass points over the cuboid of even density, in which they can represent the truth."""


def measure(seeds: Sequence[int]) -> Iterator[tuple[list[Table], list]]:
    """Yield a table for each kind of noise; the URDF is exact."""
    robot = Robot.from_urdf(
        icub_urdf('iCubGazeboV2_5'), joints=JOINTS, locked_positions={'r_elbow': 0.8},
        ft_sensors=['r_arm_ft'], imus=[], fixed_link='root_link',
    )  # fmt: skip
    for noise, draw in DRAWS.items():
        rows = []
        for number, (motion, times) in enumerate(MOTIONS.items()):
            errors = {method: [] for method in METHODS}
            for seed in seeds:
                rng = np.random.default_rng([seed, number])
                exact = _moved(robot, *times, rng)
                q, ft = exact.positions, exact.ft_readings
                q = q + ENCODER * draw(rng, q.shape)
                noisy = replace(exact, positions=q, ft_readings=ft + FT * draw(rng, ft.shape))
                log = Log(samples=noisy, origin_ns=0)
                for method, found in _errors(robot, log, rng).items():
                    errors[method].append(found)
            for method, found in errors.items():
                within = (100.0 * float(np.mean(np.array(found) < k)) for k in (2, 3))
                rows.append((motion, method, *within, float(np.max(found))))
        title = f'Errors over stated deviations, noise {noise}, {len(seeds)} seeds, exact URDF'
        yield [Table(title, ('motion', 'method', '< 2 [%]', '< 3 [%]', 'largest'), rows)], []


def _errors(robot: Robot, log: Log, rng: np.random.Generator) -> dict:
    """Return errors of the parameters beyond the FT sensor over their deviations, by method."""
    seen, found = [one.evidence for one in identify(robot, log).fit.blocks], {}
    side = next(k for k, one in enumerate(seen) if len(one.block.unknowns) == 10)
    link = seen[side].block.submodel.links[0]
    (mass,), (center,), (axes,), (moments,) = principal_axes(robot.parameters[[link]])
    half = np.sqrt(3.0 * moments / mass)
    larger = half * rng.uniform(1.0, LARGEST_BOX, 3)
    names, L_H_S = robot.link_names, np.eye(4)
    L_H_S[:3, :3], L_H_S[:3, 3] = axes, center + axes @ rng.uniform(half - larger, larger - half)
    grids = link_grids(names, robot.parameters, {}, configured={names[link]: Box(L_H_S, larger)})
    for method in METHODS:
        chosen = {'grids': dict(zip(names, grids))} if method == 'mass_points' else {}
        answer = fit(robot, seen, method, chosen).blocks[side].answer
        found[method] = np.abs(answer.x - robot.parameters[link]) / answer.deviations
    return found


def _moved(robot: Robot, period: float, spread: float, rng: np.random.Generator) -> SampleBatch:
    """Return exact samples of a motion by polynomials of the fifth degree between points."""
    t, n = np.arange(round(SECONDS * RATE)) / RATE, int(SECONDS / period / (1.0 - spread)) + 2
    points = rng.uniform(LOW, HIGH, (n + 1, len(JOINTS)))
    lengths = period * rng.uniform(1.0 - spread, 1.0 + spread, n)
    ends = np.cumsum(lengths)
    first = np.searchsorted(ends, t, side='right')
    length, steps = lengths[first, None], points[first + 1] - points[first]
    u = 1.0 - (ends[first] - t)[:, None] / length
    q = points[first] + steps * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    v = steps * 30.0 * (u - u**2) ** 2 / length
    a = steps * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / length**2
    none, wrenches = np.zeros((len(t), 0, 3)), np.zeros((len(t), 1, 6))
    samples = SampleBatch((1e9 * t).round().astype(np.int64), q, v, a, none, none, none, wrenches)
    builder = EquationBuilder(robot)
    side = next(k for k, one in enumerate(builder.blocks) if len(one.unknowns) == 10)

    def systems(wrench):
        readings = np.tile(wrench, (len(t), 1, 1))
        kinds = builder.equations(replace(samples, ft_readings=readings))[side].values()
        return np.stack([k.Y for k in kinds], 1), np.stack([k.y for k in kinds], 1)

    # Right-hand sides are linear in the readings.
    Y, _ = systems(np.zeros(6))
    map_of_readings = np.stack([systems(one)[1] for one in np.eye(6)], axis=2)
    truth = robot.parameters[builder.blocks[side].submodel.links[0]]
    wrenches[:, 0] = np.linalg.solve(map_of_readings, (Y @ truth)[..., None])[..., 0]
    return replace(samples, ft_readings=wrenches)
