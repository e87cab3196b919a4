# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From samples to rows: what sensors say about what the links weigh [T 7.2-7.5].

Each submodel has unknowns and rows of its own, so a problem is solved block by block. Its rows
are of several *kinds*, kept apart because each has a noise of its own: the six components of the
sum of its wrenches, and the effort of each of its joints.

    wrench   Y psi + offsets of its FT sensors  =  what they read  +  known external wrenches
    effort   y psi + friction, drive inertia    =  effort  +  what lies beyond the next FT sensor
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification.information.random_states import random_samples
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.rows.friction import Coupling, JointModel
from inertial_estimation.identification.rows.outer_wrenches import (
    COMPONENTS,
    Contact,
    Push,
    border_sensors,
    contact_pushes,
    pushed,
    pushed_component,
    sensor_pushes,
)
from inertial_estimation.identification.rows.payloads import Load, Payload, Payloads
from inertial_estimation.identification.rows.sparse_rows import Part, SparseRows
from inertial_estimation.identification.rows.wrench_columns import wrench_columns
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.link_motions import (
    Motion,
    Poses,
    link_motions,
    poses_in_parents,
)
from inertial_estimation.model.regressor import (
    free_sides,
    joint_axis,
    poses_in_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SPARE = 20
"""Random states beyond the number of unknowns."""
FASTEST = 1e3
"""Of their joints [rad/s or m/s]; a dead zone beyond it leaves no rows."""
__all__ = ['COMPONENTS', 'Block', 'RowBuilder', 'RowChoice', 'Rows']


class Rows(NamedTuple):
    """Rows of one kind of one block: ``Y x = y``."""

    Y: Array
    """Shape (m, n_unknowns)."""
    y: Array
    """Shape (m,) [N, Nm]."""
    left_out: int
    """Instants that gave no row: something was missing, unknown or in a dead zone."""


@dataclass(frozen=True)
class Block:
    """One submodel with its unknowns."""

    submodel: Submodel
    unknowns: Unknowns
    kinds: tuple[str, ...]
    """Kinds of its rows: components of a wrench, then ``effort <joint>``."""
    payloads: tuple[Payload, ...] = ()
    """What its links carry at times."""


@dataclass(frozen=True)
class RowChoice:
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

    def model_of(self, joint: str) -> JointModel:
        """
        Return friction and dead zone of a joint.

        Parameters
        ----------
        joint : str
            Its name.

        Returns
        -------
        JointModel

        Raises
        ------
        ConfigError
            If its dead zone makes no sense.

        """
        dead_zone = self.dead_zones.get(joint, self.joint.dead_zone)
        return replace(self.joint, dead_zone=dead_zone)


class RowBuilder:
    """
    Builds the rows of all submodels of a robot.

    Parameters
    ----------
    robot : Robot
        Links, joints, sensors, fixed link; its parameters are not used.
    choice : RowChoice, optional
        Default: the wrenches of every submodel, nothing else unknown.
    calibration : FtCalibration, optional
        Of the FT sensors. Default: readings are wrenches.

    Raises
    ------
    NameNotFound
        If a joint, a sensor or the frame of a payload does not exist.
    ConfigError
        If the choice leaves no rows, or the name of a payload is taken.

    """

    def __init__(
        self,
        robot: Robot,
        choice: RowChoice | None = None,
        calibration: FtCalibration | None = None,
    ) -> None:
        self.robot = robot
        self.choice = choice = choice or RowChoice()
        self._calibration = calibration
        _check_names('joint', (*choice.efforts, *choice.gains), robot.joint_names)
        _check_names('joint', choice.dead_zones, robot.joint_names)
        _check_names('FT sensor', choice.offsets, [ft.name for ft in robot.ft_sensors])
        chosen = choice.wrenches if isinstance(choice.wrenches, tuple) else ()
        _check_names('submodel', chosen, [submodel.name for submodel in robot.submodels])
        self.models: Mapping[str, JointModel] = {
            name: choice.model_of(name) for name in choice.efforts
        }
        """Friction and dead zone by joint."""
        self._payloads = Payloads(robot, choice.payloads)
        self._ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
        self._sides = {
            submodel.root: free_sides(robot, submodel, self._ground)
            for submodel in robot.submodels
        }
        self.blocks = tuple(self._block(submodel) for submodel in robot.submodels)
        if not any(block.kinds for block in self.blocks):
            raise ConfigError(
                'there is no row to build: a robot with a fixed link needs FT sensors, or joints '
                'in efforts, or the wrench of the ground'
            )
        _check_couplings(choice, self.blocks)

    def rows(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
        carried: Array | None = None,
    ) -> list[dict[str, Rows]]:
        """
        Build the rows of some samples.

        Parameters
        ----------
        samples : SampleBatch
            NaN in a value costs the rows that rest on it.
        external : mapping of str to ndarray, shape (n, 6), optional
            Known wrenches of the environment on the robot, by the frame that they are in and
            about, [force; torque] [N, Nm]; NaN where unknown, which costs rows as above.
        free : ndarray of bool, shape (n, n_submodels), optional
            Where no other wrench acts on a submodel. Default: nowhere does any, but at the fixed
            link.
        carried : ndarray, shape (n, n_payloads), optional
            One where a payload of the choice is there, zero where it is not. Default: none is.

        Returns
        -------
        list of dict of str to Rows
            By kind, for each block.

        Raises
        ------
        FrameNotFound
            If a frame of `external` does not exist.
        ShapeError
            If an array does not belong to the samples.

        """
        found = []
        for block, kinds in self.sparse(samples, external=external, free=free, carried=carried):
            n = len(block.unknowns)
            of_block = {}
            for kind, rows in kinds:
                system, left_out = rows.system(np.arange(n), n)
                of_block[kind] = Rows(system[:, :-1], system[:, -1], left_out)
            found.append(of_block)
        return found

    def sparse(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
        carried: Array | None = None,
    ) -> Iterator[tuple[Block, Iterator[tuple[str, SparseRows]]]]:
        """
        Yield the rows of some samples block by block and kind by kind: less to hold at a time.

        Parameters
        ----------
        samples, external, free, carried
            As for `rows`.

        Yields
        ------
        tuple of Block and iterator of (str, SparseRows)
            The kinds of a block are there until the next block is asked for.

        Raises
        ------
        FrameNotFound, ShapeError
            As `rows` does.

        """
        n = len(samples)
        if free is not None and free.shape != (n, len(self.blocks)):
            raise ShapeError('free', (n, len(self.blocks)), free.shape)
        if carried is None:
            carried = np.zeros((n, len(self.choice.payloads)))
        if carried.shape != (n, len(self.choice.payloads)):
            raise ShapeError('carried', (n, len(self.choice.payloads)), carried.shape)
        poses = poses_in_parents(self.robot, samples.positions)
        motions = link_motions(self.robot, samples, poses)
        known = self._external(external or {}, n)
        readings = samples.ft_readings
        if self._calibration is not None:
            readings = self._calibration.apply(readings)
        for k, block in enumerate(self.blocks):
            placed = poses_in_root(self.robot, block.submodel, poses)
            submodel = block.submodel
            pushes = [
                *sensor_pushes(self.robot, submodel, readings, poses, placed, self.choice.offsets),
                *contact_pushes(submodel, known, placed),
            ]
            usable = np.ones(n, dtype=bool) if free is None else np.asarray(free[:, k], dtype=bool)
            loads = self._payloads.loads(placed, motions, carried)
            yield block, self._of_block(block, placed, motions, samples, pushes, loads, usable)

    def random_samples(self, seed: int = 0) -> SampleBatch:
        """
        Return states in which everything moves, enough to tell what rows can tell at all.

        Parameters
        ----------
        seed : int
            Of the random numbers.

        Returns
        -------
        SampleBatch

        """
        unknowns = max(len(block.unknowns) for block in self.blocks)
        slowest = max([model.dead_zone for model in self.models.values()], default=0.0)
        fastest = min(1.0 + 10.0 * slowest, FASTEST)
        situations = 1 + len(self.choice.payloads)
        return random_samples(self.robot, situations * (unknowns + SPARE), fastest, seed)

    def in_turn(self, samples: SampleBatch) -> Array:
        """
        Return that none, then each of the payloads is carried, over and over.

        Parameters
        ----------
        samples : SampleBatch
            Say of `random_samples`.

        Returns
        -------
        ndarray, shape (n, n_payloads)
            For `rows` and `sparse`.

        """
        return self._payloads.in_turn(len(samples))

    @cached_property
    def bases(self) -> tuple[dict[str, BaseParameters], ...]:
        """What rows of each kind can tell of a block's unknowns, for each block."""
        found = []
        with one_thread():
            samples = self.random_samples()
            for block, kinds in self.sparse(samples, carried=self.in_turn(samples)):
                order = conditioning_order(len(block.unknowns.links), len(block.unknowns.extras))
                found.append({kind: rows.base(order) for kind, rows in kinds})
        return tuple(found)

    def _block(self, submodel: Submodel) -> Block:
        """Return the unknowns and kinds of rows of a submodel."""
        robot, choice = self.robot, self.choice
        joints = [robot.joint_names[side.joint] for side in self._sides[submodel.root]]
        joints = [name for name in joints if name in choice.efforts]
        extras = [extra for name in joints for extra in choice.joint.extras(name)]
        for coupling in choice.couplings:
            if set(coupling.joints) <= set(joints):
                extras += coupling.extras()
        extras += [Extra(name, Term.DRIVE_GAIN) for name in joints if name in choice.gains]
        wrenches = self._has_wrenches(submodel)
        kinds = (*(COMPONENTS if wrenches else ()), *(f'effort {name}' for name in joints))
        if kinds:
            borders = [robot.ft_sensors[s].name for s in border_sensors(submodel)]
            extras += [
                Extra(name, term)
                for name in borders
                if name in choice.offsets
                for term in FT_OFFSET
            ]
        payloads = self._payloads.on(submodel.links) if kinds else ()
        extras += [extra for payload in payloads for extra in payload.extras()]
        names = tuple(robot.link_names[k] for k in submodel.links)
        return Block(submodel, Unknowns(names, tuple(extras)), kinds, payloads)

    def _has_wrenches(self, submodel: Submodel) -> bool:
        """Tell whether the sum of a submodel's wrenches is to give rows."""
        chosen = self.choice.wrenches
        held = self._ground in submodel.links and not self.choice.ground_known
        if isinstance(chosen, bool):
            return chosen and not held
        if submodel.name in chosen and held:
            raise ConfigError(
                f"wrenches of '{submodel.name}' give no rows: the ground holds its link "
                f"'{self.robot.link_names[self._ground]}' with an unknown wrench; leave it out, "
                'or say that wrench'
            )
        return submodel.name in chosen

    def _external(self, external: Mapping[str, Array], n: int) -> list[Contact]:
        """Return each known contact."""
        found = []
        for name, wrench in external.items():
            if wrench.shape != (n, 6):
                raise ShapeError(f"external['{name}']", (n, 6), wrench.shape)
            found.append(Contact(*self.robot.frame(name), wrench))
        return found

    def _of_block(
        self,
        block: Block,
        placed: Mapping[int, Poses],
        motions: Sequence[Motion],
        samples: SampleBatch,
        pushes: Sequence[Push],
        loads: Sequence[Load],
        usable: Mask,
    ) -> Iterator[tuple[str, SparseRows]]:
        """Yield the rows of one block by kind."""
        if not block.kinds:
            return
        links = block.submodel.links
        wrench = wrench_columns(links, placed, motions)
        if COMPONENTS[0] in block.kinds:
            columns = np.arange(block.unknowns.n_inertial)
            for c, kind in enumerate(COMPONENTS):
                parts, y = pushed_component(block.unknowns, pushes, c, len(samples))
                _load(parts, y, [load.component(block.unknowns, c) for load in loads])
                yield kind, SparseRows((Part(columns, wrench[c]), *parts), y, usable)
        for side in self._sides[block.submodel.root]:
            name = self.robot.joint_names[side.joint]
            if f'effort {name}' not in block.kinds:
                continue
            motion = self.robot.links[side.child].motion
            axis = side.sign * joint_axis(placed[side.child], motion)
            parts, y = pushed(
                block.unknowns, [push for push in pushes if push.link in side.links], axis
            )
            beyond = [load for load in loads if load.link in side.links]
            _load(parts, y, [load.along(block.unknowns, axis) for load in beyond])
            of_effort, effort, moving = self._effort(block, samples, side.joint)
            inertial = _along(axis, wrench, [links.index(k) for k in side.links])
            yield (
                f'effort {name}',
                SparseRows((inertial, *parts, *of_effort), y + effort, usable & moving),
            )

    def _effort(
        self, block: Block, samples: SampleBatch, joint: int
    ) -> tuple[list[Part], Array, Mask]:
        """Return friction and the like of a joint, its effort, and where it moves enough."""
        name = self.robot.joint_names[joint]
        efforts = np.full(len(samples), np.nan)
        if samples.efforts is not None:
            efforts = samples.efforts[:, joint]
        velocities, accelerations = samples.velocities, samples.accelerations
        model = self.models[name]
        directions = None if samples.directions is None else samples.directions[:, joint]
        own = model.columns(velocities[:, joint], accelerations[:, joint], directions)
        parts = [Part(block.unknowns.columns(map(str, model.extras(name))), own.T)]
        for coupling in self.choice.couplings:
            if name in coupling.joints:
                other = self.robot.joint_names.index(coupling.other(name))
                shared = coupling.columns(
                    velocities[:, joint], velocities[:, other], accelerations[:, other], model
                )
                columns = block.unknowns.columns(map(str, coupling.extras()))
                parts.append(Part(columns, shared.T))
        if name in self.choice.gains:
            gain = block.unknowns.columns([f'{name}.{Term.DRIVE_GAIN.value}'])
            parts.append(Part(gain, -efforts[None]))
            efforts = np.zeros_like(efforts)
        return parts, efforts, model.moving(velocities[:, joint])


def _along(axis: Array, wrench: Array, links: Sequence[int]) -> Part:
    """Return the share of some links' wrenches along an axis."""
    n = len(axis)
    chosen = wrench.reshape(6, -1, 10, n)
    transposed = np.ascontiguousarray(axis.T)
    values = np.stack([np.einsum('in,ikn->kn', transposed, chosen[:, k]) for k in links])
    columns = (10 * np.array(links)[:, None] + np.arange(10)).reshape(-1)
    return Part(columns.astype(np.intp), values.reshape(-1, n))


def _load(parts: list[Part], y: Array, loads: Iterable[tuple[Part, Array]]) -> None:
    """Add what payloads say to some rows."""
    for part, known in loads:
        parts.append(part)
        y -= known


def _check_names(kind: str, names: Iterable[str], known: Collection[str]) -> None:
    """Raise unless all names exist."""
    for name in names:
        if name not in known:
            raise NameNotFound(kind, name, known)


def _check_couplings(choice: RowChoice, blocks: Iterable[Block]) -> None:
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
