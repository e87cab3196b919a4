# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Information state of one submodel: equations in units of their noise, the old ones faded.

Until their noise is known, equations are kept by kind. From then on they are one `Information`,
whose size does not grow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.equations.wrenches import COMPONENTS, EFFORT
from inertial_estimation.identification.errors_in_variables import (
    StateErrors,
    errors_of_wandered,
    without_state_errors,
)
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.noise import noise_levels
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.row_space import eliminated, wandered
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import FT_OFFSET

FORCES, MOMENTS = COMPONENTS[:3], COMPONENTS[3:]
PRIOR_SPREAD = 0.3
"""Relative error that the parameters of the URDF may well have."""
NOISE_TIME_CONSTANT = 30.0
"""Of the filter through which the noise follows the residuals [s]."""
SCALE_GROWTH = 1.1
"""Growth of the efforts from which the prior of friction follows them."""
OFFSET_SIZES = 100.0, 10.0
"""
Force and moment of the weak prior of offsets [N, Nm]: much wider than that of the parameters, so
that what either may explain is attributed to the offset.
"""
MIN_NOISE = 1e-4
"""Noise of equations without noise, as in simulations [N, Nm]."""


def whitened(evidence: Evidence, noise: Mapping[str, float]) -> Information | None:
    """Merge the equations of all kinds in units of their noise."""
    known = [kind for kind, part in evidence.kinds.items() if part.count > 0 and kind in noise]
    if not known:
        return None
    return weighted_sum((evidence.kinds[k] for k in known), [1.0 / noise[k] for k in known])


def whitened_errors(evidence: Evidence, noise: Mapping[str, float]) -> StateErrors | None:
    """Merge the errors of the state in the equations of all kinds likewise."""
    parts = [errors / noise[kind] for kind, errors in evidence.errors.items() if kind in noise]
    if not parts:
        return None
    unknowns = evidence.block.unknowns
    # The sign of a velocity near zero is not linear in the noise.
    friction = [k for k, extra in enumerate(unknowns.extras) if extra.term not in FT_OFFSET]
    columns = unknowns.n_inertial + np.array(friction, dtype=np.intp)
    return StateErrors.of(parts, len(unknowns)).without(columns)


class SubmodelMemory:
    """Information state of one submodel; `prior`: parameters, shape (n_links, 10)."""

    def __init__(self, block: Block, prior: Array, settings: RecursionSettings) -> None:
        self.block, self.prior, self.name = block, prior, block.submodel.name
        self.maps = whitening(prior)
        self._shapes = np.linalg.inv(self.maps)
        self._settings = settings
        self.information: Information | None = None
        """All equations in units of their noise; None until that is known."""
        self.errors: StateErrors | None = None
        """Errors of the measured motion in them."""
        self.noise: dict[str, float] = {}
        """Standard deviation of each kind of equation [N, Nm]."""
        unknowns, sensors = block.unknowns, settings.equations.offsets
        extras, n = unknowns.extras, unknowns.n_inertial
        self.scales: Array = np.full(len(extras), np.inf)
        """Standard deviations of the priors of friction and drive inertia, shape (n_extras,)."""
        self.seconds = 0.0
        """Time with equations [s]."""
        self.excited = False
        """True if the equations have ever determined enough to be relied on."""
        self._kinds: Evidence | None = None
        is_offset = np.array([extra.term in FT_OFFSET for extra in extras], dtype=bool)
        self.offsets: Indices = n + np.flatnonzero(is_offset)
        """Columns of the FT offsets, which neighbours share."""
        self.inner: Indices = np.setdiff1d(np.arange(len(unknowns)), self.offsets)
        """All others."""
        self.n_offsets = len(FT_OFFSET) * len(sensors)
        """Number of offsets of all sensors."""
        every = [(sensor, term) for sensor in sensors for term in FT_OFFSET]
        own = [every.index((e.of, e.term)) for e in extras if e.term in FT_OFFSET]
        self.own: Indices = np.array(own, dtype=np.intp)
        """Its offsets among these, shape (n_own,)."""
        self.shift: Array = np.zeros(len(self.own))
        """
        What the calibration has subtracted beyond what it did at the start [N, Nm]. The offsets of
        the equations contain it.
        """
        self._of: tuple[object, ...] = ()
        self._loose: tuple[Array, Information] | None = None

    @property
    def corrected(self) -> Information:
        """Information without the errors of the state in it."""
        return self._reduced()[0]

    @property
    def regularised(self) -> Information:
        """The same with a weak prior of zero offsets."""
        return self._reduced()[1]

    def _reduced(self) -> tuple[Information, Information]:
        of = self.information, self.errors, self.shift
        if not self._of or any(a is not b for a, b in zip(self._of, of, strict=True)):
            assert self.information is not None
            corrected, x0 = self.information, self.block.unknowns.join(self.prior)
            x0[self.offsets] = self.shift
            if self.errors is not None:
                corrected = without_state_errors(self.information, self.errors, x0)
            rows = np.zeros((len(self.offsets), corrected.n))
            sizes = self.offset_scales(*OFFSET_SIZES)
            rows[np.arange(len(rows)), self.offsets] = 1.0 / sizes
            regularised = corrected.add(rows, self.shift / sizes)
            regularised = replace(regularised, count=corrected.count)
            self._of, self._both = of, (corrected, regularised)
        return self._both

    def offset_scales(self, force: float, moment: float) -> Array:
        """Return one number for each column of an offset."""
        return np.where(self.own % len(FT_OFFSET) < len(FORCES), force, moment)

    def largest_change(self, changes: Array) -> float:
        """Return the largest change of a link's parameters over the size of its prior."""
        return float(np.linalg.norm(np.einsum('lij,lj->li', self._shapes, changes), axis=1).max())

    def release(self, columns: Indices, deviations: Array) -> None:
        """Forget unknowns that have changed by about some deviations."""
        before = self.information
        assert before is not None
        self.information = wandered(before, columns, deviations)
        if self.errors is not None:
            self.errors = errors_of_wandered(self.errors, before, columns, deviations)

    def drift(self, elapsed: float) -> None:
        """Let offsets walk randomly for some time [s]."""
        if self.information is not None and len(self.offsets):
            self.information = wandered(self.information, self.offsets, self.walks(elapsed))

    def walks(self, elapsed: float) -> Array:
        """Return the random walk of offsets in some time, one number for each column [N, Nm]."""
        walks = self.offset_scales(self._settings.force_walk, self._settings.moment_walk)
        return np.asarray(walks * np.sqrt(max(elapsed, 0.0)))

    def absorb(self, rows: Information, seconds: float, errors: StateErrors | None = None) -> None:
        """Add whitened equations that span some time, and fade the older ones by it [s]."""
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
        """Collect equations until their noise can be estimated."""
        self.seconds += seconds
        self._kinds = evidence if self._kinds is None else self._kinds.merge(evidence)
        if self.seconds >= self._settings.warm_up and self.begin(self._kinds):
            self._kinds = None

    def begin(self, evidence: Evidence) -> bool:
        """Start from some equations and the noise that they show, if they do."""
        before, self.scales = self.scales, friction_scales(evidence)
        estimated: dict[str, float] = {}
        if not self._settings.noise.keys() >= set(self.block.kinds):
            # With the weight of a refit, errors of the URDF would be taken for noise.
            try:
                found = noise_levels(evidence.kinds, prior=self.loose_prior())
            except ModelError:
                self.scales = before
                return False
            estimated = {kind: max(level, MIN_NOISE) for kind, level in found.deviations.items()}
        self._set_noise(estimated)
        self.information = whitened(evidence, self.noise)
        self.errors = whitened_errors(evidence, self.noise)
        return True

    def follow_efforts(self, evidence: Evidence) -> None:
        """Widen the prior of friction as larger efforts appear."""
        if not any(kind.startswith(EFFORT) for kind in evidence.kinds):
            return
        now = friction_scales(evidence)
        grown = np.isfinite(now) & (np.isinf(self.scales) | (now > SCALE_GROWTH * self.scales))
        if grown.any():
            self.scales = np.where(grown, now, self.scales)

    def loose_prior(self) -> Information:
        """Return a prior as wide as the error that the URDF may well have."""
        if self._loose is None or self._loose[0] is not self.scales:
            self._loose = (
                self.scales,
                entropic_model(
                    self.block.unknowns, self.prior, self.prior, self.scales, PRIOR_SPREAD**-2
                ),
            )
        return self._loose[1]

    def prior_fit(self) -> Array:
        """Return the prior parameters with all other unknowns fitted, shape (n_unknowns,)."""
        assert self.information is not None
        n, information = self.block.unknowns.n_inertial, self.information
        x = self.block.unknowns.join(self.prior)
        rest = information.rho - information.R[:, :n] @ x[:n]
        x[n:] = np.linalg.lstsq(information.R[:, n:], rest, rcond=None)[0]
        return x

    def adapt_noise(self, residuals: Mapping[str, float], seconds: float) -> None:
        """Let the noise of further equations follow the latest residuals [rms; N, Nm]."""
        share = 1.0 - np.exp(-seconds / NOISE_TIME_CONSTANT)
        following = {}
        for kind, level in residuals.items():
            if np.isfinite(level):
                before = self.noise.get(kind, level)
                now = float(np.sqrt(before**2 + share * (level**2 - before**2)))
                following[kind] = max(now, MIN_NOISE)
        self._set_noise(self.noise | following)

    def _set_noise(self, noise: Mapping[str, float]) -> None:
        """Set the noise, one level for all forces and for all moments; what is stated stays."""
        stated = {kind: v for kind, v in self._settings.noise.items() if kind in self.block.kinds}
        self.noise = {kind: level for kind, level in noise.items() if kind not in stated}
        for kinds in (FORCES, MOMENTS):
            if known := [kind for kind in kinds if kind in self.noise]:
                squares = [self.noise[kind] ** 2 for kind in known]
                self.noise |= dict.fromkeys(known, float(np.sqrt(np.mean(squares))))
        self.noise |= stated


def determined_combinations(
    memory: SubmodelMemory, information: Information, weight: float
) -> int:
    """Count the combinations that equations determine better than a prior of some weight."""
    others = np.arange(memory.block.unknowns.n_inertial, information.n)
    left = eliminated(information, others)
    rows = left.R.reshape(left.n, -1, 10)
    scaled = np.einsum('nlj,ljk->nlk', rows, memory.maps).reshape(left.n, -1)
    strengths = np.linalg.svd(scaled, compute_uv=False)
    return int(np.sum(strengths**2 > weight * information.count))
