# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files of data sets, which are not part of the package."""

from __future__ import annotations

import csv
import json
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError


def read_json(path: Path, keys: Sequence[str]) -> dict[str, Any]:
    """Return what a JSON file holds."""
    try:
        found: dict[str, Any] = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    _require(path, keys, found)
    return found


def read_table(path: Path, columns: Sequence[str]) -> list[dict[str, str]]:
    """Return the rows of a csv file by its first line."""
    try:
        with path.open(encoding='utf-8', newline='') as file:
            reader = csv.DictReader(file)
            rows = list(reader)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from None
    _require(path, columns, reader.fieldnames or ())
    return rows


def read_array(path: Path, name: str) -> NDArray[np.float64]:
    """Return an array of an npz file."""
    try:
        with np.load(path) as file:
            return np.asarray(file[name], dtype=float)
    except (OSError, ValueError, KeyError) as error:
        raise _unreadable(path, error) from None


def _require(path: Path, names: Sequence[str], there: Container[str]) -> None:
    """Raise unless a file holds all that is needed."""
    missing = [name for name in names if name not in there]
    if missing:
        raise ConfigError(f"'{path}' lacks {', '.join(missing)}")


def _unreadable(path: Path, error: Exception) -> ConfigError:
    """Return that a file cannot be read."""
    return ConfigError(f"'{path}' cannot be read: {error}")
