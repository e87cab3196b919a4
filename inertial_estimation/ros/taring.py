# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Tares: offsets of the FT sensors from the model while the node runs [T section 4.7].

Samples are recorded in the cycle, offsets are computed in another process.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial

from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future
from std_srvs.srv import Trigger

from inertial_estimation.calibration.active_calibration import ActiveCalibration
from inertial_estimation.calibration.tare_recorder import TareRecorder, stack_recorded
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, ConfigError, InertialEstimationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.calibration_updates import UNCHANGED, CalibrationUpdates
from inertial_estimation.ros.services import create_service
from inertial_estimation.ros.tare_job import TareJob, find_offsets
from inertial_estimation.sample import Sample
from inertial_estimation.signals.messages import topic_names

MAX_POSES = 20
NAMES = {'accept_split': '--accept-split of calibrate offsets', 'supports': "'tare.supports'"}
"""Parameters for arguments of the library."""
NO_SUPPORT = "'tare.supports' is empty and there is no fixed link"


@dataclass
class _Tare:
    """A tare that is being recorded."""

    recorder: TareRecorder
    sensors: tuple[str, ...] | None
    """Whose offsets are wanted; None: all."""
    earlier: tuple[TareRecorder, ...]
    """Of other poses."""
    done: Future
    """With success and message."""
    waits: bool
    """Whether it waits for the first joint states."""
    problems: Counter[str]
    """Contacts that could not be placed before it."""
    seen: int = -1
    """Samples at the last `look`."""


class Taring:
    """The services of tares."""

    def __init__(
        self,
        node: LifecycleNode,
        settings: EstimatorSettings,
        urdf: str,
        supports: tuple[str, ...],
        active: ActiveCalibration,
        updates: CalibrationUpdates,
        background: Background,
        robot: Callable[[], Robot],
        is_active: Callable[[], bool],
        problems: Counter[str],
    ) -> None:
        self._node, self._settings, self._active = node, settings, active
        self._updates, self._background = updates, background
        self._robot, self._is_active = robot, is_active
        self._problems = problems
        self._tare: _Tare | None = None
        self._poses: tuple[TareRecorder, ...] = ()
        self._sensors: tuple[str, ...] | None = None
        self._urdf, self._supports = urdf, supports
        names = tuple(active.sensors)
        chosen = [
            ('tare', None),
            *((f'tare_{t}', (n,)) for t, n in zip(topic_names(names), names)),
        ]
        self._services = [
            create_service(node, Trigger, f'~/{name}', partial(self._of, sensors), UNCHANGED)
            for name, sensors in chosen
        ]
        self._services.append(
            create_service(node, Trigger, '~/add_tare_pose', self._add_pose, UNCHANGED)
        )

    @property
    def collecting(self) -> bool:
        """True while samples are wanted."""
        return self._tare is not None

    @property
    def progress(self) -> str:
        """Progress for the diagnostics."""
        return 'none' if self._tare is None else f'{100.0 * self._tare.recorder.done:.0f} %'

    def start(self) -> None:
        """Tare at the start, if the settings say so; call it once active."""
        if not self._settings.tare.on_start or not self._active.sensors:
            return
        try:
            done = self._begin(None, (), at_start=True)
        except InertialEstimationError as error:
            self._note_start(False, str(error))
            return
        done.add_done_callback(lambda future: self._note_start(*future.result()))

    def add(self, sample: Sample, touches: Sequence[Contact]) -> None:
        """Take a sample while they are wanted."""
        tare = self._tare
        assert tare is not None
        try:
            if not tare.recorder.add(sample, touches):
                return
        except CalibrationError as error:
            self._give_up(str(error))
            return
        self._tare = None
        self._compute(tare)

    def look(self) -> None:
        """Give up without samples; call it once a second."""
        tare = self._tare
        if tare is None:
            return
        if not self._is_active():
            self._give_up('the node was deactivated')
            return
        count = tare.recorder.count
        if count == tare.seen and not (tare.waits and not count):
            self._give_up('no joint states')
        tare.seen = count

    def destroy(self) -> None:
        """Destroy the services."""
        if self._tare is not None:
            self._give_up('the node was cleaned up')
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()

    async def _of(self, sensors: tuple[str, ...] | None) -> str:
        """Tare some sensors, or all."""
        return await self._result(self._begin(sensors, ()))

    async def _add_pose(self) -> str:
        """Tare from this pose together with those before."""
        if not self._poses:
            raise CalibrationError('there is no tare yet to which a pose could be added')
        return await self._result(self._begin(self._sensors, self._poses[-MAX_POSES:]))

    async def _result(self, done: Future) -> str:
        """Return the message of a tare when it is done."""
        success, message = await done
        if not success:
            raise CalibrationError(message)
        return message

    def _begin(
        self,
        sensors: tuple[str, ...] | None,
        earlier: tuple[TareRecorder, ...],
        *,
        at_start: bool = False,
    ) -> Future:
        """Begin to record; return the future of success and message."""
        if self._tare is not None:
            raise CalibrationError('another tare is being recorded')
        if not self._is_active() and not at_start:
            raise CalibrationError('the node is not active')
        if not self._supports:
            raise CalibrationError(NO_SUPPORT)
        done = Future(executor=self._node.executor)
        recorder = TareRecorder(
            self._robot(), self._supports, self._settings.tare.duration, refuse_touched=at_start
        )
        self._tare = _Tare(recorder, sensors, earlier, done, at_start, Counter(self._problems))
        return done

    def _give_up(self, why: str) -> None:
        """End the recording."""
        tare, self._tare = self._tare, None
        tare.done.set_result((False, why))

    def _compute(self, tare: _Tare) -> None:
        """Compute the offsets in another process, and use them between two cycles."""
        before, robot = self._active.sensors, self._robot()
        seconds = self._node.get_clock().now().nanoseconds // 1_000_000_000
        date = datetime.fromtimestamp(seconds, timezone.utc).isoformat()
        poses = (*tare.earlier, tare.recorder)
        touched = tare.recorder.touched
        contacts = f' (contacts on {", ".join(sorted(touched))})' if touched else ''

        def finish(future: Future) -> None:
            try:
                changed, message = future.result()
                if lost := self._problems - tare.problems:
                    raise CalibrationError(f'contact that cannot be placed: {"; ".join(lost)}')
                if self._active.sensors is not before:
                    raise CalibrationError('the calibration was changed meanwhile')
                self._updates.take(changed)
            except InertialEstimationError as error:
                tare.done.set_result((False, error.renamed(NAMES) + contacts))
                return
            self._poses, self._sensors = poses, tare.sensors
            tare.done.set_result((True, message + contacts))

        samples, felt = stack_recorded(poses)
        job = TareJob(
            self._settings, self._urdf, robot.parameters, dict(before), self._supports,
            tare.sensors, samples, felt, date,
        )  # fmt: skip
        self._background.run(find_offsets, job).add_done_callback(finish)

    def _note_start(self, success: bool, message: str) -> None:
        """Report the tare at the start."""
        if success:
            self._node.get_logger().info(f'tare.on_start: {message}')
        else:
            self._updates.remark = f'tare.on_start refused: {message}'


def find_supports(settings: EstimatorSettings, robot: Robot) -> tuple[str, ...]:
    """Return the frames that carry the robot during tares."""
    for support in settings.tare.supports:
        robot.frame(support, f"'tare.supports' names '{support}'")
    fixed = (settings.fixed_link,) if settings.fixed_link else ()
    supports = settings.tare.supports or fixed
    if settings.tare.on_start and not supports:
        raise ConfigError(f"'tare.on_start' is true: {NO_SUPPORT}")
    return supports
