# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A calibration session: data set after data set, and what comes of them [T chapter 5, live].

One data set tells the offset. Three or more, each with another known mass added or the same at
another place, tell the matrix too. A data set is closed only if it tells an offset, so that what
is wrong with it is said while the body still hangs there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_masses import (
    FEWEST_SETS,
    AddedMass,
    MatrixCalibration,
    matrix_from_added_masses,
)
from inertial_estimation.calibration.calibration_file import NO_TEMPERATURE, SensorCalibration
from inertial_estimation.calibration.collection import Collection
from inertial_estimation.calibration.coverage import USUALLY_WANTED, Wanted
from inertial_estimation.calibration.in_situ_steps import (
    matrix_step,
    matrix_warnings,
    offset_step,
    offset_warnings,
)
from inertial_estimation.calibration.matrix_doubts import matrix_doubts
from inertial_estimation.calibration.offset_in_situ import (
    LENGTH_SCALE,
    InSituOffset,
    offset_in_situ,
)
from inertial_estimation.calibration.wrench_axes import ACCELEROMETER, SENSOR
from inertial_estimation.errors import CallError, ConfigError, LogError
from inertial_estimation.model.arguments import numbers

Array = NDArray[np.float64]


class Load(NamedTuple):
    """What is added to the body for a data set."""

    name: str
    mass: float = 0.0
    """[kg]; 0: nothing is added."""
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)
    """
    Of the mass about the sensor's origin [m], in the sensor's axes, or in the accelerometer's if
    the rotation between the two is not known.
    """


NOTHING = Load('nothing')


@dataclass(frozen=True, eq=False)
class Plan:
    """What is to be calibrated, and with what."""

    sensor: str
    gravity: str
    """Where gravity comes from, in words, such as "IMU 'head' through 5 joints"."""
    loads: tuple[Load, ...] = (NOTHING,)
    before: SensorCalibration | None = None
    """
    What makes wrenches of the readings so far; a matrix from a workshop makes the result
    independent of raw units, and is what a new one is held against. None: nobody knows; the
    readings are taken for wrenches.
    """
    rotation: Array | None = None
    """
    Of the frame of the accelerations in that of the sensor, shape (3, 3). None: not known, and a
    matrix is in the axes of the accelerations [T Remark 5.1].
    """
    direction: int = 1
    """+1: the readings are the wrench of the body on the sensor, -1: of the sensor on the body."""
    wanted: Wanted = USUALLY_WANTED

    def __post_init__(self) -> None:
        """Check the loads."""
        n = len(self.loads)
        if n != 1 and n < FEWEST_SETS:
            hung = sum(load.mass > 0.0 for load in self.loads)
            raise CallError(
                f'{f"{hung} loads are" if hung != 1 else "1 load is"} to be hung on in {n} data '
                f'sets: one data set tells an offset, {FEWEST_SETS} or more tell a matrix, the '
                "one without any counts; say more of 'loads', or none",
                about=('loads',),
            )
        names = [load.name for load in self.loads]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ConfigError(f"two loads are named '{twice[0]}': give each a name of its own")
        for load in self.loads:
            numbers(f"the centre of load '{load.name}'", load.centre, (3,))
            if not (np.isfinite(load.mass) and load.mass >= 0.0):
                raise ConfigError(
                    f"load '{load.name}' has a mass of {load.mass!r}, expected kilograms, 0 or "
                    'more'
                )

    @property
    def matrix(self) -> Array:
        """What makes wrenches of the readings so far, shape (6, 6)."""
        return np.eye(6) if self.before is None else self.before.matrix

    @property
    def axes(self) -> str:
        """Whose axes the accelerations are in: of the 'sensor' or the 'accelerometer'."""
        if self.rotation is not None and np.array_equal(self.rotation, np.eye(3)):
            return SENSOR
        return ACCELEROMETER

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
        """What makes raw channels comparable, shape (6, 6)."""
        return np.asarray(np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)[:, None] * self.matrix)


class Outcome(NamedTuple):
    """What a session found."""

    calibration: SensorCalibration
    offset: InSituOffset | None
    """Of the only data set; None: there is a matrix."""
    matrix: MatrixCalibration | None
    """None: there is one data set."""
    warnings: tuple[str, ...]
    doubts: tuple[str, ...] = ()
    """Those of the warnings with which nobody should use it."""


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
        """What is added in that data set."""
        return self.plan.loads[self.step]

    @property
    def collection(self) -> Collection:
        """Of that data set."""
        return self.collections[-1]

    def close_step(self) -> InSituOffset:
        """Close the open data set, and begin with the next load if there is one."""
        found = self._offset(self.step)
        self.begin_next()
        return found

    def begin_next(self) -> None:
        """Begin with the next load; if there is none, the last data set is closed."""
        if self.step + 1 < len(self.plan.loads):
            self.collections.append(self._collection())
        else:
            self.is_closed = True

    def reopen(self) -> None:
        """Go on with the last data set, as the matrix needs more of it."""
        self.is_closed = False

    def restart_step(self) -> None:
        """Throw the open data set away, as its load was wrong or something moved."""
        self.collections[-1] = self._collection()
        self.is_closed = False

    def data_sets(self) -> list[AddedMass]:
        """Return all data sets so far."""
        return [
            AddedMass(load.name, *one.rows(), load.mass, np.array(load.centre))
            for load, one in zip(self.plan.loads, self.collections, strict=False)
        ]

    def outcome(self, date: str, temperature: float = NO_TEMPERATURE) -> Outcome:
        """
        Return what the data sets tell.

        temperature [degrees Celsius].
        """
        if not self.is_closed:
            n = len(self.plan.loads)
            raise LogError(f'data set {self.step + 1} of {n} is not closed yet: go on with it')
        plan, before = self.plan, self.plan.before or SensorCalibration()
        if len(plan.loads) == 1:
            offset = self._offset(0)
            step = offset_step(offset, before, date, temperature)
            said = offset_warnings(offset, before.matrix)
            return Outcome(self._noted(step), offset, None, said)
        former = None if plan.before is None else plan.matrix
        found = matrix_from_added_masses(
            self.data_sets(), rotation=plan.rotation, direction=plan.direction,
            workshop=former,
        )  # fmt: skip
        turned = before.axes != SENSOR
        doubts = matrix_doubts(found, former, turned=turned)
        said = (*doubts, *matrix_warnings(found, former, turned=turned))
        if before.temperature_coefficients.any():
            said += ('temperature coefficients of the former matrix do not hold any more',)
        step = matrix_step(found, date, temperature, former, turned=turned)
        return Outcome(self._noted(step), None, found, said, doubts)

    def _offset(self, step: int) -> InSituOffset:
        """Return the offset that a data set tells."""
        one = self.data_sets()[step]
        return offset_in_situ(
            one.raw, one.accelerations, matrix=self.plan.matrix, what=f"data set '{one.name}'"
        )

    def _noted(self, found: SensorCalibration) -> SensorCalibration:
        """Return a calibration whose last step says that it was live, and with what gravity."""
        *former, last = found.provenance
        counted = self._counted()
        notes = (f'gravity from {self.plan.gravity}', *counted, *last.notes)
        last = replace(last, method=f'live: {last.method}', notes=notes)
        return replace(found, provenance=(*former, last))

    def _counted(self) -> Sequence[str]:
        """Say what was left out, of all readings."""
        lost: dict[str, int] = {}
        for one in self.collections:
            for why, n in list(one.counts().items())[1:]:
                lost[why] = lost.get(why, 0) + n
        total = sum(one.received for one in self.collections)
        reasons = ', '.join(f'{n} {why}' for why, n in lost.items())
        return [f'left out {sum(lost.values())} of {total} readings: {reasons}'] if lost else []

    def _collection(self) -> Collection:
        """Return an empty data set."""
        return Collection(self.plan.metric, self.plan.wanted)
