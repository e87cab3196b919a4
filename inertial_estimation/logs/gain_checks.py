# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains that no drive has: a payload of another mass or in other logs than is said, or wrong signs.

Gains explain any size and sign of efforts, but a known payload must then be of that size too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.identification.drive_gains import geared
from inertial_estimation.identification.fit import BlockFit, RobotFit, bodies_stay
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.priors import SMALLEST_MASS
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import gain_columns
from inertial_estimation.logs.fit_checks import SURE

Array = NDArray[np.float64]

LEFT, NOISE = 0.2, 5.0
"""
Share of all efforts that a fit leaves, and times what those of each joint leave with a gain and
bodies of their own, from which a payload is another one: the description alone, with masses that
are off by a factor of twenty, leaves 0.1.
"""
SIZE = 100.0
"""Times the torques that the description's bodies need that no robot's do, nor one over it."""
OTHER_UNIT = 30.0
"""Times the gains that the description implies, or one over it, that hint at a wrong unit."""


def require_possible_gains(found: RobotFit) -> None:
    """Refuse gains that no drive has."""
    said = [text for block in found.blocks for text in _impossible(found, block)]
    if said:
        raise LogError('; '.join(said))


def _impossible(found: RobotFit, block: BlockFit) -> Iterator[str]:
    """Yield what is impossible of one submodel, and why it may be."""
    columns = gain_columns(block.answer.unknowns)
    if not len(columns):
        return
    values, spread = block.answer.x[columns], block.answer.deviations[columns]
    negative = values < -SURE * spread
    left, own = _shares(block)
    size = size_of_bodies(found, block)
    poor = left > LEFT and left > NOISE * own
    beyond = not 1.0 / SIZE <= size <= SIZE
    if not (negative.any() or poor or beyond):
        return
    gains = ', '.join(
        f'{name} {value:.4g}'
        for name, value in zip(geared(block.answer.unknowns), values, strict=True)
    )
    text = f'{block.name}: the gains that were found are none of drives ({gains}, in N m/A or N/A)'
    if poor:
        text += f'; with them bodies leave {100 * left:.0f} % of all efforts'
    if beyond:
        text += f"; bodies would need {size:.2g} times the torques of the description's"
    if poor or beyond:
        yield f'{text}: {_of_the_payload(found, block, values)}'
        return
    joints = ', '.join(np.array(geared(block.answer.unknowns))[negative])
    yield (
        f'{text}: a gain is positive; turn the sign of the efforts of {joints} by '
        "'log.efforts.scale', or mend the order of columns; where the payload hardly loads a "
        "joint, take it out of 'gains' and state its gain as 'scale'"
    )


def _of_the_payload(found: RobotFit, block: BlockFit, gains: Array) -> str:
    """Return what may be wrong with what is known, in words."""
    heavy = heavy_payloads(block)
    others = 'the signs, units and order of columns'
    if not heavy:
        return f'check {others}, and the units of what is known'
    what = f'payload {heavy}'
    factor = float(np.median(gains / _implied(found, block)))
    size = abs(factor)
    if 1.0 / OTHER_UNIT <= size <= OTHER_UNIT:
        return (
            f"check that 'logs' of {what} matches those with it and not those without it, its "
            f'mass [kg], and {others}'
        )
    return (
        f'they are {size:.2g} times those that the description implies, so check that the mass of '
        f"{what} is in kg; then that its 'logs' matches those with it and not those without it, "
        f'and {others}'
    )


def heavy_payloads(block: BlockFit) -> str:
    """Return the payloads of known mass that a submodel carries."""
    return ', '.join(
        f"'{one.name}' ({one.mass:g} kg)"
        for one in block.evidence.block.payloads
        if one.mass is not None
    )


def _implied(found: RobotFit, block: BlockFit) -> Array:
    """Return the gains with which the description's bodies fit best, without what is known."""
    evidence = block.evidence
    kinds = {
        kind: replace(rows, rho=np.zeros(rows.n), energy=0.0)
        for kind, rows in evidence.kinds.items()
    }
    prior = found.prior[list(evidence.block.submodel.links)]
    x = bodies_stay(replace(evidence, kinds=kinds), prior)
    return x[gain_columns(block.answer.unknowns)]


def size_of_bodies(found: RobotFit, block: BlockFit) -> float:
    """Return how many times the torques of the description's bodies those need that were found."""
    masses = found.robot.parameters[list(block.evidence.block.submodel.links), 0]
    if not (masses >= SMALLEST_MASS).any():
        # It predicts nothing.
        return 1.0
    n = block.answer.unknowns.n_inertial
    rows = np.vstack([part.R[:, :n] for part in block.evidence.kinds.values()])
    new, old = (float(np.linalg.norm(rows @ x[:n])) for x in (block.answer.x, block.before))
    return new / old if old > 0.0 else 1.0


def _shares(block: BlockFit) -> tuple[float, float]:
    """Return how much of all efforts the fit leaves, and how much they do by themselves."""
    columns, evidence = gain_columns(block.answer.unknowns), block.evidence
    signals, left = evidence.signals(block.answer.x), evidence.residuals(block.answer.x)
    sums = np.zeros(3)
    for kind, rows in evidence.kinds.items():
        if rows.count and rows.R[:, columns].any() and signals[kind] > 0.0:
            own = _own_share(rows, columns) * signals[kind]
            sums += np.square([signals[kind], left[kind], own])
    signal, fitted, own = np.sqrt(sums)
    return (float(fitted / signal), float(own / signal)) if signal > 0.0 else (0.0, 0.0)


def _own_share(rows: Information, gains: NDArray[np.intp]) -> float:
    """Return the share of a current that bodies, and any multiple of what is known, leave."""
    system = np.vstack(
        [np.column_stack([rows.R, rows.rho]), np.append(np.zeros(rows.n), np.sqrt(rows.energy))]
    )
    current = system[:, gains].sum(axis=1)  # rows of one kind hold one of them
    space = RowSpace.of(np.delete(system, gains, axis=1))
    rest = current - space.left @ (space.left.T @ current)
    return float(np.linalg.norm(rest) / np.linalg.norm(current))
