# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as one message, and the strict reading of one.

A root of their covariance, and the offsets of FT sensors that go with them, are messages of their
own, which name the parameters by their fingerprint.
"""

from array import array
from collections.abc import Sequence

import numpy as np
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import check_usable
from inertial_estimation.model.parameter_update import COLUMNS, ParameterUpdate, urdf_fingerprint
from inertial_estimation.model.robot import Robot

TOPIC = 'inertial_parameters'
UNCERTAINTY_TOPIC = 'inertial_parameters_uncertainty'
OFFSETS_TOPIC = 'inertial_parameters_ft_offsets'
OF = ' of '
"""Ends the label of the columns of an update; the fingerprint of the URDF follows."""
DEVIATIONS = 'deviations of '
"""Begins the label of the columns of a root of a covariance; a fingerprint follows."""
WRENCH = 'force_x force_y force_z moment_x moment_y moment_z'
"""Label of the columns of offsets."""
BESIDE, ON = 'beside', 'on'
"""In the label of the last dimension of offsets, each with a fingerprint after it."""


def to_messages(robot: Robot, update: ParameterUpdate) -> dict[str, Float64MultiArray]:
    """Return the messages of an update by topic, the parameters after what belongs to them."""
    links, of = ' '.join(robot.link_names), update.fingerprint
    sensors = ' '.join(sensor.name for sensor in robot.ft_sensors)
    found = {}
    if update.roots is not None:
        label = DEVIATIONS + of
        found[UNCERTAINTY_TOPIC] = labelled_array(update.roots, links, COLUMNS, label)
    if update.offsets is not None:
        label, offsets = f'{BESIDE} {of} {ON} {update.calibration}', update.offsets[:, :, None]
        found[OFFSETS_TOPIC] = labelled_array(offsets, sensors, WRENCH, label)
    columns = f'{COLUMNS}{OF}{urdf_fingerprint(robot.urdf)}'
    return found | {TOPIC: labelled_array(update.parameters, links, columns)}


def from_message(robot: Robot, message: Float64MultiArray) -> Array:
    """Return the parameters of a message, (n_links, 10), if they can be used as they are."""
    parameters, label = _read(message, 'links', robot.link_names, COLUMNS, 2)
    if label.partition(OF)[2] != urdf_fingerprint(robot.urdf):
        raise ModelError('parameters are for another URDF')
    check_usable(robot.link_names, parameters)
    return parameters


def roots_from_message(robot: Robot, message: Float64MultiArray) -> tuple[str, Array]:
    """Return the fingerprint of parameters, and roots (n_links, 10, r) of their covariance."""
    roots, label = _read(message, 'links', robot.link_names, COLUMNS, 3)
    if not label.startswith(DEVIATIONS):
        raise ModelError(f"label '{label[:80]}' does not begin with '{DEVIATIONS}'")
    return label.removeprefix(DEVIATIONS), roots


def offsets_from_message(robot: Robot, message: Float64MultiArray) -> tuple[str, str, Array]:
    """Return fingerprints of parameters and calibration, and offsets (n_fts, 6) [N, Nm]."""
    names = [sensor.name for sensor in robot.ft_sensors]
    offsets, label = _read(message, 'FT sensors', names, WRENCH, 3)
    words = label.split(' ')
    if len(words) != 4 or words[::2] != [BESIDE, ON] or offsets.shape[2] != 1:
        raise ModelError(f"label '{label[:80]}' is not '{BESIDE} <...> {ON} <...>'")
    return words[1], words[3], offsets[:, :, 0]


def labelled_array(numbers: Array, *labels: str) -> Float64MultiArray:
    """Return an array with a label for each of its dimensions."""
    message = Float64MultiArray()
    strides = [int(np.prod(numbers.shape[k:])) for k in range(numbers.ndim)]
    message.layout.dim = [
        MultiArrayDimension(label=label, size=size, stride=stride)
        for label, size, stride in zip(labels, numbers.shape, strides, strict=True)
    ]
    # A list would take a hundred times as long: a humanoid has 20 000 numbers.
    message.data = array('d', np.ascontiguousarray(numbers, dtype=float).tobytes())
    return message


def _read(
    message: Float64MultiArray, what: str, names: Sequence[str], columns: str, n_dims: int
) -> tuple[Array, str]:
    """Return an array whose rows are named and whose columns are as expected, and a last label."""
    dims, is_offset = message.layout.dim, message.layout.data_offset
    if len(dims) != n_dims or dims[1].label.partition(OF)[0] != columns or is_offset:
        raise ModelError(f"layout is not that of {what} and '{columns}'")
    width = len(columns.split(' '))
    shape = (len(names), width, *(dim.size for dim in dims[2:]))
    if tuple(dim.size for dim in dims) != shape or len(message.data) != np.prod(shape):
        raise ModelError(f'{len(message.data)} numbers for {len(names)} {what}, expected {shape}')
    given = dims[0].label.split(' ') if dims[0].label else []
    if given != list(names):
        wrong = next((a for a, b in zip(given, names) if a != b), 'too few names')
        raise ModelError(f"other {what}, or another order (first: '{wrong[:80]}')")
    numbers = np.array(message.data, dtype=float).reshape(shape)
    if not np.isfinite(numbers).all():
        row = np.flatnonzero(~np.isfinite(numbers.reshape(len(names), -1)).all(axis=1))[0]
        raise ModelError(f"numbers of '{names[row]}' are not finite")
    return numbers, dims[-1].label
