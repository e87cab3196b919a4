# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which instants of a log tell offsets, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.free_splits import projections
from inertial_estimation.calibration.momentum_watch import find_contradictions
from inertial_estimation.calibration.poses import find_poses
from inertial_estimation.calibration.stillness import Cause, Moving, Stillness, find_motion
from inertial_estimation.calibration.sudden_touches import find_touches
from inertial_estimation.calibration.support_loads import SupportLoads
from inertial_estimation.errors import ShapeError
from inertial_estimation.estimation.contacts import noise_scale
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

TOUCHED, MOVING, MOMENTUM, MISSING = 'touched', 'moving', 'momentum', 'missing'
CAUSES_SHOWN = 3


class Watched(NamedTuple):
    """What is known of the instants of a log."""

    robot: Robot
    samples: SampleBatch
    """In the order of their stamps."""
    free: WrenchEstimate
    """From `free_estimate` of them."""
    wrenches: Array
    """Readings as wrenches, offsets in them, shape (n, n_fts, 6) [N, Nm]."""
    loads: SupportLoads
    """What the readings should be."""
    length_scale: float
    """Moment over force that counts as equally large [m]."""


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
    causes: tuple[Cause, ...]
    """What told that the robot moves."""
    poses: NDArray[np.intp]
    """Pose of each, shape (n,); -1: not held."""

    @property
    def n_used(self) -> NDArray[np.int64]:
        """How many each sensor uses, shape (n_fts,)."""
        return np.asarray(self.used.sum(axis=0))

    def complaint(self, needed: int, sensors: Mask) -> str:
        """
        Say why there are too few, and what helps.

        sensors (n_fts,).
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
    watched: Watched, chosen: Mask, stillness: Stillness | None, felt: Mask | None
) -> Instants:
    """
    Choose the instants that tell offsets.

    chosen (n_fts,); felt (n,).
    """
    samples, loads = watched.samples, watched.loads
    n = len(samples)
    felt = np.zeros(n, dtype=bool) if felt is None else np.asarray(felt, dtype=bool)
    if felt.shape != (n,):
        raise ShapeError('felt', (n,), felt.shape, 'one for each instant')
    moving = Moving(np.zeros(n, dtype=bool), ())
    contradicted = np.zeros(n, dtype=bool)
    weight = watched.robot.mass * float(np.linalg.norm(watched.robot.gravity))
    if stillness is not None:
        moving = find_motion(watched.robot, samples, watched.wrenches, stillness)
        if np.isfinite(stillness.momentum):
            contradicted = find_contradictions(
                watched.robot, samples, watched.free, stillness.momentum * weight
            )
    known = _known(watched, chosen)
    quiet = ~(felt | moving.mask | contradicted)
    labels, touched = np.full(n, -1), np.zeros(n, dtype=bool)
    if stillness is not None and stillness.holds_poses:
        labels = find_poses(samples.positions, loads.gravity, quiet & known.any(axis=1))
        differences = np.where(known[..., None], watched.wrenches - loads.readings, np.nan)
        plain = _without_sharing(differences, loads, chosen & loads.shared, watched.length_scale)
        touched = find_touches(plain, labels, samples.stamp_ns, weight)
    left = np.ones(n, dtype=bool)
    left_out = dict.fromkeys((TOUCHED, MOVING, MOMENTUM, MISSING), 0)
    for reason, mask in (
        (TOUCHED, felt), (MOVING, moving.mask), (MOMENTUM, contradicted),
        (TOUCHED, touched), (MISSING, ~known[:, chosen].all(axis=1)),
    ):  # fmt: skip
        left_out[reason] += int((left & mask).sum())
        left &= ~mask
    used = known & (quiet & ~touched)[:, None]
    return Instants(used, left_out, moving.causes, labels)


def _known(watched: Watched, chosen: Mask) -> Mask:
    """Tell which chosen sensors have a reading and a prediction, shape (n, n_fts)."""
    told = np.isfinite(watched.wrenches - watched.loads.readings)
    known: Mask = np.logical_and.reduce(told, axis=2) & chosen
    shared = chosen & watched.loads.shared
    # How the load is shared is found anew at each instant, from all who feel it.
    known[:, shared] = np.logical_and.reduce(known[:, shared], axis=1, keepdims=True)
    return known


def _without_sharing(
    differences: Array, loads: SupportLoads, shared: Mask, length_scale: float
) -> Array:
    """Return differences that no change of the sharing changes."""
    if not shared.any():
        return differences
    plain = differences.copy()
    n = len(differences)
    scale = np.tile(noise_scale(length_scale), int(shared.sum()))
    freedom = loads.freedom[:, shared].reshape(n, len(scale), -1) / scale[:, None]
    flat = differences[:, shared].reshape(n, -1, 1) / scale[:, None]
    known: Mask = np.logical_and.reduce(np.isfinite(flat), axis=(1, 2))
    flat[known] = projections(freedom[known]) @ flat[known]
    plain[:, shared] = (flat[..., 0] * scale).reshape(n, -1, 6)
    return plain
