# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of a recursive identification as text, which survives a restart."""

from __future__ import annotations

import re
from dataclasses import replace
from reprlib import repr as shown
from typing import Any

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.errors_in_variables import StateErrors
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.parameter_file import checksum, sealed, unsealed
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.memory import SubmodelMemory

KIND, VERSION = 'recursive identification', 2
HEAD = re.compile(rf'{{"kind": "{KIND}", |{{"version": 1, "sha256": "')
"""Start of every state, complete or not; the second one of version 1."""
MAX_STAMP_NS = 2**63


def to_text(identifier: RecursiveIdentifier) -> str:
    """Return the state as text, without equations whose noise is not known yet."""
    submodels = {}
    for one in identifier.memories:
        if (information := one.information) is not None:
            submodels[one.name] = {
                'R': information.R.tolist(),
                'rho': information.rho.tolist(),
                'energy': information.energy,
                'count': information.count,
                'errors': None if one.errors is None else [part.tolist() for part in one.errors],
                'noise': one.noise,
                'scales': one.scales.tolist(),
                'seconds': one.seconds,
                'excited': one.excited,
            }
    content = {
        'robot': fingerprint(identifier),
        'stamp_ns': identifier.stamp_ns,
        'subtracted': dict(zip(_sensors(identifier), identifier.start_offsets.tolist())),
        'submodels': submodels,
    }
    return sealed(KIND, VERSION, content)


def recognises(text: str) -> bool:
    """Return true if a text is a state, even of another robot or damaged."""
    return HEAD.match(text) is not None


def from_text(identifier: RecursiveIdentifier, text: str) -> tuple[str, ...]:
    """Restore the state of an identification of the same robot; return the submodels."""
    content = unsealed(KIND, VERSION, text)
    if content.get('robot') != fingerprint(identifier):
        raise ModelError('the saved state is of another URDF or of other equations')
    try:
        saved = content['submodels']
        restored = {
            one.name: _restored(one, saved[one.name])
            for one in identifier.memories
            if one.name in saved
        }
        stamp_ns = int(content['stamp_ns'])
        start = [content['subtracted'][name] for name in _sensors(identifier)]
        offsets = np.array(start, dtype=float).reshape(-1, 6)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f'the saved state is damaged: {error!r}') from error
    if not np.isfinite(offsets).all():
        raise ModelError('the saved state is damaged: offsets are not finite')
    if not 0 <= stamp_ns < MAX_STAMP_NS:
        raise ModelError(f'the saved state is damaged: stamp {shown(stamp_ns)} ns')
    identifier.reset()
    identifier.stamp_ns = stamp_ns
    for one in identifier.memories:
        if (found := restored.get(one.name)) is not None:
            for name, value in found.items():
                setattr(one, name, value)
    identifier.relate_to(offsets)
    return tuple(restored)


def fingerprint(identifier: RecursiveIdentifier) -> str:
    """Return a checksum of all that equations depend on: URDF, gravity, choice, calibration."""
    unknowns = [(block.unknowns.names, block.kinds) for block in identifier.builder.blocks]
    robot, calibration = identifier.robot, identifier.calibration
    # Without the offsets that are unknown.
    offsets, references = calibration.offsets.copy(), calibration.reference_temperatures.copy()
    n, free = len(robot.ft_sensors), _sensors(identifier)
    is_free = [sensor.name in free for sensor in robot.ft_sensors]
    offsets[is_free] = references[is_free] = 0.0
    bare = replace(calibration, offsets=offsets, reference_temperatures=references)
    # An affine map is determined by its values at these points.
    points = np.vstack([np.zeros((2, 6)), np.eye(6)])[:, None].repeat(n, 1)
    applied = bare.apply(points, np.arange(8.0)[:, None].clip(max=1.0).repeat(n, 1)).tolist()
    held = robot.fixed_frame, robot.gravity.tolist()
    gains = sorted(identifier.settings.effort_gains.items())
    choice = repr((identifier.settings.equations, gains))
    return checksum(repr((robot.urdf, robot.parameters.tolist(), held, unknowns, choice, applied)))


def _sensors(identifier: RecursiveIdentifier) -> tuple[str, ...]:
    """Return the FT sensors whose offsets are unknown."""
    return identifier.settings.equations.offsets


def _restored(one: SubmodelMemory, saved: dict[str, Any]) -> dict[str, Any]:
    """Return the attributes of a memory; ValueError where equations cannot leave such numbers."""
    n = len(one.block.unknowns)
    R, rho, scales = (np.array(saved[name], dtype=float) for name in ('R', 'rho', 'scales'))
    sizes = {name: float(saved[name]) for name in ('energy', 'count', 'seconds')}
    noise = {str(kind): float(level) for kind, level in saved['noise'].items()}
    products = [np.array(part, dtype=float) for part in saved['errors'] or ()]
    shapes = [part.shape for part in (R, rho, scales, *products)]
    expected = [(n, n), (n,), one.scales.shape, (n, n), (n,)]
    for wrong, what in (
        (shapes not in (expected, expected[:3]), 'other unknowns'),
        (not all(np.isfinite(part).all() for part in (R, rho, *products)), 'NaN or infinity'),
        (np.tril(R, -1).any(), 'no triangle'),
        (not all(0.0 <= size < np.inf for size in sizes.values()), 'negative sizes'),
        (not noise or not noise.keys() <= set(one.block.kinds), 'noise of other kinds'),
        (not all(0.0 < level < np.inf for level in noise.values()), 'noise that is not positive'),
        (not (scales > 0.0).all(), 'scales that are not positive'),
    ):
        if wrong:
            raise ValueError(f'{one.name} has {what}')
    return {
        'information': Information(R, rho, sizes['energy'], sizes['count']),
        'errors': StateErrors(*products) if products else None,
        'noise': noise,
        'scales': scales,
        'seconds': sizes['seconds'],
        'excited': bool(saved['excited']),
    }
