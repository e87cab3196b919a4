# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Why wrenches and torques of a replay are NaN, or rest on more than the sensors.

Each cause is followed from the sensor or joint to the results that it reaches, by the same rules
as the estimate's own `Quality`: what a failed FT sensor merges, what rests on which joint
[T Theorem 4.2]. Readings of frozen intervals count as frozen from their first repetition on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.body_motion import BodyMotion
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.dependence import JointDependence, joint_dependence
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.faults import Used, alike, working_with
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.solvers import Solvers
from inertial_estimation.logs.failures import (
    EARLY,
    STARTING,
    STATES,
    TOUCHED,
    UNTOLD,
    Codes,
    Failures,
    find_failures,
)
from inertial_estimation.logs.figures import CauseReport
from inertial_estimation.logs.reach import Reach
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.wording import describe
from inertial_estimation.sample import Array, SensorState

Mask = NDArray[np.bool_]

KINDS = ('start', 'joint', 'imu', 'ft', 'touch', 'contact', 'offset')


@dataclass
class _Entry:
    """What one cause reaches; names of contacts and joints."""

    rows: Mask
    nan_contacts: set[str] = field(default_factory=set)
    nan_torques: set[str] = field(default_factory=set)
    gave_way_to: set[str] = field(default_factory=set)
    doubtful_contacts: set[str] = field(default_factory=set)
    doubtful_torques: set[str] = field(default_factory=set)


def find_causes(replay: Replay, offset_reach: Reach) -> tuple[CauseReport, ...]:
    """
    Find why results are NaN or in doubt.

    Parameters
    ----------
    replay : Replay
        Its ``clean`` estimate is explained, over all of its samples.
    offset_reach : Reach
        What rests on assumed joints through the offset of which FT sensor, (..., n_fts).

    Returns
    -------
    tuple of CauseReport
        None if everything is measured.

    """
    return _Causes(replay).find(offset_reach)


class _Causes:
    """Collects what each cause reaches."""

    def __init__(self, replay: Replay) -> None:
        robot, settings = replay.robot, replay.settings
        self.replay, self.robot = replay, robot
        self.contacts = replay.clean.contacts[: len(settings.contacts)]
        self.defaults = ContactSet(self.contacts, (True,) * len(self.contacts))
        arrays = settings.angular_acceleration_source == 'array'
        motion = BodyMotion(robot, arrays=arrays)
        self.solvers = Solvers(robot, settings.length_scale, settings.rank_tolerance, motion)
        self.whole = self._plan((True,) * len(robot.imus), (True,) * len(robot.ft_sensors))
        self.entries: dict[tuple[str, str, int], _Entry] = {}
        self.settled: frozenset[tuple[str, str, int]] = frozenset()

    def find(self, offset_reach: Reach) -> tuple[CauseReport, ...]:
        """Go through sensors and joints, contacts, and offsets."""
        robot, recording = self.robot, self.replay.recording
        dynamics = self.whole.dynamics
        failed = find_failures(recording, robot, Used.by(self.solvers.motion, dynamics))
        start = failed.starting(recording.times, self.replay.settings.derivative_window)
        self.start = start
        for part in (np.flatnonzero(~start), np.flatnonzero(start)):
            for pattern, rows in alike(failed.sensors[part]):
                if len(rows):
                    chosen = np.isin(np.arange(len(start)), part[rows])
                    self._add_pattern(pattern, failed, chosen)
            self.settled = frozenset(self.entries)
        self._add_touches()
        self._add_undetermined()
        self._add_offsets(offset_reach)
        return self._reports()

    def _add_pattern(self, pattern: Mask, failed: Failures, chosen: Mask) -> None:
        """Add what the samples with a certain set of failed sensors tell."""
        imus_fail, fts_fail = np.split(pattern, [len(self.robot.imus)])
        plan = self._plan(tuple((~imus_fail).tolist()), tuple((~fts_fail).tolist()))
        self._add_fts(plan, fts_fail, failed.fts, chosen)
        self._add_imus(plan, imus_fail, failed.imus, chosen)
        self._add_joints(plan, failed.joints, chosen)

    def _plan(self, imus: tuple[bool, ...], fts: tuple[bool, ...]) -> Plan:
        """Return the plan for the sensors that work and all joints."""
        none = (False,) * len(self.robot.joint_names)
        motion = self.solvers.motion
        bits = tuple(b if works else 0 for b, works in zip(motion.bits, imus, strict=True))
        return self.solvers.get(working_with(motion, bits, fts, none, none), self.defaults).plan

    def _entry(self, kind: str, name: str, code: int, rows: Mask) -> _Entry:
        """
        Return what is known of a cause, for more samples now.

        While the log starts, sensors that are still to come merge submodels in many ways. That is
        one cause, and what another one reaches meanwhile is not held against it.
        """
        key = (kind, name, code)
        if self.start[rows].any() and code in EARLY and key not in self.settled:
            key = ('start', '', STARTING)
        entry = self.entries.setdefault(key, _Entry(np.zeros_like(rows)))
        entry.rows |= rows
        return _Entry(rows) if key in self.settled else entry

    def _add_joints(self, plan: Plan, codes: Codes, chosen: Mask) -> None:
        depends = self._dependence(plan)
        reported = codes == SensorState.FRESH
        for j in np.flatnonzero(~reported[chosen].all(axis=0)):
            torques = self._joints(depends.torques[:, j])
            contacts = {
                self.contacts[plan.active[c]].name
                for c, s in enumerate(plan.balance.contact_submodel)
                if depends.submodels[s, j] and self.contacts[plan.active[c]].unknowns
            }
            for code in np.unique(codes[chosen, j]):
                if code == SensorState.FRESH:
                    continue
                rows = chosen & (codes[:, j] == code)
                entry = self._entry('joint', self.robot.joint_names[j], int(code), rows)
                known = code == SensorState.ASSUMED
                (entry.doubtful_contacts if known else entry.nan_contacts).update(contacts)
                (entry.doubtful_torques if known else entry.nan_torques).update(torques)

    def _dependence(self, plan: Plan) -> JointDependence:
        unknowns = [self.contacts[c].unknowns for c in plan.active]
        return joint_dependence(self.robot, plan.dynamics.forest, plan.balance, unknowns)

    def _add_imus(self, plan: Plan, failed: Mask, codes: Codes, chosen: Mask) -> None:
        """Add failed IMUs; without any, everything that they would have served is NaN."""
        nothing = np.uint8(Quality.MISSING)
        contacts = self._named(plan.quality.contacts & nothing != 0)
        torques = self._joints(plan.quality.torques & nothing != 0)
        for k in np.flatnonzero(failed):
            for code in np.unique(codes[chosen, k]):
                rows = chosen & (codes[:, k] == code)
                entry = self._entry('imu', self.robot.imus[k].name, int(code), rows)
                entry.nan_contacts |= contacts
                entry.nan_torques |= torques

    def _add_fts(self, plan: Plan, failed: Mask, codes: Codes, chosen: Mask) -> None:
        """Add failed FT sensors, by the merged submodel that each lies in."""
        sensors = self.robot.ft_sensors
        for submodel in plan.balance.submodels:
            lost = [int(k) for k in np.flatnonzero(failed) if sensors[k].child in submodel.links]
            lost = [k for k in lost if sensors[k].child != submodel.root]
            if not lost:
                continue
            here = {c for c, k in enumerate(self._contact_links()) if k in submodel.links}
            here = {c for c in here if self.contacts[c].unknowns}
            stay = {self.contacts[c].name for c in here & set(plan.active.tolist())}
            gone = {self.contacts[c].name for c in here} - stay
            torques = self._merged_torques(plan, lost)
            for k in lost:
                for code in np.unique(codes[chosen, k]):
                    rows = chosen & (codes[:, k] == code)
                    entry = self._entry('ft', sensors[k].name, int(code), rows)
                    entry.nan_contacts |= gone
                    entry.gave_way_to |= stay if gone else set()
                    entry.doubtful_contacts |= stay
                    entry.doubtful_torques |= torques

    def _contact_links(self) -> list[int]:
        return [self.robot.frame(contact.frame)[0] for contact in self.contacts]

    def _merged_torques(self, plan: Plan, lost: list[int]) -> set[str]:
        """Return the torques that the loss of these sensors spoils."""
        works = np.ones(len(self.robot.ft_sensors), dtype=bool)
        works[lost] = False
        every_imu = (True,) * len(self.robot.imus)
        alone = plan if (plan.used_fts == works).all() else self._plan(every_imu, tuple(works))
        return self._joints(alone.quality.torques & np.uint8(Quality.MERGED) != 0)

    def _add_touches(self) -> None:
        """Add contacts that somebody felt, to which default ones gave way."""
        touches = self.replay.recording.touches
        if touches is None or not touches.rows.any():
            return
        links = self._contact_links()
        own = {k: s for s, submodel in enumerate(self.robot.submodels) for k in submodel.links}
        for number, felt in enumerate(touches.sets[1:], start=1):
            rows = touches.rows == number
            frames = {contact.frame for contact in felt}
            held = {own[self.robot.frame(contact.frame)[0]] for contact in felt}
            gone = {
                contact.name
                for contact, link in zip(self.contacts, links)
                if contact.unknowns and own[link] in held and contact.frame not in frames
            }
            if gone and rows.any():
                ordered = ', '.join(dict.fromkeys(contact.frame for contact in felt))
                entry = self._entry('touch', ordered, TOUCHED, rows)
                entry.nan_contacts |= gone

    def _add_undetermined(self) -> None:
        """Add contacts that share a submodel and are not told apart."""
        estimate, flag = self.replay.clean, np.uint8(Quality.UNDETERMINED)
        lost = estimate.contact_quality[:, : len(self.contacts)] & flag != 0
        torques = (estimate.torque_quality & flag != 0).any(axis=0)
        owner = np.array(self.whole.balance.contact_submodel, dtype=np.intp)
        for s in np.unique(owner[lost.any(axis=0)]):
            members = lost & (owner == s)
            names = self._named(members.any(axis=0))
            rows = members.any(axis=1)
            ordered = ', '.join(c.name for c in self.contacts if c.name in names)
            entry = self._entry('contact', ordered, UNTOLD, rows)
            entry.doubtful_contacts |= names
            carried = self.whole.balance.joint_contacts[:, members.any(axis=0)].any(axis=1)
            entry.doubtful_torques |= self._joints(torques & carried)

    def _add_offsets(self, reach: Reach) -> None:
        """Add offsets that rest on assumed joints."""
        always = np.ones(len(self.replay.recording.samples), dtype=bool)
        for k, sensor in enumerate(self.robot.ft_sensors):
            if not (reach.wrenches[:, k].any() or reach.torques[:, k].any()):
                continue
            entry = self._entry('offset', sensor.name, int(SensorState.ASSUMED), always)
            columns = self.replay.clean.contacts
            felt = np.flatnonzero(reach.wrenches[:, k])
            entry.doubtful_contacts |= {columns[c].name for c in felt}
            entry.doubtful_torques |= self._joints(reach.torques[:, k])

    def _named(self, flags: Mask) -> set[str]:
        return {self.contacts[c].name for c in np.flatnonzero(flags)}

    def _joints(self, flags: Mask) -> set[str]:
        return {self.robot.joint_names[j] for j in np.flatnonzero(flags)}

    def _reports(self) -> tuple[CauseReport, ...]:
        """Return the causes: by kind, in the order of the robot."""
        robot, times = self.robot, self.replay.recording.times
        contacts = [contact.name for contact in self.replay.clean.contacts]
        fts = [sensor.name for sensor in robot.ft_sensors]
        imus = [imu.name for imu in robot.imus]
        orders = {'joint': list(robot.joint_names), 'imu': imus, 'ft': fts, 'offset': fts}

        def place(key: tuple[str, str, int]) -> tuple[int, int, int]:
            kind, name, code = key
            names = orders.get(kind)
            return KINDS.index(kind), names.index(name) if names else 0, code

        return tuple(
            _report(key, self.entries[key], times, contacts, orders['joint'])
            for key in sorted(self.entries, key=place)
        )


def _report(
    key: tuple[str, str, int],
    entry: _Entry,
    times: Array,
    contacts: list[str],
    joints: list[str],
) -> CauseReport:
    kind, name, code = key
    rows = np.flatnonzero(entry.rows)
    always = len(rows) == len(times)
    return CauseReport(
        cause=describe(kind, [name], STATES[code], always=always),
        kind=kind,
        name=name,
        state=STATES[code],
        n_samples=len(rows),
        sample_share=len(rows) / len(times),
        first_s=float(times[rows[0]]),
        last_s=float(times[rows[-1]]),
        nan_contacts=_ordered(entry.nan_contacts, contacts),
        gave_way_to=_ordered(entry.gave_way_to, contacts),
        nan_torques=_ordered(entry.nan_torques, joints),
        doubtful_contacts=_ordered(entry.doubtful_contacts, contacts),
        doubtful_torques=_ordered(entry.doubtful_torques, joints),
    )


def _ordered(names: set[str], order: list[str]) -> tuple[str, ...]:
    return tuple(name for name in order if name in names)
