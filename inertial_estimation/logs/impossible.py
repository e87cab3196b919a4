# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fits that contradict the robot description as no robot does: wrong units, signs or columns.

What is only odd is a warning of `fit_checks`. Here all rows of a unit (forces, moments, efforts)
of a submodel have to agree that something is wrong, so that a single joint with a bad prior, a
sensor of noise, or contacts that nobody noted stop nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.outliers import EFFORT
from inertial_estimation.identification.priors import SMALLEST_MASS
from inertial_estimation.identification.unknowns import FT_OFFSET, gain_columns
from inertial_estimation.logs.fit_checks import (
    CAUSES,
    MOST,
    factor,
    own_residual,
    told_factor,
    unit,
)
from inertial_estimation.logs.left_out import massless_warnings
from inertial_estimation.logs.ratings import BEYOND, rated
from inertial_estimation.model.gravity_loads import joints_without_gravity
from inertial_estimation.model.robot import Robot

Array = NDArray[np.float64]

PLURAL = {'force_': 'forces', 'moment': 'moments', 'effort': 'efforts'}
NOISE = 2.0
"""Times what rows leave by themselves, from which noise is no reason for what a fit leaves."""
LEFT = 0.7
"""Share of all signals of a unit that a fit leaves although the rows by themselves do not."""
ALL, LOUD = 0.98, 0.5
"""
Share that says nothing of the robot is in the rows, if the description predicts so much of them.
"""
SIZE = 100.0
"""Times the prediction of the description that no robot measures, nor one over it."""
ALIKE = 2
"""Kinds of rows that have to say so."""


def require_possible(found: RobotFit) -> None:
    """Refuse fits that contradict the description as no robot does."""
    said = list(impossibilities(found))
    if said:
        said += massless_warnings(found)
        raise LogError(
            f'logs and description cannot be of one robot: {"; ".join(said)}; {CAUSES}; of a '
            'description that is but a guess, choose a smaller --weight, and of bounds, wider ones'
        )


def impossibilities(found: RobotFit) -> Iterator[str]:
    """Yield what contradicts the description as no robot does, in words."""
    for block in found.blocks:
        # Unknown gains explain any size and sign.
        if not len(gain_columns(block.answer.unknowns)):
            checks = (_unexplained(block), _sizes(found, block), _overloaded(found.robot, block))
            said = [text for texts in checks for text in texts]
            if said:
                yield f'{block.name}: {", ".join(said)}'


class _Unit(NamedTuple):
    """Rows of one unit."""

    kinds: list[str]
    signal: float
    left: float
    own: float
    """What the rows leave by themselves; infinite: that says nothing."""
    predicted: float
    """What the description's bodies say; all of them root sums of squares."""


def _units(block: BlockFit) -> Iterator[tuple[str, _Unit]]:
    """Yield rows of one unit."""
    n, evidence = block.answer.unknowns.n_inertial, block.evidence
    signals, left = evidence.signals(block.answer.x), evidence.residuals(block.answer.x)
    there = [kind for kind in block.kinds if evidence.kinds[kind].count and signals[kind] > 0.0]
    for name in dict.fromkeys(map(unit, there)):
        kinds = [kind for kind in there if unit(kind) == name]
        predicted = [
            float(np.linalg.norm(rows.R[:, :n] @ block.before[:n])) / np.sqrt(rows.count)
            for rows in (evidence.kinds[kind] for kind in kinds)
        ]
        yield (
            PLURAL.get(name, name),
            _Unit(
                kinds,
                float(np.linalg.norm([signals[kind] for kind in kinds])),
                float(np.linalg.norm([left[kind] for kind in kinds])),
                float(np.linalg.norm([own_residual(block, kind) for kind in kinds])),
                float(np.linalg.norm(predicted)),
            ),
        )


def _unexplained(block: BlockFit) -> Iterator[str]:
    """Yield of which units a fit leaves so much that no bodies explain them."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    for name, one in _units(block):
        contradicts = one.left > LEFT * one.signal and one.left > NOISE * one.own
        foreign = one.left > ALL * one.signal and one.predicted > LOUD * one.signal
        if contradicts or foreign:
            shares = ', '.join(
                f'{kind} {100 * left[kind] / signals[kind]:.0f} %'
                for kind in one.kinds
                if left[kind] > MOST * signals[kind] > 0.0
            )
            yield (
                f'no bodies explain its {name}, of which the fit leaves '
                f'{100 * one.left / one.signal:.0f} % ({shares})'
            )


def _sizes(found: RobotFit, block: BlockFit) -> Iterator[str]:
    """Yield which units are measured against what is predicted, or in another size by far."""
    masses = found.robot.parameters[list(block.evidence.block.submodel.links), 0]
    # Without masses a description predicts nothing.
    stated = (masses[block.links_seen] >= SMALLEST_MASS).all()
    unloaded = {EFFORT + joint for joint in joints_without_gravity(found.robot)}
    for name, one in _units(block):
        factors = {kind: told_factor(block, kind) for kind in one.kinds}
        factors = {kind: value for kind, value in factors.items() if np.isfinite(value)}
        told = np.array(list(factors.values()))
        if len(told) < ALIKE:
            continue
        text = _as_predicted(name, told)
        heavy = np.array([value for kind, value in factors.items() if kind not in unloaded])
        if len(heavy) >= ALIKE and (heavy < 0.0).all() and not (told < 0.0).all():
            others = ', '.join(kind for kind, value in factors.items() if value > 0.0)
            yield (
                f'{_as_predicted(name, heavy)}, but those that gravity does not load are not '
                f"turned ({others}): turn the sign of 'robot.gravity'"
            )
        elif (told < 0.0).all():
            offsets = any(extra.term in FT_OFFSET for extra in block.answer.unknowns.extras)
            remedy = '' if offsets or name == 'efforts' else ", or let 'rows.offsets' find offsets"
            yield f"{text}: turn their sign, or that of 'robot.gravity'{remedy}"
        elif (told * SIZE < 1.0).all() or (stated and (told > SIZE).all()):
            yield text


def _as_predicted(name: str, factors: Array) -> str:
    """Return by what factor, in the middle, things that are measured differ from predictions."""
    middle = float(np.median(factors))
    return f'measured {name} are {middle:.2g} times what the description predicts'


def _overloaded(robot: Robot, block: BlockFit) -> Iterator[str]:
    """Yield which joints have efforts that are beyond their limits and no bodies explain."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    limits = {EFFORT + name: limit for name, limit in rated(robot, 'effort').items()}
    over = [
        f'{kind} {signal:.3g} of {limits[kind]:.4g}'
        for kind, signal in signals.items()
        if signal > BEYOND * limits.get(kind, np.inf)
        and (left[kind] > MOST * signal or np.isfinite(factor(block, kind)))
    ]
    if over:
        yield (
            'root mean squares are beyond the limits in the description (N m or N): '
            f'{", ".join(over)}: of single readings that no drive has, put NaN there'
        )
