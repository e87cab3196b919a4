# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What speaks against a matrix from added masses, although its equations are solved.

Equations do not tell units: masses in grams make matrix and body a thousand times as large, and
leave as little. Nor do they always tell which load belongs to which log: with equal masses at c_1
and c_2 in the wrong order, a body mirrored to c_1 + c_2 - c_0 solves them as well, with moments of
the opposite sign. A former matrix tells both; other wrong orders leave far more than the right
one.
"""

from __future__ import annotations

from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.added_mass_rows import AddedMassRows
from inertial_estimation.calibration.added_masses import AddedMass, MatrixCalibration
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
leaves 0.08 at least. Whatever the cause is, the matrix is off by twice that and more.
"""
BETTER = 3.0
"""An order is better that leaves, or is off, so many times less."""
MOST_TRIED = 5
"""Data sets in any order; of more, two at a time are exchanged."""
HEAVY, DISTANT = 50.0, 3.0
"""Loads that nobody hangs on by hand [kg], nor so far away [m]."""


OPPOSITE = (
    'the matrix is about the opposite of the one before: the readings may be the wrench of the '
    'other side'
)


class _Former(NamedTuple):
    """A matrix that says something of the sensor."""

    matrix: Array
    turned: bool
    """Whether nobody told how its axes are turned against those of the one that was found."""


class _Answer(NamedTuple):
    """What an order of the loads leaves, and how far it is from the former matrix."""

    left: float
    far: float
    """Infinite if nobody knows a former one."""
    order: Order


def load_warnings(data_sets: tuple[AddedMass, ...]) -> tuple[str, ...]:
    """
    Return which loads are of a size that another unit may explain.

    Parameters
    ----------
    data_sets : tuple of AddedMass
        With what was added.

    Returns
    -------
    tuple of str

    """
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

    Parameters
    ----------
    found : MatrixCalibration
        The matrix.
    former : ndarray, shape (6, 6), optional
        The one before; the identity counts as none, as readings may be counts.
    turned : bool, optional
        Whether that one is in the axes of an accelerometer.

    Returns
    -------
    tuple of str
        Empty: nothing speaks against it.

    """
    known = known_matrix(former)
    beside = None if known is None else _Former(known, turned or not found.in_sensor_axes)
    left, far = _left(found.residuals), _distance(found.matrix, beside)
    known_far = np.isfinite(far) and far > FAR
    if left <= LEFT and not known_far:
        return ()
    own = _Answer(left, far, tuple(range(len(found.data_sets))))
    better = _better_order(found, beside, own)
    if better is not None:
        return (_other_order(found, own, better),)
    said = []
    share = _rows(found).share_left(found.matrix, found.body, LENGTH_SCALE)
    if left > LEFT and share > MOST_LEFT:
        said.append(_contradiction(left, share))
    if beside is not None and known_far:
        said.append(_unlike(found, beside, far))
    return tuple(said)


def order_warnings(found: MatrixCalibration, former: Array | None = None) -> tuple[str, ...]:
    """
    Return which logs may have been exchanged without a sign, as nobody knows a former matrix.

    Parameters
    ----------
    found, former
        As for `matrix_doubts`.

    Returns
    -------
    tuple of str

    """
    if known_matrix(former) is not None or _left(found.residuals) > LEFT:
        return ()
    as_good = [one for one in _tried(found, None) if one.left < LEFT]
    if not as_good:
        return ()
    changed = _changes(found, min(as_good, key=_moved).order)
    return (
        f'another order of the loads explains the logs as well ({changed}), and no former matrix '
        'tells the two apart: make sure which log had which load',
    )


def known_matrix(former: Array | None) -> Array | None:
    """
    Return a former matrix if it says anything of the sensor.

    Parameters
    ----------
    former : ndarray, shape (6, 6), optional
        The one before.

    Returns
    -------
    ndarray, shape (6, 6), or None
        None also for the identity, as readings may be counts.

    """
    return None if former is None or np.array_equal(former, np.eye(6)) else former


def _left(residuals: Array) -> float:
    """Return what is left of all data sets, over noise."""
    return float(np.sqrt((residuals**2).mean()))


def _ratio(matrix: Array, former: _Former) -> Array:
    """Return a matrix over the former one, in newtons all, shape (6, 6)."""
    scale = np.repeat([1.0, 1.0 / LENGTH_SCALE], 3)
    ratio: Array = scale[:, None] * (matrix @ np.linalg.inv(former.matrix)) / scale
    if former.turned:
        # In the axes of an accelerometer that is turned in a way that nobody told.
        U, _, Vt = np.linalg.svd(ratio[:3, :3])
        R = U @ np.diag([1.0, 1.0, np.linalg.det(U @ Vt)]) @ Vt
        ratio = np.kron(np.eye(2), R.T) @ ratio
    return ratio


def _distance(matrix: Array, former: _Former | None) -> float:
    """Return by what share a matrix and the former one differ, infinite without one."""
    if former is None:
        return np.inf
    ratio = _ratio(matrix, former)
    return max(float(np.linalg.norm(one - np.eye(6), 2)) for one in (ratio, np.linalg.inv(ratio)))


def _better_order(
    found: MatrixCalibration, former: _Former | None, own: _Answer
) -> _Answer | None:
    """Return the order of the loads that explains the logs far better, if there is one."""
    tried = _tried(found, former)
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


def _tried(found: MatrixCalibration, former: _Former | None) -> list[_Answer]:
    """Return what other orders of the loads leave."""
    rows = _rows(found)
    return [
        _Answer(left, _distance(matrix, former), order)
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


def _other_order(found: MatrixCalibration, own: _Answer, better: _Answer) -> str:
    """Say which loads belong to which logs."""
    why = f'leaves {better.left:.1f} times the noise instead of {own.left:.3g}'
    if own.left <= LEFT:
        why = f'is {better.far:.2g} off the former matrix instead of {own.far:.2g}'
    changed = _changes(found, better.order)
    return f'loads may be stated in the wrong order: another one {why} ({changed})'


def _contradiction(left: float, share: float) -> str:
    """Say that the data sets cannot all be as stated."""
    return (
        f'the data sets contradict each other: {share:.0%} of what was added is left, {left:.3g} '
        'times the noise: a mass or a centre, or the axes it is in, is not as stated, something '
        'moved, or the sensor has much play'
    )


def _changes(found: MatrixCalibration, order: Order) -> str:
    """Say which logs get the load of which others."""
    names = [one.name for one in found.data_sets]
    return ', '.join(
        f'{names[k]} that of {names[other]}' for k, other in enumerate(order) if k != other
    )


def _unlike(found: MatrixCalibration, former: _Former, far: float) -> str:
    """Say how a matrix differs from the former one, and what may be the cause."""
    ratio = _ratio(found.matrix, former)
    if np.linalg.norm(ratio + np.eye(6), 2) < FAR:
        return OPPOSITE
    for block, what, unit in (
        (ratio[:3, :3], 'forces', 'masses are in kilograms, is another unit stated'),
        (ratio[3:, 3:], 'moments', 'centres are in metres, is another unit stated'),
    ):
        times = float(np.exp(np.log(np.linalg.svd(block)[1]).mean()))
        if not 1.0 / OTHER_UNIT < times < OTHER_UNIT:
            return f'{what} are {times:.3g} times those of the former matrix: {unit}?'
    return (
        f'the matrix differs from the former one by {far:.2g} times that one along some '
        'direction: a mass or a centre may not be as stated, or that one is of another sensor'
    )
