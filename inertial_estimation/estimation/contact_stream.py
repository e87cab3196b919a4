# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts from reported points of contact [T section 4.5.2, Assumption 4.1].

Senders may each report several points of several links: a point belongs to the nearest contact of
its frame within `MAX_SPACING` that has no other point of the same stamp, and any other is a
contact of its own, until it is not repeated for ``contact_timeout``.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from math import dist
from operator import itemgetter

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import UNIT, Contact, ContactKind
from inertial_estimation.estimation.sender_rates import SenderRates
from inertial_estimation.findings import Problems
from inertial_estimation.model.robot import Robot

MAX_SPACING = 0.03
"""Distance of two points of a frame up to which they are one contact [m]."""
MAX_TRACKS = 64
"""Contacts at a time; more than this is not a robot but a fault of a sender."""
MAX_PENDING = 1000
"""Points of one contact that may wait for their instant."""
LEAST_AHEAD_NS = 1_000_000_000
"""Time ahead of the joint states for which points wait: a node may poll all of them late [ns]."""
TOO_EARLY = 'the stamp is far ahead of the joint states: one of the clocks is wrong'
TOO_LATE = 'the stamp is older than the joint states by more than contact_timeout'


@dataclass(frozen=True)
class ContactStatistics:
    """Counts of messages and contacts."""

    received: int
    """Messages."""
    live: int
    """Contacts at the last instant that was asked for."""
    dropped: int
    """Messages that were one contact too many."""


class _Track:
    """One contact over time: its points in the order of their stamps."""

    __slots__ = ('frame', 'points')

    def __init__(self, frame: str) -> None:
        self.frame = frame
        self.points: list[tuple[int, Contact]] = []

    def add(self, stamp_ns: int, contact: Contact) -> None:
        """Put a point in its place."""
        self.points.insert(self._place(stamp_ns), (stamp_ns, contact))
        del self.points[:-MAX_PENDING]

    def distance(self, stamp_ns: int, point: list[float]) -> tuple[float, bool]:
        """Return the distance of a point to the one before it, and if both have one stamp."""
        last_ns, contact = self.points[max(self._place(stamp_ns) - 1, 0)]
        apart = dist(contact.point, point)
        return apart, bool(apart) and last_ns == stamp_ns

    def cut(self, latest: int) -> int:
        """Forget the points that are later than a stamp, and return how many there were."""
        later = len(self.points) - (place := self._place(latest))
        del self.points[place:]
        return later

    def at(self, stamp_ns: int) -> tuple[int, Contact] | None:
        """Return the newest point that is not later than a stamp, and forget the earlier ones."""
        del self.points[: max(self._place(stamp_ns) - 1, 0)]
        return self.points[0] if self.points[0][0] <= stamp_ns else None

    def _place(self, stamp_ns: int) -> int:
        """Return the number of points not later than a stamp."""
        return bisect_right(self.points, stamp_ns, key=itemgetter(0))


class ContactStream:
    """Reported points, as contacts of an instant."""

    def __init__(self, robot: Robot, settings: EstimatorSettings) -> None:
        self._robot, kind = robot, ContactKind[settings.touch_kind.upper()]
        # Without a normal, no contact only pushes.
        kinds = ContactKind.FORCE if kind.limits else kind, kind
        frame, friction = next(iter(robot.frames)), settings.touch_friction
        self._kinds = [Contact(frame, one, friction=friction) for one in kinds]
        self._touches: dict[tuple[str, bool], Contact] = {}
        self._tracks: list[_Track] = []
        self._last: tuple[Contact, ...] = ()
        self._received = self._dropped = self._last_ns = 0
        self.problems = Problems()
        self._delay_ns = round(1e9 * settings.filter.delay)
        self.set_timeout(settings.contact_timeout)

    def set_timeout(self, seconds: float) -> None:
        """Set the time after which a contact that is not repeated ends."""
        self._timeout_ns = round(1e9 * seconds)
        self._ahead_ns = max(self._timeout_ns, LEAST_AHEAD_NS) + self._delay_ns
        self.senders = SenderRates(seconds)

    def push(self, stamp_ns: int, frame_id: str, pose: Array) -> None:
        """Take a point (3,) [m], or one and a quaternion x y z w (7,), z the outward normal."""
        self._received += 1
        if stamp_ns > 0 and frame_id in self._robot.frames:
            self.senders.note(stamp_ns, frame_id)
        problem = self._problem(stamp_ns, frame_id, pose)
        if problem:
            self.problems.note(problem)
            return
        point, turn = pose[:3].tolist(), pose[3:]
        track = self._track(stamp_ns, frame_id, point)
        if track is None:
            self._dropped += 1
            return
        key = frame_id, bool(len(turn))
        if key not in self._touches:
            self._touches[key] = replace(self._kinds[key[1]], frame=frame_id, name=frame_id)
        direction = None
        if len(turn):
            x, y, z, w = (turn / np.linalg.norm(turn)).tolist()
            # The environment pushes against the outward normal.
            direction = -2.0 * (x * z + w * y), -2.0 * (y * z - w * x), 2.0 * (x * x + y * y) - 1.0
        track.add(stamp_ns, self._touches[key].moved(tuple(point), direction))

    def at(self, stamp_ns: int) -> tuple[Contact, ...]:
        """Return the contacts that live at an instant."""
        self._last_ns = stamp_ns
        if not self._tracks:
            self._last = ()
            return self._last
        oldest, latest = stamp_ns - self._timeout_ns, stamp_ns + self._ahead_ns
        # What lies further ahead was sent before time was set back, or by another clock.
        for track in self._tracks:
            for _ in range(track.cut(latest)):
                self.problems.note(TOO_EARLY)
        self._tracks = [t for t in self._tracks if t.points and oldest <= t.points[-1][0]]
        found = [track.at(stamp_ns) for track in self._tracks]
        contacts = tuple(f[1] for f in found if f is not None and f[0] >= oldest)
        if contacts != self._last:
            self._last = contacts
        return self._last

    def reset(self) -> None:
        """Forget every point; the counters go on."""
        self._tracks.clear()
        self._last = ()
        self._last_ns = 0

    def statistics(self) -> ContactStatistics:
        """Return the counts up to now."""
        return ContactStatistics(self._received, len(self._last), self._dropped)

    def _problem(self, stamp_ns: int, frame_id: str, pose: Array) -> str:
        """Return the fault of a message, empty if there is none."""
        if stamp_ns <= 0:
            return 'header.stamp is zero: the sender has to stamp its messages'
        if frame_id not in self._robot.frames:
            return f"header.frame_id is '{frame_id}', which is no frame of the robot"
        if not np.isfinite(pose).all():
            return f"a point of frame '{frame_id}' is not finite"
        if len(pose) > 3 and abs(np.linalg.norm(pose[3:]) - 1.0) > UNIT:
            return f"the quaternion of a pose of frame '{frame_id}' is no unit quaternion"
        return TOO_LATE if stamp_ns < self._last_ns - self._timeout_ns else ''

    def _track(self, stamp_ns: int, frame_id: str, point: list[float]) -> _Track | None:
        """Return the contact that a point belongs to, a new one if need be and room is left."""
        near: list[tuple[float, int]] = []
        for k, track in enumerate(self._tracks):
            if track.frame == frame_id:
                distance, is_taken = track.distance(stamp_ns, point)
                if distance <= MAX_SPACING and not is_taken:
                    near.append((distance, k))
        if near:
            return self._tracks[min(near)[1]]
        if len(self._tracks) >= MAX_TRACKS:
            return None
        self._tracks.append(_Track(frame_id))
        return self._tracks[-1]
