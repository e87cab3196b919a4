# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the bodies that were found of a submodel are better than those of the description."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.recursion.excitation import Excitation
from inertial_estimation.identification.recursion.submodel_identifier import SubmodelIdentifier

Array = NDArray[np.float64]

WORSE = 2.0
"""
What was found may leave of new rows so many times what the description does [rms], in the middle
of the newest stretches: what moves for the first time tells offsets anew, and is soon over.
"""
WORSE_IN_USE = 1.5
"""
The same without offsets that nothing tells, which nobody subtracts: true ones, left in, may hide
what bodies gain.
"""


def why_not(one: SubmodelIdentifier, seen: Excitation, excited: int) -> str:
    """Say why bodies are not told, whatever is subtracted beside them."""
    if seen.told < excited:
        return (
            f'rows tell {seen.told} combinations of parameters better than the '
            f'description does, {excited} are asked for: move it more; '
            "a smaller 'prior_weight' lets rows tell more beside the description"
        )
    if (worse := one.times_worse) > WORSE:
        return (
            f'what was found leaves {worse:.1f} times as much of new rows as the '
            'description does: something acts on it that nobody reports, or its rows do '
            'not say what they should'
        )
    return ''


def why_not_in_use(one: SubmodelIdentifier, x: Array, subtracted: Mapping[str, float]) -> str:
    """
    Say why bodies are not told, as they would be used.

    x (n_unknowns,); subtracted [N, Nm].
    """
    if (worse := one.times_worse_in_use(x, subtracted)) > WORSE_IN_USE:
        return (
            'without offsets that nothing tells, as it would be used, it leaves '
            f'{worse:.1f} times as much of new rows as the description does: weight and '
            'offset are not told apart; tilt it more, or, if sensors have no offset, set '
            "'ft_offsets: false'"
        )
    return ''
