# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The verb ``calibrate``: what FT sensors really say, with a verb of its own for each way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from inertial_estimation.verbs.calibrate import (
    added_masses,
    affine,
    live,
    offsets,
    saved,
    temperature,
    tool,
    without_model,
)
from inertial_estimation.verbs.options import add_ways

LIVE = '--live'
"""Also names the way ``live``."""


def add(verbs: Any) -> None:
    """Add the verb that calibrates FT sensors, with its ways."""
    ways = add_ways(verbs, 'calibrate', 'find out what FT sensors really say')
    for way in (offsets, without_model, added_masses, affine, temperature, tool, live, saved):
        way.add(ways)
    _accept_option(verbs.choices['calibrate'])


def _accept_option(parser: Any) -> None:
    """Let ``--live`` in front stand for the way ``live``."""
    parse = parser.parse_known_args

    def renamed(arguments: Sequence[str] | None = None, *more: Any, **named: Any) -> Any:
        given = list(arguments or ())
        if given[:1] == [LIVE]:
            given[0] = LIVE.removeprefix('--')
        return parse(given, *more, **named)

    parser.parse_known_args = renamed
