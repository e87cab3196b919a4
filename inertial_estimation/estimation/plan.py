# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Everything about one set of working sensors and contacts that does not change with the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.quality import Qualities, Working, find_qualities
from inertial_estimation.estimation.transforms import row_pose
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

LOST = Quality.MISSING | Quality.DROPPED
"""Results with one of these flags are NaN."""


@dataclass(frozen=True, eq=False)
class SharedSubmodel:
    """A submodel whose external wrench has to be split among its contacts."""

    row: int
    """Row among the sums."""
    contacts: Indices
    """Its contacts with unknowns, rows among the active contacts."""
    bases: list[Array]
    """Wrenches that their unknowns stand for, each of shape (6, unknowns)."""
    sensors: Indices
    """Its FT sensors."""
    unknowns: int
    undetermined_torques: Mask
    """Torques that hold some of its contacts but not all, shape (n_joints,)."""
    undetermined_external: Mask
    """External torques likewise, shape (n_joints,)."""


@dataclass(frozen=True, eq=False)
class Plan:
    """
    The indices that one step follows.

    Frames are stacked: tops, FT sensors, active contacts and, unless the answer is exact, root
    links of the submodels.
    """

    dynamics: Dynamics
    balance: Balance
    contacts: tuple[Contact, ...]
    """All contacts that were asked for."""
    active: Indices
    """Those that take part."""
    frame_support: Indices
    """Pose of the geometry that each frame is attached to, shape (n_frames,)."""
    frame_pose: Array
    """Row pose of each frame relative to it, shape (n_frames, 4, 3) [m]."""
    ft_directions: Array
    """+1: child on parent, -1: parent on child, 0: not used, shape (n_fts, 1)."""
    contact_rows: Indices
    """Submodel of each active contact."""
    known: Indices
    """Active contacts with a known wrench."""
    known_wrenches: Array
    """Their wrenches, in and about their frames, shape (n_known, 6) [N, Nm]."""
    single: Indices
    """Active contacts that alone carry the wrench of their submodel [T 4.21]."""
    shared: tuple[SharedSubmodel, ...]
    free: Indices
    """Submodels without unknowns."""
    residual_rows: Indices
    """Row of each submodel of the balance among the robot's own."""
    ranks: NDArray[np.int64]
    """Ranks as far as they are known beforehand, shape (n_submodels,)."""
    quality: Qualities
    used_imus: Mask
    used_fts: Mask

    exact: bool
    """Every submodel has just one contact, a full wrench."""
    complete: bool
    """Every result is a number."""


def build_plan(
    robot: Robot,
    dynamics: Dynamics,
    balance: Balance,
    contacts: tuple[Contact, ...],
    active: Sequence[int],
    working: Working,
) -> Plan:
    """
    Lay out one step.

    Parameters
    ----------
    robot : Robot
        Links, joints and sensors.
    dynamics : Dynamics
        Forest and geometry for the working IMUs.
    balance : Balance
        The sums, for the active contacts.
    contacts : tuple of Contact
        All contacts that were asked for.
    active : sequence of int
        Those that take part.
    working : Working
        Sensors and joints that deliver.

    Returns
    -------
    Plan

    """
    used = [contacts[c] for c in active]
    owners = np.array(balance.contact_submodel, dtype=np.intp)
    unknowns = np.array([contact.unknowns for contact in used], dtype=np.intp)
    carriers = [
        np.flatnonzero((owners == s) & (unknowns > 0)) for s in range(len(balance.submodels))
    ]
    alone = [len(rows) == 1 and unknowns[rows[0]] == 6 for rows in carriers]
    single = np.array([carriers[s][0] for s in np.flatnonzero(alone)], dtype=np.intp)
    known = [c for c, contact in enumerate(used) if contact.kind == 'known']
    exact = all(alone) and not known
    support, pose = _frames(robot, dynamics, balance, used, exact)
    own_rows = {submodel.root: row for row, submodel in enumerate(robot.submodels)}
    residual_rows = [own_rows[submodel.root] for submodel in balance.submodels]
    ranks = np.zeros(len(robot.submodels), dtype=np.int64)
    ranks[np.array(residual_rows)[alone]] = 6
    directions = [s.direction * on for s, on in zip(robot.ft_sensors, working.fts, strict=True)]
    quality = find_qualities(
        robot, dynamics.forest, balance, contacts, active, working, residual_rows
    )
    used_imus = np.isin(np.arange(len(robot.imus)), dynamics.imus)
    used_imus &= np.array(working.imus, dtype=bool)
    used_fts = np.array(working.fts, dtype=bool)
    for shown in (ranks, used_imus, used_fts):
        shown.flags.writeable = False
    return Plan(
        dynamics=dynamics,
        balance=balance,
        contacts=contacts,
        active=np.array(active, dtype=np.intp),
        frame_support=support,
        frame_pose=pose,
        ft_directions=np.array(directions, dtype=np.float64).reshape(-1, 1),
        contact_rows=owners,
        known=np.array(known, dtype=np.intp),
        known_wrenches=np.array([used[c].wrench for c in known]).reshape(-1, 6),
        single=single,
        shared=tuple(
            _shared(balance, s, rows, used)
            for s, rows in enumerate(carriers)
            if len(rows) and not alone[s]
        ),
        free=np.array([s for s, rows in enumerate(carriers) if not len(rows)], dtype=np.intp),
        residual_rows=np.array(residual_rows, dtype=np.intp),
        ranks=ranks,
        quality=quality,
        used_imus=used_imus,
        used_fts=used_fts,
        exact=exact,
        complete=len(residual_rows) == len(robot.submodels)
        and not any((flags & LOST).any() for flags in quality),
    )


def _shared(balance: Balance, s: int, rows: Indices, used: Sequence[Contact]) -> SharedSubmodel:
    """Describe a submodel whose wrench is split."""
    submodel = balance.submodels[s]
    root = [submodel.root_sensor] if submodel.root_sensor >= 0 else []
    return SharedSubmodel(
        row=s,
        contacts=rows,
        bases=[used[c].basis() for c in rows],
        sensors=np.array([*root, *submodel.child_sensors], dtype=np.intp),
        unknowns=sum(used[c].unknowns for c in rows),
        undetermined_torques=_holds_some(balance.joint_contacts[:, rows]),
        undetermined_external=_holds_some(balance.external_contacts[:, rows]),
    )


def _holds_some(factors: NDArray[np.int64]) -> Mask:
    """Tell which rows hold some of the contacts but not all."""
    held = factors != 0
    some: Mask = held.any(axis=1) & ~held.all(axis=1)
    return some


def _frames(
    robot: Robot, dynamics: Dynamics, balance: Balance, used: Sequence[Contact], exact: bool
) -> tuple[Indices, Array]:
    """Return support and row pose of all frames that a step needs."""
    frames = [(top.link, top.L_H_top) for top in dynamics.forest.tops]
    frames += [(sensor.child, sensor.child_H_sensor) for sensor in robot.ft_sensors]
    frames += [robot.frame(contact.frame) for contact in used]
    if not exact:
        frames += [(submodel.root, np.eye(4)) for submodel in balance.submodels]
    links = np.array([link for link, _ in frames], dtype=np.intp)
    poses = dynamics.geometry.support_H_L[links] @ np.array([pose for _, pose in frames])
    return dynamics.geometry.support[links], row_pose(poses)
