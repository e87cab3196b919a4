# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Everything about one set of working sensors and contacts that does not change with the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance
from inertial_estimation.estimation.body_motion import MotionPlan
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dynamics import Dynamics
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.quality import Qualities, Working, own_rows
from inertial_estimation.estimation.splits import Frames, Split, find_splits
from inertial_estimation.estimation.transforms import row_pose
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

LOST = Quality.MISSING | Quality.DROPPED
"""Results with one of these flags are NaN."""


@dataclass(frozen=True, eq=False)
class Plan:
    """What one step follows."""

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
    used_imus: Mask
    used_fts: Mask
    exact: bool
    """Every submodel has just one contact, a full wrench."""
    complete: bool
    """Every result is a number."""
    motion: MotionPlan | None = None
    """How IMUs tell the motions of bodies; None: each body has just one whole IMU."""


def build_plan(
    robot: Robot,
    dynamics: Dynamics,
    balance: Balance,
    quality: Qualities,
    contacts: tuple[Contact, ...],
    active: Sequence[int],
    working: Working,
    length_scale: float,
) -> Plan:
    """Lay out one step; length_scale [m]."""
    used = [contacts[c] for c in active]
    n_submodels = len(balance.submodels)
    owners = np.array(balance.contact_submodel, dtype=np.intp)
    unknowns = np.array([contact.unknowns for contact in used], dtype=np.intp)
    carriers = [np.flatnonzero((owners == s) & (unknowns > 0)) for s in range(n_submodels)]
    alone = np.array([len(rows) == 1 and unknowns[rows[0]] == 6 for rows in carriers], dtype=bool)
    sharing = {s: rows for s, rows in enumerate(carriers) if len(rows) and not alone[s]}
    known = np.flatnonzero(unknowns == 0)
    exact = bool(alone.all()) and not len(known)
    frames = _frames(robot, dynamics, balance, used, exact)
    residual_rows = np.array(own_rows(robot, balance), dtype=np.intp)
    ranks = np.zeros(len(robot.submodels), dtype=np.int64)
    ranks[residual_rows[alone]] = 6
    used_imus = np.isin(np.arange(len(robot.imus)), dynamics.imus)
    used_imus &= np.array(working.imus, dtype=bool)
    if working.motion is not None:
        used_imus = working.motion.used.copy()
    used_fts = np.array(working.fts, dtype=bool)
    for shown in (ranks, used_imus, used_fts):
        shown.flags.writeable = False
    directions = [s.direction * on for s, on in zip(robot.ft_sensors, working.fts, strict=True)]
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
        splits=find_splits(balance, frames, sharing, used, active, length_scale),
        residual_rows=residual_rows,
        ranks=ranks,
        quality=quality,
        used_imus=used_imus,
        used_fts=used_fts,
        exact=exact,
        complete=len(residual_rows) == len(robot.submodels)
        and not any((flags & LOST).any() for flags in quality),
        motion=working.motion,
    )


def _frames(
    robot: Robot, dynamics: Dynamics, balance: Balance, used: Sequence[Contact], exact: bool
) -> Frames:
    """Return all frames that a step needs."""
    places = [(top.link, top.L_H_top) for top in dynamics.forest.tops]
    sensors = len(places)
    places += [(sensor.child, sensor.child_H_sensor) for sensor in robot.ft_sensors]
    contacts = len(places)
    places += [robot.frame(contact.frame) for contact in used]
    roots = len(places)
    if not exact:
        places += [(submodel.root, np.eye(4)) for submodel in balance.submodels]
    links = np.array([link for link, _ in places], dtype=np.intp)
    poses = dynamics.geometry.support_H_L[links] @ np.array([pose for _, pose in places])
    return Frames(dynamics.geometry.support[links], row_pose(poses), sensors, contacts, roots)
