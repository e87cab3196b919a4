# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a tare: recorded for a while, thinned, with contacts meanwhile."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CalibrationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

MAX_SAMPLES = 1000
SECOND_NS = 1e9


class TareRecorder:
    """Records samples for `duration` [s]; contacts on supports are expected."""

    def __init__(
        self,
        robot: Robot,
        supports: Sequence[str],
        duration: float,
        *,
        refuse_touched: bool = False,
    ) -> None:
        self._robot = robot
        self._carrying = {robot.frame(support)[0] for support in supports}
        self._duration_ns = round(SECOND_NS * duration)
        self._period_ns = self._duration_ns // MAX_SAMPLES
        self._refuses = refuse_touched
        self._first_ns = self._last_ns = 0
        self._felt = False
        self._columns: dict[str, Any] = {}
        self._kept_ns = self.count = 0
        self.felt: list[bool] = []
        self.touched: set[str] = set()

    @property
    def samples(self) -> SampleBatch:
        """Recorded samples, as views; a field that one of them lacks is dropped."""
        found: dict[str, Any] = {
            name: None if column is None else column[: self.count]
            for name, column in self._columns.items()
        }
        return SampleBatch(**found)

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
        links = [self._robot.frame(contact.frame)[0] for contact in touches]
        if others := [link for link in links if link not in self._carrying]:
            self.touched |= {self._robot.link_names[link] for link in others}
            self._felt = True
            if self._refuses:
                raise CalibrationError(f'contact on {", ".join(sorted(self.touched))}')
        if not self._kept_ns or stamp - self._kept_ns >= self._period_ns:
            self._keep(sample)
            self._kept_ns = stamp
            self.felt.append(self._felt)
            self._felt = False
        return stamp - self._first_ns >= self._duration_ns

    def _keep(self, sample: Sample) -> None:
        """Copy a sample into preallocated columns."""
        for name, value in zip(Sample._fields, sample, strict=True):
            if value is None or self._columns.get(name, ()) is None:
                self._columns[name] = None
                continue
            if not self.count:
                like = np.asarray(value)
                # One more than the period allows, and one for its rounding.
                self._columns[name] = np.empty((MAX_SAMPLES + 2, *like.shape), like.dtype)
            self._columns[name][self.count] = value
        self.count += 1


def stack_recorded(
    recorders: Iterable[TareRecorder],
) -> tuple[SampleBatch, NDArray[np.bool_]]:
    """Return the samples of several poses, and when other contacts were felt, (n,)."""
    every = list(recorders)
    batches = [one.samples for one in every]
    columns: dict[str, Any] = {}
    for field in fields(SampleBatch):
        parts = [getattr(batch, field.name) for batch in batches]
        columns[field.name] = None if any(p is None for p in parts) else np.concatenate(parts)
    felt = np.array([felt for one in every for felt in one.felt], dtype=bool)
    return SampleBatch(**columns), felt
