# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The lifecycle node ``parameter_identifier``, and its pipeline."""

import os
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from time import monotonic, perf_counter

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.config.files import check_own, check_writable, read_text, write_whole
from inertial_estimation.config.settings import IDENTIFIER_NAME, IdentifierSettings
from inertial_estimation.errors import ConfigError, InertialEstimationError, ModelError
from inertial_estimation.findings import finding
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.refit import Refit
from inertial_estimation.identification.recursion.settings import recursion_settings
from inertial_estimation.identification.recursion.state import from_text, recognises, to_text
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.background import REPORT_PERIOD, Diagnostics
from inertial_estimation.ros.calibration_updates import CalibrationFollower
from inertial_estimation.ros.configured_node import ConfiguredNode, reported
from inertial_estimation.ros.executors import SteadyTimer, create_service, run_node
from inertial_estimation.ros.identifier_outputs import IdentifierOutputs, IdentifierStatus
from inertial_estimation.ros.polled_inputs import PolledInputs
from inertial_estimation.ros.sample_windows import (
    CONTACT_MARGIN,
    SAMPLE_RATE,
    SampleWindow,
    SampleWindows,
)
from inertial_estimation.ros.subscriptions import Inputs
from inertial_estimation.sample import Sample
from inertial_estimation.uncertainty.sensor_noise import StreamFilters, stream_noise

REFIT_PERIOD = 0.9
"""Least time between two refits [s]: a second, less what windows of samples miss it by."""
REFIT_SHARE, MAX_REFIT_PERIOD = 0.1, 4.9
"""
Time between two refits over that since equations began or something changed, and at most [s]:
fewer new equations move a fit by a fraction of its deviation.
"""

SAVE_PERIOD = 60.0
"""Time between two writings [s]."""
ASIDE = '.refused'
"""Added to the name of a state that cannot be used."""


class IdentifierNode(ConfiguredNode):
    """Identifies inertial parameters while the robot works, and publishes them."""

    def __init__(self, **kwargs) -> None:
        super().__init__(IDENTIFIER_NAME, IdentifierSettings, IdentifierPipeline, **kwargs)
        create_service(self, SetBool, '~/enable', lambda data: self.configured().enable(data))
        create_service(self, Trigger, '~/save', lambda: self.configured().state.save())
        create_service(self, Trigger, '~/restore', lambda: self.configured().restore())
        self.start()

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop, and save the state."""
        self.pipeline.state.keep()
        return super().on_deactivate(state)


class IdentifierPipeline:
    """From messages of sensors to inertial parameters."""

    def __init__(self, node: LifecycleNode, settings: IdentifierSettings, urdf: str) -> None:
        self.active, self.enabled = False, True
        # Nothing waits for its samples, and derivatives that lag would bias what is identified.
        settings = replace(settings, filter=settings.filter.centred())
        self._node, self._settings = node, settings
        self.robot = robot = build_robot(settings, urdf)
        chosen = recursion_settings(settings, robot)
        self._calibration = CalibrationFollower(node, robot, settings, self._follow_calibration)
        self.identifier = RecursiveIdentifier(robot, chosen, self._calibration.calibration)
        if not settings.fixed_link and not settings.loaded_frames:
            node.get_logger().warning(
                'neither fixed_link nor loaded_frames is set: the force on the feet is identified '
                'as weight, unless the topic of contacts reports it'
            )
        self._filters, self._noise_is_complete = StreamFilters(settings), False
        self.refit: Refit | None = None
        self._refitted_ns = self._begun_ns = 0
        self._published: tuple[str, ...] = ()
        self._windows = SampleWindows(robot, SAMPLE_RATE, CONTACT_MARGIN, settings.loaded_frames)
        self.state = StateFile(settings.state_file, self.identifier)
        self._inputs = inputs = Inputs(node, settings, robot)
        self._outputs = IdentifierOutputs(node, robot)
        self._polling = PolledInputs(node, inputs, self.take)
        self.report = IdentifierStatus(settings, self.identifier)
        self._diagnostics = Diagnostics(node, robot.name)
        if restored := self.state.begin():
            node.get_logger().info(restored)
        self._calibration.start()
        self._timer = SteadyTimer(node, REPORT_PERIOD, self._diagnose)

    def change(self, settings: IdentifierSettings) -> None:
        """Take over settings that may change."""
        self._inputs.change(settings)

    def start(self) -> None:
        """Publish the state, and begin with samples from now on."""
        self._windows.reset()
        self.report.waiting.clear()
        self._noting(self._refit)

    def reset(self) -> str:
        """Forget all messages and the state."""
        self.forget()
        self.identifier.reset()
        self.refit, self._published = None, ()
        self.report.reset()
        return 'forgot all messages and the state; published parameters and the state file stay'

    def enable(self, enabled: bool) -> str:
        """Identify, or pause; contacts are noted meanwhile."""
        self.enabled = enabled
        self._windows.drop()
        self.report.waiting.clear()
        return 'identifying' if enabled else 'paused'

    def restore(self) -> str:
        """Read the state."""
        done = self.state.restore()
        self.forget()
        if self.active:
            self._noting(self._refit)
        return done

    def destroy(self) -> None:
        """Save the state; end timers and threads."""
        self.state.keep()
        for one in (self._timer, self._polling, self._diagnostics):
            one.destroy()

    def take(self, sample: Sample) -> None:
        """Collect a sample, and identify from a window of them."""
        self.report.sample = sample
        if not self.active:
            return
        window = self._windows.add(sample, self._inputs.contacts.at(sample.stamp_ns))
        self._inputs.assembler.wanted_ns = self._windows.next_ns
        if window is not None and self.enabled:
            self._noting(lambda: self._add(window))

    def _noting(self, work: Callable[[], None]) -> None:
        try:
            work()
        # Linear algebra that does not converge or meets NaN or 1e200: the last update holds.
        except (InertialEstimationError, ValueError, ArithmeticError) as error:
            self.report.note_failure(error)

    def _follow_calibration(
        self, calibration: FtCalibration, tared: Collection[str]
    ) -> tuple[str, ...]:
        """Use a calibration; return the submodels whose equations begin again."""
        restarted = self.identifier.set_calibration(calibration, tared)
        # The offsets on top of it that are published have changed. A refit that fails is no
        # reason to refuse the calibration.
        if self.active:
            self._noting(self._refit)
        return restarted

    def _add(self, window: SampleWindow) -> None:
        """Add a window to the identification, and refit when it is time."""
        start = perf_counter()
        self._update_noise()
        changes = self.identifier.add(window.samples, free=window.free)
        for name, change in changes:
            self._node.get_logger().info(f'{name}: {CHANGES[change]}')
        now_ns = self.identifier.stamp_ns
        if not self._begun_ns or any(change in RENEWING for _, change in changes):
            self._begun_ns = now_ns
        # Time may have been set back since, or the state was saved later than it is now.
        gone, lasting = (1e-9 * (now_ns - one) for one in (self._refitted_ns, self._begun_ns))
        period = max(REFIT_PERIOD, min(REFIT_SHARE * lasting, MAX_REFIT_PERIOD))
        if changes or not 0.0 <= gone < period:
            self._refit()
        self.report.busiest = max(self.report.busiest, perf_counter() - start)
        self.report.counts['windows'] += 1
        self.state.keep(now=False)

    def _update_noise(self) -> None:
        """Give the identifier the noise of the motion, until all rates of streams are known."""
        if self._noise_is_complete:
            return
        settings, rates = self._settings, self._inputs.assembler.rates()
        found = stream_noise(settings, self.robot, rates, self._filters)
        self.identifier.noise = StateNoise.of(
            found.model.joints,
            found.model.imus,
            is_white=not settings.filter.smooth_readings,
            measures_velocities=settings.joint_states.velocity_source == 'message',
        )
        self._noise_is_complete = bool(found.joints.all() and found.imus.all())

    def _refit(self) -> None:
        """Identify the parameters, and publish those that the equations determine."""
        self._refitted_ns = self.identifier.stamp_ns
        identifier, report = self.identifier, self.report
        self.refit = refit = identifier.refit()
        if refit is None:
            return
        values = identifier.base_values()
        report.counts['refits'] += 1
        self._outputs.publish_progress(identifier, refit, values)
        # Submodels that were published and are not refitted any more go back to the prior.
        if not refit.refitted and not self._published:
            return
        refusal = ''
        try:
            # As an estimator with these settings does.
            update = refit.update(self.robot, identifier.calibration)
            update.check(self.robot)
            self._outputs.publish(refit.stamp_ns, update, values)
            self._published = refit.refitted
        except ModelError as error:
            refusal = str(error)
        report.note_update(refusal)

    def forget(self) -> None:
        """Empty filters and buffers; the state stays."""
        self._inputs.reset()
        self._windows.reset()
        self._refitted_ns = self._begun_ns = 0

    def _diagnose(self) -> None:
        sample = self.report.sample
        own = self.report.statuses(self.refit, active=self.active, enabled=self.enabled)
        if what := self.state.failure:
            own.append(Status('state file', (finding('suboptimal', 'state file', what=what),)))
        own.append(self._calibration.task())
        inputs = self._inputs.statuses(sample)

        def make() -> Iterable[Status]:
            yield from own
            yield from inputs()

        self._diagnostics.report(make, is_logged=self.active)


CHANGES = {
    Change.TOUCHED: 'a contact or a change: equations are rejected',
    Change.FREE: 'agrees again',
    Change.BODY: 'carries another mass',
    Change.OFFSET: 'an FT sensor has another offset',
    Change.BEGUN: 'moves for the first time: equations at rest are forgotten',
}
RENEWING = (Change.BODY, Change.OFFSET, Change.BEGUN)
"""After which new equations say much again."""


class StateFile:
    """The file of an identifier; empty path: none."""

    def __init__(self, path: str, identifier: RecursiveIdentifier) -> None:
        self.path, self._identifier = Path(path).expanduser() if path else None, identifier
        self._saved_ns, self._due = 0, monotonic() + SAVE_PERIOD
        self.failure = ''
        """Reason for which it was not read or written by itself."""
        if self.path is not None:
            check_own(self.path, recognises)
            check_writable(self.path)

    def save(self) -> str:
        """Write the state."""
        known = sum(one.information is not None for one in self._identifier.memories)
        if self.path is None:
            raise ConfigError("'state_file' is empty")
        if not known:
            raise ModelError('no equations yet')
        self._due = monotonic() + SAVE_PERIOD
        check_own(self.path, recognises)
        write_whole(self.path, to_text(self._identifier))
        self._saved_ns, self.failure = self._identifier.stamp_ns, ''
        return f"saved {known} submodels in '{self.path}'"

    def restore(self) -> str:
        """Read the state; one that cannot be used is renamed."""
        if self.path is None:
            raise ConfigError("'state_file' is empty")
        text = read_text(self.path)
        if not recognises(text):
            raise ConfigError(f"'{self.path}' is no state of an identifier")
        try:
            names = from_text(self._identifier, text)
        except ModelError as error:
            aside, count = self.path.with_name(self.path.name + ASIDE), 1
            while os.path.lexists(aside):
                aside, count = aside.with_suffix(f'{ASIDE}{count}'), count + 1
            self.path.replace(aside)
            raise ModelError(f"'{self.path}' is refused: {error}; it is '{aside}' now") from error
        self._saved_ns, self.failure = self._identifier.stamp_ns, ''
        return f"restored {', '.join(names)} from '{self.path}'"

    def begin(self) -> str:
        """Read the state if there is one."""
        is_there = self.path is not None and self.path.exists()
        return self._noting(self.restore) if is_there else ''

    def keep(self, now: bool = True) -> None:
        """Write the state if the file is older; not now: if the last time is a period ago."""
        known = any(one.information is not None for one in self._identifier.memories)
        is_behind = known and self._identifier.stamp_ns != self._saved_ns
        if self.path is not None and is_behind and (now or monotonic() >= self._due):
            self._noting(self.save)

    def _noting(self, work: Callable[[], str]) -> str:
        try:
            return work()
        except InertialEstimationError as error:
            self.failure = str(error)
            return ''


def main() -> int:
    """Run the node until it is interrupted."""
    return run_node(IdentifierNode, IDENTIFIER_NAME)
