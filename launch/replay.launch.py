# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Play a bag and estimate from it, in the time of the bag, once the estimator is configured.

ros2 launch inertial_estimation replay.launch.py bag:=my_bag params_file:=my_robot.yaml \
    robot_description_file:=my_robot.urdf

Latched topics are missing from a bag that starts late, hence the file. Without ROS, and as fast
as the machine can: inertial-estimation replay.
"""

from pathlib import Path
from shutil import which

from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    ExecuteProcess,
    IncludeLaunchDescription,
    OpaqueFunction,
    RegisterEventHandler,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.launch_description_sources import PythonLaunchDescriptionSource
from launch.substitutions import LaunchConfiguration
from launch_ros.ros_adapters import get_ros_node

from launch import LaunchContext, LaunchDescription

HERE = Path(__file__).resolve().parent
QOS = HERE.parent / 'config' / 'replay_qos.yaml'
LOOK_PERIOD = 0.2
"""Time between two looks for the topics of the estimator [s]."""

ARGUMENTS = [
    DeclareLaunchArgument('bag', description='Bag to play: its folder or file'),
    DeclareLaunchArgument('rate', default_value='1.0', description='Times real time'),
    DeclareLaunchArgument(
        'start_offset', default_value='0.0', description='Where to start in the bag [s]'
    ),
    DeclareLaunchArgument(
        'use_sim_time',
        default_value='true',
        choices=['true', 'false'],
        description='Take the time from /clock, which the player publishes',
    ),
]


def generate_launch_description() -> LaunchDescription:
    """Return the arguments, the estimator and the player."""
    estimation = PythonLaunchDescriptionSource(str(HERE / 'estimation.launch.py'))
    return LaunchDescription(
        [
            *ARGUMENTS,
            # First, because it may refuse: an estimator that had been started would be left.
            OpaqueFunction(function=check_player),
            IncludeLaunchDescription(estimation),
            OpaqueFunction(function=start_player),
        ]
    )


def check_player(context: LaunchContext) -> None:
    """Refuse to start anything without a player."""
    if which('ros2') is None:
        raise RuntimeError(
            'ros2 bag is not installed: inertial-estimation replay reads the bag without it'
        )


def start_player(context: LaunchContext) -> list:
    """Return the player once the estimator is configured; when it ends, everything ends."""
    namespace = LaunchConfiguration('namespace').perform(context).strip('/')
    topic = '/'.join(['', *filter(None, [namespace]), 'wrench_estimator', 'external_wrenches'])
    if not get_ros_node(context).count_publishers(topic):
        look = OpaqueFunction(function=start_player)
        return [TimerAction(period=LOOK_PERIOD, actions=[look])]
    player = ExecuteProcess(
        cmd=[
            'ros2',
            'bag',
            'play',
            LaunchConfiguration('bag'),
            '--clock',
            '--rate',
            LaunchConfiguration('rate'),
            '--start-offset',
            LaunchConfiguration('start_offset'),
            '--qos-profile-overrides-path',
            str(QOS),
        ],
        output='screen',
    )
    end = EmitEvent(event=Shutdown(reason='the bag has ended'))
    return [player, RegisterEventHandler(OnProcessExit(target_action=player, on_exit=[end]))]
