# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The lifecycle node ``wrench_estimator``."""

from collections.abc import Sequence

from inertial_estimation.config.settings import NODE_NAME, EstimatorSettings
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.configured_node import ConfiguredNode, run_node
from inertial_estimation.ros.pipeline import Pipeline


class EstimatorNode(ConfiguredNode):
    """Estimates external wrenches and joint torques from sensor topics."""

    def __init__(self, **kwargs) -> None:
        super().__init__(NODE_NAME, EstimatorSettings, _make, **kwargs)
        self.start()


def _make(node: ConfiguredNode, settings: EstimatorSettings, urdf: str) -> Pipeline:
    """Return what the node consists of, and say what it neglects."""
    pipeline = Pipeline(node, settings, urdf)
    if neglected := _neglected(settings, pipeline.robot):
        node.get_logger().info(f'neglected, as configured: {neglected}')
    return pipeline


def _neglected(settings: EstimatorSettings, robot: Robot) -> str:
    """Name the accelerations that are taken to be zero."""
    spinning = () if robot.fixed_frame else robot.imus
    kinds = (
        ('joint accelerations', 'acceleration_source', robot.joint_names),
        ('angular accelerations', 'angular_acceleration_source', spinning),
    )
    return ', '.join(
        f'{what} ({name}: zero)'
        for what, name, owners in kinds
        if owners and getattr(settings, name) == 'zero'
    )


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is interrupted."""
    return run_node(EstimatorNode, NODE_NAME, args)
