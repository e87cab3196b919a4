# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What of a refit is told: bodies that rows tell enough of, and the offsets that go with them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.determined import in_words
from inertial_estimation.identification.recursion.excitation import excitation
from inertial_estimation.identification.recursion.followed_offsets import (
    FollowedOffsets,
    Proposal,
)
from inertial_estimation.identification.recursion.joint_refit import Bodies, JointRefit
from inertial_estimation.identification.recursion.knowledge import Knowledge
from inertial_estimation.identification.recursion.offsets_in_use import (
    fitted_offsets,
    offset_deviations,
)
from inertial_estimation.identification.recursion.parameter_roots import parameter_roots
from inertial_estimation.identification.recursion.refit import Refit, told_up_to
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.submodel_identifier import SubmodelIdentifier
from inertial_estimation.identification.recursion.told_bodies import why_not, why_not_in_use
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Indices = NDArray[np.intp]

SECOND_NS = 1e9


class Telling:
    """
    Makes of what was fitted what others may rely on, and remembers what they use.

    prior (n_links, 10).
    """

    def __init__(self, robot: Robot, prior: Array, settings: RecursionSettings) -> None:
        self._robot, self._prior, self._settings = robot, prior, settings
        self.followed = FollowedOffsets(settings.force_drift, settings.moment_drift)
        self._used: dict[str, Array] = {}
        self._used_ns = 0

    def refit(
        self,
        found: JointRefit,
        submodels: Sequence[SubmodelIdentifier],
        stamp_ns: int,
        assumed: Indices,
    ) -> Refit:
        """Return what is told of a refit; submodels that rows do not tell enough of stay."""
        since = (stamp_ns - self._used_ns) / SECOND_NS if self._used_ns else 0.0
        own = {one.name: one for one in submodels}
        named = {one.knowledge.block.submodel.name: one for one in found.bodies}
        ready = [bodies.knowledge for bodies in found.bodies]
        deviations = offset_deviations(ready, tuple(found.offsets))
        told = [name for name, deviation in deviations.items() if deviation <= told_up_to(name)]
        seen, reasons = {}, self._waiting(submodels, assumed)
        for name, bodies in named.items():
            seen[name] = excitation(bodies.knowledge, self._settings.weight)
            bodies.knowledge.learned |= seen[name].told >= self._settings.excited
            if reason := why_not(own[name], seen[name], self._settings.excited):
                reasons[name] = reason
        _, subtracted = self._offsets(ready, _used(named, reasons), told, since)
        for name in named.keys() - reasons.keys():
            if reason := why_not_in_use(own[name], named[name].x, subtracted.values):
                reasons[name] = reason
        refitted = tuple(name for name in named if name not in reasons)
        used = _used(named, reasons)
        offsets, subtracted = self._offsets(ready, used, told, since)
        self.followed.take(subtracted, told, since)
        self._used, self._used_ns = used, stamp_ns
        # Who takes them over asks for bodies, which a description need not have everywhere.
        parameters = self._prior.copy()
        for name in refitted:
            parameters[list(named[name].knowledge.block.submodel.links)] = named[name].parameters
        return Refit(
            stamp_ns,
            parameters,
            _by_sensor(offsets),
            _by_sensor({name: subtracted.values.get(name, np.nan) for name in offsets}),
            _by_sensor(deviations),
            refitted,
            seen,
            reasons,
            {one.name: one.errors.described for one in submodels if one.errors},
            {one.name: one.errors.found for one in submodels if one.errors},
            float(consistency_margin(parameters).min()),
            self._roots(found, refitted),
        )

    def _waiting(
        self, submodels: Sequence[SubmodelIdentifier], assumed: Indices
    ) -> dict[str, str]:
        """Return why submodels have no rows in units of their noise."""
        reasons = {}
        for one in (each.known for each in submodels):
            name = one.block.submodel.name
            if not one.block.kinds:
                reasons[name] = 'gives no rows: an unknown wrench holds it'
            elif not one.seconds and len(assumed):
                joints = in_words([self._robot.joint_names[k] for k in assumed])
                reasons[name] = f'no rows yet; what rests on assumed joints gives none: {joints}'
            elif one.information is None:
                reasons[name] = f'{one.seconds:.1f} s with rows, too few to tell their noise'
        return reasons

    def _offsets(
        self,
        ready: Sequence[Knowledge],
        bodies: Mapping[str, Array],
        told: Collection[str],
        since: float,
    ) -> tuple[dict[str, float], Proposal]:
        """Return offsets that fit bodies, and what is to be subtracted beside these."""
        before = {
            one.block.submodel.name: self._used.get(one.block.submodel.name, one.prior)
            for one in ready
        }
        found, beside = fitted_offsets(ready, bodies), fitted_offsets(ready, before)
        return found, self.followed.proposed(found, beside, told, since)

    def _roots(self, found: JointRefit, refitted: Sequence[str]) -> Array:
        """Return how sure the parameters of all links are, shape (n_links, 10, r)."""
        roots = parameter_roots(found, self._settings.weight)
        size = max((roots[name].shape[1] for name in refitted), default=0)
        placed = np.zeros((len(self._robot.links), 10, size))
        for submodel in self._robot.submodels:
            if submodel.name in refitted:
                root = roots[submodel.name]
                own = root.reshape(-1, 10, root.shape[1])
                placed[list(submodel.links), :, : root.shape[1]] = own
        return placed


def _used(named: Mapping[str, Bodies], reasons: Collection[str]) -> dict[str, Array]:
    """Return the bodies of submodels; of those that are not told the description is used."""
    return {
        name: one.knowledge.prior if name in reasons else one.parameters
        for name, one in named.items()
    }


def _by_sensor(offsets: Mapping[str, float]) -> dict[str, Array]:
    """Return offsets of sensors from those of columns."""
    sensors = dict.fromkeys(name.rpartition('.')[0] for name in offsets)
    return {
        sensor: np.array([offsets[f'{sensor}.{part}'] for part in COMPONENTS])
        for sensor in sensors
    }
