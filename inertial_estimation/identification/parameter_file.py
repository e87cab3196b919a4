# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as text.

A text states kind, version and a checksum, so that a truncated or altered one is refused.
"""

from __future__ import annotations

import json
from hashlib import sha256
from reprlib import repr as shown
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.unknowns import INERTIAL
from inertial_estimation.model.inertia import check_usable
from inertial_estimation.model.robot import Robot

KIND, VERSION = 'inertial parameters', 1
COLUMNS = ' '.join(INERTIAL)


def to_text(robot: Robot, parameters: Array) -> str:
    """Return parameters, (n_links, 10) [kg, kg m, kg m^2], as text that keeps every digit."""
    check_usable(robot.link_names, parameters)
    rows = np.asarray(parameters, dtype=np.float64).tolist()
    links = dict(zip(robot.link_names, rows, strict=True))
    return sealed(KIND, VERSION, {'robot': robot.name, 'columns': COLUMNS, 'links': links})


def from_text(robot: Robot, text: str) -> Array:
    """Return the parameters of a text, if an estimator can use them, (n_links, 10)."""
    content = unsealed(KIND, VERSION, text)
    links = content.get('links')
    if content.get('columns') != COLUMNS or not isinstance(links, dict):
        raise ModelError(f"no links with '{COLUMNS}'")
    if odd := sorted(set(links) ^ set(robot.link_names)):
        raise ModelError(f'links of another robot, first: {shown(odd[0])}')
    try:
        parameters = np.array([links[name] for name in robot.link_names], dtype=np.float64)
        parameters = parameters.reshape(len(links), len(INERTIAL))
    except (TypeError, ValueError, OverflowError) as error:
        raise ModelError(f'not {len(INERTIAL)} numbers for each link') from error
    check_usable(robot.link_names, parameters)
    return parameters


def recognises(robot: Robot, text: str) -> bool:
    """Recognise parameters of the robot, even of other links or damaged ones."""
    try:
        found = json.loads(text)
        return bool(found['kind'] == KIND and found['content']['robot'] == robot.name)
    except (ValueError, RecursionError, KeyError, TypeError):
        return False


def sealed(kind: str, version: int, content: dict[str, Any]) -> str:
    """Return content as text with kind, version and checksum."""
    head = {'kind': kind, 'version': version, 'sha256': checksum(json.dumps(content))}
    return json.dumps(head | {'content': content}) + '\n'


def unsealed(kind: str, version: int, text: str) -> dict[str, Any]:
    """Return the content of a text, if it is complete and unaltered."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f'not JSON: {error}') from None
    if not isinstance(found, dict) or found.get('kind') != kind:
        raise ModelError(f"no file of '{kind}'")
    if found.get('version') != version:
        raise ModelError(f'version {shown(found.get("version"))}, expected {version}')
    content = found.get('content')
    if not isinstance(content, dict) or found.get('sha256') != checksum(json.dumps(content)):
        raise ModelError('truncated or altered: the checksum differs')
    return content


def checksum(text: str) -> str:
    """Return the SHA-256 sum of a text."""
    return sha256(text.encode()).hexdigest()
