# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Markers of the external wrenches: an arrow for each force and moment, and how sure it is."""

from typing import NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from visualization_msgs.msg import Marker

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.ros.conversions import NANOSECONDS
from inertial_estimation.ros.marker_colours import DEVIATION, wrench_colours
from inertial_estimation.ros.marker_shapes import arrow, place, point, size, solid
from inertial_estimation.uncertainty.deviations import Deviations

FORCE_SCALE, MOMENT_SCALE = 0.004, 0.04
"""Length of the arrows [m/N, m/Nm]."""
SHORTEST = 0.005
"""Shorter arrows are left out [m]."""
SIGMAS = 2.0
"""Standard deviations from the tip of a force to the surface of its ellipsoid."""
THINNEST = 0.001
"""Least diameter of an ellipsoid [m]."""
LIFETIME_NS = NANOSECONDS // 2
LIFETIME = Duration(nanosec=LIFETIME_NS)


class Shapes(NamedTuple):
    """The markers of one contact."""

    force: Marker
    moment: Marker
    deviation: Marker


class WrenchMarkers:
    """The markers of contacts, laid out once and patched."""

    def __init__(self) -> None:
        self._shapes: list[Shapes] = []

    def of(self, estimate: WrenchEstimate, deviations: Deviations | None) -> list[Marker]:
        """Return what there is to see of the contacts of an estimate."""
        for k in range(len(self._shapes), len(estimate.contacts)):
            self._shapes.append(_shapes(k))
        sure = force_deviations(estimate, deviations)
        markers: list[Marker] = []
        rows = zip(
            estimate.contacts,
            estimate.wrenches,
            estimate.contact_quality.tolist(),
            sure,
            self._shapes,
        )
        for contact, wrench, quality, sigma, shapes in rows:
            start, force, moment = arrow_lengths(contact, wrench)
            colours = wrench_colours(quality)
            for marker, length, colour in zip(shapes, (force, moment), colours):
                # Of NaN there is nothing to see either.
                if np.linalg.norm(length) >= SHORTEST:
                    marker.header.frame_id, marker.color = contact.frame, colour
                    point(marker, (start.tolist(), (start + length).tolist()))
                    markers.append(marker)
            if (axes := ellipsoid(sigma)) is not None:
                tip = (start + force).tolist()
                markers.append(size(place(shapes.deviation, contact.frame, tip), *axes))
        return markers


def arrow_lengths(
    contact: Contact, wrench: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Return where the arrows of a wrench begin, and how far they reach.

    wrench (6,) [N, Nm]; returns start, force, moment (3,) [m].
    """
    start, force = np.array(contact.point), wrench[:3]
    moment = wrench[3:] - np.cross(start, force)
    return start, force * FORCE_SCALE, moment * MOMENT_SCALE


def ellipsoid(sigma: np.ndarray) -> list[float] | None:
    """
    Return the diameters of what surrounds the tip of a force.

    sigma (3,) [N].
    """
    if not np.isfinite(sigma).all() or not sigma.any():
        return None
    # A force of known direction errs along it only, and rviz draws nothing that is flat.
    return np.maximum(2.0 * SIGMAS * FORCE_SCALE * sigma, THINNEST).tolist()


def force_deviations(estimate: WrenchEstimate, deviations: Deviations | None) -> np.ndarray:
    """
    Return how sure the forces of an estimate are, as far as that is known.

    Returns (n_contacts, 3) [N].
    """
    unknown = np.full((len(estimate.contacts), 3), np.nan)
    if deviations is None or not 0 <= estimate.stamp_ns - deviations.stamp_ns <= LIFETIME_NS:
        return unknown
    same = _kinds(deviations.contacts) == _kinds(estimate.contacts)
    return deviations.wrenches[:, :3] if same else unknown


def _kinds(contacts: tuple[Contact, ...]) -> list[tuple[str, str]]:
    """Return what contacts are, wherever their points have moved."""
    return [(contact.name, contact.kind) for contact in contacts]


def _shapes(index: int) -> Shapes:
    """Return the markers of one contact."""
    deviation = solid('force_deviation', index, Marker.SPHERE, LIFETIME)
    deviation.color = DEVIATION
    return Shapes(arrow('force', index, LIFETIME), arrow('moment', index, LIFETIME), deviation)
