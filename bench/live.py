# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Identify beside a simulated robot: convergence, drift, push, payload, rest [T section 7.4]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench import convergence
from bench.live_robots import (
    CENTRED,
    OFFSETS,
    RATE,
    StandingLog,
    equal_parts,
    node_settings,
    record,
    smooth_motion,
    state_noise,
    with_readings,
    wrong_robot,
)
from bench.report import Goal, Table
from inertial_estimation.arrays import Array
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.recursion.identifier import SECOND_NS, RecursiveIdentifier
from inertial_estimation.identification.recursion.refit import Refit
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import STANDARD_GRAVITY, Robot
from inertial_estimation.model.tree import Submodel
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf
from inertial_estimation.simulation.scenario import carrying as carrying_scene

HELD = ('l_hip_3', 'r_hip_3', 'l_foot', 'r_foot')
"""Submodels of the supporting legs, which give no equations."""
FT_NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
HAND, SENSOR, ARM = 'l_hand', 'l_arm_ft', 'l_upper_arm'
LOAD, LOAD_CENTER, LOAD_INERTIA = 1.0, np.array([0.05, 0.02, -0.08]), 0.002
"""Payload: mass [kg], centre of mass in the hand [m], inertia about its centre [kg m^2]."""
FORCE_LIMIT, MASS_LIMIT, CENTER_LIMIT = 1.0, 0.05, 0.01
"""Limits of errors [N, kg, m]."""
STILL_SECONDS = 36_000
"""Ten hours."""


def drift(seed: int = 0, amount: float = 20.0, seconds: float = 600.0) -> tuple[Goal, ...]:
    """Let the force offsets of all FT sensors drift, each in its own direction [N, s]."""
    pole = _Pole(seed)
    samples = smooth_motion(pole.robot, seconds, 20.0, seed)
    samples = pole.noisy(with_readings(pole.robot, samples, pole.robot.parameters))
    ways = np.random.default_rng([seed, 1]).normal(size=(len(pole.robot.ft_sensors), 3))
    ways *= amount / np.linalg.norm(ways, axis=1, keepdims=True)
    share = (samples.stamp_ns - samples.stamp_ns[0]) / (1e9 * seconds)
    samples.ft_readings[..., :3] += share[:, None, None] * ways
    refits = [refit for refit, _ in pole.identify(samples, every=10)]
    gone = np.array([refit.stamp_ns - samples.stamp_ns[0] for refit in refits]) / 1e9
    worst = 0.0
    for k, sensor in enumerate(pole.robot.ft_sensors):
        true = pole.offsets[k, :3] + gone[:, None] / seconds * ways[k]
        found = np.array([refit.subtracted[sensor.name][:3] for refit in refits])
        worst = max(worst, float(np.linalg.norm(found - true, axis=1)[gone > 60.0].max()))
    name = f'offsets drift by {amount:g} N in 10 min: largest error after 1 min [N]'
    return (Goal(name, worst, FORCE_LIMIT),)


def push(seed: int = 0, force: float = 50.0, seconds: float = 20.0) -> tuple[Goal, ...]:
    """Push a hand [N, s]: no offset may follow."""
    pole = _Pole(seed)
    samples = smooth_motion(pole.robot, 40.0 + seconds, seed=seed)
    times = (samples.stamp_ns - samples.stamp_ns[0]) / 1e9
    way = np.random.default_rng([seed, 2]).normal(size=3)
    wrench = np.zeros((len(samples), 6))
    pushed = np.abs(times - 20.0 - seconds / 2) < seconds / 2
    wrench[pushed, :3] = force * way / np.linalg.norm(way)
    readings = with_readings(pole.robot, samples, pole.robot.parameters, {HAND: wrench})
    refits = [refit for refit, _ in pole.identify(pole.noisy(readings))]
    since = [refit for refit in refits if refit.stamp_ns - samples.stamp_ns[0] > 19e9]
    moved = max(
        float(np.abs(refit.subtracted[one.name] - since[0].subtracted[one.name])[:3].max())
        for refit in since
        for one in pole.robot.ft_sensors
    )
    name = f'push of {force:g} N for {seconds:g} s: largest change of an offset [N]'
    return (Goal(name, moved, FORCE_LIMIT),)


def payload(seed: int = 0, seconds: float = 25.0) -> tuple[Goal, ...]:
    """Let a hand pick a load up, carry it for some time [s], and put it down."""
    pole = _Pole(seed)
    samples = smooth_motion(pole.robot, 3 * seconds, seed=seed)
    times = (samples.stamp_ns - samples.stamp_ns[0]) / 1e9
    free = with_readings(pole.robot, samples, pole.robot.parameters)
    loaded = with_readings(pole.robot, samples, _carrying(pole.robot))
    carried = np.abs(times - 1.5 * seconds) < 0.5 * seconds
    free.ft_readings[carried] = loaded.ft_readings[carried]
    at = {
        round((refit.stamp_ns - samples.stamp_ns[0]) / 1e9): (refit, payloads.get(ARM))
        for refit, payloads in pole.identify(pole.noisy(free))
    }
    links = list(next(one.links for one in pole.robot.submodels if one.name == ARM))
    up, down = round(seconds), round(2 * seconds)

    def gain(second: int) -> float:
        return float((at[second][0].parameters - at[up - 1][0].parameters)[links, 0].sum())

    taken, put = at[up + 10][1], at[down + 10][1]
    far = np.inf if taken is None else float(np.linalg.norm(taken.center - LOAD_CENTER))
    lost = np.inf if put is None else abs(put.mass + LOAD)
    what = f'{LOAD:g} kg picked up, 10 s later'
    return (
        Goal(f'{what}: error of the arm mass [kg]', abs(gain(up + 10) - LOAD), MASS_LIMIT),
        Goal(f'{what}: error of its centre [m]', far, CENTER_LIMIT),
        Goal('put down, 10 s later: error of the payload [kg]', lost, MASS_LIMIT),
        Goal('put down, 10 s later: error of the arm mass [kg]', abs(gain(down + 10)), MASS_LIMIT),
    )


def carried_load(seed: int = 0, seconds: float = 20.0, wait: float = 10.0) -> tuple[Goal, ...]:
    """Let the robot on two feet pick a load up: the false force at its hand must go [s]."""
    scenario = carrying_scene(seconds, seed)
    (load,) = scenario.loads
    log = record(scenario, seconds)
    found = _follow_load(log, load.frame, seed)
    before, up, after = (found[round(load.start + after)] for after in (-1.0, 1.0, wait))
    submodel = _submodel(log.robot, load.frame)
    gain = (after[0].parameters - before[0].parameters)[list(submodel.links), 0].sum()
    body = after[1]
    far = np.inf if body is None else float(np.linalg.norm(body.center - load.center))
    mass = np.inf if body is None else abs(body.mass - load.mass)
    least = min(consistency_margin(refit.parameters).min() for refit, _, _ in found.values())
    what = f'two feet, {load.mass:g} kg in a hand'
    since = f'{what}, {wait:g} s later'
    return (
        Goal(f'{since}: error of the arm mass [kg]', abs(gain - load.mass), MASS_LIMIT),
        Goal(f'{since}: error of its mass [kg]', mass, MASS_LIMIT),
        Goal(f'{since}: error of its centre [m]', far, CENTER_LIMIT),
        Goal(f'{what}: false force at first [N]', up[2], 8.0, at_least=True),
        Goal(f'{since}: false force [N]', after[2], FORCE_LIMIT),
        Goal(f'{what}: smallest pseudo-inertia eigenvalue', least, 0.0, at_least=True),
    )


def standing_still(seconds: int = STILL_SECONDS, seed: int = 0) -> tuple[Goal, ...]:
    """Let an arm move for 30 s, stand still for some time [s], and move again."""
    rng = np.random.default_rng(seed)
    joints = ('l_shoulder_pitch', 'l_shoulder_roll', 'l_shoulder_yaw', 'l_elbow')
    robot = Robot.from_urdf(icub_urdf(), joints=joints, ft_sensors=[SENSOR], fixed_link='chest')
    links = list(robot.submodels[1].links)
    wrong, offset = wrong_robot(robot, rng), OFFSETS * rng.normal(size=6)
    identifier = RecursiveIdentifier(wrong, node_settings(wrong))
    still = with_readings(robot, smooth_motion(robot, 1.0, 3, swing=0.0), robot.parameters)
    stamp_ns, refits = 0, []

    def later(samples: SampleBatch) -> SampleBatch:
        nonlocal stamp_ns
        stamps = samples.stamp_ns - samples.stamp_ns[0] + stamp_ns + 1
        stamp_ns += round(SECOND_NS * max(1.0, np.ptp(stamps) / SECOND_NS))
        noise = FT_NOISE * rng.normal(size=samples.ft_readings.shape)
        return replace(samples, stamp_ns=stamps, ft_readings=samples.ft_readings + offset + noise)

    def move(motion: int) -> None:
        moving = smooth_motion(robot, 30.0, 20.0, motion)
        for part in equal_parts(later(with_readings(robot, moving, robot.parameters)), 1.0):
            identifier.add(part)
        refits.append(identifier.refit())

    move(seed + 1)
    for k in range(seconds):
        identifier.add(later(still))
        if not (k + 1) % min(600, seconds):
            refits.append(identifier.refit())
    move(seed + 2)

    def mass_error(parameters: Array) -> float:
        return float(abs((parameters - robot.parameters)[links, 0].sum()))

    away = max(float(np.linalg.norm(refit.offsets[SENSOR][:3] - offset[:3])) for refit in refits)
    allowed = FORCE_LIMIT - STANDARD_GRAVITY[2] * mass_error(wrong.parameters)
    least = min(consistency_margin(refit.parameters).min() for refit in refits)
    what = f'{seconds} s of standing still'
    return (
        Goal(f'{what}: largest error of the offset [N]', away, allowed),
        Goal(f'{what}: smallest pseudo-inertia eigenvalue', least, 0.0, at_least=True),
        Goal('error of the arm mass before it [kg]', mass_error(refits[0].parameters), MASS_LIMIT),
        Goal('after it and motion [kg]', mass_error(refits[-1].parameters), MASS_LIMIT),
    )


def measure(seeds: Sequence[int]) -> tuple[list[Table], list[Goal]]:
    """Run all experiments; seeds of wrong URDFs."""
    tables, goals = convergence.measure(seeds)
    for experiment in (drift, push, payload, carried_load):
        goals += experiment()
    goals += standing_still()
    return tables, goals


class _Pole:
    """A robot on a pole, its wrong URDF, and the offsets of its FT sensors."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.robot = Robot.from_urdf(icub_urdf(), fixed_link='root_link')
        self.wrong = wrong_robot(self.robot, self._rng)
        self.offsets = OFFSETS * self._rng.normal(size=(len(self.robot.ft_sensors), 6))

    def noisy(self, samples: SampleBatch) -> SampleBatch:
        noise = FT_NOISE * self._rng.normal(size=samples.ft_readings.shape)
        return replace(samples, ft_readings=samples.ft_readings + self.offsets + noise)

    def identify(self, samples: SampleBatch, every: int = 1) -> list[tuple[Refit, dict]]:
        """Return refits, each with the payloads found so far."""
        identifier, found = RecursiveIdentifier(self.wrong, node_settings(self.wrong)), []
        for k, part in enumerate(equal_parts(samples, 1.0)):
            identifier.add(part)
            refit = identifier.refit() if not k % every else None
            if refit is not None:
                found.append((refit, dict(identifier.payloads())))
        return found


def _carrying(robot: Robot) -> Array:
    """Return the parameters of the robot with a load in its hand, shape (n_links, 10)."""
    c = LOAD_CENTER
    inertia = LOAD * ((c @ c) * np.eye(3) - np.outer(c, c)) + LOAD_INERTIA * np.eye(3)
    parameters = robot.parameters.copy()
    body = [LOAD, *(LOAD * c), *inertia[np.tril_indices(3)]]
    parameters[robot.link_names.index(HAND)] += body
    return parameters


def _follow_load(log: StandingLog, hand: str, seed: int) -> dict[int, tuple]:
    """Return refit, payload of the arm and false force at the hand after each second."""
    robot, arm = log.robot, _submodel(log.robot, hand).name
    rng = np.random.default_rng([seed, 3])
    offsets = OFFSETS * rng.normal(size=(len(robot.ft_sensors), 6))
    samples = replace(log.centred, ft_readings=log.centred.ft_readings + offsets)
    identifier = RecursiveIdentifier(robot, node_settings(robot))
    identifier.noise = state_noise(robot, CENTRED, RATE)
    found: dict[int, tuple] = {}
    source: tuple[Robot, Array] | None = None
    for part in equal_parts(samples, 1.0):
        force = np.nan if source is None else _force(log, *source, part, hand)
        identifier.add(part, free=_free(robot, len(part)))
        refit = identifier.refit()
        if refit is None:
            continue
        if refit.refitted:
            subtracted = [refit.subtracted.get(one.name, np.zeros(6)) for one in robot.ft_sensors]
            source = robot.with_parameters(refit.parameters), np.nan_to_num(subtracted)
        second = round(1e-9 * float(part.stamp_ns[-1]))
        found[second] = refit, identifier.payloads().get(arm), force
    return found


def _free(robot: Robot, n: int) -> NDArray[np.bool_]:
    """Return which submodels are in free air, shape (n, n_submodels)."""
    return np.tile([one.name not in HELD for one in robot.submodels], (n, 1))


def _submodel(robot: Robot, frame: str) -> Submodel:
    link, _ = robot.frame(frame)
    return next(one for one in robot.submodels if link in one.links)


def _force(
    log: StandingLog, robot: Robot, offsets: Array, samples: SampleBatch, frame: str
) -> float:
    """Return the rms force estimated at a frame [N]."""
    contacts = [Contact(name) for name in log.contacts]
    calibration = FtCalibration.identity(len(offsets)).with_offsets(offsets)
    estimator = WrenchEstimator(robot, contacts, calibration=calibration)
    forces = estimator.batch(samples).wrenches[:, log.contacts.index(frame), :3]
    return float(np.sqrt(np.nanmean(np.sum(forces**2, axis=1))))
