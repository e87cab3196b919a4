# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The calibration of the FT sensors in use: save, restore, publish, change between cycles."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.calibration.active_calibration import ActiveCalibration
from inertial_estimation.calibration.calibration_file import (
    SensorCalibration,
    read,
    to_json,
    write,
)
from inertial_estimation.calibration.configured_estimator import calibration_path
from inertial_estimation.calibration.temperature import implausible
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.services import create_waiting_services
from inertial_estimation.ros.subscriptions import LATCHED
from inertial_estimation.sample import Sample

TOPIC = 'ft_calibration'
"""Topic from the estimator to the identifier: the calibration in use as JSON."""
NO_FILE_YET = 'no file yet'
NO_FILE = "'calibration_file' is empty: name a file there, then configure the node anew"


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
        self._node, self._robot, self._settings = node, robot, settings
        self._in_use, self._announce, self._background = in_use, announce, background
        self._path = calibration_path(settings)
        self._lacks_file = self._path is not None and not self._path.exists()
        self._changed_at = ''
        self._saved = True
        self.remark = ''
        if self._lacks_file:
            node.get_logger().warning(
                f"'{self._path}' of 'calibration_file' does not exist yet: the sensors are as the "
                'other parameters say; ~/save writes it'
            )
        elif self._path is not None and not read(self._path)[1].keys() & set(in_use.sensors):
            node.get_logger().warning(
                f"'{self._path}' of 'calibration_file' holds none of the FT sensors in use "
                f'({", ".join(in_use.sensors)}): they are as the other parameters say'
            )
        self._publisher = node.create_lifecycle_publisher(String, TOPIC, LATCHED)
        self._services = create_waiting_services(
            node,
            {
                'save': self._on_save,
                'restore': self._on_restore,
                'clear_tare': self._on_clear_tare,
            },
        )

    def announce(self) -> None:
        """Publish what is in use; call it once active."""
        self._publisher.publish(String(data=to_json(self._robot.name, self._in_use.sensors)))
        self._announce()

    def take(self, changed: Mapping[str, SensorCalibration]) -> tuple[str, ...]:
        """Replace the calibrations of some sensors; return the names of those that changed."""
        found = self._in_use.take(changed)
        self.remark = ''
        self._note_change(saved=False)
        return found

    def task(self, sample: Sample | None, tare: str = 'none') -> Status:
        """Return the status: calibration in use, its origin, findings."""
        values: dict[str, object] = {
            'file': self._path or 'none',
            'changed at [s]': self._changed_at or 'the start',
            'saved': self._saved and not self._lacks_file,
            'tare': tare,
        }
        for name, sensor in self._in_use.sensors.items():
            values |= {f'{name}: {key}': value for key, value in _figures(sensor).items()}
        found: list[Finding] = []
        if self._lacks_file:
            what = f"'{self._path}' does not exist yet: ~/save writes it"
            found.append(finding('suboptimal', 'ft_calibration', what=what))
        if lacking := self._without_temperature(sample):
            what = f'temperature of {", ".join(lacking)}'
            found.append(finding('missing', 'ft_calibration', what=what, share=1.0))
        for name, text in self._implausible(sample).items():
            found.append(finding('suboptimal', 'ft_calibration', what=f'{name}: {text}'))
        if self.remark:
            found.append(finding('suboptimal', 'ft_calibration', what=self.remark))
        return Status('ft_calibration', tuple(found), values)

    def destroy(self) -> None:
        """Destroy the services and the publisher."""
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()
        self._node.destroy_lifecycle_publisher(self._publisher)

    async def _on_save(self, request: Trigger.Request, response: Trigger.Response):
        """Write the calibration in use to the file."""
        sensors = dict(self._in_use.sensors)
        try:
            path = self._named()
            keeping = partial(write, keeps_axes=True)
            await self._background.run(keeping, path, self._robot.name, sensors)
        except InertialEstimationError as error:
            return _answer(response, f'nothing was saved: {error}', success=False)
        self._lacks_file = False
        self._saved = sensors == dict(self._in_use.sensors)
        return _answer(response, f"wrote {', '.join(sensors)} to '{path}'{self._twice(sensors)}")

    async def _on_restore(self, request: Trigger.Request, response: Trigger.Response):
        """Use the calibration of the file."""
        try:
            path = self._named()
            robot, sensors = await self._background.run(read, path)
            changed = self._in_use.restore(robot, sensors)
        except InertialEstimationError as error:
            text = str(error)
            if self._path is not None and str(self._path) not in text:
                text = f"'{self._path}': {text}"
            return _answer(response, f'nothing was restored: {text}', success=False)
        self._lacks_file = False
        self._note_change(saved=True)
        others = [name for name in sensors if name not in self._in_use.sensors]
        aside = f'; not in use: {", ".join(others)}' if others else ''
        back = self._back_to_parameters(sensors)
        return _answer(response, f"go on with '{path}': {_changes(changed)}{back}{aside}")

    def _on_clear_tare(self, request: Trigger.Request, response: Trigger.Response):
        """Use the calibration configured or restored last."""
        changed = self._in_use.clear_tare()
        self.remark = ''
        self._note_change(saved=not self._lacks_file)
        return _answer(
            response, f'back to what was configured, or restored last: {_changes(changed)}'
        )

    def _back_to_parameters(self, given: Mapping[str, SensorCalibration]) -> str:
        """Describe the sensors that the file lacks, with their offsets from the parameters."""
        lacking = [
            f'{name} ({_offset(self._in_use.sensors[name])})'
            for name in self._in_use.lacking(given)
        ]
        if not lacking:
            return ''
        return f'; not in the file, so as the parameters say again: {", ".join(lacking)}'

    def _note_change(self, *, saved: bool) -> None:
        """Store the time of the change and publish it."""
        self._changed_at = f'{1e-9 * self._node.get_clock().now().nanoseconds:.3f}'
        self._saved = saved
        self.announce()

    def _without_temperature(self, sample: Sample | None) -> list[str]:
        """Return the sensors that need a temperature and have none."""
        needs = self._in_use.stacked.needs_temperature
        if sample is None or not needs.any():
            return []
        given = sample.ft_temperatures
        known = np.isfinite(given) if given is not None else np.zeros(len(needs), dtype=bool)
        return [name for name, lacks in zip(self._in_use.sensors, needs & ~known) if lacks]

    def _implausible(self, sample: Sample | None) -> dict[str, str]:
        """Return what is implausible about the temperatures of sensors that need them."""
        if sample is None or sample.ft_temperatures is None:
            return {}
        needs = self._in_use.stacked.needs_temperature & np.isfinite(sample.ft_temperatures)
        found = {
            name: implausible(sample.ft_temperatures[k : k + 1])
            for k, name in enumerate(self._in_use.sensors)
            if needs[k]
        }
        return {name: text for name, text in found.items() if text}

    def _twice(self, sensors: Mapping[str, SensorCalibration]) -> str:
        """Describe the parameters that would be applied twice at the next start."""
        text = [
            f'ft.{name}.{key}'
            for name in sensors
            for key in ('matrix', 'offset')
            if any(getattr(self._settings.ft_of(name), key))
        ]
        return f'; before the next start take {", ".join(text)} out of the parameters' * bool(text)

    def _named(self) -> Path:
        """Return the path of the calibration file."""
        if self._path is None:
            raise ConfigError(NO_FILE)
        return self._path


def _answer(response, message: str, *, success: bool = True):
    """Fill in the response of a service."""
    response.success, response.message = success, message
    return response


def _changes(changed: tuple[str, ...]) -> str:
    """Describe which sensors changed."""
    return f'changed {", ".join(changed)}' if changed else 'nothing is another than before'


def _offset(sensor: SensorCalibration) -> str:
    """Describe the offset of a sensor."""
    if not sensor.offset.any():
        return 'offset zero'
    force, moment = np.linalg.norm(sensor.offset.reshape(2, 3), axis=1)
    return f'offset {force:.3g} N {moment:.2g} Nm'


def _figures(sensor: SensorCalibration) -> dict[str, object]:
    """Return the status values of one sensor."""
    steps = sensor.provenance
    force, moment = np.linalg.norm(sensor.offset.reshape(2, 3), axis=1)
    found: dict[str, object] = {
        'method': steps[-1].method if steps else 'parameters',
        'date': steps[-1].date if steps else 'unknown',
        'offset [N], [Nm]': f'{force:.3f}, {moment:.4f}',
        'subtracted [N, Nm]': ' '.join(f'{x:.4f}' for x in sensor.offset),
    }
    if not np.array_equal(sensor.matrix, np.eye(6)):
        found['matrix'] = 'applied'
    if sensor.temperature_coefficients.any():
        found['reference temperature [degrees C]'] = f'{sensor.reference_temperature:.2f}'
    return found
