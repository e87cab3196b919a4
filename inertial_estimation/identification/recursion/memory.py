# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows of all kinds in units of their noise, which lets them stand in one triangle.

Rows as if readings had been calibrated otherwise: what becomes of them when a calibration changes.

Where the offset o of an FT sensor is unknown, rows say R x = rho with o among the x. A calibration
that subtracts D more leaves o - D to be found, so that rho' = rho - R_o D: the same rows with
another right-hand side, exactly, and nothing that was learned is lost. Another matrix, or other
temperature coefficients, would have made other rows.

What is known of one submodel: rows in units of their noise, of which old ones fade.

While it warms up its rows are kept apart by their kind, until they tell their noise. From then
on it is one `Information`, of a size that does not grow.

Whether rows tell of bodies what the prior does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

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
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

FORCES, MOMENTS = COMPONENTS[:3], COMPONENTS[3:]


def alike(noise: Mapping[str, float]) -> dict[str, float]:
    """Return the same noise for all forces, and for all moments: it has no axes."""
    found = dict(noise)
    for kinds in (FORCES, MOMENTS):
        known = [noise[kind] for kind in kinds if kind in noise]
        if known:
            level = float(np.sqrt(np.mean(np.square(known))))
            found |= dict.fromkeys((kind for kind in kinds if kind in noise), level)
    return found


def in_units_of_noise(evidence: Evidence, noise: Mapping[str, float]) -> Information | None:
    """Return rows of all kinds together."""
    parts = {
        kind: part for kind, part in evidence.kinds.items() if part.count > 0 and kind in noise
    }
    if not parts:
        return None
    return weighted_sum(parts.values(), [1.0 / noise[kind] for kind in parts])


def errors_in_units_of_noise(evidence: Evidence, noise: Mapping[str, float]) -> StateErrors | None:
    """Return what errors of the state add to rows of all kinds together."""
    parts = [rows / noise[kind] for kind, rows in evidence.errors.items() if kind in noise]
    if not parts:
        return None
    unknowns = evidence.block.unknowns
    # The sign of a velocity that is almost zero is nothing that noise changes by little.
    friction = [k for k, extra in enumerate(unknowns.extras) if extra.term not in FT_OFFSET]
    columns = unknowns.n_inertial + np.array(friction, dtype=np.intp)
    return StateErrors.of(parts, len(unknowns)).without(columns)


Array = NDArray[np.float64]
Columns = NDArray[np.intp]


def shifted(rows: Information, columns: Columns, change: Array) -> Information:
    """
    Return what rows say of offsets of which more is subtracted already.

    columns (k,); change (k,) [N, Nm].
    """
    return replace(rows, rho=rows.rho - rows.R[:, columns] @ change)


def shifted_evidence(evidence: Evidence, columns: Columns, change: Array) -> Evidence:
    """Return what rows of every kind say of offsets of which more is subtracted already."""
    kinds = {kind: shifted(part, columns, change) for kind, part in evidence.kinds.items()}
    errors = {}
    for kind, rows in evidence.errors.items():
        errors[kind] = rows.copy()
        errors[kind][:, -1] -= rows[:, columns] @ change
    return replace(evidence, kinds=kinds, errors=errors)


def effective_offsets(calibration: FtCalibration) -> Array:
    """
    Return what is subtracted at zero degrees.

    Returns (n_fts, 6) [N, Nm].
    """
    warmth = calibration.temperature_coefficients * calibration.reference_temperatures[:, None]
    return np.asarray(calibration.offsets + warmth)


def has_other_slopes(before: FtCalibration, after: FtCalibration) -> NDArray[np.bool_]:
    """
    Tell of which sensors more has changed than offsets.

    Returns (n_fts,).
    """
    matrices = (before.matrices != after.matrices).any(axis=(1, 2))
    slopes = before.temperature_coefficients != after.temperature_coefficients
    return np.asarray(matrices | slopes.any(axis=1))


class CalibrationChange:
    """What a change of the calibration does to the rows of submodels."""

    def __init__(self, robot: Robot, before: FtCalibration, after: FtCalibration) -> None:
        self._robot = robot
        self._change = effective_offsets(after) - effective_offsets(before)
        self._slopes = has_other_slopes(before, after)

    def shift(self, block: Block) -> Array | None:
        """
        Return how the unknown offsets of a submodel change.

        Returns (k,) [N, Nm].
        """
        if not block.kinds:
            return on_columns(block, {})
        sensors, links = self._robot.ft_sensors, set(block.submodel.links)
        beside = [k for k, one in enumerate(sensors) if links & {one.parent, one.child}]
        moved = {sensors[k].name: self._change[k] for k in beside if self._change[k].any()}
        unknown = {extra.of for extra in block.unknowns.extras if extra.term in FT_OFFSET}
        if self._slopes[beside].any() or not moved.keys() <= unknown:
            return None
        return on_columns(block, moved)


def on_columns(block: Block, change: Mapping[str, Array]) -> Array:
    """
    Return a change of the offsets of sensors as one of the unknowns of a submodel.

    change (6,) [N, Nm]; returns (k,).
    """
    none = np.zeros(len(FT_OFFSET))
    offsets = (extra for extra in block.unknowns.extras if extra.term in FT_OFFSET)
    return np.array([change.get(one.of, none)[FT_OFFSET.index(one.term)] for one in offsets])


EFFORT = 'effort '
"""What the names of kinds of rows of efforts begin with."""
PRIOR_SPREAD = 0.3
"""How far a body may well be off its prior, over its size."""
NOISE_MEMORY = 30.0
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


class SubmodelMemory:
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
        share = 1.0 - np.exp(-seconds / NOISE_MEMORY)
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


@dataclass(frozen=True)
class Excitation:
    """Of one submodel."""

    told: int
    """Combinations of inertial parameters that rows tell better than the prior does."""
    seconds: float
    """Time with rows."""
    rows: float
    """Rows that count, old ones less."""


def excitation(known: SubmodelMemory, weight: float) -> Excitation:
    """Return how much the rows of a submodel say of its bodies."""
    information = known.told
    assert information is not None
    told = combinations_told(known, information, weight)
    return Excitation(told, known.seconds, information.count)


def combinations_told(known: SubmodelMemory, information: Information, weight: float) -> int:
    """
    Return how many combinations of inertial parameters some rows tell better than the prior does.
    """
    others = np.arange(known.block.unknowns.n_inertial, information.n)
    left: Information = eliminated(information, others)
    rows = left.R.reshape(left.n, -1, 10)
    whitened = np.einsum('nlj,ljk->nlk', rows, whitening(known.prior)).reshape(left.n, -1)
    strengths = np.linalg.svd(whitened, compute_uv=False)
    return int(np.sum(strengths**2 > weight * information.count))
