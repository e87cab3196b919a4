# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Why wrenches and torques of a replay are NaN, or rest on more than the sensors.

Each cause is followed from the sensor or joint to the results that it reaches, by the same rules
as the estimate's own `Quality`: what a failed FT sensor merges, what rests on which joint
[T Theorem 4.2]. Readings of frozen intervals count as frozen from their first repetition on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.bodies import Bits, with_ways
from inertial_estimation.estimation.body_motion import BodyMotion
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.dependence import JointDependence, joint_dependence
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.faults import Used, alike, working_with
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.solvers import Solvers
from inertial_estimation.logs.cause_entries import Entry, Key, cause_reports
from inertial_estimation.logs.failures import (
    EARLY,
    STARTING,
    TOUCHED,
    UNTOLD,
    Codes,
    Failures,
    find_failures,
)
from inertial_estimation.logs.figures import CauseReport
from inertial_estimation.logs.reach import Reach
from inertial_estimation.logs.replay import Replay
from inertial_estimation.sample import SensorState

Mask = NDArray[np.bool_]

WELL = np.uint8(SensorState.FRESH)


def find_causes(replay: Replay, offset_reach: Reach) -> tuple[CauseReport, ...]:
    """Find why results are NaN or in doubt."""
    return _Causes(replay).find(offset_reach)


class _Causes:
    """Collects what each cause reaches."""

    def __init__(self, replay: Replay) -> None:
        robot, settings = replay.robot, replay.settings
        self.replay, self.robot = replay, robot
        self.contacts = replay.clean.contacts[: len(settings.contacts)]
        self.defaults = ContactSet(self.contacts, (True,) * len(self.contacts))
        arrays = settings.angular_acceleration_source == 'array'
        self.motion = motion = BodyMotion(robot, arrays=arrays)
        self.solvers = Solvers(robot, settings.length_scale, settings.rank_tolerance, motion)
        self.whole = self._plan(motion.bits, (True,) * len(robot.ft_sensors))
        self.entries: dict[Key, Entry] = {}
        self.settled: frozenset[Key] = frozenset()

    def find(self, offset_reach: Reach) -> tuple[CauseReport, ...]:
        """Go through sensors and joints, contacts, and offsets."""
        robot, recording = self.robot, self.replay.recording
        dynamics = self.whole.dynamics
        failed = find_failures(recording, robot, Used.by(self.motion, dynamics))
        start = failed.starting(recording.times, self.replay.settings.derivative_window)
        self.start = start
        for part in (np.flatnonzero(~start), np.flatnonzero(start)):
            for _, rows in alike(failed.patterns[part]):
                if len(rows):
                    self._add_pattern(failed, np.isin(np.arange(len(start)), part[rows]))
            self.settled = frozenset(self.entries)
        self._add_touches()
        self._add_undetermined()
        self._add_offsets(offset_reach)
        return cause_reports(self.entries, self.replay)

    def _add_pattern(self, failed: Failures, chosen: Mask) -> None:
        """Add what samples tell in which the same sensors failed."""
        first = int(np.argmax(chosen))
        imus_fail, fts_fail = failed.imus[first] != WELL, failed.fts[first] != WELL
        bits = tuple(failed.delivered[first].tolist())
        plan = self._plan(bits, tuple((~fts_fail).tolist()))
        self._add_fts(plan, fts_fail, failed.fts, chosen)
        self._add_imus(plan, imus_fail, failed.imus, chosen)
        self._add_joints(plan, failed.joints, chosen)

    def _plan(self, bits: Bits, fts: tuple[bool, ...]) -> Plan:
        """Return the plan for what IMUs deliver, the FT sensors that work and all joints."""
        none = (False,) * len(self.robot.joint_names)
        return self.solvers.get(
            working_with(self.motion, bits, fts, none, none), self.defaults
        ).plan

    def _entry(self, kind: str, name: str, code: int, rows: Mask) -> Entry:
        """Return what is known of a cause, for more samples now."""
        key = (kind, name, code)
        if self.start[rows].any() and code in EARLY and key not in self.settled:
            key = ('start', '', STARTING)
        entry = self.entries.setdefault(key, Entry(np.zeros_like(rows)))
        entry.rows |= rows
        return Entry(rows) if key in self.settled else entry

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
        ways = plan.motion.layout.ways if plan.motion else {}
        forest = with_ways(plan.dynamics.forest, ways)
        return joint_dependence(self.robot, forest, plan.balance, unknowns)

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
        all_else = self.motion.bits, tuple(works)
        alone = plan if (plan.used_fts == works).all() else self._plan(*all_else)
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
