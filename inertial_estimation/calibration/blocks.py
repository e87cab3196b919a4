# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A log in contiguous blocks: what is held out, and what counts as one draw.

Neighbouring samples of a log share posture, touches and what filters smear, so that samples picked
at random tell each other's errors. Blocks do so at their edges only, where a gap is left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, ModelError, ShapeError

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

FEWEST = 3
"""Blocks that a spread among them takes at least."""
FEWEST_SAMPLES = 5
"""Of a block that is to stand for itself."""


def contiguous_blocks(times: Array, n_blocks: int) -> NDArray[np.intp]:
    """
    Return the number of the block that each sample is in, as many samples in each.

    Parameters
    ----------
    times : ndarray, shape (n,)
        In order [s].
    n_blocks : int
        How many.

    Returns
    -------
    ndarray of int, shape (n,)
        From 0, in order.

    Raises
    ------
    ShapeError
        If the times are no row.
    ModelError
        If there are to be too few blocks, or times go back.
    LogError
        If there are too few samples for them.

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

    Parameters
    ----------
    times : ndarray, shape (n,)
        In order [s].
    held_out : ndarray of bool, shape (n,)
        The block.
    gap : float
        How near is near [s].

    Returns
    -------
    ndarray of bool, shape (n,)

    """
    inside = times[held_out]
    near: Mask = (times >= inside[0] - gap) & (times <= inside[-1] + gap)
    return ~near


def covariance_of_sums(shares: Array, blocks: NDArray[np.intp]) -> Array:
    """
    Return the covariance of a sum over samples, the draws of which are whole blocks.

    Samples within a block may depend on each other in any way.

    Parameters
    ----------
    shares : ndarray, shape (n, m)
        What each sample adds.
    blocks : ndarray of int, shape (n,)
        From `contiguous_blocks`.

    Returns
    -------
    ndarray, shape (m, m)

    """
    n_blocks = int(blocks[-1]) + 1
    sums = np.zeros((n_blocks, shares.shape[1]))
    np.add.at(sums, blocks, shares)
    centred = sums - sums.mean(axis=0)
    covariance: Array = n_blocks / (n_blocks - 1) * centred.T @ centred
    return covariance
