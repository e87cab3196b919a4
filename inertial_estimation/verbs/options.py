# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What all verbs have in common on the command line."""

from __future__ import annotations

import argparse
from pathlib import Path
from textwrap import fill
from typing import Any

WRONG_CALL = 2
"""As argparse returns for an option that it does not know."""
INTERRUPTED, PIPE_BROKEN = 130, 141
"""What a shell reports of a process that SIGINT or SIGPIPE ended."""
EXTRAS = {
    'replay': 'bags', 'calibrate': 'bags', 'identify': 'identification,bags', 'demo': 'demo',
}  # fmt: skip
"""What a verb needs beyond what every installation has."""


class _Help(argparse.HelpFormatter):
    """Help whose lines do not end within an option, which nobody could copy."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Fill a paragraph."""
        return fill(
            ' '.join(text.split()), width, initial_indent=indent, subsequent_indent=indent,
            break_on_hyphens=False,
        )  # fmt: skip


def add_verb(
    verbs: Any, name: str, job: str, example: str, of: str = ''
) -> argparse.ArgumentParser:
    """Add a verb that may write JSON."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=job, description=job, formatter_class=_Help,
        epilog=f'example: inertial-estimation {f"{of} {name}".strip()} {example}',
    )  # fmt: skip
    verb.add_argument(
        '--json', type=Path, metavar='FILE',
        help='also write what is found for a machine (default: no file)',
    )  # fmt: skip
    return verb


def add_ways(verbs: Any, name: str, job: str) -> Any:
    """Add a verb that has verbs of its own, one of which must be chosen."""
    verb: argparse.ArgumentParser = verbs.add_parser(
        name, help=job, description=job, formatter_class=_Help,
        epilog=f'options and an example of a way: inertial-estimation {name} WAY --help',
    )  # fmt: skip
    return verb.add_subparsers(dest='way', metavar='WAY', required=True)


def install_advice(verb: str) -> str:
    """Say how to get what a verb needs."""
    what = f"'.[{EXTRAS[verb]}]'" if verb in EXTRAS else '.'
    return f'in the checkout, run pip install {what}'
