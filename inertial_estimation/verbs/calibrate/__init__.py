# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate``: what FT sensors really say, with a verb of its own for each way."""

from __future__ import annotations

from typing import Any

from inertial_estimation.verbs.calibrate import (
    added_masses,
    affine,
    offsets,
    saved,
    temperature,
    tool,
    without_model,
)
from inertial_estimation.verbs.options import add_ways


def add(verbs: Any) -> None:
    """
    Add the verb that calibrates FT sensors, with its ways.

    Parameters
    ----------
    verbs : object
        Where argparse keeps the verbs.

    """
    ways = add_ways(verbs, 'calibrate', 'find out what FT sensors really say')
    for way in (offsets, without_model, added_masses, affine, temperature, tool, saved):
        way.add(ways)
