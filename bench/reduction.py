# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Time and memory of a minute of a humanoid at 1 kHz, filtered and reduced to what it says.

It is a process of its own, whose memory is that of nothing else.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from math import nan
from multiprocessing import get_context
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from bench.run import Goal
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.preparation import Preparation, prepare
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch
from inertial_estimation.simulation.description import icub_urdf

DURATION, RATE = 60.0, 1000
"""[s, Hz]."""
FREQUENCIES = 0.1, 1.0
"""Of the sines that signals are made of [Hz]."""
SINES = 4
SWING = 0.3
"""Of joints [rad]."""
MEGABYTE = 1024.0
"""In the unit in which the system tells memory."""
TITLE = f'{DURATION:g} s of {RATE} Hz of the iCub, wrenches and efforts of all submodels'
COLUMNS = ('cuts', 'rows', 'filter [s]', 'reduce [s]', 'memory in all [MB]', 'without log [MB]')
LIMIT_TIME, LIMIT_MEMORY = 10.0, 500.0


class Reduction(NamedTuple):
    """What one log took."""

    cuts: str
    rows: int
    filtering: float
    """[s]."""
    reducing: float
    """[s]."""
    memory: float
    """Peak of the process [MB]."""
    added: float
    """Beyond what it had when the log was there [MB]."""

    @property
    def row(self) -> tuple[str, ...]:
        """The figures as a row of `COLUMNS`."""
        times = (f'{self.filtering:.1f}', f'{self.reducing:.1f}')
        return self.cuts, str(self.rows), *times, f'{self.memory:.0f}', f'{self.added:.0f}'


def measure(duration: float = DURATION) -> list[Reduction]:
    """
    Reduce logs of the iCub, cut at its FT sensors or not at all, each in a fresh process.

    duration [s].
    """
    urdf = icub_urdf()
    found = []
    for cuts in ('at its FT sensors', 'none'):
        with ProcessPoolExecutor(1, mp_context=get_context('spawn')) as process:
            found.append(process.submit(reduce, urdf, cuts, duration).result())
    return found


def goals(found: list[Reduction]) -> tuple[Goal, ...]:
    """Hold the figures against the goals."""
    return (
        Goal('rows of a minute reduced [s]', max(one.reducing for one in found), LIMIT_TIME),
        Goal('memory in all [MB]', max(one.memory for one in found), LIMIT_MEMORY),
    )


def as_dict(found: list[Reduction]) -> list[dict[str, Any]]:
    """Return the figures for a machine."""
    return [one._asdict() for one in found]


def reduce(urdf: str, cuts: str, duration: float) -> Reduction:
    """
    Reduce one log in this process.

    duration [s].
    """
    sensors: list[str] | None = [] if cuts == 'none' else None
    robot = Robot.from_urdf(urdf, imus=['root_link'], ft_sensors=sensors)
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, joint=JointModel()))
    log = _log(robot, round(duration * RATE))
    before = _peak()
    start = perf_counter()
    prepared = prepare(log, Preparation()).samples
    middle = perf_counter()
    evidence = gather(builder, prepared)
    end = perf_counter()
    rows = sum(part.count for one in evidence for part in one.kinds.values())
    memory = _peak()
    return Reduction(cuts, int(rows), middle - start, end - middle, memory, memory - before)


def _peak() -> float:
    """Return the most memory that the process had [MB]."""
    for line in Path('/proc/self/status').read_text(encoding='utf-8').splitlines():
        if line.startswith('VmHWM:'):
            return float(line.split()[1]) / MEGABYTE
    return nan


def _log(robot: Robot, n: int) -> SampleBatch:
    """Return a log of smooth random signals; nothing in it says what links weigh."""
    rng = np.random.default_rng(0)
    t = np.arange(n) / RATE

    def smooth(*shape: int, size: float = 1.0) -> Array:
        total = np.zeros((n, int(np.prod(shape))))
        for _ in range(SINES):
            w = 2 * np.pi * rng.uniform(*FREQUENCIES, total.shape[1])
            total += size / SINES * np.sin(w * t[:, None] + rng.uniform(0, 6, total.shape[1]))
        return total.reshape(n, *shape)

    joints, imus = len(robot.joint_names), len(robot.imus)
    return SampleBatch(
        stamp_ns=np.round(t * 1e9).astype(np.int64),
        positions=smooth(joints, size=SWING),
        velocities=np.full((n, joints), np.nan),
        accelerations=np.full((n, joints), np.nan),
        angular_velocities=smooth(imus, 3),
        proper_accelerations=smooth(imus, 3) + np.array([0.0, 0.0, 9.81]),
        angular_accelerations=np.full((n, imus, 3), np.nan),
        ft_readings=smooth(len(robot.ft_sensors), 6, size=20.0),
        efforts=smooth(joints, size=5.0),
    )
