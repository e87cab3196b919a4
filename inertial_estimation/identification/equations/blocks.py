# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Unknowns and kinds of equations of each submodel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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
    """Which equations to build, and their unknowns beside the inertial parameters."""

    wrenches: bool | tuple[str, ...] = True
    """Submodels with wrench equations, or all that the ground does not hold."""
    ground_known: bool = False
    """Whether the wrench of the ground on the fixed link is always among the external ones."""
    efforts: tuple[str, ...] = ()
    """Joints with effort equations."""
    joint: JointModel = field(default_factory=lambda: JointModel(terms=()))
    """Friction and drive inertia of these joints."""
    dead_zones: Mapping[str, float] = field(default_factory=dict)
    """Dead zones by joint where they differ from that of `joint` [rad/s or m/s]."""
    couplings: tuple[Coupling, ...] = ()
    """Drives that load two of these joints."""
    gains: tuple[str, ...] = ()
    """Joints among them whose efforts are currents with an unknown gain."""
    offsets: tuple[str, ...] = ()
    """FT sensors with unknown offsets."""
    payloads: tuple[Payload, ...] = ()
    """Rigid bodies that are there at times."""

    def require_names(self, robot: Robot) -> None:
        """Raise `NameNotFound` unless the robot has all joints, sensors and submodels."""
        chosen = self.wrenches if isinstance(self.wrenches, tuple) else ()
        for kind, names, known in (
            ('joint', (*self.efforts, *self.gains, *self.dead_zones), robot.joint_names),
            ('FT sensor', self.offsets, [sensor.name for sensor in robot.ft_sensors]),
            ('submodel', chosen, [submodel.name for submodel in robot.submodels]),
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
    """Kinds of its equations: components of a wrench, then ``effort <joint>``."""
    payloads: tuple[Payload, ...] = ()
    """Of its links."""


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
        raise ConfigError('no equations: no FT sensors, no efforts, ground wrench unknown')
    known = {extra for block in found for extra in block.unknowns.extras}
    names = [coupling.name for coupling in choice.couplings]
    for coupling in choice.couplings:
        if not set(coupling.extras()) <= known:
            raise ConfigError(f'coupling {coupling.name}: no efforts of both in one submodel')
        if names.count(coupling.name) > 1:
            raise ConfigError(f'coupling {coupling.name} is there twice')
    return found


def _block(
    robot: Robot,
    choice: EquationChoice,
    payloads: Payloads,
    submodel: Submodel,
    sides: Sequence[FreeSide],
    ground: int,
) -> Block:
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
    chosen = choice.wrenches
    held = ground in submodel.links and not choice.ground_known
    if isinstance(chosen, bool):
        return chosen and not held
    if submodel.name in chosen and held:
        raise ConfigError(
            f"no wrench equations of '{submodel.name}': the ground holds its link "
            f"'{robot.link_names[ground]}' with an unknown wrench"
        )
    return submodel.name in chosen
