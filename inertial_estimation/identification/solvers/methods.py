# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Every method by its name, and what it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any

from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.problem import Problem
from inertial_estimation.identification.result import Identification
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.manifold import solve_manifold
from inertial_estimation.identification.solvers.mass_points import solve_mass_points
from inertial_estimation.identification.solvers.quadratic_priors import (
    solve_euclidean,
    solve_pullback,
)
from inertial_estimation.identification.solvers.semidefinite import solve_semidefinite


class Distance(Enum):
    """How far bodies are from the prior, as a method has it."""

    NONE = 'none'
    """Rows alone decide what they can."""
    EUCLIDEAN = 'euclidean'
    PULLBACK = 'pullback'
    ENTROPIC = 'entropic'


@dataclass(frozen=True)
class Method:
    """A solver with its promises; calling it solves."""

    solve: Callable[..., Identification]
    """``solve(problem, **options)``."""
    summary: str
    """What it does, in a line."""
    consistent: bool
    """Whether every answer is fully physically consistent."""
    invariant: bool
    """Whether another frame of a link, rotated or moved, only rotates and moves its answer."""
    weighted: bool
    """Whether ``weight`` says how much the prior weighs."""
    distance: Distance
    """To the prior, against the rows."""
    bounded: bool
    """Whether bounds are kept."""
    exactness: float
    """
    Relative error of the wrenches that rows without noise predict, the weight of the prior next
    to nothing and the truth within what the method can represent.
    """

    def __call__(self, problem: Problem, **options: Any) -> Identification:
        """Solve."""
        return self.solve(problem, **options)


SOLVERS: Mapping[str, Method] = MappingProxyType(
    {
        'least_squares': Method(
            solve_least_squares,
            'what rows say, nothing else',
            consistent=False,
            invariant=False,
            weighted=False,
            distance=Distance.NONE,
            bounded=False,
            exactness=1e-9,
        ),
        'euclidean': Method(
            solve_euclidean,
            'quadratic prior in SI units, no constraint',
            consistent=False,
            invariant=False,
            weighted=True,
            distance=Distance.EUCLIDEAN,
            bounded=False,
            exactness=1e-9,
        ),
        'pullback': Method(
            solve_pullback,
            'quadratic prior in the metric of the prior bodies, no constraint',
            consistent=False,
            invariant=True,
            weighted=True,
            distance=Distance.PULLBACK,
            bounded=False,
            exactness=1e-9,
        ),
        'entropic': Method(
            solve_entropic,
            'log-det divergence to the prior bodies, always consistent',
            consistent=True,
            invariant=True,
            weighted=True,
            distance=Distance.ENTROPIC,
            bounded=True,
            exactness=1e-9,
        ),
        'mass_points': Method(
            solve_mass_points,
            'masses at points in the shapes of the links, the prior fills up',
            consistent=True,
            invariant=False,
            weighted=False,
            distance=Distance.NONE,
            bounded=True,
            exactness=1e-4,
        ),
        'manifold': Method(
            solve_manifold,
            'mass, centre, principal axes and moments; consistent whenever it is stopped',
            consistent=True,
            invariant=True,
            weighted=True,
            distance=Distance.ENTROPIC,
            bounded=True,
            exactness=1e-8,
        ),
        'semidefinite': Method(
            solve_semidefinite,
            'quadratic prior, bodies as matrix inequalities, all bounds',
            consistent=True,
            invariant=True,
            weighted=True,
            distance=Distance.PULLBACK,
            bounded=True,
            exactness=1e-8,
        ),
    }
)


def solve(problem: Problem, method: str = 'entropic', **options: Any) -> Identification:
    """
    Solve an identification problem.

    Parameters
    ----------
    problem : Problem
        Equations, prior and bounds.
    method : str
        A key of `SOLVERS`.
    **options
        Of the method, e.g. ``weight`` of the prior.

    Returns
    -------
    Identification

    Raises
    ------
    NameNotFound
        If there is no such method.

    """
    if method not in SOLVERS:
        raise NameNotFound('method', method, SOLVERS)
    return SOLVERS[method](problem, **options)
