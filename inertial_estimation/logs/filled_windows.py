# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Logs without a single derivative: a window that is too short leaves every prediction open."""

from __future__ import annotations

from inertial_estimation.errors import LogError
from inertial_estimation.logs.recording import Recording
from inertial_estimation.logs.stream_reports import stream_reports


def require_derivatives(recording: Recording) -> None:
    """Refuse a log in which a stream never had derivatives."""
    statistics = recording.statistics
    lacking: dict[str, list[str]] = {}
    for kind, streams in (
        ('joint states', statistics.joints),
        ('IMU', statistics.imus),
        ('FT sensor', statistics.fts),
    ):
        for one in stream_reports(streams, recording.origin_ns):
            if one.never_filtered:
                name = kind if streams is statistics.joints else f"{kind} '{one.name}'"
                lacking.setdefault(one.never_filtered, []).append(name)
    if lacking:
        why, names = next(iter(lacking.items()))
        raise LogError(
            f'the filter never knows {", ".join(dict.fromkeys(names))}, as it has {why}: set a '
            'longer derivative_window in the parameter file'
        )
