# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a configured node consists of: subscriptions, estimator, publishers, diagnostics."""

from time import perf_counter

from numpy.linalg import LinAlgError
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode

from inertial_estimation.building import (
    build_assembler,
    build_contact_stream,
    build_estimator,
    build_robot,
    sensor_calibrations,
)
from inertial_estimation.calibration.calibration_file import stack_calibrations
from inertial_estimation.calibration.in_use import CalibrationInUse
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.body_report import joint_motion_text
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.model_update import ModelInUse
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.bodies import BodyWatch
from inertial_estimation.ros.calibration_updates import CalibrationUpdates
from inertial_estimation.ros.dependence import DependenceWatch
from inertial_estimation.ros.deviations import DeviationsOutput
from inertial_estimation.ros.executors import has_events_executor
from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.internal_wrenches import InternalWrenchOutput
from inertial_estimation.ros.markers import MarkerOutput
from inertial_estimation.ros.model_updates import ModelUpdates
from inertial_estimation.ros.momentum import MomentumWatch
from inertial_estimation.ros.monitor import Monitor, Watches
from inertial_estimation.ros.outputs import Outputs
from inertial_estimation.ros.steady_timer import SteadyTimer
from inertial_estimation.ros.taring import Taring, find_supports
from inertial_estimation.sample import Sample

REPORT_PERIOD = 1.0
"""Period of the diagnostics [s]."""


class Pipeline:
    """From messages to messages."""

    def __init__(self, node: LifecycleNode, settings: EstimatorSettings, urdf: str) -> None:
        self.active = False
        self._node, self._settings = node, settings
        self.robot = build_robot(settings, urdf)
        self._assembler = build_assembler(settings, self.robot)
        sensors = sensor_calibrations(settings, self.robot, new_file=True)
        self._estimator = build_estimator(
            settings, self.robot, stack_calibrations(sensors.values())
        )
        supports = find_supports(settings, self.robot)
        self._contacts = build_contact_stream(settings, self.robot)
        self._touches: tuple[Contact, ...] = ()
        self._contact_set: ContactSet | None = None
        self._watches = Watches(
            MomentumWatch(self.robot, settings, self._assembler),
            BodyWatch(self.robot, self._estimator.motion, settings.angular_acceleration_source),
            DependenceWatch(
                self.robot,
                self._estimator.contacts,
                acceleration_arrays=self._estimator.motion.arrays,
            ),
            joint_motion_text(settings.velocity_source, settings.acceleration_source),
        )
        self._make_outputs()
        self._inputs = self._make_inputs()
        followers = self._watches.momentum.set_parameters, self._markers.set_parameters
        self._model = ModelInUse(
            self._estimator, settings.model_blend_time, followers, self._outputs.announce
        )
        in_use = CalibrationInUse(self.robot, sensors, [self._model.set_calibration])
        self._updates = ModelUpdates(node, self.robot, settings, self._model, lambda: self.active)
        self._background = Background(node)
        self._calibration = CalibrationUpdates(
            node, self.robot, settings, in_use, self._outputs.announce, self._background
        )
        self._taring = Taring(
            node,
            settings,
            urdf,
            supports,
            in_use,
            self._calibration,
            self._background,
            lambda: self._estimator.robot,
            lambda: self.active,
            self._contacts.problems,
        )
        self._monitor = Monitor(
            node, self.robot, self._assembler, self._contacts, self._inputs, self._watches
        )
        self.cycles = self._monitor.cycles
        self._timer = SteadyTimer(node, REPORT_PERIOD, self._report)
        self._jump = node.get_clock().create_jump_callback(
            JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1)),
            post_callback=self._on_time_jump,
        )

    def start(self) -> None:
        """Publish what the configuration says, and count anew; call it once active."""
        self._calibration.announce()
        self._taring.start()
        self.cycles.restart()

    def reset(self) -> str:
        """Forget what was received; return what was done."""
        self._forget()
        return 'forgot all messages: filters and buffers are empty'

    def destroy(self) -> None:
        """Give everything back that talks."""
        self._jump.unregister()
        self._timer.destroy()
        self._inputs.destroy()
        self._taring.destroy()
        self._background.destroy()
        self._updates.destroy()
        self._calibration.destroy()
        self._destroy_outputs()
        self._monitor.destroy()

    def _on_sample(self, sample: Sample) -> None:
        """Estimate and publish one instant."""
        self._monitor.sample = sample
        if not self.active:
            return
        start = perf_counter()
        try:
            touches = self._contacts.at(sample.stamp_ns)
            if touches is not self._touches:
                self._touches = touches
                self._contact_set = self._estimator.with_touches(touches) if touches else None
            self._model.step(sample.stamp_ns)
            estimate = self._estimator.update(sample, self._contact_set)
        except (InertialEstimationError, LinAlgError) as error:
            self._monitor.note_failure(error)
            return
        self._outputs.publish(estimate)
        self._monitor.estimate = estimate
        duration = perf_counter() - start
        self.cycles.add(sample.stamp_ns, duration)
        # When the results are out: they do not wait for these.
        if self._taring.collecting:
            self._taring.add(sample, touches)
        self._watches.momentum.add(sample, estimate)
        self.deviations.publish(sample, self._contact_set, duration)
        self._internal.publish(sample, estimate, duration)
        self._markers.publish(sample, estimate, self.deviations.newest)

    def _make_outputs(self) -> None:
        """Create what publishes results; what may be refused comes first."""
        node, estimator, settings = self._node, self._estimator, self._settings
        rate = settings.visualization_rate
        self._internal = InternalWrenchOutput(node, estimator, settings)
        self._outputs = Outputs(node, estimator, rate)
        self._markers = MarkerOutput(
            node,
            self.robot,
            rate,
            self._watches.dependence.uninformed_joints,
            lambda: self._watches.momentum.warning,
        )
        self.deviations = DeviationsOutput(
            node,
            estimator,
            settings,
            self._assembler,
            self._markers,
            lambda: self._model.roots,
        )

    def _make_inputs(self) -> Inputs:
        """Create the subscriptions; give the publishers back if one of them is refused."""
        settings = self._settings
        try:
            return Inputs(
                self._node,
                settings,
                self.robot,
                self._assembler,
                self._contacts,
                self._on_sample,
                polled=settings.executor == 'single' or not has_events_executor(),
            )
        except InertialEstimationError:
            self._destroy_outputs()
            raise

    def _destroy_outputs(self) -> None:
        """Give the publishers of results back."""
        self._internal.destroy()
        self._outputs.destroy()
        self._markers.destroy()
        self.deviations.destroy()

    def _forget(self) -> None:
        """Empty filters and buffers."""
        self._assembler.reset()
        self._contacts.reset()

    def _on_time_jump(self, jump) -> None:
        """Start anew when the clock of the node goes back."""
        if self._settings.reset_on_time_jump:
            self._forget()
            self._node.get_logger().info('time was set back: filters and buffers are empty')

    def _report(self) -> None:
        """Publish diagnostics."""
        self._taring.look()
        calibration = self._calibration.task(self._monitor.sample, self._taring.progress)
        changed = self._updates.task(), calibration
        self._monitor.report(self.deviations.report(), changed, active=self.active)
