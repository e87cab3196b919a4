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

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, NameNotFound, ShapeError
from inertial_estimation.identification.friction import Coupling, JointModel
from inertial_estimation.identification.unknowns import FT_OFFSET, Extra, Term, Unknowns
from inertial_estimation.model.link_motions import Poses, poses_in_parents, to_axes
from inertial_estimation.model.regressor import (
    SubmodelRegressor,
    free_sides,
    joint_axis,
    submodel_regressors,
    wrench_to_root,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

COMPONENTS = tuple(term.value for term in FT_OFFSET)
"""Kinds of the rows of a wrench [N, Nm]."""


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


@dataclass(frozen=True)
class RowChoice:
    """Which rows to build, and which unknowns beside the links' parameters they have."""

    wrenches: bool = True
    """Rows of the sums of wrenches, of submodels that no unknown force acts on."""
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
        If a joint or sensor does not exist.
    ConfigError
        If the choice leaves no rows.

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
        self.models: Mapping[str, JointModel] = {
            name: choice.model_of(name) for name in choice.efforts
        }
        """Friction and dead zone by joint."""
        self._ground = robot.frame(robot.fixed_frame)[0] if robot.fixed_frame else -1
        self.blocks = tuple(self._block(submodel) for submodel in robot.submodels)
        if not any(block.kinds for block in self.blocks):
            raise ConfigError(
                'there is no row to build: a robot with a fixed link needs FT sensors, or joints '
                'in efforts'
            )
        _check_couplings(choice, self.blocks)

    def rows(
        self,
        samples: SampleBatch,
        *,
        external: Mapping[str, Array] | None = None,
        free: Mask | None = None,
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
        n = len(samples)
        if free is not None and free.shape != (n, len(self.blocks)):
            raise ShapeError('free', (n, len(self.blocks)), free.shape)
        poses = poses_in_parents(self.robot, samples.positions)
        regressors = submodel_regressors(self.robot, samples, ground=self._ground)
        known = self._external(external or {}, n)
        found = []
        for k, (block, regressor) in enumerate(zip(self.blocks, regressors, strict=True)):
            pushes = self._border(block.submodel, samples, poses, regressor)
            pushes += [
                _Push(link, wrench_to_root(_fixed_at(regressor.root_poses[link], L_H_C), f), None)
                for link, L_H_C, f in known
                if link in block.submodel.links
            ]
            usable = np.ones(n, dtype=bool) if free is None else np.asarray(free[:, k], dtype=bool)
            found.append(self._of_block(block, regressor, samples, pushes, usable))
        return found

    def _block(self, submodel: Submodel) -> Block:
        """Return the unknowns and kinds of rows of a submodel."""
        robot, choice = self.robot, self.choice
        sides = free_sides(robot, submodel, self._ground)
        joints = [robot.joint_names[side.joint] for side in sides]
        joints = [name for name in joints if name in choice.efforts]
        extras = [extra for name in joints for extra in choice.joint.extras(name)]
        for coupling in choice.couplings:
            if set(coupling.joints) <= set(joints):
                extras += coupling.extras()
        extras += [Extra(name, Term.DRIVE_GAIN) for name in joints if name in choice.gains]
        wrenches = choice.wrenches and self._ground not in submodel.links
        kinds = (*(COMPONENTS if wrenches else ()), *(f'effort {name}' for name in joints))
        if kinds:
            borders = [robot.ft_sensors[s].name for s in _border_sensors(submodel)]
            extras += [
                Extra(name, term)
                for name in borders
                if name in choice.offsets
                for term in FT_OFFSET
            ]
        names = tuple(robot.link_names[k] for k in submodel.links)
        return Block(submodel, Unknowns(names, tuple(extras)), kinds)

    def _external(self, external: Mapping[str, Array], n: int) -> list[tuple[int, Array, Array]]:
        """Return link, pose in it and wrench of each known contact."""
        found = []
        for name, wrench in external.items():
            if wrench.shape != (n, 6):
                raise ShapeError(f"external['{name}']", (n, 6), wrench.shape)
            found.append((*self.robot.frame(name), wrench))
        return found

    def _border(
        self,
        submodel: Submodel,
        samples: SampleBatch,
        poses: Sequence[Poses],
        regressor: SubmodelRegressor,
    ) -> list[_Push]:
        """Return the wrenches on a submodel that its FT sensors read [T 4.17]."""
        readings = samples.ft_readings
        if self._calibration is not None:
            readings = self._calibration.apply(readings)
        found = []
        for s in _border_sensors(submodel):
            sensor = self.robot.ft_sensors[s]
            # Child on parent, as seen from the parent's side.
            sign = float(sensor.direction)
            if s == submodel.root_sensor:
                link, sign = submodel.root, -sign
                root_H_child = regressor.root_poses[link]
            else:
                link = sensor.parent
                root_H_child = _after(regressor.root_poses[link], poses[sensor.child])
            root_H_sensor = _fixed_at(root_H_child, sensor.child_H_sensor)
            slopes = None
            if sensor.name in self.choice.offsets:
                eye = np.broadcast_to(np.eye(6), (len(samples), 6, 6))
                slopes = (sensor.name, sign * wrench_to_root(root_H_sensor, eye))
            wrench = sign * wrench_to_root(root_H_sensor, readings[:, s])
            found.append(_Push(link, wrench, slopes))
        return found

    def _of_block(
        self,
        block: Block,
        regressor: SubmodelRegressor,
        samples: SampleBatch,
        pushes: Sequence[_Push],
        usable: Mask,
    ) -> dict[str, Rows]:
        """Return the rows of one block by kind."""
        found = {}
        if COMPONENTS[0] in block.kinds:
            Y, y = self._balance(block, regressor.wrench, pushes)
            for c, kind in enumerate(COMPONENTS):
                found[kind] = _finite(Y[:, c], y[:, c], usable)
        for row, side in enumerate(regressor.sides):
            name = self.robot.joint_names[side.joint]
            if f'effort {name}' not in block.kinds:
                continue
            axis = side.sign * joint_axis(
                regressor.root_poses[side.child], self.robot.links[side.child].motion
            )
            beyond = [push for push in pushes if push.link in side.links]
            Y, y = self._balance(block, regressor.torques[:, row, None], beyond, axis)
            moving = self._add_effort(block, samples, side.joint, Y[:, 0], y[:, 0])
            found[f'effort {name}'] = _finite(Y[:, 0], y[:, 0], usable & moving)
        return found

    def _balance(
        self, block: Block, regressor: Array, pushes: Iterable[_Push], axis: Array | None = None
    ) -> tuple[Array, Array]:
        """Return rows with what pushes from outside, all of it or its share along an axis."""
        n, rows, _ = regressor.shape
        Y = np.zeros((n, rows, len(block.unknowns)))
        Y[:, :, : block.unknowns.n_inertial] = regressor
        y = np.zeros((n, rows))
        for push in pushes:
            y += _along(axis, push.wrench)
            if push.offset is not None:
                name, slopes = push.offset
                columns = block.unknowns.columns(f'{name}.{part}' for part in COMPONENTS)
                Y[:, :, columns] += _along(axis, slopes)
        return Y, y

    def _add_effort(
        self, block: Block, samples: SampleBatch, joint: int, Y: Array, y: Array
    ) -> Mask:
        """Add a joint's effort and friction to its rows; tell where it moves enough."""
        name = self.robot.joint_names[joint]
        efforts = np.full(len(samples), np.nan)
        if samples.efforts is not None:
            efforts = samples.efforts[:, joint]
        velocities, accelerations = samples.velocities, samples.accelerations
        model = self.models[name]
        columns = block.unknowns.columns(f'{name}.{t.value}' for t in model.terms)
        Y[:, columns] = model.columns(velocities[:, joint], accelerations[:, joint])
        for coupling in self.choice.couplings:
            if name in coupling.joints:
                other = self.robot.joint_names.index(coupling.other(name))
                columns = block.unknowns.columns(map(str, coupling.extras()))
                Y[:, columns] = coupling.columns(
                    velocities[:, joint], velocities[:, other], accelerations[:, other], model
                )
        if name in self.choice.gains:
            Y[:, block.unknowns.columns([f'{name}.{Term.DRIVE_GAIN.value}'])] = -efforts[:, None]
        else:
            y += efforts
        return model.moving(velocities[:, joint])


class _Push(NamedTuple):
    """A wrench on a submodel from outside."""

    link: int
    """Link that it acts on."""
    wrench: Array
    """Shape (n, 6), about the submodel's root in its axes [N, Nm]."""
    offset: tuple[str, Array] | None
    """FT sensor, and how the wrench falls with its offset, shape (n, 6, 6); None: known."""


def _border_sensors(submodel: Submodel) -> tuple[int, ...]:
    """Return the FT sensors at the borders of a submodel."""
    root = () if submodel.root_sensor < 0 else (submodel.root_sensor,)
    return (*root, *submodel.child_sensors)


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


def _fixed_at(pose: Poses, L_H_F: Array) -> Poses:
    """Return where a frame fixed to a link is, from where the link is."""
    return Poses(
        pose.rotations @ L_H_F[:3, :3],
        pose.origins + to_axes(pose.rotations, np.broadcast_to(L_H_F[:3, 3], pose.origins.shape)),
    )


def _after(pose: Poses, further: Poses) -> Poses:
    """Return the composition of two poses."""
    return Poses(
        pose.rotations @ further.rotations,
        pose.origins + to_axes(pose.rotations, further.origins),
    )


def _along(axis: Array | None, wrenches: Array) -> Array:
    """Return wrenches, or their one share along an axis, shape (n, 1, ...)."""
    return wrenches if axis is None else np.einsum('ni,ni...->n...', axis, wrenches)[:, None]


def _finite(Y: Array, y: Array, usable: Mask) -> Rows:
    """Return the rows that hold numbers and may be used."""
    kept = usable & np.isfinite(y) & np.isfinite(Y).all(axis=1)
    return Rows(Y[kept], y[kept], int(len(y) - kept.sum()))
