# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is known of one submodel: rows in units of their noise, of which old ones fade.

While it warms up its rows are kept apart by their kind, until they tell their noise. From then
on it is one `Information`, of a size that does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information.elimination import wandered
from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.reweighting import noise_levels
from inertial_estimation.identification.information.state_errors import (
    StateErrors,
    errors_of_wandered,
    without_state_errors,
)
from inertial_estimation.identification.prior_models import entropic_model
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.shifted_offsets import (
    shifted,
    shifted_evidence,
)
from inertial_estimation.identification.recursion.units_of_noise import (
    FORCES,
    alike,
    errors_in_units_of_noise,
    in_units_of_noise,
)
from inertial_estimation.identification.rows.builder import Block
from inertial_estimation.identification.rows.friction_scales import friction_scales
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import FT_OFFSET

Array = NDArray[np.float64]
Columns = NDArray[np.intp]

EFFORT = 'effort '
"""What the names of kinds of rows of efforts begin with."""
PRIOR_SPREAD = 0.3
"""How far a body may well be off its prior, over its size."""
MEMORY = 30.0
"""Time with rows after which what they left of old ones counts a third in their noise [s]."""

GROWN = 1.1
"""Times as much as before that the efforts of a joint must be for its friction to follow them."""
OFFSET_SIZES = 100.0, 10.0
"""
Force and moment of an offset that is odd where nothing tells it [N, Nm], as one row of its own:
far less odd than a body that is off by as much, so that what may be either is an offset.
"""
QUIETEST = 1e-4
"""No rows are taken to have less noise than this, as those of a simulation may [N, Nm]."""


class Knowledge:
    """
    Of one submodel.

    prior (n_links, 10); maps (n_links, 10, 10); scales (n_extras,).
    """

    def __init__(self, block: Block, prior: Array, settings: RecursionSettings) -> None:
        self.block, self.prior = block, prior
        self.maps = whitening(prior)
        self._shapes = np.linalg.inv(self.maps)
        self._settings = settings
        self.information: Information | None = None
        self.errors: StateErrors | None = None
        self._told: tuple[Information, StateErrors, Information] | None = None
        self._drawn: tuple[Information, Information] | None = None
        self.noise: dict[str, float] = {}
        self.scales: Array = np.full(len(block.unknowns.extras), np.inf)
        self.seconds = 0.0
        self.learned = False
        self._kinds: Evidence | None = None
        extras = block.unknowns.extras
        offsets = [extra.term in FT_OFFSET for extra in extras]
        self.offsets: Columns = block.unknowns.n_inertial + np.flatnonzero(offsets)
        """Columns of offsets of FT sensors, which neighbours share."""
        self.inner: Columns = np.setdiff1d(np.arange(len(block.unknowns)), self.offsets)
        """Columns that are no offsets."""
        self._is_force = np.array(
            [extra.term.value in FORCES for extra in extras if extra.term in FT_OFFSET], dtype=bool
        )

    @property
    def told(self) -> Information | None:
        """What rows tell without the errors of the state in them; None: nothing yet."""
        if self.information is None or self.errors is None:
            return self.information
        now = self.information, self.errors
        if self._told is None or any(a is not b for a, b in zip(self._told, now)):
            x0 = self.block.unknowns.join(self.prior)
            self._told = *now, without_state_errors(*now, x0)
        return self._told[2]

    @property
    def drawn(self) -> Information | None:
        """The same where offsets that nothing tells are drawn to zero; None: nothing yet."""
        told = self.told
        if told is not None and (self._drawn is None or self._drawn[0] is not told):
            k = len(self.offsets)
            rows = np.zeros((k, told.n))
            rows[np.arange(k), self.offsets] = 1.0 / self.offset_scales(*OFFSET_SIZES)
            self._drawn = told, replace(told.add(rows, np.zeros(k)), count=told.count)
        return self._drawn[1] if told is not None and self._drawn is not None else None

    def let_go(self, columns: Columns, by: Array) -> None:
        """
        Forget unknowns that have changed.

        columns (k,); by (k,).
        """
        assert self.information is not None
        before, self.information = self.information, wandered(self.information, columns, by)
        if self.errors is not None:
            self.errors = errors_of_wandered(self.errors, before, columns, by)

    @property
    def offset_names(self) -> tuple[str, ...]:
        """Names of the columns of offsets."""
        return tuple(self.block.unknowns.names[k] for k in self.offsets)

    def largest_change(self, changes: Array) -> float:
        """
        Return the largest change of a body over the size of its prior.

        changes (n_links, 10).
        """
        return float(np.linalg.norm(np.einsum('lij,lj->li', self._shapes, changes), axis=1).max())

    def offset_scales(self, force: float, moment: float) -> Array:
        """
        Return one number for each column of an offset.

        Returns (k,).
        """
        return np.where(self._is_force, force, moment)

    def wait(self, elapsed: float) -> None:
        """
        Let time go by: offsets wander.

        elapsed [s].
        """
        if self.information is not None and len(self.offsets):
            self.information = wandered(self.information, self.offsets, self.walks(elapsed))

    def shift_offsets(self, change: Array) -> None:
        """
        Go on as if more had been subtracted from all readings.

        change (k,) [N, Nm].
        """
        if self.information is not None:
            self.information = shifted(self.information, self.offsets, change)
        if self.errors is not None:
            self.errors = self.errors.shifted(self.offsets, change)
        if self._kinds is not None:
            self._kinds = shifted_evidence(self._kinds, self.offsets, change)

    def walks(self, elapsed: float) -> Array:
        """
        Return how far offsets may wander.

        elapsed [s]; returns (k,) [N, Nm].
        """
        walks = self.offset_scales(self._settings.force_walk, self._settings.moment_walk)
        return np.asarray(walks * np.sqrt(max(elapsed, 0.0)))

    def absorb(self, rows: Information, seconds: float, errors: StateErrors | None = None) -> None:
        """
        Work further rows in, and let older ones fade.

        seconds [s].
        """
        assert self.information is not None
        self.seconds += seconds
        factor = 0.5 ** (seconds / self._settings.half_life)
        kept = self.information if factor == 1.0 else self.information.forget(factor)
        self.information = kept.merge(rows)
        if self.errors is not None:
            none = StateErrors.of([], rows.n)
            errors = self.errors.add(none if errors is None else errors, factor)
        self.errors = errors

    def warm_up(self, evidence: Evidence, seconds: float) -> None:
        """
        Keep rows until they tell their noise.

        seconds [s].
        """
        self.seconds += seconds
        self._kinds = evidence if self._kinds is None else self._kinds.merge(evidence)
        if self.seconds >= self._settings.warm_up and self.begin(self._kinds):
            self._kinds = None

    def begin(self, evidence: Evidence) -> bool:
        """Take rows for all that is known, in units of the noise that they tell."""
        scales, self.scales = self.scales, friction_scales(evidence)
        seen: dict[str, float] = {}
        if not self._settings.noise.keys() >= set(self.block.kinds):
            # As heavy as in a refit it would take what the description is off for noise, and
            # noise would then excuse the description for good.
            try:
                found = noise_levels(evidence.kinds, prior=self.loose_prior())
            except ModelError:
                self.scales = scales
                return False
            seen = {kind: max(level, QUIETEST) for kind, level in found.deviations.items()}
        self._set_noise(seen)
        self.information = in_units_of_noise(evidence, self.noise)
        self.errors = errors_in_units_of_noise(evidence, self.noise)
        return True

    def hear(self, evidence: Evidence) -> None:
        """Let friction be as large as the largest efforts so far allow."""
        if not any(kind.startswith(EFFORT) for kind in evidence.kinds):
            return
        seen = friction_scales(evidence)
        follows = np.isfinite(seen) & (np.isinf(self.scales) | (seen > GROWN * self.scales))
        if follows.any():
            self.scales = np.where(follows, seen, self.scales)

    def loose_prior(self) -> Information:
        """Return rows that keep bodies about as far from the description as they may well be."""
        return entropic_model(
            self.block.unknowns, self.prior, self.prior, self.scales, PRIOR_SPREAD**-2
        )

    def described(self) -> Array:
        """Return the prior's bodies with all else fitted to the rows, shape (n_unknowns,)."""
        assert self.information is not None
        n, information = self.block.unknowns.n_inertial, self.information
        x = self.block.unknowns.join(self.prior)
        rest = information.rho - information.R[:, :n] @ x[:n]
        x[n:] = np.linalg.lstsq(information.R[:, n:], rest, rcond=None)[0]
        return x

    def adapt(self, left: Mapping[str, float], seconds: float) -> None:
        """
        Let the noise of further rows follow what is left of rows lately.

        seconds [s].
        """
        share = 1.0 - np.exp(-seconds / MEMORY)
        seen = {kind: level for kind, level in left.items() if np.isfinite(level)}
        following = {}
        for kind, level in seen.items():
            before = self.noise.get(kind, level)
            now = float(np.sqrt(before**2 + share * (level**2 - before**2)))
            following[kind] = max(now, QUIETEST)
        self._set_noise(self.noise | following)

    def _set_noise(self, noise: Mapping[str, float]) -> None:
        """Take noise over, but where it is stated."""
        stated = {kind: self._settings.noise[kind] for kind in self.block.kinds
                  if kind in self._settings.noise}  # fmt: skip
        others = {kind: level for kind, level in noise.items() if kind not in stated}
        self.noise = alike(others) | stated
