# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mean and rms of wrenches, torques and residuals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.estimate import Flags, Quality
from inertial_estimation.logs.figures import EstimatedTorqueReport, ResidualReport, WrenchReport
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.situations import GONE
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]

UNFIT = ~np.uint8(Quality.ASSUMED)
"""Results with another flag than that are not judged."""
AXES = {'wrenches': 6, 'torques': 1, 'external_torques': 1, 'residuals': 6}


def wrench_reports(replay: Replay, judged: Mask, assumed: Mask) -> tuple[WrenchReport, ...]:
    """
    Sum up the wrench of each contact.

    judged (n,); assumed (n_contacts,).
    """
    reports = []
    estimate = replay.clean
    for c, contact in enumerate(estimate.contacts):
        quality = estimate.contact_quality[:, c]
        rows = judged & (quality & UNFIT == 0)
        values = estimate.wrenches[rows, c]
        reports.append(
            WrenchReport(
                contact=contact.name,
                frame=contact.frame,
                assumed=bool(assumed[c] or (quality[rows] & Quality.ASSUMED).any()),
                n_samples=int(rows.sum()),
                mean=_per_axis(values),
                rms=tuple(math.sqrt(square) for square in _per_axis(values**2)),
                standard_deviation=mean_deviation(replay, rows, 'wrenches', c),
            )
        )
    return tuple(reports)


def mean_deviation(replay: Replay, rows: Mask, kind: str, column: int) -> tuple[float, ...]:
    """
    Return the mean standard deviation of a result.

    rows (n,).
    """
    found = replay.deviations
    if found is None:
        return (math.nan,) * 6
    values = getattr(found, kind)[rows[found.rows], column].reshape(-1, AXES[kind])
    return _per_axis(values[~np.isnan(values).any(axis=1)])


def _per_axis(values: Array) -> tuple[float, ...]:
    """Return the mean of each column, NaN if there are no rows."""
    return tuple(values.mean(axis=0).tolist()) if len(values) else (math.nan,) * values.shape[1]


def estimated_torque_reports(
    replay: Replay, judged: Mask, assumed: Mask
) -> tuple[EstimatedTorqueReport, ...]:
    """
    Sum up the torque of each joint.

    judged (n,); assumed (n_joints,).
    """
    quality = replay.clean.torque_quality
    return _torque_reports(replay, judged, assumed, 'torques', quality)


def external_torque_reports(
    replay: Replay, judged: Mask, assumed: Mask
) -> tuple[EstimatedTorqueReport, ...]:
    """
    Sum up what the external wrenches do to each joint.

    judged (n,); assumed (n_contacts,).
    """
    estimate = replay.clean
    if not estimate.contacts:
        return ()
    through: Mask = np.logical_or.reduce(_loads(replay) & assumed, axis=1)
    quality = estimate.external_torque_quality
    return _torque_reports(replay, judged, through, 'external_torques', quality)


def _loads(replay: Replay) -> Mask:
    """Tell which contacts load which joints, (n_joints, n_contacts): those beyond it."""
    robot, contacts = replay.robot, replay.clean.contacts
    links = [robot.frame(contact.frame)[0] for contact in contacts]
    found = np.zeros((len(robot.joint_names), len(contacts)), dtype=bool)
    for link, beyond in zip(robot.links, subtrees(robot), strict=True):
        if link.joint >= 0:
            found[link.joint] = np.isin(links, beyond) != (robot.base in beyond)
    return found


def _torque_reports(
    replay: Replay, judged: Mask, assumed: Mask, kind: str, qualities: Flags
) -> tuple[EstimatedTorqueReport, ...]:
    """Sum up torques of one kind, with their qualities (n, n_joints)."""
    torques, reports = getattr(replay.clean, kind), []
    for j, joint in enumerate(replay.robot.joint_names):
        quality = qualities[:, j]
        rows = judged & (quality & UNFIT == 0)
        values = torques[rows, j : j + 1]
        reports.append(
            EstimatedTorqueReport(
                joint=joint,
                assumed=bool(assumed[j] or (quality[rows] & Quality.ASSUMED).any()),
                n_samples=int(rows.sum()),
                mean=_per_axis(values)[0],
                rms=math.sqrt(_per_axis(values**2)[0]),
                standard_deviation=mean_deviation(replay, rows, kind, j)[0],
            )
        )
    return tuple(reports)


def residual_reports(replay: Replay, judged: Mask) -> tuple[ResidualReport, ...]:
    """
    Sum up what is left where no contact takes up the whole wrench.

    judged (n,).
    """
    estimate, robot, reports = replay.clean, replay.robot, []
    for s, submodel in enumerate(robot.submodels):
        quality = estimate.submodel_quality[:, s]
        open_ = _is_open(replay, submodel, quality)
        if not open_.any():
            continue
        rows = judged & open_ & (quality & UNFIT == 0)
        values = estimate.residuals[rows, s]
        reports.append(
            ResidualReport(
                submodel=submodel.name,
                assumed=bool((quality[rows] & Quality.ASSUMED).any()),
                n_samples=int(rows.sum()),
                mean=_per_axis(values),
                rms=tuple(math.sqrt(square) for square in _per_axis(values**2)),
                standard_deviation=mean_deviation(replay, rows, 'residuals', s),
            )
        )
    return tuple(reports)


def _is_open(replay: Replay, submodel: Submodel, quality: Flags) -> Mask:
    """Tell at which samples (n,) no contact of a submodel takes up the whole wrench."""
    robot, estimate = replay.robot, replay.clean
    full = np.array(
        [
            contact.kind == 'wrench' and robot.frame(contact.frame)[0] in submodel.links
            for contact in estimate.contacts
        ],
        dtype=bool,
    )
    if not full.any():
        return np.ones(len(quality), dtype=bool)
    gone = (estimate.contact_quality[:, full] & GONE) != 0
    # A merged submodel may have the contact of the other one.
    found: Mask = np.logical_and.reduce(gone, axis=1) & (quality & np.uint8(Quality.MERGED) == 0)
    return found
