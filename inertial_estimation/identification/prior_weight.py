# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How much the prior weighs against the rows: as a share of them, or as a number of them.

Solvers take the mean of the rows, so a share pulls as much however long a log is. A number of
rows is what a prior is to Bayes: it rules while there are few rows and is forgotten as they grow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification.solvers.coordinates import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    require_weight,
)

_ROWS = re.compile(r'(?P<rows>[^-]+)-rows?')


@dataclass(frozen=True)
class PriorRows:
    """The weight of so many independent rows of unit noise."""

    rows: float

    def __post_init__(self) -> None:
        """Raise unless it is a weight."""
        require_weight(self.rows)

    def __str__(self) -> str:
        """Return what `prior_weight` reads."""
        return f'{self.rows:g}-row{"" if self.rows == 1.0 else "s"}'

    def of(self, count: float) -> float:
        """Return the weight against the mean of so many independent rows."""
        return self.rows / count


DEFAULT = PriorRows(10.0)
"""Of descriptions that are nearly right."""


def prior_weight(text: str) -> float | PriorRows:
    """Return the weight that a text says."""
    rows = _ROWS.fullmatch(text)
    try:
        if rows is not None:
            return PriorRows(float(rows['rows']))
        weight = float(text)
        require_weight(weight)
    except (ValueError, ModelError) as error:
        raise ConfigError(
            f"'{text}' is no weight of a prior: give a number from {LEAST_WEIGHT:g} to "
            f'{MOST_WEIGHT:g}, such as 0.01, or such a number of rows, as {DEFAULT}; without any '
            "prior use 'least_squares'"
        ) from error
    return weight


def against_the_mean(options: Mapping[str, Any], count: float) -> dict[str, Any]:
    """Return options of a solver whose weight is a number."""
    weight = options.get('weight', DEFAULT)
    return {**options, 'weight': weight.of(count) if isinstance(weight, PriorRows) else weight}
