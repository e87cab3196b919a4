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
EXTRAS = {'replay': 'bags', 'calibrate': 'bags', 'identify': 'identification,bags', 'demo': 'demo'}
"""Optional dependencies of the subcommands."""


class _Help(argparse.HelpFormatter):
    """Help whose lines do not end within an option, so that examples can be copied."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill a paragraph."""
        return fill(
            ' '.join(text.split()), width, initial_indent=indent, subsequent_indent=indent,
            break_on_hyphens=False,
        )  # fmt: skip


def add_verb(
    commands: Any, name: str, job: str, example: str, of: str = '', *, full: bool = False
) -> argparse.ArgumentParser:
    """Add a subcommand that may write JSON, and print more with ``--full``."""
    command: argparse.ArgumentParser = commands.add_parser(
        name, help=job, description=job, formatter_class=_Help,
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
        name, help=job, description=job, formatter_class=_Help,
        epilog=f'Options of a method: inertial-estimation {name} METHOD --help',
    )  # fmt: skip
    return command.add_subparsers(dest='way', metavar='METHOD', required=True)
