# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Errors of torques and base parameters over time as a picture [T Fig. 7.2, 7.3]."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bench.background.run import GROUPS, Background
from bench.background.standing_log import ONSET
from bench.background.torque_errors import DESCRIPTIONS, Run
from inertial_estimation.pictures import pyplot

COLOURS = ('tab:red', 'black', 'tab:green', 'tab:orange')
"""Of `DESCRIPTIONS`."""
SHOWN = 6
"""Base parameters that are drawn: those that the description has wrong by most."""
SIZE = (10.0, 9.0)
"""[inch]"""


def draw(found: Background, path: Path) -> None:
    """Draw the first run."""
    plots, run = pyplot(), found.runs[0]
    figure, axes = plots.subplots(len(GROUPS) + 1, 1, sharex=True, figsize=SIZE)
    for ax, (group, joints) in zip(axes, GROUPS.items(), strict=False):
        _draw_errors(ax, run, group, joints)
    _draw_base(axes[-1], run)
    for ax in axes:
        ax.axvline(ONSET, color='grey')
        ax.grid(visible=True, alpha=0.3)
        ax.legend(loc='upper right', fontsize='small')
    axes[-1].set_xlabel('time [s]')
    figure.tight_layout()
    figure.savefig(path)
    plots.close(figure)


def _draw_errors(ax: Any, run: Run, group: str, joints: list[int]) -> None:
    """Draw the errors of some joints second by second."""
    errors = np.sqrt(run.squares[..., joints].mean(axis=-1))
    for k, name in enumerate(DESCRIPTIONS):
        ax.plot(run.times, errors[:, k], color=COLOURS[k], label=name)
    ax.set_ylabel(f'{group}:\nrms torque error [Nm]')


def _draw_base(ax: Any, run: Run) -> None:
    """Draw base parameters of an arm, each less its true value, over its spread."""
    part = run.base.submodels[0]
    chosen = part.of_moments()
    wrong = np.abs(part.described - part.true)[chosen] / part.spread[chosen]
    for k in chosen[np.argsort(-wrong)[:SHOWN]]:
        values = (np.array(part.found)[:, k] - part.true[k]) / part.spread[k]
        ax.plot(run.times, values, label=part.names[k])
    ax.axhline(0.0, color='black')
    ax.set_ylabel('base parameters:\nerror over spread')
