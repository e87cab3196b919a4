# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""How often touches are reported: a sender slower than ``contact_timeout`` makes them flicker."""

from collections import deque
from typing import NamedTuple

import numpy as np

from inertial_estimation.ros.conversions import NANOSECONDS

KEPT = 32
"""Stamps of each frame."""
MAX_FRAMES = 64
"""More than this is not a robot but a fault of a sender."""
FEWEST = 3
"""Fewer long gaps may be chance."""
SILENT = 3.0
"""A sender that has not spoken for so many periods has ended, or nothing is felt any more."""


class SlowSender(NamedTuple):
    """A frame whose touches lapse between one message and the next."""

    frame: str
    period: float
    """Usual time between two stamps [s]."""


class TouchRhythm:
    """
    Notes the stamps of the touches of each frame.

    Parameters
    ----------
    timeout : float
        After which a touch is over [s].

    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._stamps: dict[str, deque[int]] = {}

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
        if stamp_ns <= 0:
            return
        stamps = self._stamps.get(frame)
        if stamps is None:
            if len(self._stamps) >= MAX_FRAMES:
                return
            stamps = self._stamps[frame] = deque(maxlen=KEPT)
        if stamps and stamp_ns < stamps[-1]:
            # Two senders of one frame may be out of step; time set back is another matter.
            if stamps[-1] - stamp_ns < self.timeout * NANOSECONDS:
                return
            stamps.clear()
        # Several points of one instant are one message in this regard.
        if not stamps or stamp_ns > stamps[-1]:
            stamps.append(stamp_ns)

    def slow_senders(self, now_ns: int) -> list[SlowSender]:
        """
        Return the frames whose touches lapse, although somebody goes on reporting them.

        Parameters
        ----------
        now_ns : int
            Stamp of the newest joint state [ns].

        Returns
        -------
        list of SlowSender
            Where most gaps between two stamps are longer than the timeout. A finger that taps is
            not one of them: its messages come fast while it is there.

        """
        found = []
        for frame, stamps in self._stamps.items():
            gaps = np.diff(stamps) / NANOSECONDS
            long = gaps[gaps > self.timeout]
            if len(long) < FEWEST or 2 * len(long) <= len(gaps):
                continue
            period = float(np.median(long))
            if now_ns - stamps[-1] <= SILENT * period * NANOSECONDS:
                found.append(SlowSender(frame, period))
        return found
