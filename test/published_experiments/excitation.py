# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""S 5.2.2: a motion for the WAM, within what the published one uses, from random starts."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inertial_estimation.excite.design import Design, ExciteSettings, design
from inertial_estimation.table import Table
from published_experiments.experiment import Expectation, Finding
from published_experiments.wam_arm import WamArm

NAME = 'S: Sousa and Cortesao 2014, section 5.2.2, a motion for the WAM'
PUBLISHED = 99.0
"""Condition number of S."""
STARTS = 3
ENOUGH_TIME = 600.0
"""For the search, so that no slow machine ends it [s]."""
KEYS = ('lower', 'upper', 'velocity', 'acceleration')


def run(folder: Path, starts: int = STARTS) -> Finding:
    """Search for a motion."""
    arm = WamArm(folder)
    limits = _limits(arm)
    settings = ExciteSettings(limits=limits, starts=starts, seconds=ENOUGH_TIME)
    found = design(arm.urdf, settings)
    of_s = float(np.linalg.cond(arm.regressor(*found.states).reshape(-1, 98)[:, _columns(arm)]))
    return Finding(
        NAME,
        (_attempts(found), _joints(found)),
        tuple(one.note for one in expectations(found, of_s)),
        {
            'conditions_at_start': [start for start, _ in found.conditions],
            'conditions': [end for _, end in found.conditions],
            'condition_over_table_3': of_s,
            'reached': dict(zip(KEYS, _reached(found).tolist(), strict=True)),
            'limits': limits,
        },
    )


def expectations(found: Design, of_s: float) -> tuple[Expectation, ...]:
    """Hold a design against S."""
    ends = [end for _, end in found.conditions]
    low, high, speed, acceleration = _reached(found)
    limits = found.limits
    within = (
        (low >= limits.lower).all()
        and (high <= limits.upper).all()
        and (speed <= limits.velocity).all()
        and (acceleration <= limits.acceleration).all()
    )
    return (
        Expectation(
            f'condition number {min(ends):.1f} at best, {max(ends):.1f} at worst of {len(ends)} '
            f'random starts, at most {PUBLISHED:g} in each',
            max(ends) <= PUBLISHED,
        ),
        Expectation(
            f'over the columns of Table 3 that of the best motion is {of_s:.1f}, '
            f'at most {PUBLISHED:g}',
            of_s <= PUBLISHED,
        ),
        Expectation('the best motion keeps within the limits of every joint', bool(within)),
    )


def _columns(arm: WamArm) -> list[int]:
    """Return which unknowns S keeps."""
    return [int(k) for k in arm.table3.independent]


def _limits(arm: WamArm) -> dict[str, dict[str, float]]:
    """Return what the published motion uses, for each joint."""
    q, v, a = arm.trajectory(1)
    columns = (q.min(axis=0), q.max(axis=0), np.abs(v).max(axis=0), np.abs(a).max(axis=0))
    rows = np.array(columns).T.tolist()
    joints = arm.robot.joint_names
    return {
        name: dict(zip(KEYS, row, strict=True)) for name, row in zip(joints, rows, strict=True)
    }


def _reached(found: Design) -> np.ndarray:
    """Return what the best motion uses, shape (4, n_joints); rows as `KEYS`."""
    q, v, a = found.states
    return np.array([q.min(axis=0), q.max(axis=0), np.abs(v).max(axis=0), np.abs(a).max(axis=0)])


def _attempts(found: Design) -> Table:
    """Return the condition numbers of all starts."""
    rows = tuple((f'{start:.1f}', f'{end:.1f}') for start, end in found.conditions)
    return Table(
        f'S, section 5.2.2: condition numbers (S: {PUBLISHED:g}), the best first',
        ('at the random start', 'found'),
        rows,
    )


def _joints(found: Design) -> Table:
    """Return limits, and how much of them is used."""
    of = found.limits
    limits = np.array([of.lower, of.upper, of.velocity, of.acceleration])
    rows = tuple(
        (name, *(f'{used:.3f} of {limit:.3f}' for used, limit in zip(ours, theirs, strict=True)))
        for name, ours, theirs in zip(of.joint_names, _reached(found).T, limits.T, strict=True)
    )
    return Table(
        'S, section 5.2.2: what the best motion uses of the published one',
        ('joint', 'lower [rad]', 'upper [rad]', 'velocity [rad/s]', 'acceleration [rad/s^2]'),
        rows,
    )
