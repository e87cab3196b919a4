# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""FT calibration of a running robot, changed as a whole or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

import numpy as np

from inertial_estimation.calibration.calibration_file import (
    SENSOR,
    SensorCalibration,
    stack_calibrations,
)
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration

MAX_CONDITION = 1e3
"""Of a matrix with rows, then columns, scaled to one length: those of 32 real sensors have 2."""


class ActiveCalibration:
    """Calibration of each FT sensor, and callbacks for changes."""

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
        """As configured or restored last, without tares."""
        self.sensors = self.start
        """In use, in the order of the robot's FT sensors."""
        self._followers = tuple(followers)

    @property
    def stacked(self) -> FtCalibration:
        """That of all sensors."""
        return stack_calibrations(self.sensors.values())

    def take(self, changed: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Use other calibrations of some sensors, or none if one is refused; return changes."""
        for name, sensor in changed.items():
            if name not in self.sensors:
                raise NameNotFound('FT sensor', name, tuple(self.sensors))
            require_usable(name, sensor)
        before = self.sensors
        self.sensors = MappingProxyType({**before, **changed})
        stacked = self.stacked
        for follow in self._followers:
            follow(stacked)
        return tuple(name for name in changed if not before[name].same_as(changed[name]))

    def restore(self, robot: str, given: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Use the calibrations of a file as after a start with it; return changed sensors."""
        if robot and robot != self._robot.name:
            raise ConfigError(f"it is of robot '{robot}', not of '{self._robot.name}'")
        if not any(name in self.start for name in given):
            raise ConfigError(
                f'it is of {", ".join(given) or "no sensor"}; FT sensors in use are '
                f'{", ".join(self.start) or "none"}'
            )
        changed = self.take({name: given.get(name, one) for name, one in self.start.items()})
        self.untared = self.sensors
        return changed

    def clear_tare(self) -> tuple[str, ...]:
        """Return to what was configured or restored last; return changed sensors."""
        return self.take(self.untared)


def require_usable(name: str, sensor: SensorCalibration) -> None:
    """Refuse a matrix that is close to singular, or not in the sensor's axes."""
    if sensor.axes != SENSOR:
        raise ConfigError(
            f"wrenches of '{name}' are in the axes of an {sensor.axes}, not the sensor's"
        )
    with np.errstate(invalid='ignore', divide='ignore'):
        scaled = sensor.matrix / np.linalg.norm(sensor.matrix, axis=1, keepdims=True)
        scaled = scaled / np.linalg.norm(scaled, axis=0)
    condition = float(np.linalg.cond(scaled)) if np.isfinite(scaled).all() else float('inf')
    if not condition <= MAX_CONDITION:
        raise ConfigError(
            f"the matrix of '{name}' has a condition number of {condition:.3g} with rows and "
            f'columns scaled, limit {MAX_CONDITION:g}'
        )
