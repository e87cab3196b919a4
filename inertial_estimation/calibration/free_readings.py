# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What FT sensors should say instant by instant while one contact carries the robot [T 4.28].

Every submodel but that of the contact is free then, and the readings that leave no residual in the
free ones are the sum of net wrenches on a sensor's side without the contact. What is unknown
elsewhere does not matter to that sensor.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ShapeError
from inertial_estimation.estimation.balance import subtrees
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]


def free_readings(residuals: Array, slopes: Array, sides: Mask) -> Array:
    """
    Return the readings that leave no residual in free submodels.

    The submodels on a sensor's side feel that sensor and those among them, and no other: as many
    as they are.

    Parameters
    ----------
    residuals : ndarray, shape (n, 6 n_fts)
        Residuals of the free submodels with all readings zero, NaN where unknown [N, Nm].
    slopes : ndarray, shape (n, 6 n_fts, n_fts, 6)
        Their derivatives by the readings.
    sides : ndarray of bool, shape (n_fts, n_fts)
        Which free submodels are on the side of each sensor that is without the contact.

    Returns
    -------
    ndarray, shape (n, n_fts, 6)
        NaN where they are unknown [N, Nm].

    Raises
    ------
    ShapeError
        If the arrays do not belong together.

    """
    n, n_fts = slopes.shape[0], slopes.shape[2]
    for name, array, shape in (
        ('residuals', residuals, (n, 6 * n_fts)),
        ('slopes', slopes, (n, 6 * n_fts, n_fts, 6)),
        ('sides', sides, (n_fts, n_fts)),
    ):
        if array.shape != shape:
            raise ShapeError(name, shape, array.shape)
    found = np.full((n, n_fts, 6), np.nan)
    for k, side in enumerate(sides):
        among = ~(sides & ~side).any(axis=1)
        rows, columns = np.repeat(side, 6), np.repeat(among, 6)
        known = np.isfinite(residuals[:, rows]).all(axis=1)
        matrices = slopes[known].reshape(-1, 6 * n_fts, 6 * n_fts)[:, rows][:, :, columns]
        solved = np.linalg.solve(matrices, -residuals[known][:, rows, None])
        found[known, k] = solved.reshape(-1, int(among.sum()), 6)[:, int(among[:k].sum())]
    return found


def sides_without_support(estimator: WrenchEstimator) -> Mask:
    """
    Tell which submodels are on each sensor's side without the one contact that carries.

    Parameters
    ----------
    estimator : WrenchEstimator
        With that contact alone.

    Returns
    -------
    ndarray of bool, shape (n_fts, n_submodels)

    """
    robot = estimator.robot
    support = robot.frame(estimator.contacts[0].frame)[0]
    subtree = subtrees(robot)
    sides = np.zeros((len(robot.ft_sensors), len(robot.submodels)), dtype=bool)
    for k, sensor in enumerate(robot.ft_sensors):
        beyond = subtree[sensor.child]
        # A submodel is on the side that its root is on: the sensors cut the two apart.
        sides[k] = [(s.root in beyond) != (support in beyond) for s in robot.submodels]
    return sides


def rests_on_assumed(samples: SampleBatch, estimator: WrenchEstimator, sides: Mask) -> Mask:
    """
    Tell for which sensors something assumed enters the sums of the side without support.

    Parameters
    ----------
    samples : SampleBatch
        Their readings do not matter.
    estimator : WrenchEstimator
        With the one contact that carries.
    sides : ndarray of bool, shape (n_fts, n_submodels)
        From `sides_without_support`.

    Returns
    -------
    ndarray of bool, shape (n_fts,)

    """
    blank = replace(samples, ft_readings=np.zeros_like(samples.ft_readings))
    quality = estimator.batch(blank).submodel_quality
    assumed = (quality & np.uint8(Quality.ASSUMED) != 0).any(axis=0)
    resting: Mask = (sides & assumed).any(axis=1)
    return resting
