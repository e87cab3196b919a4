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

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification.equations.friction import (
    Coupling,
    JointModel,
    friction_columns,
)
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.identification.equations.wrenches import (
    COMPONENTS,
    EFFORT,
    Load,
    Part,
    SparseEquations,
    fixed_at,
    sensor_loads,
    wrench_columns,
)
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.link_motions import Motion, Poses, link_motions, poses_in_parents
from inertial_estimation.model.regressor import (
    FreeSide,
    free_sides,
    joint_axis,
    poses_in_root,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.tree import Submodel
from inertial_estimation.sample import SampleBatch

SPARE_STATES = 20
"""Random states beyond the number of unknowns."""
MAX_VELOCITY = 1e3
"""Of random states [rad/s or m/s]."""


@dataclass(frozen=True)
class EquationChoice:
    """Equations to build, and their unknowns beside the inertial parameters."""

    wrenches: bool | tuple[str, ...] = True
    """Submodels with wrench equations, or all that the ground does not hold."""
    ground_known: bool = False
    """True if the wrench of the ground on the fixed link is always among the external ones."""
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
        """Raise unless the robot has all joints, sensors and submodels, and no payload's name."""
        chosen = () if isinstance(self.wrenches, bool) else self.wrenches
        sensors = [sensor.name for sensor in robot.ft_sensors]
        for kind, names, known in (
            ('joint', (*self.efforts, *self.gains, *self.dead_zones), robot.joint_names),
            ('FT sensor', self.offsets, sensors),
            ('submodel', chosen, [submodel.name for submodel in robot.submodels]),
        ):
            for name in names:
                if name not in known:
                    raise NameNotFound(kind, name, known)
        taken = [*robot.link_names, *robot.joint_names, *sensors]
        for payload in self.payloads:
            if payload.name in taken:
                raise ConfigError(f"payload '{payload.name}': the name is in use")
            taken.append(payload.name)


@dataclass(frozen=True)
class Block:
    """One submodel with its unknowns."""

    submodel: Submodel
    unknowns: Unknowns
    kinds: tuple[str, ...]
    """Kinds of its equations: components of a wrench, then ``effort <joint>``."""
    payloads: tuple[Payload, ...] = ()
    """Of its links."""


class Observed(NamedTuple):
    """Samples in the order of stamps, with the arguments of `EquationBuilder.equations`."""

    samples: SampleBatch
    external: Mapping[str, Array] | None = None
    free: Mask | None = None
    carried: Array | None = None

    def take(self, some: slice | Indices) -> Observed:
        """Return some of them."""
        external = {frame: wrench[some] for frame, wrench in (self.external or {}).items()}
        free = None if self.free is None else self.free[some]
        carried = None if self.carried is None else self.carried[some]
        return Observed(self.samples.take(some), external, free, carried)


class Equations(NamedTuple):
    """Equations ``Y x = y`` of one kind of one submodel."""

    Y: Array
    """Shape (m, n_unknowns)."""
    y: Array
    """Shape (m,) [N, Nm]."""
    left_out: int
    """Samples without one: a value is missing or unknown, or the joint in its dead zone."""


class EquationBuilder:
    """
    Builds the equations of all submodels of a robot.

    Parameters
    ----------
    robot : Robot
    choice : EquationChoice, optional
        Default: the wrenches of all submodels.
    calibration : FtCalibration, optional
        Of the FT readings. Default: readings are wrenches.

    Attributes
    ----------
    blocks : tuple of Block
        All submodels with their unknowns.

    Raises
    ------
    NameNotFound, ConfigError
        If the choice does not fit the robot, or there are no equations.

    """

    def __init__(
        self,
        robot: Robot,
        choice: EquationChoice | None = None,
        calibration: FtCalibration | None = None,
    ) -> None:
        self.robot, self.calibration = robot, calibration
        self.choice = choice = choice or EquationChoice()
        choice.require_names(robot)
        self._carriers = [
            robot.frame(payload.frame, f"payload '{payload.name}' is fixed to it")
            for payload in choice.payloads
        ]
        self._ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
        self._sides = [
            [
                (side, name)
                for side in free_sides(robot, submodel, self._ground)
                if (name := robot.joint_names[side.joint]) in choice.efforts
            ]
            for submodel in robot.submodels
        ]
        self.blocks = tuple(map(self._block, robot.submodels, self._sides))
        if not any(block.kinds for block in self.blocks):
            raise ConfigError('no equations: no FT sensors, no efforts, ground wrench unknown')
        known = {extra for block in self.blocks for extra in block.unknowns.extras}
        names = [coupling.name for coupling in choice.couplings]
        for coupling in choice.couplings:
            if not set(coupling.extras()) <= known:
                raise ConfigError(f'coupling {coupling.name}: no efforts of both in one submodel')
            if names.count(coupling.name) > 1:
                raise ConfigError(f'coupling {coupling.name} is there twice')

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
        for block, kinds in self.sparse(Observed(samples, external, free, carried)):
            n, of_block = len(block.unknowns), {}
            for kind, rows in kinds:
                system, left_out = rows.system(np.arange(n), n)
                of_block[kind] = Equations(system[:, :-1], system[:, -1], left_out)
            found.append(of_block)
        return found

    def sparse(
        self, observed: Observed
    ) -> Iterator[tuple[Block, Iterator[tuple[str, SparseEquations]]]]:
        """Yield the same submodel by submodel and kind by kind, which takes less memory."""
        samples, wrenches, choice = observed.samples, observed.external or {}, self.choice
        of_free, of_carried = ((len(samples), len(x)) for x in (self.blocks, choice.payloads))
        free = np.ones(of_free, bool) if observed.free is None else observed.free
        carried = np.zeros(of_carried) if observed.carried is None else observed.carried
        for name, array, shape in (
            ('free', free, of_free), ('carried', carried, of_carried),
            *((f"external['{key}']", one, (len(samples), 6)) for key, one in wrenches.items()),
        ):  # fmt: skip
            if array.shape != shape:
                raise ShapeError(name, shape, array.shape)
        poses = poses_in_parents(self.robot, samples.positions)
        motions = link_motions(self.robot, samples, poses)
        readings = samples.ft_readings
        if self.calibration is not None:
            readings = self.calibration.apply(readings, samples.ft_temperatures)
        contacts = [(*self.robot.frame(name), wrench) for name, wrench in wrenches.items()]
        payloads = list(zip(choice.payloads, self._carriers, carried.T, strict=True))
        for block, sides, usable in zip(self.blocks, self._sides, free.T, strict=True):
            placed = poses_in_root(self.robot, block.submodel, poses)
            loads = [
                *sensor_loads(self.robot, block.submodel, readings, poses, placed, choice.offsets),
                *(
                    Load(link, wrench_to_root(fixed_at(placed[link], L_H_C), wrench))
                    for link, L_H_C, wrench in contacts
                    if link in placed
                ),
                *(
                    payload.load(link, placed[link], motions[link], L_H_F, there)
                    for payload, (link, L_H_F), there in payloads
                    if link in placed
                ),
            ]
            yield block, self._kinds(block, sides, placed, motions, samples, loads, usable)

    def random_samples(self, seed: int = 0) -> SampleBatch:
        """Return states in which everything moves, enough to determine all that is possible."""
        unknowns = max(len(block.unknowns) for block in self.blocks)
        slowest = max(map(self._dead_zone, self.choice.efforts), default=0.0)
        fastest = min(1.0 + 10.0 * slowest, MAX_VELOCITY)
        situations = 1 + len(self.choice.payloads)
        return random_samples(self.robot, situations * (unknowns + SPARE_STATES), fastest, seed)

    @cached_property
    def bases(self) -> tuple[dict[str, BaseParameters], ...]:
        """Base parameters of each kind of equation, for each submodel."""
        with one_thread():
            return tuple(
                {kind: rows.base(_order(block)) for kind, rows in kinds}
                for block, kinds in self.sparse(self._random_states())
            )

    def base_parameters(self) -> list[BaseParameters]:
        """Return the base parameters of all equations of each submodel."""
        found = []
        for block, kinds in self.sparse(self._random_states()):
            # Of regressors and not of `bases`, which have round-off in columns that are zero.
            n = len(block.unknowns)
            information = Information.empty(n)
            for _, rows in kinds:
                system, _ = rows.system(np.arange(n), n)
                information = information.add(system[:, :-1], system[:, -1])
            found.append(BaseParameters.of_regressor(information.R, _order(block)))
        return found

    def _random_states(self) -> Observed:
        """Return random samples with no payload, then each of them, over and over."""
        samples, n = self.random_samples(), len(self.choice.payloads)
        turns = np.arange(len(samples))[:, None] % (n + 1)
        return Observed(samples, carried=(turns == 1 + np.arange(n)).astype(np.float64))

    def _dead_zone(self, joint: str) -> float:
        """Return the dead zone of a joint [rad/s or m/s]."""
        return self.choice.dead_zones.get(joint, self.choice.joint.dead_zone)

    def _block(self, submodel: Submodel, sides: Sequence[tuple[FreeSide, str]]) -> Block:
        """Return a submodel with its unknowns."""
        robot, choice, joints = self.robot, self.choice, [name for _, name in sides]
        extras = [extra for name in joints for extra in choice.joint.extras(name)]
        for coupling in choice.couplings:
            if set(coupling.joints) <= set(joints):
                extras += coupling.extras()
        extras += [Extra(name, Term.DRIVE_GAIN) for name in joints if name in choice.gains]
        chosen, held = choice.wrenches, self._ground in submodel.links and not choice.ground_known
        if not isinstance(chosen, bool) and submodel.name in chosen and held:
            raise ConfigError(
                f"no wrench equations of '{submodel.name}': the ground holds its link "
                f"'{robot.link_names[self._ground]}' with an unknown wrench"
            )
        wrenches = chosen and not held if isinstance(chosen, bool) else submodel.name in chosen
        kinds = (*(COMPONENTS if wrenches else ()), *(f'{EFFORT}{name}' for name in joints))
        carried: tuple[Payload, ...] = ()
        if kinds:
            borders = [robot.ft_sensors[s].name for s in submodel.sensors]
            extras += [
                Extra(name, k) for name in borders if name in choice.offsets for k in FT_OFFSET
            ]
            both = zip(choice.payloads, self._carriers, strict=True)
            carried = tuple(payload for payload, (link, _) in both if link in submodel.links)
        extras += [extra for payload in carried for extra in payload.extras()]
        names = tuple(robot.link_names[k] for k in submodel.links)
        return Block(submodel, Unknowns(names, tuple(extras)), kinds, carried)

    def _kinds(
        self,
        block: Block,
        sides: Sequence[tuple[FreeSide, str]],
        placed: Mapping[int, Poses],
        motions: Sequence[Motion],
        samples: SampleBatch,
        loads: Sequence[Load],
        usable: Mask,
    ) -> Iterator[tuple[str, SparseEquations]]:
        """Yield the equations of one submodel by kind."""
        if not block.kinds:
            return
        links, unknowns = block.submodel.links, block.unknowns
        wrench = wrench_columns(links, placed, motions)

        def outside(beyond: Iterable[Load], axis: Array | int) -> tuple[list[Part], Array]:
            parts, y = [], np.zeros(len(samples))
            for load in beyond:
                part, known = load.along(unknowns, axis)
                parts += part
                y += known
            return parts, y

        if COMPONENTS[0] in block.kinds:
            columns = np.arange(unknowns.n_inertial)
            for c, kind in enumerate(COMPONENTS):
                parts, y = outside(loads, c)
                yield kind, SparseEquations((Part(columns, wrench[c]), *parts), y, usable)
        for side, name in sides:
            axis = side.sign * joint_axis(placed[side.child], self.robot.links[side.child].motion)
            parts, y = outside((load for load in loads if load.link in side.links), axis)
            own, effort, moving = self._effort(unknowns, samples, name)
            inertial = _inertial_part(axis, wrench, [links.index(k) for k in side.links])
            all_parts = (inertial, *parts, *own)
            yield f'{EFFORT}{name}', SparseEquations(all_parts, y + effort, usable & moving)

    def _effort(
        self, unknowns: Unknowns, samples: SampleBatch, name: str
    ) -> tuple[list[Part], Array, Mask]:
        """Return friction and the like of a joint, its effort, and where it moves enough."""
        joints, model = self.robot.joint_names, self.choice.joint
        joint = joints.index(name)
        effort, direction = (
            None if signal is None else signal[:, joint]
            for signal in (samples.efforts, samples.directions)
        )
        effort = np.full(len(samples), np.nan) if effort is None else effort
        velocities, accelerations = samples.velocities.T, samples.accelerations.T
        columns = model.columns(velocities[joint], accelerations[joint], direction)
        parts = [Part(unknowns.columns(map(str, model.extras(name))), columns.T)]
        for one in self.choice.couplings:
            if name in one.joints:
                other = joints.index(one.joints[one.joints[0] == name])
                both = model.sign(velocities[joint] + velocities[other])
                columns = friction_columns(
                    one.terms, velocities[other], both, accelerations[other]
                )
                parts.append(Part(unknowns.columns(map(str, one.extras())), columns.T))
        if name in self.choice.gains:
            gain = unknowns.columns([f'{name}.{Term.DRIVE_GAIN.value}'])
            parts.append(Part(gain, -effort[None]))
            effort = np.zeros_like(effort)
        return parts, effort, np.abs(velocities[joint]) >= self._dead_zone(name)


def _order(block: Block) -> Indices:
    """Return the order of the columns of a block that conditions its base parameters well."""
    return conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))


def _inertial_part(axis: Array, wrench: Array, links: Sequence[int]) -> Part:
    """Return the columns of the wrenches of some links along an axis, (n, 6)."""
    chosen, n = wrench.reshape(6, -1, 10, len(axis)), len(axis)
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
