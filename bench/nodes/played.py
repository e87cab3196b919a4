# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the identifier tells while a bag is played to it in real time.

Two processes: the player, and this one with the node in it.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.nodes.identifier import LAST_DOMAIN, spin_until
from bench.nodes.json_job import answer
from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
)
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.logs.feed import resolve
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.ros.inertial_parameters import from_message

PLAYER = 'import sys; from bench.nodes.bag_player import main; sys.exit(main())'
EVERY_UPDATE = 100
"""Updates that may wait for the listener."""


def play_to_identifier(
    urdf: str, config: str, bag: str, start_ns: int, stop_ns: int
) -> dict[str, Any]:
    """Play a part of a bag to the identifier."""
    os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
    os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % LAST_DOMAIN)
    import rclpy
    from rclpy.parameter import Parameter
    from std_msgs.msg import Float64MultiArray

    from inertial_estimation.ros.identifier_node import IdentifierNode

    settings = IdentifierSettings.from_yaml(config)
    rclpy.init(args=['--ros-args', '--params-file', config])
    node = IdentifierNode(parameter_overrides=[Parameter('robot_description', value=urdf)])
    if node.pipeline is None:
        raise InertialEstimationError('the identifier has not been configured, see above')
    updates: list[Float64MultiArray] = []
    node.create_subscription(
        Float64MultiArray, 'inertial_parameters', updates.append, EVERY_UPDATE
    )
    told: list[dict[str, Any]] = []
    job = {'bag': bag, 'topics': _topics(settings, node.pipeline.robot),
           'start_ns': start_ns, 'stop_ns': stop_ns}  # fmt: skip
    player = subprocess.Popen(
        [sys.executable, '-c', PLAYER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        player.stdin.write(json.dumps(job))
        player.stdin.close()
        spin_until(node, lambda: _note(node.pipeline, told) or player.poll() is not None)
        if player.returncode:
            raise InertialEstimationError('the bag could not be played, see above')
        bodies = [from_message(node.pipeline.robot, message) for message in updates]
        return {
            'sent': int(player.stdout.read()),
            'samples': node.pipeline.statistics().samples,
            'refits': told,
            'update_margins': [float(consistency_margin(one).min()) for one in bodies],
        }
    finally:
        player.kill()
        node.destroy_node()
        rclpy.try_shutdown()


def _topics(settings: IdentifierSettings, robot) -> list[str]:
    """Return the full names of what the node listens to."""
    sensors = [settings.ft_of(ft.name).topic for ft in robot.ft_sensors]
    sensors += [settings.imu_of(imu.name).topic for imu in robot.imus]
    return [resolve(topic) for topic in (*sensors, *settings.joint_topics)]


def _note(pipeline, told: list[dict[str, Any]]) -> bool:
    """Note a refit that is new; return False."""
    refit = pipeline.refit
    if refit is not None and (not told or told[-1]['stamp_ns'] < refit.stamp_ns):
        told.append(_as_dict(pipeline.identifier, refit))
    return False


def _as_dict(identifier: RecursiveIdentifier, refit: Refit) -> Mapping[str, Any]:
    """Return a refit for other processes."""
    return {
        'stamp_ns': refit.stamp_ns,
        'parameters': refit.parameters.tolist(),
        'offsets': {name: offset.tolist() for name, offset in refit.offsets.items()},
        'refitted': list(refit.refitted),
        'least_margin': _least(identifier.parameters().values()),
    }


def _least(bodies: Sequence[np.ndarray]) -> float:
    """Return the smallest eigenvalue of a body."""
    return float(consistency_margin(np.concatenate(list(bodies))).min())


def main() -> int:
    """Play, for callers without ROS: JSON in on standard input, JSON out on standard output."""
    return answer(lambda job: play_to_identifier(**job))
