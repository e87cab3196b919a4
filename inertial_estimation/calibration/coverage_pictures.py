# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which directions of gravity were reached, as a picture of characters and as an SVG.

Both look at the sphere of directions in the axes of the accelerations. The SVG has a disc for each
half of it, +z and -z, in an equal-area projection: what covers half of the disc covers half of the
half. It is plain text, so that no robot needs what draws other pictures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.collection import Collection
from inertial_estimation.calibration.coverage import DIRECTIONS, NAMES, STEPS, Coverage

Array = NDArray[np.float64]

REACHED, ASKED, MISSING = '●', '○', '·'
LEGEND = f'{REACHED} reached  {ASKED} asked for  {MISSING} not reached'
RADIUS, MARGIN, HEAD = 110.0, 36.0, 44.0
"""Of a disc, around it and above it, in pixels."""
USED, DOUBTED, WANTED, GREY = '#1f77b4', '#d62728', '#ff7f0e', '#999999'
"""Colours."""


def coverage_lines(coverage: Coverage) -> list[str]:
    """Draw what a data set reaches with characters."""
    marks = {}
    for step, name, n in zip(STEPS, NAMES, coverage.counts, strict=True):
        marks[step] = REACHED if n else ASKED if name in coverage.suggestions else MISSING
    fields = ((1, 'and +z'), (0, 'across z'), (-1, 'and -z'))
    lines = ['    '.join(f'{said:^16}' for _, said in fields)]
    lines.append('    '.join(['      +x   0  -x'] * 3))
    for y, row in ((1, '+y'), (0, ' 0'), (-1, '-y')):
        cells = (
            f'  {row}   ' + '   '.join(marks.get((x, y, z), ' ') for x in (1, 0, -1))
            for z, _ in fields
        )
        lines.append('    '.join(f'{cell:<16}' for cell in cells))
    return lines


def coverage_svg(sets: Mapping[str, Collection]) -> str:
    """Draw what data sets reach."""
    size = 2 * (RADIUS + MARGIN)
    rows = [_row(name, one, k * (size + HEAD)) for k, (name, one) in enumerate(sets.items())]
    width, height = 2 * size, max(len(rows), 1) * (size + HEAD)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="sans-serif" font-size="11">\n'
        f'<rect width="{width:g}" height="{height:g}" fill="white"/>\n'
        + '\n'.join(rows)
        + '\n</svg>\n'
    )


def _row(name: str, one: Collection, top: float) -> str:
    """Return the two discs of a data set, and what they reach."""
    coverage = one.coverage()
    spreads = '  '.join(f'{x:.0%}' for x in _spreads(coverage))
    said = (
        f'{name}: {coverage.n_moments} still moments; gravity spreads by {spreads} of g; '
        f'{"enough" if coverage.is_enough else "not enough"}'
    )
    parts = [_text(MARGIN / 2, top + 18, said, anchor='start', size=13)]
    for k, up in enumerate((1.0, -1.0)):
        centre = (2 * k + 1) * (RADIUS + MARGIN), top + HEAD + RADIUS + MARGIN
        parts += _disc(coverage, one, centre, up)
    return '\n'.join(parts)


def _disc(
    coverage: Coverage, one: Collection, centre: tuple[float, float], up: float
) -> list[str]:
    """Return one half of the sphere."""
    x, y = centre
    parts = [
        f'<circle cx="{x:g}" cy="{y:g}" r="{RADIUS:g}" fill="#f7f7f7" stroke="{GREY}"/>',
        _text(x, y - RADIUS - 24, f'gravity and {"+" if up > 0 else "-"}z'),
    ]
    at = centre + RADIUS * _flat(DIRECTIONS)
    for k in np.flatnonzero(up * DIRECTIONS[:, 2] > -1e-9):
        colour = WANTED if NAMES[k] in coverage.suggestions else GREY
        fill = colour if coverage.counts[k] else 'none'
        opacity = 0.25 if coverage.counts[k] else 1.0
        parts.append(
            f'<circle cx="{at[k, 0]:.1f}" cy="{at[k, 1]:.1f}" r="9" stroke="{colour}" '
            f'fill="{fill}" fill-opacity="{opacity:g}"/>'
        )
        parts.append(_text(at[k, 0], at[k, 1] - 11, NAMES[k], size=8, colour=colour))
    return parts + _dots(one, centre, up)


def _dots(one: Collection, centre: tuple[float, float], up: float) -> list[str]:
    """Return the still moments of one half."""
    parts = []
    for moment, agrees in zip(one.moments, one.judge(), strict=True):
        down = -moment.acceleration / np.linalg.norm(moment.acceleration)
        if up * down[2] >= 0.0:
            x, y = centre + RADIUS * _flat(down[None])[0]
            colour = USED if agrees else DOUBTED
            parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>')
    return parts


def _flat(directions: Array) -> Array:
    """Return directions of either half on its disc of radius 1, y upwards, shape (n, 2)."""
    across = np.linalg.norm(directions[:, :2], axis=1)
    # Of equal areas: r = sqrt(1 - |z|), with which a direction across z has r = 1.
    radius = np.sqrt(np.maximum(1.0 - np.abs(directions[:, 2]), 0.0))
    scale = np.divide(radius, across, out=np.zeros_like(radius), where=across > 0.0)
    return np.asarray(directions[:, :2] * scale[:, None] * [1.0, -1.0])


def _spreads(coverage: Coverage) -> Sequence[float]:
    """Return the spreads of gravity."""
    if coverage.orientations is None:
        return (0.0, 0.0, 0.0)
    return [float(x) for x in coverage.orientations.spreads]


def _text(
    x: float, y: float, said: str, anchor: str = 'middle', size: int = 11, colour: str = 'black'
) -> str:
    """Return a line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{colour}">{escape(said)}</text>'
    )
