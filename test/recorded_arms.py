# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs of real arms whose joints report efforts, as their drivers would publish them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from shared_data import SHARED

DATA = SHARED / 'data'
CONFIG = Path(__file__).parents[1] / 'config'


class Log(NamedTuple):
    """Joint states; efforts are in what the arm reports, Nm or A."""

    joints: tuple[str, ...]
    times: np.ndarray
    positions: np.ndarray
    velocities: np.ndarray
    efforts: np.ndarray

    def between(self, first: float, last: float) -> Log:
        """Return a part."""
        kept = (self.times >= first) & (self.times <= last)
        return Log(self.joints, *(values[kept] for values in self[1:]))


class RecordedArm(NamedTuple):
    """An arm, its parameter file, and a log of it: time, positions, velocities and efforts."""

    config: Path
    urdf: Path
    log: Path
    columns: tuple[str, str, str, str]
    joints_of: Callable[[Mapping[str, np.ndarray]], tuple[str, ...]]
    first: float
    last: float
    """Of a part in which it begins to move, and goes on [s]."""
    tool: str
    """Frame at its end."""

    def read(self) -> Log:
        """Return the whole log, or skip."""
        if not self.log.exists():
            pytest.skip(f'needs {self.log.parent.name} of the shared data')
        return _read(self)

    def description(self) -> str:
        """Return the URDF, or skip."""
        if not self.urdf.exists():
            pytest.skip(f'needs {self.urdf.name} of the shared data')
        return self.urdf.read_text()


@cache
def _read(arm: RecordedArm) -> Log:
    # An archive reads a column anew whenever it is asked for it.
    table = dict(np.load(arm.log))
    return Log(arm.joints_of(table), *(table[name] for name in arm.columns))


UR10E = RecordedArm(
    CONFIG / 'identifier_ur10e.yaml',
    DATA / 'ur10e' / 'ur10e.urdf',
    DATA / 'ur10e' / 'fourier_30s_12h.npz',
    ('t', 'q', 'v', 'current'),
    lambda _: tuple(json.loads((DATA / 'ur10e' / 'meta.json').read_text())['joints']),
    5.0,
    20.0,
    'tool0',
)
PANDA = RecordedArm(
    CONFIG / 'identifier_panda.yaml',
    DATA / 'models' / 'panda_wrist_ft.urdf',
    DATA / 'panda_excitation' / 'log.npz',
    ('t', 'position', 'velocity', 'torque'),
    lambda table: tuple(map(str, table['names'])),
    0.0,
    14.0,
    'panda_hand',
)
