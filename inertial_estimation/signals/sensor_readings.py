# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All FT sensors and IMUs: what they say at an instant, and how much of it may be used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.sample import Array, SensorState
from inertial_estimation.signals.imu_stream import ImuStream
from inertial_estimation.signals.joint_stream import States
from inertial_estimation.signals.sensor_stream import (
    FRESH,
    INVALID,
    NO_READING,
    PARTIAL,
    SensorStream,
    all_finite,
)

WARMING = int(SensorState.WARMING)
USED = (FRESH, PARTIAL)
"""States of IMUs of which something enters a sample."""


class SensorReadings:
    """The readings of all sensors."""

    def __init__(self, fts: Sequence[SensorStream], imus: Sequence[ImuStream]) -> None:
        self._imus = imus
        self._streams = (*fts, *imus)

    def select(self, stamp_ns: int) -> tuple[Array, States]:
        """
        Return the newest readings that are not later than an instant.

        Returns readings (n_fts + n_imus, 6); states (n_fts + n_imus,).
        """
        streams = self._streams
        codes = [stream.select(stamp_ns) for stream in streams]
        chunks = [s.data if code == FRESH else NO_READING for s, code in zip(streams, codes)]
        readings = np.frombuffer(bytearray().join(chunks)).reshape(-1, 6)
        if any(codes) or not all_finite(readings):
            finite = np.logical_and.reduce(np.isfinite(readings), axis=1)
            for k, stream in enumerate(streams):
                if codes[k] == FRESH and not finite[k]:
                    codes[k] = stream.judge(readings[k])
                    if codes[k] == INVALID:
                        readings[k] = np.nan
                        stream.reject()
        return readings, np.frombuffer(bytearray(codes), dtype=np.uint8)

    def angular_accelerations(self, states: States, rates: Array) -> Array:
        """
        Return the angular acceleration of each IMU in its axes; mark those that warm up.

        states (n_imus,); rates (n_imus, 3) [rad/s]; returns (n_imus, 3) [rad/s^2].
        """
        accelerations = np.empty((len(self._imus), 3))
        for k, (imu, state) in enumerate(zip(self._imus, states.tolist())):
            accelerations[k] = imu.angular_acceleration if state in USED else np.nan
        if not (all_finite(accelerations) and all_finite(rates)):
            known = np.logical_and.reduce(np.isfinite(accelerations), axis=1)
            turns = np.logical_and.reduce(np.isfinite(rates), axis=1)
            accelerations[~(known & turns)] = np.nan
            for k in np.flatnonzero(~known & turns & np.isin(states, USED)).tolist():
                states[k] = WARMING
                self._imus[k].hold_back()
        return accelerations
