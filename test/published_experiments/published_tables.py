# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters that S prints: of a robot of three links in Table 1, of the WAM in Table 6.

Each vector is tested against the 6x6 cone of S, which leaves out the triangle inequality, and
against the 4x4 cone, which does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.feasibility import (
    BaseParameterCheck,
    check_base_parameters,
)
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from published_experiments.data_sets import read_table
from published_experiments.wam_arm import WamArm, link_symbols
from published_experiments.wam_experiment import bounds

Array = NDArray[np.float64]

TABLE_1 = 'papers/seed003_table1_3link.csv'
"""File below the folder of the data sets."""
VECTORS, CORRECTED = ('beta_t1', 'beta_t2'), 'beta_t2_corrected'
"""Columns of Table 1."""
DIGITS = 4
"""Of the values of Table 6."""
OLS, FBPE = 'ols', 'fbpe_ols_extra'
"""Columns of Table 6."""


@dataclass(frozen=True, eq=False)
class ThreeLinks:
    """The robot of Table 1 and the vectors that are printed."""

    base: BaseParameters
    unknowns: Unknowns
    columns: dict[str, Array]
    """Shape (n_base,) each."""

    @classmethod
    def read(cls, folder: Path) -> ThreeLinks:
        """Read the table."""
        rows = read_table(folder / TABLE_1, ('combination', *VECTORS, CORRECTED))
        links = range(1, 4)
        symbols = [symbol for k in links for symbol in link_symbols(k)]
        return cls(
            BaseParameters.parse([row['combination'] for row in rows], symbols),
            Unknowns(tuple(f'link_{k}' for k in links)),
            {name: np.array([float(row[name]) for row in rows]) for name in (*VECTORS, CORRECTED)},
        )

    def check(self, column: str, consistency: Consistency) -> BaseParameterCheck:
        """Test one of the vectors."""
        return check_base_parameters(
            self.base, self.columns[column], self.unknowns, consistency=consistency
        )


def table6(arm: WamArm, column: str) -> tuple[Array, Array]:
    """
    Return an estimate of Table 6.

    Returns (69,).
    """
    values = np.array([float(row[column]) for row in arm.table6])
    return values, 0.5 * 10.0 ** (np.floor(np.log10(np.abs(values))) - DIGITS + 1)


def check_table6(
    arm: WamArm,
    column: str,
    consistency: Consistency,
    *,
    everything: bool = False,
    rounded: bool = False,
) -> BaseParameterCheck:
    """Test an estimate of Table 6."""
    values, half_digit = table6(arm, column)
    return check_base_parameters(
        arm.table3, values, arm.unknowns, consistency=consistency,
        bounds=bounds(arm, everything), rounding=half_digit if rounded else None,
    )  # fmt: skip
