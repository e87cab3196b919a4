# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What rows of one kind see of links, carried along a tree from where motion is known.

A walk knows how the link where it is can move, and which functionals of its ten parameters rows
see if all that it carries were rigid. Across a joint both grow. What rows see of the next link
because it moves against this one decides what the next may hand to this one unnoticed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from inertial_estimation.model.motion_spans import (
    N_STATE,
    Crossing,
    added_states,
    carried_states,
    congruence,
    inertia_functionals,
    span,
    wrench_functionals,
)
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]


class Walk(ABC):
    """What one kind of rows makes of a tree, from link to link away from where motion is known."""

    @abstractmethod
    def start(self) -> tuple[Array, Array]:
        """
        Return what is known of the first link.

        Returns seen (k, 10).
        """

    @abstractmethod
    def cross(self, moves: Array, seen: Array, crossing: Crossing) -> tuple[Array, Array, Array]:
        """
        Return what is known of the next link.

        Returns own (k, 10).
        """


class Wrenches(Walk):
    """All rows of the wrench; what moves are the states of a link and its angular velocities."""

    def __init__(self, robot: Robot) -> None:
        self.rest = _proper_acceleration(robot) if robot.fixed_frame else None

    def start(self) -> tuple[Array, Array]:
        """Return the states of a free link, or of one at rest, with the span of its velocities."""
        if self.rest is None:
            return _states_with(np.eye(N_STATE), np.eye(3)), np.eye(10)
        state = np.concatenate([self.rest, np.zeros(9)])[None]
        return _states_with(state, np.zeros((0, 3))), span(wrench_functionals(state))

    def cross(self, moves: Array, seen: Array, crossing: Crossing) -> tuple[Array, Array, Array]:
        """Carry states and velocities across; the joint's own rates add theirs."""
        states, velocities = _states_of(moves)
        before = span(np.vstack([velocities @ H[:3, :3] for H in crossing.poses]))
        added = added_states(crossing.motion, before)
        carried = np.vstack([states @ carried_states(H).T for H in crossing.poses])
        everything = span(np.vstack([carried, added]))
        turning = span(np.vstack([before, crossing.motion[None, 3:]]))
        own = np.vstack([wrench_functionals(added), _changes(seen, crossing)])
        after = span(wrench_functionals(everything))
        return _states_with(everything, turning), after, span(own)


class FixedTorques(Walk):
    """Torques of a robot on a fixed base; what moves are twists, that of gravity among them."""

    def __init__(self, robot: Robot) -> None:
        self.gravity = np.concatenate([_proper_acceleration(robot), np.zeros(3)])

    def start(self) -> tuple[Array, Array]:
        """Return gravity, which accelerates a base that nothing is seen of."""
        return self.gravity[None], np.zeros((0, 10))

    def cross(self, moves: Array, seen: Array, crossing: Crossing) -> tuple[Array, Array, Array]:
        """Carry twists across and add the joint's own: they are the columns of Jacobians."""
        carried = np.vstack([moves @ _action_inverse(H).T for H in crossing.poses])
        twists = span(np.vstack([carried, crossing.motion[None]]))
        row = inertia_functionals(crossing.motion, twists)
        before = np.vstack([seen @ congruence(H) for H in crossing.poses])
        own = np.vstack([row, _changes(seen, crossing)])
        return twists, span(np.vstack([before, row])), span(own)


class FreeTorques(Walk):
    """Torques of a robot whose base moves in any way; nothing need be kept of motions."""

    def start(self) -> tuple[Array, Array]:
        """Return a base that nothing is seen of."""
        return np.zeros((0, 0)), np.zeros((0, 10))

    def cross(self, moves: Array, seen: Array, crossing: Crossing) -> tuple[Array, Array, Array]:
        """Add the joint's own row at every state."""
        wrenches = wrench_functionals(np.eye(N_STATE)).reshape(N_STATE, 6, 10)
        row = np.einsum('i,sij->sj', crossing.motion, wrenches)
        before = np.vstack([seen @ congruence(H) for H in crossing.poses])
        own = np.vstack([row, _changes(seen, crossing)])
        return moves, span(np.vstack([before, row])), span(own)


def _proper_acceleration(robot: Robot) -> Array:
    """Return that of the fixed link, in its own axes [m/s^2]."""
    _, L_H_fixed = robot.frame(robot.fixed_frame)
    return np.asarray(-L_H_fixed[:3, :3] @ robot.gravity)


def _changes(seen: Array, crossing: Crossing) -> Array:
    """Return what of the link before shows that the next one moves against it."""
    first, *others = (seen @ congruence(H) for H in crossing.poses)
    return np.vstack([np.zeros((0, 10)), *(other - first for other in others)])


def _states_with(states: Array, velocities: Array) -> Array:
    """Return states and angular velocities as one array, (k, 15)."""
    top = np.hstack([states, np.zeros((len(states), 3))])
    return np.vstack([top, np.hstack([np.zeros((len(velocities), N_STATE)), velocities])])


def _states_of(moves: Array) -> tuple[Array, Array]:
    """Undo `_states_with`."""
    turning = moves[:, N_STATE:].any(axis=1)
    return moves[~turning, :N_STATE], moves[turning, N_STATE:]


def _action_inverse(H: Array) -> Array:
    """Return the map of twists of a link to those of a frame fixed to it, shape (6, 6)."""
    return np.asarray(pin.SE3(H).toActionMatrixInverse())
