# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All that is found on the real arms whose logs are there."""

from __future__ import annotations

from collections.abc import Callable as Progress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError
from inertial_estimation.logs.log import LogSlice
from inertial_estimation.table import Table
from real_arms import drive_gains
from real_arms.comparison import Comparison, compare
from real_arms.comparison_tables import (
    comparison_tables,
    figures,
    little_data_notes,
)
from real_arms.drive_gains import DriveGains, compare_gains
from real_arms.gain_tables import gain_figures, gain_tables
from real_arms.robots import CONFIGS, ROBOTS


@dataclass(frozen=True, eq=False)
class RealRobots:
    """What was found."""

    comparisons: tuple[Comparison, ...]
    """Of the methods, robot by robot."""
    gains: DriveGains | None = None
    """None: the logs with a payload are not there."""

    def tables(self) -> list[Table]:
        """Return all figures but those of JSON, as a list of Table."""
        found = comparison_tables(self.comparisons)
        return found if self.gains is None else [*found, *gain_tables(self.gains)]

    def notes(self) -> list[str]:
        """Return how priors compare start by start, what is missing and why, as a list of str."""
        said = [note for one in self.comparisons for note in little_data_notes(one)]
        said += [
            f'{one.robot.name} without FIGAROH: {one.left_out}'
            for one in self.comparisons
            if one.left_out
        ]
        if self.gains is None:
            said.append(f'no gains of drives: {", ".join(drive_gains.FILES)} are not all there')
        return said

    def as_dict(self) -> dict[str, Any]:
        """Return all figures for a machine, as a dict by robot, and ``drive_gains``."""
        found = {one.robot.name: figures(one) for one in self.comparisons}
        return found if self.gains is None else {**found, 'drive_gains': gain_figures(self.gains)}


def data_files(data: Path) -> list[Path]:
    """Return what is read of the folder of the logs, and how logs become rows."""
    found = [CONFIGS / drive_gains.CONFIG, *(data / name for name in drive_gains.FILES)]
    for robot in ROBOTS:
        logs = [LogSlice.parse(data / said).path for said in (*robot.fitted, *robot.predicted)]
        found += [CONFIGS / robot.config, data / robot.urdf, *logs]
    return found


def run_all(
    data: Path, figaroh_python: str | None = None, progress: Progress | None = None
) -> RealRobots:
    """Compare the methods on all robots whose logs are there, and gains where a payload is."""
    there = [robot for robot in ROBOTS if (data / robot.urdf).exists()]
    if not there:
        raise ConfigError(f"'{data}' holds none of {', '.join(robot.urdf for robot in ROBOTS)}")
    found = []
    for done, robot in enumerate(there):
        if progress is not None:
            progress(done / (1 + len(there)))
        found.append(compare(robot, data, CONFIGS, figaroh_python))
    if progress is not None:
        progress(len(there) / (1 + len(there)))
    payload = all((data / name).exists() for name in drive_gains.FILES)
    return RealRobots(tuple(found), compare_gains(data, CONFIGS) if payload else None)
