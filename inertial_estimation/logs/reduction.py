# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reduce logs to the information that they hold of each submodel: read, check, filter, merge."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.findings import Finding, Level, finding, raise_errors
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.outliers import Reference, find_outliers
from inertial_estimation.identification.preparation import Prepared, folded_back, independent_share
from inertial_estimation.logs import checks
from inertial_estimation.logs.disturbed import cleanest, disturbed_findings, refitted
from inertial_estimation.logs.frozen_readings import without_frozen_readings
from inertial_estimation.logs.identify_settings import IdentifySettings, carried
from inertial_estimation.logs.known_wrenches import prepare_with
from inertial_estimation.logs.log import LogSlice, Progress, Touches, no_progress
from inertial_estimation.logs.log_reader import LogReader
from inertial_estimation.model.inertial_sensors import same_place
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

MAX_ROUNDS = 8
"""Of rejecting outliers: without them the fit is better, and shows more."""
MIN_TILT = 0.05
"""Change of the direction of a proper acceleration from which its IMU is moved."""


class LogPart(NamedTuple):
    """Samples of one log that are used."""

    path: str
    recorded: int
    used: int
    """Samples that equations are built from."""
    stretches: int
    """Parts between gaps."""
    discarded: int
    """Samples at edges and in parts that are too short."""
    payloads: tuple[str, ...] = ()


class Ranges(NamedTuple):
    """Ranges of joint positions and of the directions of the accelerations of IMUs."""

    lows: Array
    highs: Array
    """Shape (n_joints + 3 n_imus,); NaN: unknown."""

    @classmethod
    def of(cls, samples: SampleBatch) -> Ranges:
        """Return the ranges in some samples."""
        pulls = samples.proper_accelerations
        lengths = np.linalg.norm(pulls, axis=-1, keepdims=True)
        directions = np.divide(pulls, lengths, out=np.zeros_like(pulls), where=lengths > 0)
        values = np.hstack([samples.positions, directions.reshape(len(pulls), -1)])
        values = np.where(np.isfinite(values), values, np.nan)
        lows, highs = (f.reduce(values, axis=0, initial=np.nan) for f in (np.fmin, np.fmax))
        return cls(lows, highs)

    def merge(self, other: Ranges) -> Ranges:
        """Return the ranges of both."""
        return Ranges(np.fmin(self.lows, other.lows), np.fmax(self.highs, other.highs))

    def still(self, names: Sequence[str]) -> list[str]:
        """Return the joints that do not move, among those whose positions are known."""
        sizes = self.highs - self.lows
        return [name for name, size in zip(names, sizes) if size <= checks.MIN_MOTION]

    def moves(self, n_joints: int) -> bool:
        """Return true if a joint moves or an IMU is turned against gravity."""
        sizes = self.highs - self.lows
        moved, turned = sizes[:n_joints] > checks.MIN_MOTION, sizes[n_joints:] > MIN_TILT
        return bool(moved.any() or turned.any())


class Reduced(NamedTuple):
    """Information of some logs together."""

    parts: tuple[LogPart, ...]
    evidence: list[Evidence]
    ranges: Ranges
    findings: list[Finding]
    left: list[dict[str, Array]]
    """Residuals of the equations that agree with the reference of each submodel, if any."""
    constant: Mapping[str, Mapping[str, Finding]]
    """Constant efforts of moving joints, by log and joint."""
    of_logs: Mapping[str, list[Evidence]]


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
        try:
            found.append(_reduce_one(log, reader, builder, settings, references))
        except (LogError, NameNotFound) as error:
            if str(log.path) in str(error):
                raise
            raise LogError(f'{log}: {error}') from error
    progress('reducing logs', 1.0)
    blocks = zip(*(one.evidence for one in found), strict=True)
    return Reduced(
        tuple(part for one in found for part in one.parts),
        [reduce(Evidence.merge, block) for block in blocks],
        reduce(Ranges.merge, (one.ranges for one in found)),
        [text for one in found for text in one.findings],
        [
            {kind: np.concatenate([one[kind] for one in block]) for kind in block[0]}
            for block in zip(*(one.left for one in found), strict=True)
        ],
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
    how, robot = settings.preparation, builder.robot
    recorded, prepared, observed, findings, constant = _read_one(log, reader, settings)
    samples, external, free, there = observed
    left: list[dict[str, Array]] = []
    if references:
        found = find_outliers(builder, observed, references, settings.reject, how.edges)
        free, left = ~found.at if free is None else free & ~found.at, found.left
    share = independent_share(how, prepared.period)
    evidence = gather(builder, samples, external=external, free=free, carried=there, share=share)
    efforts = [name for name in builder.choice.efforts if name not in constant]
    findings += [
        one
        for one in checks.missing_values(robot, samples, efforts, velocities=False)
        if one.values['share'] == 1.0
        and not (one.values['what'] == 'position' and one.subject in reader.assumed)
    ]
    if folded := folded_back(how, prepared.period):
        findings.append(finding('suboptimal', 'preparation', what=folded))
    payloads = tuple(one.payload.name for one in settings.payloads if one.is_in(log))
    return Reduced(
        (LogPart(str(log), recorded, len(samples), prepared.stretches, prepared.discarded,
                 payloads),),
        evidence,
        Ranges.of(samples),
        [replace(one, subject=f'{log}: {one.subject}') for one in findings],
        left,
        {str(log): constant},
        {str(log): evidence},
    )  # fmt: skip


class _Read(NamedTuple):
    """A log that was read and filtered."""

    recorded: int
    prepared: Prepared
    observed: Observed
    findings: list[Finding]
    constant: Mapping[str, Finding]
    """Efforts of moving joints that never change, which are left out."""


def _read_one(log: LogSlice, reader: LogReader, settings: IdentifySettings) -> _Read:
    """Read, check and filter a log."""
    how, robot, is_table = settings.preparation, reader.robot, settings.layout is not None
    read, choice = reader.read(log), settings.choice(reader.robot)
    raw = read.samples
    findings = [
        # Bags begin before all sensors do.
        *(checks.sample_rate(raw, how) if is_table else ()),
        *checks.urdf_limits(robot, raw, set(choice.efforts) - set(choice.gains)),
        *checks.velocities_against_positions(
            robot, raw, how.largest_gap,
            Level.ERROR if how.measured_velocities else Level.WARNING,
        ),
        *checks.constant_signals(robot, raw, choice.efforts),
    ]  # fmt: skip
    if is_table:
        values = how.measured_velocities
        missing = checks.missing_values(robot, raw, choice.efforts, velocities=values)
        findings += [one for one in missing if one.values['share'] < 1.0]
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
    if is_table:
        # Of bags the reader leaves out what FT sensors repeat, as the node does.
        raw, repeated = without_frozen_readings(
            robot, raw, choice.efforts, settings.frozen_after, velocities=how.measured_velocities
        )
        findings += repeated
    prepared, external = prepare_with(raw, read.external, how)
    samples = prepared.samples
    free = free_submodels(
        robot, samples.stamp_ns, settings.contacts, raw, read.touches, how.edges, external
    )
    for frame, wrench in read.external.items():
        if share := float((~np.isfinite(wrench).all(axis=1)).mean()):
            findings.append(finding('missing', frame, what='external wrench', share=share))
    frozen = read.frozen([sensor.name for sensor in robot.ft_sensors])
    findings += checks.frozen_wrenches(robot, frozen)
    observed = Observed(samples, external, free, carried(settings.payloads, log, len(samples)))
    return _Read(len(read.samples), prepared, observed, findings, constant)


def undisturbed(
    seen: Reduced,
    logs: Sequence[LogSlice],
    reader: LogReader,
    builder: EquationBuilder,
    settings: IdentifySettings,
    progress: Progress,
) -> Reduced:
    """Return the information of logs without samples that an unknown contact disturbs."""
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
    free[:, sorted({robot.submodel_of(frame) for frame in contacts})] = False
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
        columns = sorted({robot.submodel_of(frame) for frame in unknown})
        times = recorded.stamp_ns[touches.rows == number]
        first = np.searchsorted(times, stamps - margin_ns)
        last = np.searchsorted(times, stamps + margin_ns, side='right')
        free[np.flatnonzero(last > first)[:, None], columns] = False
    return free
