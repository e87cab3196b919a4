# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of a recursive identification as text, which survives a restart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.model.parameter_update import checksum, sealed, unsealed

KIND, VERSION = 'recursive identification', 5
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
                'matrices': one.matrices.tolist(),
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
    try:
        offsets = [content['subtracted'][name] for name in _sensors(identifier)]
        start_offsets = _numbers(offsets, len(offsets), 6)
        stamp_ns, restored = int(content['stamp_ns']), content['submodels']
        known = {
            one.name: _read(one, restored[one.name])
            for one in identifier.memories
            if one.name in restored
        }
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f'{type(error).__name__} {error}'
        raise ModelError(f'the saved state is not that of an identifier: {what}') from None
    identifier.reset()
    identifier.stamp_ns = stamp_ns
    for one in identifier.memories:
        vars(one).update(known.get(one.name, {}))
    identifier.relate_to(start_offsets)
    return tuple(known)


def _read(one: SubmodelMemory, saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes of a memory."""
    n = len(one.block.unknowns)
    R, rho, energy, count = (
        _numbers(saved[name], *shape)
        for name, shape in (('R', (n, n)), ('rho', (n,)), ('energy', ()), ('count', ()))
    )
    return {
        'information': Information(R, rho, float(energy), float(count)),
        'errors': _numbers(saved['errors'], n + 1, n + 1),
        'matrices': _numbers(saved['matrices'], *one.matrices.shape),
        'noise': {str(kind): float(_numbers(value)) for kind, value in saved['noise'].items()},
        'scales': np.array(saved['scales'], dtype=float).reshape(one.scales.shape),
        'seconds': float(_numbers(saved['seconds'])),
        'excited': bool(saved['excited']),
    }


def _numbers(values: Any, *shape: int) -> Array:
    """Return finite numbers of a shape."""
    found = np.array(values, dtype=np.float64)
    if found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f'{found.shape} numbers, expected {shape}, all of them finite')
    return found


def fingerprint(identifier: RecursiveIdentifier) -> str:
    """Return a checksum of all that equations depend on: URDF, gravity, choice, calibration."""
    unknowns = [(block.unknowns.names, block.kinds) for block in identifier.builder.blocks]
    robot, calibration, free = identifier.robot, identifier.calibration, _sensors(identifier)
    # Offsets that are unknown are related to those of the calibration in use.
    held = [k for k, sensor in enumerate(robot.ft_sensors) if sensor.name not in free]
    known = (
        robot.parameters, robot.gravity, calibration.matrices,
        calibration.temperature_coefficients, calibration.offsets[held],
        calibration.reference_temperatures[held],
    )  # fmt: skip
    gains = sorted(identifier.settings.effort_gains.items())
    choice = identifier.settings.equations, gains, robot.fixed_frame, unknowns
    return checksum(repr((robot.urdf, choice, [array.tolist() for array in known])))


def _sensors(identifier: RecursiveIdentifier) -> tuple[str, ...]:
    """Return the FT sensors whose offsets are unknown."""
    return identifier.settings.equations.offsets
