# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets of a tare, computed in the process of `background_process`."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from inertial_estimation.calibration.calibration_file import SensorCalibration, stack_calibrations
from inertial_estimation.calibration.configured_estimator import build_estimator, noisy_sensors
from inertial_estimation.calibration.offset_from_model import MIN_SAMPLES, offset_from_model
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError
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
    settings, names = job.settings, tuple(job.before)
    robot = build_robot(settings, job.urdf).with_parameters(job.parameters)
    calibration = stack_calibrations(job.before.values())
    found = offset_from_model(
        build_estimator(settings, robot, calibration),
        job.samples,
        job.supports,
        sensors=job.sensors,
        felt=job.felt,
        min_samples=max(MIN_SAMPLES, round(MIN_USED * len(job.samples))),
        noisy=noisy_sensors(settings, robot),
    )
    for name, poses in found.poses.items():
        n, limit = len(poses.residuals), max(MAX_DIFFERENCE * poses.load, MIN_DIFFERENCE)
        # Of two poses, half the difference is what each is off their mean.
        differ = float(poses.differing[0]) * np.sqrt(2.0 * n / (n - 1)) if n > 1 else 0.0
        if differ > limit:
            raise CalibrationError(
                f"{n} poses contradict each other: reading minus prediction of '{name}' differs "
                f'by {differ:.3g} N, limit {limit:.3g} N'
            )
    # Of supports that are named, level contacts are known not to carry.
    limit = limit_of('second_support') if settings.tare.supports else 0.0
    kept = (one for one in found.findings if one.values.get('part', limit + 1.0) > limit)
    found = replace(found, findings=tuple(kept))
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
    lines += map(str, found.findings)
    return found.calibrations(job.before, job.date), '; '.join(lines)
