# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Joint states: mapped by name, in parts, each part with its own stamps and derivatives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import NameNotFound
from inertial_estimation.signals.derivatives import Differentiator, joint_differentiator
from inertial_estimation.signals.stream import (
    ABSENT,
    ASSUMED,
    FRESH,
    INVALID,
    WARMING,
    Stream,
    all_finite,
)

States = NDArray[np.uint8]

POSITION, VELOCITY, ACCELERATION, EFFORT = range(4)
"""Rows of a block of joint values."""
MAX_LAYOUTS, MAX_IGNORED = 64, 256
"""Lists of names that are kept, and names of other joints, of which ever new ones may come."""
WAITING = 2
"""
Joint states that may wait for their sample.

Where stamps jitter, now and then two of them come to lie the delay back at once, and then none.
"""


class JointPart(Stream):
    """The joints that one publisher reports together; messages hold a block (4, n)."""

    def __init__(self, name: str, rows: Indices, settings: EstimatorSettings) -> None:
        self.joint_rows, self.first_row = rows, int(rows[0]) if len(rows) else 0
        self.rows = as_slice(rows)
        self.block: Array = np.empty((4, 0))
        self._derivatives: Array = np.empty((0, 0))
        self._filtered = True
        self._smooth = settings.filter.smooth_readings
        sources = settings.joint_states.velocity_source, settings.joint_states.acceleration_source
        self._sources = [source == 'filter' and len(rows) > 0 for source in sources]
        differentiator = joint_differentiator(settings, len(rows)) if any(self._sources) else None
        super().__init__(name, settings.joint_states.max_age, differentiator)

    def _filter(self, differentiator: Differentiator) -> None:
        differentiator.append(self.fed[0], self.fed[1][POSITION])

    def next_instant(self, after_ns: int, until_ns: int) -> int:
        """Return the stamp of the message whose values are the next sample; 0: none."""
        passed = takewhile(lambda message: message[0] <= until_ns, self._held)
        stamps = [message[0] for message in passed if message[0] > after_ns]
        if not stamps:
            return 0
        return int(stamps[0] if len(stamps) <= 1 + WAITING else stamps[-1])

    def use(self, stamp_ns: int) -> None:
        """Set `block` to the values at an instant, with filtered derivatives."""
        own_ns, block = self.message
        if self._held and stamp_ns != own_ns:
            block = self.interpolated(stamp_ns, block, self._held[0][1])
        elif self._smooth:
            block = block.copy()
        if self.differentiator is not None:
            instant = min(stamp_ns, self.fed[0])
            if instant != self._evaluated_ns:
                self._evaluated_ns = instant
                self._filtered = self.differentiator.ready
                self.unfiltered += not self._filtered
                self._derivatives = self.differentiator.evaluate_at(instant)
            if self._smooth:
                positions = self._derivatives[0]
                np.copyto(block[POSITION], positions, where=np.isfinite(positions))
            velocity, acceleration = self._sources
            if velocity:
                block[VELOCITY] = self._derivatives[1]
            if acceleration:
                block[ACCELERATION] = self._derivatives[2]
        self.used += self._filtered
        self.block = block


class JointLayout(NamedTuple):
    """Columns of a message with certain names, and the part that it belongs to."""

    names: tuple[str, ...]
    columns: Indices | slice
    part: JointPart | None
    """None: the robot has none of the joints."""

    def read(self, positions: Array, velocities: Array, efforts: Array) -> Array:
        """Return the values in the order of the part, shape (4, n)."""
        columns, size, taken = self.columns, len(self.names), positions[self.columns]
        block = np.empty((4, len(taken)))
        block[POSITION] = taken
        block[VELOCITY] = velocities[columns] if len(velocities) == size else np.nan
        block[ACCELERATION] = 0.0
        block[EFFORT] = efforts[columns] if len(efforts) == size else np.nan
        return block


class JointStreams:
    """All joints of a robot, in the parts that their publishers report together."""

    def __init__(self, joint_names: Sequence[str], settings: EstimatorSettings) -> None:
        self._settings = settings
        self._names = tuple(joint_names)
        self._derived = slice(
            VELOCITY if settings.joint_states.velocity_source == 'filter' else ACCELERATION,
            ACCELERATION + (settings.joint_states.acceleration_source == 'filter'),
        )
        self._block, self._states = _assumed(self._names, settings)
        self._row_of = {
            name: row
            for row, name in enumerate(joint_names)
            if name not in settings.joint_states.assumed
        }
        self._parts: dict[tuple[int, bytes], JointPart] = {}
        self._overlap = False
        self._layouts: dict[tuple[int, tuple[str, ...]], JointLayout] = {}
        self._newest: dict[int, JointLayout] = {}
        self.ignored: tuple[str, ...] = ()
        """Joints of messages that are not estimated, assumed, or named twice in one message."""

    def set_max_ages(self, settings: EstimatorSettings) -> None:
        """Take over the age from which positions are stale."""
        self._settings = settings
        for part in self.parts:
            part.set_max_age(settings.joint_states.max_age)

    @property
    def parts(self) -> list[JointPart]:
        """The parts that were received so far."""
        return list(self._parts.values())

    def layout(self, source_index: int, names: tuple[str, ...]) -> JointLayout:
        """Return the layout of a message; learnt once for each list of names."""
        newest = self._newest.get(source_index)
        if newest is not None and newest.names is names:
            return newest
        found = self._layouts.get((source_index, names))
        if found is None:
            counts = Counter(names)
            columns = {
                self._row_of[name]: k
                for k, name in enumerate(names)
                if name in self._row_of and counts[name] == 1
            }
            rows = np.array(sorted(columns), dtype=np.intp)
            taken = as_slice(np.array([columns[row] for row in rows.tolist()], dtype=np.intp))
            key, part = (source_index, rows.tobytes()), None
            # Where no joint is measured, the stamp alone makes a sample.
            if (len(rows) or not self._row_of) and (part := self._parts.get(key)) is None:
                self._overlap |= any(np.isin(one.joint_rows, rows).any() for one in self.parts)
                name = f'{source_index}: {" ".join(self._names[row] for row in rows)}'
                self._parts[key] = part = JointPart(name, rows, self._settings)
            if len(self._layouts) >= MAX_LAYOUTS:
                self._layouts.clear()
            self._layouts[source_index, names] = found = JointLayout(names, taken, part)
            others = [name for name in names if name not in self._row_of]
            others += [f'{one} (twice)' for one in self._row_of if counts[one] > 1]
            self.ignored = tuple(dict.fromkeys((*self.ignored, *others)))[:MAX_IGNORED]
        self._newest[source_index] = found._replace(names=names)
        return self._newest[source_index]

    def at(self, stamp_ns: int) -> tuple[Array, States]:
        """Return the values (4, n_joints) at the instant of the parts, and their states."""
        block, states, parts = self._block.copy(), self._states.copy(), self.parts
        for part in parts:
            part.advance(stamp_ns)
        if self._overlap:
            parts.sort(key=lambda part: part.message[0])
        for part in parts:
            rows: Indices | slice = part.rows
            if part.state == FRESH:
                part.use(stamp_ns)
                values = part.block
                if self._overlap:
                    known = np.isfinite(values[POSITION])
                    rows, values = part.joint_rows[known], values[:, known]
                block[:, rows] = values
            if part.state != ABSENT:
                states[rows] = part.state
        if not all_finite(block[:EFFORT]):
            # Where the newest position, or else a filtered derivative, is not a number.
            finite, fresh = np.isfinite(block), states == FRESH
            invalid = fresh & ~finite[POSITION]
            states[fresh & ~finite[self._derived].all(axis=0)] = WARMING
            states[invalid] = INVALID
            block[:, invalid] = np.nan
        return block, states

    def rates(self) -> Array:
        """Return the rate at which each joint is reported, shape (n_joints,) [Hz]."""
        rates = np.full(len(self._names), np.nan)
        for part in sorted(self.parts, key=lambda part: part.last_ns):
            rates[part.rows] = part.rate
        return rates


def as_slice(indices: Indices) -> Indices | slice:
    """Return consecutive indices as a slice, which numpy follows several times faster."""
    if len(indices) and np.array_equal(indices, np.arange(indices[0], indices[0] + len(indices))):
        return slice(int(indices[0]), int(indices[0]) + len(indices))
    return indices


def _assumed(joint_names: tuple[str, ...], settings: EstimatorSettings) -> tuple[Array, States]:
    """Return block (4, n_joints) and states before any message: assumed joints, else NaN."""
    joints, positions = settings.joint_states.assumed, settings.joint_states.assumed_positions
    block = np.full((4, len(joint_names)), np.nan)
    states = np.full(len(joint_names), ABSENT, dtype=np.uint8)
    for name, position in zip(joints, positions, strict=True):
        if name not in joint_names:
            raise NameNotFound('assumed joint', name, joint_names)
        row = joint_names.index(name)
        block[[POSITION, VELOCITY, ACCELERATION], row] = position, 0.0, 0.0
        states[row] = ASSUMED
    return block, states
