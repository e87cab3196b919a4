# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All joints: those that each publisher reports together, and their values at an instant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.delays import DelayedJointPart, delays
from inertial_estimation.signals.derivatives import joint_differentiator
from inertial_estimation.signals.joint_stream import (
    ACCELERATION,
    EFFORT,
    POSITION,
    VELOCITY,
    Indices,
    JointLayout,
    JointPart,
    States,
    joint_template,
)
from inertial_estimation.signals.sensor_stream import FRESH, INVALID, all_finite

STALE = int(SensorState.STALE)
WARMING = int(SensorState.WARMING)


class JointParts:
    """The joints of a robot as their publishers report them."""

    def __init__(self, joint_names: Sequence[str], settings: EstimatorSettings) -> None:
        self._settings = settings
        self._names = tuple(joint_names)
        self._max_age_ns = round(1e9 * settings.joint_max_age)
        self._filter_velocity = settings.velocity_source == 'filter'
        self._filter_acceleration = settings.acceleration_source == 'filter'
        self._derived = slice(
            VELOCITY if self._filter_velocity else ACCELERATION,
            ACCELERATION + 1 if self._filter_acceleration else ACCELERATION,
        )
        self._block, self._states = joint_template(self._names, settings)
        self._row_of = {
            name: row
            for row, name in enumerate(joint_names)
            if name not in settings.assumed_joints
        }
        self._parts: dict[tuple[int, bytes], JointPart] = {}
        self._overlap = False
        self._layouts: dict[tuple[int, tuple[str, ...]], JointLayout] = {}
        self._newest_layouts: dict[int, tuple[tuple[str, ...], JointLayout]] = {}
        self.ignored: dict[str, int] = {}

    @property
    def streams(self) -> Sequence[JointPart]:
        """The parts that were received so far."""
        return list(self._parts.values())

    def layout(self, source_index: int, names: tuple[str, ...]) -> JointLayout:
        """Return how to read a message; learnt once for each list of names."""
        newest = self._newest_layouts.get(source_index)
        if newest is not None and newest[0] is names:
            return newest[1]
        names = tuple(names)
        layout = self._layouts.get((source_index, names))
        if layout is None:
            layout = JointLayout(names, self._row_of, lambda rows: self._part(source_index, rows))
            self._layouts[source_index, names] = layout
            for name in layout.ignored:
                self.ignored[name] = self.ignored.get(name, 0) + 1
        self._newest_layouts[source_index] = (names, layout)
        return layout

    def join(self, stamp_ns: int) -> tuple[Array, States]:
        """Return the values of all parts at an instant, and their states (n_joints,)."""
        block = self._block.copy()
        states = self._states.copy()
        parts = list(self._parts.values())
        for part in parts:
            part.advance(stamp_ns)
        if self._overlap:
            parts.sort(key=lambda part: part.stamp_ns)
        for part in parts:
            if not part.stamp_ns:
                continue
            part.age_ns = stamp_ns - part.stamp_ns
            if part.age_ns > self._max_age_ns:
                states[part.rows] = STALE
                continue
            part.use(self._filter_velocity, self._filter_acceleration)
            block[:, part.rows] = part.block
            states[part.rows] = FRESH
        if not all_finite(block[:EFFORT]):
            self._mark_incomplete(block, states)
        return block, states

    def rates(self) -> Array:
        """Return how often each joint is reported; returns (n_joints,) [Hz]."""
        rates = np.full(len(self._names), np.nan)
        for part in sorted(self._parts.values(), key=lambda part: part.last_ns):
            rates[part.rows] = part.rate
        return rates

    def _part(self, source_index: int, rows: Indices) -> JointPart:
        """Return the part of a topic that reports these joints together."""
        key = (source_index, rows.tobytes())
        if key not in self._parts:
            taken = {row for part in self._parts.values() for row in part.joint_rows}
            self._overlap |= not taken.isdisjoint(rows.tolist())
            self._parts[key] = self._new_part(source_index, rows)
        return self._parts[key]

    def _new_part(self, source_index: int, rows: Indices) -> JointPart:
        """Return a new part, named by topic index and joints."""
        settings, filter_ = self._settings, None
        name = f'{source_index}: {" ".join(self._names[row] for row in rows)}'
        if self._filter_velocity or self._filter_acceleration:
            filter_ = joint_differentiator(settings, len(rows))
        if delays(settings):
            return DelayedJointPart(name, rows, filter_, settings.smooth_readings)
        return JointPart(name, rows, filter_)

    def _mark_incomplete(self, block: Array, states: States) -> None:
        """Mark joints whose newest position, or else a filtered derivative, is not a number."""
        finite = np.isfinite(block)
        fresh = states == FRESH
        invalid: NDArray[np.bool_] = fresh & ~finite[POSITION]
        states[fresh & ~finite[self._derived].all(axis=0)] = WARMING
        states[invalid] = INVALID
        block[:, invalid] = np.nan
