# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A real iCub on both feet: what offsets leave between the two FT sensors of each leg.

Between them is a thigh and a shank, whose weight is the difference of their forces, however the
feet share the robot's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.published.experiment import Expectation, Finding
from bench.real_robots.robots import CONFIGS
from inertial_estimation.building import build_estimator, build_robot
from inertial_estimation.calibration.frame_poses import FramePoses
from inertial_estimation.calibration.supported_offsets import supported_offsets
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.recording import TimeRange, read_samples
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'iCub that stands on both feet before it tips over (icub_foot_tipping)'
BAG, URDF = 'icub_foot_tipping/setup07/bag', 'models/icub_genova01.urdf'
FILES = (BAG, URDF)
CONFIG = 'icub_foot_tipping.yaml'
STILL = TimeRange(0.0, 2.0)
FEET = ('l_sole', 'r_sole')
PRINTED = {
    'l_leg_ft': (-4.11735, 111.148, -131.104, -13.423, 1.36924, -1.04304),
    'l_foot_ft': (-52.0296, -5.64247, -18.0923, -0.516052, 9.91345, 0.717567),
    'r_leg_ft': (-5.65084, -10.5031, -24.6174, 1.95779, 2.61084, 0.0036913),
    'r_foot_ft': (-17.4992, -0.910681, 18.0613, -0.824831, 3.32657, -0.252851),
}
"""Offsets that the software of the log's authors printed [N, Nm]."""
LEGS = {'right': ('r_leg_ft', 'r_foot_ft', 42.95), 'left': ('l_leg_ft', 'l_foot_ft', 47.97)}
"""Leg, foot, and leg minus foot along the leg's z with these, as the data's README has it [N]."""
NEAR = 0.5
"""[N]"""
MODEL = 42.6
"""Weight of what is between them in the description [N]."""


def run(folder: Path) -> Finding:
    """Take the printed offsets off, and own ones."""
    settings = EstimatorSettings.from_yaml(CONFIGS / CONFIG)
    robot = build_robot(settings, str(folder / URDF))
    samples = read_samples(folder / BAG, robot, settings).within(STILL).samples
    names = [sensor.name for sensor in robot.ft_sensors]
    printed = np.array([PRINTED[name] for name in names])
    own = supported_offsets(build_estimator(settings, robot), samples, FEET, accept_split=True)
    rows, notes, differences = [], [], {}
    for side, (leg, foot, measured) in LEGS.items():
        with_printed, with_own = (
            _difference(robot, samples, samples.ft_readings - offsets, leg, foot)
            for offsets in (printed, own.offsets)
        )
        z, size = float(with_printed[2]), float(np.linalg.norm(with_own))
        differences[side] = {'printed': z, 'own': size}
        rows.append((side, f'{measured:.2f}', f'{z:.2f}', f'{size:.2f}', f'{MODEL:.1f}'))
        notes += [
            Expectation(
                f'{side}: with the printed offsets leg minus foot is {z:.2f} N, within {NEAR:g} N '
                f'of {measured:.2f} N', abs(z - measured) < NEAR,
            ).note,
            Expectation(
                f'{side}: with own offsets it is {size:.2f} N, within {NEAR:g} N of the weight '
                f'in between, {MODEL:g} N', abs(size - MODEL) < NEAR,
            ).note,
        ]  # fmt: skip
    columns = ('leg', 'README of the data', 'printed offsets', 'own offsets', 'description')
    table = Table('Both feet: force of leg minus foot [N]', columns, tuple(rows))
    return Finding(NAME, (table,), tuple(notes), {'leg_minus_foot': differences})


def _difference(robot: Robot, samples: SampleBatch, wrenches: Array, leg: str, foot: str) -> Array:
    """Return the mean force of a leg's sensor less that of its foot, in the leg's axes (3,)."""
    poses = FramePoses(robot, samples)
    names = [sensor.name for sensor in robot.ft_sensors]
    places, forces = [], []
    for name in (leg, foot):
        k = names.index(name)
        places.append((robot.ft_sensors[k].child, robot.ft_sensors[k].child_H_sensor))
        forces.append(poses.axes_to_root(places[-1], wrenches[:, k, :3]))
    found = poses.axes_from_root(places[0], forces[0] - forces[1])
    return np.asarray(np.nanmean(found, axis=0))
