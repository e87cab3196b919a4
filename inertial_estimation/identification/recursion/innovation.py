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

Whether new rows agree with what is known, and if not, what has changed.

New rows are judged by how much they add to the least squares of all: for rows that agree that is
their noise, however little is known yet (the normalised innovation [Bar-Shalom 2001, 5.4]). Rows
that add much more are kept apart. Three things may have happened: something touches the submodel,
its body has changed (a payload), or an offset has jumped. The last two explain all rows since,
once the unknowns that changed are let go; a touch does not. As long as motion is too poor to tell
one from the other nothing is decided.
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.errors_in_variables import StateErrors
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.recursion.memory import (
    EFFORT,
    FORCES,
    MOMENTS,
    SubmodelMemory,
    combinations_told,
    in_units_of_noise,
    shifted,
    shifted_evidence,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.row_space import wandered

Array = NDArray[np.float64]


class FirstMotion:
    """Of one submodel."""

    def __init__(self, knowledge: SubmodelMemory, settings: RecursionSettings) -> None:
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


Columns = NDArray[np.intp]

USUAL_SHARE = 0.1
"""Of a new stretch in what is usual."""
SWAY_SHARE = 1.0 / 30.0
"""The same of how far offsets usually sway, which some postures show and others do not."""
SUFFIXES = (4, 8, 16)
"""Newest stretches that an explanation is looked for in: the first ones may hold the grip."""
KEPT = 16
"""Stretches that are kept while they are suspect."""
AGREES = 3.0
"""
Times the usual mean square up to which rows agree with an explanation: a load makes errors of
accelerations weigh more than they did without it.
"""
BETTER = 100.0
"""Times the usual square by which one explanation must be better than the other, in all."""
KINDS = FORCES[0], MOMENTS[0]
SWAY = 2.0, 0.2
"""
How far forces and moments of an offset may go in a stretch before it is odd, or as far as the
noise of rows where that is more [N, Nm].
"""
JUMP = 100.0
"""Square of how many times as far they go if it is none of an offset."""
PAYLOAD = np.array([5.0, *(1.0,) * 3, *(0.2,) * 6])
"""How much a body may change by [kg, kg m, kg m^2]."""
CERTAIN = 0.1
"""
Standard deviation of a mass, with offsets and body let go, at which motion has told enough for one
not to pass for the other [kg].
"""


class Change(Enum):
    """What happened to a submodel."""

    TOUCHED = 'touched'
    """Something unknown acts on it: its rows are left out."""
    FREE = 'free'
    """That is over."""
    BODY = 'body'
    """One of its links has another mass."""
    OFFSET = 'offset'
    """An FT sensor has another offset."""
    BEGUN = 'begun'
    """It moves as never before, and its noise is told anew."""


class Stretch(NamedTuple):
    """Some rows of a submodel."""

    rows: Information
    """In units of their noise."""
    seconds: float
    """That they span."""
    errors: StateErrors | None = None
    """What errors of the state add to them; None: they have none."""


class Verdict(NamedTuple):
    """What is to be done with stretches of rows."""

    accepted: tuple[Stretch, ...]
    """To be worked in."""
    left_out: int
    """Stretches that are dropped."""
    change: Change | None
    """What has just happened."""


class Watch:
    """Of one submodel."""

    def __init__(self, knowledge: SubmodelMemory, link: int, gate: float) -> None:
        self._known, self._gate = knowledge, gate
        self.usual = 1.0
        self._sways = 1.0
        self._scales, self._prior = knowledge.scales, knowledge.loose_prior()
        self._body: Columns = np.arange(10 * link, 10 * link + 10)
        self._waiting: Stretch | None = None
        self._waiting_sizes = 0.0, 0.0
        self._suspect: deque[Stretch] = deque(maxlen=KEPT)
        self._dropped = 0

    @property
    def touched(self) -> bool:
        """Whether rows are suspect now."""
        return bool(self._suspect)

    def shift_offsets(self, change: Array) -> None:
        """
        Go on as if more had been subtracted from all readings.

        change (k,) [N, Nm].
        """

        def moved(one: Stretch) -> Stretch:
            columns, errors = self._known.offsets, one.errors
            return one._replace(
                rows=shifted(one.rows, columns, change),
                errors=None if errors is None else errors.shifted(columns, change),
            )

        self._waiting = None if self._waiting is None else moved(self._waiting)
        self._suspect = deque(map(moved, self._suspect), maxlen=KEPT)

    def judge(self, new: Stretch) -> Verdict:
        """Look at a stretch of rows."""
        before = self._before()
        size = self._added(before, (new,))
        far = self._sway(before, new)
        if size <= self._gate**2 * self.usual and far <= JUMP * self._sways:
            return self._agrees(new, size, far)
        was_free = not self._suspect
        waiting, self._waiting = self._waiting, None
        self._suspect.append(new)
        change = self._explanation(before)
        if change is not None:
            return change
        return Verdict((), 1 + (waiting is not None), Change.TOUCHED if was_free else None)

    def _agrees(self, new: Stretch, size: float, far: float) -> Verdict:
        """Return the verdict on rows that agree."""
        if self._suspect:
            # The end of what touched may be in these rows.
            self._suspect.clear()
            return Verdict((), 1, Change.FREE)
        waiting, self._waiting = self._waiting, new
        (last, way), self._waiting_sizes = self._waiting_sizes, (size, far)
        if waiting is None:
            return Verdict((), 0, None)
        # Not before it is accepted: the beginning of a change is nothing usual.
        self.usual += USUAL_SHARE * (max(last, 1.0) - self.usual)
        self._sways += SWAY_SHARE * (max(way, 1.0) - self._sways)
        return Verdict((waiting,), 0, None)

    def _before(self) -> Information:
        """Return what was known, with the prior."""
        known = self._known
        assert known.information is not None
        if known.scales is not self._scales:
            self._scales, self._prior = known.scales, known.loose_prior()
        return known.information.merge(self._prior)

    def _added(self, before: Information, stretches: tuple[Stretch, ...]) -> float:
        """Return the mean square that rows add."""
        rows = [one.rows for one in stretches]
        return (before.merge(*rows).energy - before.energy) / sum(one.count for one in rows)

    def _sway(self, before: Information, new: Stretch) -> float:
        """Return how far offsets would have to go to agree, as the square of how far they may."""
        offsets = self._known.offsets
        if not len(offsets):
            return 0.0
        loose = wandered(before, offsets, np.full(len(offsets), np.inf))
        noise = self._known.noise
        sway = [max(s, noise.get(kind, 0.0)) for s, kind in zip(SWAY, KINDS, strict=True)]
        swaying = wandered(before, offsets, self._known.offset_scales(*sway))
        cost = self._added(swaying, (new,)) - self._added(loose, (new,))
        return new.rows.count * cost / self.usual

    def _explanation(self, before: Information) -> Verdict | None:
        """Return what explains the newest suspect rows, if one thing does and the other not."""
        offsets = self._known.offsets
        loose = np.full(len(offsets), np.inf)
        body, offset = wandered(before, self._body, PAYLOAD), wandered(before, offsets, loose)
        for length in SUFFIXES:
            if length > len(self._suspect):
                break
            rows = tuple(self._suspect)[-length:]
            if not self._tells_apart(offset, rows):
                continue
            sizes = {
                Change.BODY: self._added(body, rows),
                Change.OFFSET: self._added(offset, rows),
            }
            best, other = sorted(sizes, key=lambda change: sizes[change])
            margin = (sizes[other] - sizes[best]) * sum(one.rows.count for one in rows)
            if sizes[best] <= AGREES * self.usual and margin > BETTER * self.usual:
                return self._changed(best, rows)
        return None

    def _tells_apart(self, before: Information, stretches: tuple[Stretch, ...]) -> bool:
        """
        Return whether rows tell by which mass a body has changed, beside offsets that are loose.
        """
        n, k = before.n, len(self._body)
        later = [one.rows.R for one in stretches]
        stacked = np.zeros((n * (1 + len(later)) + k, n + k))
        stacked[:n, :n] = before.R
        for start, R in enumerate(later, start=1):
            stacked[start * n : start * n + n] = np.hstack([R, R[:, self._body]])
        stacked[-k:, n:] = np.diag(1.0 / PAYLOAD)
        column: Array = np.zeros(n + k)
        column[n] = 1.0
        triangle: Array = np.asarray(np.linalg.qr(stacked, mode='r'))
        root = np.linalg.lstsq(triangle.T, column, rcond=None)[0]
        return bool(np.linalg.norm(root) <= CERTAIN)

    def _changed(self, change: Change, stretches: tuple[Stretch, ...]) -> Verdict:
        """Let go what changed, and take the rows that tell how."""
        known = self._known
        assert known.information is not None
        if change is Change.BODY:
            known.let_go(self._body, PAYLOAD)
        else:
            known.let_go(known.offsets, np.full(len(known.offsets), np.inf))
        self._suspect.clear()
        return Verdict(stretches, 0, change)
