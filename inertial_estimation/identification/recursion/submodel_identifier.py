# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Rows of one submodel: worked in or left out, and what was found is held against them."""

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
    Stretch,
    Verdict,
    Watch,
)
from inertial_estimation.identification.recursion.memory import (
    SubmodelMemory,
    errors_in_units_of_noise,
    in_units_of_noise,
    shifted_evidence,
)
from inertial_estimation.identification.recursion.payload import Payload, PayloadFit
from inertial_estimation.identification.recursion.settings import RecursionSettings

Array = NDArray[np.float64]

NEWEST = 5
"""Stretches by which what was found is held against the description."""


@dataclass(frozen=True)
class Withheld:
    """Rows of a submodel that are left out as they do not agree with what is known."""

    kind: str
    """The kind of row that is off by most times its noise, as in `Evidence.kinds`."""
    left: float
    """What is known leaves of it so much [rms; N, Nm]."""
    noise: float
    """And usually so much [N, Nm]."""
    seconds: float
    """For how long [s]."""


@dataclass(frozen=True, eq=False)
class Errors:
    """Root mean squares that were left of the newest rows before they were worked in [N, Nm]."""

    described: Mapping[str, float]
    """By the description, with all but its bodies fitted, for each kind of row."""
    found: Mapping[str, float]
    """By what had been found."""


class SubmodelIdentifier:
    """
    One submodel.

    found (n_unknowns,).
    """

    def __init__(self, knowledge: SubmodelMemory, settings: RecursionSettings) -> None:
        self.known, self._settings = knowledge, settings
        self._first_motion = FirstMotion(knowledge, settings)
        self._forget()

    def _forget(self) -> None:
        """Forget all but what is known."""
        self.found: Array | None = None
        self.errors: Errors | None = None
        self.withheld: Withheld | None = None
        self._described: Array | None = None
        self._watch: Watch | None = None
        self._payload: PayloadFit | None = None
        self._worse: deque[float] = deque(maxlen=NEWEST)
        self._newest: deque[Evidence] = deque(maxlen=NEWEST)

    @property
    def name(self) -> str:
        """Of the submodel."""
        return self.known.block.submodel.name

    @property
    def touched(self) -> bool:
        """Whether rows are suspect now."""
        return self._watch is not None and self._watch.touched

    @property
    def watched(self) -> bool:
        """Whether rows were judged yet."""
        return self._watch is not None

    @property
    def times_worse(self) -> float:
        """What was found leaves of new rows, over what the description leaves [rms]."""
        return float(np.median(self._worse or 1.0))

    def times_worse_in_use(self, x: Array, subtracted: Mapping[str, float]) -> float:
        """
        Return what bodies leave of the newest rows with no offsets but those that are subtracted.

        x (n_unknowns,); subtracted [N, Nm].
        """
        columns = self.known.offsets
        if not len(columns):
            return 1.0
        described, found = self.known.described(), x.copy()
        used = np.array([subtracted.get(name, np.nan) for name in self.known.offset_names])
        none = np.isnan(used)
        described[columns] = np.where(none, 0.0, described[columns] + used - found[columns])
        found[columns] = np.where(none, 0.0, used)
        return float(
            np.median([self._ratio(new, described, found) for new in self._newest] or 1.0)
        )

    @property
    def carrier(self) -> int:
        """Index of the link, among those of the submodel, that carries what it picks up."""
        links = self.known.block.unknowns.links
        named = [k for k, link in enumerate(links) if link in self._settings.payload_links]
        return named[0] if named else len(links) - 1

    def take_over(self, x: Array) -> None:
        """
        Note what a refit found, for new rows to be held against.

        x (n_unknowns,).
        """
        self._described, self.found = self.known.described(), x

    def shift_offsets(self, change: Array) -> None:
        """
        Go on as if more had been subtracted from all readings.

        change (k,) [N, Nm].
        """
        columns = self.known.offsets
        self.known.shift_offsets(change)
        self._first_motion.shift_offsets(change)
        if self._watch is not None:
            self._watch.shift_offsets(change)
        if self._payload is not None:
            self._payload.shift_offsets(columns, change)
        newest = (shifted_evidence(one, columns, change) for one in self._newest)
        self._newest = deque(newest, maxlen=NEWEST)
        self.found = _without(self.found, columns, change)
        self._described = _without(self._described, columns, change)

    def payload(self) -> Payload | None:
        """Return what is carried since something was picked up last."""
        return self._payload.payload() if self._payload else None

    def add(self, new: Evidence, elapsed: float, seconds: float) -> Change | None:
        """
        Let time pass, and work rows in unless they are suspect.

        elapsed [s]; seconds [s].
        """
        self.known.wait(elapsed)
        if self._payload:
            self._payload.wait(self.known.offsets, self.known.walks(elapsed))
        if not any(part.count for part in new.kinds.values()):
            return None
        if self.known.information is None:
            self._newest.append(new)
            self.known.warm_up(new, seconds)
            return None
        self.known.hear(new)
        rows = in_units_of_noise(new, self.known.noise)
        if rows is None:
            self._follow(new, seconds)
            return None
        return self._take(rows, new, seconds)

    def _take(self, rows: Information, new: Evidence, seconds: float) -> Change | None:
        """Work rows in units of their noise in, unless they are suspect."""
        before = self.known.information
        errors = errors_in_units_of_noise(new, self.known.noise)
        verdict = self._judged(Stretch(rows, seconds, errors))
        self._note_withheld(new, seconds)
        if self._begins(new, seconds):
            return Change.BEGUN
        if verdict.change is not None:
            self._worse.clear()
            self._newest.clear()
        if verdict.change is Change.BODY and before is not None:
            self._payload = self._payload_since(before)
        for stretch in verdict.accepted:
            self.known.absorb(*stretch)
            if self._payload:
                self._payload.add(stretch.rows, stretch.seconds)
        # What was found before a change leaves the change, which is no noise.
        if not verdict.left_out and verdict.change is None:
            self._newest.append(new)
            self._follow(new, seconds)
        return verdict.change

    def _judged(self, stretch: Stretch) -> Verdict:
        """Return what is to be done with rows."""
        if not self._settings.gate:
            return Verdict((stretch,), 0, None)
        if self._watch is None:
            self._watch = Watch(self.known, self.carrier, self._settings.gate)
        return self._watch.judge(stretch)

    def _begins(self, new: Evidence, seconds: float) -> bool:
        """Return whether rows that disagree are the first real motion, and all that is known."""
        if not self.touched:
            self._first_motion.clear()
            return False
        if not self._first_motion.add(new, seconds):
            return False
        self._forget()
        return True

    def _follow(self, new: Evidence, seconds: float) -> None:
        """Note what was found before leaves of rows, and let their noise follow it."""
        if self.found is None or self._described is None:
            return
        self.errors = Errors(new.residuals(self._described), new.residuals(self.found))
        self._worse.append(self._ratio(new, self._described, self.found))
        self.known.adapt(self.errors.found, seconds)

    def _ratio(self, new: Evidence, described: Array, found: Array) -> float:
        """Return what is left of rows over what the description leaves [rms, over the noise]."""
        before, after = (_losses(new.residuals(x), self.known.noise) for x in (described, found))
        ratios = [after[group] / max(before[group], 1.0) for group in after]
        return float(np.sqrt(max(ratios, default=1.0)))

    def _note_withheld(self, new: Evidence, seconds: float) -> None:
        """Note which rows are off, and by how much, if they are left out."""
        if not self.touched:
            self.withheld = None
            return
        x, noise = self.known.described() if self.found is None else self.found, self.known.noise
        left = {
            kind: level
            for kind, level in new.residuals(x).items()
            if kind in noise and np.isfinite(level)
        }
        if not left:
            return
        worst = max(left, key=lambda kind: left[kind] / noise[kind])
        before = self.withheld.seconds if self.withheld else 0.0
        self.withheld = Withheld(worst, left[worst], noise[worst], before + seconds)

    def _payload_since(self, before: Information) -> PayloadFit:
        """Return what is to tell how the submodel has changed since rows told so much of it."""
        link = self.carrier
        columns = np.arange(10 * link, 10 * link + 10)
        prior = self.known.loose_prior()
        return PayloadFit(self.known.block.unknowns.links[link], columns, before.merge(prior))


def _without(x: Array | None, columns: NDArray[np.intp], change: Array) -> Array | None:
    """Return unknowns of which so much is subtracted already."""
    if x is None:
        return None
    left = x.copy()
    left[columns] -= change
    return left


def _losses(left: Mapping[str, float], noise: Mapping[str, float]) -> dict[str, float]:
    """Return the mean square of what is left of forces, moments and efforts, over their noise."""
    squares: dict[str, list[float]] = {}
    for kind, level in left.items():
        if kind in noise and np.isfinite(level):
            group = kind.partition(' ')[0].partition('_')[0]
            squares.setdefault(group, []).append((level / noise[kind]) ** 2)
    return {group: float(np.mean(own)) for group, own in squares.items()}
