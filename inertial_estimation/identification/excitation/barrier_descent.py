# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Minimising a smooth function inside linear limits, without ever leaving them.

A logarithmic barrier keeps away from the limits and quasi-Newton steps (BFGS) go down, so that a
search that is stopped early returns a point that may be used.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ENOUGH = 1e-4
"""Share of the decrease that the slope promises which a step must bring."""
SHORTEST = 1e-8
"""Share of a step below which the search along it is given up."""
CURVATURE = 0.3
"""First guess of the second derivative of the function."""


class Value(NamedTuple):
    """A function at a point; infinite where it must not go."""

    value: float
    gradient: Array


Function = Callable[[Array], Value]


@dataclass(frozen=True, eq=False)
class LinearLimits:
    """Points x with ``|A_j x_j + offset_j| < 1`` for each group j of variables."""

    A: Array
    """Shape (n_groups, m, k)."""
    offset: Array
    """Shape (n_groups, m)."""

    def values(self, x: Array) -> Array:
        """Return what must be between -1 and 1; x (n_groups, k); returns (n_groups, m)."""
        return np.asarray((self.A @ x[..., None])[..., 0] + self.offset)

    def barrier(self, x: Array) -> Value:
        """Return the mean logarithmic barrier of each group, summed; x (n_groups, k)."""
        y = self.values(x)
        room = 1.0 - y**2
        if not room.min() > 0.0:
            return Value(np.inf, np.zeros_like(x))
        m = y.shape[1]
        slopes = np.einsum('jm,jmk->jk', 2.0 * y / room, self.A) / m
        return Value(float(-np.log(room).sum() / m), slopes)

    def curvature(self, x: Array) -> Array:
        """
        Return the second derivative of the barrier.

        x (n_groups, k); returns (n_groups, k, k).
        """
        y = self.values(x)
        room = 1.0 - y**2
        weights = 2.0 / room + 4.0 * y**2 / room**2
        products = np.einsum('jma,jm,jmb->jab', self.A, weights, self.A, optimize=True)
        return np.asarray(products / y.shape[1])


def minimise_inside(
    function: Function,
    limits: LinearLimits,
    x: Array,
    weight: float,
    *,
    tolerance: float = 1e-5,
    steps: int = 200,
    stop: Callable[[], bool] = lambda: False,
) -> Array:
    """Go down a function, and keep inside its limits; x (n_groups, k); returns (n_groups, k)."""

    def whole(x: Array) -> Value:
        barrier = limits.barrier(x)
        if not np.isfinite(barrier.value):
            return barrier
        here = function(x)
        return Value(
            here.value + weight * barrier.value, here.gradient + weight * barrier.gradient
        )

    here = whole(x)
    inverse = _first_inverse(limits, x, weight)
    for _ in range(steps):
        step = -(inverse @ here.gradient.reshape(-1)).reshape(x.shape)
        share, there = _along(whole, here, x, step)
        if not share:
            break
        moved = share * step.reshape(-1)
        inverse = _updated(inverse, moved, (there.gradient - here.gradient).reshape(-1))
        gained = here.value - there.value
        x, here = x + share * step, there
        if gained < tolerance or stop():
            break
    return x


def _along(whole: Function, here: Value, x: Array, step: Array) -> tuple[float, Value]:
    """Return how much of a step to take, and what is there; none if it leads nowhere."""
    slope = float(np.sum(here.gradient * step))
    share = 1.0
    while share > SHORTEST:
        there = whole(x + share * step)
        if there.value < here.value + ENOUGH * share * slope:
            return share, there
        share /= 2.0
    return 0.0, here


def _first_inverse(limits: LinearLimits, x: Array, weight: float) -> Array:
    """Return the inverse of the second derivative as far as it is known."""
    groups, k = x.shape
    known = weight * limits.curvature(x) + CURVATURE * np.eye(k)
    inverse = np.zeros((groups, k, groups, k))
    inverse[np.arange(groups), :, np.arange(groups)] = np.linalg.inv(known)
    return inverse.reshape(groups * k, groups * k)


def _updated(inverse: Array, moved: Array, change: Array) -> Array:
    """Return the inverse after a step (BFGS), as it was where the curvature is not positive."""
    product = float(moved @ change)
    if product <= np.finfo(float).eps * float(np.linalg.norm(moved) * np.linalg.norm(change)):
        return inverse
    turned = inverse @ change
    both = np.outer(turned, moved)
    gain = (1.0 + float(change @ turned) / product) / product
    return np.asarray(inverse + gain * np.outer(moved, moved) - (both + both.T) / product)
