# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Least squares over a tool, an offset and a delay, in which touches do not pull."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.blocks import covariances_by_blocks
from inertial_estimation.calibration.delay import search_delay
from inertial_estimation.calibration.outliers import mild_weights, scales, undisturbed
from inertial_estimation.calibration.tool_rows import ToolRows
from inertial_estimation.errors import LogError

if TYPE_CHECKING:
    from inertial_estimation.calibration.tool import ToolSettings

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUNDS = 3
"""Of weights and unknowns in turn."""
SEARCHED = 4000
"""Instants that the delay is searched with."""
COARSE = 0.002
"""Step of the first search for a delay [s]."""
STEP = 1e-4
"""By which rows are shifted for their slope by the delay [s]."""
RANK = 1e-8
"""A singular value of scaled rows below this part of the largest is none."""
SMALLEST = 1e-12
"""No size is smaller [N, Nm]."""
ENOUGH = 40
"""Instants that tell the size of what is left of each component by itself."""
EXACT = 1e-9
"""Part of the readings' spread below which what is left is round-off."""


class Solution(NamedTuple):
    """What was found."""

    unknowns: Array
    """m, m c, inertia if asked for, offset."""
    deviations: Array
    covariance: Array
    delay: float
    delay_deviation: float
    without_delay: Array
    """The unknowns that fit best with a delay of zero."""
    misalignment: float
    """[rad]."""
    used: Mask


def solve(
    rows: ToolRows,
    times: Array,
    measured: Array,
    blocks: NDArray[np.intp],
    settings: ToolSettings,
    name: str,
) -> Solution:
    """
    Fit tool, offset and delay.

    times (n,) [s]; measured (n, 6) [N, Nm]; blocks (n,).
    """
    told = settings.most_delay > 0.0 and _tells_delay(rows, times, measured, blocks, settings)
    most = settings.most_delay if told else 0.0
    sizes, counts = _start_sizes(measured), np.ones(len(times))
    for _ in range(ROUNDS):
        delay = _search(rows, times, measured, sizes, counts, most)
        left = measured - rows.at(times, delay) @ _fit(rows, times, measured, sizes, counts, delay)
        sizes = np.maximum(_sizes(left), EXACT * _start_sizes(measured))
        counts = mild_weights(left)
    used = undisturbed(times, left, settings.reach)
    if used.sum() <= rows.n_inertial + 6:
        used = np.ones(len(times), dtype=bool)
    counts = used.astype(np.float64)
    delay = _search(rows, times, measured, sizes, counts, most)
    found = _fit(rows, times, measured, sizes, counts, delay, name)
    draws = np.unique(blocks[used], return_inverse=True)[1]
    covariance = _covariance(
        rows, times[used], measured[used], sizes, found, delay, draws, delayed=told
    )
    deviations = np.sqrt(np.diag(covariance))
    n = len(found)
    late = float(deviations[n]) if told else np.inf
    return Solution(
        unknowns=found,
        deviations=deviations[:n],
        covariance=covariance[:n, :n],
        delay=delay,
        delay_deviation=late,
        without_delay=_fit(rows, times, measured, sizes, counts, 0.0),
        misalignment=_misalignment(rows, times[used], measured[used], found, delay),
        used=used,
    )


def _start_sizes(measured: Array) -> Array:
    """Return how much forces and moments vary, one size for each, (6,)."""
    spreads = measured.std(axis=0)
    force, moment = np.linalg.norm(spreads[:3]), np.linalg.norm(spreads[3:])
    sizes: Array = np.maximum(np.repeat([force, moment], 3), SMALLEST)
    return sizes


def _sizes(left: Array) -> Array:
    """
    Return the size of what is left of each component, (6,); of few instants one for each three.
    """
    if len(left) >= ENOUGH:
        return scales(left)
    return np.repeat([scales(part.reshape(-1, 1))[0] for part in np.hsplit(left, 2)], 3)


def _search(
    rows: ToolRows, times: Array, measured: Array, sizes: Array, counts: Array, most: float
) -> float:
    """Return the delay that leaves least."""
    if most == 0.0:
        return 0.0
    few = np.unique(np.linspace(0, len(times) - 1, min(len(times), SEARCHED)).astype(np.intp))

    def cost(delay: float) -> float:
        root = np.sqrt(counts[few])[:, None] / sizes
        whole = np.concatenate([rows.at(times[few], delay), measured[few, :, None]], axis=2)
        stacked = (root[..., None] * whole).reshape(6 * len(few), -1)
        # The last diagonal element of the triangle is what least squares leaves.
        R = np.asarray(np.linalg.qr(stacked, mode='r'))
        return abs(float(R[-1, -1]))

    return search_delay(cost, most, COARSE)


def _fit(
    rows: ToolRows,
    times: Array,
    measured: Array,
    sizes: Array,
    counts: Array,
    delay: float,
    name: str = '',
) -> Array:
    """Return the unknowns; if the sensor is named, raise if one is not told."""
    root = np.sqrt(counts)[:, None] / sizes
    Y = (root[..., None] * rows.at(times, delay)).reshape(6 * len(times), -1)
    lengths = np.linalg.norm(Y, axis=0)
    known = lengths > 0.0
    U, sigma, Vt = np.linalg.svd(Y / np.where(known, lengths, 1.0), full_matrices=False)
    kept = sigma > RANK * sigma[0]
    if name and not kept.all():
        worst = int(np.abs(Vt[-1]).argmax())
        raise LogError(
            f'the log does not tell {_unknown(worst, rows.n_inertial)} of what hangs on {name}: '
            "turn it faster and about more axes, or leave 'inertia' out",
            about=('inertia',),
        )
    projected = U[:, kept].T @ (root * measured).ravel()
    solved: Array = Vt[kept].T @ (projected / sigma[kept])
    return solved / np.where(known, lengths, 1.0)


def _unknown(index: int, n_inertial: int) -> str:
    """Return the name of an unknown."""
    names = ('m', 'm cx', 'm cy', 'm cz', 'Ixx', 'Ixy', 'Iyy', 'Ixz', 'Iyz', 'Izz')
    offsets = ('fx', 'fy', 'fz', 'tx', 'ty', 'tz')
    if index < n_inertial:
        return names[index]
    return f'the offset {offsets[index - n_inertial]}'


def _covariance(
    rows: ToolRows,
    times: Array,
    measured: Array,
    sizes: Array,
    found: Array,
    delay: float,
    draws: NDArray[np.intp],
    delayed: bool = True,
) -> Array:
    """Return the covariance of the unknowns and, last, of the delay if that is one of them."""
    Y = whole = rows.at(times, delay)
    if delayed:
        later = (rows.at(times, delay + STEP) - rows.at(times, delay - STEP)) / (2.0 * STEP)
        whole = np.concatenate([Y, (later @ found)[..., None]], axis=2)
    whole = whole / sizes[:, None]
    left = (measured - Y @ found) / sizes
    stacked = whole.reshape(-1, whole.shape[2])
    lengths = np.linalg.norm(stacked, axis=0)
    scale = np.where(lengths > 0.0, lengths, 1.0)
    U, sigma, Vt = np.linalg.svd(stacked / scale, full_matrices=False)
    kept = sigma > RANK * sigma[0]
    of_basis = covariances_by_blocks(U[:, kept], left.reshape(-1, 1), np.repeat(draws, 6))[0]
    back = (Vt[kept].T / sigma[kept]) / scale[:, None]
    covariance: Array = back @ of_basis @ back.T
    # A delay that changes nothing is not told.
    untold = np.flatnonzero(lengths == 0.0)
    covariance[untold, untold] = np.inf
    return covariance


def _tells_delay(
    rows: ToolRows,
    times: Array,
    measured: Array,
    blocks: NDArray[np.intp],
    settings: ToolSettings,
) -> bool:
    """Tell whether anything in a log has an edge in time, unlike in rest, where any delay fits."""
    sizes = _start_sizes(measured)
    found = _fit(rows, times, measured, sizes, np.ones(len(times)), 0.0)
    covariance = _covariance(rows, times, measured, sizes, found, 0.0, blocks)
    return bool(np.sqrt(covariance[-1, -1]) < settings.most_delay)


def _misalignment(
    rows: ToolRows, times: Array, measured: Array, found: Array, delay: float
) -> float:
    """Return the angle between the axes of the IMU as given and as forces fit them best [rad]."""
    Y = rows.at(times, delay)[:, :3]
    explained = Y[..., 0] * found[0]
    wanted = measured[:, :3] - Y[..., 1:] @ found[1:]
    a, f = explained - explained.mean(axis=0), wanted - wanted.mean(axis=0)
    U, _, Vt = np.linalg.svd(f.T @ a)
    R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
    # By the sine where it is small: the cosine of 1e-8 is 1.
    twist = np.linalg.norm([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    return float(np.arctan2(twist, np.trace(R) - 1.0))
