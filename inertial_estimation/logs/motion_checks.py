# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether positions and velocities can be what a log says they are: units, gears, order."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import LogError
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import joint_types, parse
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DEGREES = 180.0 / np.pi
FAR = 1.0
"""
Beyond a limit by the range of a joint, and by so much, positions are something else [rad or m].
"""
BEYOND = 0.1
"""Beyond a limit by so much is worth a word [rad or m]."""
SPIKES = 0.01
"""Share of the instants that may be anything: what is off otherwise is off all the time."""
TURNS = 10.0
"""Of a joint without end stops, from which it is worth asking whether these are degrees."""
SPAN = 0.2
"""Time over which changes of positions and integrals of velocities are compared [s]."""
MOVED = 0.01
"""Root mean square change in that time from which a joint moves [rad or m]."""
FACTOR = 2.0
"""By which positions may change faster or slower than velocities say."""
ALIKE = 0.5
"""Least correlation of the two."""
NEAR = 1.1
"""How near a factor is to a unit's to be taken for it."""
NANOSECONDS = 1e-9
REMEDY = (
    "in a table state 'unit', a gear as 'divided_by' and a turned sign as 'scale: -1', and check "
    'the order of columns; joint states of bags are rad and m'
)


def require_within_limits(robot: Robot, samples: SampleBatch) -> list[str]:
    """Refuse positions that the joints of the description cannot have."""
    said: list[str] = []
    tags = {tag.get('name', ''): tag for tag in parse(robot.urdf).findall('joint')}
    for k, name in enumerate(robot.joint_names):
        values = samples.positions[:, k]
        values = values[np.isfinite(values)]
        if not len(values):
            continue
        limits = _limits(tags[name])
        said += _endless(name, values) if limits is None else _within(name, values, *limits)
    return said


def _within(name: str, values: Array, lower: float, upper: float) -> Iterator[str]:
    """Yield what to know of the positions of a joint with end stops."""
    off = np.maximum(lower - values, values - upper)
    worst = float(values[np.argmax(off)])
    text = (
        f"position of '{name}' is {worst:.4g} (rad or m), but its limits in the description are "
        f'{lower:.4g} and {upper:.4g}'
    )
    if np.mean(off > max(upper - lower, FAR)) > SPIKES:
        degrees = lower <= worst / DEGREES <= upper
        likely = 'these may be degrees (unit: deg)' if degrees else 'it may be of a motor'
        raise LogError(
            f'{text}: {likely}; {REMEDY}; mend the limits if it is these that are wrong'
        )
    if off.max() > BEYOND:
        yield f'{text}: check its unit, gear and column, or the limits'


def _endless(name: str, values: Array) -> Iterator[str]:
    """Yield what to know of the positions of a joint without end stops."""
    turns = float(np.ptp(values)) / (2 * np.pi)
    if turns > TURNS:
        yield (
            f"'{name}' turns by {turns:.3g} turns, as its positions say: if they are in degrees, "
            f"or of a motor, state 'unit: deg', or the gear as 'divided_by'"
        )


def _limits(tag: Element) -> tuple[float, float] | None:
    """Return between what a joint of the URDF moves; None: it has no such limits."""
    limit = tag.find('limit')
    if limit is None or tag.get('type') == 'continuous':
        return None
    try:
        lower, upper = (float(limit.get(key, '0')) for key in ('lower', 'upper'))
    except ValueError:
        return None
    # Without a range, or with an endless one, they were never stated.
    return (lower, upper) if lower < upper and np.isfinite(upper - lower) else None


def require_agreement(robot: Robot, samples: SampleBatch, largest_gap: float) -> None:
    """
    Refuse velocities that are not the derivatives of positions.

    largest_gap [s].
    """
    for text in disagreements(robot, samples, largest_gap):
        raise LogError(f'{text}; {REMEDY}')


def disagreements(robot: Robot, samples: SampleBatch, largest_gap: float) -> Iterator[str]:
    """Yield of which joints velocities are not the derivatives of positions, in words."""
    t = np.asarray(samples.stamp_ns * NANOSECONDS, dtype=np.float64)
    if len(t) < 2 or not (np.diff(t) > 0).all():
        # What is wrong with the stamps is said elsewhere.
        return
    tags = joint_types(parse(robot.urdf))
    for k, name in enumerate(robot.joint_names):
        changes = _changes(t, samples.positions[:, k], samples.velocities[:, k], largest_gap)
        text = _in_words(*changes, turns=tags[name] != 'prismatic')
        if text:
            yield f"positions and velocities of '{name}' contradict each other: {text}"


def _changes(t: Array, q: Array, v: Array, largest_gap: float) -> tuple[Array, Array]:
    """Return changes of a position, and the integrals of its velocity over the same times."""
    steps = np.diff(t)
    period = float(np.median(steps))
    lag = min(max(1, round(SPAN / period)), len(t) - 1)
    known = np.isfinite(q) & np.isfinite(v)
    q, v = np.where(known, q, 0.0), np.where(known, v, 0.0)
    area = 0.5 * (v[1:] + v[:-1]) * steps
    usable = known[1:] & known[:-1] & (steps <= largest_gap)
    travelled = np.append(0.0, np.cumsum(np.where(usable, area, 0.0)))
    broken = np.append(0, np.cumsum(~usable))
    whole = broken[lag:] == broken[:-lag]
    return (q[lag:] - q[:-lag])[whole], (travelled[lag:] - travelled[:-lag])[whole]


def _in_words(moved: Array, told: Array, *, turns: bool) -> str:
    """Return how changes of positions and what velocities tell of them differ, if they do."""
    if not len(moved):
        return ''
    sizes = np.sqrt(np.mean(moved**2)), np.sqrt(np.mean(told**2))
    if max(sizes) < MOVED:
        return ''
    if min(sizes) == 0.0:
        return f'the {"velocities" if sizes[0] else "positions"} stand still, the others do not'
    factor = float(sizes[0] / sizes[1])
    alike = float(np.mean(moved * told) / (sizes[0] * sizes[1]))
    if 1 / FACTOR <= factor <= FACTOR and alike >= ALIKE:
        return ''
    text = f'positions change {factor:.3g} times as fast as velocities say'
    if alike <= -ALIKE:
        text += ', in the other direction'
    elif alike < ALIKE:
        text += f' with a correlation of {alike:.2g}, so they are likely not of the same joint'
    return text + _likely(factor, turns=turns)


UNITS = {
    DEGREES: 'positions are in degrees, or velocities are declared as degrees but are not',
    1 / DEGREES: 'velocities are in degrees, or positions are declared as degrees but are not',
    np.pi / 30: 'velocities are in rpm',
    30 / np.pi: 'velocities are declared as rpm but are not',
}
"""What factors of positions over velocities say."""
OF_SLIDING = {1e3: 'positions are in mm', 1e-3: 'velocities are in mm/s'}
"""The same of joints that slide, beside `OF_TIME`."""
OF_TIME = {
    scale**sign: f"stamps are in a unit {scale:g} times {size} than is said ('unit' of the time)"
    for scale in (1e3, 1e6, 1e9)
    for sign, size in ((1, 'longer'), (-1, 'shorter'))
}


def _likely(factor: float, *, turns: bool) -> str:
    """Return where a factor may come from."""
    found = [
        text
        for units in (UNITS, {} if turns else OF_SLIDING, OF_TIME)
        for unit, text in units.items()
        if 1 / NEAR < factor / unit < NEAR
    ]
    if found:
        return f': {", or ".join(found)}'
    return (
        ''
        if 1 / FACTOR <= factor <= FACTOR
        else ': one of them may be on the other side of a gear'
    )
