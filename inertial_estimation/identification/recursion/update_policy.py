# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a refit of a robot that is identified while it works has found.

Whether the bodies that were found of a submodel are better than those of the description.

What of a refit is told: bodies that rows tell enough of, and the offsets that go with them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.determined import in_words
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.recursion.joint_refit import Bodies, JointRefit
from inertial_estimation.identification.recursion.memory import (
    Excitation,
    SubmodelMemory,
    excitation,
)
from inertial_estimation.identification.recursion.offsets import (
    FollowedOffsets,
    Proposal,
    fitted_offsets,
    offset_deviations,
)
from inertial_estimation.identification.recursion.parameter_roots import parameter_roots
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.submodel_identifier import SubmodelIdentifier
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

OFFSET_TOLD = np.repeat([2.0, 0.2], 3)
"""Standard deviation up to which an offset is told [N, Nm]."""


def told_up_to(column: str) -> float:
    """Return the standard deviation up to which the column of an offset is told."""
    return float(OFFSET_TOLD[COMPONENTS.index(column.rpartition('.')[2])])


@dataclass(frozen=True, eq=False)
class Refit:
    """What is known of a robot at one time."""

    stamp_ns: int
    """Of the last sample that went in."""
    parameters: Array
    """Inertial parameters of all links, shape (n_links, 10); strictly consistent."""
    offsets: Mapping[str, Array]
    """
    Of FT sensors, shape (6,) each, [force; torque]: those that fit the rows best beside these
    parameters [N, Nm].
    """
    subtracted: Mapping[str, Array]
    """
    What of them is to be subtracted by who sees contacts, shape (6,) each [N, Nm]: it comes with
    bodies and follows the rest as slowly as sensors drift (`FollowedOffsets`). NaN where nothing
    has told it yet.
    """
    offset_deviations: Mapping[str, Array]
    """
    Their standard deviations, shape (6,) each [N, Nm]; errors that all rows share are not in them.
    Beyond `OFFSET_TOLD` nothing tells the offset: it is near zero because nothing speaks for
    another one.
    """
    refitted: tuple[str, ...]
    """Submodels whose links are what rows tell; those of the others are the prior."""
    excitation: Mapping[str, Excitation]
    """What the rows of each submodel tell."""
    reasons: Mapping[str, str]
    """Why a submodel was not refitted, by its name."""
    before: Mapping[str, Mapping[str, float]]
    """
    Root mean square of what the description, with all but its bodies fitted, left of the newest
    rows before these were worked in, by submodel and kind [N, Nm].
    """
    after: Mapping[str, Mapping[str, float]]
    """The same of what had been found then."""
    least_margin: float
    """Smallest eigenvalue of a link's pseudo-inertia."""
    parameter_roots: Array
    """
    How sure the parameters are, shape (n_links, 10, r): the rows of the links of a submodel are a
    root F of the covariance F F' of their parameters. Zero for submodels that were not refitted.
    """

    @property
    def told_offsets(self) -> dict[str, Array]:
        """Offsets as of `offsets`, NaN where nothing tells them [N, Nm]."""
        return {
            name: np.where(self.offset_deviations[name] <= OFFSET_TOLD, offset, np.nan)
            for name, offset in self.offsets.items()
        }


WORSE = 2.0
"""
What was found may leave of new rows so many times what the description does [rms], in the middle
of the newest stretches: what moves for the first time tells offsets anew, and is soon over.
"""
WORSE_IN_USE = 1.5
"""
The same without offsets that nothing tells, which nobody subtracts: true ones, left in, may hide
what bodies gain.
"""


def why_not(one: SubmodelIdentifier, seen: Excitation, excited: int) -> str:
    """Say why bodies are not told, whatever is subtracted beside them."""
    if seen.told < excited:
        return (
            f'rows tell {seen.told} combinations of parameters better than the '
            f'description does, {excited} are asked for: move it more; '
            "a smaller 'prior_weight' lets rows tell more beside the description"
        )
    if (worse := one.times_worse) > WORSE:
        return (
            f'what was found leaves {worse:.1f} times as much of new rows as the '
            'description does: something acts on it that nobody reports, or its rows do '
            'not say what they should'
        )
    return ''


def why_not_in_use(one: SubmodelIdentifier, x: Array, subtracted: Mapping[str, float]) -> str:
    """
    Say why bodies are not told, as they would be used.

    x (n_unknowns,); subtracted [N, Nm].
    """
    if (worse := one.times_worse_in_use(x, subtracted)) > WORSE_IN_USE:
        return (
            'without offsets that nothing tells, as it would be used, it leaves '
            f'{worse:.1f} times as much of new rows as the description does: weight and '
            'offset are not told apart; tilt it more, or, if sensors have no offset, set '
            "'ft_offsets: false'"
        )
    return ''


Indices = NDArray[np.intp]

SECOND_NS = 1e9


class UpdatePolicy:
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
        ready: Sequence[SubmodelMemory],
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
