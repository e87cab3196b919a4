# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Gains of drives, and what they are good for, as tables and as figures for a machine."""

from __future__ import annotations

from typing import Any

from inertial_estimation.table import Table
from real_arms.drive_gains import (
    LOADED,
    OTHERS,
    SPLIT,
    UNLOADED,
    DriveGains,
    Gain,
)


def gain_tables(found: DriveGains) -> list[Table]:
    """Return the gains, the payload weighed with them, and errors of what was not fitted."""
    return [_gains(found), _weighed(found), _predicted(found)]


def gain_figures(found: DriveGains) -> dict[str, Any]:
    """Return the same for a machine."""
    return {
        'joints': found.joints,
        'payload': found.mass,
        'gains': {name: [gain._asdict() for gain in gains] for name, gains in found.gains.items()},
        'weighed': {
            name: {**one._asdict(), 'heavier': one.heavier.tolist()}
            for name, one in found.weighed.items()
        },
        'predicted': found.predicted,
    }


def _gains(found: DriveGains) -> Table:
    """Return the gains by where they come from."""
    rows = tuple(
        (joint, *(_written(gains[k]) for gains in found.gains.values()))
        for k, joint in enumerate(found.joints)
    )
    title = (
        f'Drive gains of the UR10e with a payload of {found.mass:g} kg [N m/A]: published sets, '
        f'and identified from {UNLOADED} and {LOADED}'
    )
    return Table(title, ('joint', *found.gains), rows)


def _weighed(found: DriveGains) -> Table:
    """Return what the payload weighs."""
    rows = tuple(
        (
            name,
            f'{one.mass:.3f} +- {one.deviation:.3f}',
            f'{one.heavier.sum():.1f}',
            f'{one.heavier.min():.1f} to {one.heavier.max():.1f}',
        )
        for name, one in found.weighed.items()
    )
    title = (
        f'The payload of {found.mass:g} kg, weighed with gains that are taken for known [kg]; '
        'beside it two identifications, of the unloaded and then of the loaded log'
    )
    columns = ('gains', 'payload', 'second - first, all links', 'single links')
    return Table(title, columns, rows)


def _predicted(found: DriveGains) -> Table:
    """Return errors of logs that were not fitted."""
    columns = [
        (f'{logs}: {name}', errors)
        for logs, by_gains in found.predicted.items()
        for name, errors in by_gains.items()
    ]
    rows = tuple(
        (row, *(f'{100 * errors[k]:.2f}' for _, errors in columns))
        for k, row in enumerate((*found.joints, 'all efforts'))
    )
    title = (
        f'Held-out errors with these gains, the mass of the payload known [%]: {UNLOADED} and '
        f'{LOADED}@:{SPLIT} fitted; predicted is the loaded log @{SPLIT}:, or the other runs '
        f'{", ".join(OTHERS)}'
    )
    return Table(title, ('joint', *(name for name, _ in columns)), rows)


def _written(gain: Gain) -> str:
    """Return a gain, with its deviation if it was found."""
    spread = '' if gain.deviation is None else f' +- {gain.deviation:.2f}'
    return f'{gain.value:.2f}{spread}'
