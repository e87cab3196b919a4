# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as one message, and the strict reading of one.

How sure they are is a message of its own, which says of which parameters it is.
"""

from array import array

import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import Float64MultiArray, MultiArrayDimension

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.model_in_use import fingerprint
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.usable_parameters import check_usable
from inertial_estimation.sample import Array

TOPIC = 'inertial_parameters'
UNCERTAINTY_TOPIC = 'inertial_parameters_uncertainty'
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
PARAMETERS = ' '.join(INERTIAL)
"""Label of the columns."""
DEVIATIONS = 'deviations of '
"""Begins the label of the columns of a root of a covariance; `fingerprint` follows."""


def to_message(robot: Robot, parameters: Array) -> Float64MultiArray:
    """
    Return parameters as a message.

    Parameters
    ----------
    robot : Robot
        Names of the links.
    parameters : ndarray, shape (n_links, 10)
        About each link's origin in its axes, as in `model.inertia` [kg, kg m, kg m^2].

    Returns
    -------
    Float64MultiArray
        Rows for links, whose names stand in the label of the first dimension, one blank between.

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

    Parameters
    ----------
    robot : Robot
        Whose links they must be of, in its order.
    message : Float64MultiArray
        As `to_message` makes one.

    Returns
    -------
    ndarray, shape (n_links, 10)

    Raises
    ------
    ModelError
        If names, shape or a number do not fit, or a link is no body that could exist.

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

    Parameters
    ----------
    robot : Robot
        Names of the links.
    roots : ndarray, shape (n_links, 10, r)
        As for `Uncertainty.set_parameter_roots`, about each link's origin in its axes.
    parameters : ndarray, shape (n_links, 10)
        Those that it is said of, to the bit.

    Returns
    -------
    Float64MultiArray
        As from `to_message`, with r numbers in place of each parameter.

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

    Parameters
    ----------
    robot : Robot
        Whose links they must be of, in its order.
    message : Float64MultiArray
        As `roots_to_message` makes one.

    Returns
    -------
    parameters : str
        Their `fingerprint`.
    roots : ndarray, shape (n_links, 10, r)

    Raises
    ------
    ModelError
        If names or shape do not fit, or a number is not finite.

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


def _check_names(robot: Robot, label: str) -> None:
    """Raise unless a label names the links of a robot in its order."""
    names = label.split(' ')
    if tuple(names) != robot.link_names:
        wrong = next((a for a, b in zip(names, robot.link_names) if a != b), 'too few names')
        raise ModelError(
            f"they are of other links, or in another order (first: '{wrong}'): use the same robot "
            'description, joints and FT sensors on both sides'
        )
