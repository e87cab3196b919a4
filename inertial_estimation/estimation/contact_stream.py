# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
From points that somebody feels to contacts [T section 4.5.2, Assumption 4.1].

Several senders (skin patches) may each report several points of several links. No message says
which contact it belongs to, live or in a bag, so place and time decide: a point replaces the
nearest earlier one of its frame within `touch_spacing`, any other is a contact of its own. A
contact that nobody repeats is over after `contact_timeout`.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass
from math import dist

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array

MAX_TRACKS = 64
"""Contacts at a time; more than this is not a robot but a fault of a sender."""
MAX_PENDING = 1000
"""Points of one contact that may wait for their instant."""
MAX_PROBLEMS = 20
TOO_EARLY = 'the stamp is far ahead of the joint states: one of the clocks is wrong'
TOO_LATE = 'the stamp is older than the joint states by more than contact_timeout'


@dataclass(frozen=True)
class ContactStatistics:
    """What came in so far."""

    received: int
    """Messages."""
    live: int
    """Contacts at the last instant that was asked for."""
    dropped: int
    """Messages that were one contact too many."""


class _Track:
    """One contact over time."""

    __slots__ = ('frame', 'points')

    def __init__(self, frame: str) -> None:
        self.frame = frame
        self.points: deque[tuple[int, Contact]] = deque(maxlen=MAX_PENDING)

    def at(self, stamp_ns: int) -> tuple[int, Contact] | None:
        """Return the newest point that is not later than a stamp, and forget the earlier ones."""
        points = self.points
        while len(points) > 1 and points[1][0] <= stamp_ns:
            points.popleft()
        return points[0] if points[0][0] <= stamp_ns else None


class ContactStream:
    """
    The points that are felt, as contacts of an instant.

    Parameters
    ----------
    robot : Robot
        Its frames.
    settings : EstimatorSettings
        Timeout, spacing, and what is unknown at a touch of which frame.

    Attributes
    ----------
    problems : Counter
        Messages that were refused, by reason.

    """

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._robot, self._settings = robot, settings
        self._timeout_ns = round(1e9 * settings.contact_timeout)
        self._ahead_ns = self._timeout_ns + round(1e9 * settings.filter_delay)
        self._tracks: list[_Track] = []
        self._last: tuple[Contact, ...] = ()
        self._received = self._dropped = self._asked_ns = 0
        self.problems: Counter[str] = Counter()

    def push(self, stamp_ns: int, frame_id: str, point: Array) -> None:
        """
        Take a point.

        Parameters
        ----------
        stamp_ns : int
            Stamp of the message [ns].
        frame_id : str
            Frame of the robot that is touched.
        point : ndarray, shape (3,)
            Where, in that frame [m].

        """
        self._received += 1
        problem = self._problem(stamp_ns, frame_id, point)
        if problem:
            self._note(problem)
            return
        track = self._track(stamp_ns, frame_id, point.tolist())
        if track is None:
            self._dropped += 1
            return
        given = self._settings.touch_of(frame_id)
        contact = Contact(frame_id, given.kind, tuple(point.tolist()), given.direction)
        track.points.append((stamp_ns, contact))

    def at(self, stamp_ns: int) -> tuple[Contact, ...]:
        """
        Return the contacts that live at an instant.

        Parameters
        ----------
        stamp_ns : int
            Stamp of the joint state [ns].

        Returns
        -------
        tuple of Contact
            In the order in which they began; the same object as long as nothing changes.

        """
        self._asked_ns = stamp_ns
        if not self._tracks:
            self._last = ()
            return self._last
        oldest, latest = stamp_ns - self._timeout_ns, stamp_ns + self._ahead_ns
        # What lies further ahead was sent before time was set back.
        for track in self._tracks:
            if track.points[-1][0] > latest:
                self._note(
                    'the stamp is far ahead of the joint states: one of the clocks is wrong'
                )
        self._tracks = [t for t in self._tracks if oldest <= t.points[-1][0] <= latest]
        found = [track.at(stamp_ns) for track in self._tracks]
        contacts = tuple(f[1] for f in found if f is not None and f[0] >= oldest)
        if contacts != self._last:
            self._last = contacts
        return self._last

    def reset(self) -> None:
        """Forget every point; the counters go on."""
        self._tracks.clear()
        self._last = ()
        self._asked_ns = 0

    def statistics(self) -> ContactStatistics:
        """
        Return what came in so far.

        Returns
        -------
        ContactStatistics

        """
        return ContactStatistics(self._received, len(self._last), self._dropped)

    def _problem(self, stamp_ns: int, frame_id: str, point: Array) -> str:
        """Say what is wrong with a message, if anything."""
        if stamp_ns <= 0:
            return 'header.stamp is zero: the sender has to stamp its messages'
        if frame_id not in self._robot.frames:
            return f"header.frame_id is '{frame_id}', which is no frame of the robot"
        if not np.isfinite(point).all():
            return f"a point of frame '{frame_id}' is not finite"
        if 0 < stamp_ns < self._asked_ns - self._timeout_ns:
            return TOO_LATE
        return ''

    def _note(self, problem: str) -> None:
        """Count a problem; a sender of ever new nonsense must not fill the memory."""
        known = problem in self.problems or len(self.problems) < MAX_PROBLEMS
        self.problems[problem if known else 'other problems'] += 1

    def _track(self, stamp_ns: int, frame_id: str, point: list[float]) -> _Track | None:
        """Return the contact that a point belongs to, a new one if need be and room is left."""
        near: list[tuple[float, int]] = []
        for k, track in enumerate(self._tracks):
            last_ns, contact = track.points[-1]
            if track.frame == frame_id:
                distance = dist(contact.point, point)
                if last_ns == stamp_ns and not distance:
                    return track
                if last_ns < stamp_ns and distance <= self._settings.touch_spacing:
                    near.append((distance, k))
        if near:
            return self._tracks[min(near)[1]]
        if len(self._tracks) >= MAX_TRACKS:
            return None
        self._tracks.append(_Track(frame_id))
        return self._tracks[-1]
