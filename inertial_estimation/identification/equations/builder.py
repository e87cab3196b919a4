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
    sensor_pushes,
    wrench_columns,
)
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.unknowns import Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters, conditioning_order
from inertial_estimation.model.link_motions import Motion, Poses, link_motions, poses_in_parents
from inertial_estimation.model.regressor import free_sides, joint_axis, poses_in_root
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch

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
