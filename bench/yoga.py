# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Predict the FT readings of a real iCub on one foot by what is identified so far.

Parameters and offsets of each refit predict the readings until the next refit. They are compared
with the URDF without offset, with the best constant offset of the past, and with two fits in
hindsight: a constant offset, and a matrix with a constant.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.live_robots import equal_parts, node_settings, with_readings
from bench.report import Goal, Table
from inertial_estimation.arrays import Array
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

FOLDER = Path(__file__).resolve().parents[1]
ON_ONE_FOOT = TimeRange(13.07, 65.64)
"""While the left sole is flat on the ground and at rest, after the first FT message [s]."""
FREE = ('r_leg_ft', 'r_foot_ft')
"""FT sensors beyond which nothing touches meanwhile."""
WAYS = ('URDF', 'past offset', 'identified', 'offset in hindsight', 'matrix in hindsight')
CHOICES = ((None, None), (0.2, 1), (1.0, 1), (3.0, 4))
"""Error of the URDF and least number of determined combinations of an update; None: the node's."""


class Update(NamedTuple):
    """Parameters and offsets after a refit."""

    stamp_ns: int
    parameters: Array
    """Shape (n_links, 10)."""
    offsets: Array
    """Of the sensors of `FREE`, shape (2, 6) [N, Nm]; NaN where not identified."""
    refitted: tuple[str, ...]
    least_margin: float


def measure(data: Path) -> tuple[list[Table], list[Goal]]:
    """Predict, with the settings of the node and with others."""
    config = FOLDER / 'config' / 'icub_yoga_left.yaml'
    settings = EstimatorSettings.from_yaml(config)
    urdf = (data / 'models' / 'icub_v2_5.urdf').read_text(encoding='utf-8')
    robot = build_robot(settings, urdf)
    samples = (
        open_log(data / 'icub_yoga_left' / 'bag', robot, settings).within(ON_ONE_FOOT).samples
    )
    rows: list[tuple[object, ...]] = []
    goals: list[Goal] = []
    table: list[tuple[object, ...]] = []
    for error, least in CHOICES:
        updates = _identify(robot, samples, error, least)
        sizes = _rms(robot, samples, updates)
        accepted = [one for one in updates if one.refitted]
        names = ', '.join(sorted({name for one in accepted for name in one.refitted})) or '-'
        margin = min(consistency_margin(one.parameters).min() for one in updates)
        worst = float((sizes[2] / sizes[1]).max())
        count = f'{len(accepted)} of {len(updates)}'
        table.append((error or 'node', least or 'node', count, names, margin, worst))
        if error is None:
            groups = [(name, of) for name in FREE for of in ('force [N]', 'moment [Nm]')]
            flat = sizes.reshape(len(WAYS), -1)
            rows = [(*group, *flat[:, k].tolist()) for k, group in enumerate(groups)]
            for limit, over in ((1.05, 1), (0.1, 0)):
                goals += [
                    Goal(
                        f'{" ".join(group)}: error / {WAYS[over]}',
                        flat[2, k] / flat[over, k],
                        limit,
                    )
                    for k, group in enumerate(groups)
                ]
        goals.append(Goal('smallest pseudo-inertia eigenvalue', margin, 0.0, at_least=True))
    columns = ('URDF error', 'least', 'accepted', 'submodels', 'eigenvalue', 'error / past')
    return [
        Table('Readings of the next second, rms error', ('sensor', 'of', *WAYS), rows),
        Table('Updates', columns, table),
    ], goals


def _identify(
    robot: Robot, samples: SampleBatch, error: float | None, least: int | None
) -> list[Update]:
    """Identify second by second, as the node does."""
    settings = node_settings(robot)
    if error is not None:
        settings = replace(settings, prior_error=error, excited=least)
    identifier, found = RecursiveIdentifier(robot, settings), []
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
        refit = identifier.refit()
        if refit is not None:
            fits = identifier.found
            fitted = np.concatenate([
                one.block.unknowns.split(fits[one.name])[0]
                for one in identifier.memories
                if one.name in fits
            ])  # fmt: skip
            offsets = [refit.offsets.get(name, np.full(6, np.nan)) for name in FREE]
            margin = float(consistency_margin(fitted).min())
            found.append(
                Update(refit.stamp_ns, refit.parameters, np.array(offsets), refit.refitted, margin)
            )
    return found


def _rms(robot: Robot, samples: SampleBatch, updates: list[Update]) -> Array:
    """Return rms errors of force and moment, shape (n_ways, 2, 2) [N, Nm]."""
    known = [one for one in updates if np.isfinite(one.offsets).all()]
    sensors = [[one.name for one in robot.ft_sensors].index(name) for name in FREE]
    readings = samples.ft_readings[:, sensors]

    def unexplained(part: SampleBatch, parameters: Array) -> Array:
        expected = with_readings(robot, part, parameters).ft_readings
        return part.ft_readings[:, sensors] - expected[:, sensors]

    by_urdf = unexplained(samples, robot.parameters)
    edges = np.searchsorted(samples.stamp_ns, [one.stamp_ns for one in known], side='right')
    past, found = [], []
    for one, first, last in zip(known, edges, [*edges[1:], len(samples)], strict=True):
        past.append(by_urdf[first:last] - np.nanmean(by_urdf[:first], axis=0))
        found.append(unexplained(samples.take(slice(first, last)), one.parameters) - one.offsets)
    late = by_urdf[edges[0] :]
    used = np.isfinite(late).all(axis=(1, 2))
    late, read = late[used], readings[edges[0] :][used]
    with_matrix = np.empty_like(late)
    for k in range(len(FREE)):
        columns = np.hstack([read[:, k], np.ones((len(late), 1))])
        best = np.linalg.lstsq(columns, late[:, k], rcond=None)[0]
        with_matrix[:, k] = late[:, k] - columns @ best
    errors = (
        late,
        np.concatenate(past)[used],
        np.concatenate(found)[used],
        late - late.mean(axis=0),
        with_matrix,
    )
    squares = [error.reshape(len(error), -1, 2, 3) ** 2 for error in errors]
    return np.sqrt([square.mean(axis=(0, 3)) for square in squares])
