# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What files hold in names, lists and values, before anybody goes through it.

Going through what is nested without end, or holds itself, ends where Python's stack does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

DEEPEST = 60
"""Lists in lists and names below names; no file of this package has ten."""
MOST = 5_000_000
"""Values: a few lines of YAML can stand for more than there is memory for."""


def from_json(text: str) -> Any:
    """Return what a text holds."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError(_too_deep()) from None
    check_nested(found)
    return found


def check_nested(data: Any) -> None:
    """Refuse what nobody can go through."""
    count, level = 0, [data]
    for _ in range(DEEPEST + 1):
        below: list[Any] = []
        for one in level:
            parts = one.values() if isinstance(one, Mapping) else one
            if isinstance(one, (Mapping, list, tuple, set)):
                count += len(parts)
                if count > MOST:
                    raise ValueError(f'it holds more than {MOST} values')
                below += (part for part in parts if isinstance(part, (Mapping, list, tuple, set)))
        if not below:
            return
        level = below
    raise ValueError(_too_deep())


def _too_deep() -> str:
    """Say what is wrong."""
    return f'it is nested deeper than {DEEPEST} times, or holds itself'
