# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The parts of a robot in few lines: counts, and names where they are few."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.check.records import Cell, Findings, Names, key
from inertial_estimation.estimation.body_report import report_bodies
from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.model.motion_sources import assign_owners, serving_sources
from inertial_estimation.model.robot import Robot


def find_main(
    robot: Robot, plan: MotionPlan | None, source: str, whole: Sequence[Findings]
) -> tuple[Findings, ...]:
    """Return what a robot mainly consists of."""
    by_title = {key(findings.title): findings for findings in whole}
    submodels = by_title['submodels']
    rows = tuple((*row[:-1], Names.of(row[-1], robot.link_names)) for row in submodels.rows)
    found = [
        by_title['ft_sensors'].only('sensor', 'joint', 'reads'),
        submodels._replace(rows=rows),
        _inertial_sensors(robot, plan),
    ]
    if plan is not None:
        found.append(_motions(robot, plan, source))
    return tuple(findings for findings in found if findings.rows)


def _inertial_sensors(robot: Robot, plan: MotionPlan | None) -> Findings:
    """Return how many sensors are on each link, and which links they serve."""
    names = [imu.name for imu in robot.imus]
    serves = {} if plan is None else _served(robot, plan)
    rows: list[tuple[Cell, ...]] = []
    for k, link in enumerate(robot.link_names):
        accs, gyros = (
            sum(sensor.link == k for sensor in sensors)
            for sensors in (robot.accelerometers, robot.gyroscopes)
        )
        imus = Names.of((imu.name for imu in robot.imus if imu.link == k), names)
        if accs or gyros or imus.names or k in serves:
            served = Names.of(serves.get(k, ()), robot.link_names)
            rows.append((link, accs, gyros, imus, served))
    columns = ('link', 'accelerometers', 'gyroscopes', 'IMUs in use', 'its motion serves')
    return Findings('Inertial sensors by link', columns, tuple(rows))


def _served(robot: Robot, plan: MotionPlan) -> dict[int, tuple[str, ...]]:
    """Return the links whose motion comes from a link."""
    _, sources = serving_sources(robot, np.flatnonzero(plan.serving).tolist())
    owners = assign_owners(robot.links, sources)
    return {
        source.link: tuple(n for n, o in zip(robot.link_names, owners, strict=True) if o == s)
        for s, source in enumerate(sources)
    }


def _motions(robot: Robot, plan: MotionPlan, source: str) -> Findings:
    """Return where motions come from; links of which the same is true share a row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for link, _, _, *origins in report_bodies(robot, plan, source):
        groups.setdefault(tuple(origins), []).append(link)
    columns = ('links', 'angular velocity from', 'angular acceleration from', 'acceleration from')
    rows: list[tuple[Cell, ...]] = [(tuple(links), *origins) for origins, links in groups.items()]
    return Findings('Motion of links with IMUs', columns, tuple(rows))
