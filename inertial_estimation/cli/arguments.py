# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parsers that the subcommands share."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill
from typing import Any

WRONG_CALL = 2
"""Exit code of argparse for a wrong option."""
INTERRUPTED, PIPE_BROKEN = 130, 141
"""Exit codes that a shell reports after SIGINT and SIGPIPE."""
COMMANDS = {
    'check': 'describe a robot: sensors, submodels, dependence, consistency',
    'replay': 'run the estimator over a ROS 2 bag, without ROS',
    'calibrate': 'calibrate FT sensors',
    'excite': 'design an exciting motion for identification',
    'identify': 'identify inertial parameters from logs',
    'demo': 'estimate the wrenches of a simulated iCub that is pushed and carries a load',
}
"""Subcommands, and what they do."""
EXTRAS = {'replay': 'bags', 'calibrate': 'bags', 'identify': 'identification,bags', 'demo': 'demo'}
"""Optional dependencies of the subcommands."""
MAX_CHOICES = 40
"""Characters of choices in the name of an option; longer ones are part of its text."""


class _Help(argparse.HelpFormatter):
    """Help of 80 columns whose lines do not end within an option, to be copied."""

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """List what is required; options follow below."""
        needed = [one for one in actions if one.required or not one.option_strings]
        # Without prefix, it becomes part of the name of a subcommand.
        if prefix != '':
            needed.append(argparse.Action([], 'options', metavar='[OPTION ...]'))
        return super()._format_usage(usage, needed, [], prefix)

    def _metavar_formatter(self, action: argparse.Action, default: str) -> Any:
        """Name an option with many choices by itself."""
        if _has_many(action):
            return lambda size: (action.dest.upper(),) * size
        return super()._metavar_formatter(action, default)

    def _get_help_string(self, action: argparse.Action) -> str:
        """Return the text of an option, with many choices."""
        choices = f': {", ".join(action.choices or ())}' if _has_many(action) else ''
        return f'{action.help}{choices}'

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill a paragraph."""
        return fill(
            ' '.join(text.split()), width, initial_indent=indent, subsequent_indent=indent,
            break_on_hyphens=False,
        )  # fmt: skip


def _has_many(action: argparse.Action) -> bool:
    """Return true if an option has more choices than its name can hold."""
    return action.metavar is None and len(','.join(action.choices or ())) > MAX_CHOICES


def sentence(text: str) -> str:
    """Return a clause with a capital and a full stop."""
    return f'{text[0].upper()}{text[1:]}.'


def add_verb(
    commands: Any, name: str, job: str, example: str, of: str = '', *, full: bool = False
) -> argparse.ArgumentParser:
    """Add a subcommand that may write JSON, and print more with ``--full``."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=job, description=sentence(job), formatter_class=_Help,
        epilog=f'Example: inertial-estimation {f"{of} {name}".strip()} {example}',
    )  # fmt: skip
    command.add_argument('--json', type=Path, metavar='FILE', help='write all figures as JSON')
    if full:
        command.add_argument('--full', action='store_true', help='print all tables')
    return command


def add_options(command: argparse.ArgumentParser, *options: tuple[Any, ...]) -> None:
    """Add options, each as name, metavar, help, and further arguments of argparse."""
    for name, metavar, text, *more in options:
        named = {'metavar': metavar} if metavar else {}
        command.add_argument(name, help=text, **named, **dict(*more))


def add_ways(commands: Any, name: str, job: str) -> Any:
    """Add a subcommand with subcommands of its own, one of which is required."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=job, description=sentence(job), formatter_class=_Help,
        epilog=f'Options of a method: inertial-estimation {name} METHOD --help',
    )  # fmt: skip
    return command.add_subparsers(dest='way', metavar='METHOD', required=True)
