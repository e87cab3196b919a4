# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All experiments of the sources, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from collections.abc import Callable as Progress
from pathlib import Path
from typing import Any, NamedTuple

from inertial_estimation.errors import ConfigError
from published_experiments import (
    excitation,
    feasibility,
    humanoid,
    published_tables,
    shoulder,
    tools,
    tools_data,
    wam,
    wam_arm,
    wam_base,
)
from published_experiments.experiment import Finding


class Experiment(NamedTuple):
    """An experiment, and what it needs."""

    run: Callable[[Path], Finding]
    """Takes the folder of the data sets."""
    files: tuple[str, ...] = ()
    """Files or folders that it reads, below the folder of the data sets."""


EXPERIMENTS = (
    Experiment(humanoid.run, humanoid.FILES),
    Experiment(shoulder.run, (shoulder.FILE,)),
    Experiment(feasibility.run, (published_tables.TABLE_1, *wam_arm.FILES)),
    Experiment(wam_base.run, wam_arm.FILES),
    Experiment(wam.run, wam_arm.FILES),
    Experiment(excitation.run, wam_arm.FILES),
    Experiment(tools.run, tools_data.FILES),
)


def run_all(
    folder: Path,
    progress: Progress | None = None,
    experiments: Sequence[Experiment] | None = None,
) -> tuple[Finding, ...]:
    """Run experiments."""
    experiments = EXPERIMENTS if experiments is None else experiments
    _require(folder, [name for one in experiments for name in one.files])
    found = []
    for done, experiment in enumerate(experiments):
        if progress is not None:
            progress(done / len(experiments))
        found.append(experiment.run(folder))
    return tuple(found)


def data_files(folder: Path, experiments: Sequence[Experiment] | None = None) -> list[Path]:
    """Return all that the experiments may read."""
    experiments = EXPERIMENTS if experiments is None else experiments
    named = [folder / name for experiment in experiments for name in experiment.files]
    return [*named, *(one for path in named if path.is_dir() for one in path.rglob('*'))]


def as_dict(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return all figures for a machine."""
    return {finding.name: finding.as_dict() for finding in findings}


def _require(folder: Path, names: Sequence[str]) -> None:
    """Raise unless the folder holds all that is needed."""
    if not folder.is_dir():
        raise ConfigError(f"'{folder}' is no folder: name the one of the data sets")
    missing = sorted({name for name in names if not (folder / name).exists()})
    if missing:
        raise ConfigError(f"'{folder}' lacks {', '.join(missing)}")
