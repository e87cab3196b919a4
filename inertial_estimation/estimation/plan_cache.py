# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Plans for the sensors that work and the contacts there are, made once and kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np

from inertial_estimation.estimation.balance import build_balance
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.faults import Faults, find_qualities
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.plan import build_plan
from inertial_estimation.estimation.step import Step
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel, decompose

STEPS_KEPT = 64
"""They are small; more than this means contacts that never come back."""
DYNAMICS_KEPT = 3
"""Each holds Pinocchio's workspace, tens of megabytes for a humanoid."""


class PlanCache:
    """Steps for the sensors that work and the contacts there are, made once and kept."""

    def __init__(
        self, robot: Robot, length_scale: float, rank_tolerance: float, motion: LinkMotions
    ) -> None:
        self.robot = robot
        """Its inertial parameters may be replaced; models get them when they are used again."""
        self._motion = motion
        self._length_scale, self._rank_tolerance = length_scale, rank_tolerance
        self._dynamics: dict[tuple[int, ...], Dynamics] = {}
        self._steps: dict[Hashable, Step] = {}

    def faultless(self, assumed: bytes, contacts: ContactSet) -> Step:
        """Return the step for samples in which every sensor works."""
        key = (assumed, contacts.at_origin)
        step = self._steps.get(key)
        if step is None:
            flags, n_fts = np.frombuffer(assumed, dtype=bool), len(self.robot.ft_sensors)
            step = self._keep(key, self.get(Faults.none(flags, n_fts, self._motion), contacts))
        return self._placed(step, contacts)

    def get(self, faults: Faults, contacts: ContactSet) -> Step:
        """Return the step for the sensors that work."""
        key = (np.concatenate(faults).tobytes(), contacts.at_origin)
        step = self._steps.get(key)
        if step is None:
            step = self._keep(key, self._build(faults, contacts.at_origin))
        return self._placed(step, contacts)

    def _placed(self, step: Step, contacts: ContactSet) -> Step:
        step.plan.dynamics.use(self.robot.parameters)
        step.place(contacts.contacts)
        return step

    def _keep(self, key: Hashable, step: Step) -> Step:
        """Store a step, forgetting the oldest one when there are too many."""
        if len(self._steps) >= STEPS_KEPT:
            del self._steps[next(iter(self._steps))]
        self._steps[key] = step
        return step

    def _build(self, faults: Faults, contacts: ContactSet) -> Step:
        robot, given, motion = self.robot, contacts.contacts, self._motion.plan(faults.bits)
        links = [robot.frame(contact.frame)[0] for contact in given]
        used = np.flatnonzero(~faults.fts).tolist()
        submodels = decompose(robot.links, robot.ft_sensors, used)
        active = _trusted(robot, submodels, contacts, links)
        dynamics = self._dynamics_for(np.flatnonzero(motion.serving).tolist())
        active_links = [links[c] for c in active]
        balance = build_balance(robot, dynamics.forest, submodels, used, active_links)
        forest = motion.reaching(dynamics.forest)
        quality = find_qualities(robot, forest, balance, given, active, faults, motion)
        plan = build_plan(
            robot, dynamics, balance, quality, given, active, faults, motion, self._length_scale
        )
        return Step(plan, self._rank_tolerance)

    def _dynamics_for(self, imus: list[int]) -> Dynamics:
        """Return the models for the working IMUs; the first ones, without fault, are kept."""
        serving, _ = self.robot.motion_sources(imus or range(len(self.robot.imus)))
        key = tuple(serving.tolist())
        if key not in self._dynamics:
            if len(self._dynamics) >= DYNAMICS_KEPT:
                gone = self._dynamics.pop(list(self._dynamics)[1])
                steps = self._steps.items()
                self._steps = {k: step for k, step in steps if step.plan.dynamics is not gone}
            self._dynamics[key] = Dynamics(self.robot, key)
        return self._dynamics[key]


def _trusted(
    robot: Robot, submodels: Sequence[Submodel], contacts: ContactSet, links: Sequence[int]
) -> list[int]:
    """
    Return the contacts that stay: reported ones, and the assumed ones of other submodels.

    Where submodels merge the first assumed contact stays, and others beside it that only push,
    if it does too: that both feet stand is more than the sensors tell.
    """
    own = {k: s for s, submodel in enumerate(robot.submodels) for k in submodel.links}
    merged = {k: s for s, submodel in enumerate(submodels) for k in submodel.links}
    first: dict[int, tuple[int, bool]] = {}
    reported = set()
    for contact, assumed, k in zip(contacts.contacts, contacts.assumed, links, strict=True):
        if contact.unknowns and assumed:
            first.setdefault(merged[k], (own[k], bool(contact.kind.limits)))
        elif contact.unknowns:
            reported.add(merged[k])
    stays = []
    for c, (contact, k) in enumerate(zip(contacts.contacts, links, strict=True)):
        gives_way = contact.unknowns and contacts.assumed[c]
        if not gives_way:
            stays.append(c)
        elif merged[k] not in reported:
            nearest, pushes = first[merged[k]]
            if nearest == own[k] or (pushes and contact.kind.limits):
                stays.append(c)
    return stays
