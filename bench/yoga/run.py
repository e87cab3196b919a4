# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""All that is shown of identification beside a real iCub on one foot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.run import GOAL_COLUMNS, Goal
from bench.yoga.log import FREE, YogaLog
from bench.yoga.predictions import (
    DEFAULT,
    IDENTIFIED,
    NONE,
    PAST,
    WAYS,
    Choice,
    Told,
    as_told,
    errors,
    follow,
    rms,
    submodels,
    telling,
)
from bench.yoga.told_from_less import EASILY_TOLD, Chosen, choices_table
from inertial_estimation.identification.recursion.identifier import equal_parts
from inertial_estimation.table import Table

Array = NDArray[np.float64]

OF_CONSTANT, OF_NONE = 1.05, 0.1
"""Error over that with the best constant offset of the past, and over that without offset."""
SECOND = 1.0
"""Of stretches [s]."""
SAME = 0.02
"""How far errors of the node and of the library may be apart, over the latter."""
GROUPS = {'forces': 'N', 'moments': 'Nm'}
LIBRARY, NODE = 'library', 'node, played in real time'


class Played(NamedTuple):
    """What the node made of the log."""

    told: tuple[Told, ...]
    sent: int
    """Messages of the log."""
    samples: int
    """That the node made of them."""
    update_margins: tuple[float, ...]
    """Smallest eigenvalue of a body in each update that it published."""


@dataclass(frozen=True, eq=False)
class Yoga:
    """What was found."""

    errors: Mapping[str, Mapping[str, Array]]
    """By who predicted, then by `WAYS`, shape (n, 2, 6) each [N, Nm]."""
    told: Mapping[str, Sequence[Told]]
    """By who told it."""
    choices: Mapping[Choice, Chosen]
    """What came of other choices, and of the node's."""
    played: Played | None
    apart: float | None
    """
    How far errors of the node are off those of the library if it refits at the same instants, over
    these, largest; None: it was not played.
    """

    @property
    def goals(self) -> tuple[Goal, ...]:
        """What is to be reached."""
        found = [goal for who in self.errors for goal in self._goals_of(who)]
        margin = min(one.least_margin for one in self.choices.values())
        name = 'told from less: smallest eigenvalue of a body'
        found.append(Goal(name, margin, 0.0, at_least=True))
        if self.apart is not None:
            name = 'node: errors off those of the library, over these, largest'
            found.append(Goal(name, self.apart, SAME))
        return tuple(found)

    def tables(self) -> tuple[Table, ...]:
        """Return all for a person."""
        goals = Table('One foot', GOAL_COLUMNS, tuple(goal.row for goal in self.goals))
        return (
            *(self._errors_table(who) for who in self.errors),
            self._told_table(),
            choices_table(self.choices),
            goals,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return all for a machine."""
        found: dict[str, Any] = {
            'goals': [
                {'name': goal.name, 'value': goal.value, 'limit': goal.limit,
                 'reached': bool(goal.reached)}
                for goal in self.goals
            ],
        }  # fmt: skip
        for who, by_way in self.errors.items():
            found[who] = {
                'instants': len(by_way[NONE]),
                'refits': len(self.told[who]),
                'refits_that_tell_bodies': telling(self.told[who]),
                'least_eigenvalue': min(one.least_margin for one in self.told[who]),
                'rms': {
                    sensor: {
                        way: dict(zip(GROUPS, rms(by_way[way])[k].tolist(), strict=True))
                        for way in WAYS
                    }
                    for k, sensor in enumerate(FREE)
                },
            }
        found['told_from_less'] = [
            {**choice._asdict(), **one._asdict()} for choice, one in self.choices.items()
        ]
        if self.played is not None:
            found[NODE]['messages'] = self.played.sent
            found[NODE]['samples'] = self.played.samples
            found[NODE]['updates'] = len(self.played.update_margins)
        return found

    def _goals_of(self, who: str) -> list[Goal]:
        """Return those of one of them."""
        sizes = {way: rms(self.errors[who][way]) for way in WAYS}
        found = []
        for beside, limit in ((PAST, OF_CONSTANT), (NONE, OF_NONE)):
            shares = sizes[IDENTIFIED] / sizes[beside]
            for k, sensor in enumerate(FREE):
                for j, group in enumerate(GROUPS):
                    name = f'{who}: {sensor}, {group}: error / {beside}'
                    found.append(Goal(name, float(shares[k, j]), limit))
        margins = [one.least_margin for one in self.told[who]]
        if who == NODE and self.played is not None:
            margins += self.played.update_margins
        name = f'{who}: smallest eigenvalue of a body'
        found.append(Goal(name, float(min(margins)), 0.0, at_least=True))
        return found

    def _errors_table(self, who: str) -> Table:
        """Return how large errors are, each way."""
        sizes = {way: rms(self.errors[who][way]) for way in WAYS}
        rows = [
            (sensor, f'{group} [{unit}]', *(f'{sizes[way][k, j]:.3g}' for way in WAYS))
            for k, sensor in enumerate(FREE)
            for j, (group, unit) in enumerate(GROUPS.items())
        ]
        title = f'Readings of the second to come ({who}): rms error of a component'
        return Table(title, ('sensor', 'of', *WAYS), tuple(rows))

    def _told_table(self) -> Table:
        """Return what was told."""
        rows = []
        for who, told in self.told.items():
            updates = '' if self.played is None or who != NODE else str(
                len(self.played.update_margins))  # fmt: skip
            rows.append((
                who, str(len(told)), str(telling(told)), ', '.join(submodels(told)), updates,
            ))  # fmt: skip
        columns = ('', 'refits', 'of them tell bodies', 'of submodels', 'updates published')
        return Table('Refits', columns, tuple(rows))


def compare(log: YogaLog, played: Played | None = None) -> Yoga:
    """Predict by what the library finds, and by what the node found."""
    by_choice = {
        choice: follow(log.robot, equal_parts(log.samples, SECOND), choice)
        for choice in (DEFAULT, *EASILY_TOLD)
    }
    choices = {
        choice: Chosen.of(said, errors(log.robot, log.samples, said))
        for choice, said in by_choice.items()
    }
    told: dict[str, Sequence[Told]] = {LIBRARY: by_choice[DEFAULT]}
    if played is not None:
        told[NODE] = played.told
    found = {who: errors(log.robot, log.samples, said) for who, said in told.items()}
    apart = None if played is None else _apart(log, found[NODE], played.told)
    return Yoga(found, told, choices, played, apart)


def played_of(answer: Mapping[str, Any]) -> Played:
    """Return what the process with the node says."""
    told = tuple(
        Told(
            int(one['stamp_ns']),
            np.array(one['parameters']),
            np.array([one['offsets'].get(name, [np.nan] * 6) for name in FREE]),
            tuple(one['refitted']),
            float(one['least_margin']),
        )
        for one in answer['refits']
    )
    margins = tuple(map(float, answer['update_margins']))
    return Played(told, int(answer['sent']), int(answer['samples']), margins)


def _apart(log: YogaLog, of_node: Mapping[str, Array], told: Sequence[Told]) -> float:
    """Return how far errors are apart where both refit at the same instants."""
    again = follow(log.robot, as_told(log.samples, told))
    meanwhile = [one for one in again if one.stamp_ns >= told[0].stamp_ns]
    wanted = rms(errors(log.robot, log.samples, meanwhile)[IDENTIFIED])
    return float(np.abs(rms(of_node[IDENTIFIED]) / wanted - 1.0).max())
