# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How large friction, offset and drive inertia of a joint may well be: a weak prior for short logs.

A second of data hardly tells the friction of a joint from its offset and its drive inertia, and
such unknowns grow without bounds where nothing draws them to zero. Friction may well take the
whole effort of a joint at a velocity of one, its drive no more than a fifth of it at an
acceleration of one, and its offset, which gravity is easily taken for, a twentieth.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.unknowns import Extra, Term

Array = NDArray[np.float64]

SHARES = {Term.VISCOUS: 1.0, Term.COULOMB: 1.0, Term.OFFSET: 0.05, Term.DRIVE_INERTIA: 0.2}
"""Of the effort of a joint, at a velocity or an acceleration of one in SI units."""


def friction_scales(evidence: Evidence, x: Array | None = None) -> Array:
    """
    Return for each unknown beside inertial parameters how far from zero it may well be.

    x (n_unknowns,); returns (n_extras,).
    """
    efforts = evidence.signals(x)
    extras = evidence.block.unknowns.extras
    of_payloads = {
        extra: payload.scale(extra)
        for payload in evidence.block.payloads
        for extra in payload.extras()
    }
    scales = [of_payloads.get(extra, _scale(extra, efforts)) for extra in extras]
    return np.array(scales, dtype=np.float64)


def _scale(extra: Extra, efforts: dict[str, float]) -> float:
    """Return the scale of one unknown."""
    known = [efforts.get(f'effort {joint}', np.nan) for joint in extra.of.split('+')]
    if extra.term not in SHARES:
        return np.inf
    size = SHARES[extra.term] * float(np.mean(known))
    return size if size > 0 else np.inf
