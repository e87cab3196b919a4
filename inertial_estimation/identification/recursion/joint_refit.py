# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bodies of all submodels, and the offsets of the FT sensors that they share.

    minimise  sum over submodels of  1/2 |R x - rho|^2 + count * weight * divergence to the prior

With the entropic divergence `joint_newton` finds all of them at once where the minimum is near,
as it is in a running robot. Else, and with other methods, each submodel is eliminated onto the
offsets by a model of second order about its bodies; the offsets that fit all submodels best are
found from that; then each submodel is refitted for itself with the offsets given. Where bodies
move, the models move with them: it is Newton's method on what the best bodies leave, as a
function of the offsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import prior_of_method
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.recursion.joint_newton import joint_minimum
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.row_space import RowSpace, eliminated
from inertial_estimation.identification.solvers.methods import SOLVERS, Distance
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

    knowledge: SubmodelMemory
    x: Array
    """All unknowns, shape (n_unknowns,)."""

    @property
    def parameters(self) -> Array:
        """Inertial parameters of its links, shape (n_links, 10)."""
        return self.knowledge.block.unknowns.split(self.x)[0]


@dataclass(frozen=True, eq=False)
class JointRefit:
    """All submodels that have rows."""

    bodies: tuple[Bodies, ...]
    offsets: Mapping[str, float]
    """Of FT sensors by the names of their columns [N, Nm]."""


@one_thread()
def joint_refit(
    known: Sequence[SubmodelMemory],
    weight: float,
    start: Mapping[str, Array] | None = None,
    method: str = 'entropic',
) -> JointRefit:
    """
    Refit bodies and offsets.

    start (n_links, 10).
    """
    near = {one.block.submodel.name: one.prior for one in known} | dict(start or {})
    names = tuple(dict.fromkeys(name for one in known for name in one.offset_names))
    problems = [_problem(one) for one in known]
    entropic = SOLVERS[method].distance is Distance.ENTROPIC
    found = joint_minimum(known, problems, names, weight, near) if entropic else None
    if found is None:
        return _in_turn(known, problems, names, weight, near, method)
    bodies = []
    for one, inner in zip(known, found.unknowns, strict=True):
        own = [names.index(name) for name in one.offset_names]
        bodies.append(_joined(one, inner, found.offsets[own]))
    return JointRefit(tuple(bodies), dict(zip(names, found.offsets.tolist(), strict=True)))


def _in_turn(
    known: Sequence[SubmodelMemory],
    problems: Sequence[Problem],
    names: Sequence[str],
    weight: float,
    near: Mapping[str, Array],
    method: str = 'entropic',
) -> JointRefit:
    """Return offsets of all, then bodies of each, until they agree."""
    offsets = np.zeros(len(names))
    bodies: list[Bodies] = []
    for _ in range(ROUNDS):
        rows = _offset_rows(known, names, weight, near, SOLVERS[method].distance)
        offsets = RowSpace.of(rows.R).solve(rows.rho) if names else offsets
        bodies = []
        for one, problem in zip(known, problems, strict=True):
            given = offsets[[names.index(name) for name in one.offset_names]]
            start = near[one.block.submodel.name]
            bodies.append(_bodies(one, problem, given, weight, start, method))
        before, near = near, {one.knowledge.block.submodel.name: one.parameters for one in bodies}
        moved = [
            one.largest_change(near[one.block.submodel.name] - before[one.block.submodel.name])
            for one in known
        ]
        # A model that is quadratic is right everywhere.
        if max(moved) <= NEAR or SOLVERS[method].distance is not Distance.ENTROPIC:
            break
    return JointRefit(tuple(bodies), dict(zip(names, offsets.tolist(), strict=True)))


def _offset_rows(
    known: Sequence[SubmodelMemory],
    names: Sequence[str],
    weight: float,
    near: Mapping[str, Array],
    distance: Distance,
) -> Information:
    """Return what all submodels say of offsets, their bodies eliminated."""
    total = Information.empty(len(names))
    for one in known:
        information = one.drawn
        if information is None or not len(one.offsets):
            continue
        bodies = near[one.block.submodel.name]
        drawn = weight * information.count
        prior = prior_of_method(
            distance, {}, one.block.unknowns, one.prior, bodies, one.scales, drawn
        )
        assert prior is not None
        left = eliminated(information.merge(prior), one.inner)
        placed = np.zeros((left.n, len(names)))
        placed[:, [names.index(name) for name in one.offset_names]] = left.R
        total = total.add(placed, left.rho)
    return total


def _problem(one: SubmodelMemory) -> Problem:
    """Return what the rows of a submodel say if all its offsets are zero."""
    information, unknowns = one.drawn, one.block.unknowns
    assert information is not None
    inner = one.inner
    own = tuple(extra for extra in unknowns.extras if extra.term not in FT_OFFSET)
    return Problem(
        Unknowns(unknowns.links, own),
        information.R[:, inner],
        information.rho,
        information.energy,
        information.count,
        one.prior,
        extra_scales=one.scales[inner[unknowns.n_inertial :] - unknowns.n_inertial],
    )


def _bodies(
    one: SubmodelMemory, problem: Problem, offsets: Array, weight: float, near: Array, method: str
) -> Bodies:
    """Return the best bodies of a submodel for given offsets."""
    assert one.drawn is not None
    target = problem.target - one.drawn.R[:, one.offsets] @ offsets
    options: dict[str, Any] = {'weight': weight, 'noise': 1.0}
    if SOLVERS[method].consistent:
        options['with_deviations'] = False
    if method == 'entropic' and not problem.unknowns.extras:
        options['start'] = problem.unknowns.join(near)
    answer = SOLVERS[method](replace(problem, target=target), **options)
    return _joined(one, answer.x, offsets)


def _joined(one: SubmodelMemory, inner: Array, offsets: Array) -> Bodies:
    """Return all unknowns of a submodel."""
    x = np.empty(len(one.block.unknowns))
    x[one.inner], x[one.offsets] = inner, offsets
    return Bodies(one, x)
