# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Subscriptions that nothing wakes up for: who needs a hundred samples a second looks now and then.

Messages wait in the middleware and are taken all at once. Joint states go to the assembler one by
one, as filters need each. Of sensors only what is the newest at a sample is decoded, unless a
filter needs more; the others are counted. So samples are those that callbacks would have made.
"""

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from rclpy.subscription import Subscription

from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.sources import Source
from inertial_estimation.ros.steady_timer import SteadyTimer
from inertial_estimation.signals.cdr import ENCAPSULATION, NANOSECONDS, STAMP, STAMP_AT

PERIOD = 0.05
"""Time between two looks [s]; a second of messages fits into each history."""
Waiting = deque[tuple[int, Any]]


class _Lane:
    """Messages of one topic that wait for their sample."""

    def __init__(self, source: Source, take: Callable, give: Callable, offset_ns: int) -> None:
        self.source = source
        self.take, self.give, self.offset_ns = take, give, offset_ns
        self.waiting: Waiting = deque()

    def flush(self) -> None:
        """Hand over all that wait."""
        while self.waiting:
            self.give(self.waiting.popleft()[1])


class PolledInputs(Inputs):
    """
    The subscriptions of a node that polls all of them.

    Its executor must leave those of a `PolledGroup` alone.
    """

    def __init__(self, *args, **kwargs) -> None:
        self._lanes: list[_Lane] = []
        super().__init__(*args, **kwargs, polled=True)
        self._timer = SteadyTimer(self._node, PERIOD, self.poll)

    def destroy(self) -> None:
        """Give subscriptions and timer back."""
        if timer := getattr(self, '_timer', None):
            timer.destroy()
        self._lanes.clear()
        super().destroy()

    def forget(self) -> None:
        """Throw away what was taken and waits."""
        for lane in self._lanes:
            lane.waiting.clear()

    def poll(self) -> None:
        """Take all that waits, and make the samples of it."""
        joints = [lane for lane in self._lanes if lane.source.kind == 'joints']
        others = [lane for lane in self._lanes if lane.source.kind != 'joints']
        # First: what sensors said at these instants has come by the time that they are asked.
        for lane in joints:
            lane.waiting.extend((0, data) for data in lane.take())
        for lane in others:
            self._collect(lane)
        *minor, leading = joints
        _flush(minor)
        silent = not leading.waiting
        while leading.waiting:
            _, data = leading.waiting.popleft()
            stamp_ns = _stamp_of(data)
            if not stamp_ns:
                _flush(others)
            elif stamp_ns >= self._assembler.wanted_ns:
                self._hand_over(others, stamp_ns)
            leading.give(data)
        if silent:
            _flush(others)

    def _subscribe(self, source: Source, callback: Callable, wakes: bool = False) -> None:
        """Subscribe to a source, which wakes nobody."""
        super()._subscribe(source, callback)
        subscription, _ = self._drained[-1]
        raw = self._settings.raw
        self._lanes.append(
            _Lane(source, lambda: taken(subscription, raw), callback, self._offset_ns(source))
        )

    def _drain(self) -> None:
        """Take nothing: `poll` has."""

    def _offset_ns(self, source: Source) -> int:
        """Return what is added to the stamps of a source."""
        kinds = {'ft': self._settings.ft_of, 'imu': self._settings.imu_of}
        return round(1e9 * kinds[source.kind](source.name).time_offset) if (
            source.kind in kinds) else 0  # fmt: skip

    def _collect(self, lane: _Lane) -> None:
        """Keep new messages for their samples."""
        for data in lane.take():
            stamp_ns = _stamp_of(data)
            # Points come from many senders in any order; a sensor's clock was set back.
            last_ns = lane.waiting[-1][0] if lane.waiting else 0
            ordered = lane.source.kind == 'contacts' or 0 < stamp_ns >= last_ns
            lane.waiting.append((stamp_ns, data))
            if not ordered:
                lane.flush()

    def _hand_over(self, lanes: list[_Lane], stamp_ns: int) -> None:
        """Give the assembler what a sample may need."""
        for lane in lanes:
            latest = stamp_ns - lane.offset_ns
            if lane.source.kind == 'contacts':
                due = [data for stamp, data in lane.waiting if stamp <= latest]
                lane.waiting = deque(one for one in lane.waiting if one[0] > latest)
                for data in due:
                    lane.give(data)
                continue
            waiting, newest = lane.waiting, None
            while waiting and waiting[0][0] <= latest:
                if newest is not None:
                    self._pass_over(lane, *newest)
                newest = waiting.popleft()
            if newest is not None:
                lane.give(newest[1])

    def _pass_over(self, lane: _Lane, stamp_ns: int, data: Any) -> None:
        """Only count a message that no sample uses, if nothing else does."""
        source, assembler = lane.source, self._assembler
        if source.kind == 'temperature':
            lane.give(data)
            return
        skip = assembler.skip_ft if source.kind == 'ft' else assembler.skip_imu
        if not skip(source.index, stamp_ns):
            lane.give(data)


def _flush(lanes: list[_Lane]) -> None:
    """Hand over all that wait."""
    for lane in lanes:
        lane.flush()


def taken(subscription: Subscription, raw: bool) -> Iterator[Any]:
    """Yield every message that waits in a subscription."""
    take, kind = subscription.handle.take_message, subscription.msg_type
    found = take(kind, raw)
    while found is not None:
        yield found[0]
        found = take(kind, raw)


def _stamp_of(data: Any) -> int:
    """Return the stamp of a message, zero if it is not in plain bytes [ns]."""
    if not isinstance(data, bytes):
        stamp = data.header.stamp
        return int(stamp.sec * NANOSECONDS + stamp.nanosec)
    if data[:4] != ENCAPSULATION or len(data) < STAMP_AT + STAMP.size:
        return 0
    second, nanosecond = STAMP.unpack_from(data, STAMP_AT)
    return int(second * NANOSECONDS + nanosecond)
