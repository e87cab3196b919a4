# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Rows as if readings had been calibrated otherwise: what becomes of them when a calibration changes.

Where the offset o of an FT sensor is unknown, rows say R x = rho with o among the x. A calibration
that subtracts D more leaves o - D to be found, so that rho' = rho - R_o D: the same rows with
another right-hand side, exactly, and nothing that was learned is lost. Another matrix, or other
temperature coefficients, would have made other rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.information.evidence import Evidence
from inertial_estimation.identification.information.information import Information
from inertial_estimation.identification.rows.builder import Block
from inertial_estimation.identification.unknowns import FT_OFFSET
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]
Columns = NDArray[np.intp]


def shifted(rows: Information, columns: Columns, change: Array) -> Information:
    """
    Return what rows say of offsets of which more is subtracted already.

    columns (k,); change (k,) [N, Nm].
    """
    return replace(rows, rho=rows.rho - rows.R[:, columns] @ change)


def shifted_evidence(evidence: Evidence, columns: Columns, change: Array) -> Evidence:
    """Return what rows of every kind say of offsets of which more is subtracted already."""
    kinds = {kind: shifted(part, columns, change) for kind, part in evidence.kinds.items()}
    errors = {}
    for kind, rows in evidence.errors.items():
        errors[kind] = rows.copy()
        errors[kind][:, -1] -= rows[:, columns] @ change
    return replace(evidence, kinds=kinds, errors=errors)


def effective_offsets(calibration: FtCalibration) -> Array:
    """
    Return what is subtracted at zero degrees.

    Returns (n_fts, 6) [N, Nm].
    """
    warmth = calibration.temperature_coefficients * calibration.reference_temperatures[:, None]
    return np.asarray(calibration.offsets + warmth)


def has_other_slopes(before: FtCalibration, after: FtCalibration) -> NDArray[np.bool_]:
    """
    Tell of which sensors more has changed than offsets.

    Returns (n_fts,).
    """
    matrices = (before.matrices != after.matrices).any(axis=(1, 2))
    slopes = before.temperature_coefficients != after.temperature_coefficients
    return np.asarray(matrices | slopes.any(axis=1))


class CalibrationChange:
    """What a change of the calibration does to the rows of submodels."""

    def __init__(self, robot: Robot, before: FtCalibration, after: FtCalibration) -> None:
        self._robot = robot
        self._change = effective_offsets(after) - effective_offsets(before)
        self._slopes = has_other_slopes(before, after)

    def shift(self, block: Block) -> Array | None:
        """
        Return how the unknown offsets of a submodel change.

        Returns (k,) [N, Nm].
        """
        if not block.kinds:
            return on_columns(block, {})
        sensors, links = self._robot.ft_sensors, set(block.submodel.links)
        beside = [k for k, one in enumerate(sensors) if links & {one.parent, one.child}]
        moved = {sensors[k].name: self._change[k] for k in beside if self._change[k].any()}
        unknown = {extra.of for extra in block.unknowns.extras if extra.term in FT_OFFSET}
        if self._slopes[beside].any() or not moved.keys() <= unknown:
            return None
        return on_columns(block, moved)


def on_columns(block: Block, change: Mapping[str, Array]) -> Array:
    """
    Return a change of the offsets of sensors as one of the unknowns of a submodel.

    change (6,) [N, Nm]; returns (k,).
    """
    none = np.zeros(len(FT_OFFSET))
    offsets = (extra for extra in block.unknowns.extras if extra.term in FT_OFFSET)
    return np.array([change.get(one.of, none)[FT_OFFSET.index(one.term)] for one in offsets])
