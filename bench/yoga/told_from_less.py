# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What telling bodies from less than the node asks for does to predictions.

Where sensors are wrong by more than bodies are, bodies that explain readings predict worse ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.yoga.predictions import (
    IDENTIFIED,
    PAST,
    Choice,
    Told,
    rms,
    submodels,
    telling,
)
from inertial_estimation.table import Table

Array = NDArray[np.float64]

EASILY_TOLD = Choice(0.1, 1), Choice(0.01, 1), Choice(1e-4, 4)
"""Told from less than the node asks for: what that does to predictions."""


class Chosen(NamedTuple):
    """What came of a choice of what is told."""

    refits: int
    telling: int
    """Of them tell bodies that are not the description's."""
    submodels: tuple[str, ...]
    """Whose bodies."""
    least_margin: float
    """Smallest eigenvalue of a body that was fitted."""
    worst: float
    """Largest of the errors over those with the best constant offset of the past."""

    @classmethod
    def of(cls, told: Sequence[Told], found: Mapping[str, Array]) -> Chosen:
        """
        Sum up.

        found (n, 2, 6) [N, Nm].
        """
        return cls(
            len(told),
            telling(told),
            submodels(told),
            min(one.least_margin for one in told),
            float((rms(found[IDENTIFIED]) / rms(found[PAST])).max()),
        )


def choices_table(choices: Mapping[Choice, Chosen]) -> Table:
    """Return what came of choices, for a person."""
    rows = [
        (
            f'{choice.prior_weight:g}', str(choice.least_told),
            f'{one.telling} of {one.refits}', ', '.join(one.submodels),
            f'{one.least_margin:.3g}', f'{one.worst:.3f}',
        )
        for choice, one in choices.items()
    ]  # fmt: skip
    columns = (
        'prior_weight', 'least_told', 'refits that tell bodies', 'of submodels',
        'smallest eigenvalue', f'largest error / {PAST}',
    )  # fmt: skip
    return Table('Bodies told from less than the node asks for', columns, tuple(rows))
