# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Open a log: a ROS 2 bag, or a table, as it is or through the sample assembler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError, ConfigError
from inertial_estimation.logs.array_samples import ArraySamples, Irregular
from inertial_estimation.logs.bag_samples import LogAssembler, read_bag
from inertial_estimation.logs.log import Log, LogSlice, Progress, no_progress
from inertial_estimation.logs.table_formats import TABLES, Layout, load_table
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch


def open_log(
    path: str | Path,
    robot: Robot,
    settings: EstimatorSettings | None = None,
    *,
    layout: Layout | None = None,
    progress: Progress = no_progress,
) -> Log:
    """
    Read a log, or a part of it: ``run.npz@2.5:30``.

    Parameters
    ----------
    path : str or Path
        Bag (folder, mcap or db3 file) or table of numbers.
    robot : Robot
        Its joints and sensors give the order of the columns.
    settings : EstimatorSettings, optional
        Topics, filters and time limits; needed for bags. With them a table goes through the
        filters as well.
    layout : Layout, optional
        Columns and units of a table.
    progress : callable, optional
        Called with the stage and its share that is done.

    Returns
    -------
    Log

    Raises
    ------
    LogError
        If the log cannot be read, or lacks what the settings name.
    ConfigError
        If settings or layout are missing.

    """
    part = LogSlice.parse(path).require()
    if part.path.suffix in TABLES:
        if layout is None:
            raise CallError(f"'layout' is missing: '{part.path}' is a table", about=('layout',))
        log = _table(part.path, robot, settings, layout)
    elif layout is not None:
        raise ConfigError(f"'{part.path}' has a layout, expected a table ({', '.join(TABLES)})")
    elif settings is None:
        raise ConfigError(f"'{part.path}' is a bag, and there are no settings with its topics")
    else:
        (log,) = read_bag(part.path, robot, settings, progress)
    return log if part.is_whole else log.take(part.rows(log.samples.stamp_ns))


def open_pieces(
    path: str | Path, robot: Robot, settings: EstimatorSettings, seconds: float, progress: Progress
) -> Iterator[Log]:
    """Read a whole bag in pieces, other logs as one."""
    part = LogSlice.parse(path)
    if part.is_whole and part.path.exists() and part.path.suffix not in TABLES:
        yield from read_bag(part.path, robot, settings, progress, seconds)
    else:
        yield open_log(path, robot, settings, progress=progress)


def _table(path: Path, robot: Robot, settings: EstimatorSettings | None, layout: Layout) -> Log:
    """Return the samples of a table, through the filters if there are settings."""
    assumed = () if settings is None else settings.joint_states.assumed
    if (unknown := set(robot.joint_names) - set(assumed)) and layout.positions is None:
        raise ConfigError(f"'log' has no 'positions', the robot has {len(unknown)} joints")
    table, problems = layout.timed(load_table(path))
    samples = layout.of_table(table, robot)
    external = {
        frame: one.at_frame(robot, samples, one.read(table, 6, len(samples)))
        for frame, one in layout.external.items()
    }
    if settings is None:
        start_ns = int(samples.stamp_ns[0])
        return Log(samples, start_ns, problems=problems, external=external)
    try:
        streams = ArraySamples(robot, settings)
        streams.add_table(samples)
        log = streams.log()
    except Irregular:
        log = by_rows(samples, robot, settings)
    return replace(log, problems=problems)


def by_rows(samples: SampleBatch, robot: Robot, settings: EstimatorSettings) -> Log:
    """Return the samples that the node would have made of the rows of a table."""
    assembly, n = LogAssembler(robot, settings), len(samples)
    assumed = set(settings.joint_states.assumed)
    names = robot.joint_names if set(robot.joint_names) - assumed else ()
    for k, stamp in enumerate(samples.stamp_ns.tolist()):
        for s in range(len(robot.ft_sensors)):
            assembly.push_ft(s, stamp, samples.ft_readings[k, s])
            if samples.ft_temperatures is not None:
                assembly.push_temperature(s, stamp, float(samples.ft_temperatures[k, s]))
        for i in range(len(robot.imus)):
            rate, acceleration = samples.angular_velocities, samples.proper_accelerations
            assembly.push_imu(i, stamp, rate[k, i], acceleration[k, i])
        efforts = samples.efforts if samples.efforts is not None and names else np.empty((n, 0))
        values = samples.positions[k, : len(names)], samples.velocities[k, : len(names)]
        assembly.keep(assembly.push_joints(0, stamp, names, *values, efforts[k]))
    return assembly.log()
