# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The whole job of ``inertial-estimation identify``: logs in, what the links weigh out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.fit import RobotFit, fit
from inertial_estimation.identification.information.determined import (
    Determined,
    determined,
    tellable,
)
from inertial_estimation.identification.information.evidence import Evidence, gather
from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.identification.rows.independence import independent_share
from inertial_estimation.identification.rows.preparation import Prepared, folded_back
from inertial_estimation.identification.rows.suspects import Observed, Presumed, suspects
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.point_grids import PointGrid
from inertial_estimation.logs.disturbed import cleanest, disturbed_warnings, refitted
from inertial_estimation.logs.excitation_check import Reach, excitation_warnings, require_motion
from inertial_estimation.logs.fit_checks import fit_warnings
from inertial_estimation.logs.freedom import free_submodels
from inertial_estimation.logs.identify_bounds import read_bounds
from inertial_estimation.logs.identify_payloads import LoggedPayload, carried, require_logs
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.identify_shapes import link_points, solver_options
from inertial_estimation.logs.identify_warnings import load_warnings
from inertial_estimation.logs.known_wrenches import missing, prepare_with
from inertial_estimation.logs.left_out import (
    frozen_warnings,
    massless_warnings,
    missing_warnings,
    require_rows,
    rowless_warnings,
)
from inertial_estimation.logs.log_reader import LogReader, open_logs
from inertial_estimation.logs.motion_checks import (
    disagreements,
    require_agreement,
    require_within_limits,
)
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.logs.signal_checks import (
    gap_warnings,
    repeated_warnings,
    require_live_efforts,
)
from inertial_estimation.logs.slow_residuals import stiction_warnings, watched
from inertial_estimation.logs.stretch import Stretch
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


ROUNDS = 8
"""How often rows that stick out are looked for: without them the fit is better, and tells more."""


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
    payloads: tuple[str, ...] = ()
    """What the robot carried."""


class Reduced(NamedTuple):
    """What some logs say together."""

    parts: tuple[LogPart, ...]
    evidence: list[Evidence]
    """Of each submodel."""
    reach: Reach
    warnings: list[str]
    left: list[dict[str, Array]]
    """Residuals that agree with what was presumed of each submodel; empty without that."""
    watched: list[Observed]
    """Some instants of each log."""


@dataclass(frozen=True, eq=False)
class IdentifyReport:
    """What was found."""

    method: str
    logs: tuple[LogPart, ...]
    validation_logs: tuple[LogPart, ...]
    fit: RobotFit
    validation: tuple[Evidence, ...]
    """Of each submodel with rows, from logs that were not fitted; empty: none were given."""
    determined: Mapping[str, Determined] = field(default_factory=dict)
    """What the rows tell of each submodel that has some."""
    warnings: tuple[str, ...] = ()
    """What to know before the figures are believed."""
    points: Mapping[str, PointGrid] = field(default_factory=dict)
    """Where links may have their mass, by link; empty but for mass_points."""


def identify(
    logs: Sequence[str | Path],
    urdf: str,
    settings: IdentifySettings,
    *,
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    validate: Sequence[str | Path] = (),
    lock: Sequence[str] = (),
    mesh_folders: Sequence[Path] = (),
    progress: Progress = no_progress,
) -> IdentifyReport:
    """
    Identify a robot from logs.

    Parameters
    ----------
    logs : sequence of str or Path
        Tables of numbers or bags, or parts of them as `Stretch.parse` reads them; each is
        reduced by itself.
    urdf : str
        Robot description.
    settings : IdentifySettings
        How logs become rows.
    method : str
        One of `identification.solvers.methods.SOLVERS`.
    options : mapping, optional
        For the solver.
    validate : sequence of str or Path, optional
        Logs to predict, which are not fitted.
    lock : sequence of str, optional
        Joints that the logs do not move: what they tie together is one body, whose ten
        parameters may all be identified beyond an FT sensor [M; T chapter 6].
    mesh_folders : sequence of Path, optional
        Where meshes of the URDF are searched after those of the settings.
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
    fitted, tested = (tuple(map(Stretch.parse, paths)) for paths in (logs, validate))
    warnings = _overlaps(fitted, tested)
    require_logs(settings.payloads, (*fitted, *tested))
    reader = open_logs(urdf, settings, lock, fitted[0], progress)
    robot = reader.robot
    builder = RowBuilder(robot, settings.choice(robot), reader.calibration)
    bounds = read_bounds(settings.bounds, builder.blocks)
    points = link_points(robot, method, settings.shapes, mesh_folders)
    own = solver_options(points, builder.blocks)
    seen = reduce_logs(fitted, reader, builder, settings, progress)
    bases = tellable(builder)
    assumptions = (builder, reader.assumed, settings.contacts)
    require_rows(seen.evidence, [*rowless_warnings(*assumptions), *seen.warnings])
    require_motion(robot, seen.reach, seen.evidence, bases)
    if settings.reject:
        seen = _undisturbed(seen, fitted, reader, builder, settings, progress)
    found = fit(robot, seen.evidence, method, options, bounds, own)
    by_name = dict(zip([block.submodel.name for block in builder.blocks], bases, strict=True))
    told = {
        block.name: determined(block.evidence.block, by_name[block.name], block.information)
        for block in found.blocks
    }
    warnings += [*points.notes, *rowless_warnings(*assumptions, told), *seen.warnings]
    warnings += excitation_warnings(robot, seen.reach, told.items())
    if found.widened:
        warnings.append(
            f'links raised to the second moments of a small ball, for the prior to be a body: '
            f'{", ".join(found.widened)}'
        )
    warnings += massless_warnings(found)
    for block in found.blocks:
        warnings += [f'{block.name}: {note}' for note in block.answer.notes]
        bad = np.array(block.answer.unknowns.links)[~(block.answer.margins > 0)]
        if len(bad):
            warnings.append(f'{block.name}: no body could be like {", ".join(bad)}')
    warnings += [*load_warnings(found), *fit_warnings(found)]
    warnings += stiction_warnings(builder, seen.watched, found)
    if bounds and not SOLVERS[method].bounded:
        warnings.append(f'{method} does not keep the bounds: choose entropic or semidefinite')
    predicted: tuple[LogPart, ...] = ()
    validation: tuple[Evidence, ...] = ()
    if tested:
        unseen = reduce_logs(tested, reader, builder, settings, progress)
        predicted, warnings = unseen.parts, warnings + unseen.warnings
        validation = tuple(one for one in unseen.evidence if one.block.submodel.name in told)
        warnings += [
            f'nothing of {one.block.submodel.name} is predicted: the other logs give no rows'
            for one in validation
            if not any(part.count for part in one.kinds.values())
        ]
    links = [link for block in found.blocks for link in block.answer.unknowns.links]
    return IdentifyReport(
        method, seen.parts, predicted, found, validation, told, tuple(dict.fromkeys(warnings)),
        {link: points.by_link[link] for link in links if link in points.by_link},
    )  # fmt: skip


def _undisturbed(
    seen: Reduced,
    logs: Sequence[Stretch],
    reader: LogReader,
    builder: RowBuilder,
    settings: IdentifySettings,
    progress: Progress,
) -> Reduced:
    """Return what logs say without the instants at which something unknown seems to act."""
    read = (_read_one(log, reader, settings).observed for log in logs)
    presumed = cleanest(builder, seen.evidence, read, len(logs))
    everything = seen
    for _ in range(ROUNDS):
        before = seen
        seen = reduce_logs(logs, reader, builder, settings, progress, presumed)
        if [one.left_out for one in seen.evidence] == [one.left_out for one in before.evidence]:
            break
        presumed = [
            refitted(reader.robot, *one)
            for one in zip(seen.evidence, seen.left, presumed, strict=True)
        ]
    said = [*seen.warnings, *disturbed_warnings(everything.evidence, seen.evidence)]
    return seen._replace(warnings=said)


def _overlaps(fitted: Sequence[Stretch], tested: Sequence[Stretch]) -> list[str]:
    """Return warnings of what is fitted and predicted, or fitted twice."""
    said = [
        f'{one} is predicted although {other} holds some of it and is fitted'
        for one in tested
        for other in fitted
        if one.overlaps(other)
    ]
    twice = [(a, b) for k, a in enumerate(fitted) for b in fitted[k + 1 :] if a.overlaps(b)]
    return said + [f'{a} and {b} hold the same samples: they count twice' for a, b in twice]


def reduce_logs(
    logs: Sequence[Stretch],
    reader: LogReader,
    builder: RowBuilder,
    settings: IdentifySettings,
    progress: Progress = no_progress,
    presumed: Sequence[Presumed | None] = (),
) -> Reduced:
    """
    Reduce logs one by one, and merge what they say.

    Parameters
    ----------
    logs : sequence of Stretch
        At least one.
    reader : LogReader
        Of the robot.
    builder : RowBuilder
        Of the robot.
    settings : IdentifySettings
        How logs become rows.
    progress : callable, optional
        As in `identify`.
    presumed : sequence of Presumed or None, optional
        For each block: rows that do not agree with it are left out, as `settings.reject` says.
        Default: all rows are taken.

    Returns
    -------
    Reduced

    Raises
    ------
    InertialEstimationError
        If a log does not fit to robot and settings.

    """
    found: list[Reduced] = []
    for done, log in enumerate(logs):
        progress('reducing logs', done / len(logs))
        with _naming(log):
            found.append(_reduce_one(log, reader, builder, settings, presumed))
    progress('reducing logs', 1.0)
    first, *others = found
    evidence, reach = first.evidence, first.reach
    for other in others:
        evidence = [a.merge(b) for a, b in zip(evidence, other.evidence, strict=True)]
        reach = reach.merge(other.reach)
    return Reduced(
        tuple(part for one in found for part in one.parts),
        evidence,
        reach,
        [text for one in found for text in one.warnings],
        _joined([one.left for one in found]),
        [part for one in found for part in one.watched],
    )


def _reduce_one(
    log: Stretch,
    reader: LogReader,
    builder: RowBuilder,
    settings: IdentifySettings,
    presumed: Sequence[Presumed | None],
) -> Reduced:
    """Reduce one log."""
    how = settings.preparation
    raw, prepared, observed, unknown = _read_one(log, reader, settings)
    samples, external, free, there = observed
    left: list[dict[str, Array]] = []
    if presumed:
        found = suspects(builder, observed, presumed, settings.reject, how.edges)
        free, left = free & ~found.at, found.left
    share = independent_share(how, prepared.period)
    evidence = gather(builder, samples, external=external, free=free, carried=there, share=share)
    folded = folded_back(how, prepared.period)
    said = [
        *([folded] if folded else []),
        *unknown,
        *missing_warnings(builder, samples, reader.assumed),
    ]
    return Reduced(
        (_part(log, raw, prepared, settings.payloads),),
        evidence,
        Reach.of(prepared.samples),
        [f'{log}: {text}' for text in said],
        left,
        [watched(observed._replace(free=free))],
    )


class _Read(NamedTuple):
    """A log that was read."""

    raw: SampleBatch
    prepared: Prepared
    observed: Observed
    unknown: list[str]
    """What is missing or doubtful of signals, in words."""


def _read_one(log: Stretch, reader: LogReader, settings: IdentifySettings) -> _Read:
    """Read and filter a log."""
    how = settings.preparation
    raw, touches, known, frozen = reader.read(log)
    doubts = _doubts(reader.robot, raw, settings)
    prepared, external = prepare_with(raw, known, how)
    samples = prepared.samples
    free = free_submodels(
        reader.robot, samples.stamp_ns, settings.contacts, raw, touches, how.edges, external
    )
    unknown = [*doubts, *missing(known), *frozen_warnings(reader.robot, frozen)]
    observed = Observed(samples, external, free, carried(settings.payloads, log, len(samples)))
    return _Read(raw, prepared, observed, unknown)


def _doubts(robot: Robot, raw: SampleBatch, settings: IdentifySettings) -> list[str]:
    """Refuse signals that cannot be what they are said to be, and return what is doubtful."""
    how, efforts = settings.preparation, settings.choice(robot).efforts
    said = require_within_limits(robot, raw)
    if how.measured_velocities:
        require_agreement(robot, raw, how.largest_gap)
    else:
        said += disagreements(robot, raw, how.largest_gap)
    said += require_live_efforts(robot, raw, efforts)
    if settings.layout is not None:
        # Bags say themselves what sensors repeat, and begin before all of them do.
        said += [*gap_warnings(robot, raw, efforts), *repeated_warnings(robot, raw, efforts)]
    return said


def _joined(logs: Sequence[list[dict[str, Array]]]) -> list[dict[str, Array]]:
    """Return the residuals of several logs, block by block."""
    return [
        {kind: np.concatenate([one[kind] for one in block]) for kind in block[0]}
        for block in zip(*logs, strict=True)
    ]


@contextmanager
def _naming(log: Stretch) -> Iterator[None]:
    """Say which log is meant by what is wrong with it."""
    try:
        yield
    except LogError as error:
        if str(log.path) in str(error):
            raise
        raise LogError(f'{log}: {error}') from error


def _part(
    log: Stretch, raw: SampleBatch, prepared: Prepared, payloads: Sequence[LoggedPayload]
) -> LogPart:
    """Return what was left of a log."""
    return LogPart(
        str(log),
        len(raw),
        len(prepared.samples),
        prepared.stretches,
        prepared.discarded,
        tuple(one.payload.name for one in payloads if one.is_in(log)),
    )
