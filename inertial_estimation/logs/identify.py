# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The whole job of ``inertial-estimation identify``: logs in, what the links weigh out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
from inertial_estimation.identification.information.reweighting import spread
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.rows.builder import RowBuilder
from inertial_estimation.identification.rows.preparation import Prepared, folded_back
from inertial_estimation.identification.rows.suspects import Presumed, residuals_of, suspects
from inertial_estimation.identification.solvers.mass_points import METHOD as MASS_POINTS
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.point_grids import PointGrid
from inertial_estimation.logs.excitation_check import Reach, excitation_warnings, require_motion
from inertial_estimation.logs.freedom import free_submodels
from inertial_estimation.logs.identify_bounds import read_bounds
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.identify_shapes import (
    LinkPoints,
    ShapeSettings,
    link_points,
    solver_options,
)
from inertial_estimation.logs.known_wrenches import missing, prepare_with
from inertial_estimation.logs.log_reader import LogReader, open_logs
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.logs.stretch import Stretch
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]


ROUNDS = 5
"""How often rows that stick out are looked for: without them the fit is better, and tells more."""
INSTANTS_TOLD = 3000
"""Of each log, from which the noise is told where some rows are disturbed."""


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


class Reduced(NamedTuple):
    """What some logs say together."""

    parts: tuple[LogPart, ...]
    evidence: list[Evidence]
    """Of each submodel."""
    reach: Reach
    warnings: list[str]


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
    reader = open_logs(urdf, settings, lock, fitted[0], progress)
    robot = reader.robot
    builder = RowBuilder(robot, settings.choice(robot))
    bounds = read_bounds(settings.bounds, builder.blocks)
    points = _points(robot, method, settings, mesh_folders)
    own = solver_options(points, builder.blocks)
    seen = reduce_logs(fitted, reader, builder, settings, progress)
    bases = tellable(builder)
    require_motion(robot, seen.reach, seen.evidence, bases)
    found = fit(robot, seen.evidence, method, options, bounds, own)
    for _ in range(ROUNDS if settings.reject else 0):
        before = seen
        presumed = _presumed(found, fitted, reader, builder, settings)
        seen = reduce_logs(fitted, reader, builder, settings, progress, presumed)
        found = fit(robot, seen.evidence, method, options, bounds, own)
        if [one.left_out for one in seen.evidence] == [one.left_out for one in before.evidence]:
            break
    by_name = dict(zip([block.submodel.name for block in builder.blocks], bases, strict=True))
    told = {
        block.name: determined(block.evidence.block, by_name[block.name], block.noise.information)
        for block in found.blocks
    }
    warnings += [*points.notes, *seen.warnings]
    warnings += excitation_warnings(robot, seen.reach, told.items())
    if found.widened:
        warnings.append(
            f'links raised to the second moments of a small ball, for the prior to be a body: '
            f'{", ".join(found.widened)}'
        )
    for block in found.blocks:
        warnings += [f'{block.name}: {note}' for note in block.answer.notes]
        bad = np.array(block.answer.unknowns.links)[~(block.answer.margins > 0)]
        if len(bad):
            warnings.append(f'{block.name}: no body could be like {", ".join(bad)}')
    if bounds and not SOLVERS[method].bounded:
        warnings.append(f'{method} does not keep the bounds: choose entropic or semidefinite')
    if settings.shapes and method != MASS_POINTS:
        warnings.append(f"{method} does not use 'shapes': choose {MASS_POINTS}")
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
    return IdentifyReport(
        method, seen.parts, predicted, found, validation, told, tuple(dict.fromkeys(warnings)),
        {link: grid for link, grid in points.by_link.items() if link in _fitted_links(found)},
    )  # fmt: skip


def _points(
    robot: Robot, method: str, settings: IdentifySettings, mesh_folders: Sequence[Path]
) -> LinkPoints:
    """Return where links may have their mass; nothing where the method does not ask."""
    if method != MASS_POINTS:
        return LinkPoints({}, ())
    said = settings.shapes or ShapeSettings()
    said = replace(said, mesh_folders=(*said.mesh_folders, *mesh_folders))
    prior, _ = widened(robot.link_names, robot.parameters)
    return link_points(robot, prior, said)


def _fitted_links(found: RobotFit) -> set[str]:
    """Return the links that have rows."""
    return {link for block in found.blocks for link in block.answer.unknowns.links}


def _presumed(
    found: RobotFit,
    logs: Sequence[Stretch],
    reader: LogReader,
    builder: RowBuilder,
    settings: IdentifySettings,
) -> list[Presumed | None]:
    """Return what a fit says of each block, with the noise that contacts hardly touch."""
    by_name = {block.name: block.answer.x for block in found.blocks}
    unknowns = [by_name.get(block.submodel.name) for block in builder.blocks]
    kept: list[list[dict[str, Array]]] = []
    for log in logs:
        raw, _, known = reader.read(log)
        prepared, external = prepare_with(raw, known, settings.preparation)
        some = slice(None, None, -(-len(prepared.samples) // INSTANTS_TOLD))
        pushes = {frame: wrench[some] for frame, wrench in external.items()}
        kept.append(residuals_of(builder, prepared.samples.take(some), unknowns, pushes))
    presumed: list[Presumed | None] = []
    for k, x in enumerate(unknowns):
        if x is None:
            presumed.append(None)
            continue
        parts = [one[k] for one in kept]
        left = {kind: np.concatenate([part[kind] for part in parts]) for kind in parts[0]}
        noise = {kind: float(spread(values)) for kind, values in left.items()}
        presumed.append(Presumed(x, {kind: s for kind, s in noise.items() if s > 0}))
    return presumed


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
    raw, touches, known = reader.read(log)
    prepared, external = prepare_with(raw, known, how)
    stamps = prepared.samples.stamp_ns
    free = free_submodels(
        reader.robot, stamps, settings.contacts, raw, touches, how.edges, external
    )
    if presumed:
        free &= ~suspects(
            builder, prepared.samples, presumed, settings.reject, how.edges, external
        )
    evidence = gather(builder, prepared.samples, external=external, free=free)
    folded = folded_back(how, prepared.period)
    said = [*([folded] if folded else []), *missing(known)]
    return Reduced(
        (_part(log, raw, prepared),),
        evidence,
        Reach.of(prepared.samples),
        [f'{log}: {text}' for text in said],
    )


@contextmanager
def _naming(log: Stretch) -> Iterator[None]:
    """Say which log is meant by what is wrong with it."""
    try:
        yield
    except LogError as error:
        if str(log.path) in str(error):
            raise
        raise LogError(f'{log}: {error}') from error


def _part(log: Stretch, raw: SampleBatch, prepared: Prepared) -> LogPart:
    """Return what was left of a log."""
    return LogPart(
        str(log), len(raw), len(prepared.samples), prepared.stretches, prepared.discarded
    )
