# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Identify the inertial parameters of a robot from logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, LogError, ModelError, NameNotFound
from inertial_estimation.findings import Finding, Level, few, finding, raise_errors
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Determined, Evidence, determined
from inertial_estimation.identification.fit import RobotFit, fit
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.solvers.mass_points import METHOD, PointGrid, link_grids
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.checks import MIN_MOTION
from inertial_estimation.logs.fit_findings import (
    MIN_MASS_SHARE,
    contradictions,
    fit_findings,
    predictions,
)
from inertial_estimation.logs.identify_settings import (
    IdentifySettings,
    ShapeSettings,
    submodel_bounds,
)
from inertial_estimation.logs.log import Log, LogSlice, Progress, no_progress
from inertial_estimation.logs.reduction import LogPart, LogReader, LogReduction, merged
from inertial_estimation.model.geometry import link_shapes
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf, lightened


@dataclass(frozen=True, eq=False)
class RobotIdentification:
    """Identified parameters of a robot."""

    method: str
    logs: tuple[LogPart, ...]
    """Samples that were fitted."""
    validation_logs: tuple[LogPart, ...]
    """Samples that were predicted."""
    fit: RobotFit
    """Answers of the submodels."""
    validation: tuple[Evidence, ...]
    """Of each submodel, from the logs to predict."""
    determined: Mapping[str, Determined] = field(default_factory=dict)
    """Combinations of parameters that the logs determine, by submodel."""
    findings: tuple[Finding, ...] = ()
    points: Mapping[str, PointGrid] = field(default_factory=dict)
    """Points that may carry mass, by link; empty but for mass_points."""

    @property
    def parameters(self) -> NDArray[np.float64]:
        """Inertial parameters of all links about their origins, shape (n_links, 10)."""
        return self.fit.parameters

    @property
    def deviations(self) -> dict[str, float]:
        """Standard deviations of the unknowns, by name; NaN: the method states none."""
        return {
            name: float(deviation)
            for block in self.fit.blocks
            for name, deviation in zip(
                block.answer.unknowns.names, block.answer.deviations, strict=True
            )
        }

    def urdf(self) -> str:
        """
        Return the URDF with the identified parameters; only ``<inertial>`` differs.

        Returns
        -------
        str

        Raises
        ------
        ModelError
            If the parameters are inconsistent, or bounds are not kept.

        """
        if missed := [name for block in self.fit.blocks for name in block.missed]:
            raise ModelError(f'bounds are violated: {", ".join(missed)}')
        return export_urdf(self.fit.robot, self.fit.described)


def identify(
    robot: str | Robot,
    logs: str | Path | Log | Sequence[str | Path | Log],
    settings: IdentifySettings | None = None,
    *,
    method: str = 'entropic',
    options: Mapping[str, Any] | None = None,
    validate: Sequence[str | Path] = (),
    lock: Sequence[str] = (),
    mesh_folders: Sequence[Path] = (),
    progress: Progress = no_progress,
) -> RobotIdentification:
    """
    Identify the inertial parameters of a robot from logs.

    Parameters
    ----------
    robot : str or Robot
        Text of the URDF, which is read as the settings state, or a robot.
    logs : str, Path, Log or sequence of them
        Tables of numbers or bags, or parts of them: ``run.npz@2.5:30``; with a Robot also logs
        that `open_log` returned.
    settings : IdentifySettings, optional
        Columns or parameter file, filter, equations, bounds, payloads; by default the wrenches
        of open logs.
    method : str
        One of `identification.solvers.methods.SOLVERS`.
    options : mapping, optional
        For the solver.
    validate : sequence of str or Path, optional
        Logs to predict, which are not fitted.
    lock : sequence of str, optional
        Joints that the logs do not move; the links that they connect are one body.
    mesh_folders : sequence of Path, optional
        Where meshes of the URDF are searched after those of the settings.
    progress : callable, optional
        Called with the stage and its share that is done.

    Returns
    -------
    RobotIdentification

    Raises
    ------
    InertialEstimationError
        If logs, robot and settings do not fit together.

    """
    settings = IdentifySettings() if settings is None else settings
    if not isinstance(settings, IdentifySettings):
        raise ConfigError(f"'settings' is {settings!r:.40}, expected IdentifySettings")
    some = [logs] if isinstance(logs, str | Path | Log) else list(logs)
    given = {Path(f'log {k}'): log for k, log in enumerate(some) if isinstance(log, Log)}
    fitted = [
        LogSlice(Path(f'log {k}')) if isinstance(log, Log) else LogSlice.parse(log).require()
        for k, log in enumerate(some)
    ]
    tested = [LogSlice.parse(log).require() for log in validate]
    settings.require_logs((*fitted, *tested))
    reader = LogReader(robot, settings, lock, fitted[0], progress, given)
    builder = EquationBuilder(
        reader.robot, settings.choice(reader.robot, lock), reader.calibration
    )
    bounds = submodel_bounds(settings.bounds, builder.blocks)
    points, notes = _link_points(reader.robot, method, settings.shapes, mesh_folders)
    reduction = LogReduction(reader, builder, settings, progress)
    # Logs to equations, to information, to the answers of a solver.
    seen, rejected = reduction.reduced(fitted), list[Finding]()
    submodels = [block.submodel.name for block in builder.blocks]
    lacking = [
        *(
            finding('unexcited', name, what='position is assumed: what needs it has no equations')
            for name in reader.assumed
        ),
        *(
            finding('unexcited', submodels[reader.robot.submodel_of(frame)],
                    what=f"no equations: unknown contact at '{frame}'")
            for frame in settings.rows.contacts
        ),
    ]  # fmt: skip
    if not any(one.count for log in seen for one in log.evidence):
        why = [*lacking, *(one for log in seen for one in log.findings)]
        reasons = '; '.join(map(str, why)) or 'something is missing in each sample'
        raise LogError(f'the logs give no equations: {reasons}')
    lows, highs = np.stack([one.ranges for one in seen], axis=1)
    sizes = zip(reader.robot.joint_names, np.fmax.reduce(highs) - np.fmin.reduce(lows))
    still = [finding('motion', k, limit=MIN_MOTION) for k, size in sizes if size <= MIN_MOTION]
    if reader.robot.fixed_frame and len(still) == len(reader.robot.joint_names):
        raise_errors(replace(one, level=Level.ERROR) for one in still)
    if settings.rows.reject:
        seen, rejected = reduction.undisturbed(fitted, seen)
    chosen = {**(options or {}), **({'grids': points} if points else {})}
    found = fit(reader.robot, merged(seen), method, chosen, bounds)
    judged = [*fit_findings(found)]
    try:
        raise_errors(judged)
    except LogError as error:
        if settings.node is None or builder.choice.offsets or not reader.robot.ft_sensors:
            raise
        raise LogError(f"{error}; or FT offsets that 'rows.offsets' does not name") from error
    possible = {
        block.submodel.name: base
        for block, (base, _) in zip(builder.blocks, builder.bases, strict=True)
    }
    known = {
        block.name: determined(
            block.evidence.block, possible[block.name], block.information, block.by_matrices
        )
        for block in found.blocks
    }
    unseen = reduction.reduced(tested)
    validation = [one for one in merged(unseen) if one.block.submodel.name in known]
    findings = [
        *(
            finding('suboptimal', str(one), what=f'{use} as {other}')
            for use, pairs in (('predicted, and fitted', product(tested, fitted)),
                               ('fitted twice, also', combinations(fitted, 2)))
            for one, other in pairs
            if one.overlaps(other)
        ),
        *(finding('suboptimal', 'shapes', what=note) for note in notes),
        *lacking,
        *(
            finding('unexcited', name, what='no equations: its parameters are kept')
            for name in possible
            if name not in known and name not in found.undetermined
        ),
        *(one for log in seen for one in log.findings),
        *rejected,
        *still,
        *(
            finding('unexcited', name, rank=one.seen.rank, possible=one.possible,
                    what=f'{one.seen.rank} of {one.possible} combinations of unknowns are '
                         f'determined, not {few(one.missing)}')
            for name, one in known.items()
            if one.missing
        ),
        *contradictions(found, {log.part.path: log.evidence for log in seen}),
        *judged,
        *_lighter_links(found),
        *(one for log in unseen for one in log.findings),
        *(
            finding('unexcited', one.block.submodel.name, what='no equations to predict')
            for one in validation
            if not one.count
        ),
        *(one for log in unseen for one in predictions(log.part.path, found, log.evidence)),
    ]  # fmt: skip
    if bounds and not SOLVERS[method].bounded:
        findings.append(finding('suboptimal', 'bounds', what=f'{method} does not keep bounds'))
    links = [link for block in found.blocks for link in block.answer.unknowns.links]
    parts, unseen_parts = (tuple(one.part for one in logs) for logs in (seen, unseen))
    return RobotIdentification(
        method, parts, unseen_parts, found, tuple(validation), known,
        tuple({(one.subject, one.code, one.text): one for one in findings}.values()),
        {link: points[link] for link in links if link in points},
    )  # fmt: skip


def _link_points(
    robot: Robot, method: str, settings: ShapeSettings | None, mesh_folders: Sequence[Path]
) -> tuple[dict[str, PointGrid], list[str]]:
    """
    Return the points where each link may have its mass, and geometry that could not be used.

    Collision geometry, else visual, else the box of the settings, else the even cuboid with the
    inertia of the prior [A section V; M 25].
    """
    if method != METHOD:
        return {}, [] if settings is None else [f"{method} does not use 'shapes': choose {METHOD}"]
    settings = settings or ShapeSettings()
    links = robot.link_names
    for name in settings.boxes:
        if name not in links:
            raise NameNotFound('link', name, links, "'shapes.boxes' names it")
    prior, _ = widened(links, robot.parameters)
    shapes = link_shapes(robot, (*settings.mesh_folders, *mesh_folders))
    grids = link_grids(
        links, prior, shapes.by_link, configured=settings.boxes, per_axis=settings.points
    )  # fmt: skip
    return dict(zip(links, grids, strict=True)), list(shapes.notes)


def _lighter_links(found: RobotFit) -> Iterator[Finding]:
    """Yield links of which the URDF keeps a share only, as they are fixed to a lighter one."""
    shares = lightened(found.robot, found.described) if found.consistent else {}
    for name, share in shares.items():
        what = f'mass and inertia are scaled to {share:.2g} in the exported URDF'
        level = Level.INFO if share > MIN_MASS_SHARE else Level.WARNING
        yield finding('inertia', name, level=level, what=what)
