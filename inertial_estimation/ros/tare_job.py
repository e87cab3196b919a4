# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets of a tare, computed in the process of `background_process`."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inertial_estimation.calibration.calibration_file import SensorCalibration, stack_calibrations
from inertial_estimation.calibration.configured_estimator import build_contacts, noisy_sensors
from inertial_estimation.calibration.offset_from_model import (
    MIN_SAMPLES,
    ModelOffsets,
    offset_from_model,
)
from inertial_estimation.calibration.second_supports import second_supports
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import limit_of
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch

MIN_USED = 0.5
"""Share of the samples: what disturbs most of them may affect the rest unnoticed."""
MAX_DIFFERENCE, MIN_DIFFERENCE = 0.4, 3.0
"""Root mean square between poses over the load of a sensor, and at least [N]."""


@dataclass(frozen=True, eq=False)
class TareJob:
    """Input of a tare."""

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
    """Contacts on other links than supports, shape (n,)."""
    date: str


def find_offsets(job: TareJob) -> tuple[dict[str, SensorCalibration], str]:
    """Return new calibrations, and the answer of the service."""
    settings = job.settings
    robot = build_robot(settings, job.urdf).with_parameters(job.parameters)
    estimator = WrenchEstimator(
        robot,
        [Contact(job.supports[0])],
        calibration=stack_calibrations(job.before.values()),
        length_scale=settings.length_scale,
        acceleration_arrays=settings.angular_acceleration_source == 'array',
    )
    found = offset_from_model(
        estimator,
        job.samples,
        job.supports,
        sensors=job.sensors,
        felt=job.felt,
        min_samples=max(MIN_SAMPLES, round(MIN_USED * len(job.samples))),
        noisy=noisy_sensors(settings, robot),
    )
    names = tuple(job.before)
    _require_agreement(found, names)
    # Of supports that are named, level contacts are known not to carry.
    limit = limit_of('second_support') if settings.tare.supports else 0.0
    findings = [
        one
        for one in second_supports(found, job.samples, estimator, build_contacts(settings))
        if one.values['part'] > limit
    ]
    lines = []
    for k in np.flatnonzero(found.found):
        sizes = (
            f'{force:.3g} N {moment:.2g} Nm'
            for force, moment in (
                np.linalg.norm(values[k].reshape(2, 3), axis=1)
                for values in (found.offsets, found.spread, found.deviations)
            )
        )
        lines.append('{}: offset {}, spread {}, deviation {}'.format(names[k], *sizes))
    lines += [f'{name} not changed: {reason}' for name, reason in found.silent.items()]
    lines.append(f'left out of {len(job.samples)} samples: {found.left_out}')
    lines += [str(one) for one in (*found.findings(names), *findings)]
    return found.calibrations(job.before, job.date, findings), '; '.join(lines)


def _require_agreement(found: ModelOffsets, names: tuple[str, ...]) -> None:
    """Refuse readings that differ between poses by much of the load."""
    for name, poses in found.poses.items():
        k, n = names.index(name), len(poses.residuals)
        load = found.loads.readings[found.used[:, k], k, :3]
        size = float(np.sqrt((load**2).sum(axis=1).mean()))
        # Of two poses, half the difference is what each is off their mean.
        differ = float(poses.differing[0]) * np.sqrt(2.0 * n / (n - 1)) if n > 1 else 0.0
        limit = max(MAX_DIFFERENCE * size, MIN_DIFFERENCE)
        if differ > limit:
            raise CalibrationError(
                f"{n} poses contradict each other: reading minus prediction of '{name}' differs "
                f'by {differ:.3g} N, limit {limit:.3g} N'
            )
