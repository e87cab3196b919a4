# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios of the embedded robot: support, motion, pushes and loads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import cycle, islice
from math import cos, inf, pi

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.simulation.motion import START

ACCELERATION = 3.5
"""Root mean square acceleration that the scenes ask of a joint [rad/s^2]."""
FIRST_PUSH = 1.0
"""Start of the first push of a scene [s]."""
PICK_UP = 8.0
"""Latest time at which the load is picked up [s]."""


@dataclass(frozen=True)
class Push:
    """A wrench on a link that comes and goes smoothly."""

    start: float
    """[s]"""
    duration: float
    """Edges included [s]."""
    frame: str
    """Link of the URDF that is pushed."""
    wrench: tuple[float, ...]
    """Environment on robot at full strength, (6,), in and about the frame [N, Nm]."""
    edge: float = 0.2
    """Time of the rise, and of the fall [s]."""

    def at(self, time: float) -> Array | None:
        """Return the wrench at a time [s], shape (6,) [N, Nm]."""
        inside = min(time - self.start, self.start + self.duration - time)
        if inside <= 0.0:
            return None
        share = min(inside / self.edge, 1.0)
        return 0.5 * (1.0 - cos(pi * share)) * np.array(self.wrench)


@dataclass(frozen=True)
class Load:
    """A body that a link carries for some time."""

    start: float
    """[s]"""
    frame: str
    """Link of the URDF that carries it."""
    mass: float
    """[kg]"""
    center: tuple[float, float, float]
    """Its centre of mass in the frame [m]."""
    inertia: float
    """About its centre of mass, the same about any axis [kg m^2]."""
    end: float = inf
    """[s]"""


@dataclass(frozen=True)
class Scenario:
    """A run of the embedded robot."""

    name: str
    fixed: bool
    """True: the root link is welded to a pole. False: the robot stands on both feet."""
    seed: int
    """Seed of the motion, 0 or more."""
    posture: Mapping[str, float]
    """Position about which each joint moves [rad]; 0 for joints left out."""
    motion: Mapping[str, float]
    """Root mean square acceleration asked of each joint [rad/s^2]; 0 for joints left out."""
    contacts: tuple[str, ...]
    """One link of the URDF in each submodel, at which its external wrench is expressed."""
    pushes: tuple[Push, ...] = ()
    onset: float = -START
    """Time at which the joints begin to move; by default before the start [s]."""
    loads: tuple[Load, ...] = ()


def pole(duration: float = 30.0, seed: int = 0) -> Scenario:
    """Return the robot on a pole: every joint moves, limbs are pushed with about 50 N."""
    posture = {**_TRUNK, **_on_both_sides(_ARM), **_on_both_sides(_HANGING_LEG)}
    wrenches = _random_wrenches(cycle(_PUSHED_ON_POLE), np.random.default_rng([seed, 1]))
    return Scenario(
        name='pole',
        fixed=True,
        seed=seed,
        posture=posture,
        motion=dict.fromkeys(posture, ACCELERATION),
        contacts=('root_link', *_PUSHED_ON_POLE),
        pushes=tuple(_schedule(wrenches, duration, length=1.4, period=0.8)),
    )


def standing(duration: float = 30.0, seed: int = 0) -> Scenario:
    """Return the robot on both feet: arms, head and torso move, and it withstands pushes."""
    wrenches = islice(cycle(_STANDING_PUSHES), seed % len(_STANDING_PUSHES), None)
    moving = {**_TRUNK, **_on_both_sides(_ARM)}
    return Scenario(
        name='standing',
        fixed=False,
        seed=seed,
        posture={**moving, **_on_both_sides(_STANDING_LEG)},
        motion={joint: 1.5 if joint.startswith('torso') else ACCELERATION for joint in moving},
        contacts=('chest', 'l_hand', 'r_hand', 'l_upper_leg', 'r_upper_leg', 'l_sole', 'r_sole'),
        pushes=tuple(_schedule(wrenches, duration, length=1.2, period=1.4)),
    )


def carrying(duration: float = 30.0, seed: int = 0) -> Scenario:
    """Return the robot on both feet without pushes, which picks up a load."""
    load = Load(min(0.5 * duration, PICK_UP), 'l_hand', 1.0, (0.03, 0.0, -0.04), 0.002)
    return replace(standing(duration, seed), name='carrying', pushes=(), loads=(load,))


Scene = Callable[[float, int], Scenario]
"""A function of a duration [s] and a seed."""
SCENES: Mapping[str, Scene] = {'pole': pole, 'standing': standing}
"""Those with pushes."""
EVERY_SCENE: Mapping[str, Scene] = {**SCENES, 'carrying': carrying}

_Wrench = tuple[float, ...]
# The joints that are named move, also about 0.
_TRUNK = {
    'torso_pitch': 0.0, 'torso_roll': 0.0, 'torso_yaw': 0.0, 'neck_pitch': -0.15,
    'neck_roll': 0.0, 'neck_yaw': 0.0,
}  # fmt: skip
_ARM = {
    'shoulder_pitch': -0.65, 'shoulder_roll': 0.7, 'shoulder_yaw': 0.35, 'elbow': 1.0,
    'wrist_prosup': 0.0, 'wrist_pitch': -0.45, 'wrist_yaw': 0.04,
}  # fmt: skip
_HANGING_LEG = {
    'hip_pitch': 0.3, 'hip_roll': 0.35, 'hip_yaw': 0.0, 'knee': -0.9, 'ankle_pitch': 0.0,
    'ankle_roll': 0.0,
}  # fmt: skip
# Hip and knee add up to the ankle: the sole is level, the centre of mass above its middle.
_STANDING_LEG = {'hip_pitch': 0.18, 'knee': -0.35, 'ankle_pitch': -0.17}

_PUSHED_ON_POLE = ('l_hand', 'r_lower_leg', 'l_sole', 'r_hand', 'l_lower_leg', 'r_sole')
# The chest's axes point left, up and forward, those of an upper leg forward, left and up. Those
# of the hands move: none of these forces ever points backward, which would tip the robot.
_STANDING_PUSHES: tuple[tuple[str, _Wrench], ...] = (
    ('chest', (0.0, 40.0, 0.0, 0.0, 0.0, 0.0)),
    ('l_hand', (10.0, -6.0, 3.0, 0.2, 0.0, 0.0)),
    ('r_upper_leg', (20.0, -10.0, 0.0, 0.0, 0.5, 0.0)),
    ('chest', (0.0, -50.0, 0.0, 0.0, 0.0, 0.0)),
    ('r_hand', (-6.0, 4.0, 14.0, 0.0, -0.2, 0.0)),
    ('chest', (8.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    ('l_upper_leg', (15.0, 20.0, 10.0, 0.0, 0.0, 0.5)),
    ('chest', (-5.0, 30.0, 4.0, 0.0, 0.0, 0.0)),
    ('l_hand', (4.0, -9.0, -11.0, 0.0, 0.0, 0.2)),
    ('chest', (0.0, -40.0, 4.0, 0.0, 0.0, 0.0)),
    ('r_hand', (-10.0, -6.0, 3.0, 0.0, 0.0, 0.0)),
    ('r_upper_leg', (5.0, 20.0, -20.0, 0.0, 0.0, 0.0)),
)


def _on_both_sides(limb: Mapping[str, float]) -> dict[str, float]:
    """Return the values of a limb's joints for the left and for the right limb."""
    return {f'{side}_{joint}': value for side in 'lr' for joint, value in limb.items()}


def _random_wrenches(
    frames: Iterable[str], rng: np.random.Generator
) -> Iterator[tuple[str, _Wrench]]:
    """Yield a wrench of about 50 N and 1.5 Nm in a random direction for each frame."""
    for frame in frames:
        force, moment = (v / np.linalg.norm(v) for v in rng.standard_normal((2, 3)))
        strength = *(rng.uniform(45.0, 55.0) * force), *(rng.uniform(1.0, 2.0) * moment)
        yield frame, tuple(map(float, strength))


def _schedule(
    wrenches: Iterable[tuple[str, _Wrench]], duration: float, *, length: float, period: float
) -> Iterator[Push]:
    """Yield a push in every period until the duration [s]."""
    starts = np.arange(FIRST_PUSH, duration - length, period)
    for start, (frame, wrench) in zip(starts, wrenches):
        yield Push(float(start), length, frame, wrench)
