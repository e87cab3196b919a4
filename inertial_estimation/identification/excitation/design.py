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
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.identification.excitation.search import (
    CHECKED,
    Attempt,
    ExcitationSearch,
    FourierBasis,
    FourierMotion,
)
from inertial_estimation.identification.unknowns import OF_A_JOINT, Term
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.geometry import UnusableGeometry
from inertial_estimation.model.joint_limits import JointLimits, joint_limits
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.torque_derivatives import TorqueRegressor

POOR_CONDITION = 1e3
"""Condition number that is reported; S calls a hundred good."""


@dataclass(frozen=True)
class ExciteSettings:
    """Settings of `design_excitation`."""

    joints: tuple[str, ...] | None = None
    """Moving joints; the others stay at zero. None: all."""
    fixed_link: str = ''
    """The root link by default."""
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

    limits: JointLimits
    regressor: ExcitationRegressor
    attempts: tuple[Attempt, ...]
    """The chosen one first."""
    clearance: SelfClearance | None
    """None if there is no usable geometry."""
    nearest: tuple[float, str] | None
    """Least distance between links, and these [m]."""
    findings: tuple[Finding, ...] = ()
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
    def efforts(self) -> Array:
        """Largest effort of each joint by the URDF, without friction [Nm or N]."""
        robot = replace(self.regressor.robot, ft_sensors=())
        Y, _ = TorqueRegressor(robot).rows(self.states)
        return np.asarray(np.abs(Y @ robot.parameters.reshape(-1)).max(axis=0))


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
    robot = Robot.from_urdf(
        urdf, joints=settings.joints, ft_sensors=settings.ft_sensors, imus=(),
        fixed_link=settings.fixed_link,
    )  # fmt: skip
    robot = robot if settings.fixed_link else replace(robot, fixed_frame=robot.link_names[0])
    if settings.ft_sensors is None and not robot.ft_sensors:
        raise ConfigError('the URDF has no tag of an FT sensor')
    limits = joint_limits(robot, settings.limits, settings.acceleration)
    regressor = ExcitationRegressor(robot, settings.friction, settings.efforts)
    clearance, why = None, 'the URDF has no usable geometry'
    try:
        clearance = SelfClearance(
            robot, limits.lower, limits.upper, settings.clearance, settings.mesh_folders,
            settings.ignored,
        )  # fmt: skip
    except UnusableGeometry as error:
        why, notes = str(error), []
    else:
        notes = [finding('suboptimal', 'geometry', what=note) for note in clearance.notes]
        clearance = clearance if len(clearance.links) else None
    if clearance is None:
        what = f'collisions are not checked: {why}'
        notes.insert(0, finding('suboptimal', 'motion', what=what))
    basis = FourierBasis(settings.period, settings.harmonics)
    search = ExcitationSearch(regressor, limits, basis, clearance)
    attempts = search.run(settings.starts, settings.seconds, settings.seed, progress)
    nearest = None
    if clearance is not None:
        near = [clearance.nearest(_states(attempt.motion)[0]) for attempt in attempts]
        first = next((k for k, (distance, _) in enumerate(near) if distance > 0.0), None)
        if first is None:
            raise ConfigError(f'{near[0][1]} touch in all {len(attempts)} attempts')
        attempts, nearest = attempts[first:], near[first]
    found = Excitation(limits, regressor, tuple(attempts), clearance, nearest)
    return replace(found, findings=(*_findings(found), *notes))


def _findings(found: Excitation) -> Iterator[Finding]:
    limits = found.limits
    for one in limits.wider:
        yield finding(
            'rating', one.joint, what=f'given {one.key} is', value=one.stated, limit=one.described
        )
    for name, effort, limit in zip(limits.joint_names, found.efforts, limits.effort, strict=True):
        if effort > limit:
            yield finding('rating', name, what='effort by the URDF', value=effort, limit=limit)
    if (condition := found.attempts[0].condition) > POOR_CONDITION:
        text = f'condition number {condition:.2g}, limit {POOR_CONDITION:g}'
        yield finding('unexcited', 'motion', what=text)
    if not found.attempts[0].complete:
        yield finding('suboptimal', 'motion', what='the time of the search was over')


def _states(motion: FourierMotion) -> Array:
    """Return positions, velocities and accelerations of a period, (3, n, n_joints)."""
    return motion.at(motion.basis.times(CHECKED))
