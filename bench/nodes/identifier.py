# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the identifier costs beside the simulated robot, and whether it misses joint states.

Two processes: the embedded robot, and this one with the node in it. The processor time is that of
all threads of this process, those of the middleware included.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bench.nodes.json_job import answer
from inertial_estimation.errors import InertialEstimationError

LAST_DOMAIN = 101
START_TIMEOUT = 60.0
"""For the simulator to load its robot [s]."""
ROBOT = 'inertial_estimation_nodes', 'inertial_estimation.simulation.node'


class IdentifierLoad(NamedTuple):
    """A run of the identifier."""

    sent: int
    """Joint states of the robot."""
    received: int
    """Of these by the identifier."""
    samples: int
    """That rows could be built of."""
    refits: int
    updates: int
    """Of the refits that were published."""
    processor_share: float
    """Of one core, by all threads of the process."""
    stretch_time: float
    """Longest time that the rows of a second took [s]."""
    refit_time: float
    """Longest time that a refit took, with its publication [s]."""


def measure_identifier_load(
    urdf: str, parameters: Mapping[str, Any], *, rate: float = 250.0, duration: float = 30.0
) -> IdentifierLoad:
    """
    Run the identifier beside the simulated robot.

    rate [Hz]; duration [s].
    """
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % LAST_DOMAIN)
    import rclpy
    from rclpy.parameter import Parameter

    from inertial_estimation.ros.identifier_node import IdentifierNode

    rclpy.init(args=[])
    given = {**parameters, 'robot_description': urdf}
    node = IdentifierNode(parameter_overrides=[Parameter(n, value=v) for n, v in given.items()])
    node.take_priority()
    arguments = {'scene': 'pole', 'rate': rate, 'duration': duration, 'audience': 1}
    words = [word for name, value in arguments.items() for word in ('-p', f'{name}:={value}')]
    robot = subprocess.Popen([sys.executable, '-m', *ROBOT, '--ros-args', *words])
    try:
        share = _watched(node, robot)
        return _figures(node.pipeline, round(rate * duration), share)
    finally:
        robot.kill()
        node.destroy_node()
        rclpy.try_shutdown()


def _watched(node, robot: subprocess.Popen) -> float:
    """Spin the node until the robot ends; return its share of a core since the first sample."""
    deadline = time.monotonic() + START_TIMEOUT
    spin_until(node, lambda: _received(node.pipeline) or time.monotonic() > deadline)
    if not _received(node.pipeline):
        raise InertialEstimationError('the simulated robot has sent no joint states, see above')
    busy, start = time.process_time(), time.monotonic()
    spin_until(node, lambda: robot.poll() is not None)
    return (time.process_time() - busy) / (time.monotonic() - start)


def _received(pipeline) -> int:
    """Return how many joint states have come."""
    return sum(part.received for part in pipeline.statistics().joints.values())


def _figures(pipeline, sent: int, share: float) -> IdentifierLoad:
    """Return what became of a run."""
    report = pipeline.report
    return IdentifierLoad(
        sent, _received(pipeline), pipeline.statistics().samples, report.refits, report.updates,
        share, report.longest_stretch, report.longest_refit,
    )  # fmt: skip


def spin_until(node, is_over: Callable[[], bool]) -> None:
    """Spin a node until something is over, which is looked at five times a second."""
    from rclpy.task import Future

    from inertial_estimation.ros.executors import LONG, make_executor

    done = Future()
    timer = node.create_timer(
        0.2, lambda: done.set_result(None) if is_over() and not done.done() else None
    )
    executor = make_executor(node.settings.executor)
    executor.add_node(node)
    executor.spin_until_future_complete(done, timeout_sec=LONG)
    executor.remove_node(node)
    executor.shutdown()
    node.destroy_timer(timer)


def main() -> int:
    """Measure, for callers without ROS: JSON in on standard input, JSON out on standard output."""
    return answer(lambda job: measure_identifier_load(**job)._asdict())
