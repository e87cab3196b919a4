# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs become what they say of each submodel: read, checked, filtered, reduced, merged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.outliers import Observed, Presumed, suspects
from inertial_estimation.identification.preparation import Prepared, folded_back, independent_share
from inertial_estimation.logs.disturbed import cleanest, disturbed_warnings, refitted
from inertial_estimation.logs.excitation_check import Reach
from inertial_estimation.logs.freedom import free_submodels
from inertial_estimation.logs.frozen_motion import without_frozen_motion
from inertial_estimation.logs.identify_payloads import LoggedPayload, carried
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.known_wrenches import missing, prepare_with
from inertial_estimation.logs.left_out import frozen_warnings, missing_warnings
from inertial_estimation.logs.log_reader import LogReader
from inertial_estimation.logs.motion_checks import (
    disagreements,
    require_agreement,
    require_within_limits,
)
from inertial_estimation.logs.ratings import rating_warnings
from inertial_estimation.logs.recording import Progress, no_progress
from inertial_estimation.logs.repeated import without_repeated
from inertial_estimation.logs.signal_checks import (
    REMEDY,
    constant_efforts,
    gap_warnings,
    require_live_wrenches,
)
from inertial_estimation.logs.slow_residuals import watched
from inertial_estimation.logs.stretch import Stretch
from inertial_estimation.logs.time_checks import require_possible_rate
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
    constant: Mapping[str, Mapping[str, str]]
    """Efforts of moving joints that do not change in a log, in words, by log and joint."""
    of_logs: Mapping[str, list[Evidence]]
    """`evidence` of each log by itself."""


def reduce_logs(
    logs: Sequence[Stretch],
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    progress: Progress = no_progress,
    presumed: Sequence[Presumed | None] = (),
) -> Reduced:
    """Reduce logs one by one, and merge what they say."""
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
        {name: said for one in found for name, said in one.constant.items()},
        {name: said for one in found for name, said in one.of_logs.items()},
    )


def _reduce_one(
    log: Stretch,
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    presumed: Sequence[Presumed | None],
) -> Reduced:
    """Reduce one log."""
    how = settings.preparation
    raw, prepared, observed, unknown, constant = _read_one(log, reader, settings)
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
        *missing_warnings(builder, samples, reader.assumed, constant),
    ]
    return Reduced(
        (_part(log, raw, prepared, settings.payloads),),
        evidence,
        Reach.of(prepared.samples),
        [f'{log}: {text}' for text in said],
        left,
        [watched(observed._replace(free=free))],
        {str(log): constant},
        {str(log): evidence},
    )


class _Read(NamedTuple):
    """A log that was read."""

    raw: SampleBatch
    prepared: Prepared
    observed: Observed
    unknown: list[str]
    """What is missing or doubtful of signals, in words."""
    constant: Mapping[str, str]
    """Efforts that give no rows, as `Constant.moving` has them."""


def _read_one(log: Stretch, reader: LogReader, settings: IdentifySettings) -> _Read:
    """Read and filter a log."""
    how = settings.preparation
    raw, touches, known, frozen = reader.read(log)
    if settings.layout is not None:
        require_possible_rate(raw, settings.layout.time, how)
    doubts = _doubts(reader.robot, raw, settings)
    raw, constant, said = _without_constant(reader.robot, raw, settings)
    doubts += said
    after = settings.frozen_after
    if settings.layout is not None:
        # Of bags the reader leaves out what FT sensors repeat, as the node would.
        efforts = settings.choice(reader.robot).efforts
        raw, repeated = without_repeated(reader.robot, raw, efforts, after)
        raw, stuck = without_frozen_motion(reader.robot, raw, after, how.measured_velocities)
        doubts += [*repeated, *stuck]
    prepared, external = prepare_with(raw, known, how)
    samples = prepared.samples
    free = free_submodels(
        reader.robot, samples.stamp_ns, settings.contacts, raw, touches, how.edges, external
    )
    unknown = [*doubts, *missing(known), *frozen_warnings(reader.robot, frozen)]
    observed = Observed(samples, external, free, carried(settings.payloads, log, len(samples)))
    return _Read(raw, prepared, observed, unknown, constant)


def _without_constant(
    robot: Robot, raw: SampleBatch, settings: IdentifySettings
) -> tuple[SampleBatch, Mapping[str, str], list[str]]:
    """Return samples without efforts that nothing measures, which these are, and all doubts."""
    found = constant_efforts(robot, raw, settings.choice(robot).efforts)
    said = [f'{text}: {REMEDY}' for text in found.resting.values()]
    if not found.moving or raw.efforts is None:
        return raw, {}, said
    efforts = raw.efforts.copy()
    efforts[:, [robot.joint_names.index(name) for name in found.moving]] = np.nan
    said += [
        f'{text} while it moves: its rows are left out here' for text in found.moving.values()
    ]
    return replace(raw, efforts=efforts), found.moving, said


def _doubts(robot: Robot, raw: SampleBatch, settings: IdentifySettings) -> list[str]:
    """Refuse signals that cannot be what they are said to be, and return what is doubtful."""
    how, choice = settings.preparation, settings.choice(robot)
    efforts = choice.efforts
    said = require_within_limits(robot, raw)
    said += rating_warnings(robot, raw, [name for name in efforts if name not in choice.gains])
    if how.measured_velocities:
        require_agreement(robot, raw, how.largest_gap)
    else:
        said += disagreements(robot, raw, how.largest_gap)
    said += require_live_wrenches(robot, raw)
    if settings.layout is not None:
        # Bags begin before all sensors do.
        said += gap_warnings(robot, raw, efforts)
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


def undisturbed(
    seen: Reduced,
    logs: Sequence[Stretch],
    reader: LogReader,
    builder: EquationBuilder,
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
