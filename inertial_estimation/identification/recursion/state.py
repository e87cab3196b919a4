# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""State of a recursive identification as text, which survives a restart."""

from __future__ import annotations

import numpy as np

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.parameter_file import checksum, sealed, unsealed
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier

KIND, VERSION = 'recursive identification', 4
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
                'prior_variance': one.prior_variance,
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
        one.prior_variance = min(saved['prior_variance'], one.stated_variance)
        one.seconds, one.excited = saved['seconds'], saved['excited']
    offsets = [content['subtracted'][name] for name in _sensors(identifier)]
    identifier.relate_to(np.reshape(np.array(offsets, dtype=float), (-1, 6)))
    return tuple(restored)


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
