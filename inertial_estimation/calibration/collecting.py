# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of a robot that is to stand still for a while, and what was felt meanwhile."""

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

MOST = 1000
"""Samples that are kept: further ones tell little more of a constant."""
FEW = 256
"""Samples that there is room for at first."""
SECOND_NS = 1e9


class _Columns:
    """Samples as arrays that grow: what a batch needs is there once the last one has come."""

    def __init__(self) -> None:
        self._columns: dict[str, Any] = {}
        self._room = self.count = 0

    def append(self, sample: Sample) -> None:
        """Take a sample; a field that one of them lacks is dropped."""
        if not self.count:
            self._columns = dict.fromkeys(Sample._fields)
        if self.count == self._room:
            self._grow(sample)
        for name, value in zip(Sample._fields, sample):
            column = self._columns[name]
            if column is None:
                continue
            if value is None:
                self._columns[name] = None
            else:
                column[self.count] = value
        self.count += 1

    def batch(self) -> SampleBatch:
        """Return them, as views."""
        found: dict[str, Any] = {}
        for name, column in self._columns.items():
            found[name] = None if column is None else column[: self.count]
        return SampleBatch(**found)

    def _grow(self, sample: Sample) -> None:
        """Make room for twice as many."""
        self._room = max(FEW, 2 * self._room)
        for name, value in zip(Sample._fields, sample):
            old = self._columns[name]
            if value is None or (self.count and old is None):
                self._columns[name] = None
                continue
            like = np.asarray(value)
            column: NDArray[Any] = np.empty((self._room, *like.shape), dtype=like.dtype)
            if old is not None:
                column[: self.count] = old[: self.count]
            self._columns[name] = column


class Collecting:
    """
    Takes every sample until the time is over.

    duration [s].
    """

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
        self._period_ns = self._duration_ns // MOST
        self._refuses = refuse_touched
        self._first_ns = self._last_ns = 0
        self._felt = False
        self._kept, self._kept_ns = _Columns(), 0
        self.felt: list[bool] = []
        self.touched: set[str] = set()

    @property
    def count(self) -> int:
        """Number of samples that are kept, evenly spread."""
        return self._kept.count

    @property
    def samples(self) -> SampleBatch:
        """These samples."""
        return self._kept.batch()

    @property
    def done(self) -> float:
        """Share of the time that is over, from 0 to 1."""
        return min(1.0, (self._last_ns - self._first_ns) / self._duration_ns)

    def add(self, sample: Sample, touches: Iterable[Contact]) -> bool:
        """Take a sample."""
        stamp = sample.stamp_ns
        if stamp <= self._last_ns:
            raise CalibrationError('the stamps of joint states went back meanwhile: begin anew')
        self._first_ns, self._last_ns = self._first_ns or stamp, stamp
        links = [self._robot.frame(contact.frame)[0] for contact in touches]
        if strange := [link for link in links if link not in self._carrying]:
            self.touched |= {self._robot.link_names[link] for link in strange}
            self._felt = True
            if self._refuses:
                raise CalibrationError(
                    f'{in_quotes(self.touched)} is touched, and the supports are to be all that '
                    'touches the robot: leave it alone, or name it as a support'
                )
        if not self._kept_ns or stamp - self._kept_ns >= self._period_ns:
            self._kept.append(sample)
            self._kept_ns = stamp
            self.felt.append(self._felt)
            self._felt = False
        return stamp - self._first_ns >= self._duration_ns


def stack_collected(
    collected: Iterable[Collecting],
) -> tuple[SampleBatch, NDArray[np.bool_]]:
    """
    Return the samples of one pose or of several, one after the other.

    Returns felt (n,).
    """
    every = list(collected)
    batches = [one.samples for one in every]
    columns: dict[str, Any] = {}
    for field in fields(SampleBatch):
        parts = [getattr(batch, field.name) for batch in batches]
        columns[field.name] = None if any(p is None for p in parts) else np.concatenate(parts)
    felt = np.array([felt for one in every for felt in one.felt], dtype=bool)
    return SampleBatch(**columns), felt


def in_quotes(names: Iterable[str]) -> str:
    """Return names for a sentence."""
    return ', '.join(f"'{name}'" for name in sorted(names))
