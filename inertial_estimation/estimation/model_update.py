# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters in use, and their change by updates.

A change is spread over some time in steps, each a weighted mean of the parameters before and
after, which stays physically consistent [W]. FT offsets that belong to parameters go with them: at
rest a weight and an offset have the same effect.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint

URDF, UPDATE, FILE = 'URDF', 'update', 'file'
"""Origins of a set of parameters."""
STEP_NS = 10_000_000
"""Least time between two steps of a change, each of which costs as much as a cycle [ns]."""
MAX_UPDATES = 2
"""Number of updates whose roots and offsets are kept: they may come before the update."""


class Blend:
    """The way from one set of numbers to another; seconds [s]."""

    def __init__(self, start: Array, goal: Array, seconds: float) -> None:
        self._start, self._change, self._goal = start, goal - start, goal
        self._span_ns = 1e9 * seconds
        self._gone_ns = self._stepped_ns = 0
        self._last_ns: int | None = None
        self.progress = 0.0
        """Part of the way that is done."""

    def step(self, stamp_ns: int) -> Array | None:
        """Return the numbers of a cycle, where it makes a step."""
        if self._last_ns is not None:
            self._gone_ns += max(0, stamp_ns - self._last_ns)
        self._last_ns = stamp_ns
        if self._gone_ns >= self._span_ns:
            self.progress = 1.0
            return self._goal
        if self._gone_ns - self._stepped_ns < STEP_NS:
            return None
        self._stepped_ns = self._gone_ns
        self.progress = self._gone_ns / self._span_ns
        return self._start + self.progress * self._change


class ModelInUse:
    """
    Sets the inertial parameters of an estimator, and keeps their origin.

    seconds [s].
    """

    def __init__(
        self,
        estimator: WrenchEstimator,
        seconds: float,
        followers: Iterable[Callable[[Array], None]] = (),
        subtracted: Callable[[], None] | None = None,
    ) -> None:
        self._estimator, self._seconds = estimator, seconds
        self._followers, self._subtracted = tuple(followers), subtracted
        self._calibration = estimator.calibration
        self._added: Array = np.zeros_like(estimator.calibration.offsets)
        self._urdf = estimator.robot.parameters
        self._used, self._source = ParameterUpdate(self._urdf), URDF
        self._aside: ParameterUpdate | None = None
        self.held = False
        self._blend: Blend | None = None
        self._reported = self._added
        self._roots: deque[tuple[str, Array]] = deque(maxlen=MAX_UPDATES)
        self._offsets: deque[tuple[str, str, Array]] = deque(maxlen=MAX_UPDATES)

    @property
    def goal(self) -> Array:
        """The set in use, shape (n_links, 10); during a change the one that it leads to."""
        return self._used.parameters

    @property
    def source(self) -> str:
        """Its origin: `URDF`, `UPDATE` or `FILE`."""
        return self._source

    @property
    def roots(self) -> Array | None:
        """Root of its covariance, shape (n_links, 10, r)."""
        return self._used.roots

    @property
    def offsets(self) -> Array:
        """Offsets that belong to it, on top of the calibration, shape (n_fts, 6) [N, Nm]."""
        offsets = self._used.offsets
        return np.zeros_like(self._added) if offsets is None else offsets

    @property
    def waiting(self) -> Array | None:
        """The newest update that was kept aside, shape (n_links, 10); None: there is none."""
        return None if self._aside is None else self._aside.parameters

    @property
    def progress(self) -> float:
        """Part of the last change that is done; 1: all of it."""
        return 1.0 if self._blend is None else self._blend.progress

    def offer_roots(self, of: str, roots: Array) -> None:
        """Take the root of the covariance of an update, by its fingerprint, (n_links, 10, r)."""
        self._roots.append((of, roots))
        self._complete(of, roots=roots)

    def offer_offsets(self, of: str, on: str, offsets: Array) -> None:
        """Take the offsets of an update, (n_fts, 6) [N, Nm]; on: calibration's fingerprint."""
        self._offsets.append((of, on, offsets))
        if on == calibration_fingerprint(self._calibration):
            self._complete(of, offsets=offsets, calibration=on)
            if self._source == UPDATE and self._used.fingerprint == of:
                self._begin()

    def offer(self, update: ParameterUpdate) -> bool:
        """Use an update, with what came for it; return False if updates are held."""
        of = update.fingerprint
        for name, roots in self._roots:
            if name == of:
                update = replace(update, roots=roots)
        for name, on, offsets in self._offsets:
            if name == of:
                update = replace(update, offsets=offsets, calibration=on)
        on = calibration_fingerprint(self._calibration)
        if update.offsets is not None and update.calibration != on:
            raise ModelError('offsets of the update belong to another calibration than is in use')
        if self.held:
            self._aside = update
            return False
        self._begin(update, UPDATE)
        return True

    def set_calibration(self, calibration: FtCalibration) -> None:
        """Use another calibration at once; offsets of sensors that it changes are dropped."""
        n = len(self._added)
        is_new = np.zeros((n, 1), dtype=bool)
        for name in ('matrices', 'offsets', 'temperature_coefficients', 'reference_temperatures'):
            pair = (getattr(c, name).reshape(n, -1) for c in (self._calibration, calibration))
            is_new |= np.not_equal(*pair).any(axis=1, keepdims=True)
        self._calibration = calibration
        self._subtract(np.where(is_new, 0.0, self._added))
        if self._used.offsets is not None:
            self._used = replace(self._used, offsets=np.where(is_new, 0.0, self._used.offsets))
        if self._aside is not None and self._aside.offsets is not None:
            self._aside = replace(self._aside, offsets=np.where(is_new, 0.0, self._aside.offsets))
        if self._blend is not None:
            self._begin()

    def hold(self) -> None:
        """Keep updates aside from now on; a change that has begun is finished."""
        self.held = True

    def release(self) -> bool:
        """Take updates over again."""
        update, self._aside, self.held = self._aside, None, False
        if update is not None:
            self._begin(update, UPDATE)
        return update is not None

    def revert(self) -> None:
        """Go back to the URDF; hold updates, so that the next one does not undo that."""
        self._pin(self._urdf, URDF)

    def restore(self, parameters: Array) -> None:
        """
        Go on with a saved set; hold updates, so that the next one does not undo that.

        parameters (n_links, 10).
        """
        self._pin(parameters, FILE)

    def step(self, stamp_ns: int) -> None:
        """Give the estimator the parameters of a cycle, if a change is going on."""
        if self._blend is None:
            return
        numbers = self._blend.step(stamp_ns)
        is_done = self._blend.progress == 1.0
        if is_done:
            self._blend = None
        if numbers is not None:
            self._use(numbers)
        if is_done:
            self._report_offsets()

    def finish(self) -> None:
        """Complete a change at once, as when the node is not active."""
        if self._blend is not None:
            self._blend = None
            self._use(_joined(self.goal, self.offsets))
            self._report_offsets()

    def _complete(self, of: str, **parts: Any) -> None:
        """Add parts to the update in use and the one kept aside, if they are the right one."""
        if self._source == UPDATE and self._used.fingerprint == of:
            self._used = replace(self._used, **parts)
        if self._aside is not None and self._aside.fingerprint == of:
            self._aside = replace(self._aside, **parts)

    def _pin(self, parameters: Array, source: str) -> None:
        """Use parameters, and hold updates."""
        self.held, self._aside = True, None
        self._begin(ParameterUpdate(parameters), source)

    def _begin(self, update: ParameterUpdate | None = None, source: str = '') -> None:
        """Begin a change from the present parameters; default: to the update in use."""
        if update is not None:
            self._used, self._source = update, source
        here = _joined(self._estimator.robot.parameters, self._added)
        self._blend = Blend(here, _joined(self.goal, self.offsets), self._seconds)

    def _use(self, numbers: Array) -> None:
        """Set parameters and offsets of the estimator and its followers."""
        n_offsets = self._added.size
        parameters = numbers[: len(numbers) - n_offsets].reshape(-1, 10)
        self._estimator.set_parameters(parameters)
        offsets = numbers[len(numbers) - n_offsets :].reshape(-1, 6)
        if not np.array_equal(offsets, self._added):
            self._subtract(offsets)
        for follow in self._followers:
            follow(self._estimator.robot.parameters)

    def _subtract(self, offsets: Array) -> None:
        """Set the offsets that the estimator subtracts beyond its calibration, (n_fts, 6)."""
        self._added = offsets
        whole = self._calibration.with_offsets(self._calibration.offsets + offsets)
        self._estimator.set_calibration(whole)

    def _report_offsets(self) -> None:
        """Call `subtracted` where the offsets are others than at the last call."""
        if self._subtracted is not None and not np.array_equal(self._reported, self._added):
            self._subtracted()
        self._reported = self._added


def _joined(parameters: Array, offsets: Array) -> Array:
    """Return both in one row."""
    return np.concatenate([parameters.reshape(-1), offsets.reshape(-1)])
