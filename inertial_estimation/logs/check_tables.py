# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a replay says about itself, and wrenches through joints, as tables of text."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import hypot, isnan

from inertial_estimation.logs.cause_table import cut
from inertial_estimation.logs.check_figures import (
    CrossChecks,
    MomentumFigures,
    MotionReport,
    NetReport,
    SensorResidualReport,
    SituationReport,
    ThroughReport,
)
from inertial_estimation.table import Row, Table

MOST_SENSORS = 16
"""Rows of residuals; the JSON file has all of them."""
SITUATIONS_SHOWN = 5
"""Likewise, of contacts and sensors that take part."""


def check_tables(checks: CrossChecks) -> tuple[Table, ...]:
    """Write cross-checks for a person."""
    return (
        _motion_table(checks.motions),
        _through_table(checks.through),
        _net_table(checks.net),
        _momentum_table(checks.momentum),
        _residual_table(checks.sensor_residuals, checks.residual_instants),
        _grounds_table(checks.situations, checks.situations_left_out),
    )


def _motion_table(motions: Sequence[MotionReport]) -> Table:
    rows = tuple((f'{m.kind} {", ".join(cut(m.names))}', m.text) for m in motions)
    return Table('Where motions come from', ('motion of', 'comes from'), rows)


def _through_table(through: Sequence[ThroughReport]) -> Table:
    columns = (
        'joint', 'in and about', 'samples', 'NaN [%]', 'force: rms [N]', 'largest',
        'moment: rms [Nm]', 'largest', 'obtained',
    )  # fmt: skip
    rows = tuple(
        (
            t.joint, t.frame, *_sizes(t), '; '.join(t.obtained),
        )
        for t in through
    )  # fmt: skip
    return Table('Wrenches through joints, parent link on child link', columns, rows)


def _net_table(net: Sequence[NetReport]) -> Table:
    columns = (
        'link', 'samples', 'NaN [%]', 'force: rms [N]', 'largest', 'moment: rms [Nm]', 'largest',
    )  # fmt: skip
    rows = tuple((report.link, *_sizes(report)) for report in net)
    return Table('Net wrenches of links', columns, rows)


def _sizes(report: ThroughReport | NetReport) -> Row:
    """Return how often a wrench is known, and how large it is."""
    return (
        str(report.n_samples), f'{100.0 * report.nan_share:.1f}', f'{report.rms_force_n:.2f}',
        f'{report.max_force_n:.2f}', f'{report.rms_moment_nm:.3f}', f'{report.max_moment_nm:.3f}',
    )  # fmt: skip


def _momentum_table(found: MomentumFigures | None) -> Table:
    title = 'Does the momentum change as the wrenches say, at fifty instants a second'
    columns = ('', 'windows', 'unexplained, rms', 'change, rms', 'noise', 'doubtful windows from')
    if found is None:
        return Table(title, columns, ())
    doubt = '; '.join(cut([f'{a:.1f} s to {b:.1f} s' for a, b in found.doubtful_s]))
    doubt = doubt or (found.noise_lack and f'not told: {found.noise_lack}')
    rows = (
        (
            'force [N]', str(found.windows), f'{found.unexplained_force_n:.3f}',
            f'{found.change_of_linear_momentum_n:.3f}', _known(found.noise_force_n, 3), doubt,
        ),
        (
            'moment [Nm]', '', f'{found.unexplained_moment_nm:.4f}',
            f'{found.change_of_angular_momentum_nm:.4f}', _known(found.noise_moment_nm, 4), '',
        ),
    )  # fmt: skip
    return Table(title, columns, rows)


def _known(value: float, digits: int) -> str:
    return 'not known' if isnan(value) else f'{value:.{digits}f}'


def _residual_table(residuals: Sequence[SensorResidualReport], n_instants: int) -> Table:
    told = sorted(
        (r for r in residuals if r.n_instants),
        key=lambda r: (not r.doubtful, -r.rms / max(r.noise, 1e-12)),
    )
    title = f'Sensors against all others, at {n_instants} instants'
    if len(told) > MOST_SENSORS:
        title += f', worst {MOST_SENSORS} of {len(told)}'
    rows = tuple(
        (
            r.sensor, f'{r.quantity.replace("_", " ")} [{r.unit}]', str(r.n_instants),
            f'{r.rms:.4g}', f'{r.largest:.4g}', f'{hypot(*r.mean):.4g}',
            f'{"" if r.noise_is_whole else "over "}{r.noise:.4g}', f'{r.rms_change:.4g}',
            'yes' if r.doubtful else '',
        )
        for r in told[:MOST_SENSORS]
    )  # fmt: skip
    columns = (
        'sensor', 'quantity', 'instants', 'rms', 'largest', 'mean', 'noise', 'change of reading',
        'doubtful',
    )  # fmt: skip
    return Table(title, columns, rows)


def _grounds_table(situations: Sequence[SituationReport], left_out: int) -> Table:
    """Return what torques rest on; of rarer situations what differs from the first one."""
    rows: list[Row] = []
    usual: dict[str, Hashable] = {}
    for situation in situations[:SITUATIONS_SHOWN]:
        groups = _groups(situation, usual)
        head = situation.label, f'{100.0 * situation.sample_share:.1f}'
        for (fts, imus), joints in groups.items():
            named = ', '.join(fts) or 'none: model and motion alone'
            rows.append((*head, ', '.join(cut(joints)), named, ', '.join(cut(imus))))
            head = '', ''
        usual = usual or {t.name: (t.fts, t.imus) for t in situation.torques}
        if not groups:
            rows.append((*head, 'all as above', '', ''))
    hidden = situations[SITUATIONS_SHOWN:]
    if hidden:
        share = 100.0 * sum(situation.sample_share for situation in hidden)
        rows.append((f'{len(hidden)} more, see the JSON file', f'{share:.1f}', '', '', ''))
    if left_out:
        rows.append((f'{left_out} rare ones, not looked into', '', '', '', ''))
    columns = ('contacts and sensors', 'samples [%]', 'torques of', 'FT sensors', 'IMUs')
    return Table('What the torques rest on', columns, tuple(rows))


def _groups(
    situation: SituationReport, usual: dict[str, Hashable]
) -> dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]]:
    """Return joints by the sensors that their torques rest on, unless that is as usual."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for torque in situation.torques:
        if usual.get(torque.name) != (torque.fts, torque.imus):
            groups.setdefault((torque.fts, torque.imus), []).append(torque.name)
    return groups
