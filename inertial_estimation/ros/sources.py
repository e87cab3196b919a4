# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One subscribed topic: how its messages are read, and what was wrong with them."""

from collections import Counter
from collections.abc import Collection
from typing import Any

from geometry_msgs.msg import PointStamped, WrenchStamped
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Imu, JointState, Temperature

from inertial_estimation.ros.conversions import (
    imu_from_message,
    joints_from_message,
    point_from_message,
    temperature_from_message,
    wrench_from_message,
)
from inertial_estimation.signals.decoders import (
    ImuDecoder,
    JointStateDecoder,
    PointDecoder,
    TemperatureDecoder,
    WrenchDecoder,
)
from inertial_estimation.signals.readings import ImuReading, JointReading

MAX_PROBLEMS = 20
NO_STAMP = 'header.stamp is zero: the driver has to stamp its messages'

NOTHING = 'it measures nothing: its messages have -1 in both covariances'

KINDS = {
    'joints': (JointState, JointStateDecoder, joints_from_message),
    'ft': (WrenchStamped, WrenchDecoder, wrench_from_message),
    'imu': (Imu, ImuDecoder, imu_from_message),
    'temperature': (Temperature, TemperatureDecoder, temperature_from_message),
    'contacts': (PointStamped, PointDecoder, point_from_message),
}


class Source:
    """
    One subscribed topic: how its messages are read, and what was wrong with them.

    skew [s].
    """

    def __init__(
        self, kind: str, name: str, topic: str, frames: Collection[str] | None = None
    ) -> None:
        self.kind, self.name, self.topic, self.frames = kind, name, topic, frames
        self.message_type, decoder, self.from_message = KINDS[kind]
        self.decode = decoder().decode
        self.problems: Counter[str] = Counter()
        self.index = self.fallbacks = 0
        self.skew: float | None = None
        self.skew_due = True
        self.shares_skew = False

    def read(self, data: Any):
        """Return what a message says, or None if it cannot be read."""
        if not isinstance(data, bytes):
            return self.from_message(data)
        reading = self.decode(data)
        return self._read_slowly(data) if reading is None else reading

    def accepts(self, reading: Any) -> bool:
        """Tell whether stamp and frame of a sensor's reading are what they should be."""
        if reading.stamp_ns <= 0:
            self._note(NO_STAMP)
            return False
        if self.frames is not None and reading.frame_id not in self.frames:
            self._note(
                f"header.frame_id is '{reading.frame_id}', expected {_either(self.frames)}: "
                f'if it is right, set {self.kind}.{self.name}.frame_id to it'
            )
            return False
        return True

    def accepts_imu(self, reading: ImuReading) -> bool:
        """Tell whether an IMU's reading can be handed over."""
        accepted = self.accepts(reading)
        if accepted and reading.declares_nothing:
            self._note(NOTHING)
        return accepted

    def accepts_joints(self, reading: JointReading) -> bool:
        """Tell whether a joint state has a stamp, and a position for each name."""
        n = len(reading.names)
        if reading.stamp_ns <= 0:
            self._note(NO_STAMP)
            return False
        if len(reading.positions) != n:
            self._note(f'{n} names with {len(reading.positions)} positions')
            return False
        for what, values in (('velocities', reading.velocities), ('efforts', reading.efforts)):
            if len(values) not in (0, n):
                self._note(f'{n} names with {len(values)} {what}, which are not used')
        return True

    def _note(self, problem: str) -> None:
        """Count a problem; a sender of ever new nonsense must not fill the memory."""
        if problem not in self.problems and len(self.problems) >= MAX_PROBLEMS:
            problem = 'other problems'
        self.problems[problem] += 1

    def _read_slowly(self, data: bytes):
        """Let rclpy read what the decoder does not know."""
        try:
            reading = self.from_message(deserialize_message(data, self.message_type))
        except (RuntimeError, ValueError) as error:
            self._note(f'the message cannot be deserialized: {error}'[:200])
            return None
        self.fallbacks += 1
        return reading


def _either(names: Collection[str]) -> str:
    """Return names as a list for a sentence."""
    return ' or '.join(f"'{name}'" for name in sorted(names)[:3])
