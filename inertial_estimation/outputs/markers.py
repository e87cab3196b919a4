# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Markers for rviz as records.

Each kind has a namespace, which rviz can switch off: ``force``, ``moment`` and ``force_deviation``
at the contacts, ``health`` of the links, ``sensors`` that are lost or used in part, ``uninformed``
joints, and the ``momentum`` check; on a topic of their own the inertial parameters of the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from pinocchio import Quaternion

from inertial_estimation.arrays import Array
from inertial_estimation.estimation.balance import child_links
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.model.inertia import principal_axes
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SensorState
from inertial_estimation.signals.cdr import Writer
from inertial_estimation.uncertainty.deviations import Deviations

MARKER_ARRAY = 'visualization_msgs/msg/MarkerArray'
ARROW, CUBE, SPHERE, TEXT = 0, 1, 2, 9
"""Types of visualization_msgs/Marker."""
DELETE_ALL = 3
"""Action of visualization_msgs/Marker."""
WRENCH_LIFETIME_NS = 500_000_000
STATE_LIFETIME_NS = 3_000_000_000
FORCE_SCALE, MOMENT_SCALE = 0.004, 0.04
"""Length of the arrows [m/N, m/Nm]."""
MIN_LENGTH = 0.005
"""Shorter arrows are left out [m]."""
SIGMAS = 2.0
"""Standard deviations from the tip of a force to the surface of its ellipsoid."""
MIN_DIAMETER = 0.001
"""Smallest diameter of an ellipsoid: rviz draws nothing flat [m]."""
LINK_BALL = 0.06
"""Diameter of the ball of a link of 1 kg [m]."""
JOINT_BALL, SENSOR_BOX, LETTERS = 0.05, 0.04, 0.05
"""Sizes of the markers of joints, sensors and texts [m]."""
MOMENTUM_HEIGHT = 0.3
"""Height of the text of the momentum check over the root link [m]."""
MIN_FLATNESS = 1e-9
"""Links whose least second moment is below this share of the largest have no inertia marker."""

Colour = tuple[float, float, float, float]
RED_ARROW, BLUE_ARROW = (0.9, 0.2, 0.2, 1.0), (0.2, 0.4, 0.9, 1.0)
PALE_ARROWS = (0.9, 0.6, 0.6, 1.0), (0.6, 0.7, 0.9, 1.0)
CLEAR_ARROWS = (0.9, 0.2, 0.2, 0.3), (0.2, 0.4, 0.9, 0.3)
DEVIATION = (0.9, 0.9, 0.9, 0.4)
GREEN, YELLOW, ORANGE = (0.2, 0.8, 0.2, 0.6), (0.9, 0.8, 0.1, 0.8), (1.0, 0.5, 0.0, 0.8)
RED, GREY = (0.9, 0.1, 0.1, 0.9), (0.5, 0.5, 0.5, 0.9)
INERTIA_IN_USE, INERTIA_OF_URDF = (0.1, 0.7, 0.8, 0.5), (0.6, 0.6, 0.6, 0.3)
# Cuboid [M 25] and ellipsoid of uniform density: the mean of x^2 is a^2 / 3, or a^2 / 5.
SOLIDS = (('cuboid', CUBE, 3.0), ('ellipsoid', SPHERE, 5.0))


@dataclass(frozen=True)
class Marker:
    """A visualization_msgs/Marker; lengths [m]."""

    namespace: str
    index: int
    shape: int
    frame: str
    lifetime_ns: int
    position: Sequence[float] = (0.0, 0.0, 0.0)
    orientation: Sequence[float] = (0.0, 0.0, 0.0, 1.0)
    """Quaternion x y z w."""
    scale: Sequence[float] = (0.015, 0.03, 0.0)
    """Edges or diameters; of an arrow, diameters of shaft and head."""
    colour: Colour = GREY
    points: Sequence[Sequence[float]] = ()
    text: str = ''
    frame_locked: bool = False
    action: int = 0


def wrench_markers(estimate: WrenchEstimate, deviations: Deviations | None) -> list[Marker]:
    """Return an arrow for each force and moment, and the ellipsoid of its deviation."""
    starts = np.array([contact.point for contact in estimate.contacts]).reshape(-1, 3)
    forces, moments = estimate.wrenches[:, :3], estimate.wrenches[:, 3:]
    tips = starts + FORCE_SCALE * forces
    arrows = starts + MOMENT_SCALE * (moments - np.cross(starts, forces))
    lengths = np.asarray(np.linalg.norm([tips - starts, arrows - starts], axis=2)).tolist()
    sigmas = _force_deviations(estimate, deviations)
    spread = np.flatnonzero(np.isfinite(sigmas).all(axis=1) & sigmas.any(axis=1)).tolist()
    sizes = np.maximum(2.0 * SIGMAS * FORCE_SCALE * sigmas, MIN_DIAMETER).tolist()
    begins, ends = starts.tolist(), (tips.tolist(), arrows.tolist())
    markers = []
    for k, contact in enumerate(estimate.contacts):
        quality = int(estimate.contact_quality[k])
        colours = PALE_ARROWS if quality else (RED_ARROW, BLUE_ARROW)
        if quality & Quality.UNDETERMINED:
            colours = CLEAR_ARROWS
        for kind, to, colour, length in zip(('force', 'moment'), ends, colours, lengths):
            # False for NaN as well.
            if length[k] >= MIN_LENGTH:
                markers.append(
                    Marker(
                        kind, k, ARROW, contact.frame, WRENCH_LIFETIME_NS, colour=colour,
                        points=(begins[k], to[k]),
                    )
                )  # fmt: skip
        if k in spread:
            markers.append(
                Marker(
                    'force_deviation', k, SPHERE, contact.frame, WRENCH_LIFETIME_NS,
                    ends[0][k], scale=sizes[k], colour=DEVIATION,
                )
            )  # fmt: skip
    return markers


def _force_deviations(estimate: WrenchEstimate, deviations: Deviations | None) -> Array:
    """Return deviations of forces, shape (n_contacts, 3) [N]; NaN: old, or of other contacts."""
    if deviations is not None:
        age_ns = int(estimate.stamp_ns) - int(deviations.stamp_ns)
        # The points of touches move.
        kinds = [[(c.name, c.kind) for c in one.contacts] for one in (estimate, deviations)]
        if 0 <= age_ns <= WRENCH_LIFETIME_NS and kinds[0] == kinds[1]:
            return deviations.wrenches[:, :3]
    return np.full((len(estimate.contacts), 3), np.nan)


def link_balls(robot: Robot) -> list[list[Marker]]:
    """Return a ball at the centre of mass of each link with mass, by submodel."""
    return [
        [
            Marker(
                'health', link, SPHERE, robot.links[link].name, STATE_LIFETIME_NS,
                (robot.parameters[link, 1:4] / mass).tolist(),
                scale=[float(LINK_BALL * np.cbrt(mass))] * 3,
            )
            for link in submodel.links if (mass := robot.parameters[link, 0]) > 0.0
        ]
        for submodel in robot.submodels
    ]  # fmt: skip


def health_markers(balls: list[list[Marker]], estimate: WrenchEstimate) -> list[Marker]:
    """Return the balls of the links in the colours of their submodels."""
    found = []
    for of_submodel, quality in zip(balls, estimate.submodel_quality.tolist()):
        colour = YELLOW if quality else GREEN
        if quality & Quality.MERGED:
            colour = ORANGE
        if quality & Quality.MISSING:
            colour = RED
        found += [replace(ball, colour=colour) for ball in of_submodel]
    return found


def sensor_markers(robot: Robot, sample: Sample) -> list[Marker]:
    """Return a box with a text at each FT sensor and IMU that is not used as a whole."""
    places = [(ft.name, ft.child, ft.child_H_sensor) for ft in robot.ft_sensors]
    places += [(imu.name, imu.link, imu.L_H_S) for imu in robot.imus]
    states: list[int] = []
    for found in (sample.ft_states, sample.imu_states):
        states += () if found is None else found.tolist()
    markers = []
    for k, ((name, link, L_H_S), code) in enumerate(zip(places, states)):
        state = SensorState(code)
        if state == SensorState.FRESH:
            continue
        colour = YELLOW if state in (SensorState.PARTIAL, SensorState.WARMING) else RED
        x, y, z = L_H_S[:3, 3].tolist()
        frame = robot.links[link].name
        markers += [
            Marker(
                'sensors', 2 * k, CUBE, frame, STATE_LIFETIME_NS, (x, y, z),
                scale=[SENSOR_BOX] * 3, colour=colour,
            ),
            _text(
                'sensors', 2 * k + 1, frame, (x, y, z + SENSOR_BOX + LETTERS),
                f'{name}: {state.name.lower()}', colour,
            ),
        ]  # fmt: skip
    return markers


def uninformed_markers(robot: Robot, joints: Iterable[str]) -> list[Marker]:
    """Return a grey ball at each joint whose torque no FT sensor informs."""
    child = dict(zip(robot.joint_names, child_links(robot).tolist()))
    return [
        Marker(
            'uninformed', child[joint], SPHERE, robot.links[child[joint]].name, STATE_LIFETIME_NS,
            scale=[JOINT_BALL] * 3,
        )
        for joint in joints
    ]  # fmt: skip


def momentum_markers(robot: Robot, warning: str) -> list[Marker]:
    """Return the finding of the momentum check over the root link."""
    at = (0.0, 0.0, MOMENTUM_HEIGHT)
    return [_text('momentum', 0, robot.links[0].name, at, warning, RED)] if warning else []


def inertia_markers(robot: Robot, parameters: Array) -> list[Marker]:
    """
    Return solids with the inertial parameters in use, and those of the URDF where they differ.

    parameters (n_links, 10).
    """
    changed = (parameters != robot.parameters).any(axis=1)
    of_urdf = np.where(changed[:, None], robot.parameters, 0.0)
    markers = [Marker('', 0, ARROW, '', 0, action=DELETE_ALL)]
    for solid, shape, factor in SOLIDS:
        for namespace, shown, colour in (
            (f'inertia_{solid}', parameters, INERTIA_IN_USE),
            (f'described_{solid}', of_urdf, INERTIA_OF_URDF),
        ):
            links = np.flatnonzero(np.isfinite(shown).all(axis=1) & (shown[:, 0] > 0.0))
            for k, mass, center, axes, moments in zip(
                links.tolist(), *principal_axes(shown[links])
            ):
                if moments.min() > MIN_FLATNESS * moments.max():
                    markers.append(
                        Marker(
                            namespace, k, shape, robot.link_names[k], 0, center.tolist(),
                            Quaternion(axes).coeffs().tolist(),
                            (2.0 * np.sqrt(factor * moments / mass)).tolist(),
                            colour, frame_locked=True,
                        )
                    )  # fmt: skip
    return markers


def _text(
    namespace: str, index: int, frame: str, at: Sequence[float], text: str, colour: Colour
) -> Marker:
    return Marker(
        namespace, index, TEXT, frame, STATE_LIFETIME_NS, at, scale=(0.0, 0.0, LETTERS),
        colour=colour, text=text,
    )  # fmt: skip


def marker_array(stamp_ns: int, markers: Sequence[Marker]) -> bytes:
    """Return the serialized message of some markers."""
    writer = Writer()
    writer.count(len(markers))
    for marker in markers:
        writer.time(stamp_ns)
        writer.text(marker.frame)
        writer.text(marker.namespace)
        writer.numbers('i', 4, marker.index, marker.shape, marker.action)
        writer.numbers('d', 8, *marker.position, *marker.orientation, *marker.scale)
        writer.numbers('f', 4, *marker.colour)
        writer.time(marker.lifetime_ns)
        writer.data.append(marker.frame_locked)
        writer.count(len(marker.points))
        for point in marker.points:
            writer.numbers('d', 8, *point)
        writer.data += BEHIND_POINTS
        writer.text(marker.text)
        writer.data += bytes(-len(writer.data) % 4) + BEHIND_TEXT
    return bytes(writer.data)


def _constants() -> tuple[bytes, bytes]:
    """Return the empty fields of every marker behind its points, and behind its text."""
    points, text = Writer(), Writer()
    # No colours of points, and no texture: resource, image, coordinates.
    points.count(0)
    points.text('')
    points.time(0)
    points.text('')
    points.text('')
    points.count(0)
    points.count(0)
    # No mesh: resource, file, materials.
    text.text('')
    text.text('')
    text.count(0)
    text.data.append(0)
    return bytes(points.data[4:]), bytes(text.data[4:])


BEHIND_POINTS, BEHIND_TEXT = _constants()
