# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Start to talk to ROS, and say in one sentence what is wrong with a command line."""

import re
import sys
from collections.abc import Sequence
from pathlib import Path

import rclpy
from rclpy.signals import SignalHandlerOptions
from rclpy.utilities import remove_ros_args

from inertial_estimation.errors import ConfigError


def init(args: Sequence[str] | None, node_name: str) -> None:
    """Initialise rclpy without its signal handlers, which would interrupt callbacks anywhere."""
    try:
        rclpy.init(args=args, signal_handler_options=SignalHandlerOptions.NO)
    except RuntimeError as error:
        raise ConfigError(_refusal(str(error), node_name)) from error
    own = remove_ros_args(sys.argv)[1:] if args is None else remove_ros_args(list(args))
    if own:
        raise ConfigError(
            f"nobody hears '{own[0]}' on the command line: parameters, their files and names of "
            'topics come after --ros-args'
        )


def _refusal(said: str, node_name: str) -> str:
    """Return what ROS said of the command line, with the remedy for a parameter file."""
    # It names the lines of its own source.
    text = ' '.join(re.sub(r', at \S+:\d+', '', said).split())
    found = re.search(r"'--params-file (.*)'\. Error: (.*)", text)
    if found is None:
        return f'ROS refuses the command line, see after --ros-args: {text}'
    path, cause = found.groups()
    if not Path(path).is_file():
        what = 'is no file' if Path(path).exists() else 'does not exist'
        return f"the parameter file '{path}' {what}: correct the path after --params-file"
    return (
        f"'{path}' is no ROS parameter file ({cause}): it needs a line '{node_name}:', below it "
        "'ros__parameters:', and below that the parameters, indented"
    )
