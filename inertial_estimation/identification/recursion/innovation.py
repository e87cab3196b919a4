# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Innovation test of new equations, and what has changed where they fail it.

New equations are judged by what they add to the least squares of all: their noise if they agree,
however little is known yet (the normalised innovation [Bar-Shalom 2001, 5.4]). Those that add much
more are rejected. Either a contact acts on the submodel, or one of its links has another mass (a
payload), or an offset has jumped. The last two explain all equations since, once the unknowns that
changed are released; a contact does not. While the motion cannot distinguish them, equations stay
rejected.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.errors_in_variables import StateErrors
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.recursion.memory import FORCES, MOMENTS, SubmodelMemory
from inertial_estimation.identification.row_space import wandered

USUAL_SHARE = 0.1
"""Weight of a new window in the usual innovation."""
SWAY_SHARE = 1.0 / 30.0
"""Weight of a new window in the usual sway of offsets, which depends on the posture."""
SUFFIXES = (4, 8, 16)
"""Numbers of newest windows to explain: the first ones may contain the grasp."""
MAX_REJECTED = 16
"""Windows that are kept while they are rejected."""
AGREEMENT = 3.0
"""Mean square over the usual one up to which an explanation holds: a load adds errors."""
DISTINCTION = 100.0
"""Sum of squares over the usual mean square by which one explanation must be better."""
SWAY = 2.0, 0.2
"""Sway of force and moment offsets within a window, or the noise where that is larger [N, Nm]."""
MAX_SWAY = 100.0
"""Square of the sway of offsets over the usual one from which a window is rejected."""
PAYLOAD = np.array([5.0, *(1.0,) * 3, *(0.2,) * 6])
"""Standard deviations of the change of a link by a payload [kg, kg m, kg m^2]."""
MAX_MASS_DEVIATION = 0.1
"""Of a mass with offsets released, up to which motion distinguishes both [kg]."""


class Change(Enum):
    """Change of a submodel."""

    TOUCHED = 'touched'
    """An unknown wrench acts: equations are rejected."""
    FREE = 'free'
    """That is over."""
    BODY = 'body'
    """One of its links has another mass."""
    OFFSET = 'offset'
    """An FT sensor has another offset."""
    BEGUN = 'begun'
    """It moves as never before, and starts again."""


class SampleWindow(NamedTuple):
    """Whitened equations of consecutive samples."""

    rows: Information
    seconds: float
    """That they span."""
    errors: StateErrors | None = None
    """Errors of the state in them."""


class InnovationTest:
    """Test of the windows of one submodel, of which the newest is held back until the next."""

    def __init__(self, memory: SubmodelMemory, link: int, gate: float) -> None:
        self._memory, self._gate = memory, gate
        self.usual = 1.0
        """Usual mean square of the innovation."""
        self._sways = 1.0
        self._link: Indices = np.arange(10 * link, 10 * link + 10)
        self._waiting: tuple[SampleWindow, float, float] | None = None
        """The newest window, its innovation and its sway."""
        self._rejected: deque[SampleWindow] = deque(maxlen=MAX_REJECTED)

    @property
    def rejecting(self) -> bool:
        """True if equations are rejected now."""
        return bool(self._rejected)

    def judge(self, new: SampleWindow) -> tuple[Sequence[SampleWindow], Change | None]:
        """Test a window; return the windows to be added, and a change detected just now."""
        memory = self._memory
        assert memory.information is not None
        before = memory.information.merge(memory.loose_prior())
        size, sway = self._added(before, [new]), self._sway(before, new)
        waiting, self._waiting = self._waiting, None
        if size > self._gate**2 * self.usual or sway > MAX_SWAY * self._sways:
            change = None if self._rejected else Change.TOUCHED
            self._rejected.append(new)
            return self._explanation(before) or ([], change)
        if self._rejected:
            # The end of the contact may be in this window.
            self._rejected.clear()
            return [], Change.FREE
        self._waiting = new, size, sway
        if waiting is None:
            return [], None
        window, size, sway = waiting
        # Only of accepted windows: the beginning of a change is not usual.
        self.usual += USUAL_SHARE * (max(size, 1.0) - self.usual)
        self._sways += SWAY_SHARE * (max(sway, 1.0) - self._sways)
        return [window], None

    def _added(self, before: Information, windows: Sequence[SampleWindow]) -> float:
        """Return the mean square that windows add to the least squares."""
        rows = [one.rows for one in windows]
        return (before.merge(*rows).energy - before.energy) / sum(one.count for one in rows)

    def _sway(self, before: Information, new: SampleWindow) -> float:
        """Return the square of the change of offsets that would explain a window, normalised."""
        offsets, noise = self._memory.offsets, self._memory.noise
        if not len(offsets):
            return 0.0
        loose = wandered(before, offsets, np.full(len(offsets), np.inf))
        kinds = FORCES[0], MOMENTS[0]
        sizes = [max(s, noise.get(kind, 0.0)) for s, kind in zip(SWAY, kinds, strict=True)]
        swaying = wandered(before, offsets, self._memory.offset_scales(*sizes))
        cost = self._added(swaying, [new]) - self._added(loose, [new])
        return new.rows.count * cost / self.usual

    def _explanation(self, before: Information) -> tuple[Sequence[SampleWindow], Change] | None:
        """Return the newest rejected windows and the one change that explains them."""
        memory = self._memory
        releases = {
            Change.BODY: (self._link, PAYLOAD),
            Change.OFFSET: (memory.offsets, np.full(len(memory.offsets), np.inf)),
        }
        released = {change: wandered(before, *one) for change, one in releases.items()}
        for length in (some for some in SUFFIXES if some <= len(self._rejected)):
            windows = list(self._rejected)[-length:]
            if not self._distinguishes(released[Change.OFFSET], windows):
                continue
            sizes = {change: self._added(rows, windows) for change, rows in released.items()}
            best, other = sorted(sizes, key=lambda change: sizes[change])
            margin = (sizes[other] - sizes[best]) * sum(one.rows.count for one in windows)
            if sizes[best] <= AGREEMENT * self.usual and margin > DISTINCTION * self.usual:
                memory.release(*releases[best])
                self._rejected.clear()
                return windows, best
        return None

    def _distinguishes(self, before: Information, windows: Sequence[SampleWindow]) -> bool:
        """Return true if windows determine a change of mass with the offsets released."""
        n, k = before.n, len(self._link)
        later = [one.rows.R for one in windows]
        stacked = np.zeros((n * (1 + len(later)) + k, n + k))
        stacked[:n, :n] = before.R
        for start, R in enumerate(later, start=1):
            stacked[start * n : start * n + n] = np.hstack([R, R[:, self._link]])
        stacked[-k:, n:] = np.diag(1.0 / PAYLOAD)
        column: Array = np.zeros(n + k)
        column[n] = 1.0
        triangle: Array = np.asarray(np.linalg.qr(stacked, mode='r'))
        root = np.linalg.lstsq(triangle.T, column, rcond=None)[0]
        return bool(np.linalg.norm(root) <= MAX_MASS_DEVIATION)
