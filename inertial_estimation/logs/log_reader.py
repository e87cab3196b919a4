# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs for identification: tables or bags, with known wrenches, and with joints locked.

Locked joints have to stand still; the robot is read with them fixed where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.checks import span
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import check_known, known_wrenches
from inertial_estimation.logs.log import Log, LogSlice, Progress
from inertial_estimation.logs.open_log import open_log, require_temperatures
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.urdf import joint_types, parse
from inertial_estimation.sample import SampleBatch

MAX_LOCKED_MOTION = 0.01
"""Of a locked joint, to either side [rad or m]."""


@dataclass(frozen=True, eq=False)
class LogReader:
    """Reads logs of one robot; `open_logs` makes it."""

    robot: Robot
    """With joints locked."""
    calibration: FtCalibration | None
    assumed: tuple[str, ...]
    whole: Robot
    read_whole: Callable[[Path], Log]

    def read(self, part: LogSlice) -> Log:
        """Read a log or a part of it."""
        log = self.read_whole(part.path)
        log = log.take(part.rows(log.samples.stamp_ns))
        joints = list(self.whole.joint_names)
        for k, name in enumerate(joints):
            motion = span(log.samples.positions[:, k])
            if name not in self.robot.joint_names and motion > 2 * MAX_LOCKED_MOTION:
                raise LogError(f"{part}: locked joint '{name}' moves by {motion:.3g} rad or m")
        kept = [joints.index(name) for name in self.robot.joint_names]
        columns = {
            name: values[:, kept]
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
    node = None
    if settings.parameters is not None:
        node = EstimatorSettings.from_yaml(settings.parameters)
    layout, known = settings.layout, settings.rows.external
    if settings.rows.base_link and layout is not None:
        layout = replace(layout, ft_sensors={}, temperatures={})
    if isinstance(robot, Robot):
        if lock:
            raise ConfigError('joints are locked in the URDF: give its text in place of a Robot')
        whole = robot
    else:
        if layout is None and node is None:
            raise ConfigError("neither 'log' nor 'parameters' is given")
        whole = _build(robot, settings, node)
        columns = {} if layout is None else layout.external
        check_known(whole, [*columns.values(), *known.values()], settings.rows.contacts)
    if node is not None:
        require_temperatures(whole, node)
    fts = [sensor.name for sensor in whole.ft_sensors]

    def read(path: Path) -> Log:
        log = (given or {}).get(path)
        if log is None:
            log = open_log(path, whole, node, layout=layout, progress=progress)
        samples = _unwrapped(log.without_frozen(fts), whole)
        external = known_wrenches(known, path, whole, samples)
        return replace(log, samples=samples, external={**log.external, **external})

    used = whole
    if lock and not isinstance(robot, Robot):
        joints, positions = _locked(whole, lock, first, read(first.path).samples)
        used = _build(robot, settings, node, joints, positions)
    if node is None:
        return LogReader(used, None, (), whole, read)
    assumed = tuple(name for name in used.joint_names if name in node.joint_states.assumed)
    return LogReader(used, build_calibration(node, used), assumed, whole, read)


def _build(
    urdf: str,
    settings: IdentifySettings,
    node: EstimatorSettings | None,
    joints: Sequence[str] | None = None,
    positions: Mapping[str, float] | None = None,
) -> Robot:
    """Return the robot of the settings, with some joints, the others at positions."""
    cut = not settings.rows.base_link
    if node is None:
        given = dict(settings.robot) | ({} if cut else {'ft_sensors': []})
        if joints is not None:
            locked = {**(settings.robot.get('locked_positions') or {}), **(positions or {})}
            given |= {'joints': joints, 'locked_positions': locked}
        return Robot.from_urdf(urdf, **given)
    if joints is not None:
        states = node.joint_states
        assumed = dict(zip(states.assumed, states.assumed_positions, strict=True))
        kept = {name: position for name, position in assumed.items() if name in joints}
        left = replace(states, assumed=tuple(kept), assumed_positions=tuple(kept.values()))
        node = replace(node, joints=tuple(joints), joint_states=left)
    return build_robot(node, urdf, locked_positions=positions, cut=cut)


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
