# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of all kinds in units of their noise, which lets them stand in one triangle."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information, weighted_sum
from inertial_estimation.identification.information.state_errors import StateErrors
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS
from inertial_estimation.identification.unknowns import FT_OFFSET

FORCES, MOMENTS = COMPONENTS[:3], COMPONENTS[3:]


def alike(noise: Mapping[str, float]) -> dict[str, float]:
    """Return the same noise for all forces, and for all moments: it has no axes."""
    found = dict(noise)
    for kinds in (FORCES, MOMENTS):
        known = [noise[kind] for kind in kinds if kind in noise]
        if known:
            level = float(np.sqrt(np.mean(np.square(known))))
            found |= dict.fromkeys((kind for kind in kinds if kind in noise), level)
    return found


def in_units_of_noise(evidence: Evidence, noise: Mapping[str, float]) -> Information | None:
    """Return rows of all kinds together."""
    parts = {
        kind: part for kind, part in evidence.kinds.items() if part.count > 0 and kind in noise
    }
    if not parts:
        return None
    return weighted_sum(parts.values(), [1.0 / noise[kind] for kind in parts])


def errors_in_units_of_noise(evidence: Evidence, noise: Mapping[str, float]) -> StateErrors | None:
    """Return what errors of the state add to rows of all kinds together."""
    parts = [rows / noise[kind] for kind, rows in evidence.errors.items() if kind in noise]
    if not parts:
        return None
    unknowns = evidence.block.unknowns
    # The sign of a velocity that is almost zero is nothing that noise changes by little.
    friction = [k for k, extra in enumerate(unknowns.extras) if extra.term not in FT_OFFSET]
    columns = unknowns.n_inertial + np.array(friction, dtype=np.intp)
    return StateErrors.of(parts, len(unknowns)).without(columns)
