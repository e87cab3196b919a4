# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reduce logs to the information that they hold of each submodel: read, check, filter, merge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.findings import Finding, Level, finding, raise_errors
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.outliers import Observed, Reference, find_outliers
from inertial_estimation.identification.preparation import Prepared, folded_back, independent_share
from inertial_estimation.logs import checks
from inertial_estimation.logs.disturbed import cleanest, disturbed_findings, refitted
from inertial_estimation.logs.frozen_readings import without_frozen_readings
from inertial_estimation.logs.identify_settings import IdentifySettings, LoggedPayload, carried
from inertial_estimation.logs.known_wrenches import prepare_with
from inertial_estimation.logs.log import LogSlice, Progress, Touches, no_progress
from inertial_estimation.logs.log_reader import LogReader
from inertial_estimation.model.inertial_sensors import same_place
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

MAX_ROUNDS = 8
"""Of rejecting outliers: without them the fit is better, and shows more."""
MIN_TILT = 0.05
"""Change of the direction of a proper acceleration from which its IMU is moved."""


@dataclass(frozen=True, eq=False)
class LogPart:
    """Samples of one log that are used."""

    path: str
    recorded: int
    """Samples of the log."""
    used: int
    """Samples that equations are built from."""
    stretches: int
    """Parts between gaps."""
    discarded: int
    """Samples at edges and in parts that are too short."""
    payloads: tuple[str, ...] = ()
    """Payloads that the robot carried."""


@dataclass(frozen=True, eq=False)
class Reach:
    """Ranges of joint positions and of the directions of the accelerations of IMUs."""

    lows: Array
    highs: Array
    """Shape (n_joints + 3 n_imus,); NaN: unknown."""

    @classmethod
    def of(cls, samples: SampleBatch) -> Reach:
        """Return the reach of some samples."""
        pulls = samples.proper_accelerations
        lengths = np.linalg.norm(pulls, axis=-1, keepdims=True)
        directions = np.divide(pulls, lengths, out=np.zeros_like(pulls), where=lengths > 0)
        values = np.hstack([samples.positions, directions.reshape(len(pulls), -1)])
        known = np.isfinite(values)
        empty = ~known.any(axis=0)
        lows = np.where(known, values, np.inf).min(axis=0)
        highs = np.where(known, values, -np.inf).max(axis=0)
        return cls(np.where(empty, np.nan, lows), np.where(empty, np.nan, highs))

    def merge(self, other: Reach) -> Reach:
        """Return the reach of both."""
        return Reach(np.fmin(self.lows, other.lows), np.fmax(self.highs, other.highs))

    def still(self, robot: Robot) -> list[str]:
        """Return the joints that do not move, among those whose positions are known."""
        n = len(robot.joint_names)
        stays = self.highs[:n] - self.lows[:n] <= checks.MIN_MOTION
        return [name for name, one in zip(robot.joint_names, stays, strict=True) if one]

    def moves(self, robot: Robot) -> bool:
        """Return whether a joint moves or an IMU is turned against gravity."""
        n, ranges = len(robot.joint_names), self.highs - self.lows
        return bool((ranges[:n] > checks.MIN_MOTION).any() or (ranges[n:] > MIN_TILT).any())


class Reduced(NamedTuple):
    """Information of some logs together."""

    parts: tuple[LogPart, ...]
    evidence: list[Evidence]
    """Of each submodel."""
    reach: Reach
    findings: list[Finding]
    left: list[dict[str, Array]]
    """Residuals that agree with what was references of each submodel; empty without that."""
    constant: Mapping[str, Mapping[str, Finding]]
    """Constant efforts of moving joints, by log and joint."""
    of_logs: Mapping[str, list[Evidence]]
    """`evidence` of each log."""


def reduce_logs(
    logs: Sequence[LogSlice],
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    progress: Progress = no_progress,
    references: Sequence[Reference | None] = (),
) -> Reduced:
    """Reduce logs one by one, and merge their information."""
    found: list[Reduced] = []
    for done, log in enumerate(logs):
        progress('reducing logs', done / len(logs))
        with _naming(log):
            found.append(_reduce_one(log, reader, builder, settings, references))
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
        [text for one in found for text in one.findings],
        _joined([one.left for one in found]),
        {name: constant for one in found for name, constant in one.constant.items()},
        {name: of_log for one in found for name, of_log in one.of_logs.items()},
    )


def _reduce_one(
    log: LogSlice,
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    references: Sequence[Reference | None],
) -> Reduced:
    """Reduce one log."""
    how = settings.preparation
    raw, prepared, observed, findings, constant = _read_one(log, reader, settings)
    samples, external, free, there = observed
    left: list[dict[str, Array]] = []
    if references:
        found = find_outliers(builder, observed, references, settings.reject, how.edges)
        free, left = free & ~found.at, found.left
    share = independent_share(how, prepared.period)
    evidence = gather(builder, samples, external=external, free=free, carried=there, share=share)
    efforts = [name for name in builder.choice.efforts if name not in constant]
    findings += checks.never_known(builder.robot, samples, efforts, reader.assumed)
    folded = folded_back(how, prepared.period)
    if folded:
        findings.append(finding('suboptimal', 'preparation', what=folded))
    return Reduced(
        (_part(log, raw, prepared, settings.payloads),),
        evidence,
        Reach.of(prepared.samples),
        [replace(one, subject=f'{log}: {one.subject}') for one in findings],
        left,
        {str(log): constant},
        {str(log): evidence},
    )


class _Read(NamedTuple):
    """A log that was read and filtered."""

    raw: SampleBatch
    prepared: Prepared
    observed: Observed
    findings: list[Finding]
    constant: Mapping[str, Finding]
    """Efforts of moving joints that never change, which are left out."""


def _read_one(log: LogSlice, reader: LogReader, settings: IdentifySettings) -> _Read:
    """Read, check and filter a log."""
    how, robot = settings.preparation, reader.robot
    read = reader.read(log)
    raw, touches, known = read.samples, read.touches, read.external
    frozen = read.frozen([sensor.name for sensor in robot.ft_sensors])
    findings = list(_checked(robot, raw, settings))
    raise_errors(findings)
    constant = {
        one.subject: one
        for one in findings
        if one.code == 'constant' and one.level > Level.INFO and one.subject in robot.joint_names
    }
    if constant and raw.efforts is not None:
        efforts = raw.efforts.copy()
        efforts[:, [robot.joint_names.index(name) for name in constant]] = np.nan
        raw = replace(raw, efforts=efforts)
    if settings.layout is not None:
        # Of bags the reader leaves out what FT sensors repeat, as the node does.
        raw, repeated = without_frozen_readings(
            robot, raw, settings.choice(robot).efforts, settings.frozen_after,
            velocities=how.measured_velocities,
        )  # fmt: skip
        findings += repeated
    prepared, external = prepare_with(raw, known, how)
    samples = prepared.samples
    free = free_submodels(
        robot, samples.stamp_ns, settings.contacts, raw, touches, how.edges, external
    )
    findings += _unknown_wrenches(known)
    findings += checks.frozen_wrenches(robot, frozen)
    observed = Observed(samples, external, free, carried(settings.payloads, log, len(samples)))
    return _Read(raw, prepared, observed, findings, constant)


def _checked(robot: Robot, raw: SampleBatch, settings: IdentifySettings) -> Iterator[Finding]:
    """Yield the findings about the samples of a log."""
    how, choice = settings.preparation, settings.choice(robot)
    if settings.layout is not None:
        yield from checks.sample_rate(raw, how)
    yield from checks.position_limits(robot, raw)
    yield from checks.ratings(robot, raw, set(choice.efforts) - set(choice.gains))
    level = Level.ERROR if how.measured_velocities else Level.WARNING
    yield from checks.velocities_against_positions(robot, raw, how.largest_gap, level)
    yield from checks.constant_wrenches(robot, raw)
    yield from checks.constant_efforts(robot, raw, choice.efforts)
    if settings.layout is not None:
        # Bags begin before all sensors do.
        yield from checks.gaps(robot, raw, choice.efforts, velocities=how.measured_velocities)


def _unknown_wrenches(known: Mapping[str, Array]) -> Iterator[Finding]:
    """Yield known wrenches (n, 6) that are missing in some samples."""
    for frame, wrench in known.items():
        share = float((~np.isfinite(wrench).all(axis=1)).mean())
        if share:
            yield finding('missing', frame, what='external wrench', share=share)


def _joined(logs: Sequence[list[dict[str, Array]]]) -> list[dict[str, Array]]:
    """Return the residuals of several logs, block by block."""
    return [
        {kind: np.concatenate([one[kind] for one in block]) for kind in block[0]}
        for block in zip(*logs, strict=True)
    ]


@contextmanager
def _naming(log: LogSlice) -> Iterator[None]:
    """Name the log in errors."""
    try:
        yield
    except (LogError, NameNotFound) as error:
        if str(log.path) in str(error):
            raise
        raise LogError(f'{log}: {error}') from error


def _part(
    log: LogSlice, raw: SampleBatch, prepared: Prepared, payloads: Sequence[LoggedPayload]
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
    logs: Sequence[LogSlice],
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    progress: Progress,
) -> Reduced:
    """Return what logs say without the instants at which something unknown seems to act."""
    read = (_read_one(log, reader, settings).observed for log in logs)
    references = cleanest(builder, seen.evidence, read, len(logs))
    everything = seen
    for _ in range(MAX_ROUNDS):
        before = seen
        seen = reduce_logs(logs, reader, builder, settings, progress, references)
        if [one.left_out for one in seen.evidence] == [one.left_out for one in before.evidence]:
            break
        references = [
            refitted(reader.robot, *one)
            for one in zip(seen.evidence, seen.left, references, strict=True)
        ]
    rejected = disturbed_findings(everything.evidence, seen.evidence)
    return seen._replace(findings=[*seen.findings, *rejected])


def free_submodels(
    robot: Robot,
    stamps: NDArray[np.int64],
    contacts: Iterable[str],
    recorded: SampleBatch,
    touches: Touches | None,
    margin: float,
    known: Collection[str] = (),
) -> NDArray[np.bool_]:
    """
    Return the samples in which no unknown wrench acts on a submodel [T 7.3].

    stamps (n,) [ns]; margin [s]; returns (n, n_submodels).
    """
    free = np.ones((len(stamps), len(robot.submodels)), dtype=bool)
    for frame in contacts:
        robot.frame(frame, f"'rows.contacts' names '{frame}'")
    free[:, sorted({submodel_of(robot, frame) for frame in contacts})] = False
    if touches is None:
        return free
    places = [robot.frame(name) for name in known]
    margin_ns = round(margin * 1e9)
    for number, present in enumerate(touches.sets):
        unknown = {
            contact.frame
            for contact in present
            if not any(same_place(robot.frame(contact.frame), place) for place in places)
        }
        columns = sorted({submodel_of(robot, frame) for frame in unknown})
        times = recorded.stamp_ns[touches.rows == number]
        first = np.searchsorted(times, stamps - margin_ns)
        last = np.searchsorted(times, stamps + margin_ns, side='right')
        free[np.flatnonzero(last > first)[:, None], columns] = False
    return free


def submodel_of(robot: Robot, frame: str) -> int:
    """Return the submodel that a frame belongs to."""
    link, _ = robot.frame(frame)
    return next(k for k, submodel in enumerate(robot.submodels) if link in submodel.links)
