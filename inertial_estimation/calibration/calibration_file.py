# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The FT calibration of a robot as one YAML file, and the strict reading of one.

Each sensor has what makes wrenches of its readings and, so that nobody need guess later, where it
came from: method, date, temperature, number of instants and what remained. The file is for people
too: every number can be edited, and what is missing has its default.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.wrench_axes import SENSOR, require_known, require_unmixed
from inertial_estimation.config.files import load_mapping, parse_mapping
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.nested import from_json
from inertial_estimation.output import write_whole

Array = NDArray[np.float64]

KIND, VERSION = 'ft_calibration', 1
HEAD = """\
# wrench = matrix reading + temperature_coefficients (T - reference_temperature) - offset
# rows fx fy fz tx ty tz [N, Nm]; temperatures in degrees Celsius
"""
NO_TEMPERATURE = float('nan')
_NUMBERS = {
    'matrix': (6, 6),
    'offset': (6,),
    'temperature_coefficients': (6,),
    'reference_temperature': (),
}


@dataclass(frozen=True)
class Provenance:
    """Where a calibration came from."""

    method: str
    """What produced it, such as 'offsets from the model, one support: l_sole'."""
    date: str
    """When its data were taken, ISO 8601."""
    n_samples: int = 0
    """Instants that were used."""
    temperature: float = NO_TEMPERATURE
    """Of the sensor meanwhile [degrees Celsius]; NaN: not known."""
    spread: tuple[float, ...] = ()
    """Root mean square of what remained, fx fy fz tx ty tz [N, Nm]; empty: not known."""
    notes: tuple[str, ...] = ()
    """What whoever uses it must know, such as that it is not unique."""


@dataclass(frozen=True, eq=False)
class SensorCalibration:
    """How the raw readings of one sensor become wrenches, and where that came from."""

    matrix: Array = field(default_factory=lambda: np.eye(6))
    """Shape (6, 6), applied to the raw reading first."""
    offset: Array = field(default_factory=lambda: np.zeros(6))
    """Subtracted, shape (6,), [force; torque] [N, Nm]."""
    temperature_coefficients: Array = field(default_factory=lambda: np.zeros(6))
    """What a degree above the reference adds, shape (6,) [N/K, Nm/K]."""
    reference_temperature: float = 0.0
    """At which the offset holds [degrees Celsius]."""
    provenance: tuple[Provenance, ...] = ()
    """The steps that led to it, first to last."""
    axes: str = SENSOR
    """
    Whose axes the wrenches are in: of the 'sensor', or of an 'accelerometer' that is turned
    against it in a way that nobody told; about the sensor's origin both.
    """

    def __post_init__(self) -> None:
        """Check the numbers, and keep read-only copies."""
        require_known(self.axes)
        for name, shape in _NUMBERS.items():
            found = numbers(name, getattr(self, name), shape)
            object.__setattr__(self, name, float(found) if shape == () else found)


def stack_calibrations(sensors: Iterable[SensorCalibration]) -> FtCalibration:
    """Return the calibration of several sensors."""
    every = list(sensors)
    return FtCalibration(
        np.array([sensor.matrix for sensor in every]).reshape(-1, 6, 6),
        np.array([sensor.offset for sensor in every]).reshape(-1, 6),
        np.array([sensor.temperature_coefficients for sensor in every]).reshape(-1, 6),
        np.array([sensor.reference_temperature for sensor in every], dtype=np.float64),
    )


def to_text(robot: str, sensors: Mapping[str, SensorCalibration]) -> str:
    """Return calibrations as YAML that keeps every digit."""
    import yaml

    content = {KIND: _content(robot, sensors)}
    text: str = yaml.safe_dump(content, sort_keys=False, default_flow_style=None, width=99)
    return HEAD + text


def write(
    path: Path,
    robot: str,
    sensors: Mapping[str, SensorCalibration],
    *,
    keeps_slopes: bool = False,
    keeps_axes: bool = False,
) -> None:
    """Write calibrations; those of other sensors that the file holds already stay in it."""
    kept = others_in(path, robot, {name: one.axes for name, one in sensors.items()})
    for name in sensors.keys() & kept.keys() if keeps_slopes else ():
        if not _has_slopes_of(sensors[name], kept[name]):
            raise ConfigError(
                f"{path} holds another matrix, or other temperature coefficients, of '{name}' "
                'than these offsets were found with: find them with those of the file, as '
                "'calibration_file' of --config or as --calibration, or name another file to write"
            )
    for name in sensors.keys() & kept.keys() if keeps_axes else ():
        if sensors[name].axes != kept[name].axes:
            raise ConfigError(
                f"{path} holds wrenches of '{name}' in the axes of an {kept[name].axes}, which "
                'would be lost: name another file to write'
            )
    write_whole(path, to_text(robot, kept | dict(sensors)))


def others_in(path: Path, robot: str, axes: Mapping[str, str]) -> dict[str, SensorCalibration]:
    """Return what a file holds beside which sensors are to be written."""
    if not path.exists():
        return {}
    before, held = read(path)
    if before != robot:
        raise ConfigError(
            f"{path} is the calibration of robot '{before}', not of '{robot}': name another file"
        )
    require_unmixed(path, {name: one.axes for name, one in held.items()}, axes)
    return held


def _has_slopes_of(one: SensorCalibration, other: SensorCalibration) -> bool:
    """Tell whether two calibrations differ in offsets alone."""
    names = ('matrix', 'temperature_coefficients')
    return all(np.array_equal(getattr(one, name), getattr(other, name)) for name in names)


def read(path: str | Path) -> tuple[str, dict[str, SensorCalibration]]:
    """Read calibrations."""
    return _read(load_mapping(Path(path)), path)


def from_text(text: str, where: str) -> tuple[str, dict[str, SensorCalibration]]:
    """Read calibrations that `to_text` or `to_json` made a text of."""
    try:
        found = from_json(text)
    except ValueError:
        found = parse_mapping(text, Path(where))
    if not isinstance(found, Mapping):
        raise ConfigError(f'{where} holds no names and values')
    return _read(found, where)


def to_json(robot: str, sensors: Mapping[str, SensorCalibration]) -> str:
    """Return what `to_text` does as JSON, which takes a hundredth of its time."""
    return json.dumps({KIND: _content(robot, sensors)})


def _content(robot: str, sensors: Mapping[str, SensorCalibration]) -> dict[str, Any]:
    """Return what a file holds."""
    return {
        'version': VERSION,
        'robot': robot,
        'sensors': {name: as_entry(sensor) for name, sensor in sensors.items()},
    }


def _read(
    mapping: Mapping[str, Any], path: str | Path
) -> tuple[str, dict[str, SensorCalibration]]:
    """Return what a file says."""
    content = mapping.get(KIND)
    if not isinstance(content, Mapping):
        raise ConfigError(f"{path} is no FT calibration: it has no '{KIND}'")
    if content.get('version') != VERSION:
        raise ConfigError(
            f'{path} is of version {content.get("version")}, expected {VERSION}: calibrate anew'
        )
    _refuse_unknown(f'{path}', content, ('version', 'robot', 'sensors'))
    sensors = content.get('sensors')
    if not isinstance(sensors, Mapping):
        raise ConfigError(f"{path} holds no 'sensors'")
    return str(content.get('robot', '')), {
        str(name): _sensor(f'{path}: {name}', entry) for name, entry in sensors.items()
    }


def as_entry(sensor: SensorCalibration) -> dict[str, Any]:
    """Return one sensor as the file holds it."""
    entry: dict[str, Any] = {name: np.asarray(getattr(sensor, name)).tolist() for name in _NUMBERS}
    if sensor.axes != SENSOR:
        entry['axes'] = sensor.axes
    entry['provenance'] = [_step(step) for step in sensor.provenance]
    return entry


def _step(step: Provenance) -> dict[str, Any]:
    """Return where a calibration came from, without what is not known."""
    said: dict[str, Any] = {'method': step.method, 'date': step.date}
    if step.n_samples:
        said['samples'] = int(step.n_samples)
    if np.isfinite(step.temperature):
        said['temperature'] = float(step.temperature)
    if len(step.spread):
        said['spread'] = [float(x) for x in step.spread]
    if step.notes:
        said['notes'] = list(step.notes)
    return said


def _sensor(where: str, entry: Any) -> SensorCalibration:
    """Return what an entry says."""
    if not isinstance(entry, Mapping):
        raise ConfigError(f'{where} is {entry!r}, expected matrix, offset and what else is known')
    _refuse_unknown(where, entry, (*_NUMBERS, 'axes', 'provenance'))
    given = {name: entry[name] for name in _NUMBERS if name in entry}
    steps = entry.get('provenance') or ()
    if isinstance(steps, (str, Mapping)) or not isinstance(steps, Iterable):
        raise ConfigError(f'{where}: provenance is {steps!r}, expected a list of steps')
    try:
        provenance = tuple(_read_step(where, step) for step in steps)
        return SensorCalibration(**given, provenance=provenance, axes=entry.get('axes', SENSOR))
    except ConfigError:
        raise
    except InertialEstimationError as error:
        raise ConfigError(f'{where}: {error}') from error


def _read_step(where: str, step: Any) -> Provenance:
    """Return where a calibration came from."""
    if not isinstance(step, Mapping) or 'method' not in step:
        raise ConfigError(f'{where}: a step of provenance is {step!r}, expected method and date')
    _refuse_unknown(where, step, ('method', 'date', 'samples', 'temperature', 'spread', 'notes'))
    spread, notes = step.get('spread'), step.get('notes') or ()
    if isinstance(notes, (str, Mapping)) or not isinstance(notes, Iterable):
        raise ConfigError(f'{where}: notes are {notes!r}, expected a list')
    return Provenance(
        str(step['method']),
        str(step.get('date', '')),
        int(numbers('samples', step.get('samples', 0), ())),
        float(numbers('temperature', step.get('temperature', NO_TEMPERATURE), (), finite=False)),
        () if spread is None else tuple(numbers('spread', spread, (6,), finite=False).tolist()),
        tuple(str(note) for note in notes),
    )


def _refuse_unknown(where: str, given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    """Refuse names that nobody reads: one with a slip would be passed over."""
    if odd := [name for name in given if name not in known]:
        raise ConfigError(f"{where}: '{odd[0]}' is not known; known: {', '.join(known)}")
