# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Comparison of sets of inertial parameters by what the newest samples contradict.

The loss of parameters and FT offsets is the sum over submodels, without that of a fixed link, of
the mean of log(1 + |r|^2 / s^2) over the samples. r is the external wrench of the submodel
[T 4.18], moments over 0.1 m: right ones leave noise where nothing touches. By the heavy tails
(Cauchy's) what every set leaves, under a foot or of a push, hardly changes differences of losses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import limit_of
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.sample import Sample

SAMPLES, LEAST_SAMPLES = 16, 4
PERIOD_NS = 250_000_000
"""Between two samples: together they show four seconds of motion, as payloads take to be found."""
NOISE_PART = 0.003
"""Of the weight of the robot, s: 1 N for a humanoid of 33 kg, noise and errors of the motion."""
LENGTH = 0.1
"""Moment noise over force noise of FT sensors [m]."""
MARGIN = limit_of('update_rejected')
"""Of losses: good updates lose up to 0.8 more than the URDF, the first of a stream rarely up to 2,
those after a wrong start of the identifier 4 to 30."""


class ModelTrial:
    """Compares sets on the newest samples."""

    def __init__(self, estimator: WrenchEstimator) -> None:
        self._robot = robot = estimator.robot
        self._estimator = WrenchEstimator(robot, acceleration_arrays=estimator.motion.arrays)
        self._noise = NOISE_PART * robot.mass * float(np.linalg.norm(robot.gravity))
        held = {robot.frame(robot.fixed_frame)[0]} if robot.fixed_frame else set()
        self._counts = np.array([held.isdisjoint(one.links) for one in robot.submodels])
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)

    @property
    def is_informed(self) -> bool:
        """True if there are samples enough."""
        return len(self._samples) >= LEAST_SAMPLES

    def add(self, sample: Sample) -> None:
        """Keep a sample if it is due."""
        if self._samples:
            step = sample.stamp_ns - self._samples[-1].stamp_ns
            if 0 <= step < PERIOD_NS:
                return
            # Time was set back, or the last ones are long ago.
            if not 0 < step <= SAMPLES * PERIOD_NS:
                self._samples.clear()
        self._samples.append(sample)

    def losses(self, sets: Sequence[tuple[Array, FtCalibration]]) -> Iterator[Array | None]:
        """Yield None after each estimate but the last, then the losses (n_sets, n_submodels)."""
        samples, rows = tuple(self._samples), []
        noises = self._noise * np.repeat([1.0, LENGTH], 3)
        for parameters, calibration in sets:
            self._estimator.set_parameters(parameters)
            self._estimator.set_calibration(calibration)
            for sample in samples:
                r = self._estimator.update(sample).residuals
                # NaN are submodels that merged or whose motion is not known, with every set.
                rows.append(np.log1p(np.nan_to_num((r / noises) ** 2).sum(axis=1)))
                if len(rows) < len(sets) * len(samples):
                    yield None
        yield np.reshape(rows, (len(sets), len(samples), -1)).mean(axis=1) * self._counts

    def describe(self, losses: Array) -> str:
        """Return the submodel that speaks most against the first of two sets, with its figures."""
        worst = int(np.argmax(losses[0] - losses[1]))
        with_it, without = self._noise * np.sqrt(np.expm1(losses[:, worst]))
        name = self._robot.submodels[worst].name
        return f'{with_it:.3g} N unexplained at {name}, {without:.3g} N without it'
