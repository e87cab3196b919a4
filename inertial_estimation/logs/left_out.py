# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What of logs gives no rows, in words: missing or frozen signals, and what assumptions spoil."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import Evidence
from inertial_estimation.identification.fit import RobotFit
from inertial_estimation.identification.priors import SMALLEST_MASS
from inertial_estimation.logs.freedom import submodel_of
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Array, SampleBatch

Mask = NDArray[np.bool_]

FEW = 8
"""Names that a sentence holds."""


def frozen_warnings(robot: Robot, frozen: Mask | None) -> list[str]:
    """
    Return which FT sensors repeated themselves, in words.

    frozen (n, n_fts).
    """
    if frozen is None:
        return []
    counts = frozen.sum(axis=0).tolist()
    return [
        f'{sensor.name} repeated one reading, to the bit, at {count} of {len(frozen)} instants: '
        'they give no rows'
        for sensor, count in zip(robot.ft_sensors, counts, strict=True)
        if count
    ]


def missing_warnings(
    builder: EquationBuilder,
    samples: SampleBatch,
    assumed: Collection[str],
    constant: Collection[str] = (),
) -> list[str]:
    """Return which signals are not there at any instant, in words."""
    robot, joints = builder.robot, builder.robot.joint_names
    positions = zip(joints, samples.positions.T, strict=True)
    lost = [f'position of {name}' for name, q in positions if name not in assumed and _lost(q)]
    if samples.efforts is None:
        lost += [f'effort of {name}' for name in builder.choice.efforts]
    else:
        asked = [name for name in builder.choice.efforts if name not in constant]
        columns = {name: samples.efforts[:, joints.index(name)] for name in asked}
        lost += [f'effort of {name}' for name, effort in columns.items() if _lost(effort)]
    fts = enumerate(robot.ft_sensors)
    lost += [f'wrench of {ft.name}' for k, ft in fts if _lost(samples.ft_readings[:, k])]
    for k, imu in enumerate(robot.imus):
        if _lost(samples.angular_velocities[:, k]) and _lost(samples.proper_accelerations[:, k]):
            lost.append(f'readings of {imu.name}')
    if not lost:
        return []
    return [f'never there, or nothing but gaps, so what rests on it gives no rows: {_few(lost)}']


def require_rows(evidence: Sequence[Evidence], said: Sequence[str]) -> None:
    """Refuse logs that give no row."""
    if not any(part.count for one in evidence for part in one.kinds.values()):
        why = '; '.join(said) or 'something is missing or unknown at each instant'
        raise LogError(f'the logs give no row: {why}')


def massless_warnings(found: RobotFit) -> list[str]:
    """Return which links the description gives no mass although rows tell of them, in words."""
    empty = [
        f'{found.robot.link_names[k]} ({found.prior[k, 0]:g} kg)'
        for block in found.blocks
        for k, seen in zip(block.evidence.block.submodel.links, block.links_seen, strict=True)
        if seen and found.robot.parameters[k, 0] < SMALLEST_MASS
    ]
    if not empty:
        return []
    return [
        f'links without mass in the description, or next to none: {_few(empty)}; a prior that '
        'light is hardly left again, and rows that contradict it count as noise: give these '
        'links a guess, or a smaller --weight'
    ]


def _lost(values: Array) -> bool:
    """Tell whether there is no instant at which all values are there."""
    return not np.isfinite(values.reshape(len(values), -1)).all(axis=1).any()


def _few(names: Sequence[str]) -> str:
    """Return the first of some names, and how many more there are."""
    more = f' and {len(names) - FEW} more' if len(names) > FEW else ''
    return ', '.join(names[:FEW]) + more


def rowless_warnings(
    builder: EquationBuilder,
    assumed: Sequence[str],
    contacts: Sequence[str],
    told: Collection[str] | None = None,
) -> list[str]:
    """Return which links nothing is told of, in words."""
    said = []
    names = [block.submodel.name for block in builder.blocks]
    if assumed:
        said.append(
            f'assumed joints: {", ".join(assumed)}; what rests on their positions gives no rows: '
            f'{", ".join(_resting(builder, assumed)) or "nothing"}; --lock those that stood where '
            'the settings assume them'
        )
    if contacts:
        spoilt = dict.fromkeys(names[submodel_of(builder.robot, frame)] for frame in contacts)
        said.append(
            f'something acts on {", ".join(contacts)} all the time: no rows of the submodels '
            f'{", ".join(spoilt)}'
        )
    silent = [] if told is None else [name for name in names if name not in told]
    if silent:
        said.append(
            f'no rows of the submodels {", ".join(silent)}: their links stay as the description '
            'says'
        )
    return said


def _resting(builder: EquationBuilder, assumed: Sequence[str]) -> list[str]:
    """Return the submodels, or kinds of their rows, that rest on some joints."""
    samples = builder.random_samples()
    positions = samples.positions.copy()
    positions[:, [builder.robot.joint_names.index(name) for name in assumed]] = np.nan
    found = []
    for block, kinds in zip(
        builder.blocks, builder.rows(replace(samples, positions=positions)), strict=True
    ):
        lost = [kind for kind, rows in kinds.items() if not len(rows.y)]
        if lost and len(lost) == len(kinds):
            found.append(block.submodel.name)
        else:
            found += [f'{kind} of {block.submodel.name}' for kind in lost]
    return found
