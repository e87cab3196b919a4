# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sessions of ``calibrate live`` without ROS: somebody turns a body of 3 kg and hangs on loads."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench.calibration.hanging import BODY, LOADS, NOISE, wrenches
from bench.published.experiment import Finding
from inertial_estimation.calibration.collection import Collection
from inertial_estimation.calibration.coverage import DIRECTIONS
from inertial_estimation.calibration.quiet_samples import GRAVITY
from inertial_estimation.calibration.session import Load, Plan, Session
from inertial_estimation.errors import LogError
from inertial_estimation.table import Table

Array = NDArray[np.float64]

NAME = 'sessions with a body of 3 kg that is turned by hand'
RATE, HOLD = 100, 2.0
"""Of the readings [Hz]; each pose is held so long [s]."""
ACCELEROMETER, GYROSCOPE = 0.02, 0.005
"""Noise [m/s^2], [rad/s]."""
FAST = 1.0
"""Turning between poses [rad/s]."""
HAND = np.array([4.0, 0.0, 0.0, 0.0, 0.5, 0.0])
"""What somebody who touches the body adds [N, Nm]."""
OFFSET = np.array([30.0, -20.0, 45.0, 1.5, -0.7, 0.4])
"""Of the sensor [N, Nm]."""
OTHERS = ((1.0, (0.1, 0.1, 0.2)), (0.3, (0.0, -0.3, 0.0)))
"""Loads whose wrenches are judged: mass [kg] and centre [m]."""
MOST_POSES = 60
DRAWS = 12
SEED = 3
DATE = '2026-01-01T00:00:00+00:00'


@dataclass(frozen=True)
class Errors:
    """Root mean squares over draws of noise."""

    what: str
    closed: int
    """Sessions that came to their end, of `DRAWS`."""
    poses: float
    """Of a data set, mean."""
    force: float | None
    """Offset [N]; None: no session came to its end."""
    moment: float | None
    """Offset [Nm]."""
    mass: float | None = None
    """Of the body [kg]; None: there is no matrix."""
    load_force: float | None = None
    """Wrenches of other loads [N]."""
    load_moment: float | None = None
    """Likewise [Nm]."""


class Turned:
    """A body that somebody turns from pose to pose."""

    def __init__(self, rng: np.random.Generator, every: int, play: float) -> None:
        self._rng, self._every = rng, every
        self._play = play * BODY.mass * GRAVITY * np.repeat([1.0, 0.1], 3)
        self._read = np.zeros(6)
        self._stamp_ns, self._pose = 0, 0

    def close(self, session: Session) -> int:
        """Turn the body until the data set of the load that hangs on it is closed."""
        load, collection = session.load, session.collection
        for k in range(MOST_POSES):
            if collection.coverage().is_enough and _is_closed(session):
                return k
            self._move(collection)
            # By leaps, so that few poses go all around.
            gravity = GRAVITY * DIRECTIONS[7 * k % len(DIRECTIONS)]
            self._hold(collection, gravity, load.mass, load.centre)
        return MOST_POSES

    def _move(self, collection: Collection) -> None:
        """Turn fast; nothing of it counts."""
        for _ in range(RATE // 5):
            collection.update(self._next(), OFFSET, np.full(3, GRAVITY), np.full(3, FAST))

    def _hold(
        self, collection: Collection, gravity: Array, mass: float, centre: tuple[float, ...]
    ) -> None:
        """Hold a pose."""
        self._pose += 1
        wanted = wrenches(gravity[None], mass, centre)[0]
        self._read = np.clip(self._read, wanted - self._play, wanted + self._play)
        touch = HAND * bool(self._every and self._pose % self._every == 0)
        for _ in range(round(HOLD * RATE)):
            read = self._read + touch + OFFSET + NOISE * self._rng.normal(size=6)
            felt = -gravity + ACCELEROMETER * self._rng.normal(size=3)
            turning = GYROSCOPE * self._rng.normal(size=3)
            collection.update(self._next(), read, felt, turning)

    def _next(self) -> int:
        """Return the stamp of the next reading."""
        self._stamp_ns += 1_000_000_000 // RATE
        return self._stamp_ns


def run(folder: Path) -> Finding:
    """Go through sessions."""
    cases = (
        errors('three data sets, noise alone', len(LOADS)),
        errors('one data set, noise alone', 1),
        errors('a hand in every third pose', 1, every=3),
        errors('a hand in every second pose', 1, every=2),
        errors('play of 1 % of the weight', 1, play=0.005),
    )
    return Finding(NAME, (_table(cases),), (), {'sessions': [asdict(one) for one in cases]})


def errors(what: str, n_sets: int, *, every: int = 0, play: float = 0.0) -> Errors:
    """Go through sessions of one kind."""
    found, poses = [], []
    for draw in range(DRAWS):
        body = Turned(np.random.default_rng((SEED, draw)), every, play)
        loads = tuple(Load(f'load {k}', *one) for k, one in enumerate(LOADS[:n_sets]))
        session = Session(Plan('foot', 'an IMU', loads, rotation=np.eye(3)))
        taken = [body.close(session) for _ in loads if not session.is_closed]
        poses += taken
        if session.is_closed:
            found.append(_score(session))
    squares = np.mean(np.square(found), axis=0) if found else ()
    scores: list[float | None] = [float(np.sqrt(one)) for one in squares]
    scores = scores or [None] * 5
    of_matrix = scores[2:] if n_sets > 1 else [None] * 3
    return Errors(what, len(found), float(np.mean(poses)), *scores[:2], *of_matrix)


def _is_closed(session: Session) -> bool:
    """Close a data set, if it tells an offset."""
    try:
        session.close_step()
    except LogError:
        return False
    return True


def _score(session: Session) -> tuple[float, ...]:
    """Return errors of offset, mass, and wrenches of other loads; zeros without a matrix."""
    outcome = session.outcome(DATE)
    force, moment = _sizes(outcome.calibration.offset - OFFSET)
    if outcome.matrix is None:
        return force, moment, 0.0, 0.0, 0.0
    told = np.vstack([
        wrenches(GRAVITY * DIRECTIONS, mass, centre) for mass, centre in OTHERS
    ])  # fmt: skip
    off = told @ (outcome.calibration.matrix - np.eye(6)).T
    return force, moment, outcome.matrix.body.mass - BODY.mass, *_sizes(off)


def _sizes(found: Array) -> tuple[float, float]:
    """Return root mean squares of forces and moments, component by component."""
    force, moment = np.sqrt((found.reshape(-1, 2, 3) ** 2).mean(axis=(0, 2)))
    return float(force), float(moment)


def _table(cases: tuple[Errors, ...]) -> Table:
    """Return errors as text."""
    rows = tuple(
        (one.what, f'{one.closed} of {DRAWS}', f'{one.poses:.0f}', _text(one.force, 3),
         _text(one.moment, 4), _text(one.mass, 4), _text(one.load_force, 3),
         _text(one.load_moment, 4))
        for one in cases
    )  # fmt: skip
    return Table(
        f'Sessions of {HOLD:g} s a pose: errors, root mean squares of {DRAWS} draws',
        ('session', 'closed', 'poses', 'offset [N]', '[Nm]', 'mass [kg]', 'other loads [N]',
         '[Nm]'),
        rows,
    )  # fmt: skip


def _text(value: float | None, digits: int) -> str:
    """Return a number as text, of none nothing."""
    return '' if value is None else f'{value:.{digits}f}'
