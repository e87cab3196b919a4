# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The submodels whose external wrench has to be split, laid out for one solution each size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import Balance
from inertial_estimation.estimation.contact_forces import noise_scale, scaled_basis
from inertial_estimation.estimation.contacts import Contact

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Frames:
    """Frames that move with the robot: tops, FT sensors, active contacts, root links."""

    support: Indices
    """Pose of the geometry that each one is attached to, shape (n_frames,)."""
    pose: Array
    """Row pose relative to it, shape (n_frames, 4, 3) [m]."""
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
    unknowns: int
    """Number of unknowns of each submodel."""
    noise: Array | None
    """Noise of the only sensor; None if several are among the columns, shape (6,)."""
    owner: Array
    """1 where an unknown belongs to a contact, shape (n_active, n * unknowns)."""
    contacts: tuple[Indices, ...]
    """Rows of each submodel's contacts among all that were asked for."""
    starts: tuple[Indices, ...]
    """First unknown of each of these contacts among those of the submodel."""
    torques: tuple[Mask, ...]
    """Which torques hold which of these contacts, each of shape (n_joints, n_contacts)."""
    external: tuple[Mask, ...]
    """External torques likewise."""


def find_splits(
    balance: Balance,
    frames: Frames,
    sharing: Mapping[int, Indices],
    used: Sequence[Contact],
    active: Sequence[int],
    length_scale: float,
) -> tuple[Split, ...]:
    """Group the submodels that have to be split by the size of their problem; length_scale [m]."""
    groups: dict[tuple[int, int], list[int]] = {}
    for s, contacts in sharing.items():
        size = (sum(used[c].unknowns for c in contacts), max(1, len(_sensors(balance, s))))
        groups.setdefault(size, []).append(s)
    return tuple(
        _split(balance, frames, {s: sharing[s] for s in rows}, used, active, length_scale)
        for rows in groups.values()
    )


def _split(
    balance: Balance,
    frames: Frames,
    sharing: Mapping[int, Indices],
    used: Sequence[Contact],
    active: Sequence[int],
    length_scale: float,
) -> Split:
    """Describe submodels of one size."""
    noise = noise_scale(length_scale)
    reference, places, columns, owners, starts = [], [], [], [], []
    for s, contacts in sharing.items():
        sensors = _sensors(balance, s)
        bases = [scaled_basis(used[c].basis(), length_scale) for c in contacts]
        sizes = [len(basis) for basis in bases]
        owner = np.repeat(contacts, sizes)
        starts.append(np.cumsum([0, *sizes[:-1]]))
        owners.append(owner)
        if len(sensors) == 1:
            reference.append(frames.sensors + sensors[0])
            sensors = []
        else:
            reference.append(frames.roots + s)
        disturbed = np.repeat(np.array(sensors, dtype=np.intp), 6)
        places.append(np.concatenate([frames.contacts + owner, frames.sensors + disturbed]))
        columns.append(np.vstack([*bases, *[np.diag(noise)] * len(sensors)]))
    unknowns = len(owners[0])
    return Split(
        rows=np.array(list(sharing), dtype=np.intp),
        reference=np.array(reference, dtype=np.intp),
        frames=np.array(places, dtype=np.intp),
        columns=np.array(columns),
        unknowns=unknowns,
        noise=noise if len(places[0]) == unknowns else None,
        owner=np.equal.outer(np.arange(len(used)), np.concatenate(owners)).astype(np.float64),
        contacts=tuple(np.array(active, dtype=np.intp)[c] for c in sharing.values()),
        starts=tuple(starts),
        torques=tuple(balance.joint_contacts[:, c] != 0 for c in sharing.values()),
        external=tuple(balance.external_contacts[:, c] != 0 for c in sharing.values()),
    )


def _sensors(balance: Balance, s: int) -> list[int]:
    """Return the FT sensors at the borders of a submodel."""
    submodel = balance.submodels[s]
    root = [submodel.root_sensor] if submodel.root_sensor >= 0 else []
    return [*root, *submodel.child_sensors]
