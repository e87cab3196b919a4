# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as one update, with their covariance and FT offsets; as text.

A text states kind, version and a checksum, so that a truncated or altered one is refused.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import sha256
from reprlib import repr as shown
from typing import Any
from xml.etree.ElementTree import canonicalize

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import INERTIAL, check_masses, check_usable
from inertial_estimation.model.robot import Robot

KIND, VERSION = 'inertial parameters', 1
COLUMNS = ' '.join(INERTIAL)


def fingerprint(*numbers: Array) -> str:
    """Return a hash of numbers, to the bit."""
    digest = sha256()
    for array in numbers:
        digest.update(np.ascontiguousarray(array, dtype='<f8').tobytes())
    return digest.hexdigest()[:16]


@lru_cache(maxsize=4)
def urdf_fingerprint(urdf: str) -> str:
    """Return a hash of a URDF that does not depend on comments, blanks and order of attributes."""
    return sha256(canonicalize(urdf, strip_text=True).encode()).hexdigest()[:16]


def calibration_fingerprint(calibration: FtCalibration) -> str:
    """Return a hash of a calibration."""
    return fingerprint(
        calibration.matrices,
        calibration.offsets,
        calibration.temperature_coefficients,
        calibration.reference_temperatures,
    )


@dataclass(frozen=True, eq=False)
class ParameterUpdate:
    """
    Inertial parameters of all links, with their covariance and the offsets that belong to them.

    Parameters
    ----------
    parameters : ndarray, shape (n_links, 10)
        [kg, kg m, kg m^2].
    roots : ndarray, shape (n_links, 10, r), optional
        Root F of their covariance F F', of each submodel.
    offsets : ndarray, shape (n_fts, 6), optional
        FT offsets to be subtracted beside them, on top of the calibration [N, Nm].
    calibration : str
        Fingerprint of the calibration that the offsets come on top of; empty: none.

    Raises
    ------
    ShapeError, ModelError
        If shapes do not belong together, or numbers are not finite.

    """

    parameters: Array
    roots: Array | None = None
    offsets: Array | None = None
    calibration: str = ''

    def __post_init__(self) -> None:
        n = len(self.parameters)
        columns = 0 if self.roots is None or self.roots.ndim != 3 else self.roots.shape[2]
        n_fts = 0 if self.offsets is None else len(self.offsets)
        for name, array, shape in (
            ('parameters', self.parameters, (n, 10)),
            ('roots', self.roots, (n, 10, columns)),
            ('offsets', self.offsets, (n_fts, 6)),
        ):
            if array is None:
                continue
            if array.shape != shape:
                raise ShapeError(name, shape, array.shape)
            if not np.isfinite(array).all():
                raise ModelError(f"'{name}' of an update holds NaN or infinity")

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the parameters, by which its parts are matched."""
        return fingerprint(self.parameters)

    def check(self, robot: Robot) -> None:
        """
        Raise unless a robot can have these parameters.

        Parameters
        ----------
        robot : Robot
            Its links, and the masses to compare with.

        Raises
        ------
        ModelError
            If parameters are inconsistent, or masses those of another robot.

        """
        check_usable(robot.link_names, self.parameters)
        check_masses(robot.link_names, self.parameters, robot.parameters)


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
