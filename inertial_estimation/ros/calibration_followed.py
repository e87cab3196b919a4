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
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.calibration_updates import TOPIC
from inertial_estimation.ros.subscriptions import LATCHED


class CalibrationFollower:
    """
    Starts with the calibration of the settings, and follows the one that the estimator publishes.
    """

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        settings: EstimatorSettings,
        follow: Callable[[FtCalibration, Collection[str]], tuple[str, ...]],
    ) -> None:
        self._node, self._follow = node, follow
        sensors = sensor_calibrations(settings, robot, new_file=True)
        self._in_use = ActiveCalibration(robot, sensors, [self._begin_anew])
        self.calibration = stack_calibrations(sensors.values())
        path = calibration_path(settings)
        self._from = 'the parameters'
        if path is not None:
            self._from = f"'{path}'" if path.exists() else f"the parameters, without '{path}'"
        self._changes = 0
        self._anew: tuple[str, ...] = ()
        self._refusal = ''
        # Without FT sensors there is nothing to follow: that of an estimator that uses some, or
        # none either, is no fault.
        self._is_of_use = bool(robot.ft_sensors)
        self._subscription: Subscription | None = None

    def start(self) -> None:
        """Subscribe; all callbacks must be ready by then."""
        if self._is_of_use:
            self._subscription = self._node.create_subscription(
                String, TOPIC, self._on_change, LATCHED
            )

    def task(self) -> Status:
        """Return the calibration in use."""
        values = {'from': self._from, 'changes': self._changes, 'refusal': self._refusal or 'none'}
        found: tuple[Finding, ...] = ()
        if self._refusal:
            found = (finding('update_rejected', 'ft_calibration', what=self._refusal),)
        return Status('ft_calibration', found, values)

    def destroy(self) -> None:
        """Give the subscription back."""
        if self._subscription is not None:
            self._node.destroy_subscription(self._subscription)

    def _on_change(self, message: String) -> None:
        """Take another calibration over, or refuse it."""
        self._anew = ()
        try:
            changed = self._in_use.restore(*from_text(message.data, TOPIC))
        except InertialEstimationError as error:
            self._refusal = str(error)
            return
        self._refusal, self._from = '', 'the estimator'
        if not changed:
            return
        self._changes += 1
        kept = 'nothing that was learned is lost'
        if self._anew:
            kept = f'rows of {", ".join(self._anew)} begin anew'
        self._node.get_logger().info(
            f'the estimator calibrates {", ".join(changed)} otherwise: {kept}'
        )

    def _begin_anew(self, calibration: FtCalibration) -> None:
        """Call the callbacks, and note what restarts."""
        tared = {name for name, sensor in self._in_use.sensors.items() if is_tared(sensor)}
        self._anew = self._follow(calibration, tared)
