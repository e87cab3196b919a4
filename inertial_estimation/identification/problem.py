# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
One problem for every solver: rows to fit, a body to stay near, bounds to stay within.

    minimise  1/2 mean((factor x - target)^2)  +  weight * (distance of x to the prior)

The mean is over the rows that were measured, so that the weight of the prior means the same for a
second of data and for an hour; the prior does not fade [theory: mean form]. Rows are in units of
their noise where the noise is known, so a mean of one is a perfect fit.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.identification.arguments import require_array, require_number
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.inertia import consistency_margin

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bounds:
    """
    What is known beforehand; every array is optional, and infinite where nothing is known.

    A body is always asked to be fully physically consistent by the solvers that can; this is what
    is known beyond.
    """

    mass: Array | None = None
    """Least and greatest mass of each link, shape (n_links, 2) [kg]."""
    center_of_mass: Array | None = None
    """Box of each link's centre of mass, shape (n_links, 2, 3), lower then upper corner [m]."""
    ellipsoids: Array | None = None
    """
    Ellipsoid that holds all mass of each link: Q with [x; 1]' Q [x; 1] >= 0 inside, shape
    (n_links, 4, 4); then tr(Q J) >= 0 [W]. NaN where there is none.
    """
    total_mass: Array | None = None
    """Least and greatest sum of all masses, shape (2,) [kg]."""
    extras: Array | None = None
    """Least and greatest value of each other unknown, shape (n_extras, 2)."""


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved; it does not say how."""

    unknowns: Unknowns
    factor: Array
    """Shape (r, n), any number of rows: [factor target] has the triangle of all rows."""
    target: Array
    """Shape (r,)."""
    energy: float
    """Squared residual that no unknowns can explain."""
    count: float
    """Rows that were measured; the fit is their mean."""
    prior: Array
    """Parameters that the links probably have, shape (n_links, 10), as in `model.inertia`."""
    prior_extras: Array | None = None
    """Other unknowns likewise, shape (n_extras,). Default: zeros."""
    extra_scales: Array | None = None
    """
    How far each other unknown may well be from there, shape (n_extras,); infinite (the default)
    where nothing is known.
    """
    bounds: Bounds = field(default_factory=Bounds)

    def __post_init__(self) -> None:
        """Raise unless the arrays belong together."""
        for name, value, kind in (
            ('unknowns', self.unknowns, Unknowns), ('bounds', self.bounds, Bounds),
        ):  # fmt: skip
            if not isinstance(value, kind):
                raise ModelError(f"'{name}' must be {kind.__name__}, not {type(value).__name__}")
        require_array('factor', self.factor)
        n, n_links = len(self.unknowns), len(self.unknowns.links)
        n_extras = len(self.unknowns.extras)
        if self.factor.ndim != 2 or self.factor.shape[1] != n:
            raise ShapeError('factor', ('r', n), self.factor.shape, 'one column per unknown')
        for name, array, shape in (
            ('target', self.target, (len(self.factor),)),
            ('prior', self.prior, (n_links, 10)),
            ('prior_extras', self.prior_extras, (n_extras,)),
            ('extra_scales', self.extra_scales, (n_extras,)),
            ('bounds.mass', self.bounds.mass, (n_links, 2)),
            ('bounds.center_of_mass', self.bounds.center_of_mass, (n_links, 2, 3)),
            ('bounds.ellipsoids', self.bounds.ellipsoids, (n_links, 4, 4)),
            ('bounds.total_mass', self.bounds.total_mass, (2,)),
            ('bounds.extras', self.bounds.extras, (n_extras, 2)),
        ):
            if array is not None or name in ('target', 'prior'):
                require_array(name, array, shape)
        if not (np.isfinite(self.factor).all() and np.isfinite(self.target).all()):
            raise ModelError('rows hold NaN or infinity: leave these rows out')
        require_number('energy', self.energy, least=0.0)
        require_number('count', self.count)
        if not np.isfinite([self.energy, self.count]).all():
            raise ModelError(f'energy and count must be finite, not {self.energy}, {self.count}')
        if not self.count > 0:
            raise ModelError('there are no rows to fit: no sample was usable')
        self._require_sense()

    def _require_sense(self) -> None:
        """Raise if what is known of the unknowns cannot be meant."""
        if self.prior_extras is not None and not np.isfinite(self.prior_extras).all():
            raise ModelError("'prior_extras' hold NaN or infinity")
        if self.extra_scales is not None and not (self.extra_scales > 0.0).all():
            names = map(str, self.unknowns.extras)
            bad = [one for one, s in zip(names, self.extra_scales, strict=True) if not s > 0.0]
            raise ModelError(
                'extra_scales must be positive, or infinite where nothing is known: '
                f'{", ".join(bad)}'
            )
        for name in ('mass', 'center_of_mass', 'total_mass', 'extras'):
            limits = getattr(self.bounds, name)
            if limits is not None and np.isnan(limits).any():
                raise ModelError(f"'bounds.{name}' hold NaN: infinite is what stands for none")
        shapes = self.bounds.ellipsoids
        if shapes is not None:
            numbers = np.isfinite(shapes).sum(axis=(1, 2))
            links = np.array(self.unknowns.links)[(numbers > 0) & (numbers < 16)]
            if len(links):
                raise ModelError(
                    f'ellipsoids hold some NaN or infinity: {", ".join(links)}; all of them stand '
                    'for none'
                )

    @classmethod
    def of(
        cls,
        unknowns: Unknowns,
        information: Information,
        prior: Array,
        **others: Array | Bounds | None,
    ) -> Problem:
        """
        Return the problem whose rows are all unknowns' own.

        Parameters
        ----------
        unknowns : Unknowns
            One for each unknown of the information.
        information : Information
            The reduced rows.
        prior : ndarray, shape (n_links, 10)
            As in the class.
        **others
            The optional fields of the class.

        Returns
        -------
        Problem

        """
        return cls(
            unknowns,
            information.R,
            information.rho,
            information.energy,
            information.count,
            prior,
            **others,  # type: ignore[arg-type]
        )

    def mean_square(self, x: Array) -> float:
        """
        Return the mean squared residual of all rows.

        Parameters
        ----------
        x : ndarray, shape (n,)
            Unknowns.

        Returns
        -------
        float

        """
        residual = self.factor @ x - self.target
        return float(residual @ residual + self.energy) / self.count

    def prior_point(self) -> Array:
        """Return the prior as a vector of unknowns, shape (n,)."""
        return self.unknowns.join(self.prior, self.prior_extras)

    def require_consistent_prior(self) -> None:
        """
        Raise unless every link's prior is a body that could exist.

        Raises
        ------
        ModelError
            With the links whose prior is not, and what to do.

        """
        finite = np.isfinite(self.prior).all(axis=1)
        if not finite.all():
            empty = [self.unknowns.links[k] for k in np.flatnonzero(~finite)]
            raise ModelError(
                f'the prior holds NaN or infinity: {", ".join(empty)}; give these links a body'
            )
        margins = consistency_margin(self.prior)
        bad = [
            f'{link} ({margin:.2g})'
            for link, margin in zip(self.unknowns.links, margins, strict=True)
            if not margin > 0
        ]
        if bad:
            raise ModelError(
                'the prior is not strictly fully physically consistent (smallest eigenvalue of '
                f'the pseudo-inertia): {", ".join(bad)}; give these links a body'
            )
