# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How offsets are found beside the cycles; `background_process` runs it."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inertial_estimation.building import build_contacts, build_robot
from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    stack_calibrations,
)
from inertial_estimation.calibration.supported_offsets import LEAST_INSTANTS, supported_offsets
from inertial_estimation.calibration.tared import in_words, tared
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.supports import find_doubts
from inertial_estimation.sample import SampleBatch

MOSTLY = 0.5
"""
Share of the instants that is needed: where the others are spoilt, what spoilt them may well have
gone unnoticed in the rest.
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
    """
    Find offsets.

    Parameters
    ----------
    job : TareJob
        From what.

    Returns
    -------
    sensors : dict of str to SensorCalibration
        Those that change.
    said : str
        How well they are known.

    Raises
    ------
    InertialEstimationError
        If they cannot be found; the message says why and what helps.

    """
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
    )
    doubts: tuple[str, ...] = ()
    if len(job.supports) == 1:
        estimator.set_calibration(found.calibration)
        used = np.flatnonzero(found.instants.used.any(axis=1))
        contacts = tuple(build_contacts(settings))
        speaking = find_doubts(job.samples.take(used), estimator, contacts)
        doubts = tuple(doubt.text for doubt in speaking)
    words = in_words(found, tuple(job.before), doubts)
    return tared(found, job.before, job.date, doubts), words
