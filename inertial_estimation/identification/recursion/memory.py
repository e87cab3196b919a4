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
    errors_of_wandered,
    without_state_errors,
)
from inertial_estimation.identification.evidence import Evidence, friction_scales
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.matrix_errors import products_of_wandered
from inertial_estimation.identification.noise import noise_levels
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.row_space import across, wandered
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.unknowns import FT_OFFSET

FORCES, MOMENTS = COMPONENTS[:3], COMPONENTS[3:]
LEVER = 0.1
"""Random walk of moment offsets over that of force offsets [m]."""
PRIOR_SPREAD = 0.3
"""Relative error that the parameters of the URDF may well have."""
EXCITING = 0.005
"""
Squared strength of a direction over the number of equations, from which motion excites it: that
of noise in the regressor grows with them.
"""
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


class SubmodelMemory:
    """Information state of one submodel; `prior`: parameters, shape (n_links, 10)."""

    def __init__(self, block: Block, prior: Array, settings: RecursionSettings) -> None:
        self.block, self.prior, self.name = block, prior, block.submodel.name
        self.maps = whitening(prior)
        self._settings = settings
        self.information: Information | None = None
        """All equations in units of their noise; None until that is known."""
        self.errors: Array = np.zeros((len(block.unknowns) + 1,) * 2)
        """Errors of the measured motion in them."""
        self.noise: dict[str, float] = {}
        """Standard deviation of each kind of equation [N, Nm]."""
        unknowns, sensors = block.unknowns, settings.equations.offsets
        self.scales: Array = np.full(len(unknowns.extras), np.inf)
        """Standard deviations of the priors of friction and drive inertia, shape (n_extras,)."""
        self.stated_variance = settings.prior_error**2
        """Of the relative error of the prior."""
        self.prior_variance = self.largest_variance = self.stated_variance
        """The likeliest of it, and the largest that is likely, see `covariance`."""
        self.seconds = 0.0
        """Time with equations [s]."""
        self.excited = False
        """True if the equations have ever determined enough to be relied on."""
        self._kinds: Evidence | None = None
        is_offset = np.array([extra.term in FT_OFFSET for extra in unknowns.extras], dtype=bool)
        self.offsets: Indices = unknowns.n_inertial + np.flatnonzero(is_offset)
        """Columns of the FT offsets, which neighbours share."""
        self.inner: Indices = np.setdiff1d(np.arange(len(unknowns)), self.offsets)
        """All others."""
        self.extras: Indices = np.arange(unknowns.n_inertial, len(unknowns))
        """All but the inertial parameters."""
        self.n_offsets = len(FT_OFFSET) * len(sensors)
        """Number of offsets of all sensors."""
        every = [(sensor, term) for sensor in sensors for term in FT_OFFSET]
        own = [every.index((e.of, e.term)) for e in unknowns.extras if e.term in FT_OFFSET]
        self.own: Indices = np.array(own, dtype=np.intp)
        """Its offsets among these, shape (n_own,)."""
        self.shift: Array = np.zeros(len(self.own))
        """
        Offsets subtracted by the calibration, less those at the start [N, Nm]. The offsets of the
        equations contain it.
        """
        self.matrices: Array = np.zeros((len(unknowns) + 1 + 6 * len(own), 6 * len(own)))
        """Products [Y y M]'M with errors of FT matrices, see `matrix_errors`."""
        self._reduced_of: tuple[object, ...] = ()
        self._loose_of: Array | None = None

    @property
    def corrected(self) -> Information:
        """Information without the errors of the state in it."""
        return self._reduced()[0]

    @property
    def regularised(self) -> Information:
        """The same with a weak prior of zero offsets."""
        return self._reduced()[1]

    @property
    def projection(self) -> Array:
        """Projection of products Y'y on what is left in `corrected`, (n, n)."""
        return self._reduced()[2]

    def _reduced(self) -> tuple[Information, Information, Array]:
        of = self.information, self.errors, self.shift
        if not self._reduced_of or any(a is not b for a, b in zip(self._reduced_of, of)):
            assert self.information is not None
            x0 = self.block.unknowns.join(self.prior)
            x0[self.offsets] = self.shift
            corrected, onto = without_state_errors(self.information, self.errors, x0)
            sizes = self.offset_scales(*OFFSET_SIZES)
            rows = np.eye(corrected.n)[self.offsets] / sizes[:, None]
            regularised = replace(corrected.add(rows, self.shift / sizes), count=corrected.count)
            self._reduced_of, self._found = of, (corrected, regularised, onto)
        return self._found

    @property
    def loose_prior(self) -> Information:
        """A prior as wide as the error that the URDF may well have."""
        if self._loose_of is not self.scales:
            self._loose_of = self.scales
            weight = min(PRIOR_SPREAD**-2, 1.0 / self.stated_variance)
            prior, unknowns = self.prior, self.block.unknowns
            self._loose = entropic_model(unknowns, prior, prior, self.scales, weight)
        return self._loose

    @property
    def prior_fit(self) -> Array:
        """The prior parameters with all other unknowns fitted, shape (n_unknowns,)."""
        assert self.information is not None
        return Problem.of(self.block.unknowns, self.information, self.prior).fitted_extras()

    @property
    def scales_in_refit(self) -> Array:
        """Deviations of friction whose weight is that of a prior as stated, not as shown."""
        return self.scales * float(np.sqrt(self.stated_variance / self.prior_variance))

    def offset_scales(self, force: float, moment: float) -> Array:
        """Return one number for each column of an offset."""
        return np.where(self.own % len(FT_OFFSET) < len(FORCES), force, moment)

    def placed(self, rows: Array) -> Array:
        """Return rows of its offsets as rows of all offsets."""
        found = np.zeros((len(rows), self.n_offsets))
        found[:, self.own] = rows
        return found

    def determined(self, information: Information) -> int:
        """Count the combinations that equations determine better than the prior is stated to."""
        least = max(1.0 / self.stated_variance, EXCITING * information.count)
        return int(np.sum(self._squares(information) > least))

    @property
    def gain(self) -> float:
        """Twice the information that equations add to the prior as stated [nats]."""
        squares = self.stated_variance * self._squares(self.corrected)
        return float(np.sum(np.log1p(np.maximum(squares, 0.0))))

    def _squares(self, information: Information) -> Array:
        """Return the squared strengths of equations in whitened parameters, without all else."""
        n = self.block.unknowns.n_inertial
        rows = self.whitened_columns(across(information.R[:, n:], information.R[:, :n]))
        return np.asarray(np.linalg.eigvalsh(rows.T @ rows))

    def whitened_columns(self, rows: Array) -> Array:
        """Return rows of parameters, (m, 10 n_links), as rows of their whitened coordinates."""
        by_link = np.einsum('nlj,ljk->nlk', rows.reshape(len(rows), -1, 10), self.maps)
        return np.asarray(by_link.reshape(len(rows), -1))

    def whitened(self, evidence: Evidence) -> tuple[Information, Array, Array] | None:
        """Merge equations and products of errors of all kinds, in units of their noise."""
        noise, unknowns = self.noise, evidence.block.unknowns
        known = [kind for kind, part in evidence.kinds.items() if part.count > 0 and kind in noise]
        if not known:
            return None
        rows = weighted_sum((evidence.kinds[k] for k in known), [1.0 / noise[k] for k in known])
        parts = [errors / noise[kind] for kind, errors in evidence.errors.items() if kind in noise]
        # The sign of a velocity near zero is not linear in the noise.
        friction = self.inner[unknowns.n_inertial :]
        stacked = np.vstack([np.zeros((1, len(unknowns) + 1)), *parts])
        stacked[:, friction] = 0.0
        matrices = [evidence.matrices[k] / noise[k] ** 2 for k in known if k in evidence.matrices]
        return rows, stacked.T @ stacked, sum(matrices, np.zeros_like(self.matrices))

    def release(self, columns: Indices, deviations: Array) -> None:
        """Forget unknowns that have changed by about some deviations."""
        before = self.information
        assert before is not None
        self._wander(before, columns, deviations)
        self.errors = errors_of_wandered(self.errors, before, columns, deviations)

    def drift(self, elapsed: float) -> None:
        """Let offsets walk randomly for some time [s]."""
        if self.information is not None:
            self._wander(self.information, self.offsets, self.walks(elapsed))

    def _wander(self, before: Information, columns: Indices, deviations: Array) -> None:
        self.information = wandered(before, columns, deviations)
        self.matrices = products_of_wandered(self.matrices, before, columns, deviations)

    def walks(self, elapsed: float) -> Array:
        """Return the random walk of offsets in some time, one number for each column [N, Nm]."""
        walk = self._settings.force_walk * np.sqrt(max(elapsed, 0.0))
        return self.offset_scales(walk, LEVER * walk)

    def absorb(self, rows: Information, errors: Array, matrices: Array, seconds: float) -> None:
        """Add whitened equations that span some time, and fade the older ones by it [s]."""
        assert self.information is not None
        self.seconds += seconds
        factor = 0.5 ** (seconds / self._settings.half_life)
        self.information = self.information.forget(factor).merge(rows)
        self.errors = factor * self.errors + errors
        self.matrices = factor * self.matrices + matrices

    def warm_up(self, evidence: Evidence, seconds: float) -> None:
        """Collect equations until their noise can be estimated."""
        self.seconds += seconds
        self._kinds = evidence if self._kinds is None else self._kinds.merge(evidence)
        if self.seconds >= self._settings.warm_up and self.begin(self._kinds):
            self._kinds = None

    def begin(self, evidence: Evidence) -> bool:
        """Start from some equations and their noise, if that is known."""
        self.scales = friction_scales(evidence)
        try:
            # With the weight of a refit, errors of the URDF would be taken for noise.
            found = noise_levels(evidence.kinds, prior=self.loose_prior)
        except ModelError:
            return False
        self.set_equations(evidence, found.deviations)
        return True

    def set_equations(self, evidence: Evidence, noise: Mapping[str, float]) -> None:
        """Replace the equations by some and their noise."""
        self._set_noise(noise)
        whitened = self.whitened(evidence)
        assert whitened is not None
        self.information, self.errors, self.matrices = whitened

    def follow_efforts(self, evidence: Evidence) -> None:
        """Widen the prior of friction as larger efforts appear."""
        if not any(kind.startswith(EFFORT) for kind in evidence.kinds):
            return
        now = friction_scales(evidence)
        grown = np.isfinite(now) & (np.isinf(self.scales) | (now > SCALE_GROWTH * self.scales))
        if grown.any():
            self.scales = np.where(grown, now, self.scales)

    def adapt_noise(self, residuals: Mapping[str, float], seconds: float) -> None:
        """Let the noise of further equations follow the latest residuals [rms; N, Nm]."""
        share = 1.0 - np.exp(-seconds / NOISE_TIME_CONSTANT)
        following = {}
        for kind, level in residuals.items():
            if np.isfinite(level):
                before = self.noise.get(kind, level)
                following[kind] = float(np.sqrt(before**2 + share * (level**2 - before**2)))
        self._set_noise(self.noise | following)

    def _set_noise(self, noise: Mapping[str, float]) -> None:
        """Set the noise, one level for all forces and for all moments."""
        self.noise = {kind: max(level, MIN_NOISE) for kind, level in noise.items()}
        for kinds in (FORCES, MOMENTS):
            if known := [kind for kind in kinds if kind in self.noise]:
                squares = [self.noise[kind] ** 2 for kind in known]
                self.noise |= dict.fromkeys(known, float(np.sqrt(np.mean(squares))))
