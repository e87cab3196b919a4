# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sequence of a calibration session: loads, data sets and instructions to a person."""

from __future__ import annotations

from enum import Enum

from inertial_estimation.calibration.accelerometer import MOVING, NOT_FINITE, TOUCHED
from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.channels import constant_channels, names_of
from inertial_estimation.calibration.collection import (
    CONTACT,
    DISORDER,
    JOINTS,
    KEPT,
    REPEATED,
    SETTLING,
    UNSTEADY,
    WAITING,
    cell_of,
)
from inertial_estimation.calibration.session import Session
from inertial_estimation.errors import LogError

MAX_SILENCE = 1.0
"""Time without readings until the instruction reports it [s]."""
REQUESTS_TO_CLOSE = 2
"""Requests that close a data set although it is not complete."""
PAUSES = {
    CONTACT: 'paused: a contact on the body',
    JOINTS: 'paused: a joint beyond the sensor has moved; restore it, or restart the data set',
    NOT_FINITE: 'paused: a reading is missing',
    UNSTEADY: 'readings unsteady: let the body come to rest',
    TOUCHED: 'the last pose does not fit the others: is the body touched?',
}
NORMAL = ('', KEPT, WAITING, MOVING, SETTLING, REPEATED, DISORDER)
"""States while a body is turned from pose to pose."""
MIN_DIRECTIONS = 5
"""From which a channel that has not changed is dead."""


class Phase(Enum):
    """Phase of a session."""

    LOADING = 'loading'
    """A load is mounted or removed; readings are ignored."""
    COLLECTING = 'collecting'
    DONE = 'done'


class Conductor:
    """
    Sequence of a session, in the time of its caller.

    loading_time [s]: after which a load counts as mounted; None: when `proceed` is called.
    """

    def __init__(self, session: Session, loading_time: float | None = None) -> None:
        self.session, self._loading_time = session, loading_time
        self.notes: list[str] = []
        self.phase = Phase.COLLECTING
        self._asked_at: float | None = None
        self._heard_at: float | None = None
        self._requests = 0
        if session.is_closed:
            self.phase = Phase.DONE
        elif session.load.mass or session.step > 0:
            # Also of a session that is continued.
            self._ask_for_load()

    def take(self, reading: Reading, now: float) -> None:
        """Take the readings of one sample; now [s]."""
        self._heard_at = now
        if self.phase is Phase.COLLECTING:
            self.session.collection.update(
                reading.stamp_ns, reading.raw, reading.acceleration, reading.turning,
                disturbance=reading.disturbance,
            )  # fmt: skip

    def look(self, now: float) -> bool:
        """Advance where no person is needed; return whether a data set begins; now [s]."""
        self._asked_at = now if self._asked_at is None else self._asked_at
        if self.phase is Phase.LOADING:
            waits = self._loading_time is None or now - self._asked_at < self._loading_time
            return False if waits else self.proceed()
        if self.phase is Phase.COLLECTING and self.session.collection.coverage().is_enough:
            self._close()
        return False

    def proceed(self) -> bool:
        """Begin the data set if its load is mounted, else close it on request."""
        if self.phase is Phase.LOADING:
            self.phase, self._requests = Phase.COLLECTING, 0
            self.notes.append(f'data set {self._number()} begins')
            return True
        if self.phase is Phase.COLLECTING:
            coverage = self.session.collection.coverage()
            self._requests += 1
            if coverage.is_enough or self._requests >= REQUESTS_TO_CLOSE:
                self._close()
            else:
                lacking = '; '.join(filter(None, (self._dead(), *coverage.shortfalls)))
                self.notes.append(f'not complete ({lacking}); ask again to close it as it is')
        return False

    def restart_step(self) -> bool:
        """Restart the open data set."""
        if self.phase is Phase.DONE:
            return False
        self.session.restart_step()
        self.phase, self._requests = Phase.COLLECTING, 0
        self.notes.append(f'data set {self._number()} restarts')
        return True

    def instruction(self, now: float) -> str:
        """Return what to do next; now [s]."""
        if self.phase is Phase.DONE:
            return 'done'
        if self.phase is Phase.LOADING:
            return self._loading()
        if self._heard_at is None or now - self._heard_at > MAX_SILENCE:
            return 'no readings'
        one = self.session.collection
        if dead := self._dead():
            return dead
        if one.state not in NORMAL:
            return PAUSES.get(one.state, f'paused: {one.state}')
        rejected = one.rejected[-1] if one.poses else ''
        # Turning the body on dismisses a rejected pose.
        if rejected in PAUSES and one.state in (KEPT, WAITING):
            return PAUSES[rejected]
        suggested = one.coverage().suggestions
        if not suggested:
            return 'tilt it further, and hold it still for two seconds'
        return (
            f'turn the body so that {" or ".join(suggested)} of the {self.session.plan.axes} '
            'points down, and hold it still for two seconds'
        )

    def _loading(self) -> str:
        """Return which load to mount."""
        load, what = self.session.load, 'remove all loads'
        if load.mass:
            at = ', '.join(f'{x:g}' for x in load.centre)
            what = (
                f"mount load '{load.name}' alone, {load.mass:g} kg with its centre at ({at}) m in "
                f"the axes of the {self.session.plan.load_axes} about the FT sensor's origin"
            )
        return what if self._loading_time is not None else f'{what}, then press Enter'

    def _close(self) -> None:
        """Close the data set, or note why it cannot be."""
        number, name = self._number(), self.session.load.name
        self._requests = 0
        try:
            found = self.session.close_step()
        except LogError as error:
            self.notes.append(str(error))
            return
        spreads = ', '.join(f'{x:.0%}' for x in found.orientations.spreads)
        self.notes.append(
            f"data set {number}, '{name}': {found.slopes.n_samples} poses, gravity spreads by "
            f'{spreads} of g, gap {found.subspace.gap:.0f}'
        )
        self._asked_at = None
        if self.session.is_closed:
            self.phase = Phase.DONE
        else:
            self._ask_for_load()

    def _ask_for_load(self) -> None:
        """Wait for the load of the open data set."""
        self.phase = Phase.LOADING
        self.notes.append(self._loading())

    def _dead(self) -> str:
        """Return which channels never change while the body is turned; empty: none."""
        raw, accelerations = self.session.collection.samples
        if len({cell_of(one) for one in accelerations}) < MIN_DIRECTIONS:
            return ''
        constant = constant_channels(raw)
        return f'channel {names_of(constant)} never changes' if constant.any() else ''

    def _number(self) -> str:
        """Return the number of the open data set."""
        return f'{self.session.step + 1} of {len(self.session.plan.loads)}'
