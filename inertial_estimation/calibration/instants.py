# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which instants of a log tell offsets, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.stillness import Cause, Stillness, find_motion
from inertial_estimation.calibration.support_loads import SupportLoads
from inertial_estimation.errors import ShapeError
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOUCHED, MOVING, MISSING = 'touched', 'moving', 'missing'
CAUSES_SHOWN = 3


@dataclass(frozen=True, eq=False)
class Instants:
    """Which instants are used."""

    used: Mask
    """By sensor, shape (n, n_fts)."""
    left_out: dict[str, int]
    """
    How many are not, by the first reason of each; an instant that lacks one of several sensors is
    missing, though others use it.
    """
    causes: tuple[Cause, ...] = ()
    """What told that the robot moves."""

    @property
    def any(self) -> Mask:
        """Whether some sensor uses it, shape (n,)."""
        return np.asarray(self.used.any(axis=1))

    @property
    def n_used(self) -> NDArray[np.int64]:
        """How many each sensor uses, shape (n_fts,)."""
        return np.asarray(self.used.sum(axis=0))

    def complaint(self, needed: int, sensors: Mask) -> str:
        """
        Say why there are too few, and what helps.

        Parameters
        ----------
        needed : int
            How many would do.
        sensors : ndarray of bool, shape (n_fts,)
            For which there are too few.

        Returns
        -------
        str

        """
        why = ', '.join(f'{reason} {n}' for reason, n in self.left_out.items() if n)
        told = '; '.join(str(cause) for cause in self.causes[:CAUSES_SHOWN])
        told = f' (moving: {told})' if told else ''
        return (
            f'{self.n_used[sensors].min()} of {len(self.used)} instants can be used, {needed} '
            f'are needed; left out: {why or "none"}{told}: hold the robot still, untouched but '
            'for its supports, for a second or more'
        )


def choose_instants(
    robot: Robot,
    samples: SampleBatch,
    wrenches: Array,
    loads: SupportLoads,
    chosen: Mask,
    stillness: Stillness | None,
    felt: Mask | None,
) -> Instants:
    """
    Choose the instants that tell offsets.

    Parameters
    ----------
    robot : Robot
        Names and gravity.
    samples : SampleBatch
        In the order of their stamps.
    wrenches : ndarray, shape (n, n_fts, 6)
        Readings as wrenches, offsets in them [N, Nm].
    loads : SupportLoads
        What the readings should be.
    chosen : ndarray of bool, shape (n_fts,)
        Sensors that count.
    stillness : Stillness, optional
        How much may move; None: anything.
    felt : ndarray of bool, shape (n,), optional
        When something else touches the robot.

    Returns
    -------
    Instants

    Raises
    ------
    ShapeError
        If `felt` is of other instants.

    """
    n = len(samples)
    felt = np.zeros(n, dtype=bool) if felt is None else np.asarray(felt, dtype=bool)
    if felt.shape != (n,):
        raise ShapeError('felt', (n,), felt.shape, 'one for each instant')
    causes: tuple[Cause, ...] = ()
    moving = np.zeros(n, dtype=bool)
    if stillness is not None:
        moving, causes = find_motion(robot, samples, wrenches, stillness)
    told = np.isfinite(wrenches - loads.readings)
    known: Mask = np.logical_and.reduce(told, axis=2) & chosen
    shared = chosen & loads.shared
    # How the load is shared is found anew at each instant, from all who feel it.
    known[:, shared] = np.logical_and.reduce(known[:, shared], axis=1, keepdims=True)
    quiet = np.ones(n, dtype=bool)
    left_out = {}
    for reason, mask in ((TOUCHED, felt), (MOVING, moving)):
        left_out[reason] = int((quiet & mask).sum())
        quiet &= ~mask
    left_out[MISSING] = int((quiet & ~known[:, chosen].all(axis=1)).sum())
    return Instants(known & quiet[:, None], left_out, causes)
