# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Residuals of IMU orientations and of magnetometers: prediction minus reading [T 4.5, 4.6].

An IMU reports its axes in a reference frame of its own, constant but unknown: between two IMUs
only the rotation from one such frame to the other is constant, estimated from all instants by
a mean that outliers do not move. A log without rotation, or of one instant, agrees with anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.faults import ABSURD
from inertial_estimation.estimation.relative_rotation import FIXED, NOBODY, RelativeRotations
from inertial_estimation.model.arguments import names as text_names
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu, LinkSensor

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


CANDIDATES = 60
"""Readings, evenly spread, of which one is the start; each is held against all."""
REACH = 3.0
"""Of the median distance: Gaussian noise in three directions has one in 10^5 beyond it."""
ROUND_OFF = 1e-12
"""Of the size of the readings: exact ones differ by so little."""
MOST_ROUNDS = 30
"""Of taking the mean; which readings are near settles after a few."""


def robust_vector(vectors: Array) -> Array:
    """Return the vector that most readings agree on; vectors (n, m); returns (m,)."""
    return _robust(vectors, lambda mean: mean)


def robust_rotation(rotations: Array) -> Array:
    """Return the rotation that most readings agree on; rotations (n, 3, 3); returns (3, 3)."""
    return _robust(rotations.reshape(-1, 9), _nearest_rotation).reshape(3, 3)


def _robust(points: Array, project: Callable[[Array], Array]) -> Array:
    """Return the projected mean of the points that are near to it, NaN if there are none."""
    points = points[np.isfinite(points).all(axis=1)]
    if not len(points):
        return np.full(points.shape[1], np.nan)
    centre, kept = _start(points), np.zeros(len(points), dtype=bool)
    for _ in range(MOST_ROUNDS):
        near = _near(points, centre)
        if (near == kept).all():
            break
        kept, centre = near, project(points[near].mean(axis=0))
    return centre


def _start(points: Array) -> Array:
    """Return the candidate with the smallest median distance to all points."""
    n = len(points)
    candidates = np.unique(np.linspace(0, n - 1, min(n, CANDIDATES)).round().astype(np.intp))
    medians = [np.median(_distances(points, points[k])) for k in candidates]
    return np.asarray(points[candidates[int(np.argmin(medians))]])


def _near(points: Array, centre: Array) -> Mask:
    """Return which points count; always half of them or more."""
    distances = _distances(points, centre)
    least = ROUND_OFF * float(np.abs(centre).max())
    return np.asarray(distances <= max(REACH * float(np.median(distances)), least))


def _distances(points: Array, centre: Array) -> Array:
    """Return Euclidean distances; those of rotation matrices grow with the angle between them."""
    return np.asarray(np.linalg.norm(points - centre, axis=1))


def _nearest_rotation(matrix: Array) -> Array:
    """Return the rotation nearest to a matrix, as nine numbers."""
    left, _, right = np.linalg.svd(matrix.reshape(3, 3))
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    return np.asarray((left * signs @ right).reshape(9))


Sensors = Iterable[LinkSensor | Imu | str]

ORTHONORMAL = 1e-5
"""Of R^T R: what single precision leaves of a rotation, with room."""


class OrientationResiduals(NamedTuple):
    """Prediction minus reading of IMU orientations, over some instants."""

    rotations: Array
    """
    Rotation vector from the reading to the prediction, in the IMU's axes, (n, n_imus, 3) [rad].

    NaN where the IMU or its source has no reading, or a joint between them is missing.
    """
    references: Array
    """
    source_ref_R_ref: axes of the IMU's reference frame in that of its source, (n_imus, 3, 3).

    With a fixed link in the axes of that one. NaN where it is never known.
    """


class ReferenceFields(NamedTuple):
    """The magnetic field in the reference frame of each IMU."""

    residuals: Array
    """Prediction minus reading in the magnetometer's axes, shape (n, n_imus, 3) [T]."""
    fields: Array
    """ref_field, the same all the time, shape (n_imus, 3) [T]; NaN where it is never known."""


def orientation_residuals(
    robot: Robot, positions: Array, orientations: Array, imus: Sensors | None = None
) -> OrientationResiduals:
    """
    Predict the orientation of each IMU from the fixed link, or else from the nearest other IMU.

    positions (n, n_joints) [rad or m]; orientations (n, n_imus, 3, 3).
    """
    relative = RelativeRotations(robot, imus)
    source_R_S = relative.of(positions)
    ref_R_S = _rotations(orientations, len(source_R_S), relative.names)
    rotations = np.full(ref_R_S.shape[:-1], np.nan)
    references = np.full(ref_R_S.shape[1:], np.nan)
    for k, source in enumerate(relative.sources):
        if source == NOBODY:
            continue
        through = source_R_S[:, k]
        sourceref_R_S = through if source == FIXED else ref_R_S[:, source] @ through
        references[k] = robust_rotation(sourceref_R_S @ _transposed(ref_R_S[:, k]))
        predicted = references[k].T @ sourceref_R_S
        rotations[:, k] = _rotation_vectors(_transposed(ref_R_S[:, k]) @ predicted)
    return OrientationResiduals(rotations, references)


def field_residuals(
    robot: Robot, positions: Array, fields: Array, magnetometers: Sensors | None = None
) -> Array:
    """
    Predict each magnetometer from the nearest other one, through the joints between [T 4.5].

    positions (n, n_joints) [rad or m]; fields (n, n_magnetometers, 3); returns (n,
    n_magnetometers, 3).
    """
    relative = RelativeRotations(robot, magnetometers)
    source_R_S = relative.of(positions)
    S_fields = _fields(fields, len(source_R_S), relative.names)
    found = np.full(S_fields.shape, np.nan)
    for k, source in enumerate(relative.sources):
        through = source_R_S[:, k]
        if source == FIXED:
            found[:, k] = _constant_field(through, S_fields[:, k])[0]
        elif source != NOBODY:
            found[:, k] = _seen_from(through, S_fields[:, source]) - S_fields[:, k]
    return found


def reference_field_residuals(
    orientations: Array, fields: Array, names: Sequence[str] = ()
) -> ReferenceFields:
    """
    Predict each magnetometer from the orientation of its own IMU [T 4.5, 4.6].

    orientations (n, n_imus, 3, 3); fields (n, n_imus, 3).
    """
    shape = np.shape(fields)
    if len(shape) != 3:
        raise ShapeError('fields', ('n', 'n_imus', 3), shape)
    names = text_names('names', names) or tuple(str(k) for k in range(shape[1]))
    ref_R_S = _rotations(orientations, shape[0], names)
    S_fields = _fields(fields, shape[0], names)
    found = [_constant_field(ref_R_S[:, k], S_fields[:, k]) for k in range(len(names))]
    residuals = np.array([each for each, _ in found]).reshape(len(names), shape[0], 3)
    constants = np.array([constant for _, constant in found]).reshape(-1, 3)
    return ReferenceFields(residuals.swapaxes(0, 1), constants)


def _constant_field(ref_R_S: Array, S_fields: Array) -> tuple[Array, Array]:
    """Return the residuals (n, 3) of a field that is constant in a frame, and the field (3,)."""
    ref_field = robust_vector(_seen_from(_transposed(ref_R_S), S_fields))
    return ref_field @ ref_R_S - S_fields, ref_field


def _seen_from(A_R_B: Array, A_vectors: Array) -> Array:
    """Return vectors in the axes of B, shape (n, 3)."""
    return np.asarray((A_vectors[:, None, :] @ A_R_B)[:, 0])


def _transposed(rotations: Array) -> Array:
    return np.swapaxes(rotations, -1, -2)


def _rotation_vectors(rotations: Array) -> Array:
    """Return rotation vectors (n, 3) [rad], NaN where a matrix is."""
    known = np.isfinite(rotations).all(axis=(1, 2))
    found = np.full((len(rotations), 3), np.nan)
    if known.any():
        found[known] = Rotation.from_matrix(rotations[known]).as_rotvec()
    return found


def _rotations(given: object, n: int, names: Sequence[str]) -> Array:
    """Return orientations (n, n_imus, 3, 3), all NaN where a number is missing."""
    R = _readings('orientations', given, (n, len(names), 3, 3))
    errors = np.abs(_transposed(R) @ R - np.eye(3)).max(axis=(2, 3))
    volumes = (np.cross(R[..., 0], R[..., 1]) * R[..., 2]).sum(axis=-1)
    wrong = (errors > ORTHONORMAL) | (volumes < 0.0)
    if wrong.any():
        instant, k = np.argwhere(wrong)[0]
        raise ModelError(
            f"'orientations' of IMU '{names[k]}' at instant {instant} is no rotation: R^T R is "
            f'{errors[instant, k]:.2g} from the identity, det R {volumes[instant, k]:.2g}; give '
            'ref_R_S, or NaN where it is not known'
        )
    return R


def _fields(given: object, n: int, names: Sequence[str]) -> Array:
    """Return fields (n, n_magnetometers, 3), all NaN where a number is missing."""
    return _readings('fields', given, (n, len(names), 3))


def _readings(argument: str, given: object, shape: tuple[int, ...]) -> Array:
    """Return readings of sensors, NaN where one has a number that no sensor means."""
    readings = numbers(argument, given, shape, finite=False)
    lost = ~(np.abs(readings) < ABSURD).all(axis=tuple(range(2, len(shape))), keepdims=True)
    return np.where(lost, np.nan, readings)
