# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Plays a part of a bag in its own time; a process for benchmarks, where ros2 bag may be missing.

The bytes go out as they were recorded. It begins when every topic has a subscriber.
"""

import time
from collections.abc import Sequence
from pathlib import Path

from bench.nodes.json_job import answer
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.logs.bag import IMU, JOINT_STATE, WRENCH, BagReader

START_TIMEOUT = 60.0
"""For the subscribers to appear [s]."""
POLL, SETTLE = 0.1, 0.5
"""Between two looks, and from when all are there, or all is sent, until it goes on [s]."""
QUEUE = 1000


def play(bag: Path, topics: Sequence[str], start_ns: int, stop_ns: int) -> int:
    """Play a part of a bag."""
    import rclpy

    with BagReader(bag) as reader:
        kinds = {topic: _kind(reader, topic) for topic in topics}
        rclpy.init(args=[])
        node = rclpy.create_node('bag_player')
        try:
            publishers = {
                topic: node.create_publisher(kind, topic, QUEUE) for topic, kind in kinds.items()
            }
            _wait_for_subscribers(publishers.values())
            sent, begin = 0, time.monotonic()
            for message in reader.messages(topics):
                if not start_ns < message.recorded_ns < stop_ns:
                    continue
                due = begin + 1e-9 * (message.recorded_ns - start_ns)
                time.sleep(max(0.0, due - time.monotonic()))
                publishers[message.topic].publish(message.data)
                sent += 1
            time.sleep(SETTLE)
            return sent
        finally:
            node.destroy_node()
            rclpy.try_shutdown()


def _kind(reader: BagReader, topic: str) -> type:
    """Return the class of the messages of a topic."""
    from geometry_msgs.msg import WrenchStamped
    from sensor_msgs.msg import Imu, JointState

    known = {WRENCH: WrenchStamped, JOINT_STATE: JointState, IMU: Imu}
    found = reader.topics.get(topic)
    if found is None or found.type not in known:
        raise InertialEstimationError(
            f"topic '{topic}' of the bag is {found.type if found else 'not there'}, expected one "
            f'of {", ".join(known)}'
        )
    return known[found.type]


def _wait_for_subscribers(publishers) -> None:
    """Wait until each topic has one, or raise."""
    deadline = time.monotonic() + START_TIMEOUT
    while lonely := [one.topic_name for one in publishers if not one.get_subscription_count()]:
        if time.monotonic() > deadline:
            raise InertialEstimationError(f'nobody listens to {", ".join(lonely)}')
        time.sleep(POLL)
    time.sleep(SETTLE)


def main() -> int:
    """Play, for other processes: JSON in on standard input, the number of messages out."""
    return answer(lambda job: play(Path(job.pop('bag')), **job))
