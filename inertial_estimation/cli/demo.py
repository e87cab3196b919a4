# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``demo``."""

from __future__ import annotations

import argparse
from typing import Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb


def add(verbs: Any) -> None:
    """Add the verb that pushes a simulated robot, and gives it something to carry."""
    verb = add_verb(
        verbs, 'demo', 'a simulated iCub is pushed, and carries something: estimates and truth',
        '--duration 20 --json demo.json',
    )  # fmt: skip
    verb.add_argument(
        '--duration', type=float, default=60.0, metavar='S',
        help='whole run, of less than 37 s without a load [s] (default: %(default)g)',
    )  # fmt: skip
    verb.add_argument(
        '--seed', type=int, default=0, help='of motion, pushes and noise (default: %(default)d)'
    )
    verb.set_defaults(run=_run)


def _run(chosen: argparse.Namespace) -> int:
    """Push a simulated robot."""
    from inertial_estimation.demo.run import find_config, run

    files.check_outputs((chosen.json,), (find_config(),))
    return run(chosen.duration, chosen.json, seed=chosen.seed)
