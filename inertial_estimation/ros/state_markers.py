# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Markers of how the estimate came about: links, joints, sensors, and the momentum check."""

from collections.abc import Iterable, Sequence

import numpy as np
from builtin_interfaces.msg import Duration
from visualization_msgs.msg import Marker

from inertial_estimation.estimation.dependence import child_links
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.marker_colours import GREY, RED, health_colour, sensor_colour
from inertial_estimation.ros.marker_shapes import LETTERS, place, size, solid, text
from inertial_estimation.sample import Sample, SensorState

LIFETIME = Duration(sec=3)
BALL = 0.06
"""Diameter of the ball that stands for a link of 1 kg [m]."""
JOINT_BALL = 0.05
"""Diameter of the ball at a joint [m]."""
SENSOR_BOX = 0.04
"""Edge of the box at a sensor [m]."""
ABOVE_ROOT = 0.3
"""Height of the text of the momentum check over the root link's origin [m]."""


def health_balls(robot: Robot) -> list[list[Marker]]:
    """Return a ball at the centre of mass of each link, of no colour yet."""
    balls: list[list[Marker]] = [[] for _ in robot.submodels]
    for of_submodel, submodel in zip(balls, robot.submodels):
        for link in submodel.links:
            mass, first_moment = robot.parameters[link, 0], robot.parameters[link, 1:4]
            if mass <= 0.0:
                continue
            ball = solid('health', link, Marker.SPHERE, LIFETIME)
            place(ball, robot.links[link].name, (first_moment / mass).tolist())
            of_submodel.append(size(ball, *[float(BALL * np.cbrt(mass))] * 3))
    return balls


def health_markers(balls: list[list[Marker]], estimate: WrenchEstimate) -> list[Marker]:
    """Return the balls of links in the colours of their submodels."""
    for of_submodel, quality in zip(balls, estimate.submodel_quality.tolist()):
        colour = health_colour(quality)
        for ball in of_submodel:
            ball.color = colour
    return [ball for of_submodel in balls for ball in of_submodel]


def sensor_markers(robot: Robot, sample: Sample) -> list[Marker]:
    """Return a box with a text at each FT sensor and IMU that is not used as a whole."""
    places = [(ft.name, ft.child, ft.child_H_sensor) for ft in robot.ft_sensors]
    places += [(imu.name, imu.link, imu.L_H_S) for imu in robot.imus]
    states = [*_listed(sample.ft_states), *_listed(sample.imu_states)]
    markers = []
    for k, ((name, link, L_H_S), code) in enumerate(zip(places, states)):
        state = SensorState(code)
        if state == SensorState.FRESH:
            continue
        colour = sensor_colour(state)
        box = size(solid('sensors', 2 * k, Marker.CUBE, LIFETIME), *[SENSOR_BOX] * 3)
        box.color = colour
        label = text('sensors', 2 * k + 1, f'{name}: {state.name.lower()}', colour, LIFETIME)
        at = L_H_S[:3, 3]
        frame = robot.links[link].name
        markers += [place(box, frame, at.tolist()), place(label, frame, _above(at))]
    return markers


def uninformed_markers(robot: Robot, joints: Iterable[str]) -> list[Marker]:
    """Return a grey ball at each joint whose torque no FT sensor informs."""
    child = dict(zip(robot.joint_names, child_links(robot)))
    markers = []
    for joint in joints:
        link = child[joint]
        ball = size(solid('uninformed', link, Marker.SPHERE, LIFETIME), *[JOINT_BALL] * 3)
        ball.color = GREY
        markers.append(place(ball, robot.links[link].name, (0.0, 0.0, 0.0)))
    return markers


def momentum_markers(robot: Robot, warning: str) -> list[Marker]:
    """Return what the momentum check says, over the root link."""
    if not warning:
        return []
    label = text('momentum', 0, f'momentum: {warning}', RED, LIFETIME)
    return [place(label, robot.links[0].name, (0.0, 0.0, ABOVE_ROOT))]


def _listed(states: np.ndarray | None) -> Sequence[int]:
    """Return the states of sensors, none if nothing is reported."""
    return () if states is None else states.tolist()


def _above(position: np.ndarray) -> list[float]:
    """Return where a text over a box is."""
    x, y, z = position.tolist()
    return [x, y, z + SENSOR_BOX + LETTERS]
