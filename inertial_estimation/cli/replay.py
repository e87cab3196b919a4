# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The subcommand ``replay``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from math import hypot, inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inertial_estimation.cli import files
from inertial_estimation.cli.arguments import add_options, add_verb
from inertial_estimation.cli.render import (
    FULL_WIDTH,
    Columns,
    escape,
    findings_lines,
    progress_bars,
    records_table,
    show,
    write_json,
)
from inertial_estimation.errors import CallError, LogError

if TYPE_CHECKING:
    from inertial_estimation.logs.results import Replay

Record = dict[str, Any]

OFFSETS = ('settings', 'model', 'torques')
WRENCH = ('fx [N]', 'fy', 'fz', 'tx [Nm]', 'ty', 'tz')
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
STREAMS = {
    'stream': 'name', 'messages': 'received', 'rate [Hz]': 'rate_hz', 'gap [s]': 'longest_gap_s',
    'repeated': 'repeated', 'invalid': 'invalid', 'unfiltered': 'unfiltered',
    'refused': 'refused', 'restarts': 'restarts', 'frozen [s]': 'frozen_s',
}  # fmt: skip
MOMENTUM = {
    '': 'quantity', 'unexplained, rms': 'unexplained', 'change, rms': 'change', 'noise': 'noise',
}  # fmt: skip
SUPPORT = {
    'contact': 'contact', 'samples': 'n_samples', 'upward force [N]': 'mean_upward_force_n',
    'weight [N]': 'weight_n', 'error': 'relative_error',
    'offsets assume this weight': 'assumes_weight',
}  # fmt: skip
CONTACTS: Columns = {
    'contact': lambda one: one.get('contact') or f'residual of {one["submodel"]}',
    'samples': 'n_samples',
    'force, mean [N]': lambda one: f'{hypot(*one["mean"][:3]):.2f}',
    'rms [N]': lambda one: f'{hypot(*one["rms"][:3]):.2f}',
    'noise [N]': lambda one: f'{hypot(*one["standard_deviation"][:3]):.2f}',
    'moment [Nm]': lambda one: f'{hypot(*one["mean"][3:]):.3f}',
}


def add(commands: Any) -> None:
    """Add the subcommand."""
    command = add_verb(
        commands, 'replay', 'run the estimator over a ROS 2 bag, without ROS',
        'walk.mcap --robot robot.urdf --config robot.yaml --range 5 20 --out results', full=True,
    )  # fmt: skip
    needed, names = {'required': True}, {'nargs': '+', 'default': []}
    span = {'nargs': 2, 'type': float, 'default': (-inf, inf)}
    ends, source = ('FROM', 'TO'), {'choices': OFFSETS, 'default': 'settings'}
    add_options(
        command,
        ('bag', 'LOG', 'bag (folder, mcap, db3), npz or csv'),
        ('--robot', 'URDF', 'robot description', needed),
        ('--config', 'YAML', 'parameter file of the node', needed),
        ('--layout', 'YAML', "columns of an npz or csv, as 'log' of identify's file"),
        ('--range', ends, 'part to estimate [s after the first FT message]', span),
        ('--offsets-from', None, 'origin of the FT offsets (default: %(default)s)', source),
        ('--offset-range', ends, 'part that the offsets are computed from [s]', span),
        ('--support', 'FRAME', 'the only contact in that part (default: fixed_link)',
         {'default': ''}),
        ('--out', 'FOLDER', 'write the results as a bag', {'type': Path}),
        ('--through', 'JOINT', 'compute the wrench of joints', names),
        ('--net', 'LINK', 'compute the net wrench of links', names),
    )  # fmt: skip
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
    items: list[Any] = [
        escape(
            f'{s["robot"]}: {s["n_samples"]} samples, {start:.2f} s to {stop:.2f} s, '
            f'{s["judged_s"]:.1f} s judged, offsets from {source}'
        ),
        *(findings_lines(found.findings, full=False) or ['[green]no findings[/]']),
        '',
        _sensors(s),
        '',
        records_table('External wrenches', [*s['wrenches'], *s['residuals']], CONTACTS),
    ]
    if s['torques']:
        worst = max(s['torques'], key=lambda one: one['rms_nm'])
        items += ['', f"{len(s['torques'])} joint torques compared with the robot's own; largest "
                  f'rms error {worst["rms_nm"]:.2f} Nm at {worst["joint"]}']  # fmt: skip
    rest = [
        text
        for text, done in (
            ('--full prints all tables', chosen.full),
            ('--out FOLDER writes a bag', chosen.out),
            ('--json FILE writes all figures', chosen.json),
        )
        if not done
    ]
    return [*items, '', f'Next: {"; ".join(rest)}'] if rest else items


def _sensors(s: Mapping[str, Any]) -> Any:
    """Return a line for each sensor: rate, frozen time, residual against the others and noise."""
    residuals: dict[str, list[Record]] = {}
    for record in s['checks']['sensor_residuals']:
        if record['n_instants']:
            residuals.setdefault(record['sensor'], []).append(record)

    def listed(text: str) -> Callable[[Record], str]:
        return lambda stream: ', '.join(
            text.format(**one) for one in residuals.get(stream['name'], [])[:2]
        )

    columns: Columns = {
        'sensor': lambda one: one['name'].split(': ')[0],
        'rate [Hz]': lambda one: f'{one["rate_hz"]:.1f}',
        'frozen [s]': lambda one: f'{one["frozen_s"]:.2f}',
        'residual rms': listed('{rms:.3g} {unit}'),
        'noise': listed('{noise:.2g}'),
    }
    streams = [*s['fts'], *s['imus'], *s['joint_states']]
    return records_table('Sensors, against all others', streams, columns)


def _tables(s: Mapping[str, Any]) -> list[Any]:
    """Return all tables."""
    checks, found = s['checks'], s['checks']['momentum']
    frozen = [
        {'name': ft['name'], 'start': f'{start:.2f}', 'stop': f'{stop:.2f}'}
        for ft in s['fts']
        for start, stop in ft['frozen_intervals_s']
    ]
    deviations = [one for one in s['offsets'] if one['deviation']]
    external = [one for one in s['external_torques'] if one['n_samples'] and one['rms']]
    momentum = [] if found is None else [
        {'quantity': quantity, 'unexplained': found[f'unexplained_{unit}'],
         'change': found[f'change_of_{change}'], 'noise': found[f'noise_{unit}']}
        for quantity, unit, change in (
            ('force [N]', 'force_n', 'linear_momentum_n'),
            ('moment [Nm]', 'moment_nm', 'angular_momentum_nm'),
        )
    ]  # fmt: skip
    title = '' if found is None else f'{found["windows"]} windows of 0.5 s'
    torques, dependence = (
        checks['dependence']['torques'],
        {'joint': 'name', 'FT sensors': 'fts', 'IMUs': 'imus'},
    )
    return [
        records_table('Streams', [*s['joint_states'], *s['imus'], *s['fts']], STREAMS),
        records_table('Frozen intervals', frozen,
                      {'FT sensor': 'name', 'from [s]': 'start', 'to [s]': 'stop'}),
        records_table('Offsets, subtracted', s['offsets'],
                      _vector('FT sensor', 'sensor', 'offset')),
        records_table('Standard deviation of reading - prediction', deviations,
                      _vector('FT sensor', 'sensor', 'deviation')),
        _wrenches('External wrenches', 'contact', s['wrenches']),
        _wrenches('Residuals', 'submodel', s['residuals']),
        records_table("Joint torques against the robot's own", s['torques'], COMPARED),
        records_table('Joint torques', s['estimated_torques'], ESTIMATED),
        records_table(f'External joint torques, about {s["external_torque_base"]}', external,
                      ESTIMATED),
        records_table('Sensors against all others', checks['sensor_residuals'], RESIDUALS),
        records_table('Wrenches through joints', checks['through'], {'joint': 'joint'} | SIZES),
        records_table('Net wrenches of links', checks['net'], {'link': 'link'} | SIZES),
        records_table('Sensors that torques depend on', torques, dependence),
        records_table(f'Momentum against wrenches, {title}', momentum, MOMENTUM),
        records_table('Support', [s['support']] if s['support'] else [], SUPPORT),
    ]  # fmt: skip


def _vector(heading: str, name: str, key: str) -> dict[str, Any]:
    """Return the columns of a wrench."""

    def component(k: int) -> Callable[[Record], str]:
        return lambda one: f'{one[key][k]:.{2 if k < 3 else 3}f}'

    return {heading: name, **{title: component(k) for k, title in enumerate(WRENCH)}}


def _wrenches(title: str, kind: str, records: list[Record]) -> Any:
    """Return mean, rms and noise of wrenches, a row each."""
    rows = [
        {'name': one[kind] if key == 'mean' else '', 'what': what, 'wrench': one[key]}
        for one in records
        for key, what in (('mean', 'mean'), ('rms', 'rms'), ('standard_deviation', 'noise'))
    ]
    return records_table(title, rows, {kind: 'name', **_vector('', 'what', 'wrench')})
