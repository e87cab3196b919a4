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
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.accelerometer import MOVING, NOT_FINITE, TOUCHED
from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.calibration_file import (
    ACCELEROMETER,
    NO_TEMPERATURE,
    SENSOR,
    SensorCalibration,
)
from inertial_estimation.calibration.channels import constant_channels, names_of
from inertial_estimation.calibration.collection import (
    CONTACT,
    DISORDER,
    JOINTS,
    KEPT,
    REPEATED,
    SETTLING,
    USUALLY_WANTED,
    WAITING,
    Collection,
    Pose,
    Wanted,
    cell_of,
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

KIND, VERSION = 'ft_calibration_session', 1
RESTATED = ('rotation', 'direction', 'loads')
"""Of a plan, which readings do not depend on."""
MAX_SILENCE = 1.0
"""Time without readings until the instruction reports it [s]."""
REQUESTS_TO_CLOSE = 2
"""Requests that close a data set although it is not complete."""
PAUSES = {
    CONTACT: 'paused: a contact on the body',
    JOINTS: 'paused: a joint beyond the sensor has moved; restore it, or restart the data set',
    NOT_FINITE: 'paused: a reading is missing',
    TOUCHED: 'the last pose does not fit the others: is the body touched?',
}
NORMAL = ('', KEPT, WAITING, MOVING, SETTLING, REPEATED, DISORDER)
"""States while a body is turned from pose to pose."""
MIN_DIRECTIONS = 5
"""From which a channel that has not changed is dead."""


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
        """Axes of the accelerations."""
        known = self.rotation is not None and np.array_equal(self.rotation, np.eye(3))
        return SENSOR if known else ACCELEROMETER

    @property
    def load_axes(self) -> str:
        """Axes of centres of loads: accelerations are turned into the sensor's."""
        return ACCELEROMETER if self.rotation is None else SENSOR

    @property
    def wrench_axes(self) -> str:
        """Axes of the result; an offset stays in those of its matrix."""
        if len(self.loads) == 1:
            return SENSOR if self.before is None else self.before.axes
        return self.load_axes

    @property
    def metric(self) -> Array:
        """Map to comparable channels, shape (6, 6)."""
        return np.asarray(np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)[:, None] * self.matrix)

    def as_dict(self) -> dict[str, Any]:
        """Return the part that must not change while a session is continued."""
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
        offset = matrix = None
        if len(plan.loads) == 1:
            offset = self._offset(0)
            one = offset.calibration(before, date, temperature)
            findings = tuple(offset.findings(before.matrix, plan.sensor))
        else:
            former = None if plan.before is None else plan.matrix
            matrix = in_situ_matrix(
                self.data_sets(), rotation=plan.rotation, direction=plan.direction, former=former
            )
            findings = tuple(matrix.findings(plan.sensor, former, turned=before.axes != SENSOR))
            one = matrix.calibration(date, temperature, [one.text for one in findings])
        *earlier, last = one.provenance
        notes = (f'gravity from {plan.gravity}', *last.notes)
        last = replace(last, method=f'live: {last.method}', notes=notes)
        return Outcome(replace(one, provenance=(*earlier, last)), offset, matrix, findings)

    def _offset(self, step: int) -> InSituOffset:
        """Return the offset of a data set."""
        one = self.data_sets()[step]
        return in_situ_offset(
            one.raw, one.accelerations, matrix=self.plan.matrix, what=f"data set '{one.name}'"
        )

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
            agrees = bool(now == then) or (restated and key in RESTATED)
            if key == 'loads' and isinstance(then, list):
                # A matrix that was refused may need a further load.
                agrees = len(now) >= len(then) and (restated or now[: len(then)] == then)
            if not agrees:
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
            session.collections = [session._collection() for _ in sets]
            for one, entry in zip(session.collections, sets, strict=True):
                for stamp_ns, n_readings, *values in entry['moments']:
                    row = np.array(values, dtype=np.float64)
                    if row.shape != (15,) or not np.isfinite(row).all():
                        raise ValueError('a pose is not 15 finite numbers')
                    one.add(Pose(int(stamp_ns), row[:6], row[6:9], row[9:], int(n_readings)))
                for why, n in entry['left_out'].items():
                    one.left_out[str(why)] += int(n)
                    one.received += int(n)
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigError(f"'{path}' is damaged: {error}") from error
        if found.get('closed'):
            session.begin_next()
        return session


class Phase(Enum):
    """Phase of a session."""

    LOADING = 'loading'
    """A load is mounted or removed; readings are ignored."""
    COLLECTING = 'collecting'
    DONE = 'done'


class Conductor:
    """
    Sequence of a session, in the time of its caller.

    loading_time [s]: after which a load counts as mounted; None: when `proceed` is called.
    """

    def __init__(self, session: Session, loading_time: float | None = None) -> None:
        self.session, self._loading_time = session, loading_time
        self.notes: list[str] = []
        self.phase = Phase.COLLECTING
        self._asked_at: float | None = None
        self._heard_at: float | None = None
        self._requests = 0
        if session.is_closed:
            self.phase = Phase.DONE
        elif session.load.mass or session.step > 0:
            # Also of a session that is continued.
            self._ask_for_load()

    def take(self, reading: Reading, now: float) -> None:
        """Take the readings of one sample; now [s]."""
        self._heard_at = now
        if self.phase is Phase.COLLECTING:
            self.session.collection.update(
                reading.stamp_ns, reading.raw, reading.acceleration, reading.turning,
                disturbance=reading.disturbance,
            )  # fmt: skip

    def look(self, now: float) -> bool:
        """Advance where no person is needed; return whether a data set begins; now [s]."""
        self._asked_at = now if self._asked_at is None else self._asked_at
        if self.phase is Phase.LOADING:
            waits = self._loading_time is None or now - self._asked_at < self._loading_time
            return False if waits else self.proceed()
        if self.phase is Phase.COLLECTING and self.session.collection.coverage().is_enough:
            self._close()
        return False

    def proceed(self) -> bool:
        """Begin the data set if its load is mounted, else close it on request."""
        if self.phase is Phase.LOADING:
            self.phase, self._requests = Phase.COLLECTING, 0
            self.notes.append(f'data set {self._number()} begins')
            return True
        if self.phase is Phase.COLLECTING:
            coverage = self.session.collection.coverage()
            self._requests += 1
            if coverage.is_enough or self._requests >= REQUESTS_TO_CLOSE:
                self._close()
            else:
                lacking = '; '.join(filter(None, (self._dead(), *coverage.shortfalls)))
                self.notes.append(f'not complete ({lacking}); ask again to close it as it is')
        return False

    def restart_step(self) -> bool:
        """Restart the open data set."""
        if self.phase is Phase.DONE:
            return False
        self.session.restart_step()
        self.phase, self._requests = Phase.COLLECTING, 0
        self.notes.append(f'data set {self._number()} restarts')
        return True

    def instruction(self, now: float) -> str:
        """Return the next instruction; now [s]."""
        if self.phase is Phase.DONE:
            return 'done'
        if self.phase is Phase.LOADING:
            return self._loading()
        if self._heard_at is None or now - self._heard_at > MAX_SILENCE:
            return 'no readings'
        one = self.session.collection
        if dead := self._dead():
            return dead
        if one.state not in NORMAL:
            return PAUSES.get(one.state, f'paused: {one.state}')
        rejected = one.rejected[-1] if one.poses else ''
        # Turning the body on dismisses a rejected pose.
        if rejected in PAUSES and one.state in (KEPT, WAITING):
            return PAUSES[rejected]
        suggested = one.coverage().suggestions
        if not suggested:
            return 'tilt it further, and hold it still for two seconds'
        return (
            f'turn the body so that {" or ".join(suggested)} of the {self.session.plan.axes} '
            'points down, and hold it still for two seconds'
        )

    def _loading(self) -> str:
        """Return the instruction for the next load."""
        load, what = self.session.load, 'remove all loads'
        if load.mass:
            at = ', '.join(f'{x:g}' for x in load.centre)
            what = (
                f"mount load '{load.name}' alone, {load.mass:g} kg with its centre at ({at}) m in "
                f"the axes of the {self.session.plan.load_axes} about the FT sensor's origin"
            )
        return what if self._loading_time is not None else f'{what}, then press Enter'

    def _close(self) -> None:
        """Close the data set, or note why it cannot be."""
        number, name = self._number(), self.session.load.name
        self._requests = 0
        try:
            found = self.session.close_step()
        except LogError as error:
            self.notes.append(str(error))
            return
        spreads = ', '.join(f'{x:.0%}' for x in found.orientations.spreads)
        self.notes.append(
            f"data set {number}, '{name}': {found.slopes.n_samples} poses, gravity spreads by "
            f'{spreads} of g, gap {found.subspace.gap:.0f}'
        )
        if self.session.is_closed:
            self.phase = Phase.DONE
        else:
            self._ask_for_load()

    def _ask_for_load(self) -> None:
        """Wait for the load of the open data set."""
        self.phase, self._asked_at = Phase.LOADING, None
        self.notes.append(self._loading())

    def _dead(self) -> str:
        """Return the channels that never change while the body is turned; empty: none."""
        raw, accelerations = self.session.collection.samples
        if len({cell_of(one) for one in accelerations}) < MIN_DIRECTIONS:
            return ''
        constant = constant_channels(raw)
        return f'channel {names_of(constant)} never changes' if constant.any() else ''

    def _number(self) -> str:
        """Return the number of the open data set."""
        return f'{self.session.step + 1} of {len(self.session.plan.loads)}'
