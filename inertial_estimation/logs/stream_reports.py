# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How the streams of a bag behaved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from inertial_estimation.logs.figures import StreamReport
from inertial_estimation.signals.stream import StreamStatistics


def stream_reports(
    streams: Mapping[str, StreamStatistics], origin_ns: int
) -> tuple[StreamReport, ...]:
    """Sum up streams."""
    reports = []
    for name, s in streams.items():
        intervals = tuple(
            ((interval.first_ns - origin_ns) / 1e9, (interval.last_ns - origin_ns) / 1e9)
            for interval in s.frozen_intervals
        )
        reports.append(
            StreamReport(
                name=name,
                received=s.received,
                rate_hz=s.rate,
                longest_gap_s=s.longest_gap,
                repeated=s.repeated,
                invalid=s.invalid,
                refused=s.refused,
                restarts=s.restarts,
                unfiltered=s.unfiltered,
                never_filtered=s.filter_lack if s.unfiltered and not s.used else '',
                frozen_s=sum(stop - start for start, stop in intervals),
                frozen_intervals_s=intervals,
            )
        )
    return tuple(reports)


def with_topics(
    parts: Mapping[str, StreamStatistics], topics: Sequence[str]
) -> dict[str, StreamStatistics]:
    """Name the parts of the joint states by their topics in place of the indices."""
    return {_with_topic(name, topics): part for name, part in sorted(parts.items())}


def _with_topic(name: str, topics: Sequence[str]) -> str:
    """Return the name of a part of the joint states with its topic."""
    index, _, joints = name.partition(': ')
    return f'{topics[int(index)]}: {joints}'
