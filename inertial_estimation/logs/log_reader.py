# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Logs of either kind, tables of numbers or bags, as samples of one robot.

Joints may be locked: they have to stand still, and the robot is read anew with them fixed where
they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import build_calibration, build_robot
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.logs.bag_wrenches import read_wrenches
from inertial_estimation.logs.columns import Layout
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import check_known, constants
from inertial_estimation.logs.number_table import load_table
from inertial_estimation.logs.recording import Progress, read_samples, require_temperatures
from inertial_estimation.logs.stretch import Stretch
from inertial_estimation.logs.touches import Touches
from inertial_estimation.logs.unwrapping import unwrapped
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.urdf import joint_types, parse
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

STILL = 0.01
"""A locked joint may move by so much [rad or m]: what it carries is then off by as little."""


class Log(NamedTuple):
    """One log."""

    samples: SampleBatch
    touches: Touches | None
    """What was felt, if the log is a bag that says so."""
    external: Mapping[str, Array]
    """
    Known wrenches of the environment on the robot by frame, about its origin in its axes, (n, 6)
    [N, Nm]; NaN where unknown.
    """
    frozen: Mask | None = None
    """When which FT sensor repeated itself, (n, n_fts); those readings are NaN. None: unknown."""


class LogReader:
    """Reads logs of one robot; `open_logs` makes it."""

    def __init__(
        self,
        robot: Robot,
        read: Callable[[str | Path], Log],
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

    def read(self, stretch: Stretch) -> Log:
        """Read one log, or a part of it."""
        samples, touches, external, frozen = self._read(stretch.path)
        kept = stretch.rows(samples.stamp_ns)
        samples = samples.take(kept)
        if touches is not None:
            touches = replace(touches, rows=touches.rows[kept])
        locked = [k for k in range(len(self._joints)) if k not in self._kept]
        _require_still(str(stretch), samples, locked, self._joints)
        known = {frame: wrench[kept] for frame, wrench in external.items()}
        samples = _of_joints(samples, self._kept)
        unknown = [self.robot.joint_names.index(name) for name in self.assumed]
        for values in (samples.positions, samples.velocities, samples.accelerations):
            values[:, unknown] = np.nan
        return Log(samples, touches, known, None if frozen is None else frozen[kept])


def open_logs(
    urdf: str,
    settings: IdentifySettings,
    lock: Sequence[str],
    first: Stretch,
    progress: Progress,
) -> LogReader:
    """Return what reads the logs of a robot."""
    if settings.parameters is not None:
        return _bags(urdf, settings.parameters, settings, lock, first, progress)
    layout = settings.layout
    if layout is None:
        raise ConfigError("neither 'log' nor 'parameters' says what the logs are")
    if settings.base_link:
        layout = replace(layout, ft_sensors={}, temperatures={})
    return _tables(urdf, layout, settings, lock, first)


def _tables(
    urdf: str, layout: Layout, settings: IdentifySettings, lock: Sequence[str], first: Stretch
) -> LogReader:
    """Return what reads tables of numbers."""
    cuts: dict[str, Any] = {'ft_sensors': []} if settings.base_link else {}
    arguments = dict(settings.robot) | cuts
    whole = Robot.from_urdf(urdf, **arguments)
    known = settings.external
    places = [place for _, place in layout.external.values()] + [k.place for k in known.values()]
    check_known(whole, places, settings.contacts)

    def read(path: str | Path) -> Log:
        table = load_table(path)
        samples = unwrapped(layout.of_table(table, whole), whole)
        measured = layout.wrenches(table, whole, samples)
        return Log(samples, None, measured | constants(known, whole, samples))

    robot = whole
    if lock:
        joints, positions = _locked(whole, lock, first, read(first.path).samples)
        given = settings.robot.get('locked_positions') or {}
        said = arguments | {'joints': joints, 'locked_positions': given | positions}
        robot = Robot.from_urdf(urdf, **said)
    return LogReader(robot, read, whole.joint_names)


def _bags(
    urdf: str,
    parameters: Path,
    identify: IdentifySettings,
    lock: Sequence[str],
    first: Stretch,
    progress: Progress,
) -> LogReader:
    """Return what reads bags with the node's own decoders."""
    settings = EstimatorSettings.from_yaml(parameters)
    cut = not identify.base_link
    whole = build_robot(settings, urdf, cut=cut)
    require_temperatures(whole, settings)
    fts = [sensor.name for sensor in whole.ft_sensors]
    known = identify.external
    check_known(whole, [one.place for one in known.values()], identify.contacts)

    def read(path: str | Path) -> Log:
        try:
            recording = read_samples(path, whole, settings, progress)
        except NameNotFound as error:
            raise LogError(f"'{path}': {error}") from error
        samples = unwrapped(recording.without_frozen(fts), whole)
        external = read_wrenches(path, known, whole, samples) | constants(known, whole, samples)
        return Log(samples, recording.touches, external, recording.frozen(fts))

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
    robot: Robot, lock: Sequence[str], first: Stretch, samples: SampleBatch
) -> tuple[list[str], dict[str, float]]:
    """Return the joints that stay, and where the others are."""
    types = joint_types(parse(robot.urdf))
    for name in lock:
        if name in robot.joint_names:
            continue
        if name not in types:
            raise NameNotFound('joint', name, robot.joint_names)
        why = 'is fixed' if types[name] == 'fixed' else 'is not among the joints that move here'
        raise ConfigError(f"'{name}' is to be locked, but {why}: leave it out")
    positions = {}
    rows = first.rows(samples.stamp_ns)
    for name in lock:
        column = samples.positions[rows, robot.joint_names.index(name)]
        known = column[np.isfinite(column)]
        if not len(known):
            raise LogError(f"the log does not say where '{name}' is: it cannot be locked there")
        positions[name] = float(np.median(known))
    return [name for name in robot.joint_names if name not in lock], positions


def _require_still(
    path: str, samples: SampleBatch, locked: Sequence[int], names: Sequence[str]
) -> None:
    """Raise if a locked joint moves."""
    for k in locked:
        column = samples.positions[:, k]
        known = column[np.isfinite(column)]
        if len(known) and np.ptp(known) > 2 * STILL:
            raise LogError(
                f"{path}: '{names[k]}' is to be locked, but moves by {np.ptp(known):.3g} (rad or "
                f'm), more than {2 * STILL:g}; choose another part of the log'
            )


def _of_joints(samples: SampleBatch, kept: Sequence[int]) -> SampleBatch:
    """Return samples of some joints."""
    columns = {
        name: values[:, kept]
        for name in ('positions', 'velocities', 'accelerations', 'joint_states', 'efforts')
        if (values := getattr(samples, name)) is not None
    }
    return replace(samples, **columns)
