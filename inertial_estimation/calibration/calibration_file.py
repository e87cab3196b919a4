# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT calibration of a robot: as one YAML file, and as in use by a running node.

Each sensor has its calibration and its provenance: method, date, temperature, number of samples
and residual of every step. Missing entries have defaults; unknown ones are refused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.files import load_mapping, parse_mapping, write_whole
from inertial_estimation.config.schema import record
from inertial_estimation.errors import ConfigError, InertialEstimationError, NameNotFound
from inertial_estimation.model.arguments import names, numbers
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

KIND, VERSION = 'ft_calibration', 1
HEAD = """\
# wrench = matrix reading + temperature_coefficients (T - reference_temperature) - offset
# rows fx fy fz tx ty tz [N, Nm]; temperatures in degrees Celsius
"""
OFFSETS_FROM_MODEL = 'offsets from the model'
"""Beginning of the method of a step that `offset_from_model` made."""
NO_TEMPERATURE = float('nan')
MAX_CONDITION = 1e3
"""Of a matrix with rows, then columns, scaled to one length: those of 32 real sensors have 2."""
_NUMBERS = {'matrix': (6, 6), 'offset': (6,), 'temperature_coefficients': (6,),
            'reference_temperature': ()}  # fmt: skip


@dataclass(frozen=True)
class Provenance:
    """One step that led to a calibration."""

    method: str = ''
    """Such as 'offsets from the model, one support: l_sole'."""
    date: str = ''
    """Date of its data, ISO 8601."""
    samples: int = 0
    temperature: float = NO_TEMPERATURE
    """Of the sensor meanwhile [degrees Celsius]; NaN: not known."""
    spread: Iterable[float] = ()
    """Residual, root mean square, fx fy fz tx ty tz [N, Nm]; empty: not known."""
    notes: Iterable[str] = ()
    """Findings of the calibration."""

    def __post_init__(self) -> None:
        """Convert the values."""
        for name, value in {
            'method': str(self.method),
            'date': str(self.date),
            'samples': int(numbers('samples', self.samples, ())),
            'temperature': float(numbers('temperature', self.temperature, (), finite=False)),
            'spread': tuple(map(float, numbers('spread', self.spread, finite=False).ravel())),
            'notes': names('notes', self.notes),
        }.items():
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class SensorCalibration:
    """Calibration of one sensor, see `FtCalibration`, and its provenance."""

    matrix: Array = field(default_factory=lambda: np.eye(6))
    """Shape (6, 6), applied to the raw reading first."""
    offset: Array = field(default_factory=lambda: np.zeros(6))
    """Subtracted, shape (6,), [force; torque] [N, Nm]."""
    temperature_coefficients: Array = field(default_factory=lambda: np.zeros(6))
    """Added per degree above the reference, shape (6,) [N/K, Nm/K]."""
    reference_temperature: float = 0.0
    """At which the offset holds [degrees Celsius]."""
    provenance: tuple[Provenance, ...] = ()
    """First step first."""

    def __post_init__(self) -> None:
        """Check the numbers, and keep read-only copies."""
        for name, shape in _NUMBERS.items():
            found = numbers(name, getattr(self, name), shape)
            object.__setattr__(self, name, float(found) if shape == () else found)

    def after(self, step: Provenance, **changes: Any) -> SensorCalibration:
        """Return the calibration with other values, and the step that led to them."""
        return replace(self, provenance=(*self.provenance, step), **changes)

    def noted(self, notes: Sequence[str]) -> SensorCalibration:
        """Return the calibration with further notes of its last step."""
        *earlier, last = self.provenance
        last = replace(last, notes=(*last.notes, *notes))
        return replace(self, provenance=(*earlier, last))

    @property
    def is_tared(self) -> bool:
        """Return true if an offset from the model was the last step."""
        return bool(self.provenance) and self.provenance[-1].method.startswith(OFFSETS_FROM_MODEL)

    def same_as(self, other: SensorCalibration) -> bool:
        """Return True if two calibrations make the same wrenches."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _NUMBERS)


@dataclass(frozen=True)
class _Content:
    version: int
    robot: str = ''
    sensors: Mapping[str, SensorCalibration] = field(default_factory=dict)


def stack_calibrations(sensors: Iterable[SensorCalibration]) -> FtCalibration:
    """Return the calibration of several sensors."""
    every = list(sensors)
    return FtCalibration(*(
        np.array([getattr(sensor, name) for sensor in every], dtype=float).reshape(-1, *shape)
        for name, shape in _NUMBERS.items()
    ))  # fmt: skip


def as_entry(sensor: SensorCalibration) -> dict[str, Any]:
    """Return one sensor as the file holds it, without what is not known."""
    entry: dict[str, Any] = {name: np.asarray(getattr(sensor, name)).tolist() for name in _NUMBERS}
    entry['provenance'] = [
        {key: list(value) if isinstance(value, tuple) else value
         for key, value in asdict(step).items() if value and value == value}
        for step in sensor.provenance
    ]  # fmt: skip
    return entry


def _as_content(robot: str, sensors: Mapping[str, SensorCalibration]) -> dict[str, Any]:
    """Return the content of a file, with every digit."""
    entries = {name: as_entry(sensor) for name, sensor in sensors.items()}
    return {KIND: {'version': VERSION, 'robot': robot, 'sensors': entries}}


def to_json(robot: str, sensors: Mapping[str, SensorCalibration]) -> str:
    """Return calibrations as JSON, which takes a hundredth of the time of YAML."""
    return json.dumps(_as_content(robot, sensors))


def iso_date(stamp_ns: float) -> str:
    """Return a time since 1970 [ns] as ISO 8601."""
    return datetime.fromtimestamp(int(stamp_ns) // 1_000_000_000, timezone.utc).isoformat()


def others_in(path: Path, robot: str) -> dict[str, SensorCalibration]:
    """Return the calibrations that a file holds already; refuse the file of another robot."""
    before, held = read(path) if path.exists() else (robot, {})
    if before != robot:
        raise ConfigError(f"{path} is the calibration of robot '{before}', not of '{robot}'")
    return held


def write(
    path: Path, robot: str, sensors: Mapping[str, SensorCalibration], *, keeps: Sequence[str] = ()
) -> None:
    """Write calibrations; those of other sensors in the file stay, as must entries of `keeps`."""
    import yaml

    held = others_in(path, robot)
    for name in sensors.keys() & held.keys():
        for key in keeps:
            if not np.array_equal(getattr(sensors[name], key), getattr(held[name], key)):
                raise ConfigError(f"{path} holds another '{key}' of '{name}'")
    content = _as_content(robot, held | dict(sensors))
    text = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=99)
    write_whole(path, HEAD + text)


def read(path: str | Path) -> tuple[str, dict[str, SensorCalibration]]:
    """Return the name of the robot, and calibrations by sensor."""
    return _read(load_mapping(Path(path)), str(path))


def from_text(text: str, where: str) -> tuple[str, dict[str, SensorCalibration]]:
    """Read calibrations from YAML or JSON."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = parse_mapping(text, Path(where))
    return _read(found, where)


def _read(given: Any, where: str) -> tuple[str, dict[str, SensorCalibration]]:
    if not isinstance(given, Mapping) or KIND not in given:
        raise ConfigError(f"{where} is no FT calibration: it has no '{KIND}'")
    body = given[KIND]
    version = body.get('version') if isinstance(body, Mapping) else None
    if version != VERSION:
        raise ConfigError(f'{where} is of version {version}, expected {VERSION}')
    try:
        found = record(_Content, body, '')
    except InertialEstimationError as error:
        raise ConfigError(f'{where}: {error}') from error
    return found.robot, dict(found.sensors)


def require_usable(name: str, sensor: SensorCalibration) -> None:
    """Refuse a matrix that is close to singular."""
    with np.errstate(invalid='ignore', divide='ignore'):
        scaled = sensor.matrix / np.linalg.norm(sensor.matrix, axis=1, keepdims=True)
        scaled = scaled / np.linalg.norm(scaled, axis=0)
    condition = float(np.linalg.cond(scaled)) if np.isfinite(scaled).all() else float('inf')
    if not condition <= MAX_CONDITION:
        text = f'condition number {condition:.3g} of scaled rows and columns'
        raise ConfigError(f"the matrix of '{name}' has a {text}, limit {MAX_CONDITION:g}")


class ActiveCalibration:
    """Calibration of each FT sensor in use, changed as a whole or not at all, with callbacks."""

    def __init__(
        self,
        robot: Robot,
        start: Mapping[str, SensorCalibration],
        followers: Iterable[Callable[[FtCalibration], None]],
    ) -> None:
        self._robot, self._followers = robot, tuple(followers)
        self.start = self.untared = self.sensors = MappingProxyType(dict(start))
        """As configured; as configured or restored last, without tares; in use."""

    @property
    def stacked(self) -> FtCalibration:
        """That of all sensors."""
        return stack_calibrations(self.sensors.values())

    def take(self, changed: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Use other calibrations of some sensors, or none if one is refused; return changes."""
        for name, sensor in changed.items():
            if name not in self.sensors:
                raise NameNotFound('FT sensor', name, tuple(self.sensors))
            require_usable(name, sensor)
        before = self.sensors
        self.sensors = MappingProxyType({**before, **changed})
        stacked = self.stacked
        for follow in self._followers:
            follow(stacked)
        return tuple(name for name in changed if not before[name].same_as(changed[name]))

    def restore(
        self, where: str, robot: str, given: Mapping[str, SensorCalibration]
    ) -> tuple[str, ...]:
        """Use the calibrations of a file as after a start with it; return changed sensors."""
        if robot and robot != self._robot.name:
            raise ConfigError(f"{where} is of robot '{robot}', not of '{self._robot.name}'")
        if not self.start.keys() & given.keys():
            held, used = (', '.join(names) or 'none' for names in (given, self.start))
            raise ConfigError(f'{where} holds {held}; FT sensors in use are {used}')
        changed = self.take({name: given.get(name, one) for name, one in self.start.items()})
        self.untared = self.sensors
        return changed

    def clear_tare(self) -> tuple[str, ...]:
        """Return to what was configured or restored last; return changed sensors."""
        return self.take(self.untared)
