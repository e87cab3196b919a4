# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Priors from a robot description: what solvers ask for is a body with volume for every link.

Descriptions hold links without mass, points and sticks, and inertias that break the triangle
inequality because somebody rounded or guessed them. Their second moments are raised to those of
a small ball, which says next to nothing beside rows; the impossible is refused.

The prior of each method as rows, to second order where it is not quadratic.

How much the prior weighs against the rows: as a share of them, or as a number of them.

Solvers take the mean of the rows, so a share pulls as much however long a log is. A number of
rows is what a prior is to Bayes: it rules while there are few rows and is forgotten as they grow.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ModelError, ShapeError
from inertial_estimation.identification.arguments import choice
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.solvers.coordinates import (
    LEAST_WEIGHT,
    MOST_WEIGHT,
    require_weight,
)
from inertial_estimation.identification.solvers.divergence import (
    entropic_gradient,
    entropic_roots,
    symmetric,
    whitening,
)
from inertial_estimation.identification.solvers.methods import Distance
from inertial_estimation.identification.solvers.semidefinite import PriorTerm
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.usable_parameters import LARGEST_ARM

Array = NDArray[np.float64]

SMALLEST_MASS = 1e-3
"""Mass that a link without one gets [kg]."""
SMALLEST_RADIUS = 5e-3
"""Radius of the ball whose second moments every link has at least [m]."""
SMALLEST_INERTIA = 1e-7
"""
Norm of an inertia tensor that a link without mass may have, as some descriptions of frames say
[kg m^2]: some ten times that of the ball of `SMALLEST_MASS` that it becomes.
"""
ROUND_OFF = 1e-9
"""Negative moments of inertia within this share of those about the link's origin count as zero."""


def widened(names: Sequence[str], parameters: Array) -> tuple[Array, tuple[str, ...]]:
    """
    Return a prior that is strictly fully physically consistent.

    parameters (n_links, 10); returns parameters (n_links, 10).
    """
    if parameters.shape != (len(names), 10):
        raise ShapeError('parameters', (len(names), 10), parameters.shape)
    rows = [_widened(name, row) for name, row in zip(names, parameters, strict=True)]
    found = np.array(rows).reshape(len(names), 10)
    assert (consistency_margin(found) > 0).all()
    same = [np.array_equal(a, b) for a, b in zip(found, parameters, strict=True)]
    return found, tuple(name for name, is_same in zip(names, same, strict=True) if not is_same)


def _widened(name: str, parameters: Array) -> Array:
    """Return the parameters of one link, (10,); the same ones where nothing is too small."""
    if not np.isfinite(parameters).all():
        raise _impossible(name, 'holds NaN or infinity')
    mass, first = parameters[0], parameters[1:4]
    if mass < 0:
        raise _impossible(name, f'has a mass of {mass:g} kg')
    if not mass and first.any():
        raise _impossible(name, 'has a first moment but no mass')
    center = first / mass if mass else np.zeros(3)
    arm = float(np.linalg.norm(center))
    if arm > LARGEST_ARM:
        raise _impossible(
            name,
            f'has its centre of mass {arm:g} m off its origin, expected up to {LARGEST_ARM:g}',
        )
    about_origin = _tensor(parameters)
    if not mass and np.linalg.norm(about_origin) > SMALLEST_INERTIA:
        raise _impossible(name, 'has moments of inertia but no mass')
    inertia = about_origin - mass * _point(center)
    least = np.linalg.eigvalsh(inertia)[0]
    if least < -ROUND_OFF * np.linalg.norm(about_origin):
        raise _impossible(
            name, f'has a moment of inertia of {least:.3g} kg m^2 about its centre of mass'
        )
    moments, axes = np.linalg.eigh(0.5 * np.trace(inertia) * np.eye(3) - inertia)
    total = mass or SMALLEST_MASS
    floor = total * SMALLEST_RADIUS**2 / 5
    if mass and moments[0] >= floor:
        return parameters
    second = (axes * np.maximum(moments, floor)) @ axes.T
    inertia = np.trace(second) * np.eye(3) - second + total * _point(center)
    return np.array([total, *first, *inertia[np.tril_indices(3)]])


def _tensor(parameters: Array) -> Array:
    """Return the inertia tensor of parameters, (3, 3)."""
    xx, xy, yy, xz, yz, zz = parameters[4:]
    return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])


def _point(p: Array) -> Array:
    """Return the inertia tensor of one kilogram at a point, (3, 3)."""
    return float(p @ p) * np.eye(3) - np.outer(p, p)


def _impossible(name: str, why: str) -> ModelError:
    """Return what to say of a prior that nobody can mean."""
    return ModelError(
        f"the prior of '{name}' {why}, which no body of a robot has; mend its inertial in the "
        'robot description'
    )


OF_TERMS = {
    PriorTerm.NONE: Distance.NONE,
    PriorTerm.EUCLIDEAN: Distance.EUCLIDEAN,
    PriorTerm.PULLBACK: Distance.PULLBACK,
}
"""What those of semidefinite programs mean."""


def prior_of_method(
    distance: Distance,
    options: Mapping[str, Any],
    unknowns: Unknowns,
    prior: Array,
    near: Array,
    scales: Array | None,
    weight: float,
) -> Information | None:
    """
    Return rows whose half square is the prior's distance in a method, times a weight.

    prior (n_links, 10); near (n_links, 10); scales (n_extras,).
    """
    if 'prior' in options:
        distance = OF_TERMS[choice(PriorTerm, 'prior', options['prior'])]
    if distance is Distance.NONE:
        return None
    if distance is Distance.EUCLIDEAN:
        scales_of_links = options.get('scales')
        sizes = np.ones_like(prior) if scales_of_links is None else 1.0 / scales_of_links
        roots, targets = sizes[:, :, None] * np.eye(10), sizes * prior
    else:
        roots, targets = _entropic(prior, near if distance is Distance.ENTROPIC else prior)
    return _as_rows(unknowns, roots, targets, scales, weight)


def entropic_model(
    unknowns: Unknowns, prior: Array, near: Array, scales: Array | None, weight: float
) -> Information:
    """Return rows whose half square is the log-det divergence to second order, times a weight."""
    return _as_rows(unknowns, *_entropic(prior, near), scales, weight)


def _as_rows(
    unknowns: Unknowns, roots: Array, targets: Array, scales: Array | None, weight: float
) -> Information:
    """Return rows of each link as rows of all unknowns."""
    n = len(unknowns)
    rows, target = np.zeros((n, n)), np.zeros(n)
    for k, root in enumerate(roots):
        own = slice(10 * k, 10 * k + 10)
        rows[own, own], target[own] = root, targets[k]
    rest = np.arange(unknowns.n_inertial, n)
    rows[rest, rest] = 0.0 if scales is None else 1.0 / scales
    size = np.sqrt(weight)
    return replace(Information.of(size * rows, size * target), count=0.0)


def _entropic(prior: Array, near: Array) -> tuple[Array, Array]:
    """Return rows of each link, (n_links, 10, 10), and their right-hand sides, (n_links, 10)."""
    maps = np.linalg.inv(whitening(prior))
    shapes = symmetric(np.einsum('lij,lj->li', maps, near - prior))
    inside = np.linalg.eigvalsh(shapes)[:, 0] > -1.0
    about = np.where(inside[:, None], near, prior)
    shapes = np.where(inside[:, None, None], shapes, 0.0)
    roots = entropic_roots(shapes)
    slopes = entropic_gradient(shapes)[..., None]
    moved = np.linalg.solve(np.swapaxes(roots, -1, -2), slopes)[..., 0]
    rows = roots @ maps
    return rows, np.einsum('lij,lj->li', rows, about) - moved


_ROWS = re.compile(r'(?P<rows>[^-]+)-rows?')


@dataclass(frozen=True)
class PriorRows:
    """The weight of so many independent rows of unit noise."""

    rows: float

    def __post_init__(self) -> None:
        """Raise unless it is a weight."""
        require_weight(self.rows)

    def __str__(self) -> str:
        """Return what `prior_weight` reads."""
        return f'{self.rows:g}-row{"" if self.rows == 1.0 else "s"}'

    def of(self, count: float) -> float:
        """Return the weight against the mean of so many independent rows."""
        return self.rows / count


DEFAULT_PRIOR_WEIGHT = PriorRows(10.0)
"""Of descriptions that are nearly right."""


def prior_weight(text: str) -> float | PriorRows:
    """Return the weight that a text says."""
    rows = _ROWS.fullmatch(text)
    try:
        if rows is not None:
            return PriorRows(float(rows['rows']))
        weight = float(text)
        require_weight(weight)
    except (ValueError, ModelError) as error:
        raise ConfigError(
            f"'{text}' is no weight of a prior: give a number from {LEAST_WEIGHT:g} to "
            f'{MOST_WEIGHT:g} or a number of rows such as {DEFAULT_PRIOR_WEIGHT}'
        ) from error
    return weight


def against_the_mean(options: Mapping[str, Any], count: float) -> dict[str, Any]:
    """Return options of a solver whose weight is a number."""
    weight = options.get('weight', DEFAULT_PRIOR_WEIGHT)
    return {**options, 'weight': weight.of(count) if isinstance(weight, PriorRows) else weight}
