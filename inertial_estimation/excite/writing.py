# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One period of a motion as text: a table of numbers, and a trajectory for a controller."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import CallError
from inertial_estimation.identification.excitation.fourier import FourierBasis, FourierMotion

Array = NDArray[np.float64]

POINTS = 40
"""
Points of a trajectory for each harmonic. A controller that joins them by polynomials of fifth
degree stays within 1e-7 of the motion's size.
"""
DIGITS = 10
MOST_ROWS = 200_000
"""Of a table: a period of 20 s at 10 kHz, beyond what controllers take."""


def check_rate(basis: FourierBasis, rate_hz: float) -> None:
    """Check that a table at some rate holds a motion, and can be held itself."""
    rows, fewest = basis.period * rate_hz, 2 * basis.harmonics
    if rows <= fewest:
        raise CallError(
            f'--rate is {rate_hz:g} Hz, {rows:.3g} rows in a period of {basis.period:g} s, which '
            f'do not tell {basis.harmonics} harmonics: ask for more than '
            f'{fewest / basis.period:.4g} Hz'
        )
    if rows > MOST_ROWS:
        raise CallError(
            f'--rate is {rate_hz:g} Hz, {rows:.3g} rows in a period of {basis.period:g} s: ask '
            f'for at most {MOST_ROWS / basis.period:.4g} Hz, {MOST_ROWS} rows'
        )


def csv_text(motion: FourierMotion, rate_hz: float) -> str:
    """Return a table of numbers."""
    n = int(np.floor(motion.basis.period * rate_hz * (1 + np.finfo(float).eps)))
    t = np.arange(n + 1) / rate_hz
    names = [f'{kind}_{joint}' for kind in 'qva' for joint in motion.joint_names]
    table = np.column_stack([t, *motion.at(t)])
    rows = (','.join(f'{value:.{DIGITS}g}' for value in row) for row in table)
    return '\n'.join([','.join(['time', *names]), *rows]) + '\n'


def trajectory_text(motion: FourierMotion) -> str:
    """Return YAML with the fields of trajectory_msgs/JointTrajectory."""
    n = POINTS * motion.basis.harmonics
    t = motion.basis.period * np.arange(n + 1) / n
    lines = ['joint_names:', *(f'- {_quoted(name)}' for name in motion.joint_names), 'points:']
    for instant, *states in zip(t, *motion.at(t), strict=True):
        nanoseconds = round(float(instant) * 1e9)
        for k, (key, values) in enumerate(
            zip(('positions', 'velocities', 'accelerations'), states, strict=True)
        ):
            lines.append(f'{" " if k else "-"} {key}: {_list(values)}')
        lines.append(
            f'  time_from_start: {{sec: {nanoseconds // 10**9}, nanosec: {nanoseconds % 10**9}}}'
        )
    return '\n'.join(lines) + '\n'


def _list(values: Array) -> str:
    """Return numbers as YAML, each with a dot: readers of ROS take others for integers."""
    # Without zero added, what rounds to zero from below would have a sign.
    rounded = np.round(values, DIGITS) + 0.0
    return f'[{", ".join(f"{value:.{DIGITS}f}" for value in rounded)}]'


def _quoted(name: str) -> str:
    """Return a name that YAML takes for text whatever it is."""
    return "'" + name.replace("'", "''") + "'"
