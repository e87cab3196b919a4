# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a working robot goes through: offsets drift, somebody pushes, something is picked up.

An iCub on a pole, simulated by its own equations. What is believed of it is wrong, FT sensors
have offsets and noise, and the identification remembers as the node does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.background.node_settings import node_settings
from bench.background.pole_log import smooth_motion
from bench.background.wrong_description import OFFSETS, wrong_robot
from bench.run import Goal
from inertial_estimation.identification.equations.wrenches import with_readings
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf

Array = NDArray[np.float64]

NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
"""Of FT readings [N, Nm]."""
HAND, SENSOR, ARM = 'l_hand', 'l_arm_ft', 'l_upper_arm'
DRIFT, DRIFT_SECONDS, DRIFT_RATE = 20.0, 600.0, 20.0
"""How far forces go, in which time, at how many samples per second [N, s, Hz]."""
PUSH, PUSHED, FREE = 50.0, 20.0, 20.0
"""Force of a push, how long it lasts, and how long nobody pushes before and after [N, s, s]."""
LOAD, CARRIED = 1.0, 25.0
"""Mass, and how long it is carried, and not before and after [kg, s]."""
CENTER = np.array([0.05, 0.02, -0.08])
"""Of that mass, in the hand [m]."""
OWN_INERTIA = 0.002
"""Of that mass about its centre [kg m^2]."""
FOLLOWED, UNMOVED, OF_MASS, OF_PLACE = 1.0, 1.0, 0.05, 0.01
"""Limits [N, N, kg, m]."""


@dataclass(frozen=True, eq=False)
class Told:
    """What an identification said of a log."""

    refits: tuple[Refit, ...]
    """After each second that had one."""
    changes: tuple[tuple[str, Change], ...]
    payloads: tuple[Mapping[str, Payload], ...]
    """After each of these."""

    def offsets(self, sensor: str) -> Array:
        """
        Return what is subtracted of a sensor after each refit.

        Returns (n, 6) [N, Nm].
        """
        return np.array([refit.subtracted[sensor] for refit in self.refits])


class PoleRobot:
    """The robot, what is believed of it, and its offsets."""

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed
        self._rng = np.random.default_rng(seed)
        self.robot = Robot.from_urdf(icub_urdf(), fixed_link='root_link')
        self.wrong = wrong_robot(self.robot, self._rng)
        self.offsets = OFFSETS * self._rng.normal(size=(len(self.robot.ft_sensors), 6))

    def noisy(self, samples: SampleBatch) -> SampleBatch:
        """Return samples whose readings have offsets and noise."""
        noise = NOISE * self._rng.normal(size=samples.ft_readings.shape)
        return replace(samples, ft_readings=samples.ft_readings + self.offsets + noise)

    def tell(self, samples: SampleBatch, every: int = 1) -> Told:
        """Identify."""
        identifier = RecursiveIdentifier(self.wrong, node_settings(self.wrong))
        refits, changes, payloads = [], [], []
        for k, part in enumerate(equal_parts(samples, 1.0)):
            changes += identifier.add(part)
            refit = identifier.refit() if not k % every else None
            if refit is not None:
                refits.append(refit)
                payloads.append(identifier.payloads())
        return Told(tuple(refits), tuple(changes), tuple(payloads))


def drift(seed: int = 0) -> tuple[Goal, ...]:
    """Let the force offsets of all FT sensors drift, each in a direction of its own."""
    pole = PoleRobot(seed)
    samples = smooth_motion(pole.robot, DRIFT_SECONDS, DRIFT_RATE, seed)
    samples = pole.noisy(with_readings(pole.robot, samples, pole.robot.parameters))
    ways = np.random.default_rng([seed, 1]).normal(size=(len(pole.robot.ft_sensors), 3))
    ways *= DRIFT / np.linalg.norm(ways, axis=1, keepdims=True)
    share = (samples.stamp_ns - samples.stamp_ns[0]) / (1e9 * DRIFT_SECONDS)
    samples.ft_readings[..., :3] += share[:, None, None] * ways
    told = pole.tell(samples, every=10)
    gone = np.array([refit.stamp_ns - samples.stamp_ns[0] for refit in told.refits]) / 1e9
    worst = 0.0
    for k, sensor in enumerate(pole.robot.ft_sensors):
        true = pole.offsets[k, :3] + gone[:, None] / DRIFT_SECONDS * ways[k]
        away = np.linalg.norm(told.offsets(sensor.name)[:, :3] - true, axis=1)
        worst = max(worst, float(away[gone > 60.0].max()))
    name = f'offsets that drift by {DRIFT:g} N in 10 min, farthest off after 1 min [N]'
    return (Goal(name, worst, FOLLOWED),)


def push(seed: int = 0) -> tuple[Goal, ...]:
    """Push a hand."""
    pole = PoleRobot(seed)
    samples = smooth_motion(pole.robot, 2 * FREE + PUSHED, seed=seed)
    wrench = np.zeros((len(samples), 6))
    times = (samples.stamp_ns - samples.stamp_ns[0]) / 1e9
    way = np.random.default_rng([seed, 2]).normal(size=3)
    wrench[np.abs(times - FREE - PUSHED / 2) < PUSHED / 2, :3] = PUSH * way / np.linalg.norm(way)
    readings = with_readings(pole.robot, samples, pole.robot.parameters, {HAND: wrench})
    told = pole.tell(pole.noisy(readings))
    since = [refit.stamp_ns - samples.stamp_ns[0] > 1e9 * (FREE - 1) for refit in told.refits]
    moved = max(
        float(np.abs(found[since, :3] - found[since][0, :3]).max())
        for found in (told.offsets(sensor.name) for sensor in pole.robot.ft_sensors)
    )
    name = f'any offset, by a push of {PUSH:g} N for {PUSHED:g} s, largest change [N]'
    return (Goal(name, moved, UNMOVED),)


def payload(seed: int = 0) -> tuple[Goal, ...]:
    """Let a hand pick something up, carry it, and put it down."""
    pole = PoleRobot(seed)
    samples = smooth_motion(pole.robot, 3 * CARRIED, seed=seed)
    times = (samples.stamp_ns - samples.stamp_ns[0]) / 1e9
    free = with_readings(pole.robot, samples, pole.robot.parameters)
    loaded = with_readings(pole.robot, samples, carrying(pole.robot))
    carried = np.abs(times - 1.5 * CARRIED) < 0.5 * CARRIED
    free.ft_readings[carried] = loaded.ft_readings[carried]
    told = pole.tell(pole.noisy(free))
    begin = samples.stamp_ns[0]
    at = {
        round((refit.stamp_ns - begin) / 1e9): (refit, payloads.get(ARM))
        for refit, payloads in zip(told.refits, told.payloads, strict=True)
    }
    links = list(next(one.links for one in pole.robot.submodels if one.name == ARM))
    up, down = round(CARRIED), round(2 * CARRIED)

    def gain(second: int) -> float:
        return float((at[second][0].parameters - at[up - 1][0].parameters)[links, 0].sum())

    taken, put = at[up + 10][1], at[down + 10][1]
    far = np.inf if taken is None else float(np.linalg.norm(taken.center - CENTER))
    lost = np.inf if put is None else abs(put.mass + LOAD)
    what = f'{LOAD:g} kg picked up, 10 s later'
    return (
        Goal(f'{what}: mass of the arm, off [kg]', abs(gain(up + 10) - LOAD), OF_MASS),
        Goal(f'{what}: centre of mass, off [m]', far, OF_PLACE),
        Goal('put down, 10 s later: what was lost, off [kg]', lost, OF_MASS),
        Goal('put down, 10 s later: mass of the arm, off [kg]', abs(gain(down + 10)), OF_MASS),
    )


def carrying(robot: Robot) -> Array:
    """
    Return the parameters of the robot with something in its hand.

    Returns (n_links, 10).
    """
    parameters = robot.parameters.copy()
    inertia = LOAD * ((CENTER @ CENTER) * np.eye(3) - np.outer(CENTER, CENTER))
    inertia += OWN_INERTIA * np.eye(3)
    body = [LOAD, *(LOAD * CENTER), *inertia[np.tril_indices(3)]]
    parameters[robot.link_names.index(HAND)] += body
    return parameters
