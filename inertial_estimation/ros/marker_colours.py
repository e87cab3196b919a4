# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the colours of markers say; docs/contacts.md has the same as a table."""

from std_msgs.msg import ColorRGBA

from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.sample import SensorState

FORCE = ColorRGBA(r=0.9, g=0.2, b=0.2, a=1.0)
MOMENT = ColorRGBA(r=0.2, g=0.4, b=0.9, a=1.0)
PALE_FORCE = ColorRGBA(r=0.9, g=0.6, b=0.6, a=1.0)
PALE_MOMENT = ColorRGBA(r=0.6, g=0.7, b=0.9, a=1.0)
GLASS_FORCE = ColorRGBA(r=0.9, g=0.2, b=0.2, a=0.3)
GLASS_MOMENT = ColorRGBA(r=0.2, g=0.4, b=0.9, a=0.3)
DEVIATION = ColorRGBA(r=0.9, g=0.9, b=0.9, a=0.4)

GREEN = ColorRGBA(r=0.2, g=0.8, b=0.2, a=0.6)
YELLOW = ColorRGBA(r=0.9, g=0.8, b=0.1, a=0.8)
ORANGE = ColorRGBA(r=1.0, g=0.5, b=0.0, a=0.8)
RED = ColorRGBA(r=0.9, g=0.1, b=0.1, a=0.9)
GREY = ColorRGBA(r=0.5, g=0.5, b=0.5, a=0.9)

USED_BODY = ColorRGBA(r=0.1, g=0.7, b=0.8, a=0.5)
DESCRIBED_BODY = ColorRGBA(r=0.6, g=0.6, b=0.6, a=0.3)

IN_PART = (SensorState.PARTIAL, SensorState.WARMING)


def health_colour(quality: int) -> ColorRGBA:
    """Return the colour of a submodel."""
    if quality & Quality.MISSING:
        return RED
    if quality & Quality.MERGED:
        return ORANGE
    return YELLOW if quality else GREEN


def wrench_colours(quality: int) -> tuple[ColorRGBA, ColorRGBA]:
    """Return the colours of force and moment of a contact."""
    if quality & Quality.UNDETERMINED:
        return GLASS_FORCE, GLASS_MOMENT
    return (PALE_FORCE, PALE_MOMENT) if quality else (FORCE, MOMENT)


def sensor_colour(state: SensorState) -> ColorRGBA:
    """Return the colour of a sensor that is not used as a whole."""
    return YELLOW if state in IN_PART else RED
