# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT calibration of a robot as one YAML file.

Each sensor has its calibration and its provenance: method, date, temperature, number of samples
and residual of every step. Missing entries have defaults; unknown ones are refused.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.files import from_json, load_mapping, parse_mapping, write_whole
from inertial_estimation.errors import ConfigError, InertialEstimationError, ModelError
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.sensors import FtCalibration

KIND, VERSION = 'ft_calibration', 1
HEAD = """\
# wrench = matrix reading + temperature_coefficients (T - reference_temperature) - offset
# rows fx fy fz tx ty tz [N, Nm]; temperatures in degrees Celsius
"""
NO_TEMPERATURE = float('nan')
SENSOR, ACCELEROMETER = 'sensor', 'accelerometer'
"""Whose axes wrenches are in [T Remark 5.1]."""
_NUMBERS = {
    'matrix': (6, 6),
    'offset': (6,),
    'temperature_coefficients': (6,),
    'reference_temperature': (),
}


@dataclass(frozen=True)
class Provenance:
    """One step that led to a calibration."""

    method: str
    """Such as 'offsets from the model, one support: l_sole'."""
    date: str
    """When its data were taken, ISO 8601."""
    n_samples: int = 0
    temperature: float = NO_TEMPERATURE
    """Of the sensor meanwhile [degrees Celsius]; NaN: not known."""
    spread: tuple[float, ...] = ()
    """Residual, root mean square, fx fy fz tx ty tz [N, Nm]; empty: not known."""
    notes: tuple[str, ...] = ()
    """Findings of the calibration."""


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
    axes: str = SENSOR
    """`SENSOR`, or `ACCELEROMETER` where the rotation between the two is not known."""

    def __post_init__(self) -> None:
        """Check the numbers, and keep read-only copies."""
        if self.axes not in (SENSOR, ACCELEROMETER):
            raise ModelError(f"'axes' is {self.axes!r}, expected {SENSOR} or {ACCELEROMETER}")
        for name, shape in _NUMBERS.items():
            found = numbers(name, getattr(self, name), shape)
            object.__setattr__(self, name, float(found) if shape == () else found)

    def after(self, step: Provenance, **changes: Any) -> SensorCalibration:
        """Return the calibration with other values, and the step that led to them."""
        return replace(self, provenance=(*self.provenance, step), **changes)

    def same_as(self, other: SensorCalibration) -> bool:
        """Return True if two calibrations make the same wrenches."""
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in _NUMBERS)


def stack_calibrations(sensors: Iterable[SensorCalibration]) -> FtCalibration:
    """Return the calibration of several sensors."""
    every = list(sensors)
    return FtCalibration(
        np.array([sensor.matrix for sensor in every]).reshape(-1, 6, 6),
        np.array([sensor.offset for sensor in every]).reshape(-1, 6),
        np.array([sensor.temperature_coefficients for sensor in every]).reshape(-1, 6),
        np.array([sensor.reference_temperature for sensor in every], dtype=np.float64),
    )


def as_content(robot: str, sensors: Mapping[str, SensorCalibration]) -> dict[str, Any]:
    """Return the content of a file."""
    entries = {name: as_entry(sensor) for name, sensor in sensors.items()}
    return {KIND: {'version': VERSION, 'robot': robot, 'sensors': entries}}


def to_text(robot: str, sensors: Mapping[str, SensorCalibration]) -> str:
    """Return calibrations as YAML with every digit."""
    import yaml

    content = as_content(robot, sensors)
    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=99)
    return HEAD + text


def to_json(robot: str, sensors: Mapping[str, SensorCalibration]) -> str:
    """Return calibrations as JSON, which takes a hundredth of the time of YAML."""
    return json.dumps(as_content(robot, sensors))


def write(
    path: Path,
    robot: str,
    sensors: Mapping[str, SensorCalibration],
    *,
    keeps: Sequence[str] = (),
) -> None:
    """Write calibrations; those of other sensors in the file stay, as must entries of `keeps`."""
    held = others_in(path, robot, {name: one.axes for name, one in sensors.items()})
    for name in sensors.keys() & held.keys():
        for key in keeps:
            if not np.array_equal(getattr(sensors[name], key), getattr(held[name], key)):
                raise ConfigError(f"{path} holds another '{key}' of '{name}'")
    write_whole(path, to_text(robot, held | dict(sensors)))


def others_in(path: Path, robot: str, axes: Mapping[str, str]) -> dict[str, SensorCalibration]:
    """
    Return the calibrations that a file holds already.

    Refuse the file of another robot, and one that would mix axes of sensors and accelerometers:
    robots refuse such a file. axes: of the sensors that are to be written.
    """
    if not path.exists():
        return {}
    before, held = read(path)
    if before != robot:
        raise ConfigError(f"{path} is the calibration of robot '{before}', not of '{robot}'")
    turned = {name for name, of in axes.items() if of != SENSOR}
    held_turned = {name for name, one in held.items() if one.axes != SENSOR} - axes.keys()
    usable = any(one.axes == SENSOR for one in held.values())
    if (turned and usable) or (held_turned and not turned):
        raise ConfigError(
            f"{path} would mix wrenches in the sensor's axes and in those of an accelerometer "
            f'({", ".join(sorted(turned | held_turned))})',
            about=('rotation',),
        )
    return held


def read(path: str | Path) -> tuple[str, dict[str, SensorCalibration]]:
    """Return the name of the robot, and calibrations by sensor."""
    return _read(load_mapping(Path(path)), str(path))


def from_text(text: str, where: str) -> tuple[str, dict[str, SensorCalibration]]:
    """Read calibrations from YAML or JSON."""
    try:
        found = from_json(text)
    except ValueError:
        found = parse_mapping(text, Path(where))
    return _read(found, where)


def as_entry(sensor: SensorCalibration) -> dict[str, Any]:
    """Return one sensor as the file holds it, without what is not known."""
    entry: dict[str, Any] = {name: np.asarray(getattr(sensor, name)).tolist() for name in _NUMBERS}
    if sensor.axes != SENSOR:
        entry['axes'] = sensor.axes
    entry['provenance'] = steps = []
    for step in sensor.provenance:
        known = {
            'method': step.method, 'date': step.date, 'samples': step.n_samples or None,
            'temperature': float(step.temperature) if np.isfinite(step.temperature) else None,
            'spread': list(map(float, step.spread)) or None, 'notes': list(step.notes) or None,
        }  # fmt: skip
        steps.append({key: value for key, value in known.items() if value is not None})
    return entry


def _read(given: Any, where: str) -> tuple[str, dict[str, SensorCalibration]]:
    """Check and return the content of a file."""
    if not isinstance(given, Mapping) or KIND not in given:
        raise ConfigError(f"{where} is no FT calibration: it has no '{KIND}'")
    content = _mapping(where, given[KIND], ('version', 'robot', 'sensors'))
    if content.get('version') != VERSION:
        raise ConfigError(f'{where} is of version {content.get("version")}, expected {VERSION}')
    sensors = {}
    for name, one in _mapping(f'{where}: sensors', content.get('sensors')).items():
        entry = _mapping(f'{where}: {name}', one, (*_NUMBERS, 'axes', 'provenance'))
        try:
            steps = tuple(map(_step, _list('provenance', entry.pop('provenance', None))))
            sensors[str(name)] = SensorCalibration(**entry, provenance=steps)
        except InertialEstimationError as error:
            raise ConfigError(f'{where}: {name}: {error}') from error
    return str(content.get('robot', '')), sensors


def _step(given: Any) -> Provenance:
    """Return a step of the provenance."""
    known = ('method', 'date', 'samples', 'temperature', 'spread', 'notes')
    step = _mapping('a step of provenance', given, known)
    if 'method' not in step:
        raise ConfigError("a step of provenance has no 'method'")
    spread = step.get('spread')
    return Provenance(
        str(step['method']),
        str(step.get('date', '')),
        int(numbers('samples', step.get('samples', 0), ())),
        float(numbers('temperature', step.get('temperature', NO_TEMPERATURE), (), finite=False)),
        () if spread is None else tuple(numbers('spread', spread, (6,), finite=False).tolist()),
        tuple(map(str, _list('notes', step.get('notes')))),
    )


def _list(what: str, given: Any) -> list[Any]:
    """Refuse anything but a list, or nothing."""
    if not isinstance(given or [], list):
        raise ConfigError(f"'{what}' is {given!r}, expected a list")
    return given or []


def _mapping(where: str, given: Any, known: Sequence[str] = ()) -> dict[str, Any]:
    """Refuse anything but known names with values."""
    if not isinstance(given, Mapping):
        raise ConfigError(f'{where} is {given!r}, expected names and values')
    if known and (odd := [name for name in given if name not in known]):
        raise ConfigError(f"{where}: '{odd[0]}' is not known; known: {', '.join(known)}")
    return dict(given)
