# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Design an exciting motion within limits and without self-collision."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError
from inertial_estimation.findings import Finding, finding
from inertial_estimation.identification.equations.friction import OF_A_JOINT, JointModel
from inertial_estimation.identification.excitation.excitation_regressor import (
    ExcitationRegressor,
    SubmodelRows,
)
from inertial_estimation.identification.excitation.search import (
    Attempt,
    ExcitationSearch,
    FourierBasis,
    FourierMotion,
    KeepAway,
    Nearest,
)
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.geometry import LIBRARIES, has_collision_library
from inertial_estimation.model.joint_limits import JointLimits, joint_limits
from inertial_estimation.model.robot import STANDARD_GRAVITY, Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor

CHECKED = 2000
"""Samples of a period at which a motion is checked."""
POOR_CONDITION = 1e3
"""Condition number that is reported; S calls a hundred good."""


@dataclass(frozen=True)
class ExciteSettings:
    """Settings of `design_excitation`."""

    joints: tuple[str, ...] | None = None
    """Moving joints; the others stay at zero. None: all."""
    fixed_link: str = ''
    """The root link by default."""
    gravity: tuple[float, ...] = STANDARD_GRAVITY
    """In the axes of the fixed link [m/s^2]."""
    limits: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Of joints: some of lower, upper, velocity, acceleration, instead of those of the URDF."""
    acceleration: float | None = None
    """Limit of joints without one [rad/s^2 or m/s^2]."""
    ft_sensors: tuple[str, ...] | None = ()
    """That give equations; None: all."""
    efforts: tuple[str, ...] | None = None
    """Joints whose efforts give equations; None: all."""
    friction: tuple[Term, ...] = OF_A_JOINT
    """Unknowns of each joint beside inertial parameters."""
    period: float = 20.0
    """[s]"""
    harmonics: int = 5
    starts: int = 5
    """Random starts of the search."""
    seconds: float = 60.0
    """Limit of the search [s]."""
    seed: int = 0
    clearance: float = 0.02
    """Between links [m]."""
    ignored: Sequence[tuple[str, str]] = ()
    """Pairs of links that are not kept apart."""
    mesh_folders: Sequence[Path] = ()


@dataclass(frozen=True, eq=False)
class Excitation:
    """A designed motion."""

    robot: Robot
    """Without FT cuts."""
    limits: JointLimits
    regressor: ExcitationRegressor
    attempts: tuple[Attempt, ...]
    """The chosen one first."""
    keep_away: KeepAway | None
    """None if there is no usable geometry."""
    nearest: Nearest | None
    findings: tuple[Finding, ...]
    """Limits that are exceeded, poor conditions."""

    @property
    def motion(self) -> FourierMotion:
        """The chosen motion."""
        return self.attempts[0].motion

    @cached_property
    def states(self) -> Array:
        """Positions, velocities, accelerations of a period, shape (3, n, n_joints)."""
        return _states(self.motion)

    @cached_property
    def conditions(self) -> list[tuple[float, float]]:
        """Condition number of each start, and of its result."""
        condition = self.regressor.condition
        return [
            (condition(_states(one.start)), condition(_states(one.motion)))
            for one in self.attempts
        ]

    @cached_property
    def submodel_conditions(self) -> list[tuple[SubmodelRows, float, float]]:
        """Condition number of each submodel, of the start and of its result."""
        first = self.attempts[0]
        both = (self.regressor.conditions(_states(one)) for one in (first.start, first.motion))
        return list(zip(self.regressor.submodels, *both, strict=True))

    @cached_property
    def efforts(self) -> Array:
        """Largest effort of each joint by the URDF, without friction [Nm or N]."""
        torques = TorqueRegressor(self.robot).rows(*self.states).Y
        return np.asarray(np.abs(torques @ self.robot.parameters.reshape(-1)).max(axis=0))


def design_excitation(
    urdf: str | Path,
    settings: ExciteSettings,
    progress: Callable[[str, float], None] = lambda stage, done: None,
) -> Excitation:
    """
    Design a motion of least condition number [S section 5.2.2] and check it.

    Parameters
    ----------
    urdf : str or Path
        Text or path of the URDF.
    settings : ExciteSettings
        Joints, limits and equations.
    progress : callable
        Called with the stage and its share that is done, 0 to 1.

    Returns
    -------
    Excitation

    Raises
    ------
    ConfigError, NameNotFound, ModelError
        If a setting is unknown, missing or impossible.

    """
    robot = _read(urdf, settings, ())
    limits = joint_limits(robot, settings.limits, settings.acceleration)
    cut = _read(urdf, settings, settings.ft_sensors)
    if settings.ft_sensors is None and not cut.ft_sensors:
        raise ConfigError('the URDF has no tag of an FT sensor')
    model = JointModel(terms=settings.friction)
    regressor = ExcitationRegressor(cut, model, settings.efforts, robot.joint_names)
    keep_away, notes = _keep_away(robot, limits, settings)
    basis = FourierBasis(settings.period, settings.harmonics)
    search = ExcitationSearch(regressor, limits, basis, keep_away)
    attempts = search.run(settings.starts, settings.seconds, settings.seed, progress)
    # The search uses few samples and smooth signs.
    attempts.sort(key=lambda attempt: regressor.condition(_states(attempt.motion)))
    nearest = None
    if keep_away is not None:
        near = [keep_away.nearest(_states(attempt.motion)[0]) for attempt in attempts]
        free = [k for k, one in enumerate(near) if one.distance > 0.0]
        if not free:
            raise ConfigError(f'{near[0].links} touch in all {len(attempts)} attempts')
        attempts, nearest = attempts[free[0] :], near[free[0]]
    found = Excitation(robot, limits, regressor, tuple(attempts), keep_away, nearest, ())
    return replace(found, findings=(*_findings(found), *notes))


def _read(urdf: str | Path, settings: ExciteSettings, ft: Sequence[str] | None) -> Robot:
    """Return a robot on a fixed base."""
    robot = Robot.from_urdf(
        urdf, joints=settings.joints, ft_sensors=ft, imus=(),
        fixed_link=settings.fixed_link, gravity=settings.gravity,
    )  # fmt: skip
    return robot if settings.fixed_link else replace(robot, fixed_frame=robot.link_names[0])


def _keep_away(
    robot: Robot, limits: JointLimits, settings: ExciteSettings
) -> tuple[KeepAway | None, list[Finding]]:
    """Return the clearance between links, and which geometry cannot be used."""
    why, notes = f'{" or ".join(LIBRARIES)} is not installed', []
    if has_collision_library():
        clearance = SelfClearance.of_robot(
            robot, limits.lower, limits.upper, margin=settings.clearance,
            mesh_folders=settings.mesh_folders, ignored=settings.ignored,
        )  # fmt: skip
        notes = [finding('suboptimal', 'geometry', what=note) for note in clearance.notes]
        if clearance.pieces:
            return KeepAway(clearance, settings.clearance), notes
        why = 'the URDF has no usable geometry'
    what = f'collisions are not checked: {why}'
    return None, [finding('suboptimal', 'motion', what=what), *notes]


def _findings(found: Excitation) -> Iterator[Finding]:
    """Yield what exceeds limits or is not optimal."""
    limits = found.limits
    for one in limits.wider:
        yield finding(
            'rating', one.joint, what=f'given {one.key} is', value=one.stated, limit=one.described
        )
    for name, effort, limit in zip(limits.joint_names, found.efforts, limits.effort, strict=True):
        if effort > limit:
            yield finding('rating', name, what='effort by the URDF', value=effort, limit=limit)
    condition = found.conditions[0][1]
    if condition > POOR_CONDITION:
        text = f'condition number {condition:.2g}, limit {POOR_CONDITION:g}'
        yield finding('unexcited', 'motion', what=text)
    if not found.attempts[0].complete:
        yield finding('suboptimal', 'motion', what='the time of the search was over')


def _states(motion: FourierMotion) -> Array:
    """Return positions, velocities and accelerations of a period, (3, n, n_joints)."""
    return motion.at(motion.basis.times(CHECKED))
