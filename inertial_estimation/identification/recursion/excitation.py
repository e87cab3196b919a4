# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether rows tell of bodies what the prior does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.elimination import eliminated
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.recursion.knowledge import Knowledge
from inertial_estimation.identification.solvers.divergence import whitening

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Excitation:
    """Of one submodel."""

    told: int
    """Combinations of inertial parameters that rows tell better than the prior does."""
    seconds: float
    """Time with rows."""
    rows: float
    """Rows that count, old ones less."""


def excitation(known: Knowledge, weight: float) -> Excitation:
    """Return how much the rows of a submodel say of its bodies."""
    information = known.told
    assert information is not None
    told = combinations_told(known, information, weight)
    return Excitation(told, known.seconds, information.count)


def combinations_told(known: Knowledge, information: Information, weight: float) -> int:
    """
    Return how many combinations of inertial parameters some rows tell better than the prior does.
    """
    others = np.arange(known.block.unknowns.n_inertial, information.n)
    left: Information = eliminated(information, others)
    rows = left.R.reshape(left.n, -1, 10)
    whitened = np.einsum('nlj,ljk->nlk', rows, whitening(known.prior)).reshape(left.n, -1)
    strengths = np.linalg.svd(whitened, compute_uv=False)
    return int(np.sum(strengths**2 > weight * information.count))
