# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A log in contiguous blocks: what is held out, and what counts as one draw.

Neighbouring samples of a log share posture, touches and what filters smear, so that samples picked
at random tell each other's errors. Blocks do so at their edges only, where a gap is left.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ModelError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 3
"""Blocks that a spread among them takes at least."""
FEWEST_SAMPLES = 5
"""Of a block that is to stand for itself."""
NEARLY_ALL = 0.95
"""Share of a direction from which a block leaves too little there to tell its errors."""


def contiguous_blocks(times: Array, n_blocks: int) -> NDArray[np.intp]:
    """
    Return the number of the block that each sample is in, as many samples in each.

    times (n,) [s]; returns (n,).
    """
    if times.ndim != 1:
        raise ShapeError('times', ('n',), times.shape)
    if n_blocks < FEWEST:
        raise ModelError(
            f"'n_blocks' is {n_blocks}, expected {FEWEST} or more", about=('n_blocks',)
        )
    if not np.isfinite(times).all() or (np.diff(times) < 0.0).any():
        raise ModelError("'times' go back or are not finite: sort the samples by their stamps")
    if len(times) < n_blocks * FEWEST_SAMPLES:
        raise LogError(
            f'{len(times)} usable samples are too few for {n_blocks} blocks of '
            f"{FEWEST_SAMPLES}: take a longer log, or fewer 'n_blocks'",
            about=('n_blocks',),
        )
    return np.arange(len(times)) * n_blocks // len(times)


def away_from(times: Array, held_out: Mask, gap: float) -> Mask:
    """
    Tell which samples are not near a block that is held out.

    times (n,) [s]; held_out (n,); gap [s]; returns (n,).
    """
    inside = times[held_out]
    near: Mask = (times >= inside[0] - gap) & (times <= inside[-1] + gap)
    return ~near


def covariances_by_blocks(basis: Array, left: Array, blocks: NDArray[np.intp]) -> Array:
    """
    Return the covariances of least squares, the draws of which are whole blocks.

    basis (n, p); left (n, k); blocks (n,); returns (k, p, p).
    """
    edges = np.searchsorted(blocks, np.arange(int(blocks[-1]) + 2))
    draws = np.zeros((len(edges) - 1, left.shape[1], basis.shape[1]))
    alone, known = np.zeros((basis.shape[1],) * 2), 0.0
    for block, (first, last) in enumerate(pairwise(edges)):
        rows = basis[first:last]
        shares, axes = np.linalg.eigh(rows.T @ rows)
        tells = shares < NEARLY_ALL
        told, untold = axes[:, tells], axes[:, ~tells]
        whole = told.T @ (rows.T @ left[first:last]) / np.sqrt(1.0 - shares[tells, None])
        draws[block] = (told @ whole).T
        known += float(shares[tells].sum())
        alone += untold * shares[~tells] @ untold.T
    found = [_shrunk(draws[:, k], known, alone, basis.T @ basis) for k in range(left.shape[1])]
    return np.array(found)


def _shrunk(draws: Array, known: float, alone: Array, gram: Array) -> Array:
    """Return the covariance of a sum of draws, nearer to errors of one size the less they tell."""
    size = (draws**2).sum() / known if known > 0.0 else np.nan
    plain, target = draws.T @ draws + size * alone, size * gram
    apart = ((plain - target) ** 2).sum()
    if not apart > 0.0:
        return target
    products = np.einsum('bi,bj->bij', draws, draws)
    n = len(draws)
    noise = ((n * products - plain) ** 2).sum() / n**2
    share = min(1.0, noise / apart)
    found: Array = share * target + (1.0 - share) * plain
    return found
