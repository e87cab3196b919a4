# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The inertial parameters that an estimator works with, and how others take their place.

A change is spread over some time in small steps, each a weighted mean of the parameters before
and those after. A mean of two positive definite pseudo-inertias is one as well [W], so links stay
bodies that could exist. Wrenches and torques are linear in the parameters: a step moves them by
the whole effect of the change times its part of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator

Array = NDArray[np.float64]

URDF, UPDATE, FILE = 'URDF', 'update', 'file'
"""Where a set of parameters came from."""
STEP_NS = 10_000_000
"""Least time between two steps of a change, each of which costs as much as a cycle [ns]."""
HEARD = 2
"""Sets of roots that are kept: those of the newest update may come before it."""


def fingerprint(parameters: Array) -> str:
    """
    Return what tells parameters from all others, to the bit.

    Parameters
    ----------
    parameters : ndarray, shape (n_links, 10)
        Of all links.

    Returns
    -------
    str
        The first sixteen hexadecimal digits of the SHA-256 of their bytes: little-endian numbers
        of eight bytes, row by row.

    """
    data = np.ascontiguousarray(parameters, dtype='<f8').tobytes()
    return sha256(data).hexdigest()[:16]


class Blend:
    """
    The way from one set of parameters to another.

    Parameters
    ----------
    start, goal : ndarray, shape (n_links, 10)
        As in `model.inertia`.
    seconds : float
        How long it takes, by the stamps of the cycles [s]; 0: at the first one.

    """

    def __init__(self, start: Array, goal: Array, seconds: float) -> None:
        self._start, self._change, self._goal = start, goal - start, goal
        self._span_ns = 1e9 * seconds
        self._gone_ns = self._stepped_ns = 0
        self._last_ns: int | None = None
        self.progress = 0.0
        """Part of the way that is done."""

    def step(self, stamp_ns: int) -> Array | None:
        """
        Return the parameters of a cycle, where it makes a step.

        Parameters
        ----------
        stamp_ns : int
            Its stamp [ns]. If time was set back nothing is undone.

        Returns
        -------
        ndarray, shape (n_links, 10), or None
            None: those of the cycle before hold.

        """
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
    Gives an estimator its inertial parameters, and remembers where they came from.

    Parameters
    ----------
    estimator : WrenchEstimator
        Has those of the URDF.
    seconds : float
        How long a change takes [s].
    followers : iterable of callable, optional
        Called with the parameters whenever the estimator has got others.

    Attributes
    ----------
    goal : ndarray, shape (n_links, 10)
        The set in use; while a change is going on the one that it leads to.
    source : str
        Where it came from: `URDF`, `UPDATE` or `FILE`.
    held : bool
        Whether updates are kept aside instead of taken over.
    waiting : ndarray or None
        The newest update that was kept aside.
    roots : ndarray, shape (n_links, 10, r), or None
        How sure the set in use is; while a change is going on the one that it leads to. None:
        nothing is said of it, as of the URDF and of a file.

    """

    def __init__(
        self,
        estimator: WrenchEstimator,
        seconds: float,
        followers: Iterable[Callable[[Array], None]] = (),
    ) -> None:
        self._estimator, self._seconds = estimator, seconds
        self._followers = tuple(followers)
        self._urdf = self.goal = estimator.robot.parameters
        self.source = URDF
        self.held = False
        self.waiting: Array | None = None
        self._blend: Blend | None = None
        self._roots: Array | None = None
        self._waiting_roots: Array | None = None
        self._heard: deque[tuple[str, Array]] = deque(maxlen=HEARD)
        self._of: str | None = None
        self._waiting_of: str | None = None

    @property
    def progress(self) -> float:
        """Part of the last change that is done; 1: all of it."""
        return 1.0 if self._blend is None else self._blend.progress

    @property
    def roots(self) -> Array | None:
        """How sure the set in use is."""
        return self._roots

    def offer_roots(self, of: str, roots: Array) -> None:
        """
        Hear how sure an update is, which may come before it or after it.

        Parameters
        ----------
        of : str
            `fingerprint` of its parameters.
        roots : ndarray, shape (n_links, 10, r)
            As `Uncertainty.set_parameter_roots` takes them.

        """
        self._heard.append((of, roots))
        if of == self._of:
            self._roots = roots
        if of == self._waiting_of:
            self._waiting_roots = roots

    def offer(self, parameters: Array) -> bool:
        """
        Take an update over, or keep it aside while updates are held.

        Parameters
        ----------
        parameters : ndarray, shape (n_links, 10)
            Usable, as `model.usable_parameters` says.

        Returns
        -------
        bool
            Whether it is taken over.

        """
        of = fingerprint(parameters)
        roots = next((found for name, found in self._heard if name == of), None)
        if self.held:
            self.waiting, self._waiting_of, self._waiting_roots = parameters, of, roots
            return False
        self._take(parameters, of, roots)
        return True

    def hold(self) -> None:
        """Keep updates aside from now on; a change that has begun is finished."""
        self.held = True

    def release(self) -> bool:
        """
        Take updates over again.

        Returns
        -------
        bool
            Whether one was waiting, which is taken over now.

        """
        parameters, of, roots = self.waiting, self._waiting_of, self._waiting_roots
        self.held = False
        self._drop_waiting()
        if parameters is not None:
            self._take(parameters, of, roots)
        return parameters is not None

    def revert(self) -> None:
        """Go back to the URDF; hold updates, so that the next one does not undo that."""
        self._pin(self._urdf, URDF)

    def restore(self, parameters: Array) -> None:
        """
        Go on with a saved set; hold updates, so that the next one does not undo that.

        Parameters
        ----------
        parameters : ndarray, shape (n_links, 10)
            As for `offer`.

        """
        self._pin(parameters, FILE)

    def step(self, stamp_ns: int) -> None:
        """
        Give the estimator the parameters of a cycle, if a change is going on.

        Parameters
        ----------
        stamp_ns : int
            Stamp of the cycle [ns].

        Raises
        ------
        ModelError
            If the estimator cannot use them; those of the cycle before stay.

        """
        if self._blend is None:
            return
        parameters = self._blend.step(stamp_ns)
        if self._blend.progress == 1.0:
            self._blend = None
        if parameters is not None:
            self._use(parameters)

    def finish(self) -> None:
        """Do the rest of a change at once, as when nobody gets the estimates."""
        if self._blend is not None:
            self._blend = None
            self._use(self.goal)

    def _pin(self, parameters: Array, source: str) -> None:
        """Go on with parameters whatever updates say."""
        self.held = True
        self._drop_waiting()
        self._of, self._roots = None, None
        self._begin(parameters, source)

    def _take(self, parameters: Array, of: str | None, roots: Array | None) -> None:
        """Begin the change to an update."""
        self._of, self._roots = of, roots
        self._begin(parameters, UPDATE)

    def _drop_waiting(self) -> None:
        """Forget the update that was kept aside."""
        self.waiting, self._waiting_of, self._waiting_roots = None, None, None

    def _begin(self, parameters: Array, source: str) -> None:
        """Begin a change, from where the one before has led to."""
        self.goal, self.source = parameters, source
        self._blend = Blend(self._estimator.robot.parameters, parameters, self._seconds)

    def _use(self, parameters: Array) -> None:
        """Give everybody the parameters."""
        self._estimator.set_parameters(parameters)
        for follow in self._followers:
            follow(self._estimator.robot.parameters)
