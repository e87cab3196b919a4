# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What an experiment of a source finds: tables, and whether they are as the source says.

A module of an experiment has a ``NAME`` of its own and ``run(folder)``, which takes the folder of
the data sets and returns a `Finding`. The experiments are listed in `run.EXPERIMENTS`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from inertial_estimation.table import Table


class Expectation(NamedTuple):
    """A relation that a source states."""

    text: str
    """The relation, with the figures that were found."""
    holds: bool

    @property
    def note(self) -> str:
        """A sentence for a person."""
        return f'{"holds" if self.holds else "DOES NOT HOLD"}: {self.text}'


@dataclass(frozen=True, eq=False)
class Finding:
    """What an experiment finds."""

    name: str
    """Source and experiment."""
    tables: tuple[Table, ...]
    """Titles name the source and its table."""
    notes: tuple[str, ...]
    """What is expected and whether it holds, one sentence each, as `Expectation.note`."""
    figures: dict[str, Any]
    """For a machine; what JSON can hold, so no infinities."""

    def as_dict(self) -> dict[str, Any]:
        """
        Return all figures for a machine.

        Returns
        -------
        dict
            The notes, then the figures.

        """
        return {'notes': list(self.notes), **self.figures}
