# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot on two feet picks something up, and goes on moving.

An estimator that goes by the description takes the weight for a force on the hand. One that takes
over what is identified does not, soon after.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.background.node_settings import node_settings, state_noise
from bench.background.situations import OF_MASS, OF_PLACE
from bench.background.standing_log import (
    RATE,
    SETTINGS,
    StandingLog,
    record,
)
from bench.background.torque_errors import HELD
from bench.background.wrong_description import OFFSETS
from bench.run import Goal
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.scenario import carrying

Array = NDArray[np.float64]

SECONDS, WAIT = 20.0, 10.0
"""Of the scene, and from the moment it picks something up until figures count [s]."""
FALSE_FORCE, WEIGHED = 1.0, 8.0
"""What is left of a false force at most, and what there is of it at least before [N]."""


@dataclass(frozen=True, eq=False)
class Second:
    """What is known after a second, and what it brought."""

    refit: Refit
    payload: Payload | None
    """Of the arm that carries."""
    false_force: float
    """Mean force on the hand that carries, with what was known before that second [N]."""


def carried_load(seed: int = 0) -> tuple[Goal, ...]:
    """Let the robot pick something up."""
    scenario = carrying(SECONDS, seed)
    (load,) = scenario.loads
    log = record(scenario, SECONDS)
    told = _follow(log, load.frame, seed)
    before, up, after = (
        told[round(load.start + wait)] for wait in (-1.0, 1.0, WAIT)
    )  # fmt: skip
    hand = log.robot.link_names.index(load.frame)
    links = list(next(one.links for one in log.robot.submodels if hand in one.links))
    gain = (after.refit.parameters - before.refit.parameters)[links, 0].sum()
    far = np.inf
    if after.payload is not None:
        far = float(np.linalg.norm(after.payload.center - load.center))
    mass = np.inf if after.payload is None else abs(after.payload.mass - load.mass)
    what = f'on two feet, {load.mass:g} kg in a hand'
    since = f'{what}, {WAIT:g} s later'
    least = min(one.refit.least_margin for one in told.values())
    return (
        Goal(f'{since}: mass of the arm, off [kg]', abs(gain - load.mass), OF_MASS),
        Goal(f'{since}: mass of it, off [kg]', mass, OF_MASS),
        Goal(f'{since}: its centre of mass, off [m]', far, OF_PLACE),
        Goal(f'{what}: false force at first [N]', up.false_force, WEIGHED, at_least=True),
        Goal(f'{since}: false force [N]', after.false_force, FALSE_FORCE),
        Goal(f'{what}: smallest eigenvalue of a body', least, 0.0, at_least=True),
    )


def _follow(log: StandingLog, hand: str, seed: int) -> dict[int, Second]:
    """Return what is known after each second since rows tell something."""
    robot, arm = log.robot, _submodel(log.robot, hand)
    rng = np.random.default_rng([seed, 3])
    offsets = OFFSETS * rng.normal(size=(len(robot.ft_sensors), 6))
    samples = replace(log.samples, ft_readings=log.samples.ft_readings + offsets)
    identifier = RecursiveIdentifier(robot, node_settings(robot))
    identifier.noise = state_noise(robot, SETTINGS, RATE)
    held = [k for k, one in enumerate(robot.submodels) if one.name in HELD]
    told: dict[int, Second] = {}
    believed: tuple[Robot, Array] | None = None
    for part in equal_parts(samples, 1.0):
        force = np.nan if believed is None else _force(log, *believed, part, hand)
        free = np.ones((len(part), len(robot.submodels)), dtype=bool)
        free[:, held] = False
        identifier.add(part, free=free)
        refit = identifier.refit()
        if refit is None:
            continue
        if refit.refitted:
            found = [refit.subtracted.get(one.name, np.zeros(6)) for one in robot.ft_sensors]
            # Nobody subtracts what is not told.
            believed = robot.with_parameters(refit.parameters), np.nan_to_num(found)
        second = round(1e-9 * float(part.stamp_ns[-1]))
        told[second] = Second(refit, identifier.payloads().get(arm), force)
    return told


def _submodel(robot: Robot, frame: str) -> str:
    """Return the submodel that a frame is on."""
    link, _ = robot.frame(frame)
    return next(one.name for one in robot.submodels if link in one.links)


def _force(
    log: StandingLog, robot: Robot, offsets: Array, samples: SampleBatch, frame: str
) -> float:
    """Return the size of the mean force that an estimator finds at a frame [N]."""
    calibration = FtCalibration(np.tile(np.eye(6), (len(offsets), 1, 1)), offsets)
    contacts = [Contact(name) for name in log.contacts]
    found = WrenchEstimator(robot, contacts, calibration=calibration).batch(samples)
    forces = found.wrenches[:, log.contacts.index(frame), :3]
    return float(np.sqrt(np.nanmean(np.sum(forces**2, axis=1))))
