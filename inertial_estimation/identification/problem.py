# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One problem for every solver, of equations, prior and bounds, and one answer.

    minimise  1/2 mean((factor x - target)^2)  +  weight * (distance of x to the prior)

The mean is over the measured equations, so that the weight of the prior means the same for a
second of data and for an hour [theory: mean form]. Equations are in units of their noise where it
is known: a mean of one is then a perfect fit. An answer is graded by its optimality residual.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.information import Information, require_array
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia


@dataclass(frozen=True, eq=False)
class Bounds:
    """
    Bounds beyond full physical consistency; all optional, infinite where there is none.

    Attributes
    ----------
    mass : ndarray, shape (n_links, 2)
        Least and greatest mass of each link [kg].
    center_of_mass : ndarray, shape (n_links, 2, 3)
        Box of each centre of mass, lower then upper corner [m].
    ellipsoids : ndarray, shape (n_links, 4, 4)
        Ellipsoid that holds all mass of each link: Q with [x; 1]' Q [x; 1] >= 0 inside, so that
        tr(Q J) >= 0 [W]. NaN where there is none.
    total_mass : ndarray, shape (2,)
        Least and greatest sum of all masses [kg].
    extras : ndarray, shape (n_extras, 2)
        Least and greatest value of each other unknown.

    """

    mass: Array | None = None
    center_of_mass: Array | None = None
    ellipsoids: Array | None = None
    total_mass: Array | None = None
    extras: Array | None = None

    def check(self, n_links: int, n_extras: int) -> None:
        """Raise unless all arrays have their shape and hold no NaN but for missing ellipsoids."""
        for name, shape in (
            ('mass', (n_links, 2)), ('center_of_mass', (n_links, 2, 3)),
            ('ellipsoids', (n_links, 4, 4)), ('total_mass', (2,)), ('extras', (n_extras, 2)),
        ):  # fmt: skip
            array = getattr(self, name)
            if array is None:
                continue
            require_array(f'bounds.{name}', array, shape)
            if name == 'ellipsoids':
                numbers = np.isfinite(array).sum(axis=(1, 2))
                wrong = (numbers > 0) & (numbers < 16)
            else:
                wrong = np.isnan(array)
            if wrong.any():
                raise ModelError(f"'bounds.{name}' holds NaN")


@dataclass(frozen=True, eq=False)
class LinearBounds:
    """Inequalities ``rows @ x >= limits`` on all unknowns."""

    rows: Array
    """Shape (k, n)."""
    limits: Array
    """Shape (k,)."""
    names: tuple[str, ...]
    values: Array
    """Of the quantities at the bounds, shape (k,); NaN: an ellipsoid."""

    @classmethod
    def of(cls, bounds: Bounds, unknowns: Unknowns) -> LinearBounds:
        """Return the finite bounds: x >= l and -x >= -u."""
        n, rows, limits, names, values = len(unknowns), [], [], [], []
        for name, columns, mass, pair in _quantities(bounds, unknowns):
            for value, sign, side in zip(pair, (1.0, -1.0), ('least', 'greatest'), strict=True):
                if np.isfinite(value):
                    row = np.zeros(n)
                    row[columns] = sign
                    if mass is not None:
                        row[mass] = -sign * value
                    rows.append(row)
                    limits.append(0.0 if mass is not None else sign * value)
                    names.append(f'{side} {name}')
                    values.append(value)
        for k, Q in enumerate(() if bounds.ellipsoids is None else bounds.ellipsoids):
            if np.isfinite(Q).all():
                row = np.zeros(n)
                row[10 * k : 10 * k + 10] = np.einsum('ij,pij->p', Q, pseudo_inertia(np.eye(10)))
                rows.append(row)
                limits.append(0.0)
                names.append(f'ellipsoid of {unknowns.links[k]}')
                values.append(np.nan)
        return cls(np.array(rows).reshape(-1, n), np.array(limits), tuple(names), np.array(values))

    def slack(self, x: Array) -> Array:
        """Return the slack of each bound, positive inside, (k,); unknowns (n,)."""
        return np.asarray(self.rows @ x - self.limits)


def _quantities(
    bounds: Bounds, unknowns: Unknowns
) -> Iterator[tuple[str, int | slice, int | None, Array]]:
    """Yield name, columns, column of the mass that it is divided by, and limits."""
    if bounds.mass is not None:
        for k, pair in enumerate(bounds.mass):
            yield f'mass of {unknowns.links[k]}', 10 * k, None, pair
    if bounds.center_of_mass is not None:
        for k, box in enumerate(bounds.center_of_mass):
            for axis, pair in enumerate(box.T):
                name = f'{"xyz"[axis]} of the centre of mass of {unknowns.links[k]}'
                yield name, 10 * k + 1 + axis, 10 * k, pair
    if bounds.total_mass is not None:
        yield 'total mass', slice(0, unknowns.n_inertial, 10), None, bounds.total_mass
    if bounds.extras is not None:
        for k, pair in enumerate(bounds.extras):
            yield str(unknowns.extras[k]), unknowns.n_inertial + k, None, pair


@dataclass(frozen=True, eq=False)
class Problem:
    """
    An identification problem.

    Attributes
    ----------
    unknowns : Unknowns
    factor : ndarray, shape (r, n)
        [factor target] has the triangle of all equations.
    target : ndarray, shape (r,)
    energy : float
        Squared residual that no unknowns can explain.
    count : float
        Number of measured equations.
    prior : ndarray, shape (n_links, 10)
        Prior parameters.
    extra_scales : ndarray, shape (n_extras,), optional
        Standard deviations of the other unknowns, whose prior is zero. Default: infinite.
    bounds : Bounds

    Raises
    ------
    ModelError, ShapeError
        If the arrays do not belong together, or hold NaN.

    """

    unknowns: Unknowns
    factor: Array
    target: Array
    energy: float
    count: float
    prior: Array
    extra_scales: Array | None = None
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        n, n_links = len(self.unknowns), len(self.unknowns.links)
        n_extras = len(self.unknowns.extras)
        require_array('factor', self.factor)
        if self.factor.ndim != 2 or self.factor.shape[1] != n:
            raise ShapeError('factor', ('r', n), self.factor.shape, 'one column per unknown')
        require_array('target', self.target, (len(self.factor),))
        require_array('prior', self.prior, (n_links, 10))
        if self.extra_scales is not None:
            require_array('extra_scales', self.extra_scales, (n_extras,))
        for name in ('factor', 'target', 'energy', 'count', 'prior'):
            if not np.isfinite(getattr(self, name)).all():
                raise ModelError(f"'{name}' holds NaN or infinity")
        if not self.energy >= 0.0:
            raise ModelError(f"'energy' is {self.energy:g}, expected zero or more")
        if not self.count > 0:
            raise ModelError('there are no equations: no sample was usable')
        if self.extra_scales is not None and not (self.extra_scales > 0.0).all():
            raise ModelError("'extra_scales' must be positive")
        self.bounds.check(n_links, n_extras)

    @classmethod
    def of(
        cls,
        unknowns: Unknowns,
        information: Information,
        prior: Array,
        *,
        extra_scales: Array | None = None,
        bounds: Bounds | None = None,
    ) -> Problem:
        """Return the problem of some information of all unknowns."""
        return cls(
            unknowns, information.R, information.rho, information.energy, information.count,
            prior, extra_scales, bounds or Bounds(),
        )  # fmt: skip

    def mean_square(self, x: Array) -> float:
        """Return the mean squared residual of some unknowns, (n,)."""
        residual = self.factor @ x - self.target
        return float(residual @ residual + self.energy) / self.count

    def prior_point(self) -> Array:
        """Return the prior of all unknowns, shape (n,)."""
        return self.unknowns.join(self.prior)

    def fitted_extras(self) -> Array:
        """Return the prior parameters with all other unknowns fitted, shape (n,)."""
        n = self.unknowns.n_inertial
        x = self.prior_point()
        rest = self.target - self.factor[:, :n] @ x[:n]
        x[n:] = np.linalg.lstsq(self.factor[:, n:], rest, rcond=None)[0]
        return x

    def require_consistent_prior(self) -> None:
        """Raise `ModelError` unless every link's prior is strictly consistent."""
        bad = ~(consistency_margin(self.prior) > 0)
        if bad.any():
            links = ', '.join(np.array(self.unknowns.links)[bad])
            raise ModelError(f'the prior is not strictly fully physically consistent: {links}')


class Grade(str, Enum):
    """Grade of an answer: the optimality residual is small, a budget ran out, it stayed large."""

    OPTIMAL = 'optimal'
    STOPPED = 'stopped'
    INACCURATE = 'inaccurate'


@dataclass(frozen=True, eq=False)
class Identification:
    """
    Answer to a `Problem`.

    Attributes
    ----------
    method : str
        Name of the solver.
    unknowns : Unknowns
    x : ndarray, shape (n,)
        All unknowns.
    deviations : ndarray, shape (n,)
        Standard deviation of each; infinite where it is not determined, NaN where no equations are
        left to estimate the noise or they were not asked for. Active constraints, which make an
        answer more certain, are not counted.
    rank : int
        Combinations of unknowns that the equations determine.
    mean_square : float
        Mean squared residual, in units of the noise where that is known.
    optimality : float
        Relative optimality residual, as the solver defines it.
    grade : Grade
    iterations : int
    notes : tuple of str
        Remarks of the solver, such as links on the boundary.

    """

    method: str
    unknowns: Unknowns
    x: Array
    deviations: Array
    rank: int
    mean_square: float
    optimality: float
    grade: Grade
    iterations: int
    notes: tuple[str, ...] = ()

    @property
    def parameters(self) -> Array:
        """Inertial parameters, shape (n_links, 10)."""
        return self.unknowns.split(self.x)[0]

    @property
    def extras(self) -> dict[str, float]:
        """The other unknowns by name; NaN where the deviation is infinite."""
        values = np.where(np.isinf(self.deviations), np.nan, self.x)
        names = map(str, self.unknowns.extras)
        return dict(zip(names, self.unknowns.split(values)[1].tolist(), strict=True))

    @cached_property
    def margins(self) -> Array:
        """Smallest eigenvalue of each link's pseudo-inertia, shape (n_links,)."""
        return consistency_margin(self.parameters)

    @property
    def consistent(self) -> bool:
        """True if every link is strictly fully physically consistent."""
        return bool((self.margins > 0).all())
