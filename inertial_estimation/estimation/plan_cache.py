# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Steps for the sensors that work and the contacts there are, made once and kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from inertial_estimation.estimation.balance import Balance, build_balance
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.faults import Qualities, Working, find_qualities, working_with
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.plan import Plan, build_plan
from inertial_estimation.estimation.sensor_arrays import with_ways
from inertial_estimation.estimation.step import Step
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel, decompose

K = TypeVar('K')
V = TypeVar('V')

STEPS_KEPT = 64
"""They are small; more than this means contacts that never come back."""
DYNAMICS_KEPT = 3
"""Each holds Pinocchio's workspace, tens of megabytes for a humanoid."""


@dataclass(frozen=True, eq=False)
class Topology:
    """The part of a plan that does not depend on points and directions of contacts."""

    dynamics: Dynamics
    balance: Balance
    active: tuple[int, ...]
    quality: Qualities


class PlanCache:
    """The steps of one robot."""

    def __init__(
        self,
        robot: Robot,
        length_scale: float,
        rank_tolerance: float,
        motion: LinkMotions | None = None,
    ) -> None:
        self._robot = robot
        self.motion = motion or LinkMotions(robot)
        self._length_scale = length_scale
        self._rank_tolerance = rank_tolerance
        self._dynamics: dict[tuple[int, ...], Dynamics] = {}
        self._topologies: dict[Hashable, Topology] = {}
        self._steps: dict[Hashable, Step] = {}
        self._faultless: dict[Hashable, Step] = {}

    def set_robot(self, robot: Robot) -> None:
        """Go on with other inertial parameters; models get them when they are used again."""
        self._robot = robot

    def faultless(self, assumed: bytes, contacts: ContactSet) -> Step:
        """Return the step for samples in which every sensor works."""
        key = (assumed, contacts.at_origin)
        step = self._faultless.get(key)
        if step is None:
            working = working_with(
                self.motion,
                self.motion.bits,
                fts=(True,) * len(self._robot.ft_sensors),
                missing_joints=(False,) * len(assumed),
                assumed_joints=[flag != 0 for flag in assumed],
            )
            step = self.get(working, contacts)
            _keep(self._faultless, key, step, STEPS_KEPT)
        step.plan.dynamics.use(self._robot.parameters)
        step.place(contacts.contacts)
        return step

    def get(self, working: Working, contacts: ContactSet) -> Step:
        """Return the step for the sensors that work."""
        key = (working, contacts.at_origin)
        step = self._steps.get(key)
        if step is None:
            new = Step(self._plan(working, contacts.at_origin), self._rank_tolerance)
            step = _keep(self._steps, key, new, STEPS_KEPT)
        step.plan.dynamics.use(self._robot.parameters)
        step.place(contacts.contacts)
        return step

    def _plan(self, working: Working, contacts: ContactSet) -> Plan:
        given = contacts.contacts
        links = tuple(self._robot.frame(contact.frame)[0] for contact in given)
        unknowns = tuple(contact.unknowns for contact in given)
        key = (working, links, unknowns, contacts.assumed)
        topology = self._topologies.get(key)
        if topology is None:
            new = self._topology(working, contacts, links)
            topology = _keep(self._topologies, key, new, STEPS_KEPT)
        return build_plan(
            self._robot,
            topology.dynamics,
            topology.balance,
            topology.quality,
            given,
            topology.active,
            working,
            self._length_scale,
        )

    def _topology(self, working: Working, contacts: ContactSet, links: Sequence[int]) -> Topology:
        robot = self._robot
        used = [k for k, works in enumerate(working.fts) if works]
        submodels = decompose(robot.links, robot.ft_sensors, used)
        active = _trusted(robot, submodels, contacts, links)
        dynamics = self._dynamics_for([k for k, works in enumerate(working.imus) if works])
        active_links = [links[c] for c in active]
        balance = build_balance(robot, dynamics.forest, submodels, used, active_links)
        ways = working.motion.layout.ways if working.motion else {}
        forest = with_ways(dynamics.forest, ways)
        quality = find_qualities(robot, forest, balance, contacts.contacts, active, working)
        return Topology(dynamics, balance, tuple(active), quality)

    def _dynamics_for(self, imus: list[int]) -> Dynamics:
        """Return the models for the working IMUs, new or kept."""
        serving, _ = self._robot.motion_sources(imus or range(len(self._robot.imus)))
        key = tuple(int(k) for k in serving)
        dynamics = self._dynamics.get(key)
        if dynamics is None:
            if len(self._dynamics) >= DYNAMICS_KEPT:
                self._forget(list(self._dynamics)[1])
            dynamics = self._dynamics[key] = Dynamics(self._robot, key)
        return dynamics

    def _forget(self, imus: tuple[int, ...]) -> None:
        """Let go of models and of all that holds them; the first ones, without fault, stay."""
        gone = self._dynamics.pop(imus)
        for key in [k for k, topology in self._topologies.items() if topology.dynamics is gone]:
            del self._topologies[key]
        for steps in (self._steps, self._faultless):
            for key in [k for k, step in steps.items() if step.plan.dynamics is gone]:
                del steps[key]


def _trusted(
    robot: Robot, submodels: Sequence[Submodel], contacts: ContactSet, links: Sequence[int]
) -> list[int]:
    """Return the contacts that stay: reported ones, and the assumed ones of other submodels."""
    own = {k: s for s, submodel in enumerate(robot.submodels) for k in submodel.links}
    merged = {k: s for s, submodel in enumerate(submodels) for k in submodel.links}
    first: dict[int, int] = {}
    reported = set()
    for contact, assumed, k in zip(contacts.contacts, contacts.assumed, links, strict=True):
        if contact.unknowns and assumed:
            first.setdefault(merged[k], own[k])
        elif contact.unknowns:
            reported.add(merged[k])
    stays = []
    for c, (contact, k) in enumerate(zip(contacts.contacts, links, strict=True)):
        gives_way = contact.unknowns and contacts.assumed[c]
        if not gives_way or (merged[k] not in reported and first[merged[k]] == own[k]):
            stays.append(c)
    return stays


def _keep(store: dict[K, V], key: K, value: V, limit: int) -> V:
    """Store a value, forgetting the oldest one when there are too many."""
    if len(store) >= limit:
        del store[next(iter(store))]
    store[key] = value
    return value
