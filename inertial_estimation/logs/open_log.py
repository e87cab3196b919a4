# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Open a log: a ROS 2 bag, or a table of numbers.

A bag is read with the decoders, the router and the sample assembler of the node, so that its
samples are those of the node. A table is taken as it is, or goes through the assembler as well.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.bag import BagReader, deserialize, resolve
from inertial_estimation.logs.log import Log, LogSlice, Progress, Touches, no_progress
from inertial_estimation.logs.table import TABLES, Layout, load_table
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import Router

MESSAGES_PER_TICK = 2000


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
    part = LogSlice.parse(path)
    if not part.path.exists():
        raise LogError(f"there is no log '{part.path}'")
    if part.path.suffix in TABLES:
        if layout is None:
            raise ConfigError(f"'{part.path}' is a table, and there is no layout of its columns")
        log = _table(part.path, robot, settings, layout)
    elif layout is not None:
        raise ConfigError(f"'{part.path}' has a layout, expected a table ({', '.join(TABLES)})")
    elif settings is None:
        raise ConfigError(f"'{part.path}' is a bag, and there are no settings with its topics")
    else:
        log = _bag(part.path, robot, settings, progress)
    return log if part.is_whole else log.take(part.rows(log.samples.stamp_ns))


def _bag(path: Path, robot: Robot, settings: EstimatorSettings, progress: Progress) -> Log:
    """Return the samples that the node would have made of a bag."""
    assembly = _Assembly(robot, settings)
    router = Router(
        settings, robot, assembly, assembly.contacts.push, deserialize, resolve=resolve,
        strict=True,
    )  # fmt: skip
    needs = build_calibration(settings, robot).needs_temperature
    for sensor, needed in zip(robot.ft_sensors, needs, strict=True):
        if needed and not settings.ft_of(sensor.name).temperature_topic:
            raise ConfigError(
                f"'ft.{sensor.name}.temperature_topic' is empty, but its calibration has "
                'temperature coefficients'
            )
    with BagReader(path) as reader:
        topics: dict[str, int] = {}
        for source in router.sources:
            optional = source.kind == 'contacts' or (
                source.kind == 'temperature' and not needs[source.index]
            )
            if not optional or source.topic in reader.topics:
                topics[source.topic] = reader.require(source.topic, source.type).n_messages
        total = sum(topics.values())
        for k, message in enumerate(reader.messages(topics)):
            assembly.keep(router.handle(message.topic, message.data))
            if k % MESSAGES_PER_TICK == 0:
                progress('reading', k / total)
    progress('reading', 1.0)
    if not assembly.samples:
        topic = resolve(settings.joint_states.topics[0])
        raise LogError(f"topic '{topic}' reports none of the joints that are estimated")
    problems = {one.name: dict(one.problems) for one in router.sources if one.problems}
    return replace(assembly.log(), problems=problems)


def _table(path: Path, robot: Robot, settings: EstimatorSettings | None, layout: Layout) -> Log:
    """Return the samples of a table, through the filters if there are settings."""
    table = load_table(path)
    samples = layout.of_table(table, robot)
    external = {
        frame: one.at_frame(robot, samples, one.read(table, 6, len(samples)))
        for frame, one in layout.external.items()
    }
    if settings is None:
        return Log(samples, int(samples.stamp_ns[0]), external=external)
    assembly = _Assembly(robot, settings)
    for k, stamp in enumerate(samples.stamp_ns.tolist()):
        for s in range(len(robot.ft_sensors)):
            assembly.push_ft(s, stamp, samples.ft_readings[k, s])
            if samples.ft_temperatures is not None:
                assembly.push_temperature(s, stamp, float(samples.ft_temperatures[k, s]))
        for i in range(len(robot.imus)):
            rate, acceleration = samples.angular_velocities, samples.proper_accelerations
            assembly.push_imu(i, stamp, rate[k, i], acceleration[k, i])
        efforts = np.empty(0) if samples.efforts is None else samples.efforts[k]
        values = (samples.positions[k], samples.velocities[k], efforts)
        assembly.keep(assembly.push_joints(0, stamp, robot.joint_names, *values))
    return assembly.log()


class _Assembly(SampleAssembler):
    """Assembler and contacts of the node, and their samples."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        super().__init__(robot, settings)
        self.samples: list[Sample] = []
        self._origin_ns = 0
        self.contacts = ContactStream(robot, settings)
        self._present: list[tuple[Contact, ...]] = []

    def push_ft(self, index: int, stamp_ns: int, wrench: Array) -> None:
        """Take an FT message; the first one is the origin of times."""
        self._origin_ns = self._origin_ns or stamp_ns
        super().push_ft(index, stamp_ns, wrench)

    def keep(self, sample: Sample | None) -> None:
        """Take a sample, and the contacts of its time."""
        if sample is not None:
            self.samples.append(sample)
            self._present.append(self.contacts.at(sample.stamp_ns))

    def log(self) -> Log:
        """Return the log."""
        problems = dict(self.contacts.problems)
        if dropped := self.contacts.statistics().dropped:
            problems['more contacts at a time than allowed'] = dropped
        return Log(
            SampleBatch.stack(self.samples),
            self._origin_ns or self.samples[0].stamp_ns,
            self.statistics(),
            Touches.of(self._present, problems, self.contacts.senders.ever_slow),
            self.rates(),
        )
