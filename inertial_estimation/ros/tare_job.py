# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How offsets are found beside the cycles; `background_process` runs it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inertial_estimation.building import build_contacts, build_robot, noisy_sensors
from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    stack_calibrations,
)
from inertial_estimation.calibration.supported_offsets import (
    LEAST_INSTANTS,
    SupportedOffsets,
    supported_offsets,
)
from inertial_estimation.calibration.tared import in_words, tared
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.supports import beside_level, find_doubts
from inertial_estimation.sample import SampleBatch

MOSTLY = 0.5
"""
Share of the instants that is needed: where the others are spoilt, what spoilt them may well have
gone unnoticed in the rest.
"""
CONTRADICTION, LEAST = 0.4, 3.0
"""
Of the load of a sensor, by how much poses may differ, root mean square over pairs of them, and by
how many newtons they may in any case: no offset worth to be taken explains what differs by more.
"""

Found = tuple[dict[str, SensorCalibration], str]


@dataclass(frozen=True, eq=False)
class TareJob:
    """What offsets are found from."""

    settings: EstimatorSettings
    urdf: str
    parameters: np.ndarray
    """Inertial parameters in use, shape (n_links, 10)."""
    before: Mapping[str, SensorCalibration]
    """In use, of all sensors in their order."""
    supports: tuple[str, ...]
    sensors: tuple[str, ...] | None
    """Whose offsets are wanted; None: all."""
    samples: SampleBatch
    felt: np.ndarray
    """Where another link than those of supports was touched, shape (n,)."""
    date: str


def find_offsets(job: TareJob) -> Found:
    settings = job.settings
    robot = build_robot(settings, job.urdf).with_parameters(job.parameters)
    estimator = WrenchEstimator(
        robot,
        [Contact(job.supports[0])],
        calibration=stack_calibrations(job.before.values()),
        length_scale=settings.length_scale,
        acceleration_arrays=settings.angular_acceleration_source == 'array',
    )
    found = supported_offsets(
        estimator,
        job.samples,
        job.supports,
        sensors=job.sensors,
        accept_split=settings.tare_accept_split,
        felt=job.felt,
        least_instants=max(LEAST_INSTANTS, round(MOSTLY * len(job.samples))),
        noisy=noisy_sensors(settings, robot),
    )
    _require_agreement(found, tuple(job.before))
    doubts: tuple[str, ...] = ()
    if len(job.supports) == 1:
        estimator.set_calibration(found.calibration)
        used = np.flatnonzero(found.instants.used.any(axis=1))
        contacts = tuple(build_contacts(settings))
        speaking = find_doubts(job.samples.take(used), estimator, contacts)
        if settings.tare_supports:
            speaking = beside_level(speaking)
        doubts = tuple(doubt.text for doubt in speaking)
    words = in_words(found, tuple(job.before), doubts)
    return tared(found, job.before, job.date, doubts), words


def _require_agreement(found: SupportedOffsets, names: tuple[str, ...]) -> None:
    """Raise if what a sensor reads besides its load differs between poses by much of the load."""
    for name, poses in found.poses.items():
        k = names.index(name)
        load = found.loads.readings[found.instants.used[:, k], k, :3]
        size = float(np.sqrt((load**2).sum(axis=1).mean()))
        n = len(poses.residuals)
        # Of two poses half the difference is what each is off their mean.
        differ = float(poses.rotating[0]) * np.sqrt(2.0 * n / (n - 1)) if n > 1 else 0.0
        if differ > max(CONTRADICTION * size, LEAST):
            raise CalibrationError(
                f"the poses contradict each other: what '{name}' reads besides its load of "
                f'{size:.3g} N differs by {differ:.3g} N between {n} of them, '
                'which no offset explains: something touched the robot in one of them, or a mass '
                'is far off; begin anew with a tare of the pose that it is in'
            )
