# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a calibration leaves of readings, before and after, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.tables import AXES
from inertial_estimation.pictures import pyplot

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SIZE = (10.0, 9.0)
"""Of one sensor [inch]."""
BEFORE, AFTER, OUT = 'tab:red', 'tab:green', '0.85'
MARGIN = 1.3
"""Times what is left of the used instants that is drawn: touches go beyond."""


class Residuals(NamedTuple):
    """One sensor."""

    name: str
    times: Array
    """Shape (n,) [s]."""
    before: Array
    """Shape (n, 6) [N, Nm]."""
    after: Array
    """Shape (n, 6) [N, Nm]."""
    used: Mask
    """Instants that were used, shape (n,)."""


def draw(sensors: Sequence[Residuals], path: Path) -> None:
    """Draw what is left of the readings of some sensors."""
    plots = pyplot()
    width, height = SIZE
    figure, axes = plots.subplots(
        len(AXES), len(sensors), sharex='col', squeeze=False,
        figsize=(width * (1 + 0.6 * (len(sensors) - 1)), height),
    )  # fmt: skip
    for column, sensor in zip(axes.T, sensors, strict=True):
        for k, ax in enumerate(column):
            _draw_axis(ax, sensor, k)
        column[0].set_title(sensor.name)
        column[0].legend(loc='upper right', fontsize='small')
        column[-1].set_xlabel('time [s]')
    figure.tight_layout()
    figure.savefig(path)
    plots.close(figure)


def _draw_axis(ax: Any, sensor: Residuals, k: int) -> None:
    """Draw one component of one sensor."""
    ax.plot(sensor.times, sensor.before[:, k], color=BEFORE, lw=0.8, label='before')
    ax.plot(sensor.times, sensor.after[:, k], color=AFTER, lw=0.8, label='after')
    shown = np.abs(np.stack([sensor.before[sensor.used, k], sensor.after[sensor.used, k]]))
    limit = MARGIN * float(np.nanmax(shown, initial=0.0)) or 1.0
    ax.set_ylim(-limit, limit)
    ax.fill_between(
        sensor.times, -limit, limit, where=~sensor.used, color=OUT, lw=0.0, label='not used'
    )
    ax.set_ylabel(f'{AXES[k]} [{"N" if k < 3 else "Nm"}]')
    ax.grid(visible=True, alpha=0.3)
