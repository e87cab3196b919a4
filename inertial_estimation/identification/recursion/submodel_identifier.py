# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Recursive identification of one submodel: test, memory and residuals of new equations."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.recursion.innovation import (
    Change,
    FirstMotion,
    InnovationTest,
    SampleWindow,
    Verdict,
)
from inertial_estimation.identification.recursion.memory import (
    SubmodelMemory,
    recalibrated_evidence,
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
        self._first_motion = FirstMotion(memory, settings)
        self._restart()

    def _restart(self) -> None:
        """Forget all but the memory."""
        self.found: Array | None = None
        """All unknowns of the last fit, shape (n_unknowns,)."""
        self.prior_residuals: Mapping[str, float] = {}
        """Rms of the newest equations before they were added, of the prior, by kind [N, Nm]."""
        self.residuals: Mapping[str, float] = {}
        """The same of the last fit."""
        self.rejection: Rejection | None = None
        self._prior_fit: Array | None = None
        self._test: InnovationTest | None = None
        self._payload: PayloadFit | None = None
        self._ratios: deque[float] = deque(maxlen=COMPARED_WINDOWS)
        self._newest: deque[Evidence] = deque(maxlen=COMPARED_WINDOWS)

    @property
    def rejecting(self) -> bool:
        """Whether equations are rejected now."""
        return self._test is not None and self._test.rejecting

    @property
    def tested(self) -> bool:
        """Whether equations have been tested yet."""
        return self._test is not None

    @property
    def payload(self) -> Payload | None:
        """The payload that was detected last."""
        return self._payload.payload() if self._payload else None

    @property
    def residual_ratio(self) -> float:
        """Residual of the fit over that of the prior, median of the newest windows."""
        return float(np.median(self._ratios or 1.0))

    def residual_ratio_in_use(self, x: Array, subtracted: Mapping[str, float]) -> float:
        """Return the same for some unknowns with the offsets that would be subtracted [N, Nm]."""
        columns = self.memory.offsets
        if not len(columns):
            return 1.0
        prior, found = self.memory.prior_fit(), x.copy()
        used = np.array([subtracted.get(name, np.nan) for name in self.memory.offset_names])
        none = np.isnan(used)
        prior[columns] = np.where(none, 0.0, prior[columns] + used - found[columns])
        found[columns] = np.where(none, 0.0, used)
        ratios = [self._ratio(new.residuals(prior), new.residuals(found)) for new in self._newest]
        return float(np.median(ratios or 1.0))

    def set_fit(self, x: Array) -> None:
        """Set the fit with which new equations are compared, shape (n_unknowns,)."""
        self._prior_fit, self.found = self.memory.prior_fit(), x

    def recalibrate(self, change: Array) -> None:
        """Follow a change of the subtracted offsets, one number for each offset [N, Nm]."""
        columns = self.memory.offsets
        self.memory.recalibrate(change)
        self._first_motion.recalibrate(change)
        if self._test is not None:
            self._test.recalibrate(change)
        if self._payload is not None:
            self._payload.recalibrate(columns, change)
        newest = (recalibrated_evidence(one, columns, change) for one in self._newest)
        self._newest = deque(newest, maxlen=COMPARED_WINDOWS)
        moved = np.zeros(len(self.memory.block.unknowns))
        moved[columns] = change
        self.found = None if self.found is None else self.found - moved
        self._prior_fit = None if self._prior_fit is None else self._prior_fit - moved

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
        if self._settings.gate:
            self._test = self._test or InnovationTest(memory, self._carrier, self._settings.gate)
            verdict = self._test.judge(window)
        else:
            verdict = Verdict((window,), 0, None)
        self._note_rejection(new, seconds)
        if not self.rejecting:
            self._first_motion.clear()
        elif self._first_motion.add(new, seconds):
            self._restart()
            return Change.BEGUN
        if verdict.change is not None:
            self._ratios.clear()
            self._newest.clear()
        if verdict.change is Change.BODY:
            # A fit of the change beyond what was known.
            columns = np.arange(10 * self._carrier, 10 * self._carrier + 10)
            without = before.merge(memory.loose_prior())
            link = memory.block.unknowns.links[self._carrier]
            self._payload = PayloadFit(link, columns, without)
        for one in verdict.accepted:
            memory.absorb(*one)
            if self._payload:
                self._payload.add(one.rows, one.seconds)
        # The residual of a fit before a change is no noise.
        if not verdict.rejected and verdict.change is None:
            self._newest.append(new)
            self._compare(new, seconds)
        return verdict.change

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

        def mean_squares(residuals: Mapping[str, float]) -> dict[str, float]:
            """Return those of forces, moments and efforts over their noise."""
            squares: dict[str, list[float]] = {}
            for kind, share in self._in_noise(residuals).items():
                group = kind.partition(' ')[0].partition('_')[0]
                squares.setdefault(group, []).append(share**2)
            return {group: float(np.mean(own)) for group, own in squares.items()}

        before, after = mean_squares(prior), mean_squares(found)
        ratios = [after[group] / max(before[group], 1.0) for group in after]
        return float(np.sqrt(max(ratios, default=1.0)))

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
