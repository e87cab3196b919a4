# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The calibration of the FT sensors in use: save, restore, publish, and follow."""

from collections.abc import Callable, Collection, Mapping
from pathlib import Path

import numpy as np
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.calibration.calibration_file import (
    ActiveCalibration,
    Provenance,
    SensorCalibration,
    from_text,
    read,
    to_json,
    write,
)
from inertial_estimation.calibration.configured_estimator import (
    calibration_path,
    sensor_calibrations,
)
from inertial_estimation.calibration.residual_statistics import implausible
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.findings import finding
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.executors import create_service
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.sample import Sample

UNCHANGED = 'nothing was changed'
TOPIC = 'ft_calibration'
"""Topic from the estimator to the identifier: the calibration in use as JSON."""


class CalibrationUpdates:
    """The services and the topic of the calibration in use."""

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        settings: EstimatorSettings,
        in_use: ActiveCalibration,
        announce: Callable[[], None],
        background: Background,
    ) -> None:
        self._robot = robot
        self._in_use, self._announce, self._background = in_use, announce, background
        self._path = calibration_path(settings)
        self._in_file: Mapping[str, SensorCalibration] = dict(in_use.sensors)
        """Calibrations as they were read or written last."""
        self._publisher = node.create_lifecycle_publisher(String, TOPIC, LATCHED)
        create_service(node, Trigger, '~/save', self._save, 'nothing was saved')
        create_service(node, Trigger, '~/restore', self._restore, 'nothing was restored')
        create_service(node, Trigger, '~/clear_tare', self._clear_tare, UNCHANGED)

    @property
    def _lacks_file(self) -> bool:
        """True if the calibration file does not exist yet."""
        return self._path is not None and not self._path.exists()

    def announce(self) -> None:
        """Publish the calibration in use; call it once active."""
        self._publisher.publish(String(data=to_json(self._robot.name, self._in_use.sensors)))
        self._announce()

    def take(self, changed: Mapping[str, SensorCalibration]) -> None:
        """Replace the calibrations of some sensors."""
        self._in_use.take(changed)
        self.announce()

    def task(self, sample: Sample | None, tare: str = 'none') -> Status:
        """Return the status: calibration in use, its origin, findings."""
        values: dict[str, object] = {
            'file': self._path or 'none',
            'saved': self._in_file == self._in_use.sensors and not self._lacks_file,
            'tare': tare,
        }
        texts, lacking = list[str](), []
        if self._lacks_file:
            texts.append(f"'{self._path}' does not exist yet: ~/save writes it")
        needs = self._in_use.stacked.needs_temperature
        for k, (name, sensor) in enumerate(self._in_use.sensors.items()):
            last = (
                sensor.provenance[-1] if sensor.provenance else Provenance('parameters', 'unknown')
            )
            force, moment = np.linalg.norm(sensor.offset.reshape(2, 3), axis=1)
            values |= {
                f'{name}: method': last.method,
                f'{name}: date': last.date,
                f'{name}: offset [N], [Nm]': f'{force:.3f}, {moment:.4f}',
            }
            if sample is not None and needs[k]:
                given = sample.ft_temperatures
                if given is None or not np.isfinite(given[k]):
                    lacking.append(name)
                elif why := implausible(given[k : k + 1]):
                    texts.append(f'{name}: {why}')
        found = [finding('suboptimal', 'ft_calibration', what=text) for text in texts]
        if lacking:
            what = f'temperature of {", ".join(lacking)}'
            found.append(finding('missing', 'ft_calibration', what=what, share=1.0))
        return Status('ft_calibration', tuple(found), values)

    async def _save(self) -> str:
        """Write the calibration in use to the file."""
        sensors, path = dict(self._in_use.sensors), self._named()
        await self._background.run(write, path, self._robot.name, sensors)
        self._in_file = sensors
        return f"wrote {', '.join(sensors)} to '{path}'"

    async def _restore(self) -> str:
        """Use the calibration of the file."""
        path = self._named()
        robot, sensors = await self._background.run(read, path)
        changed = self._in_use.restore(str(path), robot, sensors)
        self._in_file = dict(self._in_use.sensors)
        self.announce()
        text = f"restored '{path}': changed {', '.join(changed) or 'no sensor'}"
        if lacking := [name for name in self._in_use.start if name not in sensors]:
            text += f'; not in the file, as the parameters state: {", ".join(lacking)}'
        if others := [name for name in sensors if name not in self._in_use.sensors]:
            text += f'; not in use: {", ".join(others)}'
        return text

    async def _clear_tare(self) -> str:
        """Use the calibration configured or restored last."""
        changed = self._in_use.clear_tare()
        self.announce()
        what = 'what was configured, or restored last'
        return f'back to {what}: changed {", ".join(changed) or "no sensor"}'

    def _named(self) -> Path:
        """Return the path of the calibration file."""
        if self._path is None:
            raise ConfigError(
                "'calibration_file' is empty: name a file there, then configure anew"
            )
        return self._path


class CalibrationFollower:
    """In another node: the calibration of the settings, then the one that is published."""

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        settings: EstimatorSettings,
        follow: Callable[[FtCalibration, Collection[str]], tuple[str, ...]],
    ) -> None:
        self._node, self._follow = node, follow
        sensors = sensor_calibrations(settings, robot, new_file=True)
        self._in_use = ActiveCalibration(robot, sensors, [])
        self.calibration = self._in_use.stacked
        self._from = 'the parameters'
        self._changes, self._refusal = 0, ''

    def start(self) -> None:
        """Subscribe; all callbacks must be ready by then."""
        # Without FT sensors those of the estimator are no fault.
        if self._in_use.sensors:
            self._node.create_subscription(String, TOPIC, self._on_message, LATCHED)

    def task(self) -> Status:
        """Return the status of the calibration in use."""
        values = {'from': self._from, 'changes': self._changes, 'refusal': self._refusal or 'none'}
        found = [finding('update_rejected', 'ft_calibration', what=self._refusal)]
        return Status('ft_calibration', tuple(found if self._refusal else ()), values)

    def _on_message(self, message: String) -> None:
        try:
            changed = self._in_use.restore(TOPIC, *from_text(message.data, TOPIC))
            tared = {name for name, sensor in self._in_use.sensors.items() if sensor.is_tared}
            restarted = self._follow(self._in_use.stacked, tared)
        except InertialEstimationError as error:
            self._refusal = str(error)
            return
        self._refusal, self._from = '', 'the estimator'
        if changed:
            self._changes += 1
            self._node.get_logger().info(
                f'the estimator changed the calibration of {", ".join(changed)}; identification '
                f'starts again for: {", ".join(restarted) or "no submodel"}'
            )
