# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""In words: where the motions of joints, and of links that carry IMUs, come from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from inertial_estimation.estimation.link_motion import MotionPlan
from inertial_estimation.estimation.sensor_arrays import ImuLink, Measured, array_deviation
from inertial_estimation.model.robot import Robot

FEW = 3
"""So many joints are named; of more only the number."""


class BodyReport(NamedTuple):
    """Where the motion of one link comes from."""

    link: str
    accelerometers: tuple[str, ...]
    """IMUs that deliver its acceleration."""
    gyroscopes: tuple[str, ...]
    """IMUs that deliver its angular velocity."""
    angular_velocity: str
    angular_acceleration: str
    acceleration: str

    @property
    def text(self) -> str:
        """All of it in one line."""
        return (
            f'angular velocity: {self.angular_velocity}; angular acceleration: '
            f'{self.angular_acceleration}; acceleration: {self.acceleration}'
        )


def report_bodies(
    robot: Robot, plan: MotionPlan, source: str = 'filter'
) -> tuple[BodyReport, ...]:
    """Say where the motions of links come from."""
    return tuple(_report(robot, plan, source, b) for b in range(len(plan.layout.imu_links)))


def joint_motion_text(velocity_source: str, acceleration_source: str) -> str:
    """Say where the motion of the joints that are reported comes from."""
    filtered = velocity_source == 'filter'
    velocity = 'derivative of the positions' if filtered else 'as the messages say'
    neglected = acceleration_source == 'zero'
    acceleration = 'neglected' if neglected else 'second derivative of the positions'
    return f'velocity: {velocity}; acceleration: {acceleration}'


def _report(robot: Robot, plan: MotionPlan, source: str, b: int) -> BodyReport:
    """Say where the motion of one link comes from."""
    bodies = plan.layout.imu_links
    body, origins = bodies[b], plan.layout.origins[b]

    def told(origin: Measured, own: str) -> str:
        return own if origin.source == b else _through(robot, bodies[origin.source], origin)

    names = tuple(imu.name for imu in robot.imus)
    return BodyReport(
        robot.link_names[body.link],
        tuple(names[k] for k in body.accelerometers),
        tuple(names[k] for k in body.gyroscopes),
        told(origins.angular_velocity, _count(body.gyroscopes, 'gyroscope')),
        told(origins.angular_acceleration, _own_spin(robot, body, source)),
        told(origins.acceleration, _count(body.accelerometers, 'accelerometer')),
    )


def _own_spin(robot: Robot, body: ImuLink, source: str) -> str:
    """Say how an angular acceleration is measured on a link."""
    if source == 'array':
        if not body.is_array:
            return ''
        deviation = array_deviation(body, robot)
        noise = np.mean([robot.imus[k].accelerometer_noise for k in body.accelerometers])
        said = f'array of {_count(body.accelerometers, "accelerometer")}'
        return f'{said}, {deviation / noise:.2g} rad/s^2 per m/s^2 of noise'
    if source == 'zero':
        return 'neglected'
    return f'derivative of {_count(body.gyroscopes, "gyroscope")}'


def _count(rows: Sequence[int], kind: str) -> str:
    """Return a number of sensors."""
    return f'{len(rows)} {kind}{"s" if len(rows) > 1 else ""}'


def _through(robot: Robot, body: ImuLink, origin: Measured) -> str:
    """Say from where and through which joints a motion comes."""
    joints = [robot.joint_names[j] for j in sorted(origin.way)]
    said = ', '.join(joints) if len(joints) <= FEW else f'{len(joints)} joints'
    return f'{robot.link_names[body.link]}, through {said or "no joint"}'
