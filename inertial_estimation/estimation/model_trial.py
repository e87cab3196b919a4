# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Comparison of sets of inertial parameters by what the newest samples contradict.

The external wrench r of each submodel [T 4.18] depends on parameters and FT offsets; the contacts
of the submodel do not matter. Right ones leave noise where nothing touches. The loss of a set is

    sum over submodels of the mean over samples of  log(1 + |r|^2 / s^2)

with moments over 0.1 m: the heavy tails of Cauchy's distribution. A load that every set leaves, as
under a foot or of a push, changes the differences of losses but little. The submodel of a fixed
link carries the robot and does not count.

The balance of momentum cannot serve: its wrenches add up to the net wrenches of all links, so that
half of all masses leave half of the error. Nor can the total weight beyond this: it is the sum of
r over the submodels that nothing touches.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence

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
"""Of losses: good updates lose up to 0.6 more than the truth, those of a wrong start 7 to 30."""


class ModelTrial:
    """Computes losses on the newest samples, one estimate at a time between the cycles."""

    def __init__(self, estimator: WrenchEstimator) -> None:
        robot = estimator.robot
        self._robot = robot
        self._estimator = WrenchEstimator(robot, acceleration_arrays=estimator.motion.arrays)
        self._noise = NOISE_PART * robot.mass * float(np.linalg.norm(robot.gravity))
        self._noises = self._noise * np.repeat([1.0, LENGTH], 3)
        held = {robot.frame(robot.fixed_frame)[0]} if robot.fixed_frame else set()
        self._counts = np.array([held.isdisjoint(one.links) for one in robot.submodels])
        self._samples: deque[Sample] = deque(maxlen=SAMPLES)
        self._sets: list[tuple[Array, FtCalibration]] = []
        self._rows: list[Array] = []
        self._begun: tuple[Sample, ...] = ()

    @property
    def is_informed(self) -> bool:
        """True if there are samples enough."""
        return len(self._samples) >= LEAST_SAMPLES

    @property
    def is_running(self) -> bool:
        """True if losses are being computed."""
        return bool(self._sets)

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

    def begin(self, sets: Iterable[tuple[Array, FtCalibration]]) -> None:
        """Begin to compare parameters (n_links, 10) with the calibration for each."""
        self._sets, self._rows, self._begun = list(sets), [], tuple(self._samples)

    def step(self) -> Array | None:
        """Go on by one estimate; return the losses (n_sets, n_submodels) after the last one."""
        n = len(self._begun)
        number, k = divmod(len(self._rows), n)
        if k == 0:
            parameters, calibration = self._sets[number]
            self._estimator.set_parameters(parameters)
            self._estimator.set_calibration(calibration)
        r = self._estimator.update(self._begun[k]).residuals
        # NaN are submodels that merged, or whose motion is not known: for one set as for another.
        self._rows.append(np.log1p(np.nan_to_num((r / self._noises) ** 2).sum(axis=1)))
        if len(self._rows) < n * len(self._sets):
            return None
        losses = np.reshape(self._rows, (len(self._sets), n, -1)).mean(axis=1) * self._counts
        self._sets = []
        return losses

    def describe(self, losses: Sequence[Array]) -> str:
        """Return the submodel that speaks most against the first of two sets, with its figures."""
        worst = int(np.argmax(losses[0] - losses[1]))
        sizes = self._noise * np.sqrt(np.expm1([one[worst] for one in losses]))
        name = self._robot.submodels[worst].name
        return f'{sizes[0]:.3g} N unexplained at {name}, {sizes[1]:.3g} N without it'
