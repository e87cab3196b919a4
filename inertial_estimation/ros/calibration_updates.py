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
from inertial_estimation.errors import ConfigError
from inertial_estimation.findings import finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.services import create_service
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
        self._node, self._robot, self._settings = node, robot, settings
        self._in_use, self._announce, self._background = in_use, announce, background
        self._path = calibration_path(settings)
        self._lacks_file = self._path is not None and not self._path.exists()
        self._changed_at = ''
        self._saved = True
        self.remark = ''
        if self._lacks_file:
            node.get_logger().warning(
                f"'{self._path}' of 'calibration_file' does not exist yet; ~/save writes it"
            )
        elif self._path is not None and not read(self._path)[1].keys() & set(in_use.sensors):
            node.get_logger().warning(
                f"'{self._path}' of 'calibration_file' holds none of the FT sensors in use "
                f'({", ".join(in_use.sensors)})'
            )
        self._publisher = node.create_lifecycle_publisher(String, TOPIC, LATCHED)
        self._services = [
            create_service(node, Trigger, '~/save', self._save, 'nothing was saved'),
            create_service(node, Trigger, '~/restore', self._restore, 'nothing was restored'),
            create_service(node, Trigger, '~/clear_tare', self._clear_tare, UNCHANGED),
        ]

    def announce(self) -> None:
        """Publish the calibration in use; call it once active."""
        self._publisher.publish(String(data=to_json(self._robot.name, self._in_use.sensors)))
        self._announce()

    def take(self, changed: Mapping[str, SensorCalibration]) -> None:
        """Replace the calibrations of some sensors."""
        self._in_use.take(changed)
        self._note_change(saved=False)

    def task(self, sample: Sample | None, tare: str = 'none') -> Status:
        """Return the status: calibration in use, its origin, findings."""
        values: dict[str, object] = {
            'file': self._path or 'none',
            'changed at [s]': self._changed_at or 'the start',
            'saved': self._saved and not self._lacks_file,
            'tare': tare,
        }
        for name, sensor in self._in_use.sensors.items():
            steps = sensor.provenance
            force, moment = np.linalg.norm(sensor.offset.reshape(2, 3), axis=1)
            values |= {
                f'{name}: method': steps[-1].method if steps else 'parameters',
                f'{name}: date': steps[-1].date if steps else 'unknown',
                f'{name}: offset [N], [Nm]': f'{force:.3f}, {moment:.4f}',
            }
        texts = [self.remark] if self.remark else []
        if self._lacks_file:
            texts.append(f"'{self._path}' does not exist yet: ~/save writes it")
        lacking = []
        if sample is not None:
            given, needs = sample.ft_temperatures, self._in_use.stacked.needs_temperature
            for k, name in enumerate(self._in_use.sensors):
                if needs[k] and (given is None or not np.isfinite(given[k])):
                    lacking.append(name)
                elif needs[k] and (why := implausible(given[k : k + 1])):
                    texts.append(f'{name}: {why}')
        found = [finding('suboptimal', 'ft_calibration', what=text) for text in texts]
        if lacking:
            what = f'temperature of {", ".join(lacking)}'
            found.append(finding('missing', 'ft_calibration', what=what, share=1.0))
        return Status('ft_calibration', tuple(found), values)

    def destroy(self) -> None:
        """Destroy the services and the publisher."""
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()
        self._node.destroy_lifecycle_publisher(self._publisher)

    async def _save(self) -> str:
        """Write the calibration in use to the file."""
        sensors, path = dict(self._in_use.sensors), self._named()
        keeping = partial(write, keeps=('axes',))
        await self._background.run(keeping, path, self._robot.name, sensors)
        self._lacks_file = False
        self._saved = sensors == dict(self._in_use.sensors)
        twice = [
            f'ft.{name}.{key}'
            for name in sensors
            for key in ('matrix', 'offset')
            if any(getattr(self._settings.ft_of(name), key))
        ]
        aside = f'; before the next start take {", ".join(twice)} out of the parameters'
        return f"wrote {', '.join(sensors)} to '{path}'{aside * bool(twice)}"

    async def _restore(self) -> str:
        """Use the calibration of the file."""
        path = self._named()
        try:
            robot, sensors = await self._background.run(read, path)
            changed = self._in_use.restore(robot, sensors)
        except ConfigError as error:
            where = '' if str(path) in str(error) else f"'{path}': "
            raise ConfigError(f'{where}{error}') from error
        self._lacks_file = False
        self._note_change(saved=True)
        text = f"restored '{path}': {_changes(changed)}"
        for what, names in (
            (
                'not in the file, as the parameters state',
                [name for name in self._in_use.start if name not in sensors],
            ),
            ('not in use', [name for name in sensors if name not in self._in_use.sensors]),
        ):
            text += f'; {what}: {", ".join(names)}' * bool(names)
        return text

    async def _clear_tare(self) -> str:
        """Use the calibration configured or restored last."""
        changed = self._in_use.clear_tare()
        self._note_change(saved=not self._lacks_file)
        return f'back to what was configured, or restored last: {_changes(changed)}'

    def _note_change(self, *, saved: bool) -> None:
        """Store the time of the change and publish it."""
        self._changed_at = f'{1e-9 * self._node.get_clock().now().nanoseconds:.3f}'
        self._saved, self.remark = saved, ''
        self.announce()

    def _named(self) -> Path:
        """Return the path of the calibration file."""
        if self._path is None:
            raise ConfigError(
                "'calibration_file' is empty: name a file there, then configure anew"
            )
        return self._path


def _changes(changed: tuple[str, ...]) -> str:
    """Describe which sensors changed."""
    return f'changed {", ".join(changed)}' if changed else 'no sensor changed'
