# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the momentum of a logged robot changes as the estimated wrenches say [T 2.84, 2.85]."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import (
    WINDOW_NS,
    WINDOWS,
    MomentumCheck,
    MomentumReport,
)
from inertial_estimation.estimation.momentum_verdict import is_doubtful, momentum_advice
from inertial_estimation.logs.check_figures import MomentumFigures
from inertial_estimation.logs.replay import Replay
from inertial_estimation.sample import Array
from inertial_estimation.uncertainty.momentum_noise import MomentumNoise


class _Stretch(NamedTuple):
    """What the check says about up to `WINDOWS` windows."""

    first_s: float
    last_s: float
    report: MomentumReport
    noise: Array
    """Force [N] and moment [Nm], shape (2,); NaN: not known."""

    @property
    def is_doubtful(self) -> bool:
        """Whether more is unexplained than noise, and a right filter, leave."""
        return is_doubtful(self.report, self.noise)


def momentum_figures(replay: Replay) -> MomentumFigures | None:
    """Compare the change of momentum with the wrenches, as the node does."""
    stretches = list(_stretches(replay))
    if not stretches:
        return None
    counts = np.array([s.report.windows for s in stretches], dtype=float)

    def rms(values: list[Array]) -> list[float]:
        squares = np.array(values) ** 2
        return list(np.sqrt(counts @ squares / counts.sum()).tolist())

    unexplained = rms([s.report.unexplained for s in stretches])
    change = rms([s.report.change for s in stretches])
    noise = rms([s.noise for s in stretches])
    return MomentumFigures(
        windows=int(counts.sum()),
        unexplained_force_n=unexplained[0],
        unexplained_moment_nm=unexplained[1],
        change_of_linear_momentum_n=change[0],
        change_of_angular_momentum_nm=change[1],
        noise_force_n=noise[0],
        noise_moment_nm=noise[1],
        noise_lack=MomentumNoise(replay.settings, replay.robot).lack(replay.recording.rates),
        advice=momentum_advice(replay.settings),
        doubtful_s=tuple((s.first_s, s.last_s) for s in stretches if s.is_doubtful),
    )


def _stretches(replay: Replay) -> Iterator[_Stretch]:
    """Yield what the check says, about ten seconds at a time."""
    recording, robot = replay.recording, replay.robot
    samples, times = recording.samples, recording.times
    noise = MomentumNoise(replay.settings, robot)
    check, first, looked_ns = MomentumCheck(robot), 0, 0
    for row, stamp_ns in enumerate(samples.stamp_ns.tolist()):
        check.add(samples[row], _at(replay.estimate, row))
        # Often enough that no window is forgotten.
        if 0 <= stamp_ns - looked_ns < WINDOW_NS // 2:
            continue
        looked_ns = stamp_ns
        if check.report().windows == WINDOWS:
            left = noise.deviation(check, recording.rates)
            yield _Stretch(float(times[first]), float(times[row]), check.report(), left)
            check, first = MomentumCheck(robot), row + 1
    if check.report().windows:
        left = noise.deviation(check, recording.rates)
        yield _Stretch(float(times[first]), float(times[-1]), check.report(), left)


def _at(estimate: WrenchEstimate, row: int) -> WrenchEstimate:
    """Return one instant of a batch."""
    fields: dict[str, Any] = {
        name: getattr(estimate, name)[row] for name in WrenchEstimate._fields if name != 'contacts'
    }
    return WrenchEstimate(contacts=estimate.contacts, **fields)
