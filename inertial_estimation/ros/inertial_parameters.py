# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as one message, and the strict reading of one.

How sure they are, and the offsets of FT sensors that go with them, are messages of their own,
which say of which parameters they are.
"""

from array import array
from collections.abc import Mapping, Sequence

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.model_update import calibration_fingerprint, fingerprint
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.usable_parameters import check_usable
from inertial_estimation.sample import Array

TOPIC = 'inertial_parameters'
UNCERTAINTY_TOPIC = 'inertial_parameters_uncertainty'
OFFSETS_TOPIC = 'inertial_parameters_ft_offsets'
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PARAMETERS = ' '.join(INERTIAL)
"""Label of the columns."""
DEVIATIONS = 'deviations of '
"""Begins the label of the columns of a root of a covariance; `fingerprint` follows."""
WRENCH = ' '.join(COMPONENTS)
"""Label of the columns of offsets."""
BESIDE, ON = 'beside', 'on'
"""In the label of the last dimension of offsets, each with a fingerprint after it."""


def to_message(robot: Robot, parameters: Array) -> Float64MultiArray:
    """
    Return parameters as a message.

    parameters (n_links, 10) [kg, kg m, kg m^2].
    """
    message = Float64MultiArray()
    n = len(robot.links)
    message.layout.dim = [
        MultiArrayDimension(label=' '.join(robot.link_names), size=n, stride=10 * n),
        MultiArrayDimension(label=PARAMETERS, size=10, stride=10),
    ]
    message.data = np.asarray(parameters, dtype=float).ravel().tolist()
    return message


def from_message(robot: Robot, message: Float64MultiArray) -> Array:
    """
    Return the parameters of a message that can be used as they are.

    Returns (n_links, 10).
    """
    n, dims = len(robot.links), message.layout.dim
    if len(dims) != 2 or dims[1].label != PARAMETERS or message.layout.data_offset:
        raise ModelError(
            f"the layout is not that of links and '{PARAMETERS}': send rows of ten parameters, "
            'with the names of the links in the label of the first dimension'
        )
    if len(message.data) != 10 * n or dims[0].size != n or dims[1].size != 10:
        sizes = ' x '.join(str(dim.size) for dim in dims)
        raise ModelError(
            f'{len(message.data)} numbers for {n} links, expected {10 * n}, in a layout of '
            f'{sizes}, expected {n} x 10'
        )
    _check_names(robot, dims[0].label)
    parameters = np.array(message.data, dtype=float).reshape(n, 10)
    check_usable(robot.link_names, parameters)
    return parameters


def roots_to_message(robot: Robot, roots: Array, parameters: Array) -> Float64MultiArray:
    """
    Return how sure parameters are as a message.

    roots (n_links, 10, r); parameters (n_links, 10).
    """
    n, _, r = roots.shape
    message = Float64MultiArray()
    message.layout.dim = [
        MultiArrayDimension(label=' '.join(robot.link_names), size=n, stride=10 * n * r),
        MultiArrayDimension(label=PARAMETERS, size=10, stride=10 * r),
        MultiArrayDimension(label=DEVIATIONS + fingerprint(parameters), size=r, stride=r),
    ]
    # A list would take a hundred times as long: a humanoid has 20 000 numbers.
    message.data = array('d', np.ascontiguousarray(roots, dtype=float).tobytes())
    return message


def roots_from_message(robot: Robot, message: Float64MultiArray) -> tuple[str, Array]:
    """
    Return of which parameters a message says how sure they are, and that.

    Returns roots (n_links, 10, r).
    """
    n, dims = len(robot.links), message.layout.dim
    labels = [dim.label for dim in dims[1:]]
    fits = len(labels) == 2 and labels[0] == PARAMETERS and labels[1].startswith(DEVIATIONS)
    if not fits or message.layout.data_offset:
        raise ModelError(
            f"the layout is not that of links, '{PARAMETERS}' and '{DEVIATIONS}<fingerprint>': "
            'send the rows of a root of the covariance, with the names of the links in the first '
            'label and the fingerprint of their parameters in the last'
        )
    r = dims[2].size
    if len(message.data) != 10 * n * r or dims[0].size != n or dims[1].size != 10:
        raise ModelError(
            f'{len(message.data)} numbers for {n} links and {r} columns, expected {10 * n * r}'
        )
    _check_names(robot, dims[0].label)
    roots = np.array(message.data, dtype=float).reshape(n, 10, r)
    if not np.isfinite(roots).all():
        link = np.flatnonzero(~np.isfinite(roots).all(axis=(1, 2)))[0]
        raise ModelError(f"'{robot.link_names[link]}' has deviations that are not finite")
    return labels[1].removeprefix(DEVIATIONS), roots


def offsets_to_message(
    robot: Robot, offsets: Mapping[str, Array], parameters: Array, calibration: FtCalibration
) -> Float64MultiArray:
    """
    Return the offsets that go with parameters as a message.

    offsets (6,) [force; torque]; parameters (n_links, 10).
    """
    names = [sensor.name for sensor in robot.ft_sensors]
    n, label = len(names), f'{BESIDE} {fingerprint(parameters)} {ON} '
    message = Float64MultiArray()
    message.layout.dim = [
        MultiArrayDimension(label=' '.join(names), size=n, stride=6 * n),
        MultiArrayDimension(label=WRENCH, size=6, stride=6),
        MultiArrayDimension(label=label + calibration_fingerprint(calibration), size=1, stride=1),
    ]
    rows = [offsets.get(name, np.full(6, np.nan)) for name in names]
    message.data = np.ravel(rows).tolist()
    return message


def offsets_from_message(robot: Robot, message: Float64MultiArray) -> tuple[str, str, Array]:
    """
    Return the offsets of a message, and what they belong to.

    Returns offsets (n_fts, 6) [N, Nm].
    """
    names, dims = [sensor.name for sensor in robot.ft_sensors], message.layout.dim
    words = dims[2].label.split(' ') if len(dims) == 3 else []
    fits = len(words) == 4 and words[::2] == [BESIDE, ON] and dims[1].label == WRENCH
    if not fits or message.layout.data_offset:
        raise ModelError(
            f"the layout is not that of FT sensors, '{WRENCH}' and '{BESIDE} <fingerprint> {ON} "
            "<fingerprint>': send a row for each FT sensor, with their names in the first label "
            'and the fingerprints of parameters and calibration in the last'
        )
    if len(message.data) != 6 * len(names):
        raise ModelError(
            f'{len(message.data)} numbers for {len(names)} FT sensors, expected {6 * len(names)}'
        )
    _check_order('FT sensors', dims[0].label, names)
    offsets = np.array(message.data, dtype=float).reshape(-1, 6)
    if np.isinf(offsets).any():
        sensor = np.flatnonzero(np.isinf(offsets).any(axis=1))[0]
        raise ModelError(f"'{names[sensor]}' has an offset that is infinite")
    return words[1], words[3], np.nan_to_num(offsets, nan=0.0)


def _check_names(robot: Robot, label: str) -> None:
    """Raise unless a label names the links of a robot in its order."""
    _check_order('links', label, robot.link_names)


def _check_order(what: str, label: str, expected: Sequence[str]) -> None:
    """Raise unless a label has names in their order."""
    names = label.split(' ') if label else []
    if names != list(expected):
        wrong = next((a for a, b in zip(names, expected) if a != b), 'too few names')
        raise ModelError(
            f"they are of other {what}, or in another order (first: '{wrong}'): use the same "
            'robot description, joints and FT sensors on both sides'
        )
