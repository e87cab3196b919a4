# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From a robot description and limits to a motion that is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification.equations.friction import OF_A_JOINT, JointModel
from inertial_estimation.identification.excitation.excitation import (
    ExcitationRegressor,
    SubmodelRows,
)
from inertial_estimation.identification.excitation.fourier import FourierBasis, FourierMotion
from inertial_estimation.identification.excitation.keep_away import KeepAway, Nearest
from inertial_estimation.identification.excitation.search import Attempt, ExcitationSearch
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.collision_shapes import has_collision_library
from inertial_estimation.model.joint_limits import JointLimits, WiderLimit, joint_limits
from inertial_estimation.model.meshes import READERS
from inertial_estimation.model.robot import STANDARD_GRAVITY, Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor
from inertial_estimation.simulation.playback import Played, play

Array = NDArray[np.float64]

CHECKED = 2000
"""Even instants at which a motion is checked."""
POOR = 1e3
"""Condition number from which on a warning is due; S calls a hundred good."""


@dataclass(frozen=True)
class ExciteSettings:
    """What is asked of a motion."""

    joints: tuple[str, ...] | None = None
    """That move; the others stay at zero. Default: all."""
    fixed_link: str = ''
    """Default: the root link."""
    gravity: tuple[float, ...] = STANDARD_GRAVITY
    """In the axes of the fixed link [m/s^2]."""
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of joints, in place of those of the description."""
    acceleration: float | None = None
    """Limit of joints for which nobody says one [rad/s^2 or m/s^2]."""
    ft_sensors: tuple[str, ...] | None = ()
    """Whose readings give rows; None: all that the description has tags of."""
    efforts: tuple[str, ...] | None = None
    """Joints whose efforts give rows. Default: all."""
    friction: tuple[Term, ...] = OF_A_JOINT
    """Unknown beside what links weigh."""
    period: float = 20.0
    """[s]"""
    harmonics: int = 5
    starts: int = 5
    seconds: float = 60.0
    """For the search."""
    seed: int = 0
    clearance: float = 0.02
    """That links keep from each other, neighbours if they do with joints at zero [m]."""
    ignored: Sequence[tuple[str, str]] = ()
    """Pairs of links that need not keep away from each other."""
    mesh_folders: Sequence[Path] = ()
    """Where meshes are searched for."""


@dataclass(frozen=True, eq=False)
class Design:
    """A motion, and what is known of it."""

    robot: Robot
    """Whole: FT sensors do not cut it."""
    limits: JointLimits
    regressor: ExcitationRegressor
    attempts: tuple[Attempt, ...]
    """The chosen one first."""
    keep_away: KeepAway | None
    """None: there is no geometry that could be checked."""
    notes: tuple[str, ...]
    """What of the geometry could not be used, and why."""
    nearest: Nearest | None
    played: Played | None
    not_played: str
    """Why, if it was not."""
    seconds: float
    """Within which the search was to end."""

    @property
    def motion(self) -> FourierMotion:
        """The motion that was chosen."""
        return self.attempts[0].motion

    @cached_property
    def states(self) -> Array:
        """Positions, velocities, accelerations at `CHECKED` instants, (3, n, n_joints)."""
        return _states(self.motion)

    @cached_property
    def conditions(self) -> list[tuple[float, float]]:
        """Condition number of each start, and of what was made of it."""
        found = []
        for attempt in self.attempts:
            both = (attempt.start, attempt.motion)
            start, end = (self.regressor.condition(_states(motion)) for motion in both)
            found.append((start, end))
        return found

    @cached_property
    def of_submodels(self) -> list[tuple[SubmodelRows, float, float]]:
        """Condition number of each submodel's rows, of the start and of what was made of it."""
        first = self.attempts[0]
        start, end = (
            self.regressor.conditions(_states(motion)) for motion in (first.start, first.motion)
        )
        return list(zip(self.regressor.submodels, start, end, strict=True))

    @cached_property
    def efforts(self) -> Array:
        """Largest effort of each joint by the description, without friction [Nm or N]."""
        Y = TorqueRegressor(self.robot).rows(*self.states).Y
        torques = Y @ self.robot.parameters.reshape(-1)
        return np.asarray(np.abs(torques).max(axis=0))

    @property
    def warnings(self) -> list[str]:
        """What a user should know before a robot moves so."""
        found = list(_wider(self.limits.wider))
        for name, effort, limit in zip(
            self.limits.joint_names, self.efforts, self.limits.effort, strict=True
        ):
            if effort > limit:
                found.append(
                    f"joint '{name}' needs {effort:.3g} by the description, its limit is "
                    f'{limit:.3g} [Nm or N]: lower its acceleration or velocity'
                )
        if self.conditions[0][1] > POOR:
            found.append(
                f'a condition number of {self.conditions[0][1]:.2g} is poor: give the joints more '
                'room, a longer period, or leave out friction that need not be known'
            )
        if not self.attempts[0].complete:
            found.append(f'the search was ended after {self.seconds:g} s: give it more time')
        if self.keep_away is None and not has_collision_library():
            found.append(f'collisions were not checked: {" or ".join(READERS)} is not installed')
        elif self.keep_away is None:
            found.append('collisions were not checked: the description has no usable geometry')
        found += self.notes
        if self.played is None:
            found.append(f'not played: {self.not_played}')
        elif self.played.touching:
            found.append(f'in MuJoCo these touch: {"; ".join(self.played.touching)}')
        return found


def design(
    urdf: str | Path,
    settings: ExciteSettings,
    progress: Callable[[str, float], None] = lambda what, done: None,
) -> Design:
    """
    Design a motion and check it.

    Parameters
    ----------
    urdf : str or Path
        Text or path of the robot description.
    settings : ExciteSettings
        What is asked of it.
    progress : callable
        Told what is done and how much of it, 0 to 1.

    Returns
    -------
    Design

    Raises
    ------
    ConfigError, NameNotFound, ModelError
        If something is unknown, missing or impossible.

    """
    robot = read_robot(urdf, settings)
    limits = joint_limits(robot, settings.limits, settings.acceleration)
    regressor = _regressor(urdf, settings, robot.joint_names)
    keep_away, notes = _keep_away(robot, limits, settings)
    attempts = ExcitationSearch(
        regressor,
        limits,
        FourierBasis(settings.period, settings.harmonics),
        keep_away,
        starts=settings.starts,
        seconds=settings.seconds,
        seed=settings.seed,
        progress=progress,
    ).run()
    # The search looks at few instants and at smooth signs.
    attempts.sort(key=lambda attempt: regressor.condition(_states(attempt.motion)))
    free, nearest = _first_free(attempts, keep_away)
    played, not_played = _play(robot, free[0].motion, keep_away, progress)
    return Design(
        robot,
        limits,
        regressor,
        free,
        keep_away,
        notes,
        nearest,
        played,
        not_played,
        settings.seconds,
    )


def read_robot(
    urdf: str | Path, settings: ExciteSettings, ft_sensors: Sequence[str] | None = ()
) -> Robot:
    """Read a robot on a fixed base."""
    robot = Robot.from_urdf(
        urdf,
        joints=settings.joints,
        ft_sensors=ft_sensors,
        accelerometers=(),
        gyroscopes=(),
        imus=(),
        fixed_link=settings.fixed_link,
        gravity=settings.gravity,
    )
    return robot if settings.fixed_link else replace(robot, fixed_frame=robot.link_names[0])


def _regressor(
    urdf: str | Path, settings: ExciteSettings, joint_names: Sequence[str]
) -> ExcitationRegressor:
    """Return the rows that are asked about, of the robot as FT sensors cut it."""
    cut = read_robot(urdf, settings, settings.ft_sensors)
    if settings.ft_sensors is None and not cut.ft_sensors:
        raise ConfigError(
            'all FT sensors are to give rows, but the description has no tag of one: put '
            '<sensor type="force_torque"> under <robot>, or ask for none'
        )
    joint = JointModel(terms=settings.friction)
    return ExcitationRegressor(cut, joint, settings.efforts, joint_names)


def _keep_away(
    robot: Robot, limits: JointLimits, settings: ExciteSettings
) -> tuple[KeepAway | None, tuple[str, ...]]:
    """Return what keeps links from each other, if it is known, and what cannot be used of it."""
    if not has_collision_library():
        return None, ()
    clearance = SelfClearance.of_robot(
        robot,
        limits.lower,
        limits.upper,
        margin=settings.clearance,
        mesh_folders=settings.mesh_folders,
        ignored=settings.ignored,
    )
    keep_away = KeepAway(clearance, settings.clearance)
    return keep_away if clearance.pieces else None, clearance.notes


def _play(
    robot: Robot,
    motion: FourierMotion,
    keep_away: KeepAway | None,
    progress: Callable[[str, float], None],
) -> tuple[Played | None, str]:
    """Return what the simulator makes of a motion, or why it does not play it."""
    clearance = keep_away.clearance if keep_away is not None else None
    try:
        return play(robot, motion.at, motion.basis.period, clearance, progress), ''
    except ModelError as error:
        return None, str(error)


def _first_free(
    attempts: Sequence[Attempt], keep_away: KeepAway | None
) -> tuple[tuple[Attempt, ...], Nearest | None]:
    """Return the attempts from the best one on in which nothing touches, and its nearest pair."""
    if keep_away is None:
        return tuple(attempts), None
    for k, attempt in enumerate(attempts):
        nearest = keep_away.nearest(_states(attempt.motion)[0])
        if nearest.distance > 0.0:
            return tuple(attempts[k:]), nearest
    raise ConfigError(
        f'{nearest.links} touch between the instants that were searched, in all {len(attempts)} '
        'attempts: ask for more clearance'
    )


def _wider(wider: Sequence[WiderLimit]) -> Iterator[str]:
    """Yield what to know of limits that let joints do more than the description does."""
    of_joints: dict[str, list[str]] = {}
    for one in wider:
        said = f'{one.key} {one.told:g} for {one.described:g}'
        of_joints.setdefault(one.joint, []).append(said)
    if of_joints:
        said = '; '.join(f"'{name}' {', '.join(told)}" for name, told in of_joints.items())
        yield (
            f"the given limits are wider than the description's: {said} [rad or m and their "
            'rates]: do not play this motion unless the robot can do that; degrees would be read '
            'as rad'
        )


def _states(motion: FourierMotion) -> Array:
    """Return a motion at the instants at which it is checked."""
    return motion.at(motion.basis.instants(CHECKED))
