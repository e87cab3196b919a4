# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts besides the presumed support while offsets are computed from the model.

The offsets absorb the force of another contact. Two signs remain: a contact that is level with the
support may stand on the same ground, and a force that changes is no offset. A constant force
elsewhere shows neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.calibration.offset_from_model import ModelOffsets
from inertial_estimation.calibration.support_loads import FramePoses, proper_acceleration
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding, limit_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

MAX_LEVEL_DIFFERENCE = 0.02
"""Of heights of contacts on the same ground [m]."""
MAX_LEVEL_SHARE = 0.5
"""Of the samples."""
MAX_CHECKED = 500
"""Samples whose heights are computed."""
ROUND_OFF = 1e-9


def second_supports(
    found: ModelOffsets,
    samples: SampleBatch,
    estimator: WrenchEstimator,
    contacts: Sequence[Contact],
) -> Iterator[Finding]:
    """Yield submodels that may carry the robot beside its only support."""
    robot = estimator.robot
    gravity = float(np.linalg.norm(robot.gravity))
    used = np.flatnonzero(found.used.any(axis=1))
    if len(found.supports) > 1 or not len(used) or gravity < ROUND_OFF:
        return
    samples, support, weight = samples.take(used), Contact(found.supports[0]), robot.mass * gravity
    # Offsets of other sensors would appear as forces.
    known = np.isfinite(found.differences[used])
    total = np.where(known, found.differences[used], 0.0).sum(axis=0)
    offsets = total / np.maximum(known.sum(axis=0), 1)
    alone = WrenchEstimator(
        robot, [support], calibration=found.calibration.with_offsets(offsets),
        acceleration_arrays=estimator.motion.arrays,
    )  # fmt: skip
    changes = _force_changes(samples, alone)
    level = _level_shares(samples, robot, support, contacts)
    link = robot.frame(support.frame)[0]
    for row, submodel in enumerate(robot.submodels):
        if link in submodel.links:
            continue
        here = [c for c in contacts if robot.frame(c.frame)[0] in submodel.links]
        named = max(here, key=lambda c: level[c.name], default=None)
        share, part = level[named.name] if named else 0.0, float(changes[row] / weight)
        if share > MAX_LEVEL_SHARE or part > limit_of('second_support'):
            name = named.name if named else submodel.name
            yield finding('second_support', name, share=share, change=part * weight, part=part)


def _force_changes(samples: SampleBatch, estimator: WrenchEstimator) -> Array:
    """Return the standard deviation of each submodel's residual force, (n_submodels,) [N]."""
    forces = estimator.batch(samples).residuals[:, :, :3]
    known = np.isfinite(forces).all(axis=2, keepdims=True)
    count = np.maximum(known.sum(axis=0), 1)
    mean = np.where(known, forces, 0.0).sum(axis=0) / count
    squares = np.where(known, forces - mean, 0.0) ** 2
    found: Array = np.sqrt(squares.sum(axis=(0, 2)) / count[:, 0])
    return found


def _level_shares(
    samples: SampleBatch, robot: Robot, support: Contact, contacts: Sequence[Contact]
) -> dict[str, float]:
    """Return the share of known poses in which each contact is level with the support."""
    rows = np.unique(np.linspace(0, len(samples) - 1, MAX_CHECKED).round().astype(int))
    samples = samples.take(rows)
    poses = FramePoses(robot, samples, missing=np.nan)
    up = proper_acceleration(robot, samples, poses)
    up /= np.linalg.norm(up, axis=1, keepdims=True)
    heights = []
    for contact in (support, *contacts):
        link, L_H_F = robot.frame(contact.frame)
        L_H_C = L_H_F.copy()
        L_H_C[:3, 3] += L_H_F[:3, :3] @ contact.point
        heights.append((poses.of((link, L_H_C))[:, 3] * up).sum(axis=1))
    steps = np.array(heights[1:]) - heights[0]
    count = np.maximum(np.isfinite(steps).sum(axis=1), 1)
    shares = (np.abs(steps) < MAX_LEVEL_DIFFERENCE).sum(axis=1) / count
    return dict(zip((contact.name for contact in contacts), shares.tolist(), strict=True))
