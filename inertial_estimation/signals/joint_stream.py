# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Joint states: mapped by name, in parts, each part with its own stamps and derivatives."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.derivatives import Differentiator
from inertial_estimation.signals.stream import MAX_QUEUE, Stream, StreamStatistics

Indices = NDArray[np.intp]
States = NDArray[np.uint8]

POSITION, VELOCITY, ACCELERATION, EFFORT = range(4)
"""Rows of a block of joint values."""


class JointPart(Stream):
    """The joints that one publisher reports together; rows (n,)."""

    __slots__ = (
        '_differentiator',
        '_evaluated_ns',
        '_filtered',
        '_queue',
        'block',
        'joint_rows',
        'rows',
        'stamp_ns',
    )

    def __init__(self, name: str, rows: Indices, differentiator: Differentiator | None) -> None:
        super().__init__(name)
        self.joint_rows = tuple(rows.tolist())
        self.rows = as_slice(rows)
        self._differentiator = differentiator
        self._filtered = True
        self._queue: deque[tuple[int, Array]] = deque(maxlen=MAX_QUEUE)
        self.restart()

    def restart(self) -> None:
        super().restart()
        self._queue.clear()
        self.stamp_ns = self._evaluated_ns = 0
        self.block: Array = np.empty((4, 0))
        if self._differentiator is not None:
            self._differentiator.reset()

    def push(self, stamp_ns: int, block: Array) -> None:
        """Take the joint values of a message that is later than the last one; block (4, n)."""
        self.note(stamp_ns)
        if len(self._queue) == MAX_QUEUE:
            self.dropped += 1
        self._queue.append((stamp_ns, block))

    def advance(self, stamp_ns: int) -> None:
        """Move to the newest message that is not later than a stamp [ns]."""
        queue = self._queue
        differentiator = self._differentiator
        while queue and queue[0][0] <= stamp_ns:
            self.stamp_ns, self.block = queue.popleft()
            if differentiator is not None:
                differentiator.append(self.stamp_ns, self.block[POSITION])

    def use(self, filter_velocity: bool, filter_acceleration: bool) -> None:
        """Write derivatives at the current message into `block`, which is to enter a sample."""
        differentiator = self._differentiator
        if differentiator is not None and self._evaluated_ns != self.stamp_ns:
            self._evaluated_ns = self.stamp_ns
            self._filtered = differentiator.ready
            self.unfiltered += not self._filtered
            derivatives = differentiator.evaluate()
            if filter_velocity:
                self.block[VELOCITY] = derivatives[0]
            if filter_acceleration:
                self.block[ACCELERATION] = derivatives[1]
        self.used += self._filtered

    def statistics(self) -> StreamStatistics:
        lack = self._differentiator.lack if self._differentiator else ''
        return replace(super().statistics(), filter_lack=lack)


class JointLayout:
    """Where the values of a message with certain names go."""

    def __init__(
        self,
        names: tuple[str, ...],
        row_of: Mapping[str, int],
        find_part: Callable[[Indices], JointPart],
    ) -> None:
        self.size = len(names)
        found = {row_of[name]: k for k, name in enumerate(names) if name in row_of}
        self.rows = np.array(sorted(found), dtype=np.intp)
        self._take = as_slice(np.array([found[row] for row in sorted(found)], dtype=np.intp))
        self.ignored = tuple(name for name in names if name not in row_of)
        self._find_part = find_part
        self._part: JointPart | None = None
        self._parts: dict[bytes, tuple[JointPart, Indices | slice]] = {}
        self._known: list[frozenset[int]] = []

    def read(self, positions: Array, velocities: Array, efforts: Array) -> Array:
        """
        Return the values in the order of `rows`.

        positions, velocities, efforts (n_names,); returns (4, n).
        """
        block = np.empty((4, len(self.rows)))
        size, take = self.size, self._take
        block[POSITION] = positions[take]
        block[VELOCITY] = velocities[take] if len(velocities) == size else np.nan
        block[ACCELERATION] = 0.0
        block[EFFORT] = efforts[take] if len(efforts) == size else np.nan
        return block

    def split(self, block: Array) -> tuple[JointPart, Array] | None:
        """Return the part that a message belongs to, and its values; block (4, n)."""
        positions = block[POSITION]
        total = positions.dot(positions)
        if total - total == 0.0:
            if self._part is None:
                self._part = self._learn(self.rows)
            return (self._part, block) if len(self.rows) else None
        present = np.isfinite(positions)
        key = present.tobytes()
        if key not in self._parts:
            rows = self.rows[present]
            if not len(rows):
                return None
            wider = max((k for k in self._known if k.issuperset(rows)), key=len, default=None)
            chosen = rows if wider is None else np.array(sorted(wider), dtype=np.intp)
            part = self._learn(chosen)
            self._parts[key] = (part, as_slice(np.searchsorted(self.rows, chosen)))
        part, columns = self._parts[key]
        return part, np.ascontiguousarray(block[:, columns])

    def _learn(self, rows: Indices) -> JointPart:
        """Return the part of these rows; wider parts change the part of narrow messages."""
        self._parts.clear()
        self._known.append(frozenset(rows.tolist()))
        return self._find_part(rows)


def as_slice(indices: Indices) -> Indices | slice:
    """Return consecutive indices as a slice, which numpy follows several times faster."""
    if len(indices) and np.array_equal(indices, np.arange(indices[0], indices[0] + len(indices))):
        return slice(int(indices[0]), int(indices[0]) + len(indices))
    return indices


def joint_template(
    joint_names: tuple[str, ...], settings: EstimatorSettings
) -> tuple[Array, States]:
    """
    Return what is known of the joints before any message.

    Returns block (4, n_joints); states (n_joints,).
    """
    joints, positions = settings.assumed_joints, settings.assumed_positions
    if len(joints) != len(positions):
        raise ConfigError(
            f'assumed_joints names {len(joints)} joints, '
            f'assumed_positions has {len(positions)} values; give one for each'
        )
    block = np.full((4, len(joint_names)), np.nan)
    states = np.full(len(joint_names), SensorState.ABSENT, dtype=np.uint8)
    for name, position in zip(joints, positions):
        if name not in joint_names:
            raise NameNotFound('assumed joint', name, joint_names)
        row = joint_names.index(name)
        block[[POSITION, VELOCITY, ACCELERATION], row] = position, 0.0, 0.0
        states[row] = SensorState.ASSUMED
    if joint_names and not (states == SensorState.ABSENT).any():
        raise ConfigError('assumed_joints names every joint; none is left to trigger')
    return block, states
