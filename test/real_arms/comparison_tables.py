# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Methods beside each other on real arms, as tables and as figures for a machine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.table import Table
from real_arms.arm import ENTROPIC, LMI_EUCLIDEAN
from real_arms.comparison import Comparison

Array = NDArray[np.float64]


def comparison_tables(found: Sequence[Comparison]) -> list[Table]:
    """Return one table for each robot, and one of little data."""
    spans = [(one, seconds) for one in found for seconds in one.short]
    methods = dict.fromkeys(method for one, seconds in spans for method in one.short[seconds])
    rows = tuple(
        (method, *(_median_and_worst(one.short[seconds][method]) for one, seconds in spans))
        for method in methods
    )
    columns = ('method', *(f'{one.robot.name} {seconds:g} s' for one, seconds in spans))
    title = 'Held-out error after little data, median and worst over the starts [%]'
    return [*map(_table, found), Table(title, columns, rows)]


def little_data_notes(found: Comparison) -> list[str]:
    """Return how the entropic and the Euclidean prior compare, start by start."""
    notes = []
    for seconds, errors in found.short.items():
        ratios = errors[ENTROPIC] / errors[LMI_EUCLIDEAN]
        notes.append(
            f'{found.robot.name} {seconds:g} s: {ENTROPIC} ahead of {LMI_EUCLIDEAN!r} at '
            f'{np.sum(ratios < 1.0)} of {len(ratios)} starts, median of the ratios '
            f'{np.median(ratios):.2f}'
        )
    return notes


def figures(found: Comparison) -> dict[str, Any]:
    """Return all figures of a robot for a machine."""
    return {
        'fitted': found.robot.fitted,
        'predicted': found.robot.predicted,
        'rank': found.rank,
        'rows': found.rows,
        'signals': found.signals,
        'methods': {score.method: vars(score) for score in found.scores},
        'little_data': {
            f'{seconds:g}': {method: values.tolist() for method, values in errors.items()}
            for seconds, errors in found.short.items()
        },
        'figaroh': found.left_out or 'ran',
    }


def _table(found: Comparison) -> Table:
    """Return all methods on one robot."""
    robot = found.robot
    joints = [str(k + 1) for k in range(len(found.signals))]
    rows = [('measured', '', '', *(f'{v:.3g}' for v in found.signals.values()), '', '', '')]
    for score in found.scores:
        totals = (100 * score.total_fitted, 100 * score.total_predicted)
        rows.append(
            (
                score.method,
                *(f'{total:.2f}' for total in totals),
                *(f'{score.predicted[kind]:.3g}' for kind in found.signals),
                f'{score.mass:.4g}',
                f'{score.margin:.1g}',
                f'{1e3 * score.time:.1f}',
            )
        )
    title = (
        f'{robot.name}: {found.rows} rows, {found.rank} combinations determined; '
        f'{", ".join(robot.fitted)} fitted, {", ".join(robot.predicted)} predicted; '
        'joints 1 to n: predicted rms [N, Nm]'
    )
    columns = ('method', 'fit [%]', 'predicted [%]', *joints, 'mass [kg]', 'margin', '[ms]')
    return Table(title, columns, tuple(rows))


def _median_and_worst(errors: Array) -> str:
    """Return errors in percent."""
    return f'{_percent(np.median(errors))} ({_percent(np.max(errors))})'


def _percent(error: float) -> str:
    """Return an error in percent, short even where nothing held a fit."""
    percent = 100.0 * error
    return f'{percent:.1f}' if percent < 1000.0 else f'{percent:.0e}'
