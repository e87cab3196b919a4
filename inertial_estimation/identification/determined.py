# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Combinations of unknowns that equations can determine, and those that a log does.

The former are base parameters, found at random states where everything moves [S 29-39]. A log that
does not excite some of them leaves them to the prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import Block, EquationBuilder
from inertial_estimation.identification.information import Information
from inertial_estimation.model.base_parameters import (
    BaseParameters,
    conditioning_order,
    unexcited_directions,
)

Array = NDArray[np.float64]

EXCITED = 1e-6
"""
Singular value of scaled equations of a log over the largest from which a combination is
determined: filters and stamps leave more than round-off.
"""


@dataclass(frozen=True, eq=False)
class Determined:
    """Combinations of one submodel."""

    base: BaseParameters
    """That equations of these kinds can determine."""
    seen: BaseParameters
    """That these equations do determine."""
    deviations: Array
    """Of those by the equations alone, of unit noise, shape (n_seen,) [S 81-83]."""
    missing: tuple[str, ...]
    """Those that they do not, named by the unknowns that stand for them."""

    @property
    def possible(self) -> int:
        """Number of combinations that equations can determine."""
        return self.base.rank

    @property
    def reached(self) -> int:
        """Number of those that are determined."""
        return self.seen.rank


def determinable(builder: EquationBuilder, seed: int = 0) -> list[BaseParameters]:
    """Return the base parameters of each submodel."""
    # Of equations that are not reduced: reduction leaves round-off in columns that are zero.
    found = []
    samples = builder.random_samples(seed)
    systems = builder.equations(samples, carried=builder.in_turn(samples))
    for block, rows in zip(builder.blocks, systems, strict=True):
        information = Information.empty(len(block.unknowns))
        for Y, y, _ in rows.values():
            information = information.add(Y, y)
        order = conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
        found.append(BaseParameters.of_regressor(information.R, order))
    return found


def determined(block: Block, base: BaseParameters, rows: Information) -> Determined:
    """Return the combinations that some equations determine."""
    unseen = unexcited_directions(rows.R[:, base.independent], EXCITED)
    # In an order that conditions well, the last ones are expressed by the others.
    seen = BaseParameters.of_null_space(unseen, np.arange(base.rank)).within(base)
    found = set(seen.independent.tolist())
    names = block.unknowns.names
    lost = tuple(names[k] for k in base.independent.tolist() if k not in found)
    return Determined(base, seen, _deviations(rows.R[:, seen.independent]), lost)


def _deviations(R: Array) -> Array:
    """Return standard deviations of independent unknowns, infinite without equations."""
    scales = np.linalg.norm(R, axis=0)
    seen, found = scales > 0.0, np.full(len(scales), np.inf)
    triangle = np.linalg.qr(R[:, seen] / scales[seen], mode='r')
    found[seen] = np.linalg.norm(np.linalg.inv(triangle), axis=1) / scales[seen]
    return found
