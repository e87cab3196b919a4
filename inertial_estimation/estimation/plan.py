# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Constants of a step for one set of working sensors and contacts.

Submodels whose external wrench is split among several contacts are grouped by the size of their
least-squares problem, so that those of one size are solved together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices, Mask
from inertial_estimation.estimation.balance import Balance
from inertial_estimation.estimation.contacts import Contact, ContactKind, noise_scale
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.estimate import Flags, Quality
from inertial_estimation.estimation.faults import Faults, Qualities, own_rows
from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.model.robot import Robot


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames that move with the robot: tops, FT sensors, active contacts, root links."""

    support: Indices
    """Pose of the geometry that each one is attached to, shape (n_frames,)."""
    transposed_pose: Array
    """Transposed pose relative to it, shape (n_frames, 4, 4) [m]: takes its row pose to theirs."""
    sensors: int
    """Row of the first FT sensor."""
    contacts: int
    """Row of the first contact."""
    roots: int
    """Row of the first root link; there are none if every answer is exact."""


@dataclass(frozen=True, eq=False)
class Split:
    """
    Submodels whose external wrench is split, all with as many unknowns and sensors.

    Rows of `columns` are wrenches, those of the unknowns first, then those of the sensors' noise.
    """

    rows: Indices
    """The submodels, shape (n,)."""
    reference: Indices
    """Frame in which each is solved: its only sensor, otherwise its root link, shape (n,)."""
    frames: Indices
    """Frame of each unknown's wrench, then of each disturbance, shape (n, n_columns)."""
    columns: Array
    """Unit wrenches in these frames, shape (n, n_columns, 6)."""
    scales: Array
    """Factors of the unknowns' wrenches, `Contact.scales`, shape (n, unknowns, 1)."""
    unknowns: int
    """Number of unknowns of each submodel."""
    noise: Array | None
    """Noise of the only sensor; None if several are among the columns, shape (6,)."""
    owner: Array
    """1 where an unknown belongs to a contact, shape (n_active, n * unknowns)."""
    members: tuple[Indices, ...]
    """Contacts of each submodel among the active ones."""
    starts: tuple[Indices, ...]
    """First unknown of each of these contacts among those of the submodel."""
    limits: Array
    """Factors of the unknowns in sums that are not negative, shape (n, n_limits, unknowns)."""
    limited: Indices
    """Active contact of each of these, shape (n, n_limits)."""
    limit_flags: Flags
    """`Limit` of each, shape (n, n_limits)."""


def find_splits(
    balance: Balance,
    frames: Frames,
    sharing: Mapping[int, Indices],
    used: Sequence[Contact],
    length_scale: float,
) -> tuple[Split, ...]:
    """Group the submodels that have to be split by the size of their problem; length_scale [m]."""
    groups: dict[tuple[int, int, int], list[int]] = {}
    for s, contacts in sharing.items():
        n_sensors = max(1, len(balance.submodels[s].sensors))
        n_limits = sum(len(used[c].kind.limits) for c in contacts)
        size = sum(used[c].unknowns for c in contacts), n_sensors, n_limits
        groups.setdefault(size, []).append(s)
    noise = noise_scale(length_scale)
    found = []
    for rows in groups.values():
        reference, places, columns, scales, owners, starts = [], [], [], [], [], []
        kinds = [[used[c].kind for c in sharing[s]] for s in rows]
        limits = [_block_diagonal([kind.limit_rows for kind in own]) for own in kinds]
        for s in rows:
            sensors = balance.submodels[s].sensors
            units = np.vstack([used[c].basis().T for c in sharing[s]])
            scales.append(np.hstack([used[c].scales(length_scale) for c in sharing[s]])[:, None])
            sizes = [used[c].unknowns for c in sharing[s]]
            owners.append(np.repeat(sharing[s], sizes))
            starts.append(np.cumsum([0, *sizes[:-1]]))
            if len(sensors) == 1:
                reference.append(frames.sensors + sensors[0])
                sensors = ()
            else:
                reference.append(frames.roots + s)
            disturbed = np.repeat(np.array(sensors, dtype=np.intp), 6)
            places.append(
                np.concatenate([frames.contacts + owners[-1], frames.sensors + disturbed])
            )
            columns.append(np.vstack([scales[-1] * units, *[np.diag(noise)] * len(sensors)]))
        unknowns, owned = len(owners[0]), np.arange(len(used))[:, None] == np.concatenate(owners)
        split = Split(
            rows=np.array(rows, dtype=np.intp),
            reference=np.array(reference, dtype=np.intp),
            frames=np.array(places, dtype=np.intp),
            columns=np.array(columns),
            scales=np.array(scales),
            unknowns=unknowns,
            noise=noise if len(places[0]) == unknowns else None,
            owner=owned.astype(np.float64),
            members=tuple(sharing[s] for s in rows),
            starts=tuple(starts),
            limits=np.array(limits),
            limited=np.array([np.repeat(sharing[s], [len(kind.limits) for kind in own])
                              for s, own in zip(rows, kinds)]),
            limit_flags=np.array([[limit for kind in own for limit, _ in kind.limits]
                                  for own in kinds], dtype=np.uint8),
        )  # fmt: skip
        found.append(split)
    return tuple(found)


def _block_diagonal(blocks: Sequence[Array]) -> Array:
    """Return blocks (m_k, n_k) along a diagonal; SciPy would be a third of the start of a node."""
    found = np.zeros(np.sum([block.shape for block in blocks], axis=0))
    row = column = 0
    for block in blocks:
        m, n = block.shape
        found[row : row + m, column : column + n] = block
        row, column = row + m, column + n
    return found


LOST = Quality.MISSING | Quality.DROPPED
"""Results with one of these flags are NaN."""


@dataclass(frozen=True, eq=False)
class Plan:
    """Constants of one step."""

    dynamics: Dynamics
    balance: Balance
    contacts: tuple[Contact, ...]
    """All contacts that were asked for."""
    active: Indices
    """Those that take part."""
    frames: Frames
    ft_directions: Array
    """+1: child on parent, -1: parent on child, 0: not used, shape (n_fts, 1)."""
    carried: Array
    """1 where a submodel carries an active contact, shape (n_submodels, n_active)."""
    known: Indices
    """Active contacts with a known wrench."""
    known_wrenches: Array
    """Their wrenches, in and about their frames, shape (n_known, 6) [N, Nm]."""
    single: Indices
    """Active contacts that alone carry the wrench of their submodel [T 4.21]."""
    single_rows: Indices
    """Their submodels."""
    splits: tuple[Split, ...]
    residual_rows: Indices
    """Row of each submodel of the balance among the robot's own."""
    ranks: NDArray[np.int64]
    """Ranks as far as they are known beforehand, shape (n_submodels,)."""
    quality: Qualities
    missing_joints: Mask
    used_imus: Mask
    used_fts: Mask
    no_limits: Flags
    """No `Limit` of any contact, shape (n_contacts,)."""
    exact: bool
    """Every submodel has just one contact, a full wrench."""
    complete: bool
    """Every result is a number."""
    motion: MotionPlan
    """Motion sources of links."""


def build_plan(
    robot: Robot,
    dynamics: Dynamics,
    balance: Balance,
    quality: Qualities,
    contacts: tuple[Contact, ...],
    active: Sequence[int],
    faults: Faults,
    motion: MotionPlan,
    length_scale: float,
) -> Plan:
    """Lay out one step; length_scale [m]."""
    used = [contacts[c] for c in active]
    n_submodels = len(balance.submodels)
    owners = balance.contact_submodel
    unknowns = np.array([contact.unknowns for contact in used], dtype=np.intp)
    carriers = [np.flatnonzero((owners == s) & (unknowns > 0)) for s in range(n_submodels)]
    alone = np.array(
        [len(c) == 1 and used[c[0]].kind is ContactKind.WRENCH for c in carriers], dtype=bool
    )
    sharing = {s: rows for s, rows in enumerate(carriers) if len(rows) and not alone[s]}
    known = np.flatnonzero(unknowns == 0)
    exact = bool(alone.all()) and not len(known)
    frames = _frames(robot, dynamics, balance, used, exact)
    residual_rows = np.array(own_rows(robot, balance), dtype=np.intp)
    ranks = np.zeros(len(robot.submodels), dtype=np.int64)
    ranks[residual_rows[alone]] = 6
    used_imus, used_fts = motion.used.copy(), ~faults.fts
    no_limits = np.zeros(len(contacts), dtype=np.uint8)
    for shown in (ranks, used_imus, used_fts, no_limits):
        shown.flags.writeable = False
    directions = [s.direction * on for s, on in zip(robot.ft_sensors, used_fts, strict=True)]
    return Plan(
        dynamics=dynamics,
        balance=balance,
        contacts=contacts,
        active=np.array(active, dtype=np.intp),
        frames=frames,
        ft_directions=np.array(directions, dtype=np.float64).reshape(-1, 1),
        carried=np.equal.outer(np.arange(n_submodels), owners).astype(np.float64),
        known=known,
        known_wrenches=np.array([used[c].wrench for c in known]).reshape(-1, 6),
        single=np.array([carriers[s][0] for s in np.flatnonzero(alone)], dtype=np.intp),
        single_rows=np.flatnonzero(alone),
        splits=find_splits(balance, frames, sharing, used, length_scale),
        residual_rows=residual_rows,
        ranks=ranks,
        quality=quality,
        missing_joints=faults.joints,
        used_imus=used_imus,
        used_fts=used_fts,
        no_limits=no_limits,
        exact=exact,
        complete=len(residual_rows) == len(robot.submodels)
        and not any((flags & LOST).any() for flags in quality),
        motion=motion,
    )


def _frames(
    robot: Robot, dynamics: Dynamics, balance: Balance, used: Sequence[Contact], exact: bool
) -> Frames:
    places = [(top.link, top.L_H_top) for top in dynamics.forest.tops]
    sensors = len(places)
    places += [(sensor.child, sensor.child_H_sensor) for sensor in robot.ft_sensors]
    contacts = len(places)
    places += [robot.frame(contact.frame) for contact in used]
    roots = len(places)
    if not exact:
        places += [(submodel.root, np.eye(4)) for submodel in balance.submodels]
    links = np.array([link for link, _ in places], dtype=np.intp)
    poses = dynamics.support_H_L[links] @ np.array([pose for _, pose in places])
    transposed = poses.swapaxes(-1, -2).copy()
    return Frames(dynamics.support[links], transposed, sensors, contacts, roots)
