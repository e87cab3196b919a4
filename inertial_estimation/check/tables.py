# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All that there is to say of the parts of a robot, in tables."""

from __future__ import annotations

import numpy as np

from inertial_estimation.check.records import Action, Cell, Findings, Pose
from inertial_estimation.estimation.body_report import report_bodies
from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.model.motion_sources import assign_owners, serving_sources
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import Imu, LinkSensor


def find_all(robot: Robot, plan: MotionPlan | None, source: str) -> tuple[Findings, ...]:
    """Return what a robot consists of."""
    findings = [_ft_sensors(robot), _inertial_sensors(robot), _submodels(robot)]
    if plan is not None:
        findings += [_clusters(robot, plan), *_bodies(robot, plan, source)]
    return tuple(findings)


def _ft_sensors(robot: Robot) -> Findings:
    """Return sensor, joint, links, sign and pose."""
    rows = []
    for sensor in robot.ft_sensors:
        parent, child = robot.link_names[sensor.parent], robot.link_names[sensor.child]
        action = Action(child, parent) if sensor.direction > 0 else Action(parent, child)
        pose = Pose.of(sensor.child_H_sensor)
        rows.append((sensor.name, sensor.joint, parent, child, action, pose))
    columns = ('sensor', 'joint', 'parent link', 'child link', 'reads', 'pose in child link')
    return Findings('FT sensors', columns, tuple(rows))


def _inertial_sensors(robot: Robot) -> Findings:
    """Return place of every accelerometer, gyroscope and IMU."""
    kinds: tuple[tuple[str, tuple[LinkSensor | Imu, ...]], ...] = (
        ('accelerometer', robot.accelerometers),
        ('gyroscope', robot.gyroscopes),
        ('IMU', robot.imus),
    )
    rows = [
        (sensor.name, _kind(kind, sensor), robot.link_names[sensor.link], Pose.of(sensor.L_H_S))
        for kind, sensors in kinds
        for sensor in sensors
    ]
    columns = ('sensor', 'kind', 'on link', 'pose in link')
    return Findings('Inertial sensors', columns, tuple(rows))


def _kind(kind: str, sensor: LinkSensor | Imu) -> str:
    """Return the kind of a sensor; of an IMU that is not whole what it measures."""
    measures = getattr(sensor, 'measures', 'both')
    return kind if measures == 'both' else f'{kind}, {measures} only'


def _submodels(robot: Robot) -> Findings:
    """Return the submodels with their sensors, mass and links."""
    names = [sensor.name for sensor in robot.ft_sensors]
    rows = []
    for submodel in robot.submodels:
        links = list(submodel.links)
        rows.append(
            (
                submodel.name,
                names[submodel.root_sensor] if submodel.root_sensor >= 0 else None,
                tuple(names[k] for k in submodel.child_sensors),
                float(robot.parameters[links, 0].sum()),
                tuple(robot.link_names[k] for k in links),
            )
        )
    columns = ('submodel', 'sensor towards root', 'sensors beyond', 'mass [kg]', 'links')
    return Findings('Submodels', columns, tuple(rows))


def _clusters(robot: Robot, plan: MotionPlan) -> Findings:
    """Return which IMU serves which links."""
    columns = ('source', 'frame', 'on link', 'serves')
    beside = 'with the first one of its link'
    if not robot.imus and not robot.fixed_frame:
        return Findings('Clusters', columns, (), beside)
    serving, sources = serving_sources(robot, np.flatnonzero(plan.serving).tolist())
    owners = assign_owners(robot.links, sources)
    rows: list[tuple[Cell, ...]] = [
        (
            source.name,
            robot.imus[serving[s]].frame if len(serving) else robot.fixed_frame,
            robot.link_names[source.link],
            tuple(n for n, o in zip(robot.link_names, owners, strict=True) if o == s),
        )
        for s, source in enumerate(sources)
    ]
    if not robot.fixed_frame:
        rows += [
            (imu.name, imu.frame, robot.link_names[imu.link], ())
            for k, imu in enumerate(robot.imus)
            if k not in serving
        ]
    return Findings('Clusters', columns, tuple(rows), beside)


def _bodies(robot: Robot, plan: MotionPlan, source: str) -> list[Findings]:
    """Return where the motions of links with IMUs come from, if there are any."""
    rows: list[tuple[Cell, ...]] = [tuple(r) for r in report_bodies(robot, plan, source)]
    columns = (
        *('link', 'accelerometers', 'gyroscopes'),
        *('angular velocity from', 'angular acceleration from', 'acceleration from'),
    )
    return [Findings('Motion of links', columns, tuple(rows))] if rows else []
