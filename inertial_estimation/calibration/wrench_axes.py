# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whose axes calibrated wrenches are in, and what must not be mixed [T Remark 5.1].

A matrix that is found with an accelerometer makes wrenches in the axes of that accelerometer if
nobody tells how it is turned against the sensor. As forces and moments they are right; but a robot
description places the sensor's own axes, and an estimator would turn them wrongly without a sign.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from inertial_estimation.errors import ConfigError, ModelError

SENSOR, ACCELEROMETER = 'sensor', 'accelerometer'
KNOWN = (SENSOR, ACCELEROMETER)


def require_known(axes: str) -> None:
    """Raise unless axes are of the sensor or of an accelerometer."""
    if axes not in KNOWN:
        raise ModelError(f"'axes' is {axes!r}, expected {' or '.join(KNOWN)}")


def require_sensor_axes(name: str, axes: str) -> None:
    """Raise unless wrenches are in the axes that a robot description places."""
    if axes != SENSOR:
        raise ConfigError(
            f"wrenches of '{name}' are in the axes of an {axes}, and would be taken for those of "
            'the sensor: calibrate it anew with the rotation between the two, or turn matrix and '
            f"offset by it and take 'axes: {axes}' out"
        )


def require_unmixed(path: Path, held: Mapping[str, str], added: Mapping[str, str]) -> None:
    """Raise if a file that robots can use would become one that they refuse, or the opposite."""
    turned = [name for name, axes in added.items() if axes != SENSOR]
    usable = [name for name, axes in held.items() if axes == SENSOR]
    if turned and usable:
        raise ConfigError(
            f'{path} holds wrenches of {", ".join(usable)} in the axes of the sensor, and robots '
            f'refuse a file with those of {", ".join(turned)} in the axes of an accelerometer: '
            "name another file to write, or give 'rotation', how the two are turned",
            about=('rotation',),
        )
    left = [name for name, axes in held.items() if axes != SENSOR and name not in added]
    if left and not turned:
        raise ConfigError(
            f'{path} holds wrenches of {", ".join(left)} in the axes of an accelerometer, and '
            'robots refuse such a file: name another one to write'
        )
