# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a replay as tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isnan

from inertial_estimation.logs.cause_table import cause_table
from inertial_estimation.logs.check_tables import check_tables
from inertial_estimation.logs.figures import (
    EstimatedTorqueReport,
    OffsetReport,
    ReplayReport,
    ResidualReport,
    StreamReport,
    SupportReport,
    TorqueReport,
    WrenchReport,
)
from inertial_estimation.table import Row, Table

WRENCH = ('fx [N]', 'fy', 'fz', 'tx [Nm]', 'ty', 'tz')


def make_tables(report: ReplayReport) -> tuple[Table, ...]:
    """Write the figures of a replay for a person."""
    compared = {torque.joint for torque in report.torques}
    tables = [
        Table('Warnings', ('warning',), tuple((text,) for text in report.warnings)),
        _stream_table((*report.joint_states, *report.imus, *report.fts)),
        _frozen_table(report.fts),
        _offset_table(report.offsets),
        _deviation_table(report.offsets, report.offset_support),
        _wrench_table(report.wrenches),
        _residual_table(report.residuals),
        _torque_table(report.torques),
        _estimated_table(
            'Joint torques that the robot does not report',
            [t for t in report.estimated_torques if t.joint not in compared and t.n_samples],
        ),
        _estimated_table(
            f'External joint torques, about {report.external_torque_base}',
            [t for t in report.external_torques if t.n_samples and t.rms],
        ),
        *check_tables(report.checks),
        cause_table(report),
    ]
    if report.support is not None:
        tables.append(_support_table(report.support))
    return tuple(table for table in tables if table.rows)


def _stream_table(streams: Iterable[StreamReport]) -> Table:
    columns = ('stream', 'messages', 'rate [Hz]', 'longest gap [ms]', 'repeated', 'invalid',
               'unfiltered', 'refused', 'restarts', 'frozen [s]')  # fmt: skip
    rows = tuple(
        (
            s.name, str(s.received), f'{s.rate_hz:.1f}', f'{1e3 * s.longest_gap_s:.1f}',
            str(s.repeated), str(s.invalid), str(s.unfiltered), str(s.refused), str(s.restarts),
            f'{s.frozen_s:.2f}',
        )
        for s in streams
    )  # fmt: skip
    return Table('Streams', columns, rows)


def _frozen_table(fts: Sequence[StreamReport]) -> Table:
    rows = tuple(
        (ft.name, f'{start:.2f}', f'{stop:.2f}', f'{stop - start:.2f}')
        for ft in fts
        for start, stop in ft.frozen_intervals_s
    )
    return Table('Frozen', ('FT sensor', 'from [s]', 'to [s]', 'for [s]'), rows)


def _offset_table(offsets: Sequence[OffsetReport]) -> Table:
    columns = ('FT sensor', 'assumed', *WRENCH)
    rows = tuple((o.sensor, _yes(o.assumed), *_wrench_texts(o.offset)) for o in offsets)
    return Table('Offsets, subtracted', columns, rows)


def _deviation_table(offsets: Sequence[OffsetReport], support: str) -> Table:
    title = f'Is {support} the only contact? Standard deviation of reading minus prediction'
    rows = tuple(
        (o.sensor, *_wrench_texts(o.deviation)) for o in offsets if o.deviation is not None
    )
    return Table(title, ('FT sensor', *WRENCH), rows)


def _wrench_table(wrenches: Sequence[WrenchReport]) -> Table:
    columns = ('contact', 'assumed', 'samples', '', *WRENCH)
    rows: list[Row] = []
    for w in wrenches:
        head = (w.contact, _yes(w.assumed), str(w.n_samples))
        rows += _wrench_rows(head, w)
    return Table('External wrenches', columns, tuple(rows))


def _residual_table(residuals: Sequence[ResidualReport]) -> Table:
    columns = ('submodel', 'assumed', 'samples', '', *WRENCH)
    rows: list[Row] = []
    for r in residuals:
        head = (r.submodel, _yes(r.assumed), str(r.n_samples))
        rows += _wrench_rows(head, r)
    return Table('Residuals: what no contact explains', columns, tuple(rows))


def _wrench_rows(head: Row, report: WrenchReport | ResidualReport) -> list[Row]:
    """Return the figures of a wrench, a line each."""
    rows: list[Row] = [
        (*head, 'mean', *_wrench_texts(report.mean)),
        ('', '', '', 'rms', *_wrench_texts(report.rms)),
    ]
    if not all(map(isnan, report.standard_deviation)):
        rows.append(('', '', '', 'noise', *_wrench_texts(report.standard_deviation)))
    return rows


def _estimated_table(title: str, torques: Iterable[EstimatedTorqueReport]) -> Table:
    columns = ('joint', 'assumed', 'samples', 'mean [Nm or N]', 'rms [Nm or N]',
               'noise [Nm or N]')  # fmt: skip
    rows = tuple(
        (
            t.joint, _yes(t.assumed), str(t.n_samples), f'{t.mean:.3f}', f'{t.rms:.3f}',
            f'{t.standard_deviation:.3f}',
        )
        for t in torques
    )  # fmt: skip
    return Table(title, columns, rows)


def _torque_table(torques: Sequence[TorqueReport]) -> Table:
    columns = ('joint', 'assumed', 'samples', 'mean error [Nm]', 'rms [Nm]', 'correlation',
               'lag [ms]', 'samples far from gaps', 'rms there [Nm]',
               'rms there at lag [Nm]', 'noise [Nm]')  # fmt: skip
    rows = tuple(
        (
            t.joint, _yes(t.assumed), str(t.n_samples), f'{t.mean_error_nm:.3f}',
            f'{t.rms_nm:.3f}', f'{t.correlation:.3f}', f'{1e3 * t.lag_s:.1f}',
            str(t.n_at_lag), f'{t.rms_without_lag_nm:.3f}', f'{t.rms_at_lag_nm:.3f}',
            f'{t.standard_deviation_nm:.3f}',
        )
        for t in torques
    )  # fmt: skip
    return Table("Joint torques against the robot's own", columns, rows)


def _support_table(support: SupportReport) -> Table:
    columns = ('contact', 'assumed', 'samples', 'mean upward force [N]', 'weight [N]',
               'difference [%]')  # fmt: skip
    row = (
        support.contact, _yes(support.assumed), str(support.n_samples),
        f'{support.mean_upward_force_n:.1f}', f'{support.weight_n:.1f}',
        f'{100.0 * support.relative_error:+.2f}',
    )  # fmt: skip
    return Table(f'Support: {support.meaning}', columns, (row,))


def _yes(flag: bool) -> str:
    return 'yes' if flag else ''


def _wrench_texts(wrench: Sequence[float]) -> Row:
    return (*(f'{x:.2f}' for x in wrench[:3]), *(f'{x:.3f}' for x in wrench[3:]))
