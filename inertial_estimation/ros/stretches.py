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

    Parameters
    ----------
    robot : Robot
        Whose submodels are touched.
    rate : float
        Samples that are kept [Hz].
    margin : float
        A touch spoils so much before and after [s].
    held : iterable of str
        Frames where something acts all the time.

    """

    def __init__(self, robot: Robot, rate: float, margin: float, held: Iterable[str]) -> None:
        self._robot = robot
        self._period_ns = round(NANOSECONDS / rate)
        self._margin_ns = round(NANOSECONDS * margin)
        self._held = sorted({submodel_of(robot, frame) for frame in held})
        self._samples: deque[Sample] = deque()
        self._touches: deque[tuple[int, int]] = deque()
        self._next_ns = 0

    def reset(self) -> None:
        """Forget everything."""
        self._samples.clear()
        self._touches.clear()
        self._next_ns = 0

    def add(self, sample: Sample, touches: Iterable[Contact]) -> FreeStretch | None:
        """
        Take a sample.

        Parameters
        ----------
        sample : Sample
            Later than the last one.
        touches : iterable of Contact
            What is felt at that instant.

        Returns
        -------
        FreeStretch or None
            A stretch that is complete, with the time in which a touch would still spoil it.

        """
        stamp = sample.stamp_ns
        for contact in touches:
            self._touches.append((stamp, submodel_of(self._robot, contact.frame)))
        if stamp < self._next_ns:
            return None
        # A rate that does not divide that of the samples is kept on average.
        behind = stamp - self._next_ns
        self._next_ns = (stamp if behind > self._period_ns else self._next_ns) + self._period_ns
        self._samples.append(sample)
        if stamp - self._samples[0].stamp_ns < STRETCH_NS + self._margin_ns:
            return None
        return self._stretch(self._samples[0].stamp_ns + STRETCH_NS)

    def _stretch(self, end_ns: int) -> FreeStretch:
        """Return the samples before an instant."""
        taken = []
        while self._samples and self._samples[0].stamp_ns < end_ns:
            taken.append(self._samples.popleft())
        samples = SampleBatch.stack(taken)
        free = np.ones((len(taken), len(self._robot.submodels)), dtype=bool)
        free[:, self._held] = False
        for stamp, submodel in self._touches:
            free[np.abs(samples.stamp_ns - stamp) <= self._margin_ns, submodel] = False
        while self._touches and self._touches[0][0] < end_ns - self._margin_ns:
            self._touches.popleft()
        return FreeStretch(samples, free)
