# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Subcommands as data, and the parsers that follow from them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

COMMANDS = {
    'check': 'describe a robot: sensors, submodels, dependence, consistency',
    'replay': 'run the estimator over a ROS 2 bag, without ROS',
    'calibrate': 'calibrate FT sensors',
    'excite': 'design an exciting motion for identification',
    'identify': 'identify inertial parameters from logs',
    'demo': 'estimate the wrenches of a simulated iCub that is pushed and carries a load',
}
"""Subcommands, and what they do."""
WIDTH = 80
Option = tuple[Any, ...]
"""Name, metavar and help, and further arguments of argparse."""
NEEDED, FLAG = {'required': True}, {'action': 'store_true'}
NUMBER, COUNT = {'type': float}, {'type': int}
NAMES: dict[str, Any] = {'nargs': '+', 'default': []}
OUTPUT = {'type': Path}
"""Marks files that are written; all others are read."""
ROBOT: Option = ('--robot', 'URDF', 'robot description', NEEDED)
CONFIG: Option = ('--config', 'YAML', 'parameter file of the node', NEEDED)
FULL: Option = ('--full', '', 'print all tables', FLAG)
JSON: Option = ('--json', 'FILE', 'write all figures as JSON', OUTPUT)


class Command(NamedTuple):
    """A subcommand."""

    job: str
    """A clause."""
    example: str
    """Arguments of a call."""
    run: Callable[[argparse.Namespace], int | None]
    """Return the exit code, None: 0."""
    options: tuple[Option, ...]
    more: str = ''
    """Further sentences of the help."""


def add_command(commands: Any, name: str, command: Command, of: str = '') -> None:
    """Add a subcommand."""
    call = f'inertial-estimation {f"{of} {name}".strip()}'
    parser = _parser(
        commands, name, command.job, command.more, f'Example: {call} {command.example}'
    )
    needed = [call]
    for option, metavar, text, *more in (*command.options, JSON):
        given = {'metavar': metavar} if metavar else {}
        action = parser.add_argument(option, help=text, **given, **dict(*more))
        if action.required:
            values = metavar if isinstance(metavar, str) else ' '.join(metavar)
            needed.append(f'{option} {values}' if action.option_strings else values)
    parser.usage = fill(f'{" ".join(needed)} [OPTION ...]', WIDTH - len('usage: '))
    parser.set_defaults(run=command.run)


def add_methods(commands: Any, name: str, methods: Mapping[str, Command]) -> None:
    """Add a subcommand with subcommands of its own, one of which is required."""
    text = f'Options of a method: inertial-estimation {name} METHOD --help'
    parser = _parser(commands, name, COMMANDS[name], '', text)
    ways = parser.add_subparsers(dest='way', metavar='METHOD', required=True)
    for way, command in methods.items():
        add_command(ways, way, command, name)


def _parser(commands: Any, name: str, job: str, more: str, epilog: str) -> Any:
    """Add a parser whose help does not break lines within an option."""
    description, epilog = (
        fill(text, WIDTH, break_on_hyphens=False)
        for text in (f'{job[0].upper()}{job[1:]}. {more}', epilog)
    )
    return commands.add_parser(
        name, help=job, description=description, epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
