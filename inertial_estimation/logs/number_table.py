# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files of plain numbers with named columns: npz and csv."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError

Array = NDArray[np.float64]

SEPARATORS = {';': 'semicolons', '\t': 'tabs'}
"""Of columns, other than commas."""


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of a file; each holds one or more values at an instant."""

    path: str
    columns: Mapping[str, Array]
    twice: frozenset[str] = frozenset()
    """Names that several columns have: which of them `columns` holds is a matter of chance."""

    def column(self, name: str, wanted_by: str) -> Array:
        """Returns (n, k)."""
        if name not in self.columns:
            known = ', '.join(self.columns)
            raise LogError(f"{self.path} has no column '{name}' for {wanted_by}; it has {known}")
        if name in self.twice:
            raise LogError(
                f"{self.path} has several columns '{name}': rename those that {wanted_by} does "
                'not mean'
            )
        values = self.columns[name]
        if values.ndim > 2 or values.dtype.kind not in 'fiu':
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} holds no plain numbers")
        if not len(values):
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} is empty")
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def load_table(path: str | Path) -> Table:
    """Read a file of numbers."""
    path = Path(path)
    readers = {'.npz': _load_npz, '.csv': _load_csv}
    if path.suffix not in readers:
        raise LogError(
            f"{path} is neither npz nor csv, whose columns 'log' names; for bags name the node's "
            "parameter file, as 'parameters' in place of 'log' and 'robot'"
        )
    try:
        return Table(str(path), *readers[path.suffix](path))
    except OSError as error:
        raise LogError(f'cannot read {path}: {error.strerror or error}') from error
    except ValueError as error:
        raise LogError(f'{path} is no {path.suffix[1:]} of numbers: {error}') from error


def _load_npz(path: Path) -> tuple[dict[str, Array], frozenset[str]]:
    """Return arrays, those that would have to be unpickled left out, and names of several."""
    from zipfile import BadZipFile, is_zipfile

    if path.is_file() and not is_zipfile(path):
        raise ValueError('it is no zip archive')
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in file.files if _is_plain(file, name)}
            return found, _twice(file.files)
    except BadZipFile as error:
        raise ValueError(str(error)) from error


def _is_plain(file: Any, name: str) -> bool:
    """Tell whether an array of a file holds numbers along time."""
    try:
        return bool(file[name].ndim >= 1)
    except ValueError:
        return False


def _load_csv(path: Path) -> tuple[dict[str, Array], frozenset[str]]:
    """Return the columns of a file with a header, and names of several."""
    import csv

    # Some programs begin a file in UTF-8 with a mark that is no part of the first name.
    with path.open(newline='', encoding='utf-8-sig') as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        _require_commas(header)
        values = [_numbers(row, header, rows.line_num) for row in rows if row]
    if not header or not values:
        raise ValueError('it holds no header and rows')
    return dict(zip(header, np.array(values).T, strict=True)), _twice(header)


def _twice(names: Iterable[str]) -> frozenset[str]:
    """Return the names that are there more than once."""
    return frozenset(name for name, count in Counter(names).items() if count > 1)


def _require_commas(header: Sequence[str]) -> None:
    """Raise if a header is one name that something else than a comma seems to separate."""
    for mark, name in SEPARATORS.items():
        if len(header) == 1 and mark in header[0]:
            raise ValueError(
                f'{name} separate its columns, expected commas, and points in numbers'
            )


def _numbers(row: Sequence[str], header: Sequence[str], line: int) -> list[float]:
    """Return the numbers of a row, NaN for empty cells."""
    if len(row) != len(header):
        raise ValueError(f'line {line} has {len(row)} cells, not {len(header)}')
    try:
        return [float(cell) if cell.strip() else np.nan for cell in row]
    except ValueError:
        name, cell = next(one for one in zip(header, row, strict=True) if not _is_number(one[1]))
        raise ValueError(f"line {line} holds '{cell}' in column '{name}'") from None


def _is_number(cell: str) -> bool:
    """Tell whether a cell is empty or holds a number."""
    try:
        float(cell.strip() or 'nan')
    except ValueError:
        return False
    return True
