# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Start the embedded robot, a simulated iCub that is being pushed, and the estimator.

ros2 launch inertial_estimation demo.launch.py rviz:=true
"""

from pathlib import Path

from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription

HERE = Path(__file__).resolve().parent

NAMESPACE = DeclareLaunchArgument(
    'namespace', default_value='', description='Namespace of the nodes'
)


def generate_launch_description() -> LaunchDescription:
    """Return the robot and the estimator."""
    estimation = PythonLaunchDescriptionSource(str(HERE / 'estimation.launch.py'))
    return LaunchDescription(
        [
            NAMESPACE,
            OpaqueFunction(function=start_robot),
            IncludeLaunchDescription(estimation),
        ]
    )


def start_robot(context: LaunchContext) -> list:
    """Return the robot; when it ends, everything ends."""
    robot = Node(
        package='inertial_estimation',
        executable='embedded_robot',
        namespace=LaunchConfiguration('namespace'),
        output='screen',
    )
    end = EmitEvent(event=Shutdown(reason='the robot has ended'))
    return [robot, RegisterEventHandler(OnProcessExit(target_action=robot, on_exit=[end]))]
