# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The shapes of a robot's samples, checked once, at the public methods."""

from __future__ import annotations

import numpy as np

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch

NUMBERS = (
    'positions',
    'velocities',
    'accelerations',
    'angular_velocities',
    'proper_accelerations',
    'angular_accelerations',
    'ft_readings',
)


class SampleShapes:
    """The shapes of the arrays of a robot's samples."""

    def __init__(self, robot: Robot) -> None:
        joints, imus, fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        needed = [(joints,)] * 3 + [(imus, 3)] * 3 + [(fts, 6)]
        optional = ('joint_states', 'imu_states', 'ft_states', 'ft_temperatures')
        shapes = [*needed, (joints,), (imus,), (fts,), (fts,)]
        may_lack = [False] * len(needed) + [True] * len(optional)
        self._shapes = tuple(zip((*NUMBERS, *optional), shapes, may_lack, strict=True))
        self._counts = f"robot '{robot.name}' has {joints} joints, {imus} IMUs, {fts} FT sensors"

    def check(self, sample: Sample | SampleBatch, wanted: type = SampleBatch) -> None:
        """Refuse anything but a sample, or samples, of this robot."""
        if not isinstance(sample, wanted):
            raise ModelError(f'a {type(sample).__name__} is given, expected a {wanted.__name__}')
        lead = np.shape(sample.stamp_ns) if wanted is SampleBatch else ()
        try:
            for name, shape, may_lack in self._shapes:
                array = getattr(sample, name)
                if may_lack and array is None:
                    continue
                if array.shape != lead + shape:
                    raise ShapeError(name, lead + shape, array.shape, self._counts)
        except AttributeError:
            raise ModelError(f"'{name}' of a sample is no NumPy array") from None
        if wanted is SampleBatch:
            check_numbers(sample)


def check_numbers(sample: Sample | SampleBatch) -> None:
    """Refuse arrays of anything but numbers."""
    for name in NUMBERS:
        array = getattr(sample, name)
        if array.dtype.kind not in 'biuf':
            raise ModelError(f"'{name}' is an array of {array.dtype}, expected numbers")
