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
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
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
from inertial_estimation.identification.unknowns import (
    FT_OFFSET,
    OF_A_COUPLING,
    Extra,
    Term,
    Unknowns,
)
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.link_motions import (
    Motion,
    Poses,
    link_motions,
    poses_in_parents,
    poses_in_root,
)
from inertial_estimation.model.regressor import FreeSide, free_sides, joint_axis, wrench_to_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.tree import Submodel
from inertial_estimation.sample import SampleBatch

SPARE_STATES = 20
"""Random states beyond the number of unknowns."""
MAX_VELOCITY = 1e3
"""Of random states [rad/s or m/s]."""


@dataclass(frozen=True)
class EquationChoice:
    """
    Equations to build, and their unknowns beside the inertial parameters.

    The torque that a joint exerts on its links is

        effort - viscous q' - coulomb sign(q') - offset - drive_inertia q''            [S 27]

    A coupled drive turns with the sum of two joint velocities and loads both joints alike: viscous
    times the velocity of the *other* joint, drive_inertia times its acceleration, and coulomb
    times the sign of the sum. The shares of the joint's own velocity are in its own terms.
    """

    wrenches: bool = True
    """Wrench equations of all submodels that the ground does not hold."""
    ground_known: bool = False
    """True if the wrench of the ground on the fixed link is always among the external ones."""
    efforts: tuple[str, ...] = ()
    """Joints with effort equations."""
    friction: tuple[Term, ...] = ()
    """Unknown terms of these joints among `OF_A_JOINT`; the others are zero."""
    sign_width: float = 0.0
    """Width of a smooth sign, tanh(q' / width) [rad/s or m/s]; 0 for the sign itself."""
    dead_zones: Mapping[str, float] = field(default_factory=dict)
    """Velocities below which joints have no equations, because of stiction [rad/s or m/s]."""
    couplings: tuple[tuple[str, str], ...] = ()
    """Joints that share a coupled drive, whose terms are `OF_A_COUPLING`."""
    gains: tuple[str, ...] = ()
    """Joints among them whose efforts are currents with an unknown gain."""
    offsets: tuple[str, ...] = ()
    """FT sensors with unknown offsets."""
    payloads: tuple[Payload, ...] = ()
    """Rigid bodies attached during some samples."""

    def require_names(self, robot: Robot) -> None:
        """Raise unless the robot has all joints and sensors, and no payload's name."""
        sensors = [sensor.name for sensor in robot.ft_sensors]
        for kind, names, known in (
            ('joint', (*self.efforts, *self.gains, *self.dead_zones), robot.joint_names),
            ('FT sensor', self.offsets, sensors),
        ):
            for name in names:
                if name not in known:
                    raise NameNotFound(kind, name, known)
        taken = [*robot.link_names, *robot.joint_names, *sensors]
        for payload in self.payloads:
            if payload.name in taken:
                raise ConfigError(f"payload '{payload.name}': the name is in use")
            taken.append(payload.name)

    def sign(self, velocities: Array) -> Array:
        """Return the sign of velocities, smooth if it has a width."""
        if self.sign_width:
            return np.asarray(np.tanh(velocities / self.sign_width))
        return np.sign(velocities)


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
    """Samples in the order of stamps, and what is known of them."""

    samples: SampleBatch
    external: Mapping[str, Array] | None = None
    """Known wrenches by frame, (n, 6) [N, Nm]."""
    free: Mask | None = None
    """True where no unknown wrench acts, (n, n_submodels). Default: everywhere."""
    carried: Array | None = None
    """1 where a payload is there, (n, n_payloads). Default: nowhere."""

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


class Bases(NamedTuple):
    """Base parameters of one submodel."""

    whole: BaseParameters
    """Of all its equations."""
    of_kinds: Mapping[str, BaseParameters]
    """Those among them that equations of each kind depend on."""


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
        for pair in choice.couplings:
            if not known.issuperset(_coupled(pair)) or choice.couplings.count(pair) > 1:
                raise ConfigError(f'coupling {"+".join(pair)}: not two efforts of one submodel')

    def equations(self, samples: SampleBatch, **known: Any) -> list[dict[str, Equations]]:
        """Return the equations of samples by kind, for each submodel; known: see `Observed`."""
        found = []
        for _, kinds in self.sparse(Observed(samples, **known)):
            of_block = {}
            for kind, rows in kinds:
                system, good = rows.system()
                left_out = int(np.sum(~good))
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
            ('free', free, of_free),
            ('carried', carried, of_carried),
            *(
                (f"external['{frame}']", wrench, (len(samples), 6))
                for frame, wrench in wrenches.items()
            ),
        ):
            if np.shape(array) != shape:
                raise ShapeError(name, shape, np.shape(array))
        poses = poses_in_parents(self.robot, samples.positions)
        motions = link_motions(self.robot, samples, poses)
        readings = self.wrenches(samples)
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

    def wrenches(self, samples: SampleBatch) -> Array:
        """Return calibrated readings, shape (n, n_fts, 6) [N, Nm]."""
        if self.calibration is None:
            return samples.ft_readings
        return self.calibration.apply(samples.ft_readings, samples.ft_temperatures)

    def random_samples(self, seed: int = 0, n: int | None = None) -> SampleBatch:
        """Return n states in which everything moves; default: enough to determine all."""
        if n is None:
            unknowns = max(len(block.unknowns) for block in self.blocks)
            n = (1 + len(self.choice.payloads)) * (unknowns + SPARE_STATES)
        slowest = max(self.choice.dead_zones.values(), default=0.0)
        fastest = min(1.0 + 10.0 * slowest, MAX_VELOCITY)
        rng, n_fts = np.random.default_rng(seed), len(self.robot.ft_sensors)
        joints, imus = len(self.robot.joint_names), len(self.robot.imus)
        return SampleBatch(
            stamp_ns=np.arange(n, dtype=np.int64),
            positions=rng.normal(size=(n, joints)),
            velocities=rng.uniform(-fastest, fastest, (n, joints)),
            accelerations=rng.normal(size=(n, joints)),
            angular_velocities=rng.normal(size=(n, imus, 3)),
            proper_accelerations=10.0 * rng.normal(size=(n, imus, 3)),
            angular_accelerations=rng.normal(size=(n, imus, 3)),
            ft_readings=rng.normal(size=(n, n_fts, 6)),
            efforts=rng.normal(size=(n, joints)),
            ft_temperatures=np.zeros((n, n_fts)),
        )

    @cached_property
    def bases(self) -> list[Bases]:
        """Base parameters of each submodel."""
        # States with no payload, then each of them, over and over.
        samples, n = self.random_samples(), len(self.choice.payloads)
        turns = np.arange(len(samples))[:, None] % (n + 1)
        carried, found = (turns == 1 + np.arange(n)).astype(np.float64), []
        for block, kinds in self.sparse(Observed(samples, carried=carried)):
            unknowns, columns = block.unknowns, {}
            information = Information.empty(len(unknowns))
            for kind, rows in kinds:
                system, _ = rows.system()
                information = information.add(system[:, :-1], system[:, -1])
                columns[kind] = np.unique(np.concatenate([part.columns for part in rows.parts]))
            order = conditioning_order(len(unknowns.links), len(unknowns.extras))
            base, of_kinds = BaseParameters.of_regressor(information.R, order), {}
            for kind, own in columns.items():
                kept = np.isin(base.independent, own)
                grouping = np.zeros((int(kept.sum()), len(unknowns)))
                grouping[:, own] = base.grouping[np.ix_(kept, own)]
                of_kinds[kind] = BaseParameters(base.independent[kept], grouping)
            found.append(Bases(base, of_kinds))
        return found

    def _block(self, submodel: Submodel, sides: Sequence[tuple[FreeSide, str]]) -> Block:
        choice, joints = self.choice, [name for _, name in sides]
        held = self._ground in submodel.links and not choice.ground_known
        wrenches = COMPONENTS if choice.wrenches and not held else ()
        kinds = (*wrenches, *(f'{EFFORT}{name}' for name in joints))
        extras = [Extra(name, term) for name in joints for term in choice.friction]
        for pair in choice.couplings:
            if set(pair) <= set(joints) and pair[0] != pair[1]:
                extras += _coupled(pair)
        extras += [Extra(name, Term.DRIVE_GAIN) for name in joints if name in choice.gains]
        carried: tuple[Payload, ...] = ()
        if kinds:
            borders = [self.robot.ft_sensors[s].name for s in submodel.sensors]
            extras += [
                Extra(name, k) for name in borders if name in choice.offsets for k in FT_OFFSET
            ]
            both = zip(choice.payloads, self._carriers, strict=True)
            carried = tuple(payload for payload, (link, _) in both if link in submodel.links)
        extras += [extra for payload in carried for extra in payload.extras()]
        names = tuple(self.robot.link_names[k] for k in submodel.links)
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
        if not block.kinds:
            return
        links, unknowns, choice = block.submodel.links, block.unknowns, self.choice
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
                # No force depends on an inertia.
                some = columns[columns % 10 < 4] if c < 3 else columns
                parts, y = outside(loads, c)
                all_parts = (Part(some, wrench[c, some]), *parts)
                yield kind, SparseEquations(len(unknowns), all_parts, y, usable)
        for side, name in sides:
            axis = side.sign * joint_axis(placed[side.child], self.robot.links[side.child].motion)
            parts, y = outside((load for load in loads if load.link in side.links), axis)
            own, effort = self._effort(unknowns, samples, name)
            moving = np.abs(samples.velocities[:, side.joint]) >= choice.dead_zones.get(name, 0.0)
            # Of the wrenches of the links beyond.
            places = [10 * links.index(k) + np.arange(10) for k in side.links]
            along = np.ascontiguousarray(axis.T)
            values = [np.einsum('in,ikn->kn', along, wrench[:, some]) for some in places]
            inertial = Part(np.concatenate(places), np.concatenate(values))
            rows = SparseEquations(
                len(unknowns), (inertial, *parts, own), y + effort, usable & moving
            )
            yield f'{EFFORT}{name}', rows

    def _effort(self, unknowns: Unknowns, samples: SampleBatch, name: str) -> tuple[Part, Array]:
        """Return the columns of friction and the like of a joint, and its effort."""
        choice, joints = self.choice, self.robot.joint_names
        joint, n = joints.index(name), len(samples)
        effort = np.full(n, np.nan) if samples.efforts is None else samples.efforts[:, joint]
        v, a, directions = samples.velocities.T, samples.accelerations.T, samples.directions
        direction = choice.sign(v[joint])
        if directions is not None and not choice.sign_width:
            direction = directions[:, joint]
        values = {
            Term.VISCOUS: v[joint],
            Term.COULOMB: direction,
            Term.OFFSET: np.ones(n),
            Term.DRIVE_INERTIA: a[joint],
        }
        columns = {Extra(name, term): values[term] for term in choice.friction}
        for pair in choice.couplings:
            if name in pair:
                other = joints.index(pair[pair[0] == name])
                shared = v[other], choice.sign(v[joint] + v[other]), a[other]
                columns |= dict(zip(_coupled(pair), shared, strict=True))
        if name in choice.gains:
            columns[Extra(name, Term.DRIVE_GAIN)] = -effort
            effort = np.zeros(n)
        places = unknowns.columns(map(str, columns))
        return Part(places, np.array(list(columns.values())).reshape(-1, n)), effort


def _coupled(pair: tuple[str, str]) -> list[Extra]:
    """Return the unknowns of a coupled drive."""
    return [Extra('+'.join(pair), term) for term in OF_A_COUPLING]
