# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the effort of a joint is made of: links beyond it, friction, drive inertia and gain."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.rows.choice import RowChoice
from inertial_estimation.identification.rows.friction import JointModel
from inertial_estimation.identification.rows.sparse_rows import Part
from inertial_estimation.identification.unknowns import Term, Unknowns
from inertial_estimation.sample import SampleBatch

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
    choice: RowChoice,
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
