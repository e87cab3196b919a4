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

from inertial_estimation.calibration.calibration_file import ActiveCalibration
from inertial_estimation.calibration.tare import DURATION, TareRecorder, tare
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import CalibrationError, InertialEstimationError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.encoders import topic_names
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.calibration_updates import UNCHANGED, CalibrationUpdates
from inertial_estimation.ros.executors import create_service
from inertial_estimation.sample import Sample, SampleBatch

MAX_POSES = 20
NAMES = {'accept_split': '--accept-split of calibrate offsets', 'supports': "'tare_supports'"}
"""Parameters for arguments of the library."""
NO_SUPPORT = "'tare_supports' is empty and there is no fixed link"

Poses = tuple[tuple[SampleBatch, list[bool]], ...]


@dataclass
class _Tare:
    """A tare that is being recorded."""

    recorder: TareRecorder
    sensors: tuple[str, ...] | None
    """Whose offsets are wanted; None: all."""
    earlier: Poses
    done: Future
    """With the answer, or a CalibrationError."""
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
        for support in settings.tare_supports:
            robot().frame(support, f"'tare_supports' names '{support}'")
        fixed = (settings.fixed_link,) if settings.fixed_link else ()
        self._urdf, self._supports = urdf, settings.tare_supports or fixed
        self._tare: _Tare | None = None
        self._poses: Poses = ()
        self._sensors: tuple[str, ...] | None = None
        work = {'tare': partial(self._begin, None), 'add_tare_pose': self._add_pose}
        for topic, name in zip(topic_names(active.sensors), active.sensors):
            work[f'tare_{topic}'] = partial(self._begin, (name,))
        for name, begin in work.items():
            create_service(node, Trigger, f'~/{name}', begin, UNCHANGED)

    @property
    def collecting(self) -> bool:
        """True while samples are wanted."""
        return self._tare is not None

    @property
    def progress(self) -> str:
        """Progress for the diagnostics."""
        return 'none' if self._tare is None else f'{100.0 * self._tare.recorder.done:.0f} %'

    def add(self, sample: Sample, touches: Sequence[Contact]) -> None:
        """Take a sample while they are wanted."""
        now = self._tare
        assert now is not None
        try:
            is_over = now.recorder.add(sample, touches)
        except CalibrationError as error:
            self._give_up(str(error))
            return
        if is_over:
            self._tare = None
            self._compute(now)

    def look(self) -> None:
        """Give up without samples; call it once a second."""
        if self._tare is None:
            return
        count, last = len(self._tare.recorder.samples), self._tare.seen
        self._tare.seen = count
        if not self._is_active():
            self._give_up('the node was deactivated')
        elif count == last:
            self._give_up('no joint states')

    def destroy(self) -> None:
        """End a tare."""
        if self._tare is not None:
            self._give_up('the node was cleaned up')

    def _add_pose(self) -> Future:
        if not self._poses:
            raise CalibrationError('there is no tare yet to which a pose could be added')
        return self._begin(self._sensors, self._poses[-MAX_POSES:])

    def _begin(self, sensors: tuple[str, ...] | None, earlier: Poses = ()) -> Future:
        """Begin to record; return the future of the answer."""
        if self._tare is not None:
            raise CalibrationError('another tare is being recorded')
        if not self._is_active():
            raise CalibrationError('the node is not active')
        if not self._supports:
            raise CalibrationError(NO_SUPPORT)
        recorder = TareRecorder(self._robot(), self._supports, DURATION)
        done = Future(executor=self._node.executor)
        self._tare = _Tare(recorder, sensors, earlier, done, Counter(self._problems))
        return done

    def _give_up(self, why: str) -> None:
        given_up, self._tare = self._tare, None
        given_up.done.set_exception(CalibrationError(why))

    def _compute(self, over: _Tare) -> None:
        """Compute the offsets in another process, and use them between two cycles."""
        before, poses = self._active.sensors, (*over.earlier, over.recorder.recorded())
        seconds = self._node.get_clock().now().nanoseconds // 1_000_000_000
        touched = ', '.join(sorted(over.recorder.touched))
        contacts = f' (contacts on {touched})' if touched else ''

        def finish(future: Future) -> None:
            try:
                changed, message = future.result()
                if lost := self._problems - over.problems:
                    raise CalibrationError(f'contact that cannot be placed: {"; ".join(lost)}')
                if self._active.sensors is not before:
                    raise CalibrationError('the calibration was changed meanwhile')
                self._updates.take(changed)
            except InertialEstimationError as error:
                over.done.set_exception(CalibrationError(error.renamed(NAMES) + contacts))
                return
            self._poses, self._sensors = poses, over.sensors
            over.done.set_result(message + contacts)

        self._background.run(
            tare, self._settings, self._urdf, self._robot().parameters, dict(before),
            self._supports, over.sensors, poses,
            datetime.fromtimestamp(seconds, timezone.utc).isoformat(),
        ).add_done_callback(finish)  # fmt: skip
