# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where the motion of each link with IMUs comes from, said anew when sensors fail or come back."""

import numpy as np

from inertial_estimation.estimation.body_report import BodyReport, report_bodies
from inertial_estimation.estimation.faults import delivered
from inertial_estimation.estimation.link_motion import BodyMotion
from inertial_estimation.estimation.sensor_arrays import Bits
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import OK, WARN, Task
from inertial_estimation.sample import Sample, SensorState

KEPT = 16
"""Sets of working sensors that are remembered."""


class BodyWatch:
    """Tells how the IMUs of the newest sample are used [T 4.4.2, 4.4.3]."""

    def __init__(self, robot: Robot, motion: BodyMotion, source: str) -> None:
        self._robot, self._motion, self._source = robot, motion, source
        self._known: dict[Bits, tuple[BodyReport, ...]] = {}
        self._usual = {body.link: body for body in self._reports(motion.bits)}

    def tasks(self, sample: Sample) -> list[Task]:
        """Return the state of the motion of links."""
        if not self._motion.is_used:
            return []
        bodies = self._reports(tuple(delivered(sample, self._motion).tolist()))
        values: dict[str, object] = {body.link: body.text for body in bodies}
        if not bodies:
            said = 'no angular velocity, or no acceleration, or nothing that tells angular ones'
            return [Task('motion of links', WARN, said, values)]
        usual = self._usual
        partial = self._partial(sample)
        if partial:
            usual = {body.link: body for body in self._reports(self._without(sample, partial))}
        now = {body.link: body for body in bodies}
        changed = [link for link in {**self._usual, **usual} if now.get(link) != usual.get(link)]
        values |= {link: 'no sensor delivers' for link in self._usual if link not in now}
        if changed:
            said = f'without some of {", ".join(changed)}'
            return [Task('motion of links', WARN, said, values)]
        names = ', '.join(self._robot.imus[k].name for k in partial)
        said = f'by what IMUs deliver, of {names} a part' if partial else 'by all sensors in use'
        return [Task('motion of links', OK, said, values)]

    def _partial(self, sample: Sample) -> list[int]:
        """Return the IMUs of which one quantity is used; their own tasks warn of it."""
        states = sample.imu_states
        return [] if states is None else np.flatnonzero(states == SensorState.PARTIAL).tolist()

    def _without(self, sample: Sample, partial: list[int]) -> Bits:
        """Return what is delivered if nothing lacks but what these IMUs leave out."""
        bits = np.array(self._motion.bits)
        bits[partial] = delivered(sample, self._motion)[partial]
        return tuple(bits.tolist())

    def _reports(self, bits: Bits) -> tuple[BodyReport, ...]:
        """Return how sensors are used that deliver this."""
        if bits not in self._known:
            if len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            plan = self._motion.plan(bits)
            self._known[bits] = report_bodies(self._robot, plan, self._source)
        return self._known[bits]
