# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Pictures of calibrations in place: readings on their ellipsoid, forces on their sphere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_masses import MatrixCalibration
from inertial_estimation.calibration.affine_subspace import DIMENSIONS
from inertial_estimation.calibration.offset_in_situ import InSituOffset
from inertial_estimation.pictures import pyplot

Array = NDArray[np.float64]

SIZE = (13.0, 4.0)
"""[inch]"""
PLANES = ((0, 1), (0, 2), (1, 2))
MOST_DRAWN = 4000
"""Samples that are drawn."""
OUTLINE = np.linspace(0.0, 2 * np.pi, 181)


def draw_ellipsoid(found: InSituOffset, raw: Array, path: Path) -> None:
    """
    Draw readings in their subspace, the ellipsoid and its centre [T Fig. 5.5].

    raw (n, 6).
    """
    plots = pyplot()
    figure, axes = plots.subplots(1, 4, figsize=SIZE)
    centre, shape = found.ellipsoid()
    step = max(1, len(raw) // MOST_DRAWN)
    seen = found.subspace.coordinates(raw[::step])[:, :DIMENSIONS]
    kept = found.kept[::step]
    for ax, plane in zip(axes, PLANES, strict=False):
        for chosen, colour, label in ((kept, 'tab:blue', 'used'), (~kept, 'tab:red', 'left out')):
            if chosen.any():
                ax.plot(*seen[chosen][:, plane].T, '.', color=colour, markersize=2, label=label)
        ax.plot(*_outline(centre, shape, plane), color='grey', label='ellipsoid')
        ax.plot(*centre[list(plane)], 'k+', markersize=12, label='offset')
        ax.set_xlabel(f'direction {plane[0] + 1} of the subspace')
        ax.set_ylabel(f'direction {plane[1] + 1}')
        ax.set_aspect('equal', adjustable='datalim')
    axes[0].legend(fontsize='small')
    _draw_spreads(axes[3], found)
    figure.tight_layout()
    figure.savefig(path)
    plots.close(figure)


def draw_forces(found: MatrixCalibration, workshop: Array | None, path: Path) -> None:
    """
    Draw how long weights come out, over what they are, before and after [T Fig. 5.6].

    workshop (6, 6).
    """
    plots = pyplot()
    figure, ax = plots.subplots(figsize=(10.0, 4.0))
    start = 0
    for one, offset in zip(found.data_sets, found.found, strict=True):
        raw = one.raw[offset.kept] - offset.offset
        weight = (found.body.mass + one.mass) * offset.gravity
        at = start + np.arange(len(raw))
        for matrix, colour in ((workshop, 'tab:red'), (found.matrix, 'tab:green')):
            if matrix is not None:
                sizes = np.linalg.norm(raw @ matrix[:3].T, axis=1) / weight
                ax.plot(at, sizes, '.', color=colour, markersize=2)
        ax.axvline(start, color='grey')
        ax.text(start, 1.0, f' {one.name}', transform=ax.get_xaxis_transform(), va='top')
        start += len(raw)
    ax.axhline(1.0, color='black')
    ax.set_xlabel('sample')
    ax.set_ylabel('force over weight')
    ax.set_title('green: matrix that was found' + ('' if workshop is None else '; red: before'))
    figure.tight_layout()
    figure.savefig(path)
    plots.close(figure)


def _outline(centre: Array, shape: Array, plane: tuple[int, int]) -> tuple[Array, Array]:
    """Return the outline of an ellipsoid, seen at a right angle to a plane."""
    rows = shape[list(plane)]
    # The shadow of an ellipsoid is the ellipse of the root of rows rows'.
    root = np.linalg.cholesky(rows @ rows.T)
    x, y = root @ np.array([np.cos(OUTLINE), np.sin(OUTLINE)]) + centre[list(plane), None]
    return x, y


def _draw_spreads(ax: Any, found: InSituOffset) -> None:
    """Draw the spread along all directions."""
    spreads = found.subspace.spreads
    colours = ['tab:blue'] * DIMENSIONS + ['tab:orange'] * (6 - DIMENSIONS)
    ax.bar(np.arange(1, 7), np.maximum(spreads, 1e-12 * spreads[0]), color=colours)
    ax.set_yscale('log')
    ax.set_xlabel('direction')
    ax.set_ylabel('spread of the readings')
    ax.set_title(f'gap {found.subspace.gap:.0f}')
