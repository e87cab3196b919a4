# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters of each submodel as the rows so far tell them, without the prior's help.

Which combinations there are is a matter of the robot and its sensors; which of them the motion
has told, and how well, changes with every row. A combination that it has not told has no finite
standard deviation, however close the prior may hold it [S 81-83].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.determined import EXCITED, tellable
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.row_space import DETERMINED, RowSpace, eliminated

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class BaseValues:
    """Of one submodel."""

    submodel: str
    names: tuple[str, ...]
    """Combinations of unknowns that its rows can tell, as `BaseParameters.combinations`."""
    values: Array
    """What was found of them, shape (n_base,), in the unit of the unknown that stands first."""
    deviations: Array
    """Standard deviation of each as rows alone tell it, shape (n_base,); infinite: they do not."""
    rank: int
    """Independent combinations that rows tell."""


class BaseTable:
    """The base parameters of all submodels of a robot."""

    def __init__(self, builder: EquationBuilder) -> None:
        with one_thread():
            bases = tellable(builder)
        named = zip(builder.blocks, bases, strict=True)
        self._of = {
            block.submodel.name: (base, tuple(base.combinations(block.unknowns.names)))
            for block, base in named
        }

    @one_thread()
    def values(
        self, known: Sequence[SubmodelMemory], found: Mapping[str, Array]
    ) -> tuple[BaseValues, ...]:
        """
        Return what rows tell of them.

        found (n_unknowns,).
        """
        ready = [one for one in known if one.told is not None]
        names = tuple(dict.fromkeys(name for one in ready for name in one.offset_names))
        said = [_of_offsets(one, names) for one in ready]
        values = []
        for k, one in enumerate(ready):
            name = one.block.submodel.name
            if name not in found:
                continue
            base, labels = self._of[name]
            others = [part for j, part in enumerate(said) if j != k]
            rows = _with_offsets(one, names, others)
            deviations, rank = _told(base.grouping, RowSpace.of(rows, EXCITED))
            values.append(BaseValues(name, labels, base.of(found[name]), deviations, rank))
        return tuple(values)


def _told(grouping: Array, space: RowSpace) -> tuple[Array, int]:
    """Return the standard deviation of each combination, and how many of all rows tell."""
    scaled = grouping / space.scales
    lengths = np.linalg.norm(scaled, axis=1)
    # Not of the columns that stand for them: what others tell of offsets is of no base parameter.
    outside = scaled @ space.missing / lengths[:, None]
    deviations = np.linalg.norm(scaled @ space.directions / space.strengths, axis=1)
    deviations[np.linalg.norm(outside, axis=1) > DETERMINED] = np.inf
    lost = np.linalg.matrix_rank(outside, tol=DETERMINED) if outside.size else 0
    return deviations, len(grouping) - int(lost)


def _of_offsets(one: SubmodelMemory, names: Sequence[str]) -> Information:
    """Return what one submodel says of all offsets, whatever its other unknowns are."""
    information = one.told
    assert information is not None
    left = eliminated(information, one.inner)
    placed = np.zeros((left.n, len(names)))
    placed[:, [names.index(name) for name in one.offset_names]] = left.R
    return Information.empty(len(names)).add(placed, left.rho)


def _with_offsets(
    one: SubmodelMemory, names: Sequence[str], others: Sequence[Information]
) -> Array:
    """Return the rows of a submodel, and what others say of its offsets, (m, n_unknowns)."""
    information = one.told
    assert information is not None
    if not others or not len(one.offsets):
        return information.R
    own = [names.index(name) for name in one.offset_names]
    rest = np.setdiff1d(np.arange(len(names)), own)
    # Those it keeps stay in the order of all names, which need not be that of its columns.
    left = eliminated(others[0].merge(*others[1:]), rest)
    placed = np.zeros((left.n, information.n))
    placed[:, one.offsets[np.argsort(own)]] = left.R
    return np.vstack([information.R, placed])
