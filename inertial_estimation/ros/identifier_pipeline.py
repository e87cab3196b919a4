# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a configured identifier consists of: subscriptions, recursion, publishers, diagnostics."""

from collections.abc import Callable, Collection
from dataclasses import replace

import numpy as np
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode

from inertial_estimation.building import (
    build_assembler,
    build_contact_stream,
    build_robot,
)
from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import InertialEstimationError, ModelError
from inertial_estimation.identification.recursion.base_values import BaseTable
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
)
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.usable_parameters import check_masses, check_usable
from inertial_estimation.ros.calibration_followed import CalibrationFollower
from inertial_estimation.ros.identifier_outputs import IdentifierOutputs
from inertial_estimation.ros.identifier_report import IdentifierReport
from inertial_estimation.ros.motion_noise import MotionNoise
from inertial_estimation.ros.polled_inputs import PolledInputs
from inertial_estimation.ros.recursion_choice import recursion_settings
from inertial_estimation.ros.state_file import StateFile
from inertial_estimation.ros.steady_timer import SteadyTimer
from inertial_estimation.ros.stretches import FreeStretch, Stretches
from inertial_estimation.ros.workload import stopwatch
from inertial_estimation.sample import Sample
from inertial_estimation.signals.stream import AssemblerStatistics

REPORT_PERIOD = 1.0
"""Period of the diagnostics [s]."""
EARLY = 0.1
"""A refit may be: stretches end at samples, whose stamps are not those of a clock [s]."""
QUEUE = 1000
"""Messages of a topic that may wait while bodies are refitted: a second at 1 kHz."""
NO_FILE = "no file is named: give the parameter 'state_file'"


class IdentifierPipeline:
    """From messages of sensors to inertial parameters."""

    def __init__(self, node: LifecycleNode, settings: IdentifierSettings, urdf: str) -> None:
        self.active = False
        self._node, self._settings = node, settings
        self.robot = build_robot(settings, urdf)
        chosen = recursion_settings(settings, self.robot)
        self._calibration = CalibrationFollower(
            node, self.robot, settings, self._calibrate_otherwise
        )
        self.identifier = RecursiveIdentifier(self.robot, chosen, self._calibration.calibration)
        if not settings.fixed_link and not settings.held_frames:
            node.get_logger().warning(
                'nothing holds the robot: neither fixed_link nor held_frames names anything. What '
                'it stands on is taken for its weight, unless the topic of contacts reports it'
            )
        self._noise = MotionNoise(self.robot, settings)
        self._table = BaseTable(self.identifier.builder)
        self.refit: Refit | None = None
        self.enabled = True
        self._refitted_ns = 0
        self._told: tuple[str, ...] = ()
        self._saved = False
        self._stretches = Stretches(
            self.robot, settings.rows_rate, settings.contact_margin, settings.held_frames
        )
        self._state = StateFile(settings.state_file, settings.save_period) if (
            settings.state_file) else None  # fmt: skip
        self._assembler = build_assembler(settings, self.robot)
        self._contacts = build_contact_stream(settings, self.robot)
        self._outputs = IdentifierOutputs(node, self.robot)
        self._inputs = self._make_inputs()
        self.report = IdentifierReport(
            node, settings, self.identifier, self._assembler, self._contacts, self._inputs
        )
        if self._state is not None and self._state.path.exists():
            self._try(self._state.restore)
        self._calibration.start()
        self._timer = SteadyTimer(node, REPORT_PERIOD, self._diagnose)
        self._jump = node.get_clock().create_jump_callback(
            JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1)),
            post_callback=self._on_time_jump,
        )

    def start(self) -> None:
        """Publish what was known before, and begin with samples from now on."""
        self._stretches.reset()
        self.report.restart()
        if any(one.information is not None for one in self.identifier.memories):
            self._noting(self._refit)

    def reset(self) -> str:
        """Forget what was received and learned; return what was done."""
        self._forget()
        self.identifier.reset()
        self.refit, self._told = None, ()
        self.report.restart()
        return (
            'forgot all messages and all that they told of the robot; what was published, and '
            'the state file, stay until there is something new'
        )

    def enable(self, enabled: bool) -> str:
        """Go on to learn, or pause; what was touched is noted meanwhile."""
        self.enabled = enabled
        self._stretches.drop()
        self.report.restart()
        return 'learning' if enabled else 'paused: what comes in is not learned from'

    def save(self) -> tuple[bool, str]:
        """Write what is known; return whether it was, and what was done."""
        return self._save(self._state) if self._state else (False, NO_FILE)

    def restore(self) -> tuple[bool, str]:
        """Take what was known from the file; return whether it was, and what was done."""
        if self._state is None:
            return False, NO_FILE
        done, said = self._try(self._state.restore)
        if done:
            self._forget()
            if self.active:
                self._noting(self._refit)
        return done, said

    def keep(self) -> None:
        """Write what is known if the file lacks something of it."""
        if self._state is not None and self._state.is_behind(self.identifier):
            self._save(self._state)

    def statistics(self) -> AssemblerStatistics:
        """Return what came in so far."""
        return self._assembler.statistics()

    def destroy(self) -> None:
        """Give everything back that talks."""
        self.keep()
        self._jump.unregister()
        self._timer.destroy()
        self._inputs.destroy()
        self._outputs.destroy()
        self._calibration.destroy()
        self.report.destroy()

    def take(self, sample: Sample) -> None:
        """Collect a sample, and learn from a stretch of them."""
        self.report.note_sample(sample)
        if not self.active:
            return
        stretch = self._stretches.add(sample, self._contacts.at(sample.stamp_ns))
        self._assembler.wanted_ns = self._stretches.next_ns
        if stretch is not None and self.enabled:
            self._noting(lambda: self._learn(stretch))

    def _noting(self, work: Callable[[], None]) -> None:
        """Do something with rows; note why it could not be done."""
        try:
            work()
        # Linear algebra that comes to no end or meets NaN: what was published before holds.
        except (InertialEstimationError, ValueError) as error:
            self.report.note_failure(error)

    def _make_inputs(self) -> PolledInputs:
        """Create the subscriptions; give the publishers back if one of them is refused."""
        settings = self._settings
        try:
            return PolledInputs(
                self._node,
                replace(settings, queue_depth=max(settings.queue_depth, QUEUE)),
                self.robot,
                self._assembler,
                self._contacts,
                self.take,
            )
        except InertialEstimationError:
            self._outputs.destroy()
            raise

    def _calibrate_otherwise(
        self, calibration: FtCalibration, tared: Collection[str]
    ) -> tuple[str, ...]:
        """Follow the estimator; return the submodels whose rows begin anew."""
        anew = self.identifier.set_calibration(calibration, tared)
        # What is to be subtracted beside it is published: it is another now.
        if self.active and any(one.information is not None for one in self.identifier.memories):
            # A refit that fails does not speak against the calibration, which is followed by now.
            self._noting(self._refit)
        return anew

    def _learn(self, stretch: FreeStretch) -> None:
        """Work a stretch in, and refit when it is time."""
        spent = stopwatch()
        self._noise.update(self._assembler.rates())
        self.identifier.noise = self._noise.known
        changes = self.identifier.add(stretch.samples, free=stretch.free)
        self.report.note_rows(spent())
        for name, change in changes:
            self._node.get_logger().info(_said(name, change))
        # Time may have been set back since, or what is known was saved later than it is now.
        gone = 1e-9 * (self.identifier.stamp_ns - self._refitted_ns)
        due = not 0.0 <= gone < self._settings.refit_period - EARLY
        if due or any(change is Change.BODY for _, change in changes):
            self._refit()
        if self._state is not None and self._state.is_due():
            self.keep()

    def _refit(self) -> None:
        """Find out what rows tell, and publish what can be relied on."""
        spent = stopwatch()
        self._refitted_ns = self.identifier.stamp_ns
        self.refit = self.identifier.refit()
        values = self._table.values(self.identifier.memories, self.identifier.found)
        self._outputs.publish_progress(self.identifier, self.refit, values)
        published, refusal = False, ''
        # Of what was told and no longer is, the description is told.
        if self.refit is not None and (self.refit.refitted or self._told):
            try:
                self._check(self.refit.parameters)
                self._outputs.publish(self.refit, values, self.identifier.calibration)
                published, self._told = True, self.refit.refitted
            except ModelError as error:
                refusal = str(error)
        self.report.note_refit(spent(), self.refit, values, published=published, refusal=refusal)

    def _check(self, parameters: np.ndarray) -> None:
        """Raise unless an estimator with these settings would take parameters over."""
        names, factor = self.robot.link_names, self._settings.update_mass_factor
        check_usable(names, parameters)
        check_masses(names, parameters, self.robot.parameters, factor)

    def _save(self, state: StateFile) -> tuple[bool, str]:
        """Write what is known; the log says so the first time only."""
        given = self._try(state.save, is_routine=self._saved)
        self._saved |= given[0]
        return given

    def _try(
        self, work: Callable[[RecursiveIdentifier], str], *, is_routine: bool = False
    ) -> tuple[bool, str]:
        """Read or write the state file; say in log and diagnostics what came of it."""
        try:
            done, said = True, work(self.identifier)
        except InertialEstimationError as error:
            done, said = False, str(error)
        # rclpy takes one severity from one line only.
        if done and is_routine:
            self._node.get_logger().debug(said)
        elif done:
            self._node.get_logger().info(said)
        else:
            self._node.get_logger().warning(said)
        self.report.note_file(done, said)
        return done, said

    def _forget(self) -> None:
        """Empty filters and buffers."""
        self._assembler.reset()
        self._contacts.reset()
        self._stretches.reset()
        self._inputs.forget()
        self._refitted_ns = 0

    def _on_time_jump(self, jump) -> None:
        """Start anew when the clock of the node goes back; what was learned stays."""
        if self._settings.reset_on_time_jump:
            self._forget()
            self._node.get_logger().info('time was set back: filters and buffers are empty')

    def _diagnose(self) -> None:
        """Publish diagnostics."""
        self.report.publish(
            self.refit,
            [self._calibration.task()],
            active=self.active,
            enabled=self.enabled,
        )


def _said(name: str, change: Change) -> str:
    """Return what to say of a change."""
    return {
        Change.TOUCHED: f'{name}: something unknown acts on it, or it has changed; not learning',
        Change.FREE: f'{name}: agrees again',
        Change.BODY: f'{name}: carries another mass since',
        Change.OFFSET: f'{name}: an FT sensor has another offset since',
        Change.BEGUN: f'{name}: moves as never before; what was known of it at rest is forgotten',
    }[change]
