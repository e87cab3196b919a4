# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs for identification: tables or bags, with known wrenches, and with joints locked.

Locked joints have to stand still; the robot is read with them fixed where they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.checks import span
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import check_known, known_wrenches
from inertial_estimation.logs.log import Log, LogSlice, Progress
from inertial_estimation.logs.open_log import open_log, require_temperatures
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import parse

MAX_LOCKED_MOTION = 0.01
"""Of a locked joint, to either side [rad or m]."""


class LogReader:
    """
    Reads the logs of a robot, or of its URDF as the settings read it.

    `first` is the log that shows locked positions; `given` are logs that are open, by name.
    """

    def __init__(
        self,
        robot: str | Robot,
        settings: IdentifySettings,
        lock: Sequence[str],
        first: LogSlice,
        progress: Progress,
        given: Mapping[Path, Log] | None = None,
    ) -> None:
        self._node, self._layout, self._known = settings.node, settings.log, settings.rows.external
        self._progress, self._given = progress, given or {}
        if settings.rows.base_link and self._layout is not None:
            self._layout = replace(self._layout, ft_sensors={}, temperatures={})
        if isinstance(robot, Robot):
            if lock:
                raise ConfigError('lock needs the text of the URDF in place of a Robot')
            self._whole = robot
        else:
            if self._layout is None and self._node is None:
                raise ConfigError("neither 'log' nor 'parameters' is given")
            self._whole = settings.build_robot(robot)
            columns = {} if self._layout is None else self._layout.external
            known = (*columns.values(), *self._known.values())
            check_known(self._whole, known, settings.rows.contacts)
        if self._node is not None:
            require_temperatures(self._whole, self._node)
        self.robot = self._whole
        """With joints locked."""
        if lock and isinstance(robot, str):
            kept = [name for name in self._whole.joint_names if name not in lock]
            self.robot = settings.build_robot(robot, kept, self._locked(lock, first))
        self.assumed: tuple[str, ...] = ()
        self.calibration = None
        if self._node is not None:
            assumed = self._node.joint_states.assumed
            self.assumed = tuple(name for name in self.robot.joint_names if name in assumed)
            self.calibration = build_calibration(self._node, self.robot)

    def read(self, part: LogSlice) -> Log:
        """Read a log or a part of it."""
        log = self._read_whole(part)
        joints = self._whole.joint_names
        for name, values in zip(joints, log.samples.positions.T, strict=True):
            if name not in self.robot.joint_names and span(values) > 2 * MAX_LOCKED_MOTION:
                raise LogError(
                    f"{part}: locked joint '{name}' moves by {span(values):.3g} rad or m"
                )
        kept = [joints.index(name) for name in self.robot.joint_names]
        columns = {
            name: values[:, kept]
            for name in ('positions', 'velocities', 'accelerations', 'joint_states', 'efforts')
            if (values := getattr(log.samples, name)) is not None
        }
        unknown = [self.robot.joint_names.index(name) for name in self.assumed]
        for name in ('positions', 'velocities', 'accelerations'):
            columns[name][:, unknown] = np.nan
        return replace(log, samples=replace(log.samples, **columns))

    def _read_whole(self, part: LogSlice) -> Log:
        """Read a part of a log with all joints."""
        robot, path = self._whole, part.path
        log = self._given.get(path)
        if log is None:
            log = open_log(path, robot, self._node, layout=self._layout, progress=self._progress)
        samples = log.without_frozen([sensor.name for sensor in robot.ft_sensors])
        positions = samples.positions.copy()
        # Drivers of continuous joints report one turn only.
        for tag in parse(robot.urdf).findall("joint[@type='continuous']"):
            if (name := tag.get('name', '')) in robot.joint_names:
                column = positions[:, robot.joint_names.index(name)]
                known = np.isfinite(column)
                column[known] = np.unwrap(column[known])
        samples = replace(samples, positions=positions)
        external = known_wrenches(self._known, path, robot, samples)
        log = replace(log, samples=samples, external={**log.external, **external})
        return log.take(part.rows(samples.stamp_ns))

    def _locked(self, lock: Sequence[str], first: LogSlice) -> dict[str, float]:
        """Return the positions of locked joints."""
        samples, found = self._read_whole(first).samples, {}
        for name in lock:
            if name not in self._whole.joint_names:
                known = self._whole.joint_names
                raise NameNotFound('joint that moves', name, known, f"'lock' names '{name}'")
            column = samples.positions[:, self._whole.joint_names.index(name)]
            if not np.isfinite(column).any():
                raise LogError(f"the log has no position of '{name}', which is to be locked")
            found[name] = float(np.nanmedian(np.where(np.isfinite(column), column, np.nan)))
        return found
