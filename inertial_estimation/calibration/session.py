# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration session: mount a load, turn the body until the poses determine an offset, next load.

One data set determines the offset; with two loads or more after it, the matrix too [T chapter 5].
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.accelerometer import NOT_FINITE
from inertial_estimation.calibration.calibration_file import (
    ACCELEROMETER,
    NO_TEMPERATURE,
    SENSOR,
    SensorCalibration,
)
from inertial_estimation.calibration.collection import CONTACT, JOINTS, Collection, Reading
from inertial_estimation.calibration.in_situ_matrix import (
    MIN_DATA_SETS,
    AddedMass,
    in_situ_matrix,
)
from inertial_estimation.errors import CallError
from inertial_estimation.findings import Finding

PAUSES = {
    CONTACT: 'paused: a contact on the body',
    JOINTS: 'paused: a joint beyond the sensor has moved; restore it, or restart the data set',
    NOT_FINITE: 'paused: a reading is missing',
}


class Load(NamedTuple):
    """Mass added to the body for a data set."""

    mass: float = 0.0
    """[kg]"""
    centre: tuple[float, ...] = (0.0, 0.0, 0.0)
    """About the sensor's origin [m], in the axes of `Session.axes`."""


class Outcome(NamedTuple):
    """Result of a session."""

    calibration: SensorCalibration
    findings: tuple[Finding, ...]
    """Errors if the calibration must not be used."""
    figures: dict[str, Any]


class Session:
    """
    Data sets of a body without load and with each of the loads.

    gravity: its source. before: former calibration, None: not known. rotation: of the frame of
    the accelerations in that of the sensor, (3, 3), None: not known. direction: +1 if the readings
    are the wrench of the body on the sensor, -1 if that of the sensor on the body.
    """

    def __init__(
        self, sensor: str, gravity: str, loads: Sequence[Load] = (), *,
        before: SensorCalibration | None = None, rotation: Array | None = None, direction: int = 1,
    ) -> None:  # fmt: skip
        if 0 < len(loads) < MIN_DATA_SETS - 1:
            raise CallError(
                f"{len(loads)} of 'loads': 0 determine an offset, {MIN_DATA_SETS - 1} a matrix",
                about=('loads',),
            )
        self._sensor, self._gravity, self._loads = sensor, gravity, (Load(), *loads)
        self._before, self._rotation, self._direction = before, rotation, direction
        self._matrix = np.eye(6) if before is None else before.matrix
        self.axes = ACCELEROMETER if rotation is None else SENSOR
        """Of the wrenches, and of the centres of loads."""
        if not loads:
            self.axes = SENSOR if before is None else before.axes
        self.collections: list[Collection] = []
        self.notes: list[str] = []
        """What has happened; the caller takes them away."""
        self.is_loading = self.is_done = False
        self._open()

    @property
    def collection(self) -> Collection:
        """Poses of the data set that is open, or of the last one."""
        return self.collections[-1]

    def take(self, reading: Reading) -> None:
        """Take a reading, and close the data set if it is complete."""
        if self.is_loading or self.is_done:
            return
        if self.collection.update(reading) and not self.collection.lacking:
            self.proceed()

    def proceed(self) -> None:
        """Begin the data set if its load is mounted, else close it if it determines an offset."""
        one, number = self.collection, f'data set {len(self.collections)} of {len(self._loads)}'
        if self.is_loading:
            self.is_loading = False
            self.notes.append(f'{number} begins')
        elif one.offset is None:
            self.notes.append(f'{number} cannot be closed: {one.lacking}')
        elif not self.is_done:
            spreads = ', '.join(f'{x:.0%}' for x in one.offset.orientations.spreads)
            self.notes.append(
                f"{number}, '{one.name}': {one.offset.slopes.n_samples} poses, gravity spreads by "
                f'{spreads} of g, gap {one.offset.subspace.gap:.0f}'
            )
            self.is_done = len(self.collections) == len(self._loads)
            if not self.is_done:
                self._open()

    def restart(self) -> None:
        """Discard the poses of the open data set."""
        self.collections[-1] = Collection(self.collection.name, self._matrix)

    def instruction(self) -> str:
        """Return what is to be done next."""
        one = self.collection
        if self.is_loading:
            mass, centre = self._loads[len(self.collections) - 1]
            return (
                f"mount '{one.name}' alone, {mass:g} kg with its centre at "
                f'({", ".join(f"{x:g}" for x in centre)}) m in the axes of the {self.axes} about '
                "the FT sensor's origin, then press Enter"
            )
        if one.state in PAUSES:
            return PAUSES[one.state]
        if one.offset is not None and not one.offset.kept[-1]:
            return 'the last pose does not fit the others: is the body touched?'
        suggested = ' or '.join(one.suggestions())
        is_turned = self._rotation is None or not np.array_equal(self._rotation, np.eye(3))
        axes = ACCELEROMETER if is_turned else SENSOR
        turn = f'turn the body so that {suggested} of the {axes} points down'
        return f'{one.lacking}; {turn if suggested else "tilt it further"}, hold it still for 2 s'

    def outcome(self, date: str, temperature: float = NO_TEMPERATURE) -> Outcome:
        """Return the calibration; temperature [degrees Celsius]."""
        before = self._before or SensorCalibration()
        if len(self._loads) == 1:
            offset = self.collection.offset
            assert offset is not None
            one = offset.calibration(before, date, temperature)
            findings = tuple(offset.findings(before.matrix, self._sensor))
            deviations = offset.in_wrench(before.matrix)[1]
            figures = {
                'offset': one.offset, 'deviations': deviations, 'gap': offset.subspace.gap
            }  # fmt: skip
        else:
            sets = [
                AddedMass(one.name, *one.samples, load.mass, np.array(load.centre))
                for load, one in zip(self._loads, self.collections, strict=True)
            ]
            former = None if self._before is None else before.matrix
            turned = before.axes != SENSOR
            found = in_situ_matrix(
                sets, rotation=self._rotation, direction=self._direction, former=former
            )
            findings = tuple(found.findings(self._sensor, former, turned=turned))
            one = found.calibration(date, temperature, [finding.text for finding in findings])
            figures = {
                'offset': one.offset, 'matrix': found.matrix, 'deviations': found.deviations,
                'axes': one.axes, 'body_mass': found.body.mass,
                'residuals_over_noise': found.residuals,
                'change': found.change(former, turned=turned),
            }  # fmt: skip
        *earlier, last = one.provenance
        notes = (f'gravity from {self._gravity}', *last.notes)
        last = replace(last, method=f'live: {last.method}', notes=notes)
        calibration = replace(one, provenance=(*earlier, last))
        readings = {one.name: one.counts() for one in self.collections}
        return Outcome(calibration, findings, {**figures, 'readings': readings})

    def _open(self) -> None:
        """Open the next data set."""
        n = len(self.collections)
        self.collections.append(Collection(f'load {n}' if n else 'nothing', self._matrix))
        self.is_loading = n > 0
