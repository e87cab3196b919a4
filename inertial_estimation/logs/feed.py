# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From the messages of a bag to what takes readings: topics, types and frames are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from inertial_estimation.building import accepted_frame_ids
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.logs.bag import IMU, JOINT_STATE, POINT, TEMPERATURE, WRENCH, BagReader
from inertial_estimation.logs.decoding import (
    imu_reader,
    joint_state_reader,
    point_reader,
    temperature_reader,
    wrench_reader,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, Sample


def resolve(topic: str) -> str:
    """Return the full name that a topic has without namespace and remapping."""
    return topic if topic.startswith('/') else f'/{topic}'


class Feed:
    """Hands each message to the assembler."""

    def __init__(
        self,
        reader: BagReader,
        robot: Robot,
        settings: EstimatorSettings,
        push_ft: Callable[[int, int, Array], None],
        push_imu: Callable[[int, int, Array, Array], None],
    ) -> None:
        self.handlers: dict[str, Callable[[bytes], None]] = {}
        self.n_messages = 0
        self.origin_ns = 0
        self._reader = reader
        for index, ft in enumerate(robot.ft_sensors):
            frames = accepted_frame_ids(settings, robot, ft)
            self._add_ft(resolve(settings.ft_of(ft.name).topic), index, frames, push_ft)
        for index, imu in enumerate(robot.imus):
            frames = accepted_frame_ids(settings, robot, imu)
            self._add_imu(resolve(settings.imu_of(imu.name).topic), index, frames, push_imu)

    def add_joints(
        self,
        topic: str,
        index: int,
        push: Callable[..., Sample | None],
        keep: Callable[[Sample], None],
    ) -> None:
        """Feed a topic of joint states."""
        self._require(topic, JOINT_STATE)
        read = joint_state_reader().read

        def handle(data: bytes) -> None:
            sample = push(index, *read(data))
            if sample is not None:
                keep(sample)

        self.handlers[topic] = handle

    def add_contacts(self, topic: str, push: Callable[[int, str, Array], None]) -> None:
        """Feed the points that somebody feels, if the bag has any."""
        if topic not in self._reader.topics:
            return
        self._require(topic, POINT)
        read = point_reader().read
        self.handlers[topic] = lambda data: push(*read(data))

    def add_temperatures(
        self,
        topics: Mapping[int, str],
        needed: Collection[int],
        push: Callable[[int, int, float], None],
    ) -> None:
        """Feed the temperatures of FT sensors, as far as the bag has them."""
        told: dict[str, list[int]] = {}
        for index, topic in topics.items():
            if topic in self._reader.topics or index in needed:
                told.setdefault(topic, []).append(index)
        for topic, indices in told.items():
            self._require(topic, TEMPERATURE)
            self.handlers[topic] = _temperature_handler(indices, push)

    def _add_ft(
        self, topic: str, index: int, frames: set[str], push: Callable[[int, int, Array], None]
    ) -> None:
        self._require(topic, WRENCH)
        read = wrench_reader().read

        def handle(data: bytes) -> None:
            reading = read(data)
            _check_frame(topic, reading.frame_id, frames)
            self.origin_ns = self.origin_ns or reading.stamp_ns
            push(index, reading.stamp_ns, reading.wrench)

        self.handlers[topic] = handle

    def _add_imu(
        self,
        topic: str,
        index: int,
        frames: set[str],
        push: Callable[[int, int, Array, Array], None],
    ) -> None:
        self._require(topic, IMU)
        read = imu_reader().read

        def handle(data: bytes) -> None:
            reading = read(data)
            _check_frame(topic, reading.frame_id, frames)
            push(index, reading.stamp_ns, reading.angular_velocity, reading.linear_acceleration)

        self.handlers[topic] = handle

    def _require(self, topic: str, type_: str) -> None:
        self.n_messages += self._reader.require(topic, type_).n_messages


def _temperature_handler(
    indices: Sequence[int], push: Callable[[int, int, float], None]
) -> Callable[[bytes], None]:
    """Return what takes the messages of a topic."""
    read = temperature_reader().read

    def handle(data: bytes) -> None:
        reading = read(data)
        for index in indices:
            push(index, reading.stamp_ns, reading.celsius)

    return handle


def _check_frame(topic: str, frame_id: str, frames: set[str]) -> None:
    """Refuse readings in a frame that is not the sensor's."""
    if frame_id not in frames:
        expected = ' or '.join(f"'{frame}'" for frame in sorted(frames)[:3])
        raise LogError(
            f"topic '{topic}' has header.frame_id '{frame_id}', expected {expected}: "
            "if it is the sensor's frame, set its frame_id in the configuration"
        )
