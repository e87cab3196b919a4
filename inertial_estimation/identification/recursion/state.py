# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a recursive identification knows as text, and back: it survives a restart.

The text says its version, what robot and which rows it is of, and a sum over its content, so that
one that was cut off or altered is refused as a whole.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from reprlib import repr as shown
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.errors_in_variables import StateErrors
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.memory import (
    SubmodelMemory,
    effective_offsets,
    on_columns,
)
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.nested import from_json

Array = NDArray[np.float64]

VERSION = 1
HEAD = re.compile(r'\{"version": \d+, "sha256": "[0-9a-f]{64}", "content": \{"robot": ')
"""Start of every state, whole or damaged."""
LAST_NS = 2**63
"""Stamps are integers of 64 bits."""


def to_text(identifier: RecursiveIdentifier) -> str:
    """Return what is known; rows whose noise is not known yet are not part of it."""
    content = {
        'robot': fingerprint(identifier),
        'stamp_ns': identifier.stamp_ns,
        'subtracted': {name: o.tolist() for name, o in _subtracted(identifier).items()},
        'submodels': {
            one.block.submodel.name: _known_dict(one)
            for one in identifier.known
            if one.information is not None
        },
    }
    written = json.dumps(content)
    return json.dumps({'version': VERSION, 'sha256': _sum(written), 'content': content}) + '\n'


def recognises(text: str) -> bool:
    """Tell whether a text is the state of an identifier, be it of another robot or damaged."""
    return HEAD.match(text) is not None


def from_text(identifier: RecursiveIdentifier, text: str) -> tuple[str, ...]:
    """Give what was known to an identification of the same robot."""
    content = _content(text)
    if content.get('robot') != fingerprint(identifier):
        raise ModelError(
            'what was saved is of another robot description, or of other rows: begin anew, or '
            'configure what it was saved with'
        )
    if not isinstance(content.get('submodels'), dict):
        raise ModelError("what was saved is damaged: it has no 'submodels'")
    try:
        restored = {
            one.block.submodel.name: _restored(one, content['submodels'][one.block.submodel.name])
            for one in identifier.known
            if one.block.submodel.name in content['submodels']
        }
        stamp_ns = int(content['stamp_ns'])
        said = content['subtracted']
        change = {
            name: now - np.array(said[name], dtype=float).reshape(6)
            for name, now in _subtracted(identifier).items()
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f'what was saved is damaged: {error!r}') from error
    if not 0 <= stamp_ns < LAST_NS:
        raise ModelError(f'what was saved is damaged: its stamp is {shown(stamp_ns)} ns')
    identifier.reset()
    identifier.stamp_ns = stamp_ns
    for one in identifier.known:
        if (found := restored.get(one.block.submodel.name)) is not None:
            (
                one.information, one.errors, one.noise, one.scales, one.seconds, one.learned,
            ) = found  # fmt: skip
            one.shift_offsets(on_columns(one.block, change))
    return tuple(restored)


def fingerprint(identifier: RecursiveIdentifier) -> str:
    """Return a sum over all that rows depend on: description, gravity, choice, calibration."""
    unknowns = [(block.unknowns.names, block.kinds) for block in identifier.builder.blocks]
    calibration = _without_unknown_offsets(identifier)
    robot = identifier.robot
    # What an affine map makes of these points is all that it is.
    points = np.vstack([np.zeros((2, 6)), np.eye(6)])[:, None].repeat(len(robot.ft_sensors), 1)
    warmth = np.arange(8.0)[:, None].clip(max=1.0).repeat(len(robot.ft_sensors), 1)
    applied = [] if calibration is None else calibration.apply(points, warmth).tolist()
    held = robot.fixed_frame, robot.gravity.tolist()
    choice = repr(identifier.settings.rows)
    if gains := identifier.settings.effort_gains:
        choice += repr(sorted(gains.items()))
    return _sum(repr((robot.urdf, robot.parameters.tolist(), held, unknowns, choice, applied)))


def _unknown(identifier: RecursiveIdentifier) -> list[int]:
    """Return the FT sensors whose offsets are unknown."""
    sensors, chosen = identifier.robot.ft_sensors, identifier.settings.rows.offsets
    return [k for k, sensor in enumerate(sensors) if sensor.name in chosen]


def _subtracted(identifier: RecursiveIdentifier) -> dict[str, Array]:
    """Return what is subtracted of sensors whose offsets are unknown, by their names."""
    sensors, calibration = identifier.robot.ft_sensors, identifier.calibration
    calibration = calibration or FtCalibration.identity(len(sensors))
    offsets = effective_offsets(calibration)
    return {sensors[k].name: offsets[k] for k in _unknown(identifier)}


def _without_unknown_offsets(identifier: RecursiveIdentifier) -> FtCalibration | None:
    """Return the calibration as if nothing were subtracted of sensors with unknown offsets."""
    calibration = identifier.calibration
    if calibration is None:
        return None
    offsets = calibration.offsets.copy()
    references = calibration.reference_temperatures.copy()
    offsets[_unknown(identifier)] = references[_unknown(identifier)] = 0.0
    return replace(calibration, offsets=offsets, reference_temperatures=references)


def _content(text: str) -> dict[str, Any]:
    """Return the content of a text that is whole."""
    try:
        said = from_json(text)
        version, stated, content = said['version'], said['sha256'], said['content']
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError('what was saved is damaged: it is not what `save` wrote') from error
    if version != VERSION:
        raise ModelError(f'what was saved is of version {shown(version)}, expected {VERSION}')
    if not isinstance(content, dict) or stated != _sum(json.dumps(content)):
        raise ModelError('what was saved is damaged: its content has another sum than it says')
    return content


def _known_dict(one: SubmodelMemory) -> dict[str, Any]:
    """Return what is known of one submodel."""
    information = one.information
    assert information is not None
    return {
        'R': information.R.tolist(),
        'rho': information.rho.tolist(),
        'energy': information.energy,
        'count': information.count,
        'errors': None if one.errors is None else [part.tolist() for part in one.errors],
        'noise': one.noise,
        'scales': one.scales.tolist(),
        'seconds': one.seconds,
        'learned': one.learned,
    }


def _restored(one: SubmodelMemory, said: dict[str, Any]) -> tuple[Any, ...]:
    """Return all that is known of a submodel, in the order in which it is taken."""
    n = len(one.block.unknowns)
    R, rho = np.array(said['R'], dtype=float), np.array(said['rho'], dtype=float)
    scales = np.array(said['scales'], dtype=float)
    if R.shape != (n, n) or rho.shape != (n,) or scales.shape != one.scales.shape:
        raise ValueError(f'{one.block.submodel.name} has other unknowns')
    sizes = {name: float(said[name]) for name in ('energy', 'count', 'seconds')}
    errors = None
    if (products := said.get('errors')) is not None:
        errors = StateErrors(*(np.array(part, dtype=float) for part in products))
        if errors.gram.shape != (n, n) or errors.cross.shape != (n,):
            raise ValueError(f'{one.block.submodel.name} has other errors')
        if not all(np.isfinite(part).all() for part in errors):
            raise ValueError(f'errors of {one.block.submodel.name} are no numbers')
    noise = {str(kind): float(level) for kind, level in said['noise'].items()}
    _check_numbers(one, R, rho, scales, sizes, noise)
    information = Information(R, rho, sizes['energy'], sizes['count'])
    # Texts of earlier releases do not say so: then it is asked of the rows.
    learned = bool(said.get('learned', False))
    return information, errors, noise, scales, sizes['seconds'], learned


def _check_numbers(
    one: SubmodelMemory,
    R: Array,
    rho: Array,
    scales: Array,
    sizes: Mapping[str, float],
    noise: Mapping[str, float],
) -> None:
    """Refuse numbers that rows cannot leave: nothing could be learned with them again."""
    name = one.block.submodel.name
    if not (np.isfinite(R).all() and np.isfinite(rho).all()) or np.tril(R, -1).any():
        raise ValueError(f'rows of {name} are no triangle of numbers')
    if odd := [what for what, size in sizes.items() if not 0.0 <= size < np.inf]:
        raise ValueError(f'{odd[0]} of {name} is {sizes[odd[0]]}')
    if odd := [kind for kind, level in noise.items() if not 0.0 < level < np.inf]:
        raise ValueError(f'noise of {odd[0]} of {name} is {noise[odd[0]]}')
    if not noise or set(noise) - set(one.block.kinds):
        raise ValueError(f'noise of {name} is not that of its rows')
    if not (scales > 0.0).all():
        raise ValueError(f'scales of {name} are not all positive')


def _sum(text: str) -> str:
    """Return a sum over a text."""
    return sha256(text.encode()).hexdigest()
