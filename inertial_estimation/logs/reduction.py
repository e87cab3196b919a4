# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Read logs for identification, and reduce them to the information that they hold of each submodel.

Logs are tables or bags, with known wrenches, and with joints locked. Locked joints have to stand
still; the robot is read with them fixed where they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Mask, Stamps
from inertial_estimation.calibration.configured_estimator import build_calibration
from inertial_estimation.errors import ConfigError, LogError, NameNotFound
from inertial_estimation.estimation.reading_checks import without_leaps
from inertial_estimation.findings import Finding, Level, finding, limit_of, raise_errors
from inertial_estimation.identification.equations.builder import EquationBuilder, Observed
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.outliers import (
    Reference,
    cleanest,
    find_outliers,
    refitted,
)
from inertial_estimation.identification.preparation import (
    Prepared,
    cutoff_problems,
    independent_share,
)
from inertial_estimation.logs import checks
from inertial_estimation.logs.identify_settings import IdentifySettings, chosen
from inertial_estimation.logs.known_wrenches import check_known, prepare_with
from inertial_estimation.logs.log import Log, LogSlice, Progress, Touches
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.robot import Robot, same_place
from inertial_estimation.model.urdf import parse
from inertial_estimation.sample import SampleBatch

MAX_LOCKED_MOTION = 0.01
"""Of a locked joint, to either side [rad or m]."""
MAX_ROUNDS = 8
"""Of rejecting outliers: without them the fit is better, and shows more."""
MIN_REJECTED, MAX_REJECTED = limit_of('disturbed'), 0.4
"""Shares of equations from which rejection is reported, and doubted: most may be disturbed."""


class LogReader:
    """Reads logs of a robot or URDF; first: shows locked positions; given: open logs, by name."""

    def __init__(
        self,
        robot: str | Robot,
        settings: IdentifySettings,
        lock: Sequence[str],
        first: LogSlice,
        progress: Progress,
        given: Mapping[Path, Log] | None = None,
    ) -> None:
        self._node, self._layout, self._known = settings.node, settings.log, settings.rows.external
        self._progress, self._given = progress, given or {}
        if settings.rows.base_link and self._layout is not None:
            self._layout = replace(self._layout, ft_sensors={}, temperatures={})
        if isinstance(robot, Robot):
            if lock:
                raise ConfigError('lock needs the text of the URDF in place of a Robot')
            self._whole = robot
        else:
            if self._layout is None and self._node is None:
                raise ConfigError("neither 'log' nor 'parameters' is given")
            self._whole = settings.build_robot(robot)
            columns = {} if self._layout is None else self._layout.external
            known = (*columns.values(), *self._known.values())
            check_known(self._whole, known, settings.rows.contacts)
        self.robot = self._whole
        """With joints locked."""
        if lock and isinstance(robot, str):
            joints = self._whole.joint_names
            chosen(lock, 'joint that moves', 'lock', joints)
            kept = [name for name in joints if name not in lock]
            if not (kept or self._whole.ft_sensors or settings.rows.base_link):
                text = "'lock' names every joint, and there is no FT sensor: no equations are left"
                raise ConfigError(text, about=('lock',))
            self.robot = settings.build_robot(robot, kept, self._locked(lock, first))
        self.assumed: tuple[str, ...] = ()
        self.calibration = None
        if self._node is not None:
            assumed = self._node.joint_states.assumed
            self.assumed = tuple(name for name in self.robot.joint_names if name in assumed)
            self.calibration = build_calibration(self._node, self.robot)

    def read(self, part: LogSlice) -> Log:
        """Read a log or a part of it."""
        log = self._read_whole(part)
        joints = self._whole.joint_names
        for name, values in zip(joints, log.samples.positions.T, strict=True):
            size = checks.span(values)
            if name not in self.robot.joint_names and size > 2 * MAX_LOCKED_MOTION:
                raise LogError(f"{part}: locked joint '{name}' moves by {size:.3g} rad or m")
        kept = [joints.index(name) for name in self.robot.joint_names]
        columns = {
            name: values[:, kept]
            for name in ('positions', 'velocities', 'accelerations', 'joint_states', 'efforts')
            if (values := getattr(log.samples, name)) is not None
        }
        unknown = [self.robot.joint_names.index(name) for name in self.assumed]
        for name in ('positions', 'velocities', 'accelerations'):
            columns[name][:, unknown] = np.nan
        return replace(log, samples=replace(log.samples, **columns))

    def _read_whole(self, part: LogSlice) -> Log:
        """Read a part of a log with all joints."""
        robot, path = self._whole, part.path
        log = self._given.get(path)
        if log is None:
            log = open_log(path, robot, self._node, layout=self._layout, progress=self._progress)
        samples = log.without_frozen()
        positions = samples.positions.copy()
        # Drivers of continuous joints report one turn only.
        for tag in parse(robot.urdf).findall("joint[@type='continuous']"):
            if (name := tag.get('name', '')) in robot.joint_names:
                column = positions[:, robot.joint_names.index(name)]
                known = np.isfinite(column)
                column[known] = np.unwrap(column[known])
        samples = replace(samples, positions=positions)
        external = {frame: one.of_log(path, robot, samples) for frame, one in self._known.items()}
        log = replace(log, samples=samples, external={**log.external, **external})
        return log.take(part.rows(samples.stamp_ns))

    def _locked(self, lock: Sequence[str], first: LogSlice) -> dict[str, float]:
        samples, found = self._read_whole(first).samples, {}
        for name in lock:
            column = samples.positions[:, self._whole.joint_names.index(name)]
            if not np.isfinite(column).any():
                raise LogError(f"the log has no position of '{name}', which is to be locked")
            found[name] = float(np.nanmedian(np.where(np.isfinite(column), column, np.nan)))
        return found


class LogPart(NamedTuple):
    """Samples of one log that are used."""

    path: str
    recorded: int
    used: int
    """Samples that equations are built from."""
    payloads: tuple[str, ...] = ()


class Reduced(NamedTuple):
    """Information of one log."""

    part: LogPart
    evidence: list[Evidence]
    ranges: Array
    """Least and greatest joint positions, shape (2, n_joints); NaN: unknown."""
    findings: list[Finding]
    left: list[dict[str, Array]]
    """Residuals of the equations that agree with the reference of each submodel, if any."""
    about: Array
    """Loads of the FT sensors about which errors of their matrices count, shape (n_fts, 6)."""


@dataclass(frozen=True, eq=False)
class LogReduction:
    """Reduces logs of one robot."""

    reader: LogReader
    builder: EquationBuilder
    settings: IdentifySettings
    progress: Progress

    def reduced(
        self, logs: Sequence[LogSlice], references: Sequence[Reference] = ()
    ) -> list[Reduced]:
        """Reduce logs one by one, without equations that do not agree with references."""
        found: list[Reduced] = []
        for done, log in enumerate(logs):
            self.progress('reducing logs', done / len(logs))
            try:
                about = found[0].about if found else None
                found.append(self._reduce(log, references, about))
            except (LogError, NameNotFound) as error:
                if str(log.path) in str(error):
                    raise
                raise LogError(f'{log}: {error}') from error
        self.progress('reducing logs', 1.0)
        return found

    def undisturbed(
        self, logs: Sequence[LogSlice], seen: Sequence[Reduced]
    ) -> tuple[list[Reduced], list[Finding]]:
        """Reduce logs without samples that an unknown contact disturbs."""
        everything = evidence = merged(seen)
        read = (self._read(log).observed for log in logs)
        references = cleanest(self.builder, evidence, read, len(logs))
        for _ in range(MAX_ROUNDS):
            before, seen = evidence, self.reduced(logs, references)
            evidence = merged(seen)
            if [one.left_out for one in evidence] == [one.left_out for one in before]:
                break
            left = [
                {kind: np.concatenate([one[kind] for one in block]) for kind in block[0]}
                for block in zip(*(one.left for one in seen), strict=True)
            ]
            references = [
                refitted(self.builder.robot, *one)
                for one in zip(evidence, left, references, strict=True)
            ]
        findings = []
        for one, other in zip(everything, evidence, strict=True):
            share = 1.0 - other.count / one.count if one.count else 0.0
            if share > MIN_REJECTED:
                level = Level.WARNING if share > MAX_REJECTED else None
                name = one.block.submodel.name
                findings.append(finding('disturbed', name, level=level, share=share))
        return list(seen), findings

    def _reduce(
        self, log: LogSlice, references: Sequence[Reference], about: Array | None
    ) -> Reduced:
        recorded, prepared, observed, findings = self._read(log)
        builder = self.builder
        samples, left = observed.samples, list[dict[str, Array]]()
        if references:
            disturbed, left = find_outliers(
                builder, observed, references, self.settings.rows.reject, prepared.how.edges
            )
            free = ~disturbed if observed.free is None else observed.free & ~disturbed
            observed = observed._replace(free=free)
        if about is None:
            loads = builder.wrenches(samples)
            known = np.isfinite(loads)
            about = np.sum(loads, axis=0, where=known) / np.maximum(known.sum(axis=0), 1)
        evidence = gather(builder, observed, independent_share(prepared), about=about)
        frozen = {one.subject for one in findings if one.code == 'frozen'} | {*self.reader.assumed}
        efforts = builder.choice.efforts
        findings += [
            one
            for one in checks.missing_values(builder.robot, samples, efforts, self._kinds)
            if one.values['share'] == 1.0 and one.subject not in frozen
        ]
        findings += [
            finding('suboptimal', 'preparation', what=what) for what in cutoff_problems(prepared)
        ]
        payloads = tuple(one.name for one in self.settings.payloads if one.is_in(log))
        part = LogPart(str(log), recorded, len(samples), payloads)
        findings = [replace(one, subject=f'{log}: {one.subject}') for one in findings]
        q = np.where(np.isfinite(samples.positions), samples.positions, np.nan)
        ranges = np.array([f.reduce(q, axis=0, initial=np.nan) for f in (np.fmin, np.fmax)])
        return Reduced(part, evidence, ranges, findings, left, about)

    @property
    def _kinds(self) -> tuple[str, ...]:
        measured = self.settings.preparation.measured_velocities
        return tuple(one for one in checks.KINDS if measured or one != 'velocity')

    def _read(self, log: LogSlice) -> _Read:
        settings, robot, choice = self.settings, self.reader.robot, self.builder.choice
        how, is_table, efforts = settings.preparation, settings.log is not None, choice.efforts
        read = self.reader.read(log)
        raw, leaps = without_leaps(robot, read.samples)
        level = Level.ERROR if how.measured_velocities else Level.WARNING
        findings = [
            *leaps,
            *checks.urdf_limits(robot, raw, set(efforts) - set(choice.gains)),
            *checks.velocities_against_positions(robot, raw, how.largest_gap, level),
            *checks.constant_channels(robot, raw),
        ]
        for source, counts in read.problems.items() if log.is_whole else ():
            for what, count in counts.items():
                findings.append(finding('refused_message', source, count=count, what=what))
        # Bags begin before all sensors do.
        if is_table:
            missing = checks.missing_values(robot, raw, efforts, self._kinds)
            findings += [one for one in missing if one.values['share'] < 1.0]
            findings += checks.sample_rate(raw, how)
        raise_errors(findings)
        # Of bags the reader leaves out what FT sensors repeat, as the node does.
        raw, repeated = checks.without_frozen_readings(
            robot, raw, efforts, settings.rows.frozen_after,
            self._kinds if is_table else ('effort',),
        )  # fmt: skip
        findings += repeated
        prepared, external = prepare_with(raw, read.external, how)
        samples, edges = prepared.samples, prepared.how.edges
        free = free_submodels(
            robot, samples.stamp_ns, settings.rows.contacts, raw, read.touches, edges, external
        )
        for frame, wrench in read.external.items():
            if share := float((~np.isfinite(wrench).all(axis=1)).mean()):
                findings.append(finding('missing', frame, what='external wrench', share=share))
        for sensor, share in zip(robot.ft_sensors, read.frozen.mean(axis=0), strict=False):
            if share:
                findings.append(finding('frozen', sensor.name, what='wrench', share=float(share)))
        there = np.tile([float(one.is_in(log)) for one in settings.payloads], (len(samples), 1))
        observed = Observed(samples, external, free, there)
        return _Read(len(read.samples), prepared, observed, findings)


class _Read(NamedTuple):
    recorded: int
    prepared: Prepared
    observed: Observed
    findings: list[Finding]


def merged(logs: Iterable[Reduced]) -> list[Evidence]:
    """Return the evidence of several logs together, for each submodel."""
    blocks = zip(*(one.evidence for one in logs), strict=True)
    return [reduce(Evidence.merge, block) for block in blocks]


def free_submodels(
    robot: Robot,
    stamps: Stamps,
    contacts: Iterable[str],
    recorded: SampleBatch,
    touches: Touches | None,
    margin: float,
    known: Collection[str] = (),
) -> Mask:
    """Return samples without unknown wrench on submodels [T 7.3], (n, n_submodels); margin [s]."""
    free = np.ones((len(stamps), len(robot.submodels)), dtype=bool)
    for frame in contacts:
        robot.frame(frame, f"'rows.contacts' names '{frame}'")
        free[:, robot.submodel_of(frame)] = False
    if touches is None:
        return free
    places = [robot.frame(name) for name in known]
    margin_ns = round(margin * 1e9)
    for number, present in enumerate(touches.sets):
        columns = {
            robot.submodel_of(contact.frame)
            for contact in present
            if not any(same_place(robot.frame(contact.frame), place) for place in places)
        }
        times = recorded.stamp_ns[touches.rows == number]
        first = np.searchsorted(times, stamps - margin_ns)
        last = np.searchsorted(times, stamps + margin_ns, side='right')
        free[np.flatnonzero(last > first)[:, None], sorted(columns)] = False
    return free
