# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The inertial parameters that an estimator works with, and how others take their place.

A change is spread over some time: in each cycle the parameters are a weighted mean of those
before and those after. A mean of two positive definite pseudo-inertias is one as well [W], so
links stay bodies that could exist. Wrenches and torques are linear in the parameters: from one
cycle to the next a change moves them by its whole effect times the part of the time in between.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.wrench_estimator import WrenchEstimator

Array = NDArray[np.float64]

URDF, UPDATE, FILE = 'URDF', 'update', 'file'
"""Where a set of parameters came from."""


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
        self._gone_ns = 0
        self._last_ns: int | None = None
        self.progress = 0.0
        """Part of the way that is done."""

    def step(self, stamp_ns: int) -> Array:
        """
        Return the parameters of a cycle.

        Parameters
        ----------
        stamp_ns : int
            Its stamp [ns]. If time was set back nothing is undone.

        Returns
        -------
        ndarray, shape (n_links, 10)

        """
        if self._last_ns is not None:
            self._gone_ns += max(0, stamp_ns - self._last_ns)
        self._last_ns = stamp_ns
        if self._gone_ns >= self._span_ns:
            self.progress = 1.0
            return self._goal
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

    @property
    def progress(self) -> float:
        """Part of the last change that is done; 1: all of it."""
        return 1.0 if self._blend is None else self._blend.progress

    @property
    def roots(self) -> Array | None:
        """How sure the set in use is."""
        return self._roots if self.source == UPDATE else None

    def offer_roots(self, roots: Array | None) -> None:
        """
        Hear how sure the newest update is, which may come before it or after it.

        Parameters
        ----------
        roots : ndarray, shape (n_links, 10, r), or None
            As `Uncertainty.set_parameter_roots` takes them. While updates are held they are kept
            aside as well.

        """
        if self.held:
            self._waiting_roots = roots
        else:
            self._roots = roots

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
        if self.held:
            self.waiting = parameters
            return False
        self._begin(parameters, UPDATE)
        return True

    def hold(self) -> None:
        """Keep updates aside from now on; a change that has begun is finished."""
        if not self.held:
            self._waiting_roots = self._roots
        self.held = True

    def release(self) -> bool:
        """
        Take updates over again.

        Returns
        -------
        bool
            Whether one was waiting, which is taken over now.

        """
        parameters, self.waiting, self.held = self.waiting, None, False
        self._roots = self._waiting_roots
        return parameters is not None and self.offer(parameters)

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
        self._use(parameters)

    def finish(self) -> None:
        """Do the rest of a change at once, as when nobody gets the estimates."""
        if self._blend is not None:
            self._blend = None
            self._use(self.goal)

    def _pin(self, parameters: Array, source: str) -> None:
        """Go on with parameters whatever updates say."""
        self.held, self.waiting = True, None
        self._roots = self._waiting_roots = None
        self._begin(parameters, source)

    def _begin(self, parameters: Array, source: str) -> None:
        """Begin a change, from where the one before has led to."""
        self.goal, self.source = parameters, source
        self._blend = Blend(self._estimator.robot.parameters, parameters, self._seconds)

    def _use(self, parameters: Array) -> None:
        """Give everybody the parameters."""
        self._estimator.set_parameters(parameters)
        for follow in self._followers:
            follow(self._estimator.robot.parameters)
