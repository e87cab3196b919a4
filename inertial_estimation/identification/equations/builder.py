# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Linear equations of the inertial parameters, from samples [T 7.2-7.5].

Each submodel has unknowns and equations of its own. The *kinds* of equations are kept apart, as
each has a noise of its own: six components of the sum of its wrenches, and the effort of each of
its joints.

    wrench   Y psi + offsets of its FT sensors  =  FT readings  +  known external wrenches
    effort   y psi + friction, drive inertia    =  effort  +  torque of what is outside
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.equations.payloads import Load, Payload, Payloads
from inertial_estimation.identification.equations.sparse_equations import Part, SparseEquations
from inertial_estimation.identification.equations.wrenches import (
    COMPONENTS,
    Contact,
    Push,
    border_sensors,
    contact_pushes,
    pushed,
    sensor_pushes,
    wrench_columns,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.link_motions import Motion, Poses, link_motions, poses_in_parents
from inertial_estimation.model.regressor import FreeSide, free_sides, joint_axis, poses_in_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import SampleBatch


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


Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SPARE_STATES = 20
"""Random states beyond the number of unknowns."""
MAX_VELOCITY = 1e3
"""Of random states [rad/s or m/s]."""
__all__ = ['COMPONENTS', 'Block', 'EquationBuilder', 'EquationChoice', 'Equations']


class Equations(NamedTuple):
    """Equations ``Y x = y`` of one kind of one submodel."""

    Y: Array
    """Shape (m, n_unknowns)."""
    y: Array
    """Shape (m,) [N, Nm]."""
    left_out: int
    """Samples without one: a value is missing or unknown, or the joint in its dead zone."""


class EquationBuilder:
    """Builds the equations of all submodels of a robot."""

    def __init__(
        self,
        robot: Robot,
        choice: EquationChoice | None = None,
        calibration: FtCalibration | None = None,
    ) -> None:
        self.robot = robot
        self.choice = choice = choice or EquationChoice()
        self._calibration = calibration
        choice.require_names(robot)
        self.models: Mapping[str, JointModel] = {
            name: choice.model_of(name) for name in choice.efforts
        }
        """Friction and dead zone by joint."""
        self._payloads = Payloads(robot, choice.payloads)
        ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
        self._sides = {
            submodel.root: free_sides(robot, submodel, ground) for submodel in robot.submodels
        }
        self.blocks = blocks_of(robot, choice, self._payloads, self._sides, ground)

    def set_calibration(self, calibration: FtCalibration | None) -> None:
        """Calibrate further readings by another calibration."""
        self._calibration = calibration

    def equations(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
        carried: Array | None = None,
    ) -> list[dict[str, Equations]]:
        """
        Return the equations of samples by kind, for each submodel.

        external: known wrenches by frame, (n, 6) [N, Nm]; free: where no unknown wrench acts, (n,
        n_submodels); carried: 1 where a payload is there, (n, n_payloads).
        """
        found = []
        for block, kinds in self.sparse(samples, external=external, free=free, carried=carried):
            n = len(block.unknowns)
            of_block = {}
            for kind, rows in kinds:
                system, left_out = rows.system(np.arange(n), n)
                of_block[kind] = Equations(system[:, :-1], system[:, -1], left_out)
            found.append(of_block)
        return found

    def sparse(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
        carried: Array | None = None,
    ) -> Iterator[tuple[Block, Iterator[tuple[str, SparseEquations]]]]:
        """Yield the same submodel by submodel and kind by kind, which takes less memory."""
        n = len(samples)
        if carried is None:
            carried = np.zeros((n, len(self.choice.payloads)))
        expected = {'free': (n, len(self.blocks)), 'carried': (n, len(self.choice.payloads))}
        for name, array in (('free', free), ('carried', carried)):
            if array is not None and array.shape != expected[name]:
                raise ShapeError(name, expected[name], array.shape)
        contacts = []
        for name, wrench in (external or {}).items():
            if wrench.shape != (n, 6):
                raise ShapeError(f"external['{name}']", (n, 6), wrench.shape)
            contacts.append(Contact(*self.robot.frame(name), wrench))
        poses = poses_in_parents(self.robot, samples.positions)
        motions = link_motions(self.robot, samples, poses)
        readings = samples.ft_readings
        if self._calibration is not None:
            readings = self._calibration.apply(readings, samples.ft_temperatures)
        for k, block in enumerate(self.blocks):
            submodel = block.submodel
            placed = poses_in_root(self.robot, submodel, poses)
            pushes = [
                *sensor_pushes(self.robot, submodel, readings, poses, placed, self.choice.offsets),
                *contact_pushes(submodel, contacts, placed),
            ]
            usable = np.ones(n, dtype=bool) if free is None else np.asarray(free[:, k], dtype=bool)
            loads = self._payloads.loads(placed, motions, carried)
            yield block, self._of_block(block, placed, motions, samples, pushes, loads, usable)

    def random_samples(self, seed: int = 0) -> SampleBatch:
        """Return states in which everything moves, enough to determine all that is possible."""
        unknowns = max(len(block.unknowns) for block in self.blocks)
        slowest = max([model.dead_zone for model in self.models.values()], default=0.0)
        fastest = min(1.0 + 10.0 * slowest, MAX_VELOCITY)
        situations = 1 + len(self.choice.payloads)
        return random_samples(self.robot, situations * (unknowns + SPARE_STATES), fastest, seed)

    def in_turn(self, samples: SampleBatch) -> Array:
        """Return `carried` with none, then each of the payloads, over and over."""
        return self._payloads.in_turn(len(samples))

    @cached_property
    def bases(self) -> tuple[dict[str, BaseParameters], ...]:
        """Base parameters of each kind of equation, for each submodel."""
        found = []
        with one_thread():
            samples = self.random_samples()
            for block, kinds in self.sparse(samples, carried=self.in_turn(samples)):
                order = conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
                found.append({kind: rows.base(order) for kind, rows in kinds})
        return tuple(found)

    def _of_block(
        self,
        block: Block,
        placed: Mapping[int, Poses],
        motions: Sequence[Motion],
        samples: SampleBatch,
        pushes: Sequence[Push],
        loads: Sequence[Load],
        usable: Mask,
    ) -> Iterator[tuple[str, SparseEquations]]:
        """Yield the equations of one submodel by kind."""
        if not block.kinds:
            return
        links, unknowns, n = block.submodel.links, block.unknowns, len(samples)
        wrench = wrench_columns(links, placed, motions)

        def outside(
            axis: Array | int, beyond: Sequence[Push], carried: Sequence[Load]
        ) -> tuple[list[Part], Array]:
            parts, y = pushed(unknowns, beyond, n, axis)
            for load in carried:
                part, known = load.part(unknowns, axis)
                parts.append(part)
                y -= known
            return parts, y

        if COMPONENTS[0] in block.kinds:
            columns = np.arange(unknowns.n_inertial)
            for c, kind in enumerate(COMPONENTS):
                parts, y = outside(c, pushes, loads)
                yield kind, SparseEquations((Part(columns, wrench[c]), *parts), y, usable)
        for side in self._sides[block.submodel.root]:
            name = self.robot.joint_names[side.joint]
            if f'effort {name}' not in block.kinds:
                continue
            axis = side.sign * joint_axis(placed[side.child], self.robot.links[side.child].motion)
            parts, y = outside(
                axis,
                [push for push in pushes if push.link in side.links],
                [load for load in loads if load.link in side.links],
            )
            of_effort, effort, moving = self._effort(unknowns, samples, name)
            inertial = _inertial_part(axis, wrench, [links.index(k) for k in side.links])
            yield (
                f'effort {name}',
                SparseEquations((inertial, *parts, *of_effort), y + effort, usable & moving),
            )

    def _effort(
        self, unknowns: Unknowns, samples: SampleBatch, name: str
    ) -> tuple[list[Part], Array, Mask]:
        """Return friction and the like of a joint, its effort, and where it moves enough."""
        joints, model = self.robot.joint_names, self.models[name]
        joint = joints.index(name)
        efforts = np.full(len(samples), np.nan)
        if samples.efforts is not None:
            efforts = samples.efforts[:, joint]
        velocities, accelerations = samples.velocities, samples.accelerations
        directions = None if samples.directions is None else samples.directions[:, joint]
        own = model.columns(velocities[:, joint], accelerations[:, joint], directions)
        parts = [Part(unknowns.columns(map(str, model.extras(name))), own.T)]
        for coupling in self.choice.couplings:
            if name in coupling.joints:
                other = joints.index(coupling.other(name))
                shared = coupling.columns(
                    velocities[:, joint], velocities[:, other], accelerations[:, other], model
                )
                parts.append(Part(unknowns.columns(map(str, coupling.extras())), shared.T))
        if name in self.choice.gains:
            gain = unknowns.columns([f'{name}.{Term.DRIVE_GAIN.value}'])
            parts.append(Part(gain, -efforts[None]))
            efforts = np.zeros_like(efforts)
        return parts, efforts, model.moving(velocities[:, joint])


def _inertial_part(axis: Array, wrench: Array, links: Sequence[int]) -> Part:
    """Return the columns of the wrenches of some links along an axis, (n, 6)."""
    n = len(axis)
    chosen = wrench.reshape(6, -1, 10, n)
    transposed = np.ascontiguousarray(axis.T)
    values = np.stack([np.einsum('in,ikn->kn', transposed, chosen[:, k]) for k in links])
    columns = (10 * np.array(links)[:, None] + np.arange(10)).reshape(-1)
    return Part(columns.astype(np.intp), values.reshape(-1, n))


def random_samples(robot: Robot, n: int, fastest: float = 1.0, seed: int = 0) -> SampleBatch:
    """Return states in which everything moves, up to a velocity [rad/s or m/s]."""
    rng = np.random.default_rng(seed)
    joints, imus = len(robot.joint_names), len(robot.imus)
    return SampleBatch(
        stamp_ns=np.arange(n, dtype=np.int64),
        positions=rng.normal(size=(n, joints)),
        velocities=rng.uniform(-fastest, fastest, (n, joints)),
        accelerations=rng.normal(size=(n, joints)),
        angular_velocities=rng.normal(size=(n, imus, 3)),
        proper_accelerations=10.0 * rng.normal(size=(n, imus, 3)),
        angular_accelerations=rng.normal(size=(n, imus, 3)),
        ft_readings=rng.normal(size=(n, len(robot.ft_sensors), 6)),
        efforts=rng.normal(size=(n, joints)),
        ft_temperatures=np.zeros((n, len(robot.ft_sensors))),
    )
