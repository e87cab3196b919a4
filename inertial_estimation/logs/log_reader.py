# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs for identification: tables or bags, with known wrenches, and with joints locked.

Locked joints have to stand still; the robot is read with them fixed where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag_wrenches import read_wrenches
from inertial_estimation.logs.checks import span
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import check_known, constants
from inertial_estimation.logs.log import Log, LogSlice, Progress
from inertial_estimation.logs.open_log import open_log, require_temperatures
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.urdf import joint_types, parse
from inertial_estimation.sample import SampleBatch

MAX_LOCKED_MOTION = 0.01
"""Of a locked joint, to either side [rad or m]."""


class LogReader:
    """Reads logs of one robot; `open_logs` makes it."""

    def __init__(
        self,
        robot: Robot,
        read: Callable[[Path], Log],
        joints: Sequence[str],
        calibration: FtCalibration | None = None,
        assumed: Sequence[str] = (),
    ) -> None:
        self.robot = robot
        self.calibration = calibration
        self.assumed = tuple(name for name in robot.joint_names if name in assumed)
        self._read = read
        self._joints = list(joints)
        self._kept = [self._joints.index(name) for name in robot.joint_names]

    def read(self, part: LogSlice) -> Log:
        """Read a log or a part of it."""
        log = self._read(part.path)
        log = log.take(part.rows(log.samples.stamp_ns))
        for k in set(range(len(self._joints))) - set(self._kept):
            name, motion = self._joints[k], span(log.samples.positions[:, k])
            if motion > 2 * MAX_LOCKED_MOTION:
                raise LogError(f"{part}: locked joint '{name}' moves by {motion:.3g} rad or m")
        columns = {
            name: values[:, self._kept]
            for name in ('positions', 'velocities', 'accelerations', 'joint_states', 'efforts')
            if (values := getattr(log.samples, name)) is not None
        }
        samples = replace(log.samples, **columns)
        unknown = [self.robot.joint_names.index(name) for name in self.assumed]
        for values in (samples.positions, samples.velocities, samples.accelerations):
            values[:, unknown] = np.nan
        return replace(log, samples=samples)


def open_logs(
    robot: str | Robot,
    settings: IdentifySettings,
    lock: Sequence[str],
    first: LogSlice,
    progress: Progress,
    given: Mapping[Path, Log] | None = None,
) -> LogReader:
    """
    Return a reader of the logs of a robot, or of its URDF as the settings read it.

    `first` is the log that shows locked positions; `given` are logs that are open, by name.
    """
    if isinstance(robot, Robot):
        if lock:
            raise ConfigError('joints are locked in the URDF: give its text in place of a Robot')
        return _of_robot(robot, settings, given or {}, progress)
    urdf = robot
    if settings.parameters is not None:
        return _bags(urdf, settings.parameters, settings, lock, first, progress)
    if settings.layout is None:
        raise ConfigError("neither 'log' nor 'parameters' is given")
    return _tables(urdf, settings, lock, first)


def _of_robot(
    robot: Robot, settings: IdentifySettings, given: Mapping[Path, Log], progress: Progress
) -> LogReader:
    """Return a reader of logs that are open, or are read for a robot as it is."""
    node = None
    if settings.parameters is not None:
        node = EstimatorSettings.from_yaml(settings.parameters)
    calibration = None if node is None else build_calibration(node, robot)
    fts = [sensor.name for sensor in robot.ft_sensors]

    def read(path: Path) -> Log:
        log = given.get(path)
        if log is None:
            log = open_log(path, robot, node, layout=settings.layout, progress=progress)
        samples = _unwrapped(log.without_frozen(fts), robot)
        known = constants(settings.external, robot, samples)
        return replace(log, samples=samples, external={**log.external, **known})

    assumed = () if node is None else node.assumed_joints
    return LogReader(robot, read, robot.joint_names, calibration, assumed)


def _tables(
    urdf: str, settings: IdentifySettings, lock: Sequence[str], first: LogSlice
) -> LogReader:
    """Return a reader of tables."""
    layout = settings.layout
    assert layout is not None
    arguments: dict[str, Any] = dict(settings.robot)
    if settings.base_link:
        layout = replace(layout, ft_sensors={}, temperatures={})
        arguments['ft_sensors'] = []
    whole = Robot.from_urdf(urdf, **arguments)
    known = settings.external
    places = [place for _, place in layout.external.values()] + [k.place for k in known.values()]
    check_known(whole, places, settings.contacts)

    def read(path: Path) -> Log:
        log = open_log(path, whole, layout=layout)
        samples = _unwrapped(log.samples, whole)
        return replace(
            log, samples=samples, external={**log.external, **constants(known, whole, samples)}
        )

    robot = whole
    if lock:
        joints, positions = _locked(whole, lock, first, read(first.path).samples)
        locked = (settings.robot.get('locked_positions') or {}) | positions
        robot = Robot.from_urdf(urdf, **arguments | {'joints': joints, 'locked_positions': locked})
    return LogReader(robot, read, whole.joint_names)


def _bags(
    urdf: str,
    parameters: Path,
    identify: IdentifySettings,
    lock: Sequence[str],
    first: LogSlice,
    progress: Progress,
) -> LogReader:
    """Return a reader of bags."""
    settings = EstimatorSettings.from_yaml(parameters)
    cut = not identify.base_link
    whole = build_robot(settings, urdf, cut=cut)
    require_temperatures(whole, settings)
    fts = [sensor.name for sensor in whole.ft_sensors]
    known = identify.external
    check_known(whole, [one.place for one in known.values()], identify.contacts)

    def read(path: Path) -> Log:
        if path.suffix in ('.npz', '.csv'):
            raise LogError(f"'{path}' is a table, but 'parameters' is for bags")
        try:
            log = open_log(path, whole, settings, progress=progress)
        except NameNotFound as error:
            raise LogError(f"'{path}': {error}") from error
        samples = _unwrapped(log.without_frozen(fts), whole)
        external = read_wrenches(path, known, whole, samples) | constants(known, whole, samples)
        return replace(log, samples=samples, external=external)

    robot = whole
    if lock:
        joints, positions = _locked(whole, lock, first, read(first.path).samples)
        robot = build_robot(_without(settings, joints), urdf, locked_positions=positions, cut=cut)
    calibration = build_calibration(settings, robot)
    return LogReader(robot, read, whole.joint_names, calibration, settings.assumed_joints)


def _without(settings: EstimatorSettings, joints: Sequence[str]) -> EstimatorSettings:
    """Return settings of some joints only."""
    assumed = dict(zip(settings.assumed_joints, settings.assumed_positions, strict=True))
    kept = {name: position for name, position in assumed.items() if name in joints}
    return replace(
        settings,
        joints=tuple(joints),
        assumed_joints=tuple(kept),
        assumed_positions=tuple(kept.values()),
    )


def _locked(
    robot: Robot, lock: Sequence[str], first: LogSlice, samples: SampleBatch
) -> tuple[list[str], dict[str, float]]:
    """Return the joints that stay, and the positions of the others."""
    types = joint_types(parse(robot.urdf))
    positions = {}
    rows = first.rows(samples.stamp_ns)
    for name in lock:
        if name not in types:
            raise NameNotFound('joint', name, robot.joint_names)
        if name not in robot.joint_names:
            raise ConfigError(f"'{name}' does not move, and cannot be locked")
        column = samples.positions[rows, robot.joint_names.index(name)]
        known = column[np.isfinite(column)]
        if not len(known):
            raise LogError(f"the log has no position of '{name}', which is to be locked")
        positions[name] = float(np.median(known))
    return [name for name in robot.joint_names if name not in lock], positions


def _unwrapped(samples: SampleBatch, robot: Robot) -> SampleBatch:
    """Return samples whose continuous joints go on where drivers report one turn only."""
    endless = {tag.get('name') for tag in parse(robot.urdf).findall("joint[@type='continuous']")}
    positions = samples.positions.copy()
    for k, name in enumerate(robot.joint_names):
        known = np.isfinite(positions[:, k])
        if name in endless:
            positions[known, k] = np.unwrap(positions[known, k])
    return replace(samples, positions=positions)
