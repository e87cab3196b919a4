# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a running robot as stretches for the identification, with what was touched when."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.logs.freedom import submodel_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.lost_sensors import held_too_long
from inertial_estimation.sample import Sample, SampleBatch

NANOSECONDS = 1_000_000_000
STRETCH_NS = NANOSECONDS
"""Length of a stretch."""


class FreeStretch(NamedTuple):
    """Samples, and which submodels nothing unknown acts on."""

    samples: SampleBatch
    free: np.ndarray
    """Shape (n, n_submodels)."""


class Stretches:
    """
    Collects samples at a lower rate.

    rate [Hz]; margin [s].
    """

    def __init__(self, robot: Robot, rate: float, margin: float, held: Iterable[str]) -> None:
        self._robot = robot
        self._period_ns = round(NANOSECONDS / rate)
        self._margin_ns = round(NANOSECONDS * margin)
        self._beside = [
            [k for k, one in enumerate(robot.submodels)
             if sensor in (one.root_sensor, *one.child_sensors)]
            for sensor in range(len(robot.ft_sensors))
        ]  # fmt: skip
        self._held = sorted({submodel_of(robot, frame) for frame in held})
        self._samples: deque[Sample] = deque()
        self._touches: dict[int, deque[list[int]]] = {}
        self.next_ns = self._last_ns = 0

    def reset(self) -> None:
        """Forget everything."""
        self._touches.clear()
        self.next_ns = self._last_ns = 0
        self.drop()

    def drop(self) -> None:
        """Forget the samples that are in no stretch yet; what was touched lately still counts."""
        self._samples.clear()

    def add(self, sample: Sample, touches: Iterable[Contact]) -> FreeStretch | None:
        """Take a sample; one that is not later than the last one says that time was set back."""
        stamp = sample.stamp_ns
        if stamp <= self._last_ns:
            self.reset()
        self._last_ns = stamp
        for contact in touches:
            self._touch(submodel_of(self._robot, contact.frame), stamp)
        # Until it was noticed that they are silent or frozen, old readings passed for new ones.
        for sensor in held_too_long(sample):
            for submodel in self._beside[sensor]:
                self._touch(submodel, stamp)
        if stamp < self.next_ns:
            return None
        # A rate that does not divide that of the samples is kept on average.
        behind = stamp - self.next_ns
        self.next_ns = (stamp if behind > self._period_ns else self.next_ns) + self._period_ns
        self._samples.append(sample)
        end_ns = self._samples[0].stamp_ns + STRETCH_NS
        return self._stretch(end_ns) if stamp >= end_ns + self._margin_ns else None

    def _touch(self, submodel: int, stamp_ns: int) -> None:
        """Note a touch: the last one goes on, unless a sample between the two would be free."""
        spans = self._touches.setdefault(submodel, deque())
        if spans and stamp_ns - spans[-1][1] <= self._margin_ns:
            spans[-1][1] = stamp_ns
        else:
            spans.append([stamp_ns, stamp_ns])

    def _stretch(self, end_ns: int) -> FreeStretch:
        """Return the samples before an instant."""
        taken = []
        while self._samples and self._samples[0].stamp_ns < end_ns:
            taken.append(self._samples.popleft())
        samples = SampleBatch.stack(taken)
        free = np.ones((len(taken), len(self._robot.submodels)), dtype=bool)
        free[:, self._held] = False
        stamps, margin = samples.stamp_ns, self._margin_ns
        for submodel, spans in self._touches.items():
            for first, last in spans:
                spoiled = (stamps >= first - margin) & (stamps <= last + margin)
                free[spoiled, submodel] = False
            while spans and spans[0][1] < end_ns - margin:
                spans.popleft()
        return FreeStretch(samples, free)
