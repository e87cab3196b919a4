# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which combinations of unknowns rows could determine, and which of them a log does.

What rows of these kinds can tell at all shows at random states, where everything moves: their
base parameters [S 29-39]. A log that does not excite some of them leaves the prior to decide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.equations.builder import Block, EquationBuilder
from inertial_estimation.identification.information import Information
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.independent_columns import conditioning_order, unexcited_directions

Array = NDArray[np.float64]

EXCITED = 1e-6
"""
Singular values of the rows of a log, its columns scaled to length one, below this share of the
largest say nothing: filters and stamps leave more than round-off.
"""


@dataclass(frozen=True, eq=False)
class Determined:
    """What rows tell of the unknowns of one block."""

    base: BaseParameters
    """Combinations that rows of these kinds can determine."""
    seen: BaseParameters
    """Combinations that these rows do determine."""
    deviations: Array
    """Of those, as the rows alone tell them, shape (n_seen,) [S 81-83]."""
    missing: tuple[str, ...]
    """Of those that could be the ones that are not, named by the unknowns that stand for them."""

    @property
    def possible(self) -> int:
        """Number of combinations that rows of these kinds can determine."""
        return self.base.rank

    @property
    def reached(self) -> int:
        """Number of those that they do determine."""
        return self.seen.rank


def tellable(builder: EquationBuilder, seed: int = 0) -> list[BaseParameters]:
    """Return what the rows of each block can determine at all."""
    # Of the rows as they are: what is reduced has round-off in columns that say nothing.
    found = []
    samples = builder.random_samples(seed)
    systems = builder.equations(samples, carried=builder.in_turn(samples))
    for block, rows in zip(builder.blocks, systems, strict=True):
        information = Information.empty(len(block.unknowns))
        for Y, y, _ in rows.values():
            information = information.add(Y, y)
        found.append(BaseParameters.of_regressor(information.R, _order(block)))
    return found


def determined(block: Block, base: BaseParameters, rows: Information) -> Determined:
    """Return which combinations some rows determine."""
    kept = rows.R[:, base.independent]
    unseen = unexcited_directions(kept, EXCITED)
    # The last ones in an order that conditions well: what is left to determine the others by.
    order = np.arange(base.rank)
    seen = BaseParameters.of_null_space(unseen, order).within(base)
    told = set(seen.independent.tolist())
    names = block.unknowns.names
    lost = [names[k] for k in base.independent.tolist() if k not in told]
    return Determined(base, seen, _deviations(rows.R[:, seen.independent]), tuple(lost))


def in_words(missing: Sequence[str], most: int = 6) -> str:
    """Return names of what is missing, not all if there are many."""
    rest = len(missing) - most
    more = f' and {rest} more' if rest > 0 else ''
    return ', '.join(missing[:most]) + more


def _deviations(R: Array) -> Array:
    """Return standard deviations of independent unknowns, infinite without rows; unit noise."""
    scales = np.linalg.norm(R, axis=0)
    seen, found = scales > 0.0, np.full(len(scales), np.inf)
    triangle = np.linalg.qr(R[:, seen] / scales[seen], mode='r')
    found[seen] = np.linalg.norm(np.linalg.inv(triangle), axis=1) / scales[seen]
    return found


def _order(block: Block) -> NDArray[np.intp]:
    """Return the order of a block's columns that conditions well."""
    return conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
