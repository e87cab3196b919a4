# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sensors of a robot: their specifications and places, and the calibration of FT sensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from math import inf

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.arguments import numbers, stacked

MEASURES = ('both', 'accelerometer', 'gyroscope')
"""Quantities that an IMU may measure."""


def read_only(array: object) -> Array:
    """Return a float64 copy that cannot be written to."""
    copy = np.array(array, dtype=np.float64)
    copy.flags.writeable = False
    return copy


def check_unique(kind: str, names: Sequence[str]) -> None:
    """Check that no name stands twice: inputs and outputs are mapped by name."""
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"two {kind} are named '{name}'; names must be unique")


def check_lists(**given: object) -> None:
    """Check that nothing is given alone where a list belongs: a name is a list of letters."""
    for name, value in given.items():
        if isinstance(value, str) or not (value is None or isinstance(value, Iterable)):
            raise ModelError(f"'{name}' is {value!r}, expected a list of names")


@dataclass(frozen=True, eq=False)
class FtSpec:
    """
    A six-axis FT sensor as the URDF tag, or a configuration, describes it.

    The moment is about the origin of the frame of the reading [T 4.1].

    Raises
    ------
    ModelError
        If the frame is not one of these, the pose is not finite, or there is a pose that the
        frame leaves no room for.
    ShapeError
        If the pose has the wrong shape.

    """

    name: str
    joint: str
    """Fixed joint that holds the sensor."""
    frame: str = 'child'
    """``child``: the child link's frame; ``sensor``: `pose` in the child link's frame."""
    child_to_parent: bool = True
    """True: the reading is the wrench of the child side on the parent side."""
    pose: Array = field(default_factory=lambda: np.eye(4))
    """Pose of the sensor in the child link, shape (4, 4) [m]; for ``sensor`` only."""

    def __post_init__(self) -> None:
        # Of frame 'parent', software disagrees about the point of the moment.
        if self.frame not in ('child', 'sensor'):
            raise ModelError(
                f"FT sensor '{self.name}' has frame '{self.frame}', expected 'child' or 'sensor' "
                'with its pose in the child link'
            )
        numbers(f"pose of FT sensor '{self.name}'", self.pose, (4, 4))
        if self.frame == 'child' and not np.array_equal(self.pose, np.eye(4)):
            raise ModelError(f"FT sensor '{self.name}' has a pose, expected frame 'sensor'")


@dataclass(frozen=True, eq=False)
class LinkSensorSpec:
    """
    An IMU, or an accelerometer or gyroscope in its place, as a configuration describes it.

    Raises
    ------
    ModelError
        If the pose is not finite, or no frame is named for it; if it measures nothing that an IMU
        does, or its noise is negative or not finite.
    ShapeError
        If the pose has the wrong shape.

    """

    name: str
    frame: str = ''
    """Place: a sensor tag, link or joint of the URDF; empty: the one of its name."""
    pose: Array | None = None
    """Pose of the sensor in that frame, then a link or joint, shape (4, 4) [m]; None: at it."""
    measures: str = ''
    """
    One of `MEASURES`. Empty: both; but where the IMUs in use name tags of both kinds,
    that of its own tag, unless one of the other kind is there that none names.
    """
    accelerometer_noise: float = 1.0
    """Standard deviation, its weight beside others of its link; 0: exact [m/s^2]."""
    gyroscope_noise: float = 1.0
    """The same of the angular velocity [rad/s]."""

    def __post_init__(self) -> None:
        if self.measures not in ('', *MEASURES):
            raise ModelError(f"IMU '{self.name}' measures '{self.measures}', expected {MEASURES}")
        for kind in ('accelerometer', 'gyroscope'):
            noise = getattr(self, f'{kind}_noise')
            numbers(f"{kind}_noise of IMU '{self.name}'", noise, (), finite=False)
            if not 0.0 <= noise < inf:
                raise ModelError(f"{kind}_noise of IMU '{self.name}' is {noise}")
        if self.pose is not None:
            numbers(f"pose of sensor '{self.name}'", self.pose, (4, 4))
            if not self.frame:
                raise ModelError(f"sensor '{self.name}' has a pose without a frame")


@dataclass(frozen=True, eq=False)
class FtSensor:
    """A six-axis FT sensor of a robot: the fixed joint that is cut [T section 4.3.1]."""

    name: str
    joint: str
    frame: str
    """Name of the frame in which the reading is expressed: ``child`` or ``sensor``."""
    parent: int
    """Index of the link on the side of the URDF root."""
    child: int
    """Index of the link on the other side."""
    child_H_sensor: Array
    """Pose of the sensor frame in the child link's frame, shape (4, 4) [m]."""
    direction: int
    """+1: the reading is the wrench of the child on the parent, -1: of the parent on the child."""


@dataclass(frozen=True, eq=False)
class LinkSensor:
    """An accelerometer or gyroscope: rigidly attached to one link [T section 4.3.2]."""

    name: str
    link: int
    """Index of the link."""
    L_H_S: Array
    """Pose of the sensor in the link's frame, shape (4, 4) [m]."""


@dataclass(frozen=True, eq=False)
class Imu:
    """Accelerometer and gyroscope that report in one frame, or only one of the two."""

    name: str
    frame: str
    """Name of the frame of the readings; the IMU's own, where a pose places it."""
    link: int
    """Index of the link."""
    L_H_S: Array
    """Pose of the frame in the link's frame, shape (4, 4) [m]."""
    measures: str = 'both'
    """One of `MEASURES`; other quantities are not read, whatever its messages hold."""
    accelerometer_noise: float = 1.0
    """Standard deviation, of which ratios within a link count; 0: exact [m/s^2]."""
    gyroscope_noise: float = 1.0
    """The same of the angular velocity [rad/s]."""
    presumed: str = ''
    """
    ``accelerometer`` or ``gyroscope``: quantity without a tag of its own, presumed because many
    URDFs have one tag for a whole IMU. Empty: nothing is presumed.
    """


@dataclass(frozen=True, eq=False)
class FtCalibration:
    """
    Map from raw readings to wrenches: wrench = matrix raw + k (T - T0) - offset.

    Parameters
    ----------
    matrices : ndarray, shape (n_fts, 6, 6)
        Applied to the raw reading first.
    offsets : ndarray, shape (n_fts, 6)
        Subtracted, [force; torque] [N, Nm], in the sensor's frame.
    temperature_coefficients : ndarray, shape (n_fts, 6), optional
        k, the drift with each degree above the reference temperature [N/K, Nm/K]. Default: zero,
        and no temperatures are needed.
    reference_temperatures : ndarray, shape (n_fts,), optional
        T0, at which the offsets hold [degrees Celsius]. Default: zero.

    Raises
    ------
    ShapeError
        If they do not belong to the same number of sensors.
    ModelError
        If it is no numbers, or one is not finite: every estimate would be, with nothing to say
        why.

    """

    matrices: Array
    offsets: Array
    temperature_coefficients: Array = None  # type: ignore[assignment]
    reference_temperatures: Array = None  # type: ignore[assignment]
    needs_temperature: NDArray[np.bool_] = field(init=False, repr=False)
    """Sensors whose readings need their temperature, shape (n_fts,)."""
    is_thermal: bool = field(init=False, repr=False)
    """True if any sensor does."""
    _plain: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check the shapes and keep read-only copies."""
        offsets = stacked('offsets', self.offsets, 6)
        n = len(offsets) if offsets.ndim == 2 else 1
        for name, shape in (
            ('matrices', (n, 6, 6)),
            ('offsets', (n, 6)),
            ('temperature_coefficients', (n, 6)),
            ('reference_temperatures', (n,)),
        ):
            given = getattr(self, name)
            given = np.zeros(shape) if given is None and name[0] in 'tr' else given
            array = numbers(name, given, shape, finite=False)
            if not np.isfinite(array).all():
                raise ModelError(f'{name} of the FT calibration hold NaN or infinity')
            object.__setattr__(self, name, array)
        needs = (self.temperature_coefficients != 0.0).any(axis=1)
        needs.flags.writeable = False
        object.__setattr__(self, 'needs_temperature', needs)
        object.__setattr__(self, '_plain', bool((self.matrices == np.eye(6)).all()))
        object.__setattr__(self, 'is_thermal', bool(needs.any()))

    @classmethod
    def identity(cls, n_fts: int) -> FtCalibration:
        """
        Return the calibration that leaves readings as they are.

        Parameters
        ----------
        n_fts : int
            Number of sensors.

        Returns
        -------
        FtCalibration

        """
        return cls(np.tile(np.eye(6), (n_fts, 1, 1)), np.zeros((n_fts, 6)))

    def with_offsets(self, offsets: Array) -> FtCalibration:
        """
        Return the same calibration with other offsets.

        Parameters
        ----------
        offsets : ndarray, shape (n_fts, 6)
            Subtracted instead [N, Nm].

        Returns
        -------
        FtCalibration

        """
        return replace(self, offsets=offsets)

    def apply(self, raw: Array, temperatures: Array | None = None) -> Array:
        """
        Return the measured wrenches.

        Parameters
        ----------
        raw : ndarray, shape (..., n_fts, 6)
            Raw readings.
        temperatures : ndarray, shape (..., n_fts), optional
            Of the sensors [degrees Celsius]; NaN, or none at all: not known.

        Returns
        -------
        ndarray, shape (..., n_fts, 6)
            [force; torque] in each sensor's frame [N, Nm]; NaN for a sensor that needs a
            temperature that is not known.

        """
        try:
            if self._plain:
                found = raw - self.offsets
            else:
                found = (self.matrices @ raw[..., None])[..., 0] - self.offsets
        except (TypeError, ValueError, IndexError):
            raw = stacked('raw', raw, *self.offsets.shape)
            found = (self.matrices @ raw[..., None])[..., 0] - self.offsets
        if not self.is_thermal:
            return found
        shape = raw.shape[:-1]
        given = np.full(shape, np.nan) if temperatures is None else np.asarray(temperatures)
        if given.shape != shape:
            raise ShapeError('temperatures', shape, given.shape, 'that of the readings')
        warmth = np.where(self.needs_temperature, given - self.reference_temperatures, 0.0)
        return found + warmth[..., None] * self.temperature_coefficients
