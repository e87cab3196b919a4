# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of one submodel: test, memory and residuals of new equations.

Before a submodel was excited, friction, drives and errors of the model show when joints move fast
for the first time, and look like a contact that never ends. Motion changes the regressor and a
contact does not, so the memory starts again from rejected equations if they determine more
combinations than all before.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.equations.wrenches import EFFORT
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.recursion.innovation import (
    Change,
    InnovationTest,
    SampleWindow,
)
from inertial_estimation.identification.recursion.memory import (
    SubmodelMemory,
    determined_combinations,
    whitened,
    whitened_errors,
)
from inertial_estimation.identification.recursion.payload import Payload, PayloadFit
from inertial_estimation.identification.recursion.settings import RecursionSettings

COMPARED_WINDOWS = 5
"""Newest windows whose residuals compare the fit with the prior."""


@dataclass(frozen=True)
class Rejection:
    """Equations of a submodel that are rejected now."""

    kind: str
    """Kind of equation with the largest residual over its noise."""
    residual: float
    """Root mean square [N, Nm]."""
    noise: float
    """Its usual size [N, Nm]."""
    seconds: float
    """Since when [s]."""


class SubmodelIdentifier:
    """Recursive identification of one submodel."""

    def __init__(self, memory: SubmodelMemory, settings: RecursionSettings) -> None:
        self.memory, self.name, self._settings = memory, memory.name, settings
        links = memory.block.unknowns.links
        named = [k for k, link in enumerate(links) if link in settings.payload_links]
        self._carrier = named[0] if named else len(links) - 1
        self._restart()

    def _restart(self) -> None:
        """Forget all but the memory."""
        self.found: Array | None = None
        """All unknowns of the last fit, shape (n_unknowns,)."""
        self._prior_fit: Array | None = None
        self.prior_residuals: Mapping[str, float] = {}
        """Rms of the newest equations before they were added, of the prior, by kind [N, Nm]."""
        self.residuals: Mapping[str, float] = {}
        """The same of the last fit."""
        self.rejection: Rejection | None = None
        self._test: InnovationTest | None = None
        self._payload: PayloadFit | None = None
        self._ratios: deque[float] = deque(maxlen=COMPARED_WINDOWS)
        self._newest: deque[Evidence] = deque(maxlen=COMPARED_WINDOWS)
        self._first_motion: Evidence | None = None
        """Equations that were rejected since the last ones that agreed, and their time [s]."""
        self._moving = 0.0

    @property
    def rejecting(self) -> bool:
        """True if equations are rejected now."""
        return self._test is not None and self._test.rejecting

    @property
    def agreeing(self) -> bool:
        """True if equations were tested, and are not rejected now."""
        return self._test is not None and not self._test.rejecting

    @property
    def payload(self) -> Payload | None:
        """The payload that was detected last."""
        return self._payload.payload() if self._payload else None

    @property
    def residual_ratio(self) -> float:
        """Residual of the fit over that of the prior, median of the newest windows."""
        return float(np.median(self._ratios or 1.0))

    def residual_ratio_in_use(self, x: Array, subtracted: Array) -> float:
        """Return the same for unknowns (n_unknowns,) with the offsets that would be subtracted."""
        columns = self.memory.offsets
        if not len(columns):
            return 1.0
        prior, found, used = self.memory.prior_fit(), x.copy(), subtracted[self.memory.own]
        none, zero = np.isnan(used), self.memory.shift
        prior[columns] = np.where(none, zero, prior[columns] + used - found[columns])
        found[columns] = np.where(none, zero, used)
        ratios = [self._ratio(new.residuals(prior), new.residuals(found)) for new in self._newest]
        return float(np.median(ratios or 1.0))

    def set_fit(self, x: Array) -> None:
        """Set the fit with which new equations are compared, shape (n_unknowns,)."""
        self._prior_fit, self.found = self.memory.prior_fit(), x

    def add(self, new: Evidence, elapsed: float, seconds: float) -> Change | None:
        """
        Add equations unless they fail the test.

        elapsed: time since the last samples; seconds: time with equations [s].
        """
        memory = self.memory
        memory.drift(elapsed)
        if self._payload:
            self._payload.drift(memory.offsets, memory.walks(elapsed))
        if not any(part.count for part in new.kinds.values()):
            return None
        if memory.information is None:
            self._newest.append(new)
            memory.warm_up(new, seconds)
            return None
        memory.follow_efforts(new)
        rows, before = whitened(new, memory.noise), memory.information
        if rows is None:
            self._compare(new, seconds)
            return None
        window = SampleWindow(rows, seconds, whitened_errors(new, memory.noise))
        accepted: Sequence[SampleWindow] = [window]
        change = None
        if self._settings.gate:
            self._test = self._test or InnovationTest(memory, self._carrier, self._settings.gate)
            accepted, change = self._test.judge(window)
        self._note_rejection(new, seconds)
        if not self.rejecting:
            self._first_motion, self._moving = None, 0.0
        elif self._begins(new, seconds):
            self._restart()
            return Change.BEGUN
        if change is Change.BODY:
            # A fit of the change beyond what was known.
            columns = np.arange(10 * self._carrier, 10 * self._carrier + 10)
            link = memory.block.unknowns.links[self._carrier]
            self._payload = PayloadFit(link, columns, before.merge(memory.loose_prior()))
        for one in accepted:
            memory.absorb(*one)
            if self._payload:
                self._payload.add(one.rows, one.seconds)
        # The residual of a fit before a change is no noise.
        if change is not None:
            self._ratios.clear()
            self._newest.clear()
        elif not self.rejecting:
            self._newest.append(new)
            self._compare(new, seconds)
        return change

    def _begins(self, new: Evidence, seconds: float) -> bool:
        """Keep rejected equations; restart the memory from them if they are the first motion."""
        memory, weight = self.memory, self._settings.weight
        if memory.excited or not any(kind.startswith(EFFORT) for kind in memory.block.kinds):
            return False
        count = determined_combinations(memory, memory.corrected, weight)
        memory.excited = count >= self._settings.excited
        if memory.excited:
            return False
        kept = new if self._first_motion is None else self._first_motion.merge(new)
        self._first_motion, self._moving = kept, self._moving + seconds
        if self._moving < self._settings.warm_up:
            return False
        spanned, before = self._moving, memory.information
        self._first_motion, self._moving = None, 0.0
        assert before is not None
        if all(kind in memory.noise for kind, part in kept.kinds.items() if part.count):
            rows = whitened(kept, memory.noise)
            assert rows is not None
            after = determined_combinations(memory, before.merge(rows), weight)
            if after <= determined_combinations(memory, before, weight):
                return False
        if not memory.begin(kept):
            return False
        memory.seconds += spanned
        return True

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
        squares: dict[str, list[tuple[float, float]]] = {}
        before, after = self._in_noise(prior), self._in_noise(found)
        # Of forces, moments and efforts.
        for kind in after:
            group = kind.partition(' ')[0].partition('_')[0]
            squares.setdefault(group, []).append((before[kind] ** 2, after[kind] ** 2))
        means = (np.mean(own, axis=0) for own in squares.values())
        return float(np.sqrt(max((now / max(was, 1.0) for was, now in means), default=1.0)))

    def _in_noise(self, residuals: Mapping[str, float]) -> dict[str, float]:
        """Return residuals over the noise of their kind, where both are known."""
        noise = self.memory.noise
        known = {kind: r for kind, r in residuals.items() if kind in noise and np.isfinite(r)}
        return {kind: residual / noise[kind] for kind, residual in known.items()}

    def _note_rejection(self, new: Evidence, seconds: float) -> None:
        if not self.rejecting:
            self.rejection = None
            return
        residuals = new.residuals(self.memory.prior_fit() if self.found is None else self.found)
        if shares := self._in_noise(residuals):
            worst = max(shares, key=lambda kind: shares[kind])
            before = self.rejection.seconds if self.rejection else 0.0
            noise = self.memory.noise[worst]
            self.rejection = Rejection(worst, residuals[worst], noise, before + seconds)
