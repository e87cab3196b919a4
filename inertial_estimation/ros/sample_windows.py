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

WINDOW_NS = 1_000_000_000
"""Length of a window [ns]."""
SAMPLE_RATE = 100.0
"""Rate of the samples that give equations [Hz]."""
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
        self._period_ns, self._margin_ns = round(1e9 / rate), round(1e9 * margin)
        self._loaded = sorted({robot.submodel_of(frame) for frame in loaded})
        self._samples: deque[Sample] = deque()
        self._touches: tuple[deque[int], ...] = tuple(deque() for _ in robot.submodels)
        """Stamps of the samples at which each submodel is touched."""
        self.next_ns = self._last_ns = 0

    def reset(self) -> None:
        """Forget everything."""
        for stamps in self._touches:
            stamps.clear()
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
        touched = {self._robot.submodel_of(contact.frame) for contact in contacts}
        # Readings of the time before may be old ones.
        states = [] if sample.ft_states is None else sample.ft_states.tolist()
        late = {k for k, state in enumerate(states) if state in LATE}
        touched |= {k for k, one in enumerate(self._robot.submodels) if late & {*one.sensors}}
        first_ns = self._samples[0].stamp_ns if self._samples else stamp
        for submodel in touched:
            stamps = self._touches[submodel]
            while stamps and stamps[0] < first_ns - self._margin_ns:
                stamps.popleft()
            stamps.append(stamp)
        if stamp < self.next_ns:
            return None
        # A rate that does not divide that of the samples is kept on average.
        behind = stamp - self.next_ns
        self.next_ns = (stamp if behind > self._period_ns else self.next_ns) + self._period_ns
        self._samples.append(sample)
        end_ns = self._samples[0].stamp_ns + WINDOW_NS
        return self._window(end_ns) if stamp >= end_ns + self._margin_ns else None

    def _window(self, end_ns: int) -> SampleWindow:
        """Return the samples before a time."""
        taken = []
        while self._samples and self._samples[0].stamp_ns < end_ns:
            taken.append(self._samples.popleft())
        samples = SampleBatch.stack(taken)
        free = np.ones((len(taken), len(self._robot.submodels)), dtype=bool)
        free[:, self._loaded] = False
        for submodel, touches in enumerate(self._touches):
            first = np.searchsorted(touches, samples.stamp_ns - self._margin_ns)
            last = np.searchsorted(touches, samples.stamp_ns + self._margin_ns, side='right')
            free[last > first, submodel] = False
        return SampleWindow(samples, free)
