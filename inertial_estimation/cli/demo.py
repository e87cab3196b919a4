# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``demo``."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import COMMANDS, add_verb
from inertial_estimation.cli.render import write_json


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'demo', COMMANDS['demo'],
        '--duration 20 --json demo.json',
    )  # fmt: skip
    command.add_argument(
        '--duration', type=float, default=60.0, metavar='S',
        help='of all scenes [s]; from 29 on with a load to pick up (default: %(default)g)',
    )  # fmt: skip
    command.add_argument(
        '--seed', type=int, default=0, help='of motion, pushes and noise (default: %(default)d)'
    )
    command.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> None:
    """Push a simulated robot; live forces are shown on a terminal only."""
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    from inertial_estimation.demo.run import find_config, run

    files.check_outputs((chosen.json,), (find_config(),))
    console = Console(highlight=False, soft_wrap=True)
    with Live(console=console, transient=True) as live:
        found = run(
            chosen.duration, seed=chosen.seed, say=lambda line: console.print(Text(line)),
            show=lambda text: live.update(Text(text if console.is_terminal else '')),
        )  # fmt: skip
    write_json(chosen.json, found)
