# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The whole job of ``inertial-estimation identify``: logs in, what the links weigh out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.fit import RobotFit, fit
from inertial_estimation.identification.preparation import Prepared, prepare
from inertial_estimation.identification.rows import RowBuilder
from inertial_estimation.logs.freedom import free_submodels
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log_reader import LogReader, open_logs
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LogPart:
    """What was left of one log."""

    path: str
    recorded: int
    """Instants that the log holds."""
    used: int
    """Instants that rows were asked of."""
    stretches: int
    """Parts between gaps."""
    discarded: int
    """Instants at edges and in parts that were too short."""


@dataclass(frozen=True, eq=False)
class IdentifyReport:
    """What was found."""

    method: str
    logs: tuple[LogPart, ...]
    validation_logs: tuple[LogPart, ...]
    fit: RobotFit
    validation: tuple[Evidence, ...]
    """Of each submodel with rows, from logs that were not fitted; empty: none were given."""


def identify(
    logs: Sequence[str | Path],
    urdf: str,
    settings: IdentifySettings,
    *,
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    validate: Sequence[str | Path] = (),
    lock: Sequence[str] = (),
    progress: Progress = no_progress,
) -> IdentifyReport:
    """
    Identify a robot from logs.

    Parameters
    ----------
    logs : sequence of str or Path
        Tables of numbers or bags; each is reduced by itself.
    urdf : str
        Robot description.
    settings : IdentifySettings
        How logs become rows.
    method : str
        One of `identification.solvers.SOLVERS`.
    options : mapping, optional
        For the solver.
    validate : sequence of str or Path, optional
        Logs to predict, which are not fitted.
    lock : sequence of str, optional
        Joints that the logs do not move: what they tie together is one body, whose ten
        parameters may all be identified beyond an FT sensor [M; T chapter 6].
    progress : callable, optional
        Called with what is being done and how much of it is done, from 0 to 1.

    Returns
    -------
    IdentifyReport

    Raises
    ------
    InertialEstimationError
        If logs, robot and settings do not fit together; the message tells what to do.

    """
    reader = open_logs(urdf, settings, lock, logs[0], progress)
    builder = RowBuilder(reader.robot, settings.choice(reader.robot))
    parts, evidence = _reduce(logs, reader, builder, settings, progress)
    found = fit(reader.robot, evidence, method, options)
    tested, validation = _reduce(validate, reader, builder, settings, progress)
    fitted = {block.name for block in found.blocks}
    return IdentifyReport(
        method,
        parts,
        tested,
        found,
        tuple(one for one in validation if one.block.submodel.name in fitted),
    )


def _reduce(
    paths: Sequence[str | Path],
    reader: LogReader,
    builder: RowBuilder,
    settings: IdentifySettings,
    progress: Progress,
) -> tuple[tuple[LogPart, ...], list[Evidence]]:
    """Reduce logs one by one, and merge what they say."""
    parts: list[LogPart] = []
    total: list[Evidence] = []
    for done, path in enumerate(paths):
        progress('reducing logs', done / len(paths))
        raw, touches = reader.read(path)
        prepared = prepare(raw, settings.preparation)
        parts.append(_part(path, raw, prepared))
        free = free_submodels(
            reader.robot,
            prepared.samples.stamp_ns,
            settings.contacts,
            raw,
            touches,
            settings.preparation.edges,
        )
        found = gather(builder, prepared.samples, free=free)
        total = [a.merge(b) for a, b in zip(total, found, strict=True)] if total else found
    progress('reducing logs', 1.0)
    return tuple(parts), total


def _part(path: str | Path, raw: SampleBatch, prepared: Prepared) -> LogPart:
    """Return what was left of a log."""
    return LogPart(
        str(path), len(raw), len(prepared.samples), prepared.stretches, prepared.discarded
    )
