# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether what was fitted can be believed: sizes against the description, and what is left."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.fit import BlockFit, RobotFit
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.unknowns import Term, gain_columns

Array = NDArray[np.float64]

FACTOR = 3.0
"""By which what is measured may be larger or smaller than the description's bodies predict."""
SURE = 5.0
"""Deviations by which a factor is beyond that."""
TOLD, SHARP = 0.6, 0.1
"""
Share of the signal that the description's bodies explain, and deviation of a factor over its
value, from which it says something: not of wrists that hold nothing but friction.
"""
MOST = 0.5
"""Share of the signal of rows that a fit may leave."""
WEAK = 0.25
"""Signal over the largest one of its unit below which it may be nothing but noise."""
NOTHING = 1.1
"""Share of a weak signal that no noise explains: without any bodies less would be left."""
NOISE = 3.0
"""Times what the rows of one kind leave by themselves, from which they contradict the others."""
GOOD, FEW = 0.2, 0.5
"""
Share of a signal that a fit leaves of rows that bodies explain, and share of all kinds of rows up
to which it is the description that is wrong and not the units.
"""
LIGHT = 0.1
"""Share of its mass in the description below which a link is worth a word."""
SMALL = 0.02
"""Share of the mass of all links below which one may be anything."""
PASSIVE = (Term.VISCOUS, Term.DRIVE_INERTIA)
"""What cannot be negative: it would drive the joint, or weigh less than nothing."""
BELOW = 1.0
"""Deviations by which one of them is below zero before it is told: others may well be zero."""
CAUSES = (
    "check the units and gears ('unit', 'scale', 'divided_by'), the order of columns and joints, "
    'signs, and that the description is of this robot'
)


def fit_warnings(found: RobotFit) -> list[str]:
    """Return what of a fit is hardly possible, in words."""
    said = []
    for block in found.blocks:
        said += [*_sizes(block), *_left(block), *_masses(found, block), *_negative(block)]
        said += _grade(block)
    return said


def _sizes(block: BlockFit) -> Iterator[str]:
    """Yield of which rows what is measured is many times what is predicted, or against it."""
    if len(gain_columns(block.answer.unknowns)):
        return
    odd = [(kind, factor(block, kind)) for kind in block.kinds]
    told = {kind: value for kind, value in odd if np.isfinite(value)}
    names = [f'{kind} ({value:.2g})' for kind, value in told.items()]
    if names:
        yield (
            f'{block.name}: what is measured is not what the description predicts, friction and '
            f'offsets refitted, but so many times it: {", ".join(names)}; {CAUSES}'
            f'{_or_masses(block, told)}'
        )


def _or_masses(block: BlockFit, odd: Mapping[str, float]) -> str:
    """Return that the description may be wrong by as much, where bodies explain the rows."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    explained = all(
        value > 0.0 and left[kind] < GOOD * signals[kind] for kind, value in odd.items()
    )
    if not explained or len(odd) > FEW * len(signals):
        return ''
    return (
        '; if all that is right, the masses of the description are off there, and what was found '
        f'stands: it leaves less than {100 * GOOD:.0f} % of these rows'
    )


def factor(block: BlockFit, kind: str) -> float:
    """Return how many times what the description's bodies predict is measured, if that is odd."""
    value, deviation = told_factor(block, kind), scaled(block, kind)[1]
    size = abs(value)
    # Beyond the next border by many deviations.
    gap = size - FACTOR if size > FACTOR else 1.0 / FACTOR - value
    odd = not 1.0 / FACTOR <= value <= FACTOR and gap > SURE * deviation
    return value if odd else np.nan


def told_factor(block: BlockFit, kind: str) -> float:
    """Return how many times what the description's bodies predict is measured, if that is told."""
    value, deviation, share = scaled(block, kind)
    return value if share >= TOLD and deviation <= SHARP * abs(value) else np.nan


def scaled(block: BlockFit, kind: str) -> tuple[float, float, float]:
    """Return the factor of what the description's bodies predict that fits rows best."""
    rows, n = block.evidence.kinds[kind], block.answer.unknowns.n_inertial
    bodies = rows.R[:, :n] @ block.before[:n]
    others = rows.R[:, n:]
    size = np.linalg.norm(others, axis=0)
    others = others[:, size > 0] / size[size > 0]
    Q = np.linalg.qr(others)[0]
    bodies, rest = (vector - Q @ (Q.T @ vector) for vector in (bodies, rows.rho))
    length = float(bodies @ bodies)
    if not rows.count or not length > 0.0:
        return np.nan, np.nan, 0.0
    value = float(bodies @ rest) / length
    left = float(np.sum((rest - value * bodies) ** 2)) + rows.energy
    total = float(rest @ rest) + rows.energy
    share = float(np.sqrt(max(1.0 - left / total, 0.0))) if total > 0.0 else 0.0
    return value, float(np.sqrt(left / rows.count / length)), share


def _left(block: BlockFit) -> Iterator[str]:
    """Yield of which rows more is left than a fit leaves."""
    signals = block.evidence.signals(block.answer.x)
    left = block.evidence.residuals(block.answer.x)
    poor = [
        f'{kind} ({100 * left[kind] / signal:.0f} %)'
        for kind, signal in signals.items()
        if kind in block.kinds
        and left[kind] > MOST * signal > 0.0
        and (
            signal > WEAK * _largest(signals, kind)
            or left[kind] > NOTHING * signal
            or left[kind] > NOISE * own_residual(block, kind)
        )
    ]
    if poor:
        yield (
            f'{block.name}: the fit leaves most of what was measured: {", ".join(poor)}; {CAUSES}'
            '; or the rows lack what acts there: leave them out'
        )


def own_residual(block: BlockFit, kind: str) -> float:
    """Return what rows leave that are fitted by themselves, by no bodies in particular."""
    if len(gain_columns(block.answer.unknowns)):
        return np.inf
    rows = block.evidence.kinds[kind]
    free = rows.count - len(RowSpace.of(rows.R).strengths)
    if not free > 0.5 * rows.count:
        return np.inf
    return float(np.sqrt(rows.energy / free))


def unit(kind: str) -> str:
    """Return what rows of a kind are, up to joint or axis."""
    return kind[: len('effort')]


def _largest(signals: Mapping[str, float], kind: str) -> float:
    """Return the largest signal of the rows that are like those of a kind."""
    return max(value for name, value in signals.items() if unit(name) == unit(kind))


def _masses(found: RobotFit, block: BlockFit) -> Iterator[str]:
    """Yield which links weigh next to nothing, against the description."""
    if not block.answer.consistent:
        # That is told elsewhere, and shares of links that are no bodies mean nothing.
        return
    before = found.prior[list(block.evidence.block.submodel.links), 0]
    after = block.answer.parameters[:, 0]
    odd = (after < LIGHT * before) & (before > SMALL * before.sum())
    if odd.any():
        names = zip(block.answer.unknowns.links, after, before, strict=True)
        said = ', '.join(
            f'{name} ({new:.2g} of {old:.3g} kg)'
            for one, (name, new, old) in zip(odd, names, strict=True)
            if one
        )
        yield f'{block.name}: links weigh next to nothing of what they should: {said}; {CAUSES}'


def _negative(block: BlockFit) -> Iterator[str]:
    """Yield which drives or frictions are negative."""
    unknowns, answer = block.answer.unknowns, block.answer
    n = unknowns.n_inertial
    # A deviation that the method does not state says nothing.
    deviations = np.nan_to_num(answer.deviations[n:], posinf=np.inf)
    found = [
        (extra, value, deviation)
        for extra, value, deviation in zip(unknowns.extras, answer.x[n:], deviations, strict=True)
        if extra.term in PASSIVE and '+' not in extra.of and value < -BELOW * deviation
    ]
    if found:
        said = ', '.join(
            f'{extra} ({value:.3g} +- {spread:.2g})' for extra, value, spread in found
        )
        terms = dict.fromkeys(extra.term.value for extra, _, _ in found)
        bounds = ', '.join(f'{term}: [0, .inf]' for term in terms)
        yield (
            f'{block.name}: negative, which no friction and no drive is: {said}; something that '
            'the rows lack is in them, or the motion does not tell them apart: hold them by '
            f"'bounds: {{extras: {{{bounds}}}}}', or leave slow stretches out by 'rows.dead_zone'"
        )


def _grade(block: BlockFit) -> Iterator[str]:
    """Yield that an answer is not the best one."""
    answer = block.answer
    if answer.grade is not Grade.OPTIMAL:
        other = 'semidefinite' if answer.method == 'entropic' else 'entropic'
        yield (
            f'{block.name}: {answer.method} ended {answer.grade.value} after {answer.iterations} '
            f'steps, with an optimality residual of {answer.optimality:.1g}: a better answer '
            f'exists; compare with --method {other}'
        )
