# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains that a drive may have, and that are yet likely wrong.

What no drive has is refused by `gain_checks`. Descriptions may be off, so what follows is told.
"""

from __future__ import annotations

from collections.abc import Iterator

from inertial_estimation.identification.drive_gains import geared
from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.outliers import EFFORT
from inertial_estimation.logs.gain_checks import heavy_payloads, size_of_bodies
from inertial_estimation.logs.ratings import rated

SIZE = 2.0
"""Times the torques that the description's bodies need, or one over it, that are odd."""
LEFT = 0.3
"""Share of a current that a fit leaves, of a joint that moves as it is said to 0.06 or less."""


def gain_doubts(found: RobotFit) -> list[str]:
    """Return which gains are likely wrong, in words."""
    said = []
    for block in found.blocks:
        if geared(block.answer.unknowns):
            said += [*_sizes(found, block), *_unexplained(block)]
    return said


def _sizes(found: RobotFit, block: BlockFit) -> Iterator[str]:
    """Yield that bodies and efforts are of another size than the description says."""
    size = size_of_bodies(found, block)
    efforts, limits = block.evidence.signals(block.answer.x), rated(found.robot, 'effort')
    beyond = [
        f'{name} {efforts[EFFORT + name]:.3g} of {limits[name]:g}'
        for name in geared(block.answer.unknowns)
        if efforts[EFFORT + name] > limits[name]
    ]
    odd = []
    if not 1.0 / SIZE <= size <= SIZE:
        odd.append(f"with the gains that were found bodies need {size:.2g} times the torques of "
                   "the description's")  # fmt: skip
    if beyond:
        odd.append(
            'root mean squares of efforts are beyond the limits in the description (N m or N): '
            + ', '.join(beyond)
        )
    if odd:
        heavy = heavy_payloads(block)
        what = f'the mass of payload {heavy} is right and in kg' if heavy else 'what is known'
        yield (
            f'{block.name}: {"; ".join(odd)}; check that {what}, and that the description is of '
            'this robot: gains and bodies are proportional to what is known'
        )


def _unexplained(block: BlockFit) -> Iterator[str]:
    """Yield which currents neither gains nor bodies explain."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    shares = {
        name: left[EFFORT + name] / signals[EFFORT + name]
        for name in geared(block.answer.unknowns)
        if signals[EFFORT + name] > 0.0
    }
    poor = [f'{name} ({100 * share:.0f} %)' for name, share in shares.items() if share > LEFT]
    if poor:
        yield (
            f'{block.name}: no gains explain the efforts of {", ".join(poor)}, of which the fit '
            'leaves so much: check the order of columns and joints, and that the joints are not '
            'held by stiction'
        )
