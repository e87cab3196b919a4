# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A calibration session on disk, so that it can be stopped and gone on with.

Still moments are kept with every digit, and what the session is about, so that moments of another
sensor, of other loads or of another accelerometer are not mixed into it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from inertial_estimation.calibration.collection import Collection, Moment
from inertial_estimation.calibration.session import Plan, Session
from inertial_estimation.errors import ConfigError
from inertial_estimation.output import write_whole

KIND, VERSION = 'ft_calibration_session', 1
STATED = ('rotation', 'direction', 'loads')
"""Of a plan: what a person says, and readings do not depend on."""


def save_session(path: Path, session: Session) -> None:
    """Write a session as a whole, or leave what was there."""
    sets = [_set(one) for one in session.collections]
    content = {'version': VERSION, 'plan': _plan(session.plan), 'closed': session.is_closed,
               'data_sets': sets}  # fmt: skip
    write_whole(path, json.dumps({KIND: content}) + '\n')


def load_session(path: Path, plan: Plan, *, restated: bool = False) -> Session:
    """Read a session to go on with it."""
    content = _content(path)
    then = content.get('plan')
    if not isinstance(then, Mapping):
        raise ConfigError(f"'{path}' holds no plan: begin anew with another file")
    _require_same(path, _plan(plan), then, restated=restated)
    session = Session(plan)
    try:
        sets = content['data_sets']
        if not 1 <= len(sets) <= len(plan.loads):
            raise ValueError(f'{len(sets)} data sets of {len(plan.loads)} loads')
        session.collections = [_collection(plan, one) for one in sets]
    except (KeyError, TypeError, ValueError) as error:
        said = f"'{path}' is damaged ({error}): begin anew with another file"
        raise ConfigError(said) from error
    if content.get('closed'):
        session.begin_next()
    return session


def _require_same(
    path: Path, now: Mapping[str, Any], then: Mapping[str, Any], *, restated: bool
) -> None:
    """Raise if a session was about something else."""
    for key, value in now.items():
        if _agree(key, value, then.get(key), restated=restated):
            continue
        how = ''
        if key in STATED and not restated:
            how = ", give 'restate' if that was stated wrong"
        raise ConfigError(
            f"'{path}' is a session whose {key} is {json.dumps(then.get(key))}, not "
            f'{json.dumps(value)}: go on as it began{how}, or begin anew with another file',
            about=('restate',),
        )


def _agree(key: str, now: Any, then: Any, *, restated: bool) -> bool:
    """Tell whether what is said of a session now goes with what was said before."""
    if key == 'loads' and isinstance(then, list):
        # A matrix that was refused may need a further load.
        known = now[: len(then)]
        return len(known) == len(then) if restated else bool(known == then)
    return bool(now == then) or (restated and key in STATED)


def _content(path: Path) -> Mapping[str, Any]:
    """Return what a file holds."""
    try:
        content = json.loads(path.read_text(encoding='utf-8'))
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot read '{path}': {error}") from error
    found = content.get(KIND) if isinstance(content, Mapping) else None
    if not isinstance(found, Mapping):
        raise ConfigError(f"'{path}' is no calibration session: it has no '{KIND}'")
    if found.get('version') != VERSION:
        raise ConfigError(f"'{path}' is of version {found.get('version')}, expected {VERSION}")
    return found


def _plan(plan: Plan) -> dict[str, Any]:
    """Return what must not change on the way."""
    return {
        'sensor': plan.sensor,
        'gravity': plan.gravity,
        'rotation': None if plan.rotation is None else np.asarray(plan.rotation).tolist(),
        'direction': int(plan.direction),
        'loads': [[load.name, float(load.mass), *map(float, load.centre)] for load in plan.loads],
    }


def _set(one: Collection) -> dict[str, Any]:
    """Return a data set as JSON holds it."""
    return {
        'left_out': dict(one.left_out),
        'moments': [
            [m.stamp_ns, m.n_readings, *m.raw.tolist(), *m.acceleration.tolist(),
             *m.spread.tolist()]
            for m in one.moments
        ],
    }  # fmt: skip


def _collection(plan: Plan, said: Mapping[str, Any]) -> Collection:
    """Return a data set that was written."""
    found = Collection(plan.metric, plan.wanted)
    for stamp_ns, n_readings, *values in said['moments']:
        numbers = np.array(values, dtype=np.float64)
        if numbers.shape != (15,) or not np.isfinite(numbers).all():
            raise ValueError('a moment is not 15 finite numbers')
        found.add(Moment(int(stamp_ns), numbers[:6], numbers[6:9], numbers[9:], int(n_readings)))
    for why, n in said['left_out'].items():
        found.left_out[str(why)] += int(n)
        found.received += int(n)
    return found
