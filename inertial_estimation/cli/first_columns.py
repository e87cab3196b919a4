# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""First settings of identification from a table: which columns hold what, and in which unit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree.ElementTree import Element

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.cli.first_settings import FirstSettings
from inertial_estimation.cli.robot_check import usable_joints
from inertial_estimation.errors import CallError, LogError, NameNotFound
from inertial_estimation.logs.table_formats import UNITS, Table, load_table
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import limits_of, parse

NAMES = {
    'time': 't|time|stamp|timestamp',
    'positions': 'q|pos|position|positions|joint_position|joint_positions|theta',
    'velocities': 'v|dq|qd|qdot|vel|velocity|velocities|joint_velocity|joint_velocities',
    'efforts': 'tau|torque|torques|effort|efforts|joint_torque|joint_torques|current|currents',
}
"""Of columns; of one joint with its name or number behind it."""
SLIDING = {'rad': 'm', 'deg': 'm', 'rad/s': 'm/s', 'deg/s': 'm/s', 'Nm': 'N'}
"""Units of prismatic joints in place of those of others."""
MIN_ROWS = 10
"""Of a table, whose derivatives are compared."""
TURNING = 'rad/s', 'deg/s', 'rpm'
MAX_UNIT_ERROR = 0.2
"""Logarithm of the factor that is left between velocities and the rates of positions."""
FRICTION = ['viscous', 'coulomb', 'offset']


def first_columns(urdf: str, path: str | Path, joints: Sequence[str] = ()) -> FirstSettings:
    """
    Decide the settings of ``identify`` by the URDF of an arm and a table with its joint efforts.

    Raises
    ------
    ModelError
        If the URDF cannot be used.
    LogError
        If the columns of times, positions or efforts are not found.
    CallError
        If they have other numbers of joints.

    """
    root, table, found = parse(urdf), load_table(path), FirstSettings()
    columns = {kind: _columns(table, words, root) for kind, words in NAMES.items()}
    if lacking := [kind for kind in ('time', 'positions', 'efforts') if not columns[kind]]:
        shapes = ', '.join(f'{name} {values.shape}' for name, values in table.columns.items())
        names = '; '.join(f'{kind} ({NAMES[kind].replace("|", ", ")})' for kind in lacking)
        raise LogError(f'{path}: no column is named for {names}; it has {shapes}')
    values = {
        kind: np.hstack([table.column(name, kind) for name in names])
        for kind, names in columns.items() if names
    }  # fmt: skip
    joints, known = list(joints), usable_joints(root)[0]
    joints = joints or _joints(table, columns['positions'], root)
    for name in joints:
        if name not in known:
            raise NameNotFound('joint', name, known)
        if joints.count(name) > 1:
            raise CallError(f"'joints' names '{name}' more than once", about=('joints',))
    for kind, array in values.items():
        if kind != 'time' and array.shape[1] != len(joints):
            what = f'{path}: {array.shape[1]} columns of {kind} and {len(joints)} joints'
            raise CallError(f"{what}: name those of the columns as 'joints'", about=('joints',))
        if len(array) != len(values['time']) or len(array) < MIN_ROWS:
            what = f'{len(array)} rows of {kind} and {len(values["time"])} of time'
            raise LogError(f'{path}: {what}, expected as many, at least {MIN_ROWS}')
        if not np.isfinite(array).any():
            raise LogError(f'{path}: {kind} hold no finite numbers')
    tags = {tag.get('name', ''): tag for tag in root.findall('joint')}
    slides = np.array([tags[name].get('type') == 'prismatic' for name in joints])
    units = {'time': _time_unit(values['time']), 'positions': 'rad', 'efforts': 'Nm'}
    t, q = values['time'][:, 0] * UNITS['time'][units['time']], values['positions']
    if _beyond_limits(q, [limits_of(tags[name]) for name in joints], slides):
        units['positions'] = 'deg'
        q = q * np.where(slides, 1.0, UNITS['positions']['deg'])
    if 'velocities' in values:
        rates = np.gradient(q, t, axis=0)[:, ~slides]
        factor = _factor(values['velocities'][:, ~slides], rates)
        errors = {unit: abs(np.log(abs(factor) / UNITS['velocities'][unit])) for unit in TURNING}
        units['velocities'] = min(errors, key=lambda unit: errors[unit])
        if not errors[units['velocities']] <= MAX_UNIT_ERROR or factor < 0.0:
            found.notes.append(f'velocities not used: positions change {factor:.3g} times as fast')
            columns['velocities'] = []
    base = Robot.from_urdf(urdf, joints=joints, ft_sensors=(), imus=()).link_names[0]
    found.set('robot.fixed_link', base)
    found.set('robot.joints', joints)
    found.set('robot.ft_sensors', [], 'No cut: the efforts of joints give the equations.')
    found.set('log.time.columns', columns['time'])
    found.set('log.time.unit', units['time'])
    found.set('log.joints', joints)
    is_current = any('current' in name for name in columns['efforts'])
    for kind in ('positions', 'velocities', 'efforts'):
        if columns[kind]:
            unit = 'A' if is_current and kind == 'efforts' else units[kind]
            found.set(f'log.{kind}.columns', columns[kind])
            mixed = [SLIDING.get(unit, unit) if one else unit for one in slides]
            found.set(f'log.{kind}.unit', mixed if slides.any() else unit)
            used = '; '.join(dict.fromkeys(mixed))
            found.notes.append(f'{kind}: {", ".join(columns[kind])} [{used}]')
    found.set('rows.efforts', 'all')
    if is_current:
        why = 'Efforts are currents. State log.efforts.scale [Nm/A] instead, or a known payload.'
        found.set('rows.gains', joints, why)
        found.notes.append(why)
    found.set('rows.friction', FRICTION)
    return found


def _columns(table: Table, words: str, root: Element) -> list[str]:
    """Return the column of a kind, or those of it by joint or number."""
    joints, _ = usable_joints(root)
    found: dict[str, list[tuple[int, str]]] = {}
    for name in table.columns:
        for word in words.split('|'):
            rest = name[len(word) :] if name.lower().startswith(word) else None
            if rest == '':
                return [name]
            suffix = (rest or '').lstrip('_. ')
            if suffix.isdigit() or suffix in joints:
                place = int(suffix) if suffix.isdigit() else joints.index(suffix)
                found.setdefault(word, []).append((place, name))
    best = max(found.values(), key=lambda some: len(some), default=[])
    return [name for _, name in sorted(best)]


def _joints(table: Table, columns: list[str], root: Element) -> list[str]:
    """Return the joints of columns: by their names, a column of names, or all of the URDF."""
    usable, _ = usable_joints(root)
    named = [name for one in columns for name in usable if one.endswith(name)]
    if len(named) == len(columns):
        return named
    stated = [one.tolist() for one in table.columns.values() if one.dtype.kind == 'U']
    return next((names for names in stated if set(names) <= set(usable)), usable)


def _time_unit(values: Array) -> str:
    """Return the unit of times between 5 us and 0.5 s apart."""
    step = float(np.median(np.diff(values[:, 0])))
    return 's' if step < 0.5 else 'ms' if step < 500.0 else 'us' if step < 5e5 else 'ns'


def _beyond_limits(q: Array, limits: list[dict[str, float]], slides: Mask) -> bool:
    """Return true if turning joints leave their limits, or three turns, by far."""
    turns = 6.0 * np.pi
    greatest = [max(abs(one.get('lower', turns)), abs(one.get('upper', turns))) for one in limits]
    return bool((np.nanmax(np.abs(q), axis=0) > 2.0 * np.array(greatest))[~slides].any())


def _factor(values: Array, rates: Array) -> float:
    """Return how often the values fit into the rates, by least squares."""
    known = np.isfinite(values) & np.isfinite(rates)
    squares = float(np.sum(values[known] ** 2))
    return float(np.sum(values[known] * rates[known])) / squares if squares > 0.0 else np.nan
