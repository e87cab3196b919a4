# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bodies of all submodels, and the offsets of the FT sensors that they share.

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * divergence to the prior

Submodels have nothing in common but the offsets of the sensors between them. So each is
eliminated onto these by a model of second order about its bodies; the offsets that fit all
submodels best are found from that; then each submodel is refitted for itself with the offsets
given. Where bodies move, the models move with them: it is Newton's method on what the best bodies
leave, as a function of the offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.elimination import eliminated
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.information.row_space import RowSpace
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.prior_models import entropic_model
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.knowledge import Knowledge
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.unknowns import FT_OFFSET, Unknowns

Array = NDArray[np.float64]

ROUNDS = 6
"""Of offsets and bodies at most."""
NEAR = 0.02
"""
Change of bodies, over their size, from which on models about them are made anew: what such models
are wrong by is the square of it.
"""


@dataclass(frozen=True, eq=False)
class Bodies:
    """What fits one submodel best."""

    knowledge: Knowledge
    answer: Identification
    """Of all unknowns but the offsets of FT sensors."""
    x: Array
    """All unknowns, shape (n_unknowns,)."""

    @property
    def parameters(self) -> Array:
        """Inertial parameters of its links, shape (n_links, 10)."""
        return self.answer.parameters


@dataclass(frozen=True, eq=False)
class JointRefit:
    """All submodels that have rows."""

    bodies: tuple[Bodies, ...]
    offsets: Mapping[str, float]
    """Of FT sensors by the names of their columns [N, Nm]."""
    offset_rows: Information
    """What all submodels say of them together, in that order."""


@one_thread()
def joint_refit(
    known: Sequence[Knowledge],
    weight: float,
    start: Mapping[str, Array] | None = None,
) -> JointRefit:
    """
    Refit bodies and offsets.

    Parameters
    ----------
    known : sequence of Knowledge
        Those that have rows in units of their noise.
    weight : float
        Of the prior, as of solvers.
    start : mapping of str to ndarray, shape (n_links, 10), optional
        Bodies to start from, strictly consistent, by the name of the submodel. Default: priors.

    Returns
    -------
    JointRefit

    """
    near = {one.block.submodel.name: one.prior for one in known} | dict(start or {})
    names = tuple(dict.fromkeys(name for one in known for name in one.offset_names))
    offsets = np.zeros(len(names))
    rows = Information.empty(len(names))
    for _ in range(ROUNDS):
        rows = _offset_rows(known, names, weight, near)
        offsets = RowSpace.of(rows.R).solve(rows.rho) if names else offsets
        given = dict(zip(names, offsets.tolist(), strict=True))
        bodies = [
            _bodies(one, given, weight, near[one.block.submodel.name], with_deviations=False)
            for one in known
        ]
        before, near = near, {one.knowledge.block.submodel.name: one.parameters for one in bodies}
        moved = [
            one.largest_change(near[one.block.submodel.name] - before[one.block.submodel.name])
            for one in known
        ]
        if max(moved) <= NEAR:
            break
    return JointRefit(tuple(bodies), given, rows)


def _offset_rows(
    known: Sequence[Knowledge], names: Sequence[str], weight: float, near: Mapping[str, Array]
) -> Information:
    """Return what all submodels say of offsets, their bodies eliminated."""
    total = Information.empty(len(names))
    for one in known:
        information = one.information
        if information is None or not len(one.offsets):
            continue
        bodies = near[one.block.submodel.name]
        prior = entropic_model(
            one.block.unknowns, one.prior, bodies, one.scales, weight * information.count
        )
        inner = np.setdiff1d(np.arange(information.n), one.offsets)
        left = eliminated(information.merge(prior), inner)
        placed = np.zeros((left.n, len(names)))
        placed[:, [names.index(name) for name in one.offset_names]] = left.R
        total = total.add(placed, left.rho)
    return total


def _bodies(
    one: Knowledge, offsets: Mapping[str, float], weight: float, near: Array, *,
    with_deviations: bool,
) -> Bodies:  # fmt: skip
    """Return the best bodies of a submodel for given offsets."""
    information, unknowns = one.information, one.block.unknowns
    assert information is not None
    given = np.array([offsets[name] for name in one.offset_names])
    inner = np.setdiff1d(np.arange(information.n), one.offsets)
    own = tuple(extra for extra in unknowns.extras if extra.term not in FT_OFFSET)
    scales = one.scales[inner[unknowns.n_inertial :] - unknowns.n_inertial]
    target = information.rho - information.R[:, one.offsets] @ given
    problem = Problem(
        Unknowns(unknowns.links, own),
        information.R[:, inner],
        target,
        information.energy,
        information.count,
        one.prior,
        extra_scales=scales,
    )
    start = problem.unknowns.join(near) if not own else None
    answer = solve_entropic(
        problem, weight=weight, start=start, noise=1.0, with_deviations=with_deviations
    )
    x = np.empty(information.n)
    x[inner], x[one.offsets] = answer.x, given
    return Bodies(one, answer, x)
