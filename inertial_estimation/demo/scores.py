# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Estimates against the truth of the same stamp.

The force rms is the root mean square, over instants and contacts, of the length of the force
error of a contact; the torque rms that of the error of a joint's torque, over instants and joints.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import NameNotFound
from inertial_estimation.sample import Array
from inertial_estimation.signals.cdr import FLOAT, NANOSECONDS, STAMP, STAMP_AT

KEPT_NS = 5 * NANOSECONDS
"""How long a message waits for its counterparts; longer than any queue in between."""
PERCENTILES = (50, 99, 100)


class NamedRows:
    """The messages of one topic: a row of numbers for each name, by stamp."""

    def __init__(self, names: Sequence[str], width: int) -> None:
        self.names = tuple(names)
        self._width = width
        self._size = 8 * width * len(names)
        self._rows: dict[int, bytes] = {}

    @property
    def stamps(self) -> set[int]:
        """Stamps of the messages that are kept [ns]."""
        return set(self._rows)

    def add(self, message: bytes) -> int:
        """Keep a message."""
        second, nanosecond = STAMP.unpack_from(message, STAMP_AT)
        stamp_ns = int(second) * NANOSECONDS + int(nanosecond)
        self._rows[stamp_ns] = message[-self._size :]
        return stamp_ns

    def get(self, stamps: Iterable[int], names: Sequence[str]) -> Array:
        """
        Return the rows of some messages.

        Returns (n_stamps, n_names, width).
        """
        for name in names:
            if name not in self.names:
                raise NameNotFound('row', name, self.names)
        order = [self.names.index(name) for name in names]
        data = b''.join(self._rows[stamp] for stamp in stamps)
        rows = np.frombuffer(data, FLOAT).reshape(-1, len(self.names), self._width)
        return np.asarray(rows[:, order])

    def forget(self, until_ns: int) -> None:
        """Drop what is not later than a stamp [ns]."""
        for stamp in [stamp for stamp in self._rows if stamp <= until_ns]:
            del self._rows[stamp]


class State(NamedTuple):
    """What a robot or an estimator says: two topics with the same stamps."""

    wrenches: NamedRows
    """External wrench of each contact, in and about its frame [N, Nm]."""
    torques: NamedRows
    """Torque of each joint [Nm]."""

    @property
    def stamps(self) -> set[int]:
        """Stamps of which both topics have a message [ns]."""
        return self.wrenches.stamps & self.torques.stamps

    def forget(self, until_ns: int) -> None:
        """Drop what is not later than a stamp [ns]."""
        for rows in self:
            rows.forget(until_ns)


class Comparison:
    """The errors of one estimator, added up."""

    def __init__(self, truth: State, estimate: State) -> None:
        self._truth, self._estimate = truth, estimate
        self.start_ns: int | None = None
        self.compared = self.not_estimated = self.without_truth = 0
        self._first_ns = self._last_ns = 0
        self._wrench_squares = np.zeros((len(truth.wrenches.names), 6))
        self._torque_squares = np.zeros(len(truth.torques.names))

    def first_estimated(self) -> int | None:
        """Return the first stamp with an estimate, None if there is none yet."""
        stamps = sorted(self._estimate.stamps)
        wrenches, torques = self._numbers(self._estimate, stamps)
        good = _finite(wrenches) & _finite(torques)
        return stamps[int(good.argmax())] if good.any() else None

    def update(self) -> None:
        """Compare what has come and not been compared yet."""
        if self.start_ns is None:
            return
        both = sorted(s for s in self._truth.stamps & self._estimate.stamps if s >= self.start_ns)
        if not both:
            return
        received = [s for s in self._estimate.stamps if self.start_ns <= s <= both[-1]]
        self._first_ns = self._first_ns or min(received)
        self._last_ns = both[-1]
        self.without_truth += len(received) - len(both)
        self._add_errors(both)
        self._estimate.forget(both[-1])

    def missed(self, period_ns: int) -> int:
        """Return how many stamps have no estimate."""
        if not self._first_ns:
            return 0
        expected = round((self._last_ns - self._first_ns) / period_ns) + 1
        return expected - self.compared - self.not_estimated - self.without_truth

    def figures(self) -> dict[str, float]:
        """Return the errors so far, NaN before anything was compared."""
        if not self.compared:
            names = ('force_rms_n', 'force_rms_all_contacts_n', 'moment_rms_nm', 'torque_rms_nm')
            return dict.fromkeys(names, float('nan'))
        wrenches = self._wrench_squares / self.compared
        forces, moments = wrenches[:, :3].sum(axis=1), wrenches[:, 3:].sum(axis=1)
        torques = self._torque_squares / self.compared
        return {
            'force_rms_n': _root(forces.mean()),
            'force_rms_all_contacts_n': _root(forces.sum()),
            'moment_rms_nm': _root(moments.mean()),
            'torque_rms_nm': _root(torques.mean()),
        }

    def _add_errors(self, stamps: Sequence[int]) -> None:
        """Add the errors of some instants."""
        wrenches, torques = self._numbers(self._estimate, stamps)
        true_wrenches, true_torques = self._numbers(self._truth, stamps)
        good = _finite(wrenches) & _finite(torques)
        self._wrench_squares += ((wrenches - true_wrenches)[good] ** 2).sum(axis=0)
        self._torque_squares += ((torques - true_torques)[good] ** 2).sum(axis=0)
        self.compared += int(good.sum())
        self.not_estimated += int((~good).sum())

    def _numbers(self, state: State, stamps: Sequence[int]) -> tuple[Array, Array]:
        """Return wrenches and torques of some stamps, rows as in the truth."""
        contacts, joints = self._truth.wrenches.names, self._truth.torques.names
        torques = state.torques.get(stamps, joints)[:, :, 0]
        return state.wrenches.get(stamps, contacts), torques


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median, the 99th percentile and the maximum."""
    numbers = np.percentile(values, PERCENTILES) if len(values) else [np.nan] * 3
    return dict(zip(('p50', 'p99', 'max'), map(float, numbers)))


def _finite(values: Array) -> NDArray[np.bool_]:
    """Tell for each instant whether all of its numbers are finite."""
    return np.asarray(np.isfinite(values).all(axis=tuple(range(1, values.ndim))))


def _root(square: float) -> float:
    return float(np.sqrt(square))
