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
from inertial_estimation.identification.preparation import Preparation
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import Log
from inertial_estimation.simulation.description import icub_urdf

JOINTS = ['r_shoulder_pitch', 'r_shoulder_roll', 'r_shoulder_yaw']
LOW, HIGH = np.array([[-1.4, -1.6, -0.4], [0.3, -0.3, 1.0]])
"""Positions between which the arm moves [rad]."""
PERIODS = {'slow': 10.0, 'medium': 3.0, 'fast': 1.0}
"""From point to point [s]."""
RATE, SECONDS = 50.0, 60.0
ENCODER, FT = 1e-4, np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
"""Noise [rad; N, N m]."""
DRAWS = {
    'normal': lambda rng, shape: rng.normal(size=shape),
    'Student t, 3 degrees': lambda rng, shape: rng.standard_t(3, shape) / np.sqrt(3.0),
}
CUTOFFS = {'fixed 10 Hz': 10.0, 'of the motion': None}
METHODS = 'least_squares', 'entropic', 'semidefinite', 'manifold'


def measure(seeds: Sequence[int]) -> Iterator[tuple[list[Table], list]]:
    """Yield a table for each kind of noise; the URDF is exact."""
    robot = Robot.from_urdf(
        icub_urdf('iCubGazeboV2_5'), joints=JOINTS, locked_positions={'r_elbow': 0.8},
        ft_sensors=['r_arm_ft'], imus=[], fixed_link='root_link',
    )  # fmt: skip
    columns = ('motion', 'cutoff', 'method', '< 2 [%]', '< 3 [%]', 'largest')
    for noise, draw in DRAWS.items():
        rows = []
        for number, (motion, period) in enumerate(PERIODS.items()):
            logs = []
            for seed in seeds:
                rng = np.random.default_rng([seed, number])
                logs.append(_noisy(_moved(robot, period, rng), draw, rng))
            for name, cutoff in CUTOFFS.items():
                errors = _errors(robot, logs, IdentifySettings(preparation=Preparation(cutoff)))
                for method, found in errors.items():
                    within = (100.0 * float(np.mean(found < k)) for k in (2, 3))
                    rows.append((motion, name, method, *within, float(found.max())))
        title = f'Errors over stated deviations, noise {noise}, {len(seeds)} seeds, exact URDF'
        yield [Table(title, columns, rows)], []


def _errors(robot: Robot, logs: Sequence[Log], settings: IdentifySettings) -> dict:
    """Return errors of the parameters beyond the FT sensor over their deviations, by method."""
    found = {method: [] for method in METHODS}
    for log in logs:
        seen = [one.evidence for one in identify(robot, log, settings).fit.blocks]
        for method, errors in found.items():
            for block in fit(robot, seen, method).blocks:
                answer = block.answer
                if len(answer.x) == 10:
                    truth = robot.parameters[block.evidence.block.submodel.links[0]]
                    errors.append(np.abs(answer.x - truth) / answer.deviations)
    return {method: np.concatenate(errors) for method, errors in found.items()}


def _moved(robot: Robot, period: float, rng: np.random.Generator) -> SampleBatch:
    """Return exact samples of a motion by polynomials of the fifth degree between points."""
    t = np.arange(round(SECONDS * RATE)) / RATE
    points = rng.uniform(LOW, HIGH, (int(np.ceil(SECONDS / period)) + 2, len(JOINTS)))
    first = (t / period).astype(int)
    u, steps = (t / period - first)[:, None], points[first + 1] - points[first]
    q = points[first] + steps * u**3 * (10.0 - 15.0 * u + 6.0 * u**2)
    v = steps * 30.0 * (u - u**2) ** 2 / period
    a = steps * 60.0 * u * (1.0 - u) * (1.0 - 2.0 * u) / period**2
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


def _noisy(exact: SampleBatch, draw, rng: np.random.Generator) -> Log:
    """Return a log of joint positions and FT readings with noise."""
    samples = replace(
        exact, velocities=0.0 * exact.velocities, accelerations=0.0 * exact.accelerations,
        positions=exact.positions + ENCODER * draw(rng, exact.positions.shape),
        ft_readings=exact.ft_readings + FT * draw(rng, exact.ft_readings.shape),
    )  # fmt: skip
    return Log(samples=samples, origin_ns=0)
