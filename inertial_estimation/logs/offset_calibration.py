# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The job of ``calibrate offsets``: a bag in, offsets of FT sensors from the model out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import (
    build_estimator,
    build_robot,
    noisy_sensors,
    sensor_calibrations,
)
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.calibration.offset_arguments import NoInstant
from inertial_estimation.calibration.stillness import Stillness
from inertial_estimation.calibration.supported_offsets import (
    SupportedOffsets,
    supported_offsets,
)
from inertial_estimation.calibration.tared import METHOD, notes, tared
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CallError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.recording import (
    Progress,
    Recording,
    TimeRange,
    no_progress,
    read_samples,
    require_derivatives,
)
from inertial_estimation.logs.supports import find_doubts
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]

MAX_SAMPLES = 20_000
"""Instants of a longer range are thinned out evenly; a constant needs no more."""


@dataclass(frozen=True)
class OffsetCalibrationRequest:
    """What is asked for."""

    supports: tuple[str, ...] = ()
    """Frames that carry the robot; empty: the fixed link."""
    sensors: tuple[str, ...] = ()
    """FT sensors whose offsets are wanted; empty: all that say something."""
    time_range: TimeRange = field(default_factory=TimeRange)
    """The part of the log."""
    accept_split: bool = False
    """Whether the shortest support wrenches are taken for true."""
    moving: bool = False
    """Whether instants in motion count as well."""


@dataclass(frozen=True, eq=False)
class OffsetCalibration:
    """What came of it."""

    robot: Robot
    found: SupportedOffsets
    before: Mapping[str, SensorCalibration]
    """Calibrations that were in use, by sensor."""
    date: str
    """When the data were recorded, ISO 8601."""
    times: Array
    """Of all instants of the range, seconds after the first FT message, shape (n,)."""
    doubts: tuple[str, ...]
    """What speaks against the supports being the only contacts, in words."""

    @property
    def calibrations(self) -> dict[str, SensorCalibration]:
        """New calibrations of the sensors whose offsets were found, with where they came from."""
        return tared(self.found, self.before, self.date, self.doubts)

    def notes(self, k: int) -> tuple[str, ...]:
        """Return what whoever uses an offset must know."""
        told = notes(self.found, k, self.robot.ft_sensors[k].name)
        return (*told, *(f'doubtful: {doubt}' for doubt in self.doubts))


def calibrate_offsets(
    bag: str | Path,
    urdf: str | Path,
    settings: EstimatorSettings,
    request: OffsetCalibrationRequest,
    progress: Progress = no_progress,
) -> OffsetCalibration:
    """Find offsets from a bag."""
    supports = request.supports or ((settings.fixed_link,) if settings.fixed_link else ())
    if not supports:
        raise CallError(
            'offsets from the model need the frames that carry the robot: name them with '
            "'supports', or give a fixed_link",
            about=('supports',),
        )
    robot = build_robot(settings, str(urdf))
    before = sensor_calibrations(settings, robot, new_file=True)
    for support in supports:
        robot.frame(support, f"'supports' names '{support}'")
    recording = read_samples(bag, robot, settings, progress)
    part = recording.within(request.time_range).thinned(MAX_SAMPLES)
    samples = part.without_frozen(sensor.name for sensor in robot.ft_sensors)
    progress(METHOD, 0.0)
    estimator = build_estimator(settings, robot)
    try:
        found = supported_offsets(
            estimator,
            samples,
            supports,
            sensors=request.sensors or None,
            accept_split=request.accept_split,
            stillness=Stillness.none() if request.moving else Stillness(),
            felt=_felt(part, robot, supports),
            length_scale=settings.length_scale,
            noisy=noisy_sensors(settings, robot),
        )
    except NoInstant:
        require_derivatives(recording)
        raise
    progress(METHOD, 1.0)
    return OffsetCalibration(
        robot, found, before, _date(recording, request), part.times,
        _doubts(samples, robot, settings, found),
    )  # fmt: skip


def _felt(part: Recording, robot: Robot, supports: tuple[str, ...]) -> Mask | None:
    """Tell when something is felt on another link than those of the supports, shape (n,)."""
    if part.touches is None:
        return None
    known = {robot.frame(support)[0] for support in supports}
    strange = [
        any(robot.frame(contact.frame)[0] not in known for contact in contacts)
        for contacts in part.touches.sets
    ]
    return np.array(strange, dtype=bool)[part.touches.rows]


def _doubts(
    samples: SampleBatch, robot: Robot, settings: EstimatorSettings, found: SupportedOffsets
) -> tuple[str, ...]:
    """Return what speaks against one support being the only contact, of the instants used."""
    if len(found.supports) > 1:
        return ()
    used = np.flatnonzero(found.instants.used.any(axis=1))
    # Offsets of sensors that nobody asked for would look like forces.
    rows = [found.differences[used, k] for k in range(len(robot.ft_sensors))]
    known = [row[np.isfinite(row).all(axis=1)] for row in rows]
    offsets = np.array([row.mean(axis=0) if len(row) else np.zeros(6) for row in known])
    alone = (Contact(found.supports[0]),)
    whole = found.calibration.with_offsets(offsets.reshape(-1, 6))
    estimator = build_estimator(settings, robot, contacts=alone, calibration=whole)
    configured = build_estimator(settings, robot).contacts
    return tuple(doubt.text for doubt in find_doubts(samples.take(used), estimator, configured))


def _date(recording: Recording, request: OffsetCalibrationRequest) -> str:
    """Return when the first instant of the range was recorded, UTC."""
    stamp = recording.within(request.time_range).samples.stamp_ns[0]
    return datetime.fromtimestamp(int(stamp) // 1_000_000_000, timezone.utc).isoformat()
