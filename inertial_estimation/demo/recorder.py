# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Process that records the simulated robot and its estimators.

Its argument is JSON: the names of robot, estimators and identifier, and a file. Twice a second it
prints up to when all of them have published [s], 0 at first; on SIGINT it writes the file.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from time import time_ns
from typing import Any

import numpy as np
from geometry_msgs.msg import InertiaStamped
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from rclpy.task import Future
from sensor_msgs.msg import JointState, MultiDOFJointState
from std_msgs.msg import Float64MultiArray

from inertial_estimation.ros.executors import run_node
from inertial_estimation.signals.cdr import FLOAT, NANOSECONDS, STAMP, STAMP_AT

STREAM = QoSProfile(depth=500)
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PERIOD = 0.5
"""Time between two lines [s]."""


class Stream:
    """Messages of one topic whose last bytes are a row of numbers for each name."""

    def __init__(self, node: Node, kind: type, topic: str, width: int) -> None:
        self._kind, self._width, self._size = kind, width, 0
        self.names: list[str] = []
        self.stamps: list[int] = []
        self.arrivals: list[int] = []
        self._data: list[bytes] = []
        node.create_subscription(kind, topic, self._keep, STREAM, raw=True)

    def _keep(self, data: bytes) -> None:
        now_ns = time_ns()
        if not self.names:
            message = deserialize_message(data, self._kind)
            wrenches = self._kind is MultiDOFJointState
            self.names = list(message.joint_names if wrenches else message.name)
            self._size = 8 * self._width * len(self.names)
        second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
        self.stamps.append(second * NANOSECONDS + nanosecond)
        self.arrivals.append(now_ns)
        self._data.append(data[-self._size :])

    def arrays(self) -> dict[str, Any]:
        """Return names, stamps and arrivals (n,) [ns], values (n, n_names, width)."""
        values = np.frombuffer(b''.join(self._data), FLOAT)
        return {
            'names': self.names,
            'stamps': self.stamps,
            'arrivals': self.arrivals,
            'values': values.reshape(len(self.stamps), len(self.names), -1),
        }


class Recorder(Node):
    """Keeps wrenches, torques, loads and identified parameters."""

    def __init__(self, asked: Mapping[str, Any], write: Callable[[str], object]) -> None:
        super().__init__('demo_recorder')
        self.done = Future()
        self._write, self._path, self._stopped = write, Path(asked['file']), False
        self._sources = [asked['robot'], *asked['estimators']]
        self._streams = {
            f'{name}/{topic}': Stream(self, kind, f'{name}/{topic}', width)
            for name in self._sources
            for kind, topic, width in (
                (MultiDOFJointState, 'external_wrenches', 6), (JointState, 'joint_torques', 1),
            )
        }  # fmt: skip
        self._events: list[dict[str, Any]] = []
        for kind, topic in (
            (InertiaStamped, f'{asked["robot"]}/load'),
            (Float64MultiArray, 'inertial_parameters'),
            (Float64MultiArray, f'{asked["identifier"]}/payloads'),
        ):
            self.create_subscription(kind, topic, self._note(topic), LATCHED)
        self.create_timer(PERIOD, self._tick)

    def stop(self) -> None:
        """Write the file and end at the next tick."""
        self._stopped = True

    def _note(self, topic: str) -> Callable[[Any], None]:
        """Return a callback that keeps a message and the robot's time at its arrival."""

        def note(message: Any) -> None:
            truth = self._streams[f'{self._sources[0]}/external_wrenches']
            event: dict[str, Any] = {'topic': topic, 'stamp': (truth.stamps or [0])[-1]}
            if isinstance(message, InertiaStamped):
                stamp, body = message.header.stamp, message.inertia
                event['stamp'] = stamp.sec * NANOSECONDS + stamp.nanosec
                event |= {'frame': message.header.frame_id, 'mass': body.m}
                event['center'] = [body.com.x, body.com.y, body.com.z]
            else:
                event |= {'label': message.layout.dim[0].label, 'data': list(message.data)}
            self._events.append(event)

        return note

    def _tick(self) -> None:
        if self.count_publishers('joint_states') > 1:
            self.done.set_result('another robot publishes joint_states on this ROS domain')
        elif self._stopped:
            with self._path.open('wb') as file:
                np.savez(
                    file, events=json.dumps(self._events),
                    **{
                        f'{name}/{key}': value
                        for name, stream in self._streams.items()
                        for key, value in stream.arrays().items()
                    },
                )  # fmt: skip
            self.done.set_result('')
        else:
            streams = [self._streams[f'{name}/external_wrenches'] for name in self._sources]
            newest = min(stream.stamps[-1] if stream.stamps else 0 for stream in streams)
            self._write(f'{1e-9 * newest}\n')


def main() -> int:
    """Run until interrupted."""

    def write(line: str) -> None:
        sys.stdout.write(line)
        sys.stdout.flush()

    return run_node(lambda: Recorder(json.loads(sys.argv[1]), write), 'demo_recorder', [])
