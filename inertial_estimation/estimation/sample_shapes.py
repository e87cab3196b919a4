# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the estimator is given by a caller: refused here if it cannot be used.
"""

from __future__ import annotations

import numpy as np

from inertial_estimation.errors import InertialEstimationError, ModelError, ShapeError
from inertial_estimation.model.arguments import check_kind
from inertial_estimation.model.inertia import first_moment_complaint, has_centre_of_mass
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
    """The shapes that the arrays of a robot's samples have."""

    def __init__(self, robot: Robot) -> None:
        joints, imus, fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        self._needed: tuple[tuple[str, tuple[int, ...]], ...] = (
            ('positions', (joints,)),
            ('velocities', (joints,)),
            ('accelerations', (joints,)),
            ('angular_velocities', (imus, 3)),
            ('proper_accelerations', (imus, 3)),
            ('angular_accelerations', (imus, 3)),
            ('ft_readings', (fts, 6)),
        )
        self._optional = (
            ('joint_states', (joints,)),
            ('imu_states', (imus,)),
            ('ft_states', (fts,)),
            ('ft_temperatures', (fts,)),
        )
        self._counts = (
            f"robot '{robot.name}' has {joints} joints, {imus} IMUs and {fts} FT sensors"
        )

    def check(self, sample: Sample | SampleBatch, lead: tuple[int, ...]) -> None:
        """Raise if an array has the wrong shape."""
        try:
            for name, shape in self._needed:
                array = getattr(sample, name)
                if getattr(array, 'shape', None) != lead + shape:
                    check_sample(sample, lead)
                    raise self._misfit(name, lead + shape, array)
            for name, shape in self._optional:
                array = getattr(sample, name)
                if array is not None and getattr(array, 'shape', None) != lead + shape:
                    raise self._misfit(name, lead + shape, array)
        except AttributeError:
            check_sample(sample, lead)
            raise

    def _misfit(self, name: str, shape: tuple[int, ...], given: object) -> InertialEstimationError:
        """Return what is wrong with an array."""
        if given is None:
            return ShapeError(name, shape, (), self._counts)
        if isinstance(given, np.ndarray):
            return ShapeError(name, shape, given.shape, self._counts)
        kind = type(given).__name__
        return ModelError(f"'{name}' is a {kind}, expected a NumPy array: make it np.array(...)")


def check_sample(given: object, lead: tuple[int, ...] = ()) -> None:
    """Refuse what is no sample, or many where one is wanted."""
    if lead:
        remedy = 'SampleBatch.stack([...]) makes one of samples'
        samples: SampleBatch = check_kind('samples', given, SampleBatch, remedy)
        if np.ndim(samples.stamp_ns) != 1:
            raise ShapeError('stamp_ns', ('n',), np.shape(samples.stamp_ns))
    else:
        check_kind('sample', given, Sample, 'take one instant; `batch` estimates many')


def check_numbers(sample: Sample | SampleBatch) -> None:
    """Refuse arrays of anything but numbers."""
    for name in NUMBERS:
        array = getattr(sample, name)
        if array.dtype.kind not in 'biuf':
            raise ModelError(f"'{name}' is an array of {array.dtype}, expected numbers")


def check_parameters(robot: Robot) -> None:
    """Refuse inertial parameters that would make every estimate NaN, or would be cut short."""
    finite = np.isfinite(robot.parameters).all(axis=1)
    if not finite.all():
        name = robot.link_names[int(np.argmin(finite))]
        raise ModelError(f"link '{name}' has inertial parameters that are not finite")
    largest = float(np.abs(robot.parameters).max())
    fine = has_centre_of_mass(robot.parameters, largest)
    if not fine.all():
        k = int(np.argmin(fine))
        complaint = first_moment_complaint(robot.parameters[k], largest)
        raise ModelError(
            f"link '{robot.link_names[k]}' {complaint}; give it a mass, or its neighbours what it "
            'carries'
        )
