# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What makes wrenches of the readings of a running robot: changed as a whole, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.calibration_file import SensorCalibration, stack_calibrations
from inertial_estimation.calibration.wrench_axes import require_sensor_axes
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

WORST_CONDITION = 1e3
"""
Of a matrix whose rows, then columns, were scaled to one length: those of 32 real sensors have 2.
"""


class CalibrationInUse:
    """The calibration of each FT sensor, and who has to know when it changes."""

    def __init__(
        self,
        robot: Robot,
        start: Mapping[str, SensorCalibration],
        followers: Iterable[Callable[[FtCalibration], None]],
    ) -> None:
        self._robot = robot
        for name, sensor in start.items():
            require_usable(name, sensor)
        self.start = MappingProxyType(dict(start))
        """As configured."""
        self.untared = self.start
        """As configured, or as restored since: what a tare goes back to."""
        self.sensors = self.start
        """In use, in the order of the robot's FT sensors."""
        self._followers = tuple(followers)

    @property
    def stacked(self) -> FtCalibration:
        """That of all sensors."""
        return stack_calibrations(self.sensors.values())

    def take(self, changed: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """
        Go on with other calibrations of some sensors, or with none of them if one is refused.
        """
        for name, sensor in changed.items():
            if name not in self.sensors:
                raise NameNotFound('FT sensor', name, tuple(self.sensors))
            require_usable(name, sensor)
        before = self.sensors
        self.sensors = MappingProxyType({**before, **changed})
        stacked = self.stacked
        for follow in self._followers:
            follow(stacked)
        return tuple(name for name in changed if not _alike(before[name], changed[name]))

    def restore(self, robot: str, given: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Go on with what a file says, as after a start with it."""
        changed = self.take(self._of_robot(robot, given))
        self.untared = self.sensors
        return changed

    def lacking(self, given: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Return the sensors that `restore` takes back to what is configured."""
        return tuple(name for name in self.start if name not in given)

    def clear_tare(self) -> tuple[str, ...]:
        """Go back to what was configured or restored last."""
        return self.take(self.untared)

    def _of_robot(
        self, robot: str, given: Mapping[str, SensorCalibration]
    ) -> dict[str, SensorCalibration]:
        """Return the calibration of every sensor: those that are not given are as configured."""
        if robot and robot != self._robot.name:
            raise ConfigError(f"it is of robot '{robot}', not of '{self._robot.name}'")
        if not any(name in self.start for name in given):
            raise ConfigError(
                f'it is of {", ".join(given) or "no sensor"}; FT sensors in use are '
                f'{", ".join(self.start) or "none"}'
            )
        return {name: given.get(name, sensor) for name, sensor in self.start.items()}


def require_usable(name: str, sensor: SensorCalibration) -> None:
    """Raise unless the matrix of a sensor tells six axes apart, which are those of the sensor."""
    require_sensor_axes(name, sensor.axes)
    condition = scaled_condition(sensor.matrix)
    if not condition <= WORST_CONDITION:
        raise ConfigError(
            f"the matrix of '{name}' has a condition number of {condition:.3g} with rows and "
            f'columns scaled, expected at most {WORST_CONDITION:g}: it does not tell six axes '
            'apart; calibrate it anew'
        )


def scaled_condition(matrix: Array) -> float:
    """
    Return the condition number of a matrix, whatever the units of its rows and columns are.

    matrix (n, n).
    """
    rows = np.linalg.norm(matrix, axis=1, keepdims=True)
    if not rows.all():
        return float('inf')
    scaled = matrix / rows
    columns = np.linalg.norm(scaled, axis=0)
    return float(np.linalg.cond(scaled / columns)) if columns.all() else float('inf')


def _alike(one: SensorCalibration, other: SensorCalibration) -> bool:
    """Tell whether two calibrations make the same wrenches."""
    return all(
        np.array_equal(getattr(one, name), getattr(other, name))
        for name in ('matrix', 'offset', 'temperature_coefficients', 'reference_temperature')
    )
