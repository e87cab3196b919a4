# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identify beside a robot with a wrong URDF, FT offsets removed before [T section 7.4, 6.4.2].

The iCub hangs on a pole and moves all joints. Offsets are found without a model, in poses before
it [T chapter 5], so that what is gained is the parameters'. Let e be the squared torque error with
the identified parameters less that with the true ones, over the same of the wrong URDF.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag

from bench.live_robots import (
    CENTRED,
    OFFSETS,
    RATE,
    WRONG,
    StandingLog,
    equal_parts,
    node_settings,
    record,
    state_noise,
    wrong_robot,
)
from bench.report import Goal, Table
from inertial_estimation.arrays import Array
from inertial_estimation.calibration.in_situ_offset import in_situ_offset
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.recursion.covariance import certainties
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.model.ft_calibration import WRENCH_SCALE, FtCalibration
from inertial_estimation.model.identifiable import base_parameters
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.noise import SensorNoise
from inertial_estimation.simulation.robot import SimulatedRobot
from inertial_estimation.simulation.scenario import Scenario, pole

SEEDS = tuple(range(10))
"""Each with its own URDF, offsets, motion and noise: seeds that share the noise err alike."""
ONSET, AT = 5.0, (10.0, 30.0, 60.0, 120.0)
"""When the joints begin to move, and times of motion after which parameters are judged [s]."""
JUDGED = 10.0
"""Length of the motion that follows, on which torques are judged [s]."""
LIMBS = {
    limb: tuple(f'{side}_{joint}' for side in 'lr' for joint in joints)
    for limb, joints in {
        'elbow': ('elbow',),
        'wrist': ('wrist_prosup', 'wrist_pitch', 'wrist_yaw'),
        'hip': ('hip_yaw',),
        'knee': ('knee',),
        'ankle': ('ankle_pitch', 'ankle_roll'),
    }.items()
}
"""Joints beyond FT sensors: the others depend on links that no sensor carries."""
WORSE = 2.0
"""Torque error with the wrong URDF over that with the true one, from which a limb is judged."""
POSES, TURN, SAMPLES = 24, 0.6, 40
"""Poses for the offsets, largest turn of a joint from the posture [rad], samples of each."""
EXCITED = 0.5
"""Stated deviation of an excited base parameter, over the error of wrong URDFs."""
MATRICES, SOME = (0.0, 0.03, 0.1), 4
"""Errors of FT matrices over the matrices, and seeds with wrong ones or a true URDF."""
DRAWS = 1000
"""Of seeds, for the spread of a median."""
GOALS = {30.0: 0.25, 120.0: 0.09}
"""Largest median of e, by time [s]."""


class Course(NamedTuple):
    """Identification with one wrong URDF."""

    wrong: Mapping[str, float]
    """Mean square torque error by limb [Nm^2], with the wrong URDF."""
    floor: Mapping[str, float]
    """With the true parameters."""
    found: Mapping[float, Mapping[str, float]]
    """With those identified up to each time of `AT`."""
    base: Mapping[float, Array]
    """
    Errors of base parameters, and stated deviations by the equations alone and of the answer,
    over the spread of wrong URDFs, shape (3, n).
    """
    covered: Mapping[float, Array]
    """Shares of parameters and of offsets within two stated deviations of the truth, (2,)."""

    def shares(self, time: float) -> dict[str, float]:
        """Return e of each limb whose URDF is wrong enough."""
        return {
            limb: (self.found[time][limb] - floor) / (self.wrong[limb] - floor)
            for limb, floor in self.floor.items()
            if self.wrong[limb] > WORSE**2 * floor
        }

    def base_ratios(self, first: float, last: float) -> tuple[float, float]:
        """Return the error of determined base parameters over that before, and as stated."""
        excited = self.base[first][1] < EXCITED
        sizes = [np.linalg.norm(self.base[at][::2, excited], axis=1) for at in (first, last)]
        return tuple((sizes[1] / sizes[0]).tolist())


def scene(seed: int) -> Scenario:
    """Return a robot on a pole that nothing pushes."""
    return replace(pole(seed=seed), pushes=(), onset=ONSET)


@cache
def motion(seed: int, seconds: float = ONSET + AT[-1] + JUDGED) -> StandingLog:
    """Record the motion."""
    return record(scene(seed), seconds)


@cache
def offset_errors(seed: int) -> Array:
    """Return the errors of offsets found without a model, (n_fts, 6) [N, Nm]."""
    still, rng = replace(scene(seed), motion={}), np.random.default_rng([seed, 5])
    robot = Robot.from_urdf(SimulatedRobot(still, {}, RATE).urdf)
    beyond = {one.root_sensor: one.name for one in robot.submodels if one.root_sensor >= 0}
    inner = [robot.links[k].joint for k in robot.submodels[0].links]
    names = [robot.joint_names[j] for j in inner if j >= 0]
    moved = [name for name in names if 'hip' in name or 'shoulder' in name]
    rows = []
    for k in range(POSES):
        turned = {joint: TURN * rng.uniform(-1.0, 1.0) for joint in moved}
        posture = {name: at + turned.get(name, 0.0) for name, at in still.posture.items()}
        simulated = SimulatedRobot(
            replace(still, posture=posture), {name: name for name in beyond.values()}, RATE
        )
        noise, order = SensorNoise(seed=1000 + POSES * seed + k), simulated.ft_names
        held = [noise.apply(simulated.step()) for _ in range(SAMPLES)]
        rows.append(
            [
                np.mean([getattr(one, name) for one in held], axis=0)
                for name in ('ft_readings', 'proper_accelerations')
            ]
        )
    readings, accelerations = (np.array(values) for values in zip(*rows, strict=True))
    errors = np.zeros((len(robot.ft_sensors), 6))
    for m, k in enumerate(beyond):
        found = in_situ_offset(
            readings[:, order.index(robot.ft_sensors[k].name)], accelerations[:, m],
            matrix=np.eye(6),
        )  # fmt: skip
        errors[k] = found.offset
    return errors


def identify(
    log: StandingLog, offset_error: Array, seed: int, wrong: float = WRONG, matrices: float = 0.0
) -> Course:
    """
    Identify beside a robot whose URDF is wrong; offset_error (n_fts, 6) of the calibration.

    matrices: error of each element of the FT matrices, over the matrix itself.
    """
    robot, rng = log.robot, np.random.default_rng([seed, 7])
    urdf = wrong_robot(robot, rng, wrong)
    offsets = OFFSETS * rng.normal(size=(len(robot.ft_sensors), 6))
    calibration = FtCalibration.identity(len(offsets)).with_offsets(offsets + offset_error)
    errors = matrices * rng.normal(size=(len(offsets), 6, 6))
    errors *= WRENCH_SCALE[:, None] / WRENCH_SCALE

    def measured(exact: SampleBatch) -> SampleBatch:
        loads = exact.ft_readings
        read = loads + np.einsum('sij,nsj->nsi', errors, loads) + offsets
        return replace(exact, ft_readings=read)

    readings = measured(log.samples)
    judged = log.times > log.times[-1] - JUDGED
    last, truth = readings.take(np.flatnonzero(judged)), log.torques[judged]
    columns = {
        limb: [robot.joint_names.index(name) for name in names] for limb, names in LIMBS.items()
    }

    def squares(used: Robot) -> dict[str, float]:
        contacts = [Contact(frame) for frame in log.contacts]
        estimate = WrenchEstimator(used, contacts, calibration=calibration).batch(last)
        error = (estimate.torques - truth) ** 2
        return {limb: float(np.nanmean(error[:, own])) for limb, own in columns.items()}

    identifier = RecursiveIdentifier(urdf, node_settings(urdf), calibration)
    identifier.noise = state_noise(urdf, CENTRED, RATE)
    free = np.array([one.root_sensor >= 0 for one in robot.submodels])
    centred = measured(log.centred)
    bases = [_Base(robot, one) for one in robot.submodels if one.root_sensor >= 0]
    found, base, covered = {}, {}, {}
    for part in equal_parts(centred, 1.0):
        time = round(1e-9 * float(part.stamp_ns[-1])) - ONSET
        identifier.add(part, free=np.tile(free, (len(part), 1)))
        refit = identifier.refit()
        if time in AT and refit is not None:
            used, known = urdf.with_parameters(refit.parameters), identifier.base_values()
            found[time] = squares(used)
            fits = joint_refit([one for one in identifier.memories if one.information])
            certain, within = certainties(fits), ([], [])
            base[time] = np.hstack([one.errors(used, known, certain) for one in bases])
            for fit in fits.fits:
                one, links = fit.memory, list(fit.memory.block.submodel.links)
                left = fit.x[one.offsets] - one.shift + offset_error.reshape(-1)[one.own]
                away = (fit.parameters - robot.parameters[links]).reshape(-1), left
                for k, root in enumerate(certain[one.name]):
                    within[k].append(np.abs(away[k]) < 2.0 * np.linalg.norm(root, axis=1))
            covered[time] = np.array([np.mean(np.concatenate(one)) for one in within])
    return Course(squares(urdf), squares(robot), found, base, covered)


class _Base:
    """Base parameters of one submodel [T 7.9]."""

    def __init__(self, robot: Robot, submodel: Submodel) -> None:
        self._links, self._name = list(submodel.links), submodel.name
        self._grouping = base_parameters(robot, submodel)
        maps = WRONG * whitening(robot.parameters[self._links])
        self._spread = np.linalg.norm(self._grouping.grouping @ block_diag(*maps), axis=1)
        self._true = self._of(robot)

    def _of(self, robot: Robot) -> Array:
        return self._grouping.of(robot.parameters[self._links].reshape(-1))

    def errors(self, robot: Robot, known: Mapping, certain: Mapping) -> Array:
        """Return errors and stated deviations over the spread of wrong URDFs, (3, n)."""
        deviations = known[self._name].deviations[: len(self._spread)]
        answer = np.linalg.norm(self._grouping.grouping @ certain[self._name].root, axis=1)
        return np.array([self._of(robot) - self._true, deviations, answer]) / self._spread


def measure(seeds: Sequence[int] = SEEDS) -> tuple[list[Table], list[Goal]]:
    """Run all seeds, and once more with a true URDF."""

    def course(seed: int, wrong: float = WRONG, matrices: float = 0.0) -> Course:
        return identify(motion(seed), offset_errors(seed), seed, wrong, matrices)

    courses = [course(seed) for seed in seeds]
    tables, goals, rows = [], [], []
    for time in AT:
        shares = [one.shares(time) for one in courses]
        every = [value for one in shares for value in one.values()]
        by_limb = [[one[limb] for one in shares if limb in one] for limb in LIMBS]
        medians = (np.median(one) if one else np.nan for one in by_limb)
        rows.append((time, *medians, np.median(every), max(every)))
        if time in GOALS:
            goals.append(Goal(f'median of e after {time:g} s', np.median(every), GOALS[time]))
            goals.append(Goal(f'largest e after {time:g} s', max(every), 1.0))
    columns = ('seconds', *LIMBS, 'all', 'largest')
    tables.append(Table(f'e, medians of {len(courses)} seeds', columns, rows))
    first, last = GOALS
    ratios = np.array([one.base_ratios(first, last) for one in courses])
    ratio, stated = np.median(ratios, axis=0)
    drawn = np.random.default_rng(0).choice(ratios[:, 0], (DRAWS, len(ratios)))
    low, high = np.quantile(np.median(drawn, axis=1), [0.025, 0.975])
    name = f'excited base parameters: error after {last:g} s over that after {first:g} s'
    name = f'{name} (95 % of medians: {low:.3f} to {high:.3f}; stated deviations: {stated:.3f})'
    goals.append(Goal(name, ratio, 0.5))
    rows = []
    for size in MATRICES:
        some = [course(seed, WRONG, size) for seed in seeds[:SOME]] if size else courses
        for time in GOALS:
            covered = np.array([one.covered[time] for one in some])
            shares = np.mean(covered, axis=0).tolist()
            scatter = np.std(covered, axis=0, ddof=1) / np.sqrt(len(covered))
            rows.append((size, time, len(some), *shares, *scatter.tolist()))
            for what, share in zip(('parameters', 'offsets'), shares, strict=True):
                name = f'{what} within two stated deviations after {time:g} s'
                name = f'{name}, FT matrices {size:.0%} off'
                goals.append(Goal(f'{name}, mean of seeds', share, 0.9, at_least=True))
                goals.append(Goal(f'{name}, likewise', share, 0.98))
    columns = ('matrices off', 'seconds', 'seeds', 'parameters', 'offsets', '+-', '+- offsets')
    tables.append(Table('Shares within two stated deviations', columns, rows))
    by_seed = [
        (seed, *(np.sqrt(one.wrong[limb]) for limb in LIMBS),
         *(np.sqrt(one.found[AT[-1]][limb]) for limb in LIMBS))
        for seed, one in zip(seeds, courses, strict=True)
    ]  # fmt: skip
    columns = ('seed', *(f'{limb}, URDF' for limb in LIMBS), *(f'{limb}, found' for limb in LIMBS))
    tables.append(Table(f'Rms torque error after {AT[-1]:g} s [Nm]', columns, by_seed))
    exact = [course(seed, 0.0) for seed in seeds[:SOME]]
    worse = max(
        np.sqrt(one.found[time][limb] / one.floor[limb])
        for one in exact for time in AT for limb in LIMBS
    )  # fmt: skip
    goals.append(Goal('true URDF: torque error over that of the URDF, largest', worse, 1.1))
    return tables, goals
