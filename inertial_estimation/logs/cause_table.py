# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The causes of NaN and doubt as a table: one line a cause."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from inertial_estimation.logs.figures import CauseReport, ReplayReport
from inertial_estimation.logs.wording import describe
from inertial_estimation.table import Row, Table

MOST_NAMES = 6
"""Longer lists are cut; the JSON file has all of them."""


def cause_table(report: ReplayReport) -> Table:
    """Write why results are NaN or in doubt."""
    groups: dict[Hashable, list[CauseReport]] = {}
    for k, c in enumerate(report.causes):
        when = (c.state, c.n_samples, c.first_s, c.last_s, c.nan_contacts, c.doubtful_contacts)
        groups.setdefault((c.kind, when) if c.kind == 'joint' else k, []).append(c)
    columns = ('cause', 'samples [%]', 'from [s]', 'to [s]', 'NaN', 'in doubt')
    rows = tuple(_row(group, report) for group in groups.values())
    return Table('Why results are NaN or in doubt', columns, rows)


def _row(group: Sequence[CauseReport], report: ReplayReport) -> Row:
    first = group[0]
    always = first.n_samples == report.n_samples
    names = cut([cause.name for cause in group])
    lost = _results(first.nan_contacts, [t for c in group for t in c.nan_torques], report)
    if first.gave_way_to and first.kind == 'ft':
        lost += f' (gave way to {", ".join(first.gave_way_to)})'
    torques = [t for cause in group for t in cause.doubtful_torques]
    return (
        describe(first.kind, names, first.state, always=always),
        f'{100.0 * first.sample_share:.1f}',
        f'{first.first_s:.2f}',
        f'{first.last_s:.2f}',
        lost,
        _results(first.doubtful_contacts, torques, report),
    )


def _results(contacts: Sequence[str], torques: Sequence[str], report: ReplayReport) -> str:
    """Return contacts and torques in few words."""
    order = [torque.joint for torque in report.estimated_torques]
    joints = [joint for joint in order if joint in torques]
    parts = []
    if contacts:
        every = 1 < len(report.wrenches) == len(contacts)
        parts.append('all contacts' if every else ', '.join(cut(contacts)))
    if joints:
        every = 1 < len(order) == len(joints)
        named = f'torque{"s" if len(joints) > 1 else ""} of {", ".join(cut(joints))}'
        parts.append('all torques' if every else named)
    return '; '.join(parts)


def cut(names: Sequence[str]) -> list[str]:
    """Return the first of many names, and how many more there are."""
    if len(names) <= MOST_NAMES:
        return list(names)
    return [*names[: MOST_NAMES - 1], f'{len(names) - MOST_NAMES + 1} more']
