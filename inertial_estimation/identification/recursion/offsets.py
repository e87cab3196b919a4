# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that go with bodies, and how sure they are.

A refit finds offsets together with all bodies. Where rows tell too little of a body it is not
told, and who uses the offsets uses the description beside them: an offset that was found with
another body is then off by the difference of the two weights. So offsets are those that fit the
rows best beside the bodies that are used, and of two submodels beside a sensor the outer one says
it if it has rows: an arm is a part of few that its one sensor must fit, told or not, while a trunk
has the errors of all.

Offsets of FT sensors that are subtracted: they come with bodies, and drift.

Of a robot that stands still a push looks like an offset that has moved, and rows follow it at
once. Who subtracts that never sees the push. So what is subtracted changes for two reasons only:
with bodies, by what these change of the offsets that fit the same rows, as far as that explains
readings; and with what is left, no faster than sensors drift. What bodies change against what is
left is refused, as that may be a load, or a push. Bodies that go on to sway would be followed one
way then, so what makes up for changes that were refused is refused as well. At first, and where
motion has told of a jump, it is the mean of what is left: offsets sway with posture where matrices
are wrong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.recursion.memory import OFFSET_SIZES, SubmodelMemory
from inertial_estimation.identification.row_space import RowSpace, eliminated

Array = NDArray[np.float64]


INNER = 1e-3
"""Weight of the rows of a submodel, over that of those one sensor further out."""
MOST = 3
"""Sensors further in from which on weights are alike: smaller ones would pass for round-off."""


@one_thread()
def fitted_offsets(
    known: Sequence[SubmodelMemory], bodies: Mapping[str, Array]
) -> dict[str, float]:
    """
    Return the offsets that fit bodies.

    bodies (n_links, 10).
    """
    names = tuple(dict.fromkeys(name for one in known for name in one.offset_names))
    if not names:
        return {}
    rows, depths = Information.empty(len(names)), _depths(known)
    for one, depth in zip(known, depths, strict=True):
        if len(one.offsets):
            weight = INNER ** min(max(depths) - depth, MOST)
            placed, right = _rows_beside(one, bodies[one.block.submodel.name], names)
            rows = rows.add(weight * placed, weight * right)
    return dict(zip(names, RowSpace.of(rows.R).solve(rows.rho).tolist(), strict=True))


def _depths(known: Sequence[SubmodelMemory]) -> list[int]:
    """Return how many sensors lie between each submodel and the innermost one that it knows."""
    depths: list[int] = []
    beside: dict[str, int] = {}
    for one in known:
        depths.append(
            max((beside[name] + 1 for name in one.offset_names if name in beside), default=0)
        )
        for name in one.offset_names:
            beside.setdefault(name, depths[-1])
    return depths


def _rows_beside(one: SubmodelMemory, bodies: Array, names: Sequence[str]) -> tuple[Array, Array]:
    """Return rows of offsets beside the bodies of a submodel."""
    information, n = one.drawn, one.block.unknowns.n_inertial
    assert information is not None
    rest = Information.of(
        information.R[:, n:], information.rho - information.R[:, :n] @ bodies.reshape(-1)
    )
    own = one.offsets - n
    left = eliminated(rest, np.setdiff1d(np.arange(rest.n), own))
    placed = np.zeros((left.n, len(names)))
    placed[:, [names.index(name) for name in one.offset_names]] = left.R
    return placed, left.rho


@one_thread()
def offset_deviations(known: Sequence[SubmodelMemory], names: Sequence[str]) -> dict[str, float]:
    """
    Return how sure offsets are, beside bodies that may be off by as much as they may well be.
    """
    rows = Information.empty(len(names))
    for one in known:
        if not len(one.offsets):
            continue
        assert one.told is not None
        own = [names.index(name) for name in one.offset_names]
        left = eliminated(one.told.merge(one.loose_prior()), one.inner)
        placed = np.zeros((left.n + len(own), len(names)))
        placed[: left.n, own] = left.R
        placed[np.arange(left.n, len(placed)), own] = 1.0 / one.offset_scales(*OFFSET_SIZES)
        rows = rows.add(placed, np.zeros(len(placed)))
    if not names:
        return {}
    root = np.linalg.inv(rows.R)
    return dict(zip(names, np.linalg.norm(root, axis=1).tolist(), strict=True))


MAX_INTERVAL = 10.0
"""Time between two refits that counts [s]: nobody looked in between."""
SETTLING = 20.0
"""Time for which it is a mean at first, and in which what was refused is forgotten [s]."""


class Proposal(NamedTuple):
    """What would be subtracted."""

    values: dict[str, float]
    """Of all offsets that are told or ever were [N, Nm]."""
    refused: dict[str, float]
    """What bodies have changed lately that was not taken [N, Nm]."""


@dataclass
class FollowedOffsets:
    """What is subtracted, by the names of the columns of offsets."""

    force_drift: float
    """How fast a force is followed [N/s]."""
    moment_drift: float
    """How fast a moment is [Nm/s]."""
    values: dict[str, float] = field(default_factory=dict)
    """Those that were ever told [N, Nm]."""
    _refused: dict[str, float] = field(default_factory=dict)
    """What bodies have changed lately that was not taken [N, Nm]."""
    _ages: dict[str, float] = field(default_factory=dict)
    """For how long rows have told them since [s]."""

    def proposed(
        self,
        found: Mapping[str, float],
        before: Mapping[str, float],
        told: Iterable[str],
        seconds: float,
    ) -> Proposal:
        """
        Return what would be subtracted beside other bodies.

        found [N, Nm]; seconds [s].
        """
        told, seconds = set(told), min(max(seconds, 0.0), MAX_INTERVAL)
        proposed = {name: value for name, value in found.items() if name in told}
        refused: dict[str, float] = {}
        kept = float(np.exp(-seconds / SETTLING))
        for names in _wrenches(name for name in found if name in self.values):
            wanted, old, beside = (
                np.array([values[name] for name in names])
                for values in (found, self.values, before)
            )
            owed = kept * np.array([self._refused.get(name, 0.0) for name in names])
            taken, owed = _explained(wanted - beside, wanted - old, owed)
            new = old + taken
            left = np.where([name in told for name in names], wanted - new, 0.0)
            new += self._share(names, float(np.linalg.norm(left)), seconds) * left
            proposed |= dict(zip(names, new.tolist(), strict=True))
            refused |= dict(zip(names, owed.tolist(), strict=True))
        return Proposal(proposed, refused)

    def _share(self, names: Sequence[str], far: float, seconds: float) -> float:
        """Return how much of what is left of a force or a moment is followed."""
        kind = names[0].rpartition('.')[2]
        drift = self.force_drift if kind.startswith('force') else self.moment_drift
        age = min(self._ages[name] for name in names)
        settling = seconds / (age + seconds) if seconds and age < SETTLING else 0.0
        return max(min(1.0, drift * seconds / far) if far else 1.0, settling)

    def take(self, proposal: Proposal, told: Iterable[str], seconds: float) -> None:
        """Go on with what was proposed."""
        told, passed = set(told), min(max(seconds, 0.0), MAX_INTERVAL)
        self._ages |= {
            name: self._ages[name] + passed * (name in told) if name in self.values else 0.0
            for name in proposal.values
        }
        self.values |= proposal.values
        self._refused |= proposal.refused

    def forget(self, names: Iterable[str]) -> None:
        """Take what is told next for what is subtracted."""
        for name in names:
            self.values.pop(name, None)
            self._refused.pop(name, None)

    def shift(self, change: Mapping[str, float]) -> None:
        """
        Go on as if more had been subtracted from all readings.

        change [N, Nm].
        """
        for name, more in change.items():
            if name in self.values:
                self.values[name] -= more


def _explained(with_bodies: Array, wanted: Array, refused: Array) -> tuple[Array, Array]:
    """
    Return as much of what bodies change as leads to where the readings are, and what was refused.
    """
    in_all = refused + with_bodies
    refused = _along_with(in_all, refused) * refused
    new = in_all - refused
    taken = _along_with(wanted, new) * new
    return taken, in_all - taken


def _along_with(wanted: Array, change: Array) -> float:
    """Return how much of a change leads to what is wanted, from 0 to 1."""
    size = float(change @ change)
    return min(max(float(wanted @ change) / size, 0.0), 1.0) if size else 0.0


def _wrenches(names: Iterable[str]) -> list[list[str]]:
    """Return names by sensor, forces apart from moments."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition('_')[0], []).append(name)
    return list(groups.values())
