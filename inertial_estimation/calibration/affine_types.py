# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How a matrix is fitted, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.cross_validation import CrossValidation
from inertial_estimation.errors import ModelError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class AffineSettings:
    """How a matrix is fitted."""

    weight: float | None = None
    """Of the prior [N^2]; None: by cross-validation, infinite: the matrix stays."""
    n_blocks: int = 10
    """Contiguous parts of the log that are held out in turn."""
    gap: float = 0.3
    """Beside a block that is held out nothing is used for so long [s]."""
    length_scale: float = 0.1
    """Moment over force that counts as equally large [m]."""
    prior_deviation: float = 0.1
    """How far off elements of the workshop matrix may be, 1 being the matrix itself."""
    least_gain: float = 0.1
    """Share of what the workshop matrix lets through that must come through in any direction."""
    reach: float = 0.1
    """How long a touch lasts before and after what shows of it [s]."""
    least_touch: float = 3.0
    """What the best fit misses by less is no touch, moments over the length [N]."""
    noise: float | None = None
    """
    Of readings, root mean square of the six with moments over the length [N]; None: as the high
    differences of neighbours tell, which are of no use once readings went through a filter.
    """

    @property
    def units(self) -> Array:
        """What makes newtons of wrenches when divided by, shape (6,)."""
        return np.repeat([1.0, self.length_scale], 3)

    def __post_init__(self) -> None:
        """Check the ranges."""
        for name in ('length_scale', 'prior_deviation'):
            value = getattr(self, name)
            if not 0.0 < value < np.inf:
                raise ModelError(f"'{name}' is {value}, expected a positive number", about=(name,))
        for name in ('gap', 'reach', 'least_touch'):
            value = getattr(self, name)
            if not 0.0 <= value < np.inf:
                raise ModelError(f"'{name}' is {value}, expected 0 or more", about=(name,))
        if self.weight is not None and not self.weight >= 0.0:
            raise ModelError(
                f"'weight' is {self.weight}, expected N^2, 0 or more", about=('weight',)
            )
        if self.noise is not None and not 0.0 <= self.noise < np.inf:
            raise ModelError(
                f"'noise' is {self.noise}, expected newtons, 0 or more", about=('noise',)
            )
        if not 0.0 <= self.least_gain < 1.0:
            raise ModelError(
                f"'least_gain' is {self.least_gain}, expected 0 to less than 1",
                about=('least_gain',),
            )


class AffineFit(NamedTuple):
    """Matrix and offset of a sensor, and what they rest on."""

    matrix: Array
    """Applied to raw readings, shape (6, 6)."""
    offset: Array
    """Subtracted, shape (6,), [force; moment] in the sensor's frame [N, Nm]."""
    correction: Array
    """Matrix times inverse prior matrix, shape (6, 6), row over column [1, N/Nm, Nm/N]."""
    matrix_deviations: Array
    """Of the correction, (6, 6): from blocks of the log and from what the prior may be off."""
    offset_deviations: Array
    """Of the offset, shape (6,) [N, Nm]."""
    weight: float
    """Of the prior [N^2]."""
    validation: CrossValidation | None
    """What each weight would have left; None if the weight was given."""
    directions: Array
    """
    Six directions of readings, rows of shape (6, 6): wrenches by the prior matrix, of length 1
    with moments over the length scale; those that the log moved most come first.
    """
    spreads: Array
    """Root mean square of the readings along each, about the mean, shape (6,) [N]."""
    shares: Array
    """How much of the matrix along each is the log's and not the prior's, shape (6,), 0 to 1."""
    gains: Array
    """What comes through, over what the prior matrix lets through, shape (6,), falling."""
    rms_offset_only: Array
    """What is left if the matrix stays and the offset is the best one, shape (6,) [N, Nm]."""
    rms: Array
    """What is left of the samples that were used, shape (6,) [N, Nm]."""
    rms_held_out: Array
    """What is left of blocks that were held out, shape (6,) [N, Nm]; NaN if a weight was given."""
    used: Mask
    """Samples that were used, shape (n,); the others have no values or were touched."""
    n_disturbed: int
    """Samples with values that were left out as something else acts in them, or just beside."""
