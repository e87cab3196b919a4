# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The prior of each method as rows, to second order where it is not quadratic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.arguments import choice
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.solvers.divergence import (
    entropic_gradient,
    entropic_roots,
    symmetric,
    whitening,
)
from inertial_estimation.identification.solvers.methods import Distance
from inertial_estimation.identification.solvers.semidefinite import PriorTerm
from inertial_estimation.identification.unknowns import Unknowns

Array = NDArray[np.float64]

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
