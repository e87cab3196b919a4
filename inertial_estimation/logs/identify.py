# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The whole job of ``inertial-estimation identify``: logs in, what the links weigh out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.identification.determined import (
    Determined,
    determined,
    tellable,
)
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import RobotFit, fit
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.identification.solvers.point_grids import PointGrid
from inertial_estimation.logs.contradictions import contradiction_warnings
from inertial_estimation.logs.excitation_check import excitation_warnings, require_motion
from inertial_estimation.logs.fit_checks import fit_warnings
from inertial_estimation.logs.gain_checks import require_possible_gains
from inertial_estimation.logs.gain_doubts import gain_doubts
from inertial_estimation.logs.identify_bounds import read_bounds
from inertial_estimation.logs.identify_payloads import require_logs
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.identify_shapes import link_points, solver_options
from inertial_estimation.logs.identify_warnings import load_warnings
from inertial_estimation.logs.impossible import require_possible
from inertial_estimation.logs.left_out import massless_warnings, require_rows, rowless_warnings
from inertial_estimation.logs.log_reader import open_logs
from inertial_estimation.logs.prediction_checks import prediction_warnings
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.logs.reduction import LogPart, reduce_logs, undisturbed
from inertial_estimation.logs.signal_checks import require_live_efforts
from inertial_estimation.logs.slow_residuals import stiction_warnings
from inertial_estimation.logs.stretch import Stretch


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
    builder = EquationBuilder(robot, settings.choice(robot), reader.calibration)
    bounds = read_bounds(settings.bounds, builder.blocks)
    points = link_points(robot, method, settings.shapes, mesh_folders)
    own = solver_options(points, builder.blocks)
    seen = reduce_logs(fitted, reader, builder, settings, progress)
    require_live_efforts(seen.constant)
    bases = tellable(builder)
    assumptions = (builder, reader.assumed, settings.contacts)
    require_rows(seen.evidence, [*rowless_warnings(*assumptions), *seen.warnings])
    require_motion(robot, seen.reach, seen.evidence, bases)
    if settings.reject:
        seen = undisturbed(seen, fitted, reader, builder, settings, progress)
    found = fit(robot, seen.evidence, method, options, bounds, own)
    require_possible(found)
    require_possible_gains(found)
    by_name = dict(zip([block.submodel.name for block in builder.blocks], bases, strict=True))
    told = {
        block.name: determined(block.evidence.block, by_name[block.name], block.information)
        for block in found.blocks
    }
    fitted_or_untold = {*told, *found.untold}
    warnings += [*points.notes, *rowless_warnings(*assumptions, fitted_or_untold), *seen.warnings]
    warnings += excitation_warnings(robot, seen.reach, told.items())
    warnings += contradiction_warnings(found, seen.of_logs)
    warnings += [*_doubts(found), *stiction_warnings(builder, seen.watched, found)]
    if bounds and not SOLVERS[method].bounded:
        warnings.append(f'{method} does not keep the bounds: choose entropic or semidefinite')
    predicted: tuple[LogPart, ...] = ()
    validation: tuple[Evidence, ...] = ()
    if tested:
        unseen = reduce_logs(tested, reader, builder, settings, progress)
        predicted, warnings = unseen.parts, warnings + unseen.warnings
        validation = tuple(one for one in unseen.evidence if one.block.submodel.name in told)
        warnings += _unpredicted(validation)
        for log, evidence in unseen.of_logs.items():
            warnings += prediction_warnings(log, found, evidence)
    links = [link for block in found.blocks for link in block.answer.unknowns.links]
    return IdentifyReport(
        method, seen.parts, predicted, found, validation, told, tuple(dict.fromkeys(warnings)),
        {link: points.by_link[link] for link in links if link in points.by_link},
    )  # fmt: skip


def _doubts(found: RobotFit) -> list[str]:
    """Return what is doubtful of what was found, in words."""
    said = []
    if found.widened:
        said.append(
            f'links raised to the second moments of a small ball, for the prior to be a body: '
            f'{", ".join(found.widened)}'
        )
    said += [
        f'{name}: {why}; its links stay as the description says'
        for name, why in found.untold.items()
    ]
    said += massless_warnings(found)
    for block in found.blocks:
        said += [f'{block.name}: {note}' for note in block.answer.notes]
        bad = np.array(block.answer.unknowns.links)[~(block.answer.margins > 0)]
        if len(bad):
            said.append(f'{block.name}: no body could be like {", ".join(bad)}')
    return [*said, *load_warnings(found), *gain_doubts(found), *fit_warnings(found)]


def _unpredicted(validation: Sequence[Evidence]) -> list[str]:
    """Return of which submodels logs that are not fitted say nothing, in words."""
    return [
        f'nothing of {one.block.submodel.name} is predicted: the other logs give no rows'
        for one in validation
        if not any(part.count for part in one.kinds.values())
    ]


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
