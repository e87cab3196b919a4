# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the demo found, for a machine, and what that means for its goals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Any

from inertial_estimation.demo.load_results import Carried
from inertial_estimation.demo.load_scores import WITHIN

Figures = Mapping[str, Any]
"""What the watcher says about one estimator."""

FORCE_GOAL = 1.0
"""Largest force rms [N]."""
GAIN_GOAL = 0.15
"""Part of the force error of one IMU that several IMUs have to save."""
ACCELERATION_GOAL = 3.0
"""Least root mean square acceleration of the joints [rad/s^2]."""


LATE = 50.0
"""Where estimates are older than this it is the machine that is late, not the node [ms]."""


@dataclass(frozen=True)
class Estimator:
    """One of the estimators that run side by side."""

    name: str
    """Name of its node."""
    imus: tuple[str, ...]
    """IMUs that it uses."""
    twin: str
    """Name of the node that does the same with noise-free FT sensors."""


@dataclass(frozen=True)
class Result:
    """What one estimator reached in one scene."""

    scene: str
    estimator: Estimator
    figures: Figures
    """With the noise of all sensors."""
    twin_figures: Figures
    """With noise-free FT sensors."""
    joint_acceleration_rms: float
    """Of the joints that move in this scene [rad/s^2]."""
    cpu_percent: Mapping[str, float]
    """Of one processor, by process of the scene."""

    def as_dict(self) -> dict[str, Any]:
        """Return the result for a machine."""
        keys = ('force_rms_n', 'force_rms_all_contacts_n', 'moment_rms_nm', 'torque_rms_nm')
        return {
            'name': self.scene,
            'imus': len(self.estimator.imus),
            'imu_names': list(self.estimator.imus),
            **self.figures,
            'noise_free_ft': {key: self.twin_figures[key] for key in keys},
            'joint_acceleration_rms_rad_s2': self.joint_acceleration_rms,
            'cpu_percent': self.cpu_percent[self.estimator.name],
        }


def as_dict(results: Sequence[Result], carried: Carried | None = None) -> dict[str, Any]:
    """Return everything for a machine."""
    found = {
        'scenes': [result.as_dict() for result in results],
        'cycle_time_us': _worst(results, 'cycle_time_us'),
        'age_ms': _worst(results, 'age_ms'),
        'missed_cycles': sum(result.figures['missed_cycles'] for result in results),
        'cpu_percent': {result.scene: dict(result.cpu_percent) for result in results},
        'carrying': carried.as_dict() if carried else None,
        'goals': [{'goal': text, 'met': met} for text, met in goals(results, carried)],
    }
    return {key: _without_nan(value) for key, value in found.items()}


def goals(results: Sequence[Result], carried: Carried | None = None) -> list[tuple[str, bool]]:
    """Say of each goal what was reached, and whether that is enough."""
    force, of = max((result.figures['force_rms_n'], _label(result)) for result in results)
    slowest, scene = min((result.joint_acceleration_rms, result.scene) for result in results)
    return [
        (
            f'force rms over contacts at most {FORCE_GOAL:g} N: {force:.2f} N ({of})',
            force <= FORCE_GOAL,
        ),
        *(_gain_goal(name, results) for name in dict.fromkeys(r.scene for r in results)),
        (
            f'joints accelerate with at least {ACCELERATION_GOAL:g} rad/s^2 rms: '
            f'{slowest:.2f} rad/s^2 ({scene})',
            slowest >= ACCELERATION_GOAL,
        ),
        *(carried.goals() if carried else ()),
    ]


def lateness(results: Sequence[Result], carried: Carried | None = None) -> str:
    """Say that the machine was too slow or busy, if it was."""
    age, missed = (
        _worst(results, 'age_ms')['p50'],
        sum(result.figures['missed_cycles'] for result in results),
    )
    said = []
    if age > LATE:
        said.append(
            f'estimates were {age:.0f} ms old at the median and {missed} cycles missed: this '
            'machine is too slow or busy for robot and four estimators in real time. The errors '
            'count, the ages do not'
        )
    if carried is not None and carried.age > LATE:
        said.append(
            f'estimates were {carried.age:.0f} ms old at the median with the load: this machine '
            'is too slow or busy for robot, identifier and two estimators in real time. What was '
            f'not found within {WITHIN:g} s of the robot may come later'
        )
    return '\n'.join(said)


def _without_nan(value: Any) -> Any:
    """Return nested values with None for NaN and infinity."""
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not isfinite(value) else value


def _gain_goal(scene: str, results: Sequence[Result]) -> tuple[str, bool]:
    """Say how much better several IMUs are in a scene, where FT noise does not hide it."""
    ranked = sorted(
        (result for result in results if result.scene == scene),
        key=lambda result: len(result.estimator.imus),
    )
    one, several = (r.twin_figures['force_rms_n'] for r in (ranked[0], ranked[-1]))
    gain = 1.0 - several / one
    return (
        f'{scene}: several IMUs at least {GAIN_GOAL:.0%} better than one, noise-free FTs: '
        f'{gain:.0%} ({one:.2f} N, {several:.2f} N)',
        gain >= GAIN_GOAL,
    )


def _label(result: Result) -> str:
    """Return scene and IMUs for a sentence."""
    count = len(result.estimator.imus)
    return f'{result.scene}, {count} IMU{"s" * (count > 1)}'


def _worst(results: Sequence[Result], key: str) -> dict[str, float]:
    """Return the largest of each figure."""
    every = [result.figures[key] for result in results]
    return {name: max(figures[name] for figures in every) for name in every[0]}
