# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which rows of which sensors are built, and what else is unknown in them.

Submodels with the unknowns and the kinds of rows that a choice gives them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.equations.payloads import Payload, Payloads
from inertial_estimation.identification.equations.wrenches import COMPONENTS, border_sensors
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
from inertial_estimation.model.regressor import FreeSide
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel


@dataclass(frozen=True)
class EquationChoice:
    """Which rows to build, and which unknowns beside the links' parameters they have."""

    wrenches: bool | tuple[str, ...] = True
    """Rows of the sums of wrenches: of all submodels that the ground does not hold, or which."""
    ground_known: bool = False
    """
    The wrench of the ground on the fixed link is always among the external ones, so the submodel
    that it holds gives rows of wrenches too.
    """
    efforts: tuple[str, ...] = ()
    """Joints whose efforts give rows."""
    joint: JointModel = field(default_factory=lambda: JointModel(terms=()))
    """Friction and drive inertia of these joints."""
    dead_zones: Mapping[str, float] = field(default_factory=dict)
    """Of joints whose dead zone is another than that of `joint` [rad/s or m/s]."""
    couplings: tuple[Coupling, ...] = ()
    """Drives that load two of these joints."""
    gains: tuple[str, ...] = ()
    """Joints among them whose efforts are a current, to be multiplied by an unknown gain."""
    offsets: tuple[str, ...] = ()
    """FT sensors whose offset is unknown."""
    payloads: tuple[Payload, ...] = ()
    """Bodies that are there at times only."""

    def require_names(self, robot: Robot) -> None:
        """Refuse names that a robot does not have."""
        sensors = [sensor.name for sensor in robot.ft_sensors]
        submodels = [submodel.name for submodel in robot.submodels]
        chosen = self.wrenches if isinstance(self.wrenches, tuple) else ()
        joints = (*self.efforts, *self.gains, *self.dead_zones)
        for kind, names, known in (
            ('joint', joints, robot.joint_names),
            ('FT sensor', self.offsets, sensors),
            ('submodel', chosen, submodels),
        ):
            for name in names:
                if name not in known:
                    raise NameNotFound(kind, name, known)

    def model_of(self, joint: str) -> JointModel:
        """Return friction and dead zone of a joint."""
        dead_zone = self.dead_zones.get(joint, self.joint.dead_zone)
        return replace(self.joint, dead_zone=dead_zone)


@dataclass(frozen=True)
class Block:
    """One submodel with its unknowns."""

    submodel: Submodel
    unknowns: Unknowns
    kinds: tuple[str, ...]
    """Kinds of its rows: components of a wrench, then ``effort <joint>``."""
    payloads: tuple[Payload, ...] = ()
    """What its links carry at times."""


def blocks_of(
    robot: Robot,
    choice: EquationChoice,
    payloads: Payloads,
    sides: Mapping[int, Sequence[FreeSide]],
    ground: int,
) -> tuple[Block, ...]:
    """Return all submodels of a robot with their unknowns."""
    found = tuple(
        _block(robot, choice, payloads, submodel, sides[submodel.root], ground)
        for submodel in robot.submodels
    )
    if not any(block.kinds for block in found):
        raise ConfigError(
            'there is no row to build: a robot with a fixed link needs FT sensors, or joints '
            'in efforts, or the wrench of the ground'
        )
    _check_couplings(choice, found)
    return found


def _block(
    robot: Robot,
    choice: EquationChoice,
    payloads: Payloads,
    submodel: Submodel,
    sides: Sequence[FreeSide],
    ground: int,
) -> Block:
    """Return the unknowns and kinds of rows of a submodel."""
    joints = [robot.joint_names[side.joint] for side in sides]
    joints = [name for name in joints if name in choice.efforts]
    extras = [extra for name in joints for extra in choice.joint.extras(name)]
    for coupling in choice.couplings:
        if set(coupling.joints) <= set(joints):
            extras += coupling.extras()
    extras += [Extra(name, Term.DRIVE_GAIN) for name in joints if name in choice.gains]
    wrenches = _has_wrenches(robot, choice, submodel, ground)
    kinds = (*(COMPONENTS if wrenches else ()), *(f'effort {name}' for name in joints))
    if kinds:
        borders = [robot.ft_sensors[s].name for s in border_sensors(submodel)]
        extras += [
            Extra(name, term) for name in borders if name in choice.offsets for term in FT_OFFSET
        ]
    carried = payloads.on(submodel.links) if kinds else ()
    extras += [extra for payload in carried for extra in payload.extras()]
    names = tuple(robot.link_names[k] for k in submodel.links)
    return Block(submodel, Unknowns(names, tuple(extras)), kinds, carried)


def _has_wrenches(robot: Robot, choice: EquationChoice, submodel: Submodel, ground: int) -> bool:
    """Tell whether the sum of a submodel's wrenches is to give rows."""
    chosen = choice.wrenches
    held = ground in submodel.links and not choice.ground_known
    if isinstance(chosen, bool):
        return chosen and not held
    if submodel.name in chosen and held:
        raise ConfigError(
            f"wrenches of '{submodel.name}' give no rows: the ground holds its link "
            f"'{robot.link_names[ground]}' with an unknown wrench; leave it out, "
            'or say that wrench'
        )
    return submodel.name in chosen


def _check_couplings(choice: EquationChoice, blocks: Iterable[Block]) -> None:
    """Raise unless the joints of each coupling have rows in the same block."""
    known = {extra for block in blocks for extra in block.unknowns.extras}
    names = [coupling.name for coupling in choice.couplings]
    for coupling in choice.couplings:
        if not set(coupling.extras()) <= known:
            raise ConfigError(
                f'the coupling of {coupling.name} needs rows of the efforts of both joints, in '
                'the same submodel: add them to efforts, or leave it out'
            )
        if names.count(coupling.name) > 1:
            raise ConfigError(f'the coupling of {coupling.name} is there twice')
