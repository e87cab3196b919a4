# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Start the embedded robot, a simulated iCub that is being pushed, and the estimator.

ros2 launch inertial_estimation demo.launch.py rviz:=true
"""

from importlib.util import find_spec
from pathlib import Path

from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    SetLaunchConfiguration,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node

from launch import LaunchContext, LaunchDescription

HERE = Path(__file__).resolve().parent

ARGUMENTS = [
    DeclareLaunchArgument('namespace', default_value='', description='Namespace of the nodes'),
    DeclareLaunchArgument(
        'scene',
        default_value='standing',
        choices=['pole', 'standing', 'carrying'],
        description='How the robot is held while it is pushed, or picks something up',
    ),
    DeclareLaunchArgument('duration', default_value='60.0', description='How long it lasts [s]'),
]


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, the robot and the estimator."""
    estimation = PythonLaunchDescriptionSource(str(HERE / 'estimation.launch.py'))
    return LaunchDescription(
        [
            *ARGUMENTS,
            OpaqueFunction(function=start_robot),
            OpaqueFunction(function=find_description),
            IncludeLaunchDescription(estimation),
        ]
    )


def start_robot(context: LaunchContext) -> list:
    """Return the robot; when it ends, everything ends."""
    robot = Node(
        package='inertial_estimation',
        executable='embedded_robot',
        namespace=LaunchConfiguration('namespace'),
        parameters=[{name: LaunchConfiguration(name) for name in ('scene', 'duration')}],
        output='screen',
    )
    end = EmitEvent(event=Shutdown(reason='the robot has ended'))
    return [robot, RegisterEventHandler(OnProcessExit(target_action=robot, on_exit=[end]))]


def find_description(context: LaunchContext) -> list:
    """Name the robot's URDF for robot_state_publisher; the estimator hears it from the robot."""
    given = context.launch_configurations
    if given.get('rviz') != 'true' or given.get('robot_description_file'):
        return []
    if find_spec('icub_models') is None:
        return []
    import icub_models

    from inertial_estimation.simulation.description import ICUB

    path = icub_models.get_model_file(ICUB)
    return [SetLaunchConfiguration('robot_description_file', str(path))]
