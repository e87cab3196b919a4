# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Compare recorded estimates with the truth of the same stamp.

The force error is the rms length of a contact's force error over samples and contacts, the torque
error the rms over samples and joints.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.signals.cdr import NANOSECONDS

FORCE_LIMIT = 1.0
"""Force error of an estimator [N]."""
GAIN_LIMIT = 0.15
"""Share of the force error with one IMU that several IMUs save."""
LOAD_TIME = 10.0
"""Time from the pick-up to the score of the identification [s]."""
MASS_LIMIT, CENTER_LIMIT = 0.05, 0.01
"""Errors of the load: mass over the true mass, and centre of mass [m]."""
FALSE_FORCE_LEAST, FALSE_FORCE_LIMIT = 8.0, 1.0
"""External force estimated in place of the load: least at first, limit after `LOAD_TIME` [N]."""
AGE_LIMIT, MISSED_LIMIT = 0.05, 0.2
"""Median age [s] and share of missed cycles above which the machine is too slow."""


class Goal(NamedTuple):
    """A figure and its limit."""

    name: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def reached(self) -> bool:
        """True if the value meets the limit."""
        return bool(self.value >= self.limit if self.at_least else self.value <= self.limit)


class Recording:
    """Recorded estimates and true values of a scene."""

    def __init__(self, path: Path, robot: str) -> None:
        with np.load(path) as data:
            self._data = {name: data[name] for name in data.files}
        self.robot = robot
        self.events = json.loads(str(self._data['events']))

    def values(
        self, topic: str, names: Sequence[str] | None = None
    ) -> tuple[NDArray[np.int64], Array]:
        """Return stamps (n,) [ns] and values (n, n_names, width) of a topic, in order of names."""
        known = self._data[f'{topic}/names'].tolist()
        order = [known.index(name) for name in (known if names is None else names)]
        return self._data[f'{topic}/stamps'], self._data[f'{topic}/values'][:, order]

    def errors(
        self, estimator: str, topic: str, names: Sequence[str] | None = None
    ) -> tuple[NDArray[np.int64], Array, int]:
        """Return stamps, errors (n, n_names, width), and the cycles since the first estimate."""
        if names is None:
            names = self._data[f'{self.robot}/{topic}/names'].tolist()
        true_stamps, true = self.values(f'{self.robot}/{topic}', names)
        stamps, found = self.values(f'{estimator}/{topic}', names)
        finite = np.isfinite(found).all(axis=(1, 2))
        stamps, found = stamps[finite], found[finite]
        common, of_true, of_found = np.intersect1d(true_stamps, stamps, return_indices=True)
        expected = 0
        if len(common):
            # A busy robot leaves some of its own out.
            expected = 1 + round((common[-1] - common[0]) / np.diff(true_stamps).min())
        return common, found[of_found] - true[of_true], expected

    def figures(self, estimator: str) -> dict[str, float]:
        """Return errors, missed cycles and ages of an estimator."""
        _, wrenches, expected = self.errors(estimator, 'external_wrenches')
        _, torques, _ = self.errors(estimator, 'joint_torques')
        topic = f'{estimator}/external_wrenches'
        ages = 1e-9 * (self._data[f'{topic}/arrivals'] - self._data[f'{topic}/stamps'])
        age = np.percentile(ages, (50, 99, 100))
        squares = (wrenches**2).mean(axis=0)
        return {
            'force_n': float(np.sqrt(squares[:, :3].sum(axis=1).mean())),
            'moment_nm': float(np.sqrt(squares[:, 3:].sum(axis=1).mean())),
            'torque_nm': float(np.sqrt((torques**2).mean())),
            'missed_cycles': float(expected - len(wrenches)),
            'missed_share': 1.0 - len(wrenches) / max(expected, 1),
            **dict(zip(('age_p50_s', 'age_p99_s', 'age_max_s'), age.tolist(), strict=True)),
        }


def push_goals(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Goal]:
    """Compare figures by scene and estimator (one IMU first) with the goals."""
    worst = max(one['force_n'] for scene in figures.values() for one in scene.values())
    goals = [Goal('largest force error [N]', worst, FORCE_LIMIT)]
    for scene, by_estimator in figures.items():
        one, several = (found['force_n'] for found in by_estimator.values())
        name = f'{scene}: share of the force error that several IMUs save'
        goals.append(Goal(name, 1.0 - several / one, GAIN_LIMIT, at_least=True))
    return goals


def score_load(
    recording: Recording,
    identifier: str,
    updated: str,
    links: tuple[str, ...],
    submodel: str,
    urdf_mass: float,
) -> tuple[dict[str, Any], list[Goal]]:
    """Return figures and goals of the load."""
    loads, updates, payloads = (
        [event for event in recording.events if event['topic'] == topic]
        for topic in (f'{recording.robot}/load', 'inertial_parameters', f'{identifier}/payloads')
    )
    if not loads:
        return {'updates': len(updates)}, [Goal('loads picked up', 0.0, 1.0, at_least=True)]
    load, up = loads[0], loads[0]['stamp']
    end = up + round(LOAD_TIME * NANOSECONDS)
    parameters = [
        (one['stamp'], one['label'].split(), np.reshape(one['data'], (-1, 10))) for one in updates
    ]
    margins = [float(consistency_margin(body).min()) for _, _, body in parameters]

    def mass(until: int) -> float:
        known = [(names, body) for stamp, names, body in parameters if stamp <= until]
        if not known:
            return urdf_mass
        names, body = known[-1]
        return float(body[[names.index(link) for link in links], 0].sum())

    payload, found = f'{submodel}: {load["frame"]}', [np.nan] * 4
    for one in payloads:
        labels = one['label'].split('; ')
        if one['stamp'] <= end:
            known = dict(zip(labels, np.reshape(one['data'], (len(labels), -1)), strict=True))
            found = list(known.get(payload, [np.nan] * 4)[:4])
    stamps, errors, _ = recording.errors(updated, 'external_wrenches', [load['frame']])
    squares = (errors[:, 0, :3] ** 2).sum(axis=1)
    first, last = (
        float(np.sqrt(squares[(stamps >= start) & (stamps < start + NANOSECONDS)].mean()))
        for start in (up, end - NANOSECONDS)
    )
    gain = mass(end) - mass(up)
    center = float(np.linalg.norm(np.subtract(found[1:], load['center'])))
    figures = {
        'load_kg': load['mass'], 'arm_heavier_by_kg': gain, 'found_kg': float(found[0]),
        'center_error_m': center, 'false_force_first_n': first, 'false_force_last_n': last,
        'updates': len(updates),
    }  # fmt: skip
    limit, what = MASS_LIMIT * load['mass'], f'{LOAD_TIME:g} s after {load["mass"]:g} kg'
    return figures, [
        Goal(f'{what}: error of the arm mass [kg]', abs(gain - load['mass']), limit),
        Goal(f'{what}: error of its mass [kg]', abs(found[0] - load['mass']), limit),
        Goal(f'{what}: error of its centre of mass [m]', center, CENTER_LIMIT),
        Goal('false force at the hand at first [N]', first, FALSE_FORCE_LEAST, at_least=True),
        Goal(f'{what}: false force at the hand [N]', last, FALSE_FORCE_LIMIT),
        Goal('smallest pseudo-inertia eigenvalue', min(margins, default=np.nan), 0.0, True),
    ]
