# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of the FT sensors from the model, found while the node runs [T 4.7].

Samples are collected in the cycle, which costs it next to nothing; what they tell is computed
beside the cycles. An answer comes when all is done.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone

from rclpy.lifecycle import LifecycleNode
from rclpy.task import Future
from std_srvs.srv import Trigger

from inertial_estimation.calibration.collecting import Collecting, in_quotes, stack_collected
from inertial_estimation.calibration.in_use import CalibrationInUse
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import (
    CalibrationError,
    ConfigError,
    InertialEstimationError,
    OffsetsNotUnique,
)
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.background import Background
from inertial_estimation.ros.calibration_updates import CalibrationUpdates
from inertial_estimation.ros.services import create_waiting_services
from inertial_estimation.ros.tare_job import TareJob, find_offsets
from inertial_estimation.sample import Sample
from inertial_estimation.signals.names import topic_names

MOST_POSES = 20
"""That are kept."""
ON_START = 'the tare at the start'
BUSY = 'samples are being collected for another tare: ask again when it is done'
INACTIVE = 'the node is not active: nothing is estimated'
NAMES = {
    'accept_split': "the parameter 'tare_accept_split'",
    'supports': "'tare_supports'",
    'sensors': "the tare, as '~/tare' does",
}
"""What arguments of the library are called here."""
NO_SUPPORT = (
    "'tare_supports' is empty and there is no fixed link: name the links that carry the robot "
    'there, such as the foot that it stands on'
)


@dataclass
class _Tare:
    """One that is being made."""

    collecting: Collecting
    sensors: tuple[str, ...] | None
    """Whose offsets are wanted; None: all."""
    earlier: tuple[Collecting, ...]
    """Of other poses."""
    done: Future
    """Has whether it succeeded, and what is said of it."""
    waits: bool
    """Whether it waits for the first joint states as long as they take."""
    problems: Counter[str]
    """Touches that could not be placed before it."""
    seen: int = -1
    """Samples at the report before."""


class Taring:
    """The services that find offsets."""

    def __init__(
        self,
        node: LifecycleNode,
        settings: EstimatorSettings,
        urdf: str,
        supports: tuple[str, ...],
        in_use: CalibrationInUse,
        updates: CalibrationUpdates,
        background: Background,
        robot: Callable[[], Robot],
        is_active: Callable[[], bool],
        problems: Counter[str],
    ) -> None:
        self._node, self._settings, self._in_use = node, settings, in_use
        self._updates, self._background = updates, background
        self._robot, self._is_active = robot, is_active
        self._problems = problems
        self._tare: _Tare | None = None
        self._poses: tuple[Collecting, ...] = ()
        self._sensors: tuple[str, ...] | None = None
        self._urdf, self._supports = urdf, supports
        names = tuple(in_use.sensors)
        callbacks = {'tare': self._service(None), 'add_tare_pose': self._on_pose}
        for topic, name in zip(topic_names(names), names):
            callbacks[f'tare_{topic}'] = self._service((name,))
        self._services = create_waiting_services(node, callbacks)

    @property
    def collecting(self) -> bool:
        """Whether samples are wanted."""
        return self._tare is not None

    @property
    def progress(self) -> str:
        """What is being done, for the diagnostics."""
        if self._tare is None:
            return 'none'
        return f'{100.0 * self._tare.collecting.done:.0f} % of the samples'

    def start(self) -> None:
        """Find offsets if that is wanted at the start; call it once active."""
        if not self._settings.tare_on_start or not self._in_use.sensors:
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
            if not tare.collecting.add(sample, touches):
                return
        except CalibrationError as error:
            self._give_up(str(error))
            return
        self._tare = None
        self._compute(tare)

    def look(self) -> None:
        """Give up where no sample comes any more; call it once a second."""
        tare = self._tare
        if tare is None:
            return
        if not self._is_active():
            self._give_up('the node was deactivated meanwhile')
            return
        count = tare.collecting.count
        if count == tare.seen and not (tare.waits and not count):
            self._give_up(
                'joint states stay away' if count else 'no joint states: nothing is estimated'
            )
        tare.seen = count

    def destroy(self) -> None:
        """Give the services back."""
        if self._tare is not None:
            self._give_up('the node was cleaned up meanwhile')
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()

    def _service(self, sensors: tuple[str, ...] | None):
        """Return what answers a request to find some offsets, or all."""

        async def answer(request: Trigger.Request, response: Trigger.Response):
            return await self._answer(response, lambda: self._begin(sensors, ()))

        return answer

    async def _on_pose(self, request: Trigger.Request, response: Trigger.Response):
        """Find offsets from this pose together with those before."""

        def begin() -> Future:
            if not self._poses:
                raise CalibrationError(
                    'there is no tare yet that a pose could be added to: call ~/tare first'
                )
            return self._begin(self._sensors, self._poses[-MOST_POSES:])

        return await self._answer(response, begin)

    async def _answer(self, response: Trigger.Response, begin: Callable[[], Future]):
        """Answer when a tare is done."""
        try:
            response.success, response.message = await begin()
        except InertialEstimationError as error:
            response.success, response.message = False, _refused(str(error))
        return response

    def _begin(
        self,
        sensors: tuple[str, ...] | None,
        earlier: tuple[Collecting, ...],
        *,
        at_start: bool = False,
    ) -> Future:
        """Begin to collect samples; return what will have the outcome."""
        if self._tare is not None:
            raise CalibrationError(BUSY)
        if not self._is_active() and not at_start:
            raise CalibrationError(INACTIVE)
        if not self._supports:
            raise CalibrationError(NO_SUPPORT)
        done = Future(executor=self._node.executor)
        collecting = Collecting(
            self._robot(),
            self._supports,
            self._settings.tare_duration,
            refuse_touched=at_start,
        )
        self._tare = _Tare(collecting, sensors, earlier, done, at_start, Counter(self._problems))
        return done

    def _give_up(self, why: str) -> None:
        """Stop to collect, and say why."""
        tare, self._tare = self._tare, None
        tare.done.set_result((False, _refused(why)))

    def _compute(self, tare: _Tare) -> None:
        """Find the offsets beside the cycles, then take them over between two."""
        before, robot = self._in_use.sensors, self._robot()
        date = datetime.fromtimestamp(
            self._node.get_clock().now().nanoseconds // 1_000_000_000, timezone.utc
        ).isoformat()
        poses = (*tare.earlier, tare.collecting)

        def finish(future: Future) -> None:
            try:
                changed, said = future.result()
                if lost := self._problems - tare.problems:
                    raise CalibrationError(
                        f'a touch was reported that cannot be placed: {"; ".join(lost)}: correct '
                        'its sender, as only touches that can be placed are left out'
                    )
                if self._in_use.sensors is not before:
                    raise CalibrationError('the calibration was changed meanwhile: begin anew')
                self._updates.take(changed)
            except InertialEstimationError as error:
                tare.done.set_result((False, _refused(_with_remedy(error, poses[-1]))))
                return
            self._poses, self._sensors = poses, tare.sensors
            tare.done.set_result((True, said + _felt(poses[-1])))

        samples, felt = stack_collected(poses)
        job = TareJob(
            self._settings,
            self._urdf,
            robot.parameters,
            dict(before),
            self._supports,
            tare.sensors,
            samples,
            felt,
            date,
        )
        self._background.run(find_offsets, job).add_done_callback(finish)

    def _note_start(self, success: bool, said: str) -> None:
        """Say what came of the tare at the start."""
        if success:
            self._node.get_logger().info(f'{ON_START}: {said}')
        else:
            self._updates.remark = f'{ON_START} was refused: {said}'


def find_supports(settings: EstimatorSettings, robot: Robot) -> tuple[str, ...]:
    """Return the frames that carry the robot while offsets are found."""
    for support in settings.tare_supports:
        robot.frame(support, f"'tare_supports' names '{support}'")
    fixed = (settings.fixed_link,) if settings.fixed_link else ()
    supports = settings.tare_supports or fixed
    if settings.tare_on_start and not supports:
        raise ConfigError(f"'tare_on_start' is true: {NO_SUPPORT}")
    return supports


def _with_remedy(error: InertialEstimationError, collecting: Collecting) -> str:
    """Return why a tare is refused, with the parameter and the links that were touched."""
    said = error.said_with(NAMES)
    if isinstance(error, OffsetsNotUnique):
        return said
    return f'{said}{_felt(collecting)}'


def _felt(collecting: Collecting) -> str:
    """Return the links that were touched meanwhile, for the end of a sentence."""
    return f' (touched: {in_quotes(collecting.touched)})' if collecting.touched else ''


def _refused(why: str) -> str:
    """Return what is said of a tare that changed nothing."""
    return f'nothing was changed: {why}'
