# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``replay``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from math import hypot, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_verb
from inertial_estimation.cli.render import (
    escape,
    findings_lines,
    progress_bars,
    records_table,
    show,
    table,
    write_json,
)
from inertial_estimation.errors import CallError, LogError

if TYPE_CHECKING:
    from inertial_estimation.logs.results import Replay

Record = dict[str, Any]

WRENCH = ('fx [N]', 'fy', 'fz', 'tx [Nm]', 'ty', 'tz')
MAX_FINDINGS = 12
"""Findings that the summary prints."""
FULL_WIDTH = 120


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'replay', 'run the estimator over a ROS 2 bag, without ROS',
        'walk.mcap --robot robot.urdf --config robot.yaml --range 5 20 --out results', full=True,
    )  # fmt: skip
    command.add_argument('bag', metavar='LOG', help='bag (folder, mcap, db3), npz or csv')
    command.add_argument('--robot', required=True, metavar='URDF', help='robot description')
    command.add_argument(
        '--config', required=True, metavar='YAML', help='parameter file of the node'
    )
    command.add_argument(
        '--layout', metavar='YAML', help="columns of an npz or csv, as 'log' of identify's file"
    )
    command.add_argument(
        '--range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='part to estimate [s after the first FT message]',
    )  # fmt: skip
    command.add_argument(
        '--offsets-from', choices=('settings', 'model', 'torques'), default='settings',
        help='origin of the FT offsets (default: %(default)s)',
    )  # fmt: skip
    command.add_argument(
        '--offset-range', nargs=2, type=float, metavar=('FROM', 'TO'), default=(-inf, inf),
        help='part that the offsets are computed from [s]',
    )  # fmt: skip
    command.add_argument(
        '--support', default='', metavar='FRAME',
        help='the only contact in that part (default: fixed_link)',
    )  # fmt: skip
    command.add_argument('--out', type=Path, metavar='FOLDER', help='write the results as a bag')
    command.add_argument(
        '--through', nargs='+', default=[], metavar='JOINT', help='compute the wrench of joints'
    )
    command.add_argument(
        '--net', nargs='+', default=[], metavar='LINK', help='compute the net wrench of links'
    )
    command.set_defaults(run=_run, names={'supports': '--support'})


def _run(chosen: argparse.Namespace) -> None:
    """Run the estimator over a bag."""
    from inertial_estimation.config import EstimatorSettings
    from inertial_estimation.logs.identify_settings import IdentifySettings
    from inertial_estimation.logs.log import TimeRange
    from inertial_estimation.logs.offsets import OffsetRequest
    from inertial_estimation.logs.open_log import open_log
    from inertial_estimation.logs.replay import check_settings, replay
    from inertial_estimation.model.configured_robot import build_robot

    if chosen.offsets_from == 'settings' and (chosen.support or chosen.offset_range[0] > -inf):
        raise CallError('--support and --offset-range need --offsets-from model or torques')
    if chosen.json and chosen.out not in chosen.json.parents:
        inputs = (chosen.bag, chosen.robot, *files.config_files(chosen.config))
        files.check_outputs((chosen.json,), inputs)
    if chosen.out is not None and chosen.out.exists():
        raise LogError(f"'{chosen.out}' exists already")
    urdf = files.load_urdf(chosen.robot)
    settings = EstimatorSettings.from_yaml(chosen.config)
    layout = IdentifySettings.from_yaml(chosen.layout).layout if chosen.layout else None
    with progress_bars() as progress:
        robot = build_robot(settings, urdf)
        check_settings(robot, settings, chosen.through, chosen.net)
        found = replay(
            robot,
            open_log(chosen.bag, robot, settings, layout=layout, progress=progress),
            settings,
            time_range=TimeRange(*chosen.range),
            offsets=OffsetRequest(
                chosen.offsets_from, TimeRange(*chosen.offset_range), chosen.support
            ),
            through=chosen.through,
            net=chosen.net,
            deviations_rate=None if chosen.out is None else settings.outputs.deviations_rate,
            progress=progress,
        )
        if chosen.out is not None:
            found.save(chosen.out, progress)
    write_json(chosen.json, {**found.summary, 'findings': list(found.findings)})
    show(*_summary(found, chosen))
    if chosen.full:
        show(*_tables(found.summary), width=FULL_WIDTH)


def _summary(found: Replay, chosen: argparse.Namespace) -> list[Any]:
    """Return one screen: findings, a line for each sensor and contact, and the next step."""
    s = found.summary
    start, stop = s['time_range_s']
    source = s['offset_source'] + (f' ({s["offset_support"]})' if s['offset_support'] else '')
    lines: list[Any] = [
        escape(
            f'{s["robot"]}: {s["n_samples"]} samples, {start:.2f} s to {stop:.2f} s, '
            f'{s["judged_s"]:.1f} s judged, offsets from {source}'
        )
    ]
    findings = findings_lines(found.findings)
    lines += findings[:MAX_FINDINGS] or ['[green]no findings[/]']
    if len(findings) > MAX_FINDINGS:
        lines.append(f'and {len(findings) - MAX_FINDINGS} more findings: --full or --json')
    lines += ['', _sensor_table(s), '', _contact_table(s)]
    if s['torques']:
        joints = len(s['torques'])
        worst = max(s['torques'], key=lambda one: one['rms_nm'])
        lines += ['', f'{joints} joint torques compared with the robot\'s own; largest rms error '
                  f'{worst["rms_nm"]:.2f} Nm at {worst["joint"]}']  # fmt: skip
    rest = [
        '' if chosen.full else '--full prints all tables',
        '' if chosen.out else '--out FOLDER writes a bag',
        '' if chosen.json else '--json FILE writes all figures',
    ]
    return [*lines, '', f'Next: {"; ".join(filter(None, rest))}'] if any(rest) else lines


def _sensor_table(s: Mapping[str, Any]) -> Any:
    """Return a line for each sensor: rate, frozen time, residual against the others and noise."""
    residuals: dict[str, list[Record]] = {}
    for record in s['checks']['sensor_residuals']:
        if record['n_instants']:
            residuals.setdefault(record['sensor'], []).append(record)
    rows = []
    for stream in (*s['fts'], *s['imus'], *s['joint_states']):
        found = residuals.get(stream['name'], [])
        text = ', '.join(f'{one["rms"]:.3g} {one["unit"]}' for one in found[:2])
        noise = ', '.join(f'{one["noise"]:.2g}' for one in found[:2])
        rows.append(
            (
                stream['name'].split(': ')[0],
                f'{stream["rate_hz"]:.1f}',
                f'{stream["frozen_s"]:.2f}',
                text,
                noise,
            )
        )
    columns = ('sensor', 'rate [Hz]', 'frozen [s]', 'residual rms', 'noise')
    return table('Sensors, against all others', columns, rows)


def _contact_table(s: Mapping[str, Any]) -> Any:
    """Return a line for each contact: norms of the mean wrench, rms and noise."""
    rows = []
    for one in (*s['wrenches'], *s['residuals']):
        name = one.get('contact') or f'residual of {one["submodel"]}'
        force, moment, noise = hypot(*one['mean'][:3]), hypot(*one['mean'][3:]), (
            hypot(*one['standard_deviation'][:3])
        )  # fmt: skip
        rms = hypot(*one['rms'][:3])
        rows.append(
            (name, str(one['n_samples']), f'{force:.2f}', f'{rms:.2f}', f'{noise:.2f}',
             f'{moment:.3f}')
        )  # fmt: skip
    columns = ('contact', 'samples', 'force, mean [N]', 'rms [N]', 'noise [N]', 'moment [Nm]')
    return table('External wrenches', columns, rows)


def _tables(s: Mapping[str, Any]) -> list[Any]:
    """Return all tables."""
    checks = s['checks']
    frozen = [
        (ft['name'], f'{start:.2f}', f'{stop:.2f}')
        for ft in s['fts']
        for start, stop in ft['frozen_intervals_s']
    ]
    return [
        shown
        for shown in (
            _streams(s),
            _some('Frozen intervals', ('FT sensor', 'from [s]', 'to [s]'), frozen),
            _some('Offsets, subtracted', ('FT sensor', *WRENCH), _vectors(s['offsets'], 'offset')),
            _some(
                'Standard deviation of reading - prediction',
                ('FT sensor', *WRENCH),
                _vectors([o for o in s['offsets'] if o['deviation']], 'deviation'),
            ),
            _wrenches('External wrenches', 'contact', s['wrenches']),
            _wrenches('Residuals', 'submodel', s['residuals']),
            _torques("Joint torques against the robot's own", s['torques'], COMPARED),
            _torques('Joint torques', s['estimated_torques'], ESTIMATED),
            _torques(
                f'External joint torques, about {s["external_torque_base"]}',
                [one for one in s['external_torques'] if one['n_samples'] and one['rms']],
                ESTIMATED,
            ),
            _torques('Sensors against all others', checks['sensor_residuals'], RESIDUALS),
            _torques('Wrenches through joints', checks['through'], {'joint': 'joint'} | SIZES),
            _torques('Net wrenches of links', checks['net'], {'link': 'link'} | SIZES),
            _torques(
                'Sensors that torques depend on', checks['dependence']['torques'], DEPENDENCE
            ),
            _momentum(checks['momentum']),
            _support(s['support']),
        )
        if shown is not None
    ]


COMPARED = {
    'joint': 'joint', 'samples': 'n_samples', 'mean error [Nm]': 'mean_error_nm',
    'rms [Nm]': 'rms_nm', 'correlation': 'correlation', 'lag [s]': 'lag_s',
    'rms there': 'rms_without_lag_nm', 'rms at lag': 'rms_at_lag_nm',
    'noise [Nm]': 'standard_deviation_nm',
}  # fmt: skip
ESTIMATED = {
    'joint': 'joint', 'assumed': 'assumed', 'samples': 'n_samples', 'mean [Nm or N]': 'mean',
    'rms': 'rms', 'noise': 'standard_deviation',
}  # fmt: skip
RESIDUALS = {
    'sensor': 'sensor', 'quantity': 'quantity', 'unit': 'unit', 'samples': 'n_instants',
    'rms': 'rms', 'largest': 'largest', 'noise': 'noise', 'change': 'rms_change',
    'doubtful': 'doubtful',
}  # fmt: skip
SIZES = {
    'frame': 'frame', 'samples': 'n_samples', 'force rms [N]': 'rms_force_n',
    'largest': 'max_force_n', 'moment rms [Nm]': 'rms_moment_nm',
    'largest moment': 'max_moment_nm',
}  # fmt: skip
DEPENDENCE = {'joint': 'name', 'FT sensors': 'fts', 'IMUs': 'imus'}
STREAMS = {
    'stream': 'name', 'messages': 'received', 'rate [Hz]': 'rate_hz', 'gap [s]': 'longest_gap_s',
    'repeated': 'repeated', 'invalid': 'invalid', 'unfiltered': 'unfiltered',
    'refused': 'refused', 'restarts': 'restarts', 'frozen [s]': 'frozen_s',
}  # fmt: skip


def _some(title: str, columns: tuple[str, ...], rows: list[tuple[Any, ...]]) -> Any:
    """Return a table, or None without rows."""
    return table(title, columns, rows) if rows else None


def _torques(title: str, records: list[Record], columns: dict[str, str]) -> Any:
    """Return a table of records, or None without any."""
    return records_table(title, records, columns) if records else None


def _streams(s: Mapping[str, Any]) -> Any:
    """Return counts and rate of each stream."""
    return records_table('Streams', [*s['joint_states'], *s['imus'], *s['fts']], STREAMS)


def _vectors(records: list[Record], key: str) -> list[tuple[Any, ...]]:
    """Return rows of sensor and wrench."""
    return [(one['sensor'], *_wrench(one[key])) for one in records]


def _wrenches(title: str, kind: str, records: list[Record]) -> Any:
    """Return mean, rms and noise of wrenches, a row each."""
    rows = [
        (one[kind] if key == 'mean' else '', name, *_wrench(one[key]))
        for one in records
        for key, name in (('mean', 'mean'), ('rms', 'rms'), ('standard_deviation', 'noise'))
    ]
    return _some(title, (kind, '', *WRENCH), rows)


def _wrench(values: list[float]) -> tuple[str, ...]:
    """Return the text of a wrench."""
    return (*(f'{x:.2f}' for x in values[:3]), *(f'{x:.3f}' for x in values[3:]))


def _momentum(found: Record | None) -> Any:
    """Return the part of the momentum's change that the wrenches do not explain."""
    if found is None:
        return None
    rows = [
        (what, *(found[key] for key in keys))
        for what, keys in (
            ('force [N]', ('unexplained_force_n', 'change_of_linear_momentum_n', 'noise_force_n')),
            (
                'moment [Nm]',
                ('unexplained_moment_nm', 'change_of_angular_momentum_nm', 'noise_moment_nm'),
            ),
        )
    ]
    title = f'Momentum against wrenches, {found["windows"]} windows of 0.5 s'
    return table(title, ('', 'unexplained, rms', 'change, rms', 'noise'), rows)


def _support(support: Record | None) -> Any:
    """Return the force at the fixed link against the weight."""
    if support is None:
        return None
    columns = {'contact': 'contact', 'samples': 'n_samples', 'upward force [N]':
               'mean_upward_force_n', 'weight [N]': 'weight_n', 'error': 'relative_error',
               'offsets assume this weight': 'assumes_weight'}  # fmt: skip
    return records_table('Support', [support], columns)
