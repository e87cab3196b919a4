# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Messages of topics that a node polls now and then instead of waking up for each of them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator

from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.cdr import stamp_of
from inertial_estimation.signals.router import CONTACTS, Router, Source


class Backlog:
    """
    Messages of polled topics.

    Joint states go to the assembler one by one, as filters need each. Of sensors only the message
    that is the newest at a sample is decoded, unless a filter needs more; the others are counted.
    The samples are those that handling each message as it comes would have made.
    """

    def __init__(self, router: Router, assembler: SampleAssembler) -> None:
        self._assembler = assembler
        self._joints = [source for source in router.sources if source.kind == 'joints']
        self._others = [source for source in router.sources if source.kind != 'joints']

    def clear(self) -> None:
        """Forget the messages that wait."""
        for source in (*self._joints, *self._others):
            source.waiting.clear()

    def poll(self, take: Callable[[Source], Iterable[bytes]]) -> Iterator[Sample]:
        """
        Make the samples of the messages that `take` returns for each source.

        Between two samples ``assembler.wanted_ns`` may be set.
        """
        # Joint states first, so that the sensor readings of their stamps have arrived.
        for source in self._joints:
            source.waiting.extend((0, data) for data in take(source))
        for source in self._others:
            self._collect(source, take)
        *minor, leading = self._joints
        for source in minor:
            source.flush()
        if not leading.waiting:
            self._flush()
        while leading.waiting:
            _, data = leading.waiting.popleft()
            stamp_ns = stamp_of(data)
            if not stamp_ns:
                self._flush()
            elif stamp_ns >= self._assembler.wanted_ns:
                self._hand_over(stamp_ns)
            if (sample := leading.handle(data)) is not None:
                yield sample

    def _flush(self) -> None:
        for source in self._others:
            source.flush()

    def _collect(self, source: Source, take: Callable[[Source], Iterable[bytes]]) -> None:
        for data in take(source):
            stamp_ns = stamp_of(data)
            # Contacts come from many senders in any order; else a clock was set back.
            last_ns = source.waiting[-1][0] if source.waiting else 0
            source.waiting.append((stamp_ns, data))
            if source.kind not in CONTACTS and not 0 < stamp_ns >= last_ns:
                source.flush()

    def _hand_over(self, stamp_ns: int) -> None:
        """Hand over the messages that the sample of a joint state may need."""
        for source in self._others:
            latest, waiting = stamp_ns - source.offset_ns, source.waiting
            if source.kind in CONTACTS:
                source.waiting = deque(one for one in waiting if one[0] > latest)
                for stamp, data in waiting:
                    if stamp <= latest:
                        source.handle(data)
                continue
            newest = None
            while waiting and waiting[0][0] <= latest:
                stream = source.stream
                if newest is not None and not (stream is not None and stream.skip(newest[0])):
                    source.handle(newest[1])
                newest = waiting.popleft()
            if newest is not None:
                source.handle(newest[1])
