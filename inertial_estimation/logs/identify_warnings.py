# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What to know of gains, payloads and links that were found before they are believed."""

from __future__ import annotations

from collections.abc import Iterator

from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.unknowns import gain_columns
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.urdf_export import lightened

UNSURE = 0.3
"""Deviation of a gain over its value from which it is hardly told."""


def load_warnings(found: RobotFit) -> list[str]:
    """Return what is wrong with gains and payloads, in words."""
    said = [text for block in found.blocks for text in _gains(block)]
    for name, parameters in found.payloads.items():
        if not consistency_margin(parameters[None])[0] >= 0.0:
            said.append(
                f'no body could be like payload {name} as it was found: its inertia is not told, '
                'state it, or effects that are no rigid body hide in it'
            )
    return said


def lightened_warnings(found: RobotFit) -> list[str]:
    """Return which links of the description are written lighter than it says, in words."""
    lighter = lightened(found.robot, found.described)
    if not lighter:
        return []
    shares = ', '.join(f'{name} ({100 * share:.3g} %)' for name, share in lighter.items())
    return [
        'links that are fixed to another are written lighter than described, as what was found '
        f'of both together is no body beside them; left of their mass and inertia: {shares}'
    ]


def _gains(block: BlockFit) -> Iterator[str]:
    """Yield the gains of one submodel that are hardly told."""
    unknowns = block.answer.unknowns
    for k in gain_columns(unknowns):
        value, deviation = block.answer.x[k], block.answer.deviations[k]
        # A deviation that the method does not state says nothing.
        if value <= 0.0 or deviation > UNSURE * value:
            yield (
                f'{block.name}: {unknowns.names[k]} is hardly told, {value:.3g} +- '
                f'{deviation:.2g}: the payload does not load that joint enough; move it further '
                "away, or take the joint out of 'gains' and state its gain as 'scale'"
            )
