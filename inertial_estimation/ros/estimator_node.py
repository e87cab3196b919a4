# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The lifecycle node ``wrench_estimator``, and the pipeline that it becomes when configured."""

from collections.abc import Callable, Iterable
from functools import partial
from time import perf_counter

from numpy.linalg import LinAlgError
from rclpy.lifecycle import LifecycleNode

from inertial_estimation.calibration.calibration_file import ActiveCalibration, stack_calibrations
from inertial_estimation.calibration.configured_estimator import (
    build_estimator,
    sensor_calibrations,
)
from inertial_estimation.config.settings import NODE_NAME, EstimatorSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import build_internal_wrenches
from inertial_estimation.estimation.model_update import ModelInUse
from inertial_estimation.estimation.reading_checks import ReadingChecks
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.outputs.diagnostics import Status, submodel_statuses
from inertial_estimation.outputs.result_checks import CycleStatus, DependenceStatus, MomentumStatus
from inertial_estimation.ros.background import REPORT_PERIOD, Background, Diagnostics
from inertial_estimation.ros.calibration_updates import CalibrationUpdates
from inertial_estimation.ros.configured_node import ConfiguredNode
from inertial_estimation.ros.executors import SteadyTimer, run_node
from inertial_estimation.ros.late_outputs import LateOutputs
from inertial_estimation.ros.model_updates import ModelUpdates
from inertial_estimation.ros.publishers import Publishers
from inertial_estimation.ros.subscriptions import Inputs, subscribe_all
from inertial_estimation.ros.taring import Taring
from inertial_estimation.sample import Sample

BLEND_TIME = 0.5
"""Time over which inertial parameters change to an update [s]."""


class EstimatorNode(ConfiguredNode):
    """Estimates external wrenches and joint torques from sensor topics."""

    def __init__(self, **kwargs) -> None:
        super().__init__(NODE_NAME, EstimatorSettings, Pipeline, **kwargs)
        self.start()


class Pipeline:
    """From messages to messages."""

    def __init__(self, node: LifecycleNode, settings: EstimatorSettings, urdf: str) -> None:
        self.active = False
        self._clock = node.get_clock()
        self.robot = robot = build_robot(settings, urdf)
        self._inputs = inputs = Inputs(node, settings, robot)
        sensors = sensor_calibrations(settings, robot, new_file=True)
        self._estimator = build_estimator(settings, robot, stack_calibrations(sensors.values()))
        self._touches: tuple[Contact, ...] = ()
        self._contact_set: ContactSet | None = None
        self._momentum = MomentumStatus(robot, settings, inputs.assembler)
        estimator = self._estimator
        self._dependence = DependenceStatus(
            robot, estimator.contacts, acceleration_arrays=estimator.motion.arrays
        )
        # This may refuse the settings, so it comes before the publishers.
        internal = build_internal_wrenches(settings, estimator)
        self._publishers = publishers = Publishers(node, estimator, settings, internal)
        self.late = LateOutputs(
            publishers, estimator, settings, internal, inputs.assembler,
            lambda: self._model.roots, self._dependence, self._momentum,
        )  # fmt: skip
        self._model = ModelInUse(
            estimator, BLEND_TIME, [self._momentum.set_parameters], publishers.announce
        )
        subscribe_all(node, inputs, self._on_sample)
        in_use = ActiveCalibration(robot, sensors, [self._model.set_calibration])
        self._updates = ModelUpdates(node, robot, settings, self._model, lambda: self.active)
        self._background = Background(node)
        self._calibration = CalibrationUpdates(
            node, robot, settings, in_use, publishers.announce, self._background
        )
        self._taring = Taring(
            node, settings, urdf, in_use, self._calibration, self._background,
            lambda: estimator.robot, lambda: self.active, inputs.contacts.problems,
        )  # fmt: skip
        self._checks = ReadingChecks(robot)
        self._cycles = CycleStatus()
        self._failed, self._failure = 0, ''
        self._sample: Sample | None = None
        self._estimate: WrenchEstimate | None = None
        self._diagnostics = Diagnostics(node, robot.name)
        self._timer = SteadyTimer(node, REPORT_PERIOD, self._report)

    def change(self, settings: EstimatorSettings) -> None:
        """Take over settings that may change, between two cycles."""
        self._inputs.change(settings)
        self._publishers.set_rates(settings.outputs)
        self.late.set_rates(settings.outputs)

    def start(self) -> None:
        """Publish what is latched, and count cycles anew; call it once active."""
        self._calibration.announce()
        self._cycles.restart()

    def forget(self) -> None:
        """Empty filters and buffers."""
        self._inputs.reset()

    def reset(self) -> str:
        """Empty filters and buffers."""
        self.forget()
        return 'filters and buffers are empty'

    def destroy(self) -> None:
        """End timers, threads and processes."""
        self._timer.destroy()
        self._taring.destroy()
        self._background.destroy()
        self._diagnostics.destroy()

    def _on_sample(self, sample: Sample, arrival: float) -> None:
        self._sample = sample
        if not self.active:
            return
        try:
            touches = self._inputs.contacts.at(sample.stamp_ns)
            if touches is not self._touches:
                self._touches = touches
                self._contact_set = self._estimator.with_touches(touches) if touches else None
            if self._model.progress < 1.0:
                self._model.step(sample.stamp_ns)
            step, estimate = self._estimator.step(sample, self._contact_set)
        except (InertialEstimationError, LinAlgError) as error:
            self._failed, self._failure = self._failed + 1, str(error)
            return
        changes, square = self._checks.known.changes(sample)
        # Also with an unknown reading, beside which another may leap.
        if self._checks.failing or not square < self._checks.max_leap**2:
            failing = self._checks.at(sample.stamp_ns, changes)
            estimate = self._checks.marked(estimate, step.plan, failing)
        self._publishers.publish(sample, estimate)
        self._estimate = estimate
        published = perf_counter()
        age = 1e-9 * (self._clock.handle.get_now().nanoseconds - sample.stamp_ns)
        self._cycles.add(sample.stamp_ns, published - arrival, age)
        # The results do not wait for these.
        if self._taring.collecting:
            self._taring.add(sample, touches)
        self._momentum.add(sample, estimate)
        self._model.judge(sample)
        if window := self._checks.add(sample):
            self._diagnostics.report(partial(self._judge, window), is_logged=True, limit=1)
        self.late.publish(sample, estimate, self._contact_set, published)

    def _judge(self, window: list[Sample]) -> Iterable[Status]:
        """Check readings, in another thread; return a status if something begins or ends."""
        is_new = self._checks.judge(window)
        return [Status('readings', self._checks.findings)] if is_new else ()

    def _report(self) -> None:
        """Take what the diagnostics need, and let them be published."""
        self._taring.look()
        make = self._statuses(self._sample, self._estimate)
        self._diagnostics.report(make, is_logged=self.active)
        # What is old by the next report must not pass for the state of things then.
        self._sample = self._estimate = None
        self._failure = ''

    def _statuses(
        self, sample: Sample | None, estimate: WrenchEstimate | None
    ) -> Callable[[], Iterable[Status]]:
        """Return a function that makes the statuses of the last second in another thread."""
        robot, inputs = self.robot, self._inputs.statuses(sample)
        cycles, failure, active = self._cycles.take(), self._failure, self.active
        fallbacks = sum(source.fallbacks for source in self._inputs.router.sources)
        totals = {'failed cycles': self._failed, 'decode fallbacks': fallbacks}
        task = self._calibration.task(sample, self._taring.progress)
        own = self.late.status(), self._updates.status(), task

        def make() -> Iterable[Status]:
            yield self._cycles.status(*cycles, totals, failure, active=active)
            yield from inputs()
            self._checks.mixed = self._inputs.mixed
            yield Status('readings', self._checks.findings)
            if estimate is not None:
                yield from submodel_statuses(robot, estimate)
                yield self._dependence.status(estimate)
                yield self._momentum.status()
            yield from own

        return make


def main() -> int:
    """Run the node until it is interrupted."""
    return run_node(EstimatorNode, NODE_NAME)
