# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of a recursive identification as text, which survives a restart."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.parameter_file import checksum, sealed, unsealed
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier

KIND, VERSION = 'recursive identification', 3
HEAD = f'{{"kind": "{KIND}", '
"""Start of every state, complete or not."""


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
                'errors': one.errors.tolist(),
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
    return text.startswith(HEAD)


def from_text(identifier: RecursiveIdentifier, text: str) -> tuple[str, ...]:
    """Restore the state of an identification of the same robot; return the submodels."""
    content = unsealed(KIND, VERSION, text)
    if content.get('robot') != fingerprint(identifier):
        raise ModelError('the saved state is of another URDF or of other equations')
    identifier.reset()
    identifier.stamp_ns = content['stamp_ns']
    restored = content['submodels']
    for one in (one for one in identifier.memories if one.name in restored):
        saved = restored[one.name]
        R, rho, scales = (np.array(saved[name]) for name in ('R', 'rho', 'scales'))
        one.information = Information(R, rho, saved['energy'], saved['count'])
        one.errors = np.array(saved['errors'])
        one.noise, one.scales = saved['noise'], scales
        one.seconds, one.excited = saved['seconds'], saved['excited']
    offsets = [content['subtracted'][name] for name in _sensors(identifier)]
    identifier.relate_to(np.reshape(np.array(offsets, dtype=float), (-1, 6)))
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
