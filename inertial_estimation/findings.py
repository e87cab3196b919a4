# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Findings of checks of signals, models, estimates and fits; nodes and commands render them.

A finding has a code of `CODES`, which gives its level, limit, unit, text and reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from inertial_estimation.errors import LogError

MAX_PROBLEMS = 20


class Problems(Counter[str]):
    """Counts of problems by their text; a sender of ever new ones must not fill the memory."""

    def note(self, problem: str, count: int = 1) -> None:
        """Count a problem."""
        is_known = problem in self or len(self) < MAX_PROBLEMS
        self[problem if is_known else 'other problems'] += count


class Level(IntEnum):
    """Severity, with the values of diagnostic_msgs/DiagnosticStatus."""

    INFO = 0
    WARNING = 1
    ERROR = 2


class Code(NamedTuple):
    """A kind of finding."""

    level: Level
    text: str
    """Template; the values of a finding fill it in."""
    limit: float | None
    """Value from which it is reported; None: there is no threshold."""
    unit: str
    """Unit of the limit."""
    reason: str
    """Source of the limit, or meaning of the finding."""


@dataclass(frozen=True)
class Finding:
    """
    A fault or doubt that a check reports.

    Attributes
    ----------
    level : Level
        Severity.
    subject : str
        Sensor, joint, link, submodel, contact, log or stream.
    code : str
        A key of `CODES`.
    values : mapping of str to float or str
        Its figures.
    text : str
        One clause with these figures.

    """

    level: Level
    subject: str
    code: str
    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ''

    def __str__(self) -> str:
        """Return subject and text."""
        return f'{self.subject}: {self.text}' if self.subject else self.text

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a record for JSON."""
        return {**asdict(self), 'level': self.level.name.lower()}


_I, _W, _E = Level
NUMBER = re.compile(r'[-+]?\d[-+.\de]*')
MAX_NAMES = 6
"""Names in a text."""

CODES: dict[str, Code] = {
    'missing': Code(
        _W, '{what} missing in {share:.2%} of the samples', 0.0, '1',
        'stale, absent or invalid values; results that depend on them are NaN',
    ),
    'frozen': Code(
        _W, '{what} repeats one value, to the bit, in {share:.1%} of the samples', 0.05, 's',
        'a live sensor has noise; limit: `frozen_after` of the stream',
    ),
    'constant': Code(
        _W, '{what} is {value:.4g} in all {count} samples', 5.0, 'samples',
        'an FT channel or encoder that is not connected; live: an axis of a sensor whose others '
        'move',
    ),
    'clock': Code(
        _W, '{what}', None, 's', 'stamps go back, lie far apart, or have a unit that is not theirs'
    ),
    'no_derivative': Code(
        _W, 'derivatives are not known: {what}', None, '', 'the window of the filter never fills'
    ),
    'refused_message': Code(
        _W, '{count} messages or rows not used: {what}', 1.0, 'messages',
        'a frame, a type or a number that does not fit the configuration',
    ),
    'late_message': Code(
        _I, '{share:.0%} of the messages were recorded after the joint state of their stamp', 0.1,
        '1', 'a replay sorts them; a live node has the reading before them',
    ),
    'slow_contacts': Code(
        _W, 'contact ends and begins {count} times, at the period {period:.3g} s of its sender',
        None, 's', 'limit: `contact_timeout`; in between the default contacts are assumed',
    ),
    'late_cycle': Code(
        _W, '{count} cycles were late', 1.0, 'cycles', 'the computer is too busy'
    ),
    'inertia': Code(
        _W, '{what}', None, '', 'no rigid body has such a mass or inertia, or no link of a robot'
    ),
    'joint_limit': Code(
        _W, 'position {value:.4g}, limits of the URDF {lower:.4g} and {upper:.4g}', 0.1,
        'rad or m', 'wrong unit (of tables `log.positions.unit`), gear or column, or wrong limits',
    ),
    'rating': Code(
        _W, '{what} up to {value:.4g}, limit {limit:.4g}', 3.0, 'limits of the URDF',
        'wrong unit, axes, gear or column; in more than 10 % of the samples, of IMUs in 0.35 s, '
        'of FT sensors between two samples (1.5 weights of the robot, at least 440 N or Nm), or '
        'of the effort of one sample (five times the largest range of a joint)',
    ),
    'velocity': Code(
        _W, 'positions change {factor:.3g} times as fast as velocities state, with a correlation '
        'of {correlation:.2g}', 2.0, '1',
        'wrong unit, sign, gear or column of positions or velocities',
    ),
    'motion': Code(
        _W, 'does not move by more than {limit:g} rad or m', 0.01, 'rad or m',
        'parameters of links that move together are known as those of one body',
    ),
    'fault': Code(
        _W, '{kind}, which explains {explained:.0%} of what contradicts it in the log{others}',
        5.0, 'nats of log likelihood',
        'the one correction that explains most residuals of the log at once, beside usual errors '
        'of masses, centres of mass and FT matrices; those that explain as much are named with '
        'it; a contact does not explain it',
    ),
    'momentum': Code(
        _W, 'momentum and wrenches differ by {force:.2f} N and {moment:.3f} Nm in {time:.0f} s of '
        'the log', 4.0, 'standard deviations',
        'accelerations do not belong to the velocities: filter lag, stamps, biases; also more '
        'than a quarter of the change of momentum',
    ),
    'weight': Code(
        _W, 'carries {force:.1f} N, expected {weight:.1f} N (error {error:+.1%} of the weight)',
        0.05, 'weights', 'wrong FT offsets or masses, or another contact; of a submodel without '
        'contact the mean residual',
    ),
    'uninformed': Code(
        _W, 'no FT sensor informs the torques of {joints}', None, '',
        'they depend on model, motion and assumed contacts only',
    ),
    'second_support': Code(
        _W, 'level with the support in {share:.0%} of the samples, force changes by {change:.1f} '
        'N (standard deviation), {part:.1%} of the weight', 0.1, 'weights',
        'the support may not be the only contact while offsets are computed; or level within '
        '2 cm for more than half of the samples',
    ),
    'offset_drift': Code(
        _W, '{what}', None, 'N', 'offset or load of a sensor changed within the log'
    ),
    'matrix_change': Code(
        _E, 'wrenches by the new and by the former matrix differ by up to {change:.2g} times the '
        'smaller, limit 1', 1.0, '1', 'workshop matrices are rarely off by more than a third',
    ),
    'residual': Code(
        _W, '{what}: residual is {share:.0%} of the signal', 0.5, '1',
        'wrong unit, sign or column, or something that the equations lack',
    ),
    'scale': Code(
        _W, '{what}: measured is {factor:.2g} times the prediction of the URDF', 3.0, '1',
        'wrong unit, gear or sign, or wrong masses in the URDF',
    ),
    'unexcited': Code(
        _W, '{what}', None, '', 'the prior fills in what the data do not determine'
    ),
    'indefinite': Code(
        _W, '{what}', 0.0, '1', 'no rigid body, friction or drive has such parameters'
    ),
    'logs_disagree': Code(
        _W, '{what}: residual is {share:.0%} of the signal, {factor:.2g} times that of the other '
        'fit', 3.0, '1', 'signs, units, columns or payloads of one log differ from the others',
    ),
    'disturbed': Code(
        _I, '{share:.0%} of the equations rejected as disturbed by a contact', 0.02, '1',
        'from 40 % on the majority may be disturbed',
    ),
    'suboptimal': Code(
        _W, '{what}', None, '',
        'solver ended early, a bound holds the answer, or input could not be used',
    ),
    'update_rejected': Code(
        _W, '{what}', 1.0, '1', 'parameters that are inconsistent, of another robot, or by which '
        'the wrenches of untouched submodels are larger; limit: logarithm, summed over submodels',
    ),
}  # fmt: skip


def finding(code: str, subject: str, *, level: Level | None = None, **values: Any) -> Finding:
    """Return a finding; values: those of the text of its code, and further figures."""
    kind = CODES[code]
    text = kind.text.format(**values)
    return Finding(kind.level if level is None else level, subject, code, values, text)


def few(names: Sequence[str]) -> str:
    """Return the first of some names, and the number of the others."""
    more = f' and {len(names) - MAX_NAMES} more' if len(names) > MAX_NAMES else ''
    return ', '.join(names[:MAX_NAMES]) + more


def limit_of(code: str) -> float:
    """Return the limit of a code of `CODES` that has one."""
    limit = CODES[code].limit
    assert limit is not None
    return limit


def alike(findings: Iterable[Finding]) -> Iterator[tuple[Finding, list[str]]]:
    """Yield, of findings that differ in numbers and subject, the largest and other subjects."""
    groups: dict[tuple[Level, str, str], list[Finding]] = {}
    for one in findings:
        key = one.level, one.code, NUMBER.sub('', one.text)
        groups.setdefault(key, []).append(one)
    for group in groups.values():
        first = max(group, key=lambda one: one.values.get('share', one.values.get('change', 0.0)))
        subjects = dict.fromkeys(one.subject for one in group)
        subjects.pop(first.subject, None)
        yield first, [*subjects]


def raise_errors(findings: Iterable[Finding]) -> None:
    """Raise `LogError` with the findings of level ERROR, if there are any."""
    errors = []
    for first, others in alike(one for one in findings if one.level >= Level.ERROR):
        also = f' (also {", ".join(others)})' if others else ''
        errors.append(f'{first}{also}: {CODES[first.code].reason}')
    if errors:
        raise LogError('; '.join(errors))
