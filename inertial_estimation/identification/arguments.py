# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What arguments of solvers have to be, and what to say where they are something else."""

from __future__ import annotations

from enum import Enum
from numbers import Real
from typing import TypeVar

import numpy as np

from inertial_estimation.errors import ModelError, ShapeError

Choice = TypeVar('Choice', bound=Enum)


def require_array(name: str, value: object, shape: tuple[int, ...] | None = None) -> None:
    """Raise unless something is an array of real numbers."""
    if not isinstance(value, np.ndarray):
        raise ModelError(
            f"'{name}' must be a numpy array, not {type(value).__name__}: numpy.asarray makes one"
        )
    if value.dtype.kind not in 'fiu':
        raise ModelError(f"'{name}' must hold real numbers, not {value.dtype}")
    if shape is not None and value.shape != shape:
        raise ShapeError(name, shape, value.shape)


def require_number(name: str, value: object, *, least: float = -np.inf) -> None:
    """Raise unless something is a number, and no less than another."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ModelError(f"'{name}' must be a number, not {type(value).__name__}")
    number = float(value)
    if least > -np.inf and not number >= least:
        raise ModelError(f"'{name}' must be a number, at least {least:g}, not {number:g}")


def require_budget(max_iterations: int = 1, time_limit: float = np.inf) -> None:
    """
    Raise unless a budget is one.

    time_limit [s].
    """
    require_number('max_iterations', max_iterations, least=0)
    require_number('time_limit', time_limit, least=0)


def require_noise(noise: float | None) -> None:
    """Raise unless the noise of rows is not given, or finite and not negative."""
    if noise is None:
        return
    require_number('noise', noise, least=0.0)
    if np.isinf(noise):
        raise ModelError("'noise' must be finite; None stands for an estimate from the rows")


def choice(kind: type[Choice], name: str, value: object) -> Choice:
    """Return one of some choices by its value."""
    try:
        return kind(value)
    except ValueError as error:
        known = ', '.join(str(one.value) for one in kind)
        raise ModelError(f"'{name}' must be one of {known}, not {value!r}") from error
