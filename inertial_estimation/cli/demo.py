# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``demo``."""

from __future__ import annotations

import argparse

from inertial_estimation.cli.render import escape, show, write_json
from inertial_estimation.demo import run as demo


def run(chosen: argparse.Namespace) -> None:
    """Push a simulated robot, and compare the estimates with the true wrenches."""
    found = demo.run(chosen.duration, seed=chosen.seed, say=lambda line: show(escape(line)))
    write_json(chosen.json, found)
