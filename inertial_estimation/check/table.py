# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A table of text: what the jobs of the command hand over to be shown."""

from __future__ import annotations

from typing import NamedTuple

Row = tuple[str, ...]


class Table(NamedTuple):
    """A title, the names of the columns, and the rows."""

    title: str
    columns: Row
    rows: tuple[Row, ...]
