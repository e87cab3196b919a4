# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A tare: samples recorded for a while, thinned, and the offsets from them and the model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.calibration_file import SensorCalibration, stack_calibrations
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.offset_from_model import MIN_SAMPLES, offset_from_model
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.findings import Level, limit_of
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

DURATION, MAX_SAMPLES = 2.0, 1000
"""Of the collection [s]."""
MIN_USED = 0.5
"""Share of the samples: what disturbs most of them may affect the rest unnoticed."""


class TareRecorder:
    """Records samples for `duration` [s]; contacts on supports are expected."""

    def __init__(self, robot: Robot, supports: Sequence[str], duration: float) -> None:
        self._robot = robot
        self._carrying = {robot.frame(support)[0] for support in supports}
        self._duration_ns = round(1e9 * duration)
        self._first_ns = self._last_ns = self._next_ns = 0
        self._felt = False
        self.samples: list[Sample] = []
        self.felt: list[bool] = []
        """Contacts on other links since the sample before."""
        self.touched: set[str] = set()
        """Links with such contacts."""

    @property
    def done(self) -> float:
        """Share of the time that is over, from 0 to 1."""
        return min(1.0, (self._last_ns - self._first_ns) / self._duration_ns)

    def add(self, sample: Sample, touches: Iterable[Contact]) -> bool:
        """Take a sample; return whether the time is over."""
        stamp = sample.stamp_ns
        if stamp <= self._last_ns:
            raise CalibrationError('the stamps of joint states went back')
        self._first_ns, self._last_ns = self._first_ns or stamp, stamp
        links = {self._robot.frame(contact.frame)[0] for contact in touches}
        if others := links - self._carrying:
            self.touched |= {self._robot.link_names[link] for link in others}
            self._felt = True
        if stamp >= self._next_ns:
            self._next_ns = stamp + self._duration_ns // MAX_SAMPLES
            self.samples.append(sample)
            self.felt.append(self._felt)
            self._felt = False
        return stamp - self._first_ns >= self._duration_ns

    def recorded(self) -> tuple[SampleBatch, list[bool]]:
        """Return the samples, and when other contacts were felt."""
        return SampleBatch.stack(self.samples), self.felt


def tare(
    settings: EstimatorSettings,
    urdf: str,
    parameters: Array,
    before: Mapping[str, SensorCalibration],
    supports: Sequence[str],
    sensors: Sequence[str] | None,
    poses: Sequence[tuple[SampleBatch, list[bool]]],
    date: str,
) -> tuple[dict[str, SensorCalibration], str]:
    """
    Return new calibrations, and what was found as a text.

    parameters (n_links, 10): in use; before: calibrations in use, of all sensors in their order;
    sensors: whose offsets are wanted, None: all; poses: `TareRecorder.recorded` of each.
    """
    robot, names = build_robot(settings, urdf).with_parameters(parameters), tuple(before)
    samples = SampleBatch.stack([one[k] for one, _ in poses for k in range(len(one))])
    found = offset_from_model(
        build_estimator(settings, robot, stack_calibrations(before.values())), samples, supports,
        sensors=sensors, felt=np.concatenate([felt for _, felt in poses]),
        min_samples=max(MIN_SAMPLES, round(MIN_USED * len(samples))),
        noisy=settings.frozen_after > 0.0,
    )  # fmt: skip
    if errors := [str(one) for one in found.findings if one.level >= Level.ERROR]:
        raise CalibrationError('; '.join(errors))
    # Of supports that are named, level contacts are known not to carry.
    limit = limit_of('second_support') if settings.tare_supports else 0.0
    kept = (one for one in found.findings if one.values.get('part', np.inf) > limit)
    found = replace(found, findings=tuple(kept))
    lines = []
    for k in np.flatnonzero(found.found).tolist():
        sizes = [
            '{:.3g} N {:.2g} Nm'.format(*np.linalg.norm(values[k].reshape(2, 3), axis=1))
            for values in (found.offsets, found.spread, found.deviations)
        ]
        lines.append('{}: offset {}, spread {}, deviation {}'.format(names[k], *sizes))
    lines += [f'{name} not changed: {reason}' for name, reason in found.silent.items()]
    lines += [f'left out of {len(samples)} samples: {found.left_out}', *map(str, found.findings)]
    return found.calibrations(before, date), '; '.join(lines)
