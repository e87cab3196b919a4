# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Checks of arguments of public constructors and solvers."""

from __future__ import annotations

from numbers import Real

import numpy as np

from inertial_estimation.errors import ModelError, ShapeError


def require_array(name: str, value: object, shape: tuple[int, ...] | None = None) -> None:
    """Raise unless a value is an array of real numbers, of some shape."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'fiu':
        raise ModelError(f"'{name}' must be a numpy array of real numbers")
    if shape is not None and value.shape != shape:
        raise ShapeError(name, shape, value.shape)


def require_number(name: str, value: object, *, least: float = -np.inf) -> None:
    """Raise unless a value is a number, and not below another."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise ModelError(f"'{name}' must be a number, not {type(value).__name__}")
    if least > -np.inf and not float(value) >= least:
        raise ModelError(f"'{name}' must be at least {least:g}, not {float(value):g}")
