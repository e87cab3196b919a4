# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Leads through a calibration session: what to do next, when a data set is enough, when to wait.

Time comes from the stamps of readings and from whoever calls; nothing here waits.
"""

from __future__ import annotations

from enum import Enum

from inertial_estimation.calibration.body_readings import Reading
from inertial_estimation.calibration.collection import (
    CONTACT,
    DISORDER,
    JOINTS,
    KEPT,
    REPEATED,
    SETTLING,
    UNSTEADY,
    WAITING,
    Collection,
)
from inertial_estimation.calibration.coverage import cell_of
from inertial_estimation.calibration.dead_channels import constant_channels, never_changes
from inertial_estimation.calibration.offset_in_situ import InSituOffset
from inertial_estimation.calibration.quiet_samples import MOVING, NOT_FINITE, TOUCHED
from inertial_estimation.calibration.session import Session
from inertial_estimation.errors import LogError

SILENCE = 1.0
"""Time without readings from which it is said [s]."""
TIMES_TO_CLOSE = 2
"""Requests to close a data set that is not enough, until it is tried all the same."""
PAUSES = {
    CONTACT: 'paused: something touches the body; let it hang free',
    JOINTS: 'paused: a joint beyond the sensor has moved; put it back, or begin the data set anew',
    NOT_FINITE: 'paused: a reading is missing; see the topics and the positions of the joints',
    UNSTEADY: 'the readings shake: let the body come to rest, and let nothing touch it',
    TOUCHED: 'the last moment does not fit the others: let nothing touch the body',
}
"""What is said of what is left out, or doubted."""
ON_THE_WAY = ('', KEPT, WAITING, MOVING, SETTLING, REPEATED, DISORDER)
"""What readings are while a body is turned from pose to pose as it should be."""


ENOUGH_DIRECTIONS = 5
"""That are not alike, from which a channel that has not changed is dead."""
DEAD = "look at the sensor's cable and topic; nothing that is collected counts until it is mended"


class Phase(Enum):
    """Where a session is."""

    LOADING = 'loading'
    """A load is being hung on or taken off; readings do not count."""
    COLLECTING = 'collecting'
    DONE = 'done'


class Conductor:
    """
    Leads through a session.

    loading_time [s].
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
        elif self._must_load():
            # Of a session that goes on, too: nobody knows what hangs there by now.
            self._ask_for_load()

    def take(self, reading: Reading, now: float) -> None:
        """
        Take the readings of one instant.

        now [s].
        """
        self._heard_at = now
        if self.phase is Phase.COLLECTING:
            self.session.collection.update(
                reading.stamp_ns, reading.raw, reading.acceleration, reading.turning,
                spoilt=reading.spoilt,
            )  # fmt: skip

    def look(self, now: float) -> bool:
        """
        Go on by itself where it can; call it a few times a second.

        now [s].
        """
        self._asked_at = now if self._asked_at is None else self._asked_at
        if self.phase is Phase.LOADING:
            if self._loading_time is None or now - self._asked_at < self._loading_time:
                return False
            return self.proceed()
        if self.phase is Phase.COLLECTING and self.session.collection.coverage().is_enough:
            self._close()
        return False

    def proceed(self) -> bool:
        """Do what a person asks for: the load hangs, or the data set is to be closed."""
        if self.phase is Phase.LOADING:
            self.phase, self._requests = Phase.COLLECTING, 0
            self.notes.append(f'data set {self._number()} begins')
            return True
        if self.phase is Phase.COLLECTING:
            coverage = self.session.collection.coverage()
            self._requests += 1
            if coverage.is_enough or self._requests >= TIMES_TO_CLOSE:
                self._close()
            else:
                dead = _dead(self.session.collection)
                lacking = '; '.join((dead, *coverage.shortfalls) if dead else coverage.shortfalls)
                self.notes.append(f'not enough yet ({lacking}); ask again to close it as it is')
        return False

    def restart_step(self) -> bool:
        """Begin the open data set anew."""
        if self.phase is Phase.DONE:
            return False
        self.session.restart_step()
        self.phase, self._requests = Phase.COLLECTING, 0
        self.notes.append(f'data set {self._number()} begins anew')
        return True

    def instruction(self, now: float) -> str:
        """
        Say what to do next.

        now [s].
        """
        if self.phase is Phase.DONE:
            return 'done'
        if self.phase is Phase.LOADING:
            return self._loading()
        if self._heard_at is None or now - self._heard_at > SILENCE:
            return 'no readings come: see that both sensors publish'
        one = self.session.collection
        if dead := _dead(one):
            return f'{dead}: {DEAD}'
        if one.state not in ON_THE_WAY:
            return PAUSES.get(one.state, f'paused: {one.state}')
        # Whoever turns the body has understood that the last moment was none.
        if one.doubt in PAUSES and one.state in (KEPT, WAITING):
            return PAUSES[one.doubt]
        suggested = one.coverage().suggestions
        turn = 'tilt it further, and hold it still for two seconds'
        if suggested:
            others = f' (or {", or ".join(suggested[1:])})' if len(suggested) > 1 else ''
            turn = (
                f'turn the body so that {suggested[0]} of the {self.session.plan.axes} points '
                f'down{others}, and hold it still for two seconds'
            )
        return turn

    def _loading(self) -> str:
        """Say which load to hang on."""
        load = self.session.load
        what = 'take all loads off'
        if load.mass:
            at = ', '.join(f'{x:g}' for x in load.centre)
            what = (
                f"hang load '{load.name}' on, {load.mass:g} kg with its centre at ({at}) m in the "
                f'axes of the {self.session.plan.load_axes}, about the origin of the FT sensor; '
                'nothing else'
            )
        when = ', then press Enter' if self._loading_time is None else ''
        return f'{what}{when}'

    def _ask_for_load(self) -> None:
        """Wait for the load of the open data set."""
        self.phase = Phase.LOADING
        self.notes.append(self._loading())

    def _must_load(self) -> bool:
        """Tell whether something has to be done to the body before the open data set."""
        return bool(self.session.load.mass) or self.session.step > 0

    def _close(self) -> None:
        """Close the data set, or say why it cannot be."""
        number, name = self._number(), self.session.load.name
        try:
            found = self.session.close_step()
        except LogError as error:
            self._requests = 0
            self.notes.append(f'{error}')
            return
        self.notes.append(f"data set {number}, '{name}': {_said(found)}")
        self._requests, self._asked_at = 0, None
        if self.session.is_closed:
            self.phase = Phase.DONE
        else:
            self._ask_for_load()

    def _number(self) -> str:
        """Return which data set is open, of how many."""
        return f'{self.session.step + 1} of {len(self.session.plan.loads)}'


def _dead(one: Collection) -> str:
    """Say which channels never change while the body is turned; empty: none yet."""
    raw, accelerations = one.rows()
    if len({cell_of(acceleration) for acceleration in accelerations}) < ENOUGH_DIRECTIONS:
        return ''
    constant = constant_channels(raw)
    return never_changes(constant) if constant.any() else ''


def _said(found: InSituOffset) -> str:
    """Return a data set in one line."""
    spreads = ', '.join(f'{x:.0%}' for x in found.orientations.spreads)
    return (
        f'{found.slopes.n_samples} still moments, gravity spreads by {spreads} of g, third '
        f'singular value {found.subspace.gap:.0f} times the fourth'
    )
