# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All FT sensors and IMUs: what they say at an instant, and how much of it may be used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.sample import Array, SensorState
from inertial_estimation.streams.imu_stream import ImuStream
from inertial_estimation.streams.joint_stream import States
from inertial_estimation.streams.sensor_stream import (
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
    """
    The readings of all sensors.

    Parameters
    ----------
    fts : sequence of SensorStream
        In the robot's order.
    imus : sequence of ImuStream
        Likewise.

    """

    def __init__(self, fts: Sequence[SensorStream], imus: Sequence[ImuStream]) -> None:
        self._imus = imus
        self._streams = (*fts, *imus)

    def select(self, stamp_ns: int) -> tuple[Array, States]:
        """
        Return the newest readings that are not later than an instant.

        Parameters
        ----------
        stamp_ns : int
            The instant [ns].

        Returns
        -------
        readings : ndarray, shape (n_fts + n_imus, 6)
            Of each FT, then IMU; NaN if it is not usable.
        states : ndarray of uint8, shape (n_fts + n_imus,)
            `SensorState` of each.

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

        One that warms up counts as missing, its acceleration too. That could be used with the
        rotation that a neighbour tells through the joints; but the neighbour alone serves the
        link as well for the tenth of a second that a window takes to fill, and what is used of
        the link would change twice more after every gap.

        Parameters
        ----------
        states : ndarray of uint8, shape (n_imus,)
            As `select` found them; changed in place.
        rates : ndarray, shape (n_imus, 3)
            Angular velocities [rad/s].

        Returns
        -------
        ndarray, shape (n_imus, 3)
            NaN where there is none [rad/s^2].

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
