# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The calibration of the FT sensors that the estimator uses, for a node that must use the same."""

from collections.abc import Callable, Collection

from rclpy.lifecycle import LifecycleNode
from rclpy.subscription import Subscription
from std_msgs.msg import String

from inertial_estimation.calibration.active_calibration import ActiveCalibration
from inertial_estimation.calibration.calibration_file import from_text, stack_calibrations
from inertial_estimation.calibration.configured_estimator import (
    calibration_path,
    sensor_calibrations,
)
from inertial_estimation.calibration.offset_from_model import is_tared
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.findings import finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.calibration_updates import TOPIC
from inertial_estimation.ros.subscriptions import LATCHED


class CalibrationFollower:
    """The calibration of the settings, then the one that the estimator publishes."""

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        settings: EstimatorSettings,
        follow: Callable[[FtCalibration, Collection[str]], tuple[str, ...]],
    ) -> None:
        self._node, self._follow = node, follow
        sensors = sensor_calibrations(settings, robot, new_file=True)
        self._in_use = ActiveCalibration(robot, sensors, [self._on_calibration])
        self.calibration = stack_calibrations(sensors.values())
        path = calibration_path(settings)
        self._from = 'the parameters'
        if path is not None:
            self._from = f"'{path}'" if path.exists() else f"the parameters, without '{path}'"
        self._changes, self._refusal = 0, ''
        self._restarted: tuple[str, ...] = ()
        self._subscription: Subscription | None = None

    def start(self) -> None:
        """Subscribe; all callbacks must be ready by then."""
        # Without FT sensors those of the estimator are no fault.
        if self._in_use.sensors:
            self._subscription = self._node.create_subscription(
                String, TOPIC, self._on_message, LATCHED
            )

    def task(self) -> Status:
        """Return the status of the calibration in use."""
        values = {'from': self._from, 'changes': self._changes, 'refusal': self._refusal or 'none'}
        found = [finding('update_rejected', 'ft_calibration', what=self._refusal)]
        return Status('ft_calibration', tuple(found if self._refusal else ()), values)

    def destroy(self) -> None:
        """Destroy the subscription."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _on_message(self, message: String) -> None:
        """Use another calibration, or refuse it."""
        self._restarted = ()
        try:
            changed = self._in_use.restore(*from_text(message.data, TOPIC))
        except InertialEstimationError as error:
            self._refusal = str(error)
            return
        self._refusal, self._from = '', 'the estimator'
        if changed:
            self._changes += 1
            self._node.get_logger().info(
                f'the estimator changed the calibration of {", ".join(changed)}; identification '
                f'starts again for: {", ".join(self._restarted) or "no submodel"}'
            )

    def _on_calibration(self, calibration: FtCalibration) -> None:
        """Pass on a calibration with the sensors that a tare has changed."""
        tared = {name for name, sensor in self._in_use.sensors.items() if is_tared(sensor)}
        self._restarted = self._follow(calibration, tared)
