# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Mean and rms of wrenches, torques and residuals."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.logs.figures import EstimatedTorqueReport, ResidualReport, WrenchReport
from inertial_estimation.logs.replay import Replay
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]

UNFIT = ~np.uint8(Quality.ASSUMED)
"""Results with another flag than that are not judged."""
AXES = {'wrenches': 6, 'torques': 1, 'residuals': 6}


def wrench_reports(replay: Replay, judged: Mask, assumed: Mask) -> tuple[WrenchReport, ...]:
    """
    Sum up the wrench of each contact.

    Parameters
    ----------
    replay : Replay
        Its ``clean`` estimate is summed up.
    judged : ndarray of bool, shape (n,)
        Samples that count.
    assumed : ndarray of bool, shape (n_contacts,)
        What rests on assumed joints through the offset of a sensor.

    Returns
    -------
    tuple of WrenchReport

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

    Parameters
    ----------
    replay : Replay
        With or without standard deviations.
    rows : ndarray of bool, shape (n,)
        Samples that count.
    kind : str
        ``wrenches``, ``torques`` or ``residuals``.
    column : int
        Which of them.

    Returns
    -------
    tuple of float
        One for each axis, or one; NaN if there is none, infinity if one is.

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

    Parameters
    ----------
    replay : Replay
        Its ``clean`` estimate is summed up.
    judged : ndarray of bool, shape (n,)
        Samples that count.
    assumed : ndarray of bool, shape (n_joints,)
        What rests on assumed joints through the offset of a sensor.

    Returns
    -------
    tuple of EstimatedTorqueReport

    """
    estimate, reports = replay.clean, []
    for j, joint in enumerate(replay.robot.joint_names):
        quality = estimate.torque_quality[:, j]
        rows = judged & (quality & UNFIT == 0)
        values = estimate.torques[rows, j : j + 1]
        reports.append(
            EstimatedTorqueReport(
                joint=joint,
                assumed=bool(assumed[j] or (quality[rows] & Quality.ASSUMED).any()),
                n_samples=int(rows.sum()),
                mean=_per_axis(values)[0],
                rms=math.sqrt(_per_axis(values**2)[0]),
                standard_deviation=mean_deviation(replay, rows, 'torques', j)[0],
            )
        )
    return tuple(reports)


def residual_reports(replay: Replay, judged: Mask) -> tuple[ResidualReport, ...]:
    """
    Sum up what is left where no contact takes up the whole wrench.

    Parameters
    ----------
    replay : Replay
        Its ``clean`` estimate is summed up.
    judged : ndarray of bool, shape (n,)
        Samples that count.

    Returns
    -------
    tuple of ResidualReport

    """
    estimate, robot, reports = replay.clean, replay.robot, []
    full = {robot.frame(c.frame)[0] for c in estimate.contacts if c.kind == 'wrench'}
    for s, submodel in enumerate(robot.submodels):
        if full & set(submodel.links):
            continue
        quality = estimate.submodel_quality[:, s]
        rows = judged & (quality & UNFIT == 0)
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
