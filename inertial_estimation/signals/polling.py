# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Samples of the messages of a node that needs a few of them, and looks now and then."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import itemgetter

from inertial_estimation.sample import Sample
from inertial_estimation.signals.messages import stamp_of
from inertial_estimation.signals.router import CONTACTS, Router, Source


def poll(router: Router, take: Callable[[Source], list[bytes]]) -> Iterator[Sample]:
    """
    Make the samples of the messages that `take` returns for each source.

    Between two samples ``wanted_ns`` of the assembler may be set.
    """
    *others, leading = router.sources
    # Joint states first, so that the sensor readings of their stamps have arrived.
    arrived, contacts = take(leading), []
    for source in others:
        if source.kind in CONTACTS:
            contacts += [(stamp_of(data), data, source) for data in take(source)]
        else:
            source.hand_over(take(source))
    contacts.sort(key=itemgetter(0), reverse=True)
    for data in arrived:
        # After a stall the newest are far ahead of the first joint state.
        while contacts and contacts[-1][0] <= stamp_of(data):
            _, point, source = contacts.pop()
            source.handle(point)
        if (sample := leading.handle(data)) is not None:
            yield sample
    for _, point, source in reversed(contacts):
        source.handle(point)
