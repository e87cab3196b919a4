# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What speaks against a matrix from added masses, although its equations are solved.

Equations do not tell units: masses in grams make matrix and body a thousand times as large, and
leave as little. Nor do they always tell which load belongs to which log: with equal masses at c_1
and c_2 in the wrong order, a body mirrored to c_1 + c_2 - c_0 solves them as well, with moments of
the opposite sign. A former matrix tells both, and so does the identity if readings are wrenches
(`former_matrix`); other wrong orders leave far more than the right one.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_mass_rows import AddedMassRows
from inertial_estimation.calibration.added_masses import AddedMass, MatrixCalibration
from inertial_estimation.calibration.former_matrix import change, prior_matrix, ratio_to
from inertial_estimation.calibration.offset_in_situ import LENGTH_SCALE
from inertial_estimation.calibration.weighing import Weighed

Array = NDArray[np.float64]
Order = tuple[int, ...]

FAR = 1.0
"""
Share by which a matrix and the former one may differ along some direction, moments over
`LENGTH_SCALE`: what authors corrected in workshop matrices of real legs is a third at most.
"""
OTHER_UNIT = 5.0
"""Times the former matrix, or one over it, from which a unit is suspect."""
LEFT = 3.0
"""Times the noise: what is left of a data set from which another order is tried."""
MOST_LEFT = 0.07
"""
Of what was added, what data sets may leave beyond noise. Play of 1 % of the swing of the readings,
as much as data sheets admit, leaves 0.06 of 0.5 kg on a body of 3 kg; a centre that is 5 cm off
leaves 0.05 to 0.3. Whatever the cause is, the matrix is off by twice that and more.
"""
LASTING, MOST_OF_LASTING = 25.0, 0.03
"""
Times what lasts within data sets that they leave, and share of what was added, from which both
together tell that a mass or a centre is not as stated, whatever the play is. Play of 0.3 to 2 % of
the swing leaves 12 times at most, an accelerometer with gains that differ by 3 % between axes 33
times and a share of 0.023; a centre that is 5 cm off 14 times at least, in the middle 70.
"""
BETTER = 3.0
"""An order is better that leaves, or is off, so many times less."""
MOST_TRIED = 5
"""Data sets in any order; of more, two at a time are exchanged."""
HEAVY, DISTANT = 50.0, 3.0
"""Loads that nobody hangs on by hand [kg], nor so far away [m]."""
CHANGED = 0.15
"""
Share by which a matrix may differ from the former one without a word: masses and centres that are
off by as much leave nothing if all are.
"""

OPPOSITE = 'the readings may be the wrench of the other side'
FORMER, WRENCHES = 'the former matrix', 'the identity of readings that are wrenches'
"""What a matrix is held against, in words."""


class _Answer(NamedTuple):
    """What an order of the loads leaves, and how far it is from the former matrix."""

    left: float
    far: float
    """Infinite if nobody knows a former one."""
    order: Order


def load_doubts(data_sets: tuple[AddedMass, ...]) -> tuple[str, ...]:
    """Return which loads are of a size that another unit explains."""
    said = []
    for one in data_sets:
        away = float(np.linalg.norm(one.centre))
        if one.mass > HEAVY:
            said.append(
                f'{one.name}: {one.mass:g} kg were added: masses are in kilograms, and grams '
                'make the matrix a thousand times too large'
            )
        if one.mass and away > DISTANT:
            said.append(f'{one.name}: the mass was added {away:g} m away: centres are in metres')
    return tuple(said)


def matrix_doubts(
    found: MatrixCalibration, former: Array | None = None, *, turned: bool = False
) -> tuple[str, ...]:
    """
    Return why a matrix cannot be that of the sensor.

    former (6, 6).
    """
    beside = prior_matrix(found, former)
    left, far = _left(found.residuals), _distance(found, found.matrix, beside, turned)
    known_far = np.isfinite(far) and far > FAR
    # What is told of a matrix that is known needs no limit.
    said = [] if beside is not None else [*load_doubts(found.data_sets)]
    if left <= LEFT and not known_far:
        return tuple(said)
    of = FORMER if former is not None else WRENCHES
    own = _Answer(left, far, tuple(range(len(found.data_sets))))
    better = _better_order(found, beside, own, turned)
    if better is not None:
        return (*said, _other_order(found, own, better, of))
    if left > LEFT and (contradiction := _contradiction(found, left)):
        said.append(contradiction)
    if beside is not None and known_far:
        said.append(_unlike(found, beside, far, of, turned))
    return tuple(said)


def prior_warnings(
    found: MatrixCalibration, former: Array | None = None, *, turned: bool = False
) -> tuple[str, ...]:
    """Return what to know of a matrix beside the former one, or as nobody knows one."""
    beside = prior_matrix(found, former)
    if beside is not None:
        by = change(found, beside, turned=turned)
        if not CHANGED < by.largest <= FAR:
            return ()
        of = FORMER if former is not None else WRENCHES
        return (f'the matrix differs from {of} by {by.in_words()}: make sure of all loads',)
    if _left(found.residuals) > LEFT:
        return ()
    as_good = [one for one in _tried(found, None, False) if one.left < LEFT]
    if not as_good:
        return ()
    changed = _changes(found, min(as_good, key=_moved).order)
    return (
        f'another order of the loads explains the logs as well ({changed}), and no former matrix '
        'tells the two apart: make sure which log had which load',
    )


def _left(residuals: Array) -> float:
    """Return what is left of all data sets, over noise."""
    return float(np.sqrt((residuals**2).mean()))


def _distance(
    found: MatrixCalibration, matrix: Array, former: Array | None, turned: bool
) -> float:
    """Return by what share a matrix and the former one differ, infinite without one."""
    return np.inf if former is None else change(found, former, matrix, turned=turned).largest


def _better_order(
    found: MatrixCalibration, former: Array | None, own: _Answer, turned: bool
) -> _Answer | None:
    """Return the order of the loads that explains the logs far better, if there is one."""
    tried = _tried(found, former, turned)
    if own.left > LEFT:
        tried = [one for one in tried if one.left < own.left / BETTER]
        least = min((one.left for one in tried), default=0.0)
        tried = [one for one in tried if one.left < BETTER * max(least, 1.0)]
    else:
        nearer = min(own.far / BETTER, FAR)
        tried = [one for one in tried if one.left < LEFT and one.far < nearer]
    # Of several that are as good: the nearest to the former matrix, else of fewest changes.
    return min(tried, default=None, key=lambda one: (one.far, _moved(one)))


def _moved(one: _Answer) -> int:
    """Return how many logs get another load."""
    return sum(k != other for k, other in enumerate(one.order))


def _tried(found: MatrixCalibration, former: Array | None, turned: bool) -> list[_Answer]:
    """Return what other orders of the loads leave."""
    rows = _rows(found)
    return [
        _Answer(left, _distance(found, matrix, former, turned), order)
        for order in _orders(found.data_sets)
        for matrix, left in _solved(rows, order)
    ]


def _rows(found: MatrixCalibration) -> AddedMassRows:
    """Return the equations."""
    return AddedMassRows.of(
        [one.slopes for one in found.found],
        [Weighed(one.mass, one.mass * np.asarray(one.centre)) for one in found.data_sets],
        found.rotation,
        found.direction,
    )


def _orders(data_sets: tuple[AddedMass, ...]) -> list[Order]:
    """Return other orders of the loads."""
    n = len(data_sets)
    if n <= MOST_TRIED:
        found = list(permutations(range(n)))
    else:
        found = []
        for a, b in combinations(range(n), 2):
            order = list(range(n))
            order[a], order[b] = b, a
            found.append(tuple(order))
    loads = [(one.mass, *np.asarray(one.centre).tolist()) for one in data_sets]
    return [order for order in found if [loads[k] for k in order] != loads]


def _solved(rows: AddedMassRows, order: Order) -> list[tuple[Array, float]]:
    """Return matrix and what is left with the loads in another order; none if there is none."""
    other = rows.with_loads(order)
    try:
        weight, matrix, body = other.solve_weighed(LENGTH_SCALE)
    except np.linalg.LinAlgError:
        return []
    return [(matrix, _left(other.residuals(weight, matrix, body)))]


def _other_order(found: MatrixCalibration, own: _Answer, better: _Answer, of: str) -> str:
    """Say which loads belong to which logs."""
    why = f'leaves {better.left:.1f} times the noise instead of {own.left:.3g}'
    if own.left <= LEFT:
        why = f'is {better.far:.2g} off {of} instead of {own.far:.2g}'
    changed = _changes(found, better.order)
    return f'loads may be stated in the wrong order: another one {why} ({changed})'


def _contradiction(found: MatrixCalibration, left: float) -> str:
    """Say that the data sets cannot all be as stated; empty if nothing tells that."""
    rows = _rows(found)
    share = rows.share_left(found.matrix, found.body, LENGTH_SCALE)
    if share <= MOST_OF_LASTING:
        return ''
    lasting = rows.over_lasting(rows.weight(found.matrix), found.matrix, found.body)
    if share <= MOST_LEFT and lasting <= LASTING:
        return ''
    play = ', or the sensor has much play' if lasting <= LASTING else ''
    return (
        f'the data sets contradict each other: {share:.1%} of what was added is left, {left:.3g} '
        'times the noise: a mass or a centre, or the axes it is in, is not as stated, or '
        f'something moved{play}'
    )


def _changes(found: MatrixCalibration, order: Order) -> str:
    """Say which logs get the load of which others."""
    names = [one.name for one in found.data_sets]
    return ', '.join(
        f'{names[k]} that of {names[other]}' for k, other in enumerate(order) if k != other
    )


def _unlike(found: MatrixCalibration, former: Array, far: float, of: str, turned: bool) -> str:
    """Say how a matrix differs from the former one, and what may be the cause."""
    if np.linalg.norm(ratio_to(found, former, turned=turned) + np.eye(6), 2) < FAR:
        return f'the matrix is about the opposite of {of}: {OPPOSITE}'
    by = change(found, former, turned=turned)
    for times, what, unit in (
        (by.forces, 'forces', 'masses are in kilograms, is another unit stated'),
        (by.moments, 'moments', 'centres are in metres, is another unit stated'),
    ):
        if not 1.0 / OTHER_UNIT < times < OTHER_UNIT:
            return f'{what} are {times:.3g} times those of {of}: {unit}?'
    other = 'that one is of another sensor' if of == FORMER else 'the readings are no wrenches'
    return (
        f'the matrix differs from {of} by {far:.2g} times that one along some direction: a mass '
        f'or a centre may not be as stated, or {other}'
    )
