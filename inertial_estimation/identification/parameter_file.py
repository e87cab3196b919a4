# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as text, and the strict reading of one.

The text says its version, whose links it is of, and a sum over its content, so that one that was
cut off, altered or made for another robot is refused as a whole.
"""

from __future__ import annotations

import json
from hashlib import sha256
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.usable_parameters import check_usable
from inertial_estimation.nested import from_json

Array = NDArray[np.float64]

KIND = 'inertial parameters'
VERSION = 1
COLUMNS = ' '.join(INERTIAL)


def to_text(robot: Robot, parameters: Array) -> str:
    """
    Return parameters as text that keeps every digit.

    parameters (n_links, 10) [kg, kg m, kg m^2].
    """
    check_usable(robot.link_names, parameters)
    rows = np.asarray(parameters, dtype=np.float64).tolist()
    links = dict(zip(robot.link_names, rows, strict=True))
    content = {'robot': robot.name, 'columns': COLUMNS, 'links': links}
    head = {'kind': KIND, 'version': VERSION, 'sha256': _sum(content)}
    return json.dumps(head | {'content': content}, indent=1) + '\n'


def from_text(robot: Robot, text: str) -> Array:
    """
    Return the parameters of a text, if they can be used as they are.

    Returns (n_links, 10).
    """
    content = _content(text)
    links = content.get('links')
    if content.get('columns') != COLUMNS or not isinstance(links, dict):
        raise ModelError(f"it does not hold links with '{COLUMNS}': save a set anew")
    if odd := sorted(set(links) ^ set(robot.link_names)):
        raise ModelError(
            f'it is of robot {shown(content.get("robot"))} with other links (first: '
            f'{shown(odd[0])}): use the same robot description, joints and FT sensors, or save a '
            'set anew'
        )
    try:
        parameters = np.array([links[name] for name in robot.link_names], dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        parameters = np.empty(0)
    if parameters.shape != (len(links), len(INERTIAL)):
        raise ModelError(
            f'it does not hold {len(INERTIAL)} numbers for each link: save a set anew'
        )
    check_usable(robot.link_names, parameters)
    return parameters


def recognises(robot: Robot, text: str) -> bool:
    """Tell whether a text holds parameters of the robot, be they of other links or damaged."""
    try:
        found = from_json(text)
        return bool(found['kind'] == KIND and found['content']['robot'] == robot.name)
    except (ValueError, KeyError, TypeError):
        return False


def _content(text: str) -> dict[str, Any]:
    """Return the content of a text that is whole."""
    try:
        found = from_json(text)
    except ValueError as error:
        raise ModelError(f'it is no whole JSON ({error}): save a set anew') from None
    if not isinstance(found, dict) or found.get('kind') != KIND:
        raise ModelError(f"it is no file of '{KIND}': name one that was saved")
    if found.get('version') != VERSION:
        raise ModelError(
            f'it is of version {shown(found.get("version"))}, expected {VERSION}: save a set anew'
        )
    content = found.get('content')
    if not isinstance(content, dict) or found.get('sha256') != _sum(content):
        raise ModelError('its content was altered since it was saved: save a set anew')
    return content


def _sum(content: dict[str, Any]) -> str:
    """Return the sum over a content, however it is laid out in the file."""
    return sha256(json.dumps(content).encode()).hexdigest()
