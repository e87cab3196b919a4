# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Start the wrench estimator on a robot, and beside it the identifier if it is wanted.

ros2 launch inertial_estimation estimation.launch.py params_file:=my_robot.yaml rviz:=true
"""

from pathlib import Path

from ament_index_python.packages import PackageNotFoundError, get_package_prefix
from launch.actions import DeclareLaunchArgument, LogInfo, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterFile

from launch import LaunchContext, LaunchDescription

PACKAGE = 'inertial_estimation'
CONFIG = Path(__file__).resolve().parents[1] / 'config'
SWITCH = ['true', 'false']
RESPAWN_DELAY = 2.0

ARGUMENTS = [
    DeclareLaunchArgument(
        'params_file',
        default_value=str(CONFIG / 'icub.yaml'),
        description='Parameter file of the estimator; substitutions are allowed in it',
    ),
    DeclareLaunchArgument(
        'identify',
        default_value='false',
        choices=SWITCH,
        description='Start the identifier of inertial parameters too',
    ),
    DeclareLaunchArgument(
        'identifier_params_file',
        default_value=str(CONFIG / 'identifier.yaml'),
        description='Parameter file of the identifier, read on top of params_file',
    ),
    DeclareLaunchArgument('namespace', default_value='', description='Namespace of the nodes'),
    DeclareLaunchArgument(
        'use_sim_time',
        default_value='false',
        choices=SWITCH,
        description='Take the time from /clock',
    ),
    DeclareLaunchArgument(
        'autostart',
        default_value='true',
        choices=SWITCH,
        description='Configure and activate at start',
    ),
    DeclareLaunchArgument(
        'robot_description_file',
        default_value='',
        description='URDF file; empty: that of the parameter file, else robot_description',
    ),
    DeclareLaunchArgument(
        'calibration_file',
        default_value='',
        description='Calibration of the FT sensors; empty: that of the parameter file',
    ),
    DeclareLaunchArgument(
        'rviz',
        default_value='false',
        choices=SWITCH,
        description='Start rviz, and robot_state_publisher if there is a URDF file',
    ),
    DeclareLaunchArgument(
        'log_level',
        default_value='info',
        choices=['debug', 'info', 'warn', 'error', 'fatal'],
        description='Log level of the nodes',
    ),
    DeclareLaunchArgument(
        'use_respawn',
        default_value='false',
        choices=SWITCH,
        description='Start a node again if it ends',
    ),
]


def generate_launch_description() -> LaunchDescription:
    """Return the arguments and the nodes."""
    return LaunchDescription(
        [
            *ARGUMENTS,
            OpaqueFunction(function=start_estimator),
            OpaqueFunction(function=start_identifier),
            OpaqueFunction(function=start_viewers),
        ]
    )


def start_estimator(context: LaunchContext) -> list:
    """Return the estimator."""
    return [own_node(context, 'wrench_estimator', 'params_file')]


def start_identifier(context: LaunchContext) -> list:
    """Return the identifier if it is wanted, at a lower priority than the estimator."""
    if value(context, 'identify') != 'true':
        return []
    files = 'params_file', 'identifier_params_file'
    return [own_node(context, 'parameter_identifier', *files, prefix='nice -n 10')]


def own_node(context: LaunchContext, name: str, *files: str, prefix: str = '') -> Node:
    """Return a node of this package with the parameter files that some arguments name."""
    overrides: dict = {
        'use_sim_time': value(context, 'use_sim_time') == 'true',
        'autostart': value(context, 'autostart') == 'true',
    }
    for argument in ('robot_description_file', 'calibration_file'):
        if value(context, argument):
            overrides[argument] = value(context, argument)
    return Node(
        package=PACKAGE,
        executable=name,
        name=name,
        namespace=value(context, 'namespace'),
        prefix=prefix,
        parameters=[
            *(ParameterFile(LaunchConfiguration(file), allow_substs=True) for file in files),
            overrides,
        ],
        arguments=['--ros-args', '--log-level', LaunchConfiguration('log_level')],
        respawn=value(context, 'use_respawn') == 'true',
        respawn_delay=RESPAWN_DELAY,
        output='screen',
    )


def start_viewers(context: LaunchContext) -> list:
    """Return rviz and what it needs, as far as they are installed."""
    if value(context, 'rviz') != 'true':
        return []
    common = {
        'namespace': value(context, 'namespace'),
        'output': 'screen',
    }
    sim_time = {'use_sim_time': value(context, 'use_sim_time') == 'true'}
    actions = []
    if not is_installed('rviz2'):
        actions.append(LogInfo(msg='rviz:=true, but rviz2 is not installed'))
    else:
        actions.append(
            Node(
                package='rviz2',
                executable='rviz2',
                arguments=['-d', str(CONFIG / 'wrench_estimator.rviz')],
                parameters=[sim_time],
                **common,
            )
        )
    urdf = value(context, 'robot_description_file')
    if urdf and not is_installed('robot_state_publisher'):
        actions.append(LogInfo(msg='rviz:=true, but robot_state_publisher is not installed'))
    elif urdf:
        description = {'robot_description': Path(urdf).read_text(encoding='utf-8')}
        actions.append(
            Node(
                package='robot_state_publisher',
                executable='robot_state_publisher',
                parameters=[description, sim_time],
                **common,
            )
        )
    return actions


def value(context: LaunchContext, name: str) -> str:
    """Return the text of an argument."""
    return LaunchConfiguration(name).perform(context)


def is_installed(package: str) -> bool:
    """Tell whether a ROS package is installed."""
    try:
        get_package_prefix(package)
    except PackageNotFoundError:
        return False
    return True
