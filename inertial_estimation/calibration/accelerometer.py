# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Accelerometer samples at rest: their selection, their bias and their spread of orientations."""

from __future__ import annotations

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.residual_statistics import fit_by_blocks, require_shape
from inertial_estimation.errors import LogError
from inertial_estimation.model.arguments import numbers

GRAVITY = 9.80665
"""Standard gravity [m/s^2]."""
MAX_GRAVITY_ERROR = 0.1
"""Share of gravity by which the median reading may differ: more is another unit."""
MAX_REST_ACCELERATION = 0.3
"""Difference of a reading at rest from the median size [m/s^2]; biases and gains make 0.1."""
MAX_REST_TURNING = 0.2
"""[rad/s]: 1 m off the axis the centripetal acceleration is 0.04 m/s^2."""
NOT_FINITE, MOVING, TOUCHED = 'not finite', 'moving', 'touched'
"""Reasons for which samples are left out."""
MIN_GRAVITY_SPREAD = 0.03
"""
Spread of gravity along a direction, over its size, from which that direction is excited: tilting
20 degrees to each side. Accelerometer noise is a tenth of it.
"""
MIN_BIAS_SAMPLES = 10
MIN_BIAS_SPREAD = 0.25
"""Spread of gravity, as above, from which orientations determine a bias; 0.58 is a sphere."""
BIAS_BLOCKS = 20
MAX_BIAS_ROUNDS = 20
BIAS_DEVIATIONS, MIN_BIAS, MAX_BIAS_DEVIATION = 5.0, 0.03, 0.05
"""A bias is subtracted if it exceeds these deviations, this size, and is known to this [m/s^2]."""


def gravity_spreads(accelerations: Array) -> tuple[Array, Array]:
    """
    Return the spread of gravity along its principal axes, over its size, and these axes as rows.

    accelerations (n, 3) [m/s^2]; returns (3,), falling, and (3, 3).
    """
    _, sigma, Vt = np.linalg.svd(accelerations - accelerations.mean(axis=0), full_matrices=False)
    return sigma / (np.linalg.norm(accelerations) or 1.0), Vt


def require_three_directions(accelerations: Array, what: str) -> Array:
    """Return the spreads (3,), or refuse orientations that leave a direction out."""
    spreads, axes = gravity_spreads(accelerations)
    n = int((spreads >= MIN_GRAVITY_SPREAD).sum())
    if n < 3:
        axis = ', '.join(f'{x + 0.0:.2f}' for x in axes[n])
        raise LogError(
            f'{what}: gravity moves along {n} of 3 directions of the body: along ({axis}) of '
            f'the accelerometer its spread is {spreads[n]:.2%} of g, limit '
            f'{MIN_GRAVITY_SPREAD:.0%}'
        )
    return spreads


def accelerometer_bias(accelerations: Array) -> tuple[Array, Array]:
    """
    Return the bias d with which readings at rest are equally long: |a|^2 = 2 d a + c.

    Least trimmed squares, then all samples that fit. Orientations all around determine it; those
    of a swinging leg do not, as gains that differ by a percent look the same there.
    accelerations (n, 3); returns bias and deviations, (3,), infinite if unknown [m/s^2].
    """
    n, unknown = len(accelerations), (np.zeros(3), np.full(3, np.inf))
    if n < MIN_BIAS_SAMPLES or gravity_spreads(accelerations)[0][2] < MIN_BIAS_SPREAD:
        return unknown
    rows = np.column_stack([2.0 * accelerations, np.ones(n)])
    squares = (accelerations**2).sum(axis=1)
    half = np.arange(n)
    for _ in range(MAX_BIAS_ROUNDS):
        found, _, rank, _ = np.linalg.lstsq(rows[half], squares[half], rcond=1e-6)
        if rank < 4:
            return unknown
        left = np.abs(squares - rows @ found)
        before, half = half, np.sort(np.argsort(left, kind='stable')[: (n + 5) // 2])
        if np.array_equal(half, before):
            break
    # The median of the absolute values of noise is 0.6745 of its deviation.
    noise = float(np.median(left)) / 0.6745
    kept = left <= max(BIAS_DEVIATIONS * noise, 1e-9 * float(squares.max()))
    n = int(kept.sum())
    blocks = np.arange(n) * min(BIAS_BLOCKS, n) // n
    found, covariances = fit_by_blocks(rows[kept], squares[kept, None], blocks)
    return found[:3, 0], np.sqrt(np.diagonal(covariances[0]))[:3]


def rest_samples(
    raw: Array,
    accelerations: Array,
    turning: Array | None,
    bias: Array | None,
    max_acceleration: float,
    what: str,
) -> tuple[Mask, dict[str, int], float, Array, Array]:
    """
    Return samples at rest (n,), others by reason, the size of gravity, the bias, its deviations.

    raw (n, 6); accelerations (n, 3) [m/s^2]; turning (n, 3) [rad/s]; bias (3,): None: estimated,
    zero if not significant; max_acceleration: from the median size [m/s^2].
    """
    rates = np.zeros((len(raw), 3)) if turning is None else turning
    require_shape('accelerations', accelerations, len(raw), 3)
    require_shape('turning', rates, len(raw), 3)
    finite = np.isfinite(raw).all(axis=1) & np.isfinite(accelerations).all(axis=1)
    if not finite.any():
        raise LogError(f'{what}: no sample has readings of both FT sensor and accelerometer')
    deviations = np.zeros(3)
    if bias is not None:
        bias = numbers('bias', bias, (3,))
    else:
        bias, deviations = accelerometer_bias(accelerations[finite])
        beyond = np.abs(bias) > np.maximum(BIAS_DEVIATIONS * deviations, MIN_BIAS)
        if not ((deviations < MAX_BIAS_DEVIATION).all() and beyond.any()):
            bias, deviations = np.zeros(3), np.zeros(3)
    sizes = np.linalg.norm(accelerations - bias, axis=1)
    gravity = float(np.median(sizes[finite]))
    if abs(gravity - GRAVITY) > MAX_GRAVITY_ERROR * GRAVITY:
        raise LogError(
            f"{what}: the accelerometer reads {gravity:.3g} at the median, expected {GRAVITY:.2f} "
            "m/s^2: state its 'unit'", about=('unit',),
        )  # fmt: skip
    moves = np.abs(sizes - gravity) > max_acceleration
    moves |= np.linalg.norm(rates, axis=1) > MAX_REST_TURNING
    left_out = {NOT_FINITE: int((~finite).sum()), MOVING: int((finite & moves).sum()), TOUCHED: 0}
    return finite & ~moves, left_out, gravity, bias, deviations
