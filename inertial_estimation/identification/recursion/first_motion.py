# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows of efforts that disagree before anything was learned: a touch, or the first real motion.

Friction, drives and what a description is off by show when joints move. The noise that efforts
have at rest or in slow motion is far less than what a model leaves of them in fast motion, which
then looks like a touch that never ends. A touch does not change what rows multiply; motion does.
So while rows have told too little of a submodel, those that disagree are kept, and where they
would tell more combinations of parameters than rows before did, all begins anew with them. Once
enough was told this is over: what disagrees then is left to the watch.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.recursion.excitation import combinations_told
from inertial_estimation.identification.recursion.knowledge import EFFORT, Knowledge
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.shifted_offsets import shifted_evidence
from inertial_estimation.identification.recursion.units_of_noise import in_units_of_noise

Array = NDArray[np.float64]


class FirstMotion:
    """Of one submodel."""

    def __init__(self, knowledge: Knowledge, settings: RecursionSettings) -> None:
        self._known, self._settings = knowledge, settings
        self._kept: Evidence | None = None
        self._seconds = 0.0

    def clear(self) -> None:
        """Forget rows: others have agreed since."""
        self._kept, self._seconds = None, 0.0

    def shift_offsets(self, change: Array) -> None:
        """
        Go on as if more had been subtracted from all readings.

        change (k,) [N, Nm].
        """
        if self._kept is not None:
            self._kept = shifted_evidence(self._kept, self._known.offsets, change)

    def add(self, evidence: Evidence, seconds: float) -> bool:
        """
        Keep rows that disagree.

        seconds [s].
        """
        if not self._may_begin():
            return False
        self._kept = evidence if self._kept is None else self._kept.merge(evidence)
        self._seconds += seconds
        if self._seconds < self._settings.warm_up:
            return False
        kept, spanned = self._kept, self._seconds
        self.clear()
        if not self._moves(kept) or not self._known.begin(kept):
            return False
        self._known.seconds += spanned
        return True

    def _may_begin(self) -> bool:
        """Return whether there are efforts, and nothing was learned yet."""
        known = self._known
        if known.learned or not any(kind.startswith(EFFORT) for kind in known.block.kinds):
            return False
        assert known.told is not None
        told = combinations_told(known, known.told, self._settings.weight)
        known.learned = told >= self._settings.excited
        return not known.learned

    def _moves(self, evidence: Evidence) -> bool:
        """Return whether rows tell what those before did not, whatever was measured."""
        known = self._known
        if any(part.count and kind not in known.noise for kind, part in evidence.kinds.items()):
            return True
        rows = in_units_of_noise(evidence, known.noise)
        assert known.information is not None
        if rows is None:
            return False
        weight = self._settings.weight
        before = combinations_told(known, known.information, weight)
        return combinations_told(known, known.information.merge(rows), weight) > before
