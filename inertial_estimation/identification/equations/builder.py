# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
States in which everything moves: what rows of them do not tell, no rows of their kind do.

What the effort of a joint is made of: links beyond it, friction, drive inertia and gain.

From samples to rows: what sensors say about what the links weigh [T 7.2-7.5].

Each submodel has unknowns and rows of its own, so a problem is solved block by block. Its rows
are of several *kinds*, kept apart because each has a noise of its own: the six components of the
sum of its wrenches, and the effort of each of its joints.

    wrench   Y psi + offsets of its FT sensors  =  what they read  +  known external wrenches
    effort   y psi + friction, drive inertia    =  effort  +  what lies beyond the next FT sensor
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.identification.equations.blocks import Block, EquationChoice, blocks_of
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.equations.payloads import Load, Payloads
from inertial_estimation.identification.equations.sparse_equations import Part, SparseEquations
from inertial_estimation.identification.equations.wrenches import (
    COMPONENTS,
    Contact,
    Push,
    contact_pushes,
    pushed,
    pushed_component,
    sensor_pushes,
    wrench_columns,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.unknowns import Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.independent_columns import conditioning_order
from inertial_estimation.model.link_motions import Motion, Poses, link_motions, poses_in_parents
from inertial_estimation.model.regressor import free_sides, joint_axis, poses_in_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch


def random_samples(robot: Robot, n: int, fastest: float = 1.0, seed: int = 0) -> SampleBatch:
    """
    Return states in which everything moves, with readings that nothing explains.

    fastest [rad/s or m/s].
    """
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


Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def inertial_part(axis: Array, wrench: Array, links: Sequence[int]) -> Part:
    """
    Return the share of some links' wrenches along an axis.

    axis (n, 6); wrench (6, 10 * n_links, n).
    """
    n = len(axis)
    chosen = wrench.reshape(6, -1, 10, n)
    transposed = np.ascontiguousarray(axis.T)
    values = np.stack([np.einsum('in,ikn->kn', transposed, chosen[:, k]) for k in links])
    columns = (10 * np.array(links)[:, None] + np.arange(10)).reshape(-1)
    return Part(columns.astype(np.intp), values.reshape(-1, n))


def effort_parts(
    choice: EquationChoice,
    model: JointModel,
    unknowns: Unknowns,
    samples: SampleBatch,
    joints: Sequence[str],
    name: str,
) -> tuple[list[Part], Array, Mask]:
    """
    Return friction and the like of a joint, its effort, and where it moves enough.

    Returns effort (n,) [N or N m]; moving (n,).
    """
    joint = joints.index(name)
    efforts = np.full(len(samples), np.nan)
    if samples.efforts is not None:
        efforts = samples.efforts[:, joint]
    velocities, accelerations = samples.velocities, samples.accelerations
    directions = None if samples.directions is None else samples.directions[:, joint]
    own = model.columns(velocities[:, joint], accelerations[:, joint], directions)
    parts = [Part(unknowns.columns(map(str, model.extras(name))), own.T)]
    for coupling in choice.couplings:
        if name in coupling.joints:
            other = joints.index(coupling.other(name))
            shared = coupling.columns(
                velocities[:, joint], velocities[:, other], accelerations[:, other], model
            )
            columns = unknowns.columns(map(str, coupling.extras()))
            parts.append(Part(columns, shared.T))
    if name in choice.gains:
        gain = unknowns.columns([f'{name}.{Term.DRIVE_GAIN.value}'])
        parts.append(Part(gain, -efforts[None]))
        efforts = np.zeros_like(efforts)
    return parts, efforts, model.moving(velocities[:, joint])


SPARE = 20
"""Random states beyond the number of unknowns."""
FASTEST = 1e3
"""Of their joints [rad/s or m/s]; a dead zone beyond it leaves no rows."""
__all__ = ['COMPONENTS', 'Block', 'EquationBuilder', 'EquationChoice', 'Rows']


class Rows(NamedTuple):
    """Rows of one kind of one block: ``Y x = y``."""

    Y: Array
    """Shape (m, n_unknowns)."""
    y: Array
    """Shape (m,) [N, Nm]."""
    left_out: int
    """Instants that gave no row: something was missing, unknown or in a dead zone."""


class EquationBuilder:
    """Builds the rows of all submodels of a robot."""

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
        self._ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
        self._sides = {
            submodel.root: free_sides(robot, submodel, self._ground)
            for submodel in robot.submodels
        }
        self.blocks = blocks_of(robot, choice, self._payloads, self._sides, self._ground)

    def set_calibration(self, calibration: FtCalibration | None) -> None:
        """Build further rows of readings that are calibrated otherwise."""
        self._calibration = calibration

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

        external (n, 6) [force; torque]; free (n, n_submodels); carried (n, n_payloads).
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
    ) -> Iterator[tuple[Block, Iterator[tuple[str, SparseEquations]]]]:
        """
        Yield the rows of some samples block by block and kind by kind: less to hold at a time.
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
            readings = self._calibration.apply(readings, samples.ft_temperatures)
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
        """Return states in which everything moves, enough to tell what rows can tell at all."""
        unknowns = max(len(block.unknowns) for block in self.blocks)
        slowest = max([model.dead_zone for model in self.models.values()], default=0.0)
        fastest = min(1.0 + 10.0 * slowest, FASTEST)
        situations = 1 + len(self.choice.payloads)
        return random_samples(self.robot, situations * (unknowns + SPARE), fastest, seed)

    def in_turn(self, samples: SampleBatch) -> Array:
        """
        Return that none, then each of the payloads is carried, over and over.

        Returns (n, n_payloads).
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
    ) -> Iterator[tuple[str, SparseEquations]]:
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
                yield kind, SparseEquations((Part(columns, wrench[c]), *parts), y, usable)
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
            of_effort, effort, moving = effort_parts(
                self.choice,
                self.models[name],
                block.unknowns,
                samples,
                self.robot.joint_names,
                name,
            )
            inertial = inertial_part(axis, wrench, [links.index(k) for k in side.links])
            yield (
                f'effort {name}',
                SparseEquations((inertial, *parts, *of_effort), y + effort, usable & moving),
            )


def _load(parts: list[Part], y: Array, loads: Iterable[tuple[Part, Array]]) -> None:
    """Add what payloads say to some rows."""
    for part, known in loads:
        parts.append(part)
        y -= known
