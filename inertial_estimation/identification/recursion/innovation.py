# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Innovation test of the new equations of a submodel, and what has changed where they fail it.

New equations are judged by what they add to the least squares of all: their noise if they agree,
however little is known yet (the normalised innovation [Bar-Shalom 2001, 5.4]). Those that add much
more are rejected. Either a contact acts on the submodel, or one of its links has another mass (a
payload), or an offset has jumped. The last two explain all equations since, once the unknowns that
changed are released; a contact does not. While the motion cannot distinguish them, equations stay
rejected.

Noise that was estimated at rest, or while something touched the robot, is wrong later, and so are
equations from before a joint, an IMU or an offset was right. So the memory starts again from the
newest equations if these determine the parameters about as well as all before, each in units of
its own noise, and have far less noise, or contradict those before far more than their own halves
contradict each other. While something touches a robot that moves, the noise is too large for that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from enum import Enum
from functools import reduce
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.information import Information, absorb
from inertial_estimation.identification.recursion.memory import FORCES, MOMENTS, SubmodelMemory
from inertial_estimation.identification.recursion.payload import PayloadFit
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.row_space import DEPENDENT, wandered

MIN_SQUARE = 0.3
"""
Square of the noise of the newest equations over that before, from which this is that of a wrong
start: geometric mean of forces, moments and efforts. Wrong FT matrices alone let it fall to 0.33.
"""
CONTRADICTION = 10.0
"""
Squares that the newest equations and those before add together, over what halves of the newest
add, from which they contradict: errors of the model are in both. At least one by unknown.
"""
MIN_GAIN_SHARE = 0.8
"""Information of the newest equations over that before, from which they may contradict it."""
LONGEST_START = 4.0
"""
Most time before the newest equations that these may contradict, over the warm-up. Later, limbs
that move in turn contradict where FT matrices err.
"""
COMPARED_SPAN = 2.0
"""Most time of the newest equations that may replace a start, over the warm-up."""
COMPARED_WINDOWS = 5
"""Newest windows whose residuals compare the fit with the prior."""

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
    errors: Array
    """Products of the errors of the state in them."""
    matrices: Array
    """The same of the errors of FT matrices."""
    seconds: float
    """That they span."""


class _Added(NamedTuple):
    """A window as evidence and whitened, and what was known before it."""

    evidence: Evidence
    window: SampleWindow
    before: SubmodelMemory


class InnovationTest:
    """Test of the windows of one submodel, of which the newest is held back until the next."""

    def __init__(self, memory: SubmodelMemory, link: Indices, gate: float) -> None:
        self._memory, self._link, self._gate = memory, link, gate
        # The link whose mass may change, by its columns.
        self.usual = 1.0
        """Usual mean square of the innovation."""
        self._sways = 1.0
        self._waiting: tuple[SampleWindow, float, float] | None = None
        """The newest window, its innovation and its sway."""
        self._rejected: deque[SampleWindow] = deque(maxlen=MAX_REJECTED)

    @property
    def rejecting(self) -> bool:
        return bool(self._rejected)

    def judge(self, new: SampleWindow) -> tuple[Sequence[SampleWindow], Change | None]:
        """Test a window; return the windows to be added, and a change detected just now."""
        memory = self._memory
        assert memory.information is not None
        before = memory.information.merge(memory.loose_prior)
        size, sway = self._size_and_sway(before, new.rows)
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

    def _size_and_sway(self, before: Information, new: Information) -> tuple[float, float]:
        """
        Return the mean square that a window adds to the least squares, and what of it is sway.

        That is the square of the change of offsets that would explain the window, normalised.
        """
        offsets, noise = self._memory.offsets, self._memory.noise
        n, k = before.n, len(offsets)
        # Those of the window are those before plus a change, whose columns stand behind.
        above, below = np.zeros((n + k + 1, n + k + 1), order='F'), np.zeros((n, n + k + 1))
        above[:n, :n], above[:n, n:-1], above[:n, -1] = before.R, before.R[:, offsets], before.rho
        below[:, :n], below[:, -1] = new.R, new.rho
        left = absorb(above, below, triangular=True)[n:, n:]
        size = (float(np.sum(left[:, -1] ** 2)) + new.energy) / new.count
        if not k:
            return size, 0.0
        kinds = FORCES[0], MOMENTS[0]
        sizes = [max(s, noise.get(kind, 0.0)) for s, kind in zip(SWAY, kinds, strict=True)]
        scales = self._memory.offset_scales(*sizes)
        U, strengths, _ = np.linalg.svd(left[:-1, :-1] * scales)
        seen = strengths > DEPENDENT * np.linalg.norm(before.R[:, offsets] * scales)
        along = (U.T @ left[:-1, -1])[seen]
        return size, float(np.sum(along**2 / (1.0 + strengths[seen] ** 2))) / self.usual

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


class SubmodelIdentifier:
    """Recursive identification of one submodel: test, memory and residuals of new equations."""

    def __init__(self, memory: SubmodelMemory, settings: RecursionSettings) -> None:
        self.memory, self.name, self._settings = memory, memory.name, settings
        links = memory.block.unknowns.links
        named = [k for k, link in enumerate(links) if link in settings.payload_links]
        carrier = named[0] if named else len(links) - 1
        self._carrier: Indices = np.arange(10 * carrier, 10 * carrier + 10)
        """Columns of the link that carries payloads."""
        self._restart()

    def _restart(self) -> None:
        self.found: Array | None = None
        """All unknowns of the last fit, shape (n_unknowns,)."""
        self._prior_fit: Array | None = None
        self.prior_residuals: Mapping[str, float] = {}
        """Rms of the newest equations before they were added, of the prior, by kind [N, Nm]."""
        self.residuals: Mapping[str, float] = {}
        """The same of the last fit."""
        self.rejected_seconds = 0.0
        """Time for which equations have been rejected up to now [s]."""
        self._test: InnovationTest | None = None
        self.payload: PayloadFit | None = None
        """Fit of the payload that was detected last."""
        self._ratios: deque[float] = deque(maxlen=COMPARED_WINDOWS)
        self._newest: deque[Evidence] = deque(maxlen=COMPARED_WINDOWS)
        self._recent: deque[_Added] = deque()
        """Newest windows."""

    @property
    def agreeing(self) -> bool:
        """True if equations were tested, and are not rejected now."""
        return self._test is not None and not self._test.rejecting

    @property
    def residual_ratio(self) -> float:
        """Residual of the fit over that of the prior, median of the newest windows."""
        return float(np.median(self._ratios or 1.0))

    def residual_ratio_in_use(self, subtracted: Array) -> float:
        """Return the same with the offsets that would be subtracted, of all sensors."""
        columns = self.memory.offsets
        if not len(columns) or self.found is None or self._prior_fit is None:
            return 1.0
        prior, found = self._prior_fit.copy(), self.found.copy()
        used = subtracted[self.memory.own]
        none, zero = np.isnan(used), self.memory.shift
        prior[columns] = np.where(none, zero, prior[columns] + used - found[columns])
        found[columns] = np.where(none, zero, used)
        ratios = [self._ratio(new.residuals(prior), new.residuals(found)) for new in self._newest]
        return float(np.median(ratios or 1.0))

    def set_fit(self, x: Array) -> None:
        """Set the fit with which new equations are compared, shape (n_unknowns,)."""
        self._prior_fit, self.found = self.memory.prior_fit, x

    def add(self, new: Evidence, elapsed: float, seconds: float) -> Change | None:
        """
        Add equations unless they fail the test.

        elapsed: time since the last samples; seconds: time with equations [s].
        """
        memory = self.memory
        memory.drift(elapsed)
        if self.payload:
            self.payload.drift(memory.offsets, memory.walks(elapsed))
        if not new.count:
            return None
        if memory.information is None:
            self._newest.append(new)
            memory.warm_up(new, seconds)
            return None
        memory.follow_efforts(new)
        before, whitened = memory.information, memory.whitened(new)
        if whitened is None:
            self._compare(new, seconds)
            return None
        window = SampleWindow(*whitened, seconds)
        accepted: Sequence[SampleWindow] = [window]
        change, rejecting = None, False
        if self._settings.gate:
            self._test = self._test or InnovationTest(memory, self._carrier, self._settings.gate)
            accepted, change = self._test.judge(window)
            rejecting = self._test.rejecting
        self.rejected_seconds = self.rejected_seconds + seconds if rejecting else 0.0
        if self._replaces_start(new, window, change):
            self._restart()
            return Change.BEGUN
        if change is Change.BODY:
            # A fit of the change beyond what was known.
            link = memory.block.unknowns.links[self._carrier[0] // 10]
            self.payload = PayloadFit(link, self._carrier, before.merge(memory.loose_prior))
        for one in accepted:
            memory.absorb(*one)
            if self.payload:
                self.payload.add(one.rows, one.seconds)
        # The residual of a fit before a change is no noise.
        if change is not None:
            self._ratios.clear()
            self._newest.clear()
        elif not rejecting:
            self._newest.append(new)
            self._compare(new, seconds)
        return change

    def forget_recent(self) -> None:
        """Compare no windows from before a change of the memory."""
        self._recent.clear()

    def _replaces_start(self, new: Evidence, window: SampleWindow, change: Change | None) -> bool:
        """Start the memory again from the newest equations if its start was wrong."""
        recent, longest = self._recent, COMPARED_SPAN * self._settings.warm_up
        if change in (Change.BODY, Change.OFFSET):
            recent.clear()
        recent.append(_Added(new, window, copy(self.memory)))
        while len(recent) > 2 and sum(one.window.seconds for one in [*recent][1:]) > longest:
            recent.popleft()
        # As long as what they replace: fits of a shorter time contradict each other by less.
        older = recent[0].before
        needed = max(min(older.seconds, longest), self._settings.warm_up)
        if len(recent) < 2 or sum(one.window.seconds for one in recent) < needed:
            return False
        memory, x, known = self.memory, self.found, older.information
        assert known is not None
        prior = memory.loose_prior
        windows, rows = [one.evidence for one in recent], [one.window.rows for one in recent]

        def excess(one: Information, other: Information) -> float:
            """Return the squares that two sets of equations add together, by unknown."""
            apart = one.merge(prior).energy + other.merge(prior).energy
            return (one.merge(other, prior).energy - apart) / prior.n

        # Mostly the last fit shows that nothing is wrong. It takes far less, and leaves the most;
        # what is best for each window leaves the least.
        square = self._mean_square(_residuals(windows))
        if square >= MIN_SQUARE and x is not None:
            left = sum(part.squared_residual(x) - part.energy for part in (known, *rows))
            if left <= CONTRADICTION * prior.n * min(square, 1.0):
                return False
        both = reduce(Information.merge, rows)
        square = self._mean_square(_residuals(windows, _solution(both.merge(prior))))
        is_quiet = square < MIN_SQUARE
        if not is_quiet:
            if older.seconds > LONGEST_START * self._settings.warm_up:
                return False
            half = len(rows) // 2
            first, last = (
                reduce(Information.merge, some).scaled(square**-0.5)
                for some in (rows[:half], rows[half:])
            )
            usual = max(excess(first, last), 1.0)
            if excess(known, first.merge(last)) <= CONTRADICTION * usual:
                return False
        begun, newest = copy(memory), reduce(Evidence.merge, windows)
        # With the least noise the gain is largest; the search for it takes ten times longer.
        begun.set_equations(newest, _residuals(windows, _solution(both.merge(prior))))
        # Rest after motion is quiet too, and its large gain hides what it does not determine.
        least = (1.0 if is_quiet else MIN_GAIN_SHARE) * older.gain
        if begun.gain < least or not begun.begin(newest) or begun.gain < least:
            return False
        # Few equations leave less than their noise.
        if is_quiet and self._mean_square(begun.noise) >= MIN_SQUARE:
            return False
        begun.seconds += self.rejected_seconds
        self.memory = begun
        return True

    def _mean_square(self, levels: Mapping[str, float]) -> float:
        """Return the square of levels by kind over the noise: of groups the geometric mean."""
        squares = list(self._squares(levels).values()) or [1.0]
        return float(np.prod(squares) ** (1.0 / len(squares)))

    def _compare(self, new: Evidence, seconds: float) -> None:
        """Compare fit and prior on new equations, and let the noise follow the residuals."""
        if self.found is None or self._prior_fit is None:
            return
        self.prior_residuals = new.residuals(self._prior_fit)
        self.residuals = new.residuals(self.found)
        self._ratios.append(self._ratio(self.prior_residuals, self.residuals))
        self.memory.adapt_noise(self.residuals, seconds)

    def _ratio(self, prior: Mapping[str, float], found: Mapping[str, float]) -> float:
        """Return the residual of a fit over that of the prior, at least the noise."""
        was, now = self._squares(prior), self._squares(found)
        return float(np.sqrt(max((now[k] / max(was[k], 1.0) for k in now), default=1.0)))

    def _squares(self, levels: Mapping[str, float]) -> dict[str, float]:
        """Return mean squares over the noise, of forces, moments and efforts."""
        squares: dict[str, list[float]] = {}
        for kind, level in self.memory.noise.items():
            if np.isfinite(levels.get(kind, np.nan)):
                group = kind.partition(' ')[0].partition('_')[0]
                squares.setdefault(group, []).append((levels[kind] / level) ** 2)
        return {group: float(np.mean(own)) for group, own in squares.items()}


def _residuals(windows: Sequence[Evidence], x: Array | None = None) -> dict[str, float]:
    """Return the rms residual of each kind for some unknowns, or for the best of each window."""
    found = {}
    for kind in windows[0].kinds:
        parts = [one.kinds[kind] for one in windows]
        if count := sum(one.count for one in parts):
            squares = (one.energy if x is None else one.squared_residual(x) for one in parts)
            found[kind] = float(np.sqrt(sum(squares) / count))
    return found


def _solution(information: Information) -> Array:
    """Return unknowns that fit best, (n,); zero where no equations are."""
    from scipy.linalg import solve_triangular

    R = information.R + np.diag(np.diag(information.R) == 0.0)
    return np.asarray(solve_triangular(R, information.rho))
