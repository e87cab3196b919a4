# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Torques of shoulders and elbows with three descriptions of the robot, against the truth [T 7.4].

The estimator runs three times on the same samples: with a description that is wrong, with that of
the robot as it is, and with what the recursive identification, which knows the wrong one, has
found up to the second before. The first two have offsets of their own: those that fit their own
parameters best while the robot stands still at the beginning, a tare. The third begins with that
of the wrong description, and takes offsets over together with parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.background.base_errors import BaseErrors
from bench.background.node_settings import node_settings, state_noise
from bench.background.standing_log import (
    ONSET,
    RATE,
    SETTINGS,
    StandingLog,
)
from bench.background.wrong_description import (
    OFFSETS,
    tare,
    wrong_robot,
)
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

ARMS = ('l_upper_arm', 'r_upper_arm')
"""Submodels beyond an FT sensor, in free air."""
HELD = ('l_hip_3', 'r_hip_3', 'l_foot', 'r_foot')
"""Submodels of the legs it stands on: they give no rows."""
JOINTS = tuple(
    f'{side}_{joint}'
    for side in 'lr'
    for joint in ('shoulder_pitch', 'shoulder_roll', 'shoulder_yaw', 'elbow')
)
DESCRIPTIONS = ('URDF', 'true', 'identified', 'its bodies alone')
"""The last one keeps the offsets of the URDF's tare."""
SETTLED = 1.0
"""A tare leaves out so much at the beginning and before the motion [s]."""


@dataclass(frozen=True, eq=False)
class Run:
    """What came of one wrong description."""

    seed: int
    """Of description and offsets."""
    times: Array
    """End of each second, shape (n,) [s]."""
    squares: Array
    """Mean squares of errors in it, shape (n, 4, n_joints) of `DESCRIPTIONS` and `JOINTS`."""
    base: BaseErrors
    """Of what was identified."""
    least_margin: float
    """Smallest eigenvalue of a pseudo-inertia in anything published."""
    refitted: tuple[str, ...]
    """Submodels that were refitted at the end."""
    offset_error: float
    """Of the arms' forces at the end, largest [N]."""


def run(log: StandingLog, seed: int) -> Run:
    """Estimate and identify."""
    rng = np.random.default_rng(seed)
    offsets = OFFSETS * rng.normal(size=(len(log.robot.ft_sensors), 6))
    samples = replace(log.samples, ft_readings=log.samples.ft_readings + offsets)
    wrong = wrong_robot(log.robot, rng)
    rest = samples.take(np.flatnonzero(np.abs(log.times - ONSET / 2) < ONSET / 2 - SETTLED))
    tared = tare(wrong, rest, ARMS)
    believed = [(wrong, tared)] * len(DESCRIPTIONS)
    believed[1] = log.robot, tare(log.robot, rest, ARMS)
    identifier = RecursiveIdentifier(wrong, node_settings(wrong), _subtracting(tared))
    identifier.noise = state_noise(wrong, SETTINGS, RATE)
    held = [k for k, one in enumerate(wrong.submodels) if one.name in HELD]
    base, refit = BaseErrors.of(log.robot, wrong, ARMS), None
    times, squares, margins, begin = [], [], [], 0
    for part in equal_parts(samples, 1.0):
        truth = log.torques[begin : begin + len(part)]
        begin += len(part)
        squares.append([_squares(log, *pair, part, truth) for pair in believed])
        free = np.ones((len(part), len(wrong.submodels)), dtype=bool)
        free[:, held] = False
        identifier.add(part, free=free)
        refit = identifier.refit()
        if refit is not None and refit.refitted:
            believed[2] = _taken_over(wrong, tared, refit)
            believed[3] = believed[2][0], tared
            margins.append(refit.least_margin)
        times.append(1e-9 * float(part.stamp_ns[-1]))
        base.note(believed[2][0])
    arms = [k for k, sensor in enumerate(wrong.ft_sensors) if 'arm' in sensor.name]
    return Run(
        seed,
        np.array(times),
        np.array(squares),
        base,
        min(margins, default=np.nan),
        refit.refitted if refit is not None else (),
        float(np.abs(believed[2][1] - offsets)[arms, :3].max()),
    )


def _squares(
    log: StandingLog, robot: Robot, offsets: Array, samples: SampleBatch, truth: Array
) -> Array:
    """Return the mean squares of errors of the joints [Nm^2]."""
    contacts = [Contact(frame) for frame in log.contacts]
    found = WrenchEstimator(robot, contacts, calibration=_subtracting(offsets)).batch(samples)
    columns = [robot.joint_names.index(name) for name in JOINTS]
    # While filters fill there is no estimate.
    return np.asarray(np.nanmean((found.torques - truth)[:, columns] ** 2, axis=0))


def _subtracting(offsets: Array) -> FtCalibration:
    """Return a calibration of offsets alone."""
    return FtCalibration.identity(len(offsets)).with_offsets(offsets)


def _taken_over(wrong: Robot, tared: Array, refit: Refit) -> tuple[Robot, Array]:
    """Return robot and offsets as an estimator has them with an update."""
    none = np.full(6, np.nan)
    on_top = [refit.subtracted.get(sensor.name, none) for sensor in wrong.ft_sensors]
    return wrong.with_parameters(refit.parameters), tared + np.nan_to_num(on_top)
