# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Recursive identification of one submodel: test, memory and residuals of new equations."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.information import Information
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

Array = NDArray[np.float64]

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


@dataclass(frozen=True, eq=False)
class Residuals:
    """Root mean square of the newest equations before they were added, by kind [N, Nm]."""

    prior: Mapping[str, float]
    """Of the prior parameters with all else fitted."""
    found: Mapping[str, float]
    """Of the last fit."""


class SubmodelIdentifier:
    """Recursive identification of one submodel; `found`: its last fit, shape (n_unknowns,)."""

    def __init__(self, memory: SubmodelMemory, settings: RecursionSettings) -> None:
        self.memory, self._settings = memory, settings
        self._first_motion = FirstMotion(memory, settings)
        self._restart()

    def _restart(self) -> None:
        """Forget all but the memory."""
        self.found: Array | None = None
        self.residuals: Residuals | None = None
        self.rejection: Rejection | None = None
        self._prior_fit: Array | None = None
        self._test: InnovationTest | None = None
        self._payload: PayloadFit | None = None
        self._ratios: deque[float] = deque(maxlen=COMPARED_WINDOWS)
        self._newest: deque[Evidence] = deque(maxlen=COMPARED_WINDOWS)

    @property
    def name(self) -> str:
        """Name of the submodel."""
        return self.memory.name

    @property
    def rejecting(self) -> bool:
        """Whether equations are rejected now."""
        return self._test is not None and self._test.rejecting

    @property
    def tested(self) -> bool:
        """Whether equations have been tested yet."""
        return self._test is not None

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

    @property
    def carrier(self) -> int:
        """Index, within the submodel, of the link that carries payloads."""
        links = self.memory.block.unknowns.links
        named = [k for k, link in enumerate(links) if link in self._settings.payload_links]
        return named[0] if named else len(links) - 1

    def set_fit(self, x: Array) -> None:
        """Set the fit with which new equations are compared, shape (n_unknowns,)."""
        self._prior_fit, self.found = self.memory.prior_fit(), x

    def recalibrate(self, change: Array) -> None:
        """Continue with more subtracted from the readings, one number for each offset [N, Nm]."""
        columns = self.memory.offsets
        self.memory.recalibrate(change)
        self._first_motion.recalibrate(change)
        if self._test is not None:
            self._test.recalibrate(change)
        if self._payload is not None:
            self._payload.recalibrate(columns, change)
        newest = (recalibrated_evidence(one, columns, change) for one in self._newest)
        self._newest = deque(newest, maxlen=COMPARED_WINDOWS)
        for name in ('found', '_prior_fit'):
            if (x := getattr(self, name)) is not None:
                x = x.copy()
                x[columns] -= change
                setattr(self, name, x)

    def payload(self) -> Payload | None:
        """Return the payload since the last one was detected."""
        return self._payload.payload() if self._payload else None

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
        rows = whitened(new, memory.noise)
        if rows is None:
            self._compare(new, seconds)
            return None
        return self._test_and_add(rows, new, seconds)

    def _test_and_add(self, rows: Information, new: Evidence, seconds: float) -> Change | None:
        """Add whitened equations unless they fail the test."""
        before = self.memory.information
        window = SampleWindow(rows, seconds, whitened_errors(new, self.memory.noise))
        verdict = self._verdict(window)
        self._note_rejection(new, seconds)
        if not self.rejecting:
            self._first_motion.clear()
        elif self._first_motion.add(new, seconds):
            self._restart()
            return Change.BEGUN
        if verdict.change is not None:
            self._ratios.clear()
            self._newest.clear()
        if verdict.change is Change.BODY and before is not None:
            self._payload = self._new_payload(before)
        for one in verdict.accepted:
            self.memory.absorb(*one)
            if self._payload:
                self._payload.add(one.rows, one.seconds)
        # The residual of a fit before a change is no noise.
        if not verdict.rejected and verdict.change is None:
            self._newest.append(new)
            self._compare(new, seconds)
        return verdict.change

    def _verdict(self, window: SampleWindow) -> Verdict:
        if not self._settings.gate:
            return Verdict((window,), 0, None)
        if self._test is None:
            self._test = InnovationTest(self.memory, self.carrier, self._settings.gate)
        return self._test.judge(window)

    def _compare(self, new: Evidence, seconds: float) -> None:
        """Compare fit and prior on new equations, and let the noise follow the residuals."""
        if self.found is None or self._prior_fit is None:
            return
        self.residuals = Residuals(new.residuals(self._prior_fit), new.residuals(self.found))
        self._ratios.append(self._ratio(self.residuals.prior, self.residuals.found))
        self.memory.adapt_noise(self.residuals.found, seconds)

    def _ratio(self, prior: Mapping[str, float], found: Mapping[str, float]) -> float:
        """Return the residual of a fit over that of the prior, at least the noise."""
        before, after = self._mean_squares(prior), self._mean_squares(found)
        ratios = [after[group] / max(before[group], 1.0) for group in after]
        return float(np.sqrt(max(ratios, default=1.0)))

    def _mean_squares(self, residuals: Mapping[str, float]) -> dict[str, float]:
        """Return the mean squares of forces, moments and efforts over their noise."""
        noise = self.memory.noise
        squares: dict[str, list[float]] = {}
        for kind, level in residuals.items():
            if kind in noise and np.isfinite(level):
                group = kind.partition(' ')[0].partition('_')[0]
                squares.setdefault(group, []).append((level / noise[kind]) ** 2)
        return {group: float(np.mean(own)) for group, own in squares.items()}

    def _note_rejection(self, new: Evidence, seconds: float) -> None:
        if not self.rejecting:
            self.rejection = None
            return
        x = self.memory.prior_fit() if self.found is None else self.found
        noise, residuals = self.memory.noise, new.residuals(x)
        shares = {
            kind: level / noise[kind]
            for kind, level in residuals.items()
            if kind in noise and np.isfinite(level)
        }
        if shares:
            worst = max(shares, key=lambda kind: shares[kind])
            before = self.rejection.seconds if self.rejection else 0.0
            self.rejection = Rejection(worst, residuals[worst], noise[worst], before + seconds)

    def _new_payload(self, before: Information) -> PayloadFit:
        """Return a fit of the change beyond what was known."""
        link = self.carrier
        columns = np.arange(10 * link, 10 * link + 10)
        without = before.merge(self.memory.loose_prior())
        return PayloadFit(self.memory.block.unknowns.links[link], columns, without)
