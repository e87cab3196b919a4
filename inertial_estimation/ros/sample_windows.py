# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a running robot in windows for the identification, and when submodels were free."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch, SensorState

NANOSECONDS = 1_000_000_000
WINDOW_NS = NANOSECONDS
"""Length of a window [ns]."""
CONTACT_MARGIN = 0.2
"""Time before and after a reported contact that gives no equations [s]."""
LATE = (SensorState.STALE, SensorState.FROZEN)
"""States that are noticed some time after the last true reading, which was used until then."""


class SampleWindow(NamedTuple):
    """Samples, and the submodels that no unknown wrench acts on."""

    samples: SampleBatch
    free: np.ndarray
    """Shape (n, n_submodels)."""


class SampleWindows:
    """Collects samples at a lower rate [Hz]; margin [s] around contacts."""

    def __init__(self, robot: Robot, rate: float, margin: float, loaded: Iterable[str]) -> None:
        self._robot = robot
        self._period_ns = round(NANOSECONDS / rate)
        self._margin_ns = round(NANOSECONDS * margin)
        self._beside = [
            [k for k, one in enumerate(robot.submodels)
             if sensor in (one.root_sensor, *one.child_sensors)]
            for sensor in range(len(robot.ft_sensors))
        ]  # fmt: skip
        self._loaded = sorted({robot.submodel_of(frame) for frame in loaded})
        self._samples: deque[Sample] = deque()
        self._contacts: dict[int, deque[list[int]]] = {}
        self.next_ns = self._last_ns = 0

    def reset(self) -> None:
        """Forget everything."""
        self._contacts.clear()
        self.next_ns = self._last_ns = 0
        self.drop()

    def drop(self) -> None:
        """Forget the samples that are in no window yet; the last contacts still count."""
        self._samples.clear()

    def add(self, sample: Sample, contacts: Iterable[Contact]) -> SampleWindow | None:
        """Add a sample; one that is not later than the last one: time was set back."""
        stamp = sample.stamp_ns
        if stamp <= self._last_ns:
            self.reset()
        self._last_ns = stamp
        for contact in contacts:
            self._note(self._robot.submodel_of(contact.frame), stamp)
        # Readings of the time before may be old ones.
        states = np.zeros(0) if sample.ft_states is None else sample.ft_states
        for sensor in np.flatnonzero(np.isin(states, LATE)):
            for submodel in self._beside[sensor]:
                self._note(submodel, stamp)
        if stamp < self.next_ns:
            return None
        # A rate that does not divide that of the samples is kept on average.
        behind = stamp - self.next_ns
        self.next_ns = (stamp if behind > self._period_ns else self.next_ns) + self._period_ns
        self._samples.append(sample)
        end_ns = self._samples[0].stamp_ns + WINDOW_NS
        return self._window(end_ns) if stamp >= end_ns + self._margin_ns else None

    def _note(self, submodel: int, stamp_ns: int) -> None:
        """Note a contact; it continues the last one if no sample between them is free."""
        spans = self._contacts.setdefault(submodel, deque())
        if spans and stamp_ns - spans[-1][1] <= self._margin_ns:
            spans[-1][1] = stamp_ns
        else:
            spans.append([stamp_ns, stamp_ns])

    def _window(self, end_ns: int) -> SampleWindow:
        """Return the samples before a time."""
        taken = []
        while self._samples and self._samples[0].stamp_ns < end_ns:
            taken.append(self._samples.popleft())
        samples = SampleBatch.stack(taken)
        free = np.ones((len(taken), len(self._robot.submodels)), dtype=bool)
        free[:, self._loaded] = False
        stamps, margin = samples.stamp_ns, self._margin_ns
        for submodel, spans in self._contacts.items():
            for first, last in spans:
                spoiled = (stamps >= first - margin) & (stamps <= last + margin)
                free[spoiled, submodel] = False
            while spans and spans[0][1] < end_ns - margin:
                spans.popleft()
        return SampleWindow(samples, free)
