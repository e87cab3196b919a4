# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts from reported points of contact [T section 4.5.2, Assumption 4.1].

Senders may each report several points of several links: a point belongs to the nearest contact of
its frame within `MAX_SPACING` that has no other point of the same stamp, and any other is a
contact of its own, until it is not repeated for ``contact_timeout``.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, replace
from math import dist
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import UNIT, Contact, ContactKind
from inertial_estimation.model.robot import Robot

MAX_SPACING = 0.03
"""Distance of two points of a frame up to which they are one contact [m]."""
MAX_TRACKS = 64
"""Contacts at a time; more than this is not a robot but a fault of a sender."""
MAX_PENDING = 1000
"""Points of one contact that may wait for their instant."""
MAX_PROBLEMS = 20
TOO_EARLY = 'the stamp is far ahead of the joint states: one of the clocks is wrong'
TOO_LATE = 'the stamp is older than the joint states by more than contact_timeout'
KEPT_STAMPS = 32
MIN_GAPS = 3
"""Fewer long gaps may be chance."""
REGULAR = 0.25
"""Largest difference of a gap from the median of the long ones, as a share of it."""
TOGETHER = 0.05
"""Points within this share of the timeout are of one message, stamped one by one."""
MAX_SILENCE = 3.0
"""Periods without a message after which a sender has ended."""


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
        self.problems: Counter[str] = Counter()
        self._delay_ns = round(1e9 * settings.filter.delay)
        self.set_timeout(settings.contact_timeout)

    def set_timeout(self, seconds: float) -> None:
        """Set the time after which a contact that is not repeated ends."""
        self._timeout_ns = round(1e9 * seconds)
        self._ahead_ns = self._timeout_ns + self._delay_ns
        self.senders = SenderRates(seconds)

    def push(self, stamp_ns: int, frame_id: str, pose: Array) -> None:
        """Take a point (3,) [m], or one and a quaternion x y z w (7,), z the outward normal."""
        self._received += 1
        if stamp_ns > 0 and frame_id in self._robot.frames:
            self.senders.note(stamp_ns, frame_id)
        problem = self._problem(stamp_ns, frame_id, pose)
        if problem:
            self._note(problem)
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
                self._note(TOO_EARLY)
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

    def _note(self, problem: str) -> None:
        """Count a problem; a sender of ever new nonsense must not fill the memory."""
        known = problem in self.problems or len(self.problems) < MAX_PROBLEMS
        self.problems[problem if known else 'other problems'] += 1

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


class SlowSender(NamedTuple):
    """A frame whose contact ends and begins again at the period of its sender."""

    frame: str
    period: float
    """Median time between two messages [s]."""
    n_gaps: int
    """Number of times that it ended."""


class SenderRates:
    """
    Stamps of the points of each frame, and the senders slower than the timeout [s].

    Nearly all gaps between the messages of such a sender are too long, and as long as its period,
    so that its contacts end and begin again. The messages of a finger that taps come fast while it
    is there.
    """

    def __init__(self, timeout: float) -> None:
        self.timeout = timeout
        self._timeout_ns = round(1e9 * timeout)
        self._stamps: dict[str, list[int]] = {}
        self._slow: dict[str, SlowSender] = {}

    def note(self, stamp_ns: int, name: str) -> None:
        """Take a point."""
        stamps = self._stamps.setdefault(name, [])
        if stamps and stamps[-1] - stamp_ns >= self._timeout_ns:
            # Time was set back; senders that are out of step differ by less.
            stamps.clear()
        place, near = bisect_left(stamps, stamp_ns), TOGETHER * self._timeout_ns
        if any(abs(stamp_ns - s) <= near for s in stamps[max(place - 1, 0) : place + 1]):
            return
        stamps.insert(place, stamp_ns)
        del stamps[:-KEPT_STAMPS]
        is_newest = len(stamps) > 1 and stamps[-1] == stamp_ns
        if is_newest and stamp_ns - stamps[-2] > self._timeout_ns:
            found, before = self._slow_sender(name), self._slow.get(name)
            if found:
                n_gaps = found.n_gaps if before is None else before.n_gaps + 1
                self._slow[name] = found._replace(n_gaps=n_gaps)

    def slow_now(self, now_ns: int) -> tuple[SlowSender, ...]:
        """Return the slow senders that are sending."""
        return tuple(
            slow
            for name, slow in self._slow.items()
            if (stamps := self._stamps.get(name))
            and 1e-9 * abs(now_ns - stamps[-1]) <= MAX_SILENCE * slow.period
            and self._slow_sender(name)
        )

    @property
    def ever_slow(self) -> tuple[SlowSender, ...]:
        """The senders that were slow at any time."""
        return tuple(self._slow.values())

    def _slow_sender(self, name: str) -> SlowSender | None:
        """Return the sender of a frame if most of its gaps are long ones of one period."""
        gaps = np.diff(self._stamps[name])
        long = gaps > self._timeout_ns
        if long.sum() < MIN_GAPS:
            return None
        period = float(np.median(gaps[long]))
        n = int((long & (np.abs(gaps - period) <= REGULAR * period)).sum())
        # Half of them: two senders, or two points far apart in one message. One end may be cut.
        if n < MIN_GAPS or 2 * n + 1 < len(gaps):
            return None
        return SlowSender(name, 1e-9 * period, n)
