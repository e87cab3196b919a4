# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``demo``."""

from __future__ import annotations

import argparse

from inertial_estimation.cli.arguments import COMMANDS, COUNT, NUMBER, Command
from inertial_estimation.cli.render import FULL_WIDTH, escape, show, write_json
from inertial_estimation.demo.run import run


def _run(chosen: argparse.Namespace) -> None:
    """Push a simulated robot, and compare the estimates with the true wrenches."""
    found = run(
        chosen.duration, seed=chosen.seed, say=lambda line: show(escape(line), width=FULL_WIDTH)
    )
    write_json(chosen.json, found)


COMMAND = Command(
    COMMANDS['demo'], '--duration 20 --json demo.json', _run,
    (('--duration', 'S',
      'of all scenes [s]; from 29 on with a load to pick up (default: %(default)g)',
      NUMBER | {'default': 60.0}),
     ('--seed', 'N', 'of motion, pushes and noise (default: 0)', COUNT | {'default': 0})),
)  # fmt: skip
