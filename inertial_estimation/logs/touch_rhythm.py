# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Touches that lapse and come back because their sender is slower than ``contact_timeout``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

NANOSECONDS = 1_000_000_000
FEWEST = 3
"""Fewer gaps may be chance."""
REGULAR = 0.25
"""Gaps that are no further from their median, as a share of it, are those of a sender."""
USUAL = 0.5
"""At least so many of all gaps must be such: with two points a message every second one is."""


@dataclass(frozen=True)
class Lapse:
    """A frame whose touch ends and begins again at the period of its sender."""

    frame: str
    n_gaps: int
    period_s: float
    """Median of these gaps."""
    timeout_s: float


class TouchRhythm:
    """
    Notes when which frame is felt.

    Parameters
    ----------
    timeout : float
        After which a touch is over [s].

    """

    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._stamps: dict[str, list[int]] = {}

    def note(self, stamp_ns: int, frame: str) -> None:
        """
        Take a message.

        Parameters
        ----------
        stamp_ns : int
            Its stamp [ns]; one of zero says nothing.
        frame : str
            Frame that is felt.

        """
        if stamp_ns > 0:
            self._stamps.setdefault(frame, []).append(stamp_ns)

    @property
    def lapses(self) -> tuple[Lapse, ...]:
        """The frames whose senders are too slow."""
        found = (self._lapse(frame, stamps) for frame, stamps in self._stamps.items())
        return tuple(lapse for lapse in found if lapse is not None)

    def _lapse(self, frame: str, stamps: list[int]) -> Lapse | None:
        gaps = np.diff(np.unique(stamps)) / NANOSECONDS
        long = gaps[gaps > self._timeout]
        if len(long) < FEWEST:
            return None
        period = float(np.median(long))
        n = int((np.abs(long - period) <= REGULAR * period).sum())
        if n < FEWEST or n < USUAL * len(gaps):
            return None
        return Lapse(frame, n, period, self._timeout)
