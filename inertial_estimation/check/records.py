# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Findings in rows: text for a person, names and numbers for a machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.check.table import Table

FEW = 3
"""So many neighbours are all named."""
TO = '…'
"""Stands for the names in between."""


@dataclass(frozen=True)
class Pose:
    """Where a frame is in another one; its text has four digits."""

    xyz_m: tuple[float, ...]
    """Position [m]."""
    rpy_rad: tuple[float, ...]
    """Roll, pitch, yaw about fixed axes [rad]."""

    @classmethod
    def of(cls, matrix: NDArray[np.float64]) -> Pose:
        """
        Return the pose of a homogeneous matrix.

        matrix (4, 4) [m].
        """
        from pinocchio.rpy import matrixToRpy

        xyz, rpy = matrix[:3, 3], matrixToRpy(matrix[:3, :3])
        return cls(*(tuple((values.round(9) + 0.0).tolist()) for values in (xyz, rpy)))

    def __str__(self) -> str:
        """Return it for a person."""
        xyz, rpy = (' '.join(f'{v:.4g}' for v in vs) for vs in (self.xyz_m, self.rpy_rad))
        return f'xyz {xyz} m, rpy {rpy} rad'


@dataclass(frozen=True)
class Action:
    """Which link's wrench on which other one a sensor reads."""

    acting_link: str
    on_link: str

    def __str__(self) -> str:
        """Return it for a person."""
        return f'{self.acting_link} on {self.on_link}'


@dataclass(frozen=True)
class Names:
    """Names that a person reads cut short: ``a … d`` stands for all from a to d in an order."""

    names: tuple[str, ...]
    order: tuple[str, ...] = ()

    @classmethod
    def of(cls, names: object, order: Sequence[str] = ()) -> Names:
        """Return names, in an order if there is one."""
        return cls(tuple(names) if isinstance(names, Iterable) else (), tuple(order))

    def __str__(self) -> str:
        """Return it for a person."""
        runs: list[list[str]] = []
        rows = {name: k for k, name in enumerate(self.order)}
        for name in self.names:
            last = rows.get(runs[-1][-1]) if runs else None
            if last is not None and rows.get(name) == last + 1:
                runs[-1].append(name)
            else:
                runs.append([name])
        return ', '.join(
            f'{run[0]} {TO} {run[-1]}' if len(run) > FEW else ', '.join(run) for run in runs
        )


Cell = str | float | tuple[str, ...] | Pose | Action | Names | None


class Findings(NamedTuple):
    """A table of values."""

    title: str
    columns: tuple[str, ...]
    """Names, with a unit in square brackets."""
    rows: tuple[tuple[Cell, ...], ...]
    nothing: str = '-'
    """Text in place of an empty list."""

    @property
    def table(self) -> Table:
        """The same as text."""
        rows = tuple(tuple(map(self._text, row)) for row in self.rows)
        return Table(self.title, self.columns, rows)

    def only(self, *columns: str) -> Findings:
        """Return some of the columns."""
        kept = [self.columns.index(column) for column in columns]
        rows = tuple(tuple(row[k] for k in kept) for row in self.rows)
        return self._replace(columns=columns, rows=rows)

    def records(self) -> list[dict[str, Any]]:
        """Return the rows for a machine."""
        keys = [key(column) for column in self.columns]
        return [dict(zip(keys, map(_plain, row), strict=True)) for row in self.rows]

    def _text(self, cell: Cell) -> str:
        """Return a value for a person."""
        if isinstance(cell, float):
            return f'{cell:.3f}'
        if isinstance(cell, (tuple, Names)):
            return str(cell if isinstance(cell, Names) else Names(cell)) or self.nothing
        return '-' if cell is None else str(cell)


def key(text: str) -> str:
    """Return a title as a key in snake case."""
    return re.sub('[^a-z0-9]+', '_', text.lower()).strip('_')


def _plain(cell: Cell) -> Any:
    """Return a value as JSON has it."""
    if isinstance(cell, (Pose, Action)):
        parts: dict[str, Any] = asdict(cell)
        return {name: list(v) if isinstance(v, tuple) else v for name, v in parts.items()}
    if isinstance(cell, Names):
        return list(cell.names)
    return list(cell) if isinstance(cell, tuple) else cell
