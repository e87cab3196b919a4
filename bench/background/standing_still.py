# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Ten hours of standing still between two motions.

One arm beyond its FT sensor, on a chest that is fixed: each of 36 000 stretches of a second is
worked in after the other. A stretch has a few samples of its second: a log of all of them would
take an hour, and tell the same.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bench.background.node_settings import node_settings
from bench.background.pole_log import smooth_motion
from bench.background.situations import NOISE
from bench.background.wrong_description import OFFSETS, wrong_robot
from bench.run import Goal
from bench.timing import Progress
from inertial_estimation.identification.equations.wrenches import with_readings
from inertial_estimation.identification.recursion.identifier import (
    SECOND_NS,
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.robot import STANDARD_GRAVITY, Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.description import icub_urdf

Array = NDArray[np.float64]

CHEST, SENSOR = 'chest', 'l_arm_ft'
JOINTS = ('l_shoulder_pitch', 'l_shoulder_roll', 'l_shoulder_yaw', 'l_elbow')
"""Others are locked: fewer links take less time."""
MOVED, MOVING_RATE = 30.0, 20.0
"""How long it moves before and after, and samples per second meanwhile [s, Hz]."""
STRETCHES = 36_000
"""Seconds of standing still: ten hours."""
SAMPLES = 3
"""In each of these."""
REFIT_EVERY = 600
"""Stretches between two refits."""
OF_FORCE, OF_MASS = 1.0, 0.05
"""How far offsets may be off beyond what masses explain, and masses after motion [N, kg]."""


def standing_still(
    stretches: int = STRETCHES, seed: int = 0, progress: Progress = lambda done: None
) -> tuple[Goal, ...]:
    """Let an arm move, stand still, and move."""
    arm = _Arm(seed)
    arm.move()
    refits = [arm.refit()]
    for k in range(stretches):
        arm.stand()
        if not (k + 1) % min(REFIT_EVERY, stretches):
            refits.append(arm.refit())
            progress((k + 1) / stretches)
    arm.move()
    refits.append(arm.refit())
    name = f'{stretches} s of standing still'
    away = max(float(np.linalg.norm(arm.offset_error(refit))) for refit in refits)
    least = min(refit.least_margin for refit in refits)
    return (
        Goal(f'{name}: offset, farthest off [N]', away, OF_FORCE + arm.wrong_weight),
        Goal(f'{name}: smallest eigenvalue of a body', least, 0.0, at_least=True),
        Goal('mass of the arm before it, off [kg]', arm.mass_error(refits[0]), OF_MASS),
        Goal('after it and motion, off [kg]', arm.mass_error(refits[-1]), OF_MASS),
    )


class _Arm:
    """The arm, what is believed of it, and what is identified."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self._robot = Robot.from_urdf(
            icub_urdf(), joints=JOINTS, ft_sensors=[SENSOR], fixed_link=CHEST
        )
        self._links = list(self._robot.submodels[1].links)
        wrong = wrong_robot(self._robot, self._rng)
        self._offset = OFFSETS * self._rng.normal(size=6)
        self._identifier = RecursiveIdentifier(wrong, node_settings(wrong))
        still = smooth_motion(self._robot, 1.0, SAMPLES, swing=0.0)
        self._still = with_readings(self._robot, still, self._robot.parameters)
        self._seed, self._stamp_ns = seed, 0
        self.wrong_weight = -STANDARD_GRAVITY[2] * self._mass_error(wrong.parameters)

    def move(self) -> None:
        """Move for a while, in another way each time."""
        self._seed += 1
        moving = smooth_motion(self._robot, MOVED, MOVING_RATE, self._seed)
        moving = self._later(with_readings(self._robot, moving, self._robot.parameters))
        for part in equal_parts(moving, 1.0):
            self._identifier.add(part)

    def stand(self) -> None:
        """Stand still for a second."""
        self._identifier.add(self._later(self._still))

    def refit(self) -> Refit:
        """Return what is known."""
        found = self._identifier.refit()
        assert found is not None
        return found

    def mass_error(self, refit: Refit) -> float:
        """Return how far the mass of the arm is off [kg]."""
        return self._mass_error(refit.parameters)

    def offset_error(self, refit: Refit) -> Array:
        """Return how far the offset of the force is off, shape (3,) [N]."""
        return np.asarray((refit.offsets[SENSOR] - self._offset)[:3])

    def _mass_error(self, parameters: Array) -> float:
        return float(abs((parameters - self._robot.parameters)[self._links, 0].sum()))

    def _later(self, samples: SampleBatch) -> SampleBatch:
        """Return samples with offsets and noise, after those before."""
        noise = NOISE * self._rng.normal(size=samples.ft_readings.shape)
        stamps = samples.stamp_ns - samples.stamp_ns[0] + self._stamp_ns + 1
        self._stamp_ns += round(SECOND_NS * max(1.0, np.ptp(stamps) / SECOND_NS))
        readings = samples.ft_readings + self._offset + noise
        return replace(samples, stamp_ns=stamps, ft_readings=readings)
