# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets: fitted beside parameters, tracked, and after a change of the calibration.

A refit finds offsets together with all parameters. Where a submodel keeps those of the URDF, an
offset that was found with others would be off by the difference of the two weights. So offsets are
fitted beside the parameters that are in use. Of two submodels beside a sensor the outer one counts
if it has equations: it has fewer links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.equations.builder import Block
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.memory import OFFSET_SIZES, SubmodelMemory
from inertial_estimation.identification.row_space import RowSpace, eliminated
from inertial_estimation.identification.unknowns import FT_OFFSET
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

INNER_WEIGHT = 1e-3
"""Weight of the equations of a submodel over that of those one sensor further out."""
MAX_WEIGHTED_DEPTH = 3
"""Sensors further in beyond which weights are equal: smaller ones would be round-off."""
MAX_INTERVAL = 10.0
"""Time between two refits that counts for the tracker [s]."""
SETTLING = 20.0
"""Time of the initial mean of the tracker, and time constant of what it has refused [s]."""


@one_thread()
def fitted_offsets(
    memories: Sequence[SubmodelMemory], parameters: Mapping[str, Array]
) -> dict[str, float]:
    """Return the offsets that fit best beside given parameters of each submodel."""
    names = tuple(dict.fromkeys(name for one in memories for name in one.offset_names))
    if not names:
        return {}
    # Sensors between each submodel and the innermost one.
    depths: list[int] = []
    beside: dict[str, int] = {}
    for one in memories:
        inner = (beside[name] + 1 for name in one.offset_names if name in beside)
        depths.append(max(inner, default=0))
        beside = dict.fromkeys(one.offset_names, depths[-1]) | beside
    rows = Information.empty(len(names))
    for one, depth in zip(memories, depths, strict=True):
        if len(one.offsets):
            weight = INNER_WEIGHT ** min(max(depths) - depth, MAX_WEIGHTED_DEPTH)
            information, n = one.regularised, one.block.unknowns.n_inertial
            assert information is not None
            known = information.R[:, :n] @ parameters[one.name].reshape(-1)
            rest = Information.of(information.R[:, n:], information.rho - known)
            left = eliminated(rest, np.setdiff1d(np.arange(rest.n), one.offsets - n))
            rows = rows.add(weight * placed(left.R, one, names), weight * left.rho)
    return dict(zip(names, RowSpace.of(rows.R).solve(rows.rho).tolist(), strict=True))


def placed(rows: Array, memory: SubmodelMemory, names: Sequence[str]) -> Array:
    """Return rows of the offsets of one submodel as rows of all offsets."""
    found = np.zeros((len(rows), len(names)))
    found[:, [names.index(name) for name in memory.offset_names]] = rows
    return found


@one_thread()
def offset_deviations(
    memories: Sequence[SubmodelMemory], names: Sequence[str]
) -> dict[str, float]:
    """Return the standard deviations of offsets beside parameters with their loose prior."""
    if not names:
        return {}
    rows = Information.empty(len(names))
    for one in memories:
        if not len(one.offsets):
            continue
        assert one.corrected is not None
        left = eliminated(one.corrected.merge(one.loose_prior()), one.inner)
        weak = np.diag(1.0 / one.offset_scales(*OFFSET_SIZES))
        both = placed(np.vstack([left.R, weak]), one, names)
        rows = rows.add(both, np.zeros(len(both)))
    root = np.linalg.inv(rows.R)
    return dict(zip(names, np.linalg.norm(root, axis=1).tolist(), strict=True))


class Proposal(NamedTuple):
    """Offsets that would be subtracted."""

    values: dict[str, float]
    """All that are determined or ever were [N, Nm]."""
    refused: dict[str, float]
    """Recent changes by new parameters that were not taken [N, Nm]."""


@dataclass
class OffsetTracker:
    """
    Offsets to be subtracted by an estimator, by the names of their columns.

    On a robot that stands still a push looks like a change of the offset, which equations follow
    at once; subtracting that would hide the push. So what is subtracted changes for two reasons
    only. First, with the parameters: by what these change of the fitted offsets, as far as that
    leads to the readings; the rest is refused, as it may be a load or a push, and so is what later
    undoes refused changes. Second, towards the fitted offsets, no faster than sensors drift. At
    first, and after a jump, it is the mean of the fitted ones, which sway with the posture where
    matrices are wrong.
    """

    force_drift: float
    """Largest rate of a force [N/s]."""
    moment_drift: float
    """Largest rate of a moment [Nm/s]."""
    values: dict[str, float] = field(default_factory=dict)
    """Offsets that were ever determined [N, Nm]."""
    _refused: dict[str, float] = field(default_factory=dict)
    _ages: dict[str, float] = field(default_factory=dict)
    """Time for which they have been determined [s]."""

    def proposed(
        self,
        found: Mapping[str, float],
        before: Mapping[str, float],
        determined: Iterable[str],
        seconds: float,
    ) -> Proposal:
        """
        Return what would be subtracted after some time [s].

        found, before: fitted beside the new parameters and beside those in use [N, Nm].
        """
        determined, seconds = set(determined), min(max(seconds, 0.0), MAX_INTERVAL)
        values = {name: value for name, value in found.items() if name in determined}
        refused: dict[str, float] = {}
        kept = float(np.exp(-seconds / SETTLING))
        # Components of each force and of each moment.
        vectors: dict[str, list[str]] = {}
        for name in (name for name in found if name in self.values):
            vectors.setdefault(name.rpartition('_')[0], []).append(name)
        for names in vectors.values():
            wanted, old, beside = (
                np.array([each[name] for name in names]) for each in (found, self.values, before)
            )
            owed = kept * np.array([self._refused.get(name, 0.0) for name in names])
            change = owed + (wanted - beside)
            owed = _share_along(change, owed) * owed
            new = change - owed
            taken = _share_along(wanted - old, new) * new
            moved = old + taken
            left = np.where([name in determined for name in names], wanted - moved, 0.0)
            # No faster than the drift; at first as the mean.
            distance, age = float(np.linalg.norm(left)), min(self._ages[name] for name in names)
            is_force = names[0].rpartition('.')[2].startswith('force')
            drift = seconds * (self.force_drift if is_force else self.moment_drift)
            settling = seconds / (age + seconds) if seconds and age < SETTLING else 0.0
            moved += max(min(1.0, drift / distance) if distance else 1.0, settling) * left
            values |= dict(zip(names, moved.tolist(), strict=True))
            refused |= dict(zip(names, (change - taken).tolist(), strict=True))
        return Proposal(values, refused)

    def take(self, proposal: Proposal, determined: Iterable[str], seconds: float) -> None:
        """Subtract what was proposed."""
        determined, passed = set(determined), min(max(seconds, 0.0), MAX_INTERVAL)
        self._ages |= {
            name: self._ages[name] + passed * (name in determined) if name in self.values else 0.0
            for name in proposal.values
        }
        self.values |= proposal.values
        self._refused |= proposal.refused

    def forget(self, names: Iterable[str]) -> None:
        """Start some offsets again."""
        for name in names:
            for each in (self.values, self._refused, self._ages):
                each.pop(name, None)

    def recalibrate(self, change: Mapping[str, float]) -> None:
        """Follow a change of the calibration [N, Nm]."""
        for name in self.values.keys() & change.keys():
            self.values[name] -= change[name]


def _share_along(wanted: Array, change: Array) -> float:
    """Return the share of a change, from 0 to 1, that leads to what is wanted."""
    size = float(change @ change)
    return min(max(float(wanted @ change) / size, 0.0), 1.0) if size else 0.0


def effective_offsets(calibration: FtCalibration) -> Array:
    """Return the offsets of a calibration at zero degrees, shape (n_fts, 6) [N, Nm]."""
    warmth = calibration.temperature_coefficients * calibration.reference_temperatures[:, None]
    return np.asarray(calibration.offsets + warmth)


def calibration_shift(
    robot: Robot, before: FtCalibration, after: FtCalibration, block: Block
) -> Array | None:
    """
    Return the change of the unknown offsets of a submodel with the calibration.

    None: another matrix, other temperature coefficients, or offsets that are no unknowns change
    its equations.
    """
    if not block.kinds:
        return on_columns(block, {})
    sensors, links = robot.ft_sensors, set(block.submodel.links)
    beside = [k for k, one in enumerate(sensors) if links & {one.parent, one.child}]
    change = effective_offsets(after) - effective_offsets(before)
    moved = {sensors[k].name: change[k] for k in beside if change[k].any()}
    unknown = {extra.of for extra in block.unknowns.extras if extra.term in FT_OFFSET}
    for name in ('matrices', 'temperature_coefficients'):
        if not np.array_equal(getattr(before, name)[beside], getattr(after, name)[beside]):
            return None
    return on_columns(block, moved) if moved.keys() <= unknown else None


def on_columns(block: Block, change: Mapping[str, Array]) -> Array:
    """Return a change of wrenches by sensor as one of the unknown offsets of a submodel."""
    none = np.zeros(len(FT_OFFSET))
    offsets = (extra for extra in block.unknowns.extras if extra.term in FT_OFFSET)
    return np.array([change.get(one.of, none)[FT_OFFSET.index(one.term)] for one in offsets])
