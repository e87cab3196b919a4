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
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.forest import build_geometry
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding, limit_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

MAX_LEVEL_DIFFERENCE = 0.02
"""Of heights of contacts on the same ground [m]."""
MAX_LEVEL_SHARE = 0.5
"""Of the samples."""
MAX_CHECKED = 500
"""Samples whose heights are computed."""
ROUND_OFF = 1e-9


def second_supports(
    samples: SampleBatch, estimator: WrenchEstimator, contacts: Sequence[Contact]
) -> Iterator[Finding]:
    """Yield submodels that may carry the robot beside the only contact of the estimator."""
    robot = estimator.robot
    gravity = float(np.linalg.norm(robot.gravity))
    support = estimator.contacts[0]
    if not len(samples) or gravity < ROUND_OFF:
        return
    weight = robot.mass * gravity
    changes = _force_changes(samples, estimator)
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
    known: Mask = np.logical_and.reduce(np.isfinite(forces), axis=2)
    count = np.maximum(known.sum(axis=0), 1)
    forces = np.where(known[..., None], forces, 0.0)
    centred = np.where(known[..., None], forces - forces.sum(axis=0) / count[:, None], 0.0)
    changes: Array = np.sqrt((centred**2).sum(axis=(0, 2)) / count)
    return changes


def _level_shares(
    samples: SampleBatch, robot: Robot, support: Contact, contacts: Sequence[Contact]
) -> dict[str, float]:
    """Return the share of known poses in which each contact is level with the support."""
    geometry = build_geometry(robot)
    data = geometry.model.createData()

    def pose(link: int, L_H_F: Array) -> Array:
        joint = int(geometry.support[link])
        root_H_F: Array = data.oMi[joint].homogeneous @ geometry.support_H_L[link] @ L_H_F
        return root_H_F

    frames = [(robot.frame(one.frame), (*one.point, 1.0)) for one in (support, *contacts)]
    rows = np.unique(np.linspace(0, len(samples) - 1, MAX_CHECKED).round().astype(int))
    heights = np.full((len(rows), len(frames)), np.nan)
    for k, row in enumerate(rows):
        pin.forwardKinematics(geometry.model, data, samples.positions[row])
        if robot.fixed_frame:
            up = pose(*robot.frame(robot.fixed_frame))[:3, :3] @ -robot.gravity
        else:
            accelerations = samples.proper_accelerations[row]
            known = np.isfinite(accelerations).all(axis=1)
            if not known.any():
                continue
            imu = int(np.argmax(known))
            sensor = robot.imus[imu]
            up = pose(sensor.link, sensor.L_H_S)[:3, :3] @ accelerations[imu]
        places = np.array([pose(*frame) @ point for frame, point in frames])
        heights[k] = places[:, :3] @ up / np.linalg.norm(up)
    steps = heights[:, 1:] - heights[:, :1]
    count = np.maximum(np.isfinite(steps).sum(axis=0), 1)
    shares = (np.abs(steps) < MAX_LEVEL_DIFFERENCE).sum(axis=0) / count
    return dict(zip((contact.name for contact in contacts), shares.tolist(), strict=True))
