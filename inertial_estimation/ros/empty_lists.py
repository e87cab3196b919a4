# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Empty lists on the command line and in parameter files.

The parser of ROS takes an empty list for no value, so that one does not replace what another file
says, whichever comes last. They are read here once more, so that they mean what they say.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rclpy.parameter import Parameter

from inertial_estimation.config.files import PARAMETERS, RepeatedKey, flatten, load_mapping
from inertial_estimation.errors import ConfigError
from inertial_estimation.ros.parameters import ARRAY_TYPES, list_setting

PARAMETER, FILE, REMAP = ('-p', '--param'), ('--params-file',), ('-r', '--remap')
EMPTY = re.compile(r'\[\s*\]')


def empty_lists(arguments: Sequence[str] | None, node_name: str) -> list[Parameter]:
    """Return the lists whose last word on a command line is that they are empty."""
    given = list(_pairs(sys.argv if arguments is None else arguments))
    for option, value in given:
        found = re.fullmatch(r'(?:[^:]+:)?__(?:node|name):=(.+)', value)
        if option in REMAP and found:
            node_name = found.group(1)
    is_empty: dict[str, bool] = {}
    for option, value in given:
        if option in PARAMETER:
            is_empty |= _of_argument(value, node_name)
        elif option in FILE:
            is_empty |= _of_file(value, node_name)
    settings = {name: list_setting(name) for name, empty in is_empty.items() if empty}
    return [
        Parameter(name, ARRAY_TYPES[setting.kind], [])
        for name, setting in settings.items()
        if setting is not None
    ]


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the options for ROS that take a value, with it."""
    for_ros, option = False, ''
    for word in arguments:
        if option:
            yield option, word
            option = ''
        elif word in ('--ros-args', '--'):
            for_ros = word == '--ros-args'
        elif for_ros and word in (*PARAMETER, *FILE, *REMAP):
            option = word


def _of_argument(value: str, node_name: str) -> dict[str, bool]:
    """Return whether a rule empties a list of the node."""
    name, _, text = value.partition(':=')
    owner, _, name = name.rpartition(':')
    if owner.lstrip('/') not in ('', node_name):
        return {}
    return {name: bool(EMPTY.fullmatch(text.strip()))}


def _of_file(path: str, node_name: str) -> dict[str, bool]:
    """Return which lists of the node a parameter file empties."""
    try:
        sections = load_mapping(Path(path))
    except RepeatedKey:
        raise
    except ConfigError:
        # What ROS has read all the same is left to ROS.
        return {}
    found: dict[str, bool] = {}
    for owner in ('/**', f'/**/{node_name}', node_name, f'/{node_name}'):
        section = sections.get(owner)
        if isinstance(section, Mapping):
            leaves = flatten(section.get(PARAMETERS) or {})
            found |= {name: value == [] for name, value in leaves}
    return found
