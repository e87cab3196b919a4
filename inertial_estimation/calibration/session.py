# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration session: data set after data set, and its file [T chapter 5, live].

One data set determines the offset; three or more, each with another known mass added or the same
at another place, the matrix too. A data set is closed only if it determines an offset, while the
body still hangs there.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.calibration_file import (
    ACCELEROMETER,
    NO_TEMPERATURE,
    SENSOR,
    SensorCalibration,
)
from inertial_estimation.calibration.collection import (
    USUALLY_WANTED,
    Collection,
    Pose,
    Wanted,
)
from inertial_estimation.calibration.in_situ_matrix import (
    MIN_DATA_SETS,
    AddedMass,
    InSituMatrix,
    in_situ_matrix,
)
from inertial_estimation.calibration.in_situ_offset import (
    LENGTH_SCALE,
    InSituOffset,
    in_situ_offset,
)
from inertial_estimation.config.files import from_json, write_whole
from inertial_estimation.errors import CallError, ConfigError, LogError
from inertial_estimation.findings import Finding
from inertial_estimation.model.arguments import numbers

Array = NDArray[np.float64]

KIND, VERSION = 'ft_calibration_session', 1
RESTATED = ('rotation', 'direction', 'loads')
"""Of a plan: what readings do not depend on."""


class Load(NamedTuple):
    """Mass added to the body for a data set."""

    name: str
    mass: float = 0.0
    """[kg]"""
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)
    """About the sensor's origin [m], in the axes of `Plan.load_axes`."""


NOTHING = Load('nothing')


@dataclass(frozen=True, eq=False)
class Plan:
    """Sensor and loads of a session."""

    sensor: str
    gravity: str
    """Source of gravity, such as "IMU 'head' through 5 joints"."""
    loads: tuple[Load, ...] = (NOTHING,)
    before: SensorCalibration | None = None
    """Former calibration, whose matrix a new one is compared with; None: not known."""
    rotation: Array | None = None
    """Of the frame of the accelerations in that of the sensor, (3, 3); None: not known."""
    direction: int = 1
    """+1: the readings are the wrench of the body on the sensor, -1: of the sensor on the body."""
    wanted: Wanted = USUALLY_WANTED

    def __post_init__(self) -> None:
        """Check the loads."""
        n = len(self.loads)
        if n != 1 and n < MIN_DATA_SETS:
            raise CallError(
                f"{n} data sets of 'loads': 1 determines an offset, {MIN_DATA_SETS} a matrix",
                about=('loads',),
            )
        names = [load.name for load in self.loads]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two loads are named '{twice[0]}'")
        for load in self.loads:
            numbers(f"the centre of load '{load.name}'", load.centre, (3,))
            if not (np.isfinite(load.mass) and load.mass >= 0.0):
                raise ConfigError(f"load '{load.name}' has a mass of {load.mass!r} kg")

    @property
    def matrix(self) -> Array:
        """Matrix so far, shape (6, 6)."""
        return np.eye(6) if self.before is None else self.before.matrix

    @property
    def axes(self) -> str:
        """Whose axes the accelerations are in."""
        known = self.rotation is not None and np.array_equal(self.rotation, np.eye(3))
        return SENSOR if known else ACCELEROMETER

    @property
    def load_axes(self) -> str:
        """Whose axes centres of loads are in: accelerations are turned into the sensor's."""
        return ACCELEROMETER if self.rotation is None else SENSOR

    @property
    def wrench_axes(self) -> str:
        """Whose axes the wrenches will be in; an offset stays in those of its matrix."""
        if len(self.loads) == 1:
            return SENSOR if self.before is None else self.before.axes
        return self.load_axes

    @property
    def metric(self) -> Array:
        """Map to comparable channels, shape (6, 6)."""
        return np.asarray(np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)[:, None] * self.matrix)

    def as_dict(self) -> dict[str, Any]:
        """Return what must not change while a session is continued."""
        return {
            'sensor': self.sensor,
            'gravity': self.gravity,
            'rotation': None if self.rotation is None else np.asarray(self.rotation).tolist(),
            'direction': int(self.direction),
            'loads': [[one.name, float(one.mass), *map(float, one.centre)] for one in self.loads],
        }


class Outcome(NamedTuple):
    """Result of a session."""

    calibration: SensorCalibration
    offset: InSituOffset | None
    """Of the only data set; None: there is a matrix."""
    matrix: InSituMatrix | None
    findings: tuple[Finding, ...]
    """Errors if the calibration must not be used."""


class Session:
    """Data sets, one after the other."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.collections = [self._collection()]
        self.is_closed = False

    @property
    def step(self) -> int:
        """Index of the data set that is open, or of the last one."""
        return len(self.collections) - 1

    @property
    def load(self) -> Load:
        """Load of that data set."""
        return self.plan.loads[self.step]

    @property
    def collection(self) -> Collection:
        """Poses of that data set."""
        return self.collections[-1]

    def close_step(self) -> InSituOffset:
        """Close the open data set, and begin with the next load if there is one."""
        found = self._offset(self.step)
        self.begin_next()
        return found

    def begin_next(self) -> None:
        """Begin with the next load, or close the last data set."""
        if self.step + 1 < len(self.plan.loads):
            self.collections.append(self._collection())
        else:
            self.is_closed = True

    def restart_step(self) -> None:
        """Discard the open data set."""
        self.collections[-1] = self._collection()
        self.is_closed = False

    def data_sets(self) -> list[AddedMass]:
        """Return all data sets so far."""
        return [
            AddedMass(load.name, *one.samples, load.mass, np.array(load.centre))
            for load, one in zip(self.plan.loads, self.collections, strict=False)
        ]

    def outcome(self, date: str, temperature: float = NO_TEMPERATURE) -> Outcome:
        """Return the calibration; temperature [degrees Celsius]."""
        if not self.is_closed:
            n = len(self.plan.loads)
            raise LogError(f'data set {self.step + 1} of {n} is not closed yet')
        plan, before = self.plan, self.plan.before or SensorCalibration()
        if len(plan.loads) == 1:
            offset = self._offset(0)
            step = offset.calibration(before, date, temperature)
            findings = tuple(offset.findings(before.matrix, plan.sensor))
            return Outcome(self._noted(step), offset, None, findings)
        former = None if plan.before is None else plan.matrix
        found = in_situ_matrix(
            self.data_sets(), rotation=plan.rotation, direction=plan.direction, former=former
        )
        findings = tuple(found.findings(plan.sensor, former, turned=before.axes != SENSOR))
        step = found.calibration(date, temperature, [one.text for one in findings])
        return Outcome(self._noted(step), None, found, findings)

    def _offset(self, step: int) -> InSituOffset:
        """Return the offset of a data set."""
        one = self.data_sets()[step]
        return in_situ_offset(
            one.raw, one.accelerations, matrix=self.plan.matrix, what=f"data set '{one.name}'"
        )

    def _noted(self, found: SensorCalibration) -> SensorCalibration:
        """Return a calibration with the source of gravity in its provenance."""
        *former, last = found.provenance
        notes = (f'gravity from {self.plan.gravity}', *last.notes)
        last = replace(last, method=f'live: {last.method}', notes=notes)
        return replace(found, provenance=(*former, last))

    def _collection(self) -> Collection:
        """Return an empty data set."""
        return Collection(self.plan.metric, self.plan.wanted)

    def save(self, path: Path) -> None:
        """Write the session with all poses, to continue it later."""
        sets = [
            {
                'left_out': dict(one.left_out),
                'moments': [
                    [m.stamp_ns, m.n_readings, *m.raw.tolist(), *m.acceleration.tolist(),
                     *m.spread.tolist()]
                    for m in one.poses
                ],
            }
            for one in self.collections
        ]  # fmt: skip
        content = {'version': VERSION, 'plan': self.plan.as_dict(), 'closed': self.is_closed,
                   'data_sets': sets}  # fmt: skip
        write_whole(path, json.dumps({KIND: content}) + '\n')

    @classmethod
    def load_file(cls, path: Path, plan: Plan, *, restated: bool = False) -> Session:
        """Read a session to continue it; restated: accept other loads, rotation and direction."""
        try:
            content = from_json(path.read_text(encoding='utf-8'))
        except (OSError, ValueError) as error:
            raise ConfigError(f"cannot read '{path}': {error}") from error
        found = content.get(KIND) if isinstance(content, Mapping) else None
        if not isinstance(found, Mapping) or not isinstance(found.get('plan'), Mapping):
            raise ConfigError(f"'{path}' is no calibration session: it has no '{KIND}'")
        if found.get('version') != VERSION:
            raise ConfigError(f"'{path}' is of version {found.get('version')}, expected {VERSION}")
        for key, now in plan.as_dict().items():
            then = found['plan'].get(key)
            if not _agree(key, now, then, restated=restated):
                raise ConfigError(
                    f"'{path}' is a session whose {key} is {json.dumps(then)}, not "
                    f'{json.dumps(now)}',
                    about=('restate',),
                )
        session = cls(plan)
        try:
            sets = found['data_sets']
            if not 1 <= len(sets) <= len(plan.loads):
                raise ValueError(f'{len(sets)} data sets of {len(plan.loads)} loads')
            session.collections = [_read_collection(plan, one) for one in sets]
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"'{path}' is damaged: {error}") from error
        if found.get('closed'):
            session.begin_next()
        return session


def _agree(key: str, now: Any, then: Any, *, restated: bool) -> bool:
    """Return whether an entry of a plan agrees with that of a file."""
    if key == 'loads' and isinstance(then, list):
        # A matrix that was refused may need a further load.
        known = now[: len(then)]
        return len(known) == len(then) if restated else bool(known == then)
    return bool(now == then) or (restated and key in RESTATED)


def _read_collection(plan: Plan, entry: Mapping[str, Any]) -> Collection:
    """Return a data set of a file."""
    found = Collection(plan.metric, plan.wanted)
    for stamp_ns, n_readings, *values in entry['moments']:
        row = np.array(values, dtype=np.float64)
        if row.shape != (15,) or not np.isfinite(row).all():
            raise ValueError('a pose is not 15 finite numbers')
        found.add(Pose(int(stamp_ns), row[:6], row[6:9], row[9:], int(n_readings)))
    for why, n in entry['left_out'].items():
        found.left_out[str(why)] += int(n)
        found.received += int(n)
    return found
