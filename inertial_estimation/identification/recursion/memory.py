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
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.equations.wrenches import COMPONENTS
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

Columns = NDArray[np.intp]

FORCES, MOMENTS = COMPONENTS[:3], COMPONENTS[3:]
EFFORT = 'effort '
"""Prefix of the kinds of effort equations."""
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


def recalibrated(information: Information, columns: Columns, change: Array) -> Information:
    """
    Return the information after more has been subtracted from the FT readings.

    With R x = rho and unknown offsets o among the x, subtracting D more leaves o - D to be found,
    so that rho' = rho - R_o D.
    """
    return replace(information, rho=information.rho - information.R[:, columns] @ change)


def recalibrated_evidence(evidence: Evidence, columns: Columns, change: Array) -> Evidence:
    """Return the equations of all kinds likewise."""
    kinds = {kind: recalibrated(part, columns, change) for kind, part in evidence.kinds.items()}
    errors = {
        kind: np.column_stack([rows[:, :-1], rows[:, -1] - rows[:, columns] @ change])
        for kind, rows in evidence.errors.items()
    }
    return replace(evidence, kinds=kinds, errors=errors)


class SubmodelMemory:
    """Information state of one submodel."""

    def __init__(self, block: Block, prior: Array, settings: RecursionSettings) -> None:
        self.block, self.prior, self.name = block, prior, block.submodel.name
        """`prior`: parameters, shape (n_links, 10)."""
        self.maps = whitening(prior)
        self._shapes = np.linalg.inv(self.maps)
        self._settings = settings
        self.information: Information | None = None
        """All equations in units of their noise; None until that is known."""
        self.errors: StateErrors | None = None
        """Errors of the measured motion in them."""
        self._corrected: tuple[Information, StateErrors, Information] | None = None
        self._regularised: tuple[Information, Information] | None = None
        self._loose: tuple[Array, Information] | None = None
        self.noise: dict[str, float] = {}
        """Standard deviation of each kind of equation [N, Nm]."""
        extras, n = block.unknowns.extras, block.unknowns.n_inertial
        self.scales: Array = np.full(len(extras), np.inf)
        """Standard deviations of the priors of friction and drive inertia, shape (n_extras,)."""
        self.seconds = 0.0
        """Time with equations [s]."""
        self.excited = False
        """Whether the equations have ever determined enough to be relied on."""
        self._kinds: Evidence | None = None
        is_offset = np.array([extra.term in FT_OFFSET for extra in extras], dtype=bool)
        self.offsets: Columns = n + np.flatnonzero(is_offset)
        """Columns of the FT offsets, which neighbours share."""
        self.inner: Columns = np.concatenate([np.arange(n), n + np.flatnonzero(~is_offset)])
        """All others."""
        self.offset_names = tuple(block.unknowns.names[k] for k in self.offsets)
        self._is_force = np.array(
            [name.rpartition('.')[2] in FORCES for name in self.offset_names], dtype=bool
        )

    @property
    def corrected(self) -> Information | None:
        """Information without the errors of the state in it."""
        if self.information is None or self.errors is None:
            return self.information
        now = self.information, self.errors
        if self._corrected is None or any(a is not b for a, b in zip(self._corrected, now)):
            x0 = self.block.unknowns.join(self.prior)
            self._corrected = *now, without_state_errors(*now, x0)
        return self._corrected[2]

    @property
    def regularised(self) -> Information | None:
        """The same with a weak prior of zero offsets."""
        corrected = self.corrected
        if corrected is None:
            return None
        if self._regularised is None or self._regularised[0] is not corrected:
            k = len(self.offsets)
            rows = np.zeros((k, corrected.n))
            rows[np.arange(k), self.offsets] = 1.0 / self.offset_scales(*OFFSET_SIZES)
            found = replace(corrected.add(rows, np.zeros(k)), count=corrected.count)
            self._regularised = corrected, found
        return self._regularised[1]

    def offset_scales(self, force: float, moment: float) -> Array:
        """Return one number for each column of an offset."""
        return np.where(self._is_force, force, moment)

    def largest_change(self, changes: Array) -> float:
        """Return the largest change of a link's parameters over the size of its prior."""
        return float(np.linalg.norm(np.einsum('lij,lj->li', self._shapes, changes), axis=1).max())

    def release(self, columns: Columns, deviations: Array) -> None:
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

    def recalibrate(self, change: Array) -> None:
        """Follow a change of the subtracted offsets, one number for each column [N, Nm]."""
        if self.information is not None:
            self.information = recalibrated(self.information, self.offsets, change)
        if self.errors is not None:
            self.errors = self.errors.shifted(self.offsets, change)
        if self._kinds is not None:
            self._kinds = recalibrated_evidence(self._kinds, self.offsets, change)

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
