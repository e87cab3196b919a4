# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files of plain numbers with named columns: npz and csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of a file; each holds one or more values at an instant."""

    path: str
    columns: Mapping[str, Array]

    def column(self, name: str, wanted_by: str) -> Array:
        """
        Return one column.

        Parameters
        ----------
        name : str
            Its name.
        wanted_by : str
            What asks for it, for messages.

        Returns
        -------
        ndarray, shape (n, k)

        Raises
        ------
        LogError
            If there is no such column, or it is not as long as the others.

        """
        if name not in self.columns:
            known = ', '.join(self.columns)
            raise LogError(f"{self.path} has no column '{name}' for {wanted_by}; it has {known}")
        values = self.columns[name]
        if values.ndim > 2 or values.dtype.kind not in 'fiu':
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} holds no plain numbers")
        if not len(values):
            raise LogError(f"{self.path}: column '{name}' for {wanted_by} is empty")
        return np.asarray(values, dtype=np.float64).reshape(len(values), -1)


def load_table(path: str | Path) -> Table:
    """
    Read a file of numbers.

    Parameters
    ----------
    path : str or Path
        npz: arrays whose first axis is time; csv: a line with the names of the columns first.

    Returns
    -------
    Table

    Raises
    ------
    LogError
        If the file cannot be read as such.

    """
    path = Path(path)
    readers = {'.npz': _load_npz, '.csv': _load_csv}
    if path.suffix not in readers:
        raise LogError(f'{path} is neither npz nor csv')
    try:
        return Table(str(path), readers[path.suffix](path))
    except OSError as error:
        raise LogError(f'cannot read {path}: {error.strerror or error}') from error
    except ValueError as error:
        raise LogError(f'{path} is no {path.suffix[1:]} of numbers: {error}') from error


def _load_npz(path: Path) -> dict[str, Array]:
    """Return the arrays of a file; those that would have to be unpickled are not touched."""
    from zipfile import BadZipFile, is_zipfile

    if path.is_file() and not is_zipfile(path):
        raise ValueError('it is no zip archive')
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files if _is_plain(file, name)}
    except BadZipFile as error:
        raise ValueError(str(error)) from error


def _is_plain(file: Any, name: str) -> bool:
    """Tell whether an array of a file holds numbers along time."""
    try:
        return bool(file[name].ndim >= 1)
    except ValueError:
        return False


def _load_csv(path: Path) -> dict[str, Array]:
    """Return the columns of a file with a header."""
    import csv

    with path.open(newline='', encoding='utf-8') as file:
        rows = csv.reader(file)
        header = [name.strip() for name in next(rows, [])]
        values = [[float(cell) if cell.strip() else np.nan for cell in row] for row in rows if row]
    if not header or not values:
        raise ValueError('it holds no header and rows')
    ragged = next((k for k, row in enumerate(values) if len(row) != len(header)), None)
    if ragged is not None:
        raise ValueError(f'row {ragged + 2} has {len(values[ragged])} cells, not {len(header)}')
    return dict(zip(header, np.array(values).T, strict=True))
