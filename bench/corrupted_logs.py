# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Put known faults into real and simulated logs and list the findings of the jobs that read them.

``python -m bench.corrupted_logs`` prints a table of log, fault, subject, job and findings that the
log without the fault does not have. The real logs lie in ``../shared/data``.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.log_streams import (
    ALL,
    DATA,
    DURING,
    FIRST,
    IMUS,
    JUMP,
    LAST,
    NAN,
    Edit,
    G,
    Log,
    Stream,
    clipped,
    drift,
    edit,
    flipped,
    heavier,
    held,
    humanoid_log,
    icub_urdf,
    joint_edits,
    late,
    ntnu_log,
    old,
    plus,
    swapped,
    times,
    turned,
    write_log,
    yoga_log,
)

ROOT = Path(__file__).resolve().parents[1]
KEYS = 'code', 'subject', 'text'


class Fault(NamedTuple):
    """A fault of some streams, or of the URDF."""

    name: str
    subject: str
    edits: dict[str, Edit | None]
    """By topic, or 'urdf'; None: the topic is absent."""


class Setting(NamedTuple):
    """A log, its faults, and the jobs that read it."""

    log: Log
    faults: list[Fault]
    jobs: dict[str, str]
    """Arguments; LOG, URDF and DIR are replaced."""
    urdf: str = ''
    files: tuple[tuple[str, str], ...] = ()
    """Names and texts of further configuration files."""


def of(streams: Log) -> dict[str, Edit | None]:
    """Return the fault that topics hold other streams."""
    return {topic: lambda _, stream=stream: stream for topic, stream in streams.items()}


def exchanged(log: Log, a: str, b: str) -> dict[str, Edit | None]:
    """Return the fault that two sensors report each other's values."""
    return of({x: log[y]._replace(frame=log[x].frame) for x, y in ((a, b), (b, a))})


PUSH = plus(20.0, 10.0, -15.0, 5.0, -8.0, 2.0)
LIGHT_PUSH = plus(5.0, 0.0, 3.0, 0.1, 0.3, 0.0)
SIGNAL: dict[str, Edit | None] = {
    'axes x, y swapped': edit(swapped),
    'frozen always': edit(held),
    'frozen 20 %': edit(held, ALL, *DURING),
    'saturated': edit(clipped),
    'delay 0.1 s': late(0.1),
    'delay 1 s': late(1.0),
    'NaN 20 %': edit(NAN, ALL, *DURING),
    'missing': None,
}
FT = SIGNAL | {
    'sign': edit(times(-1.0)),
    'fz dead': edit(held, [2]),
    'offset jump': edit(plus(*JUMP), ALL, 0.6),
    'offset drift': edit(drift),
    'moments in Nmm': edit(times(1e3), LAST),
    'forces in mN': edit(times(1e3), FIRST),
    'in kgf': edit(times(1 / G)),
}
ACCELEROMETER = SIGNAL | {
    'sign': edit(times(-1.0), LAST),
    'turned 90 deg': edit(turned(90.0)),
    'turned 40 deg': edit(turned(40.0)),
    'turned 10 deg': edit(turned(10.0)),
    'bias 0.5 m/s^2': edit(plus(0.5, 0.0, 0.0), LAST),
    'in g': edit(times(1 / G), LAST),
}
IMU = ACCELEROMETER | {'in deg/s': edit(np.degrees, FIRST)}


def faults_of(topic: str, subject: str, edits: Mapping[str, Edit | None]) -> list[Fault]:
    """Return faults of one topic."""
    return [Fault(what, subject, {topic: change}) for what, change in edits.items()]


def yoga() -> Setting:
    """Return a real iCub on its left foot, without IMU."""
    log, leg = yoga_log(), '/icub/right_leg/joint_states'
    left, leg_ft, foot = (
        [f'/icub/ft/{name}_ft_sensor' for name in names]
        for names in (('l_leg', 'l_foot'), ('r_leg',), ('l_leg', 'l_foot', 'r_leg', 'r_foot'))
    )
    names, push = log[leg].names, edit(PUSH, ALL, 0.2, 0.3)
    effort = [2 * len(names) + names.index('r_knee')]
    faults = [
        *faults_of(leg_ft[0], 'r_leg_ft', FT),
        *faults_of(leg, 'r_knee', joint_edits(len(names), 'r_hip_roll', 'r_knee')),
        Fault('exchanged', 'l_leg_ft r_leg_ft', exchanged(log, left[0], leg_ft[0])),
        Fault('contact 3 s', 'root_link', dict.fromkeys(left, push)),
        Fault('contact 3 s', 'r_foot', dict.fromkeys(foot, push)),
        Fault('contact always', 'r_foot', dict.fromkeys(foot, edit(PUSH))),
        Fault('effort sign', 'r_knee', {leg: edit(times(-1.0), effort)}),
        Fault('mass x 3', 'r_lower_leg', heavier('r_lower_leg', 3.0)),
    ]
    robot = '--robot URDF --config DIR/icub_yoga_left.yaml'
    jobs = {
        'replay': f'replay LOG {robot} --offsets-from torques --offset-range 0 16',
        'offsets': f'calibrate offsets LOG {robot} --support l_sole',
        'identify': 'identify LOG@0:16 --validate LOG@16:31 --robot URDF '
        '--config DIR/identify_icub_yoga.yaml',
    }
    return Setting(log, faults, jobs, icub_urdf())


def humanoid() -> Setting:
    """Return a simulated iCub with six FT sensors and seven IMUs, held at its left sole."""
    log = humanoid_log()
    faults = [
        *faults_of('/ft/r_leg_ft', 'r_leg_ft', FT),
        *faults_of('/imu/chest', 'chest', IMU),
        *faults_of('/joint_states', 'r_knee', joint_edits(32, 'r_hip_roll', 'r_knee')),
        Fault('in g', 'all IMUs', {t: IMU['in g'] for t in log if 'imu' in t}),
        Fault('exchanged', 'l_leg_ft r_leg_ft', exchanged(log, '/ft/l_leg_ft', '/ft/r_leg_ft')),
        Fault('exchanged', 'l_foot r_foot', exchanged(log, '/imu/l_foot', '/imu/r_foot')),
        Fault('contact 2 s', 'r_hand', of(humanoid_log((5.0, 6.5)))),
        Fault('contact always', 'r_hand', of(humanoid_log((0.0, 20.0)))),
        Fault('mass x 3', 'r_lower_leg', heavier('r_lower_leg', 3.0)),
    ]
    config = (ROOT / 'config' / 'icub.yaml').read_text()
    for key, names in (('contacts', 'l_sole'), ('imus', ', '.join(IMUS))):
        config = re.sub(rf'\n( +){key}: \[[^]]*\]', rf'\n\1{key}: [{names}]', config)
    identify = (ROOT / 'config' / 'identify_icub_yoga.yaml').read_text()
    identify = identify.replace('icub_yoga_left.yaml', 'one_contact.yaml')
    files = (('one_contact.yaml', config), ('identify.yaml', identify))
    robot = '--robot URDF --config DIR/one_contact.yaml'
    jobs = {
        'replay': f'replay LOG {robot} --range 1 19',
        'offsets': f'calibrate offsets LOG {robot} --support l_sole',
        'identify': 'identify LOG@7:15 --validate LOG@15:20 --robot URDF '
        '--config DIR/identify.yaml',
    }
    return Setting(log, faults, jobs, icub_urdf(), files)


TOOL = """
<robot name="arm">
  <link name="flange"/> <link name="tool"/> <link name="imu"/>
  <joint name="wrist" type="fixed"><parent link="flange"/><child link="tool"/></joint>
  <joint name="imu" type="fixed"><parent link="tool"/><child link="imu"/>
    <origin rpy="-1.5708 1.5708 0"/></joint>
  <sensor name="wrist_ft" type="force_torque"><parent joint="wrist"/>
    <force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction>
    </force_torque></sensor>
</robot>
"""


def motion() -> Setting:
    """Return 6 s of free motion of a tool with an IMU."""
    ft, imu = '/fts/wrench', '/imu'
    faults = [
        *faults_of(ft, 'wrist_ft', FT),
        *faults_of(imu, 'imu', ACCELEROMETER),
        Fault('contact 1 s', 'tool', {ft: edit(LIGHT_PUSH, ALL, 0.5, 0.66)}),
        Fault('contact 4 s', 'tool', {ft: edit(LIGHT_PUSH, ALL, 0.16, 0.8)}),
    ]
    job = (
        'calibrate tool LOG --robot URDF --config DIR/tool.yaml --ft wrist_ft --imu imu '
        '--accelerometer-offset -0.0359 0.0873 0.7562'
    )
    sensors = {
        'imus': ['imu'],
        'ft': {'wrist_ft': {'topic': ft, 'frame_id': ft}},
        'imu': {'imu': {'topic': imu, 'frame_id': imu}},
    }
    config = json.dumps({'/**': {'ros__parameters': sensors}})
    return Setting(ntnu_log('1-baseline'), faults, {'tool': job}, TOOL, (('tool.yaml', config),))


def poses() -> Setting:
    """Return 24 still poses of the same tool."""
    wrench = FT | {
        'one row later': edit(old(1)),
        'contact 10 %': edit(LIGHT_PUSH, ALL, 0.4, 0.5),
        'contact 50 %': edit(LIGHT_PUSH, ALL, 0.3, 0.8),
    }
    felt = {what: SIGNAL[what] for what in ('axes x, y swapped', 'frozen 20 %', 'saturated')} | {
        'turned 90 deg': edit(turned(90.0)),
        'turned for 20 %': edit(turned(90.0), ALL, *DURING),
        'in g': edit(times(1 / G)),
    }
    log = ntnu_log('0-calibration_fts-accel')
    faults = [*faults_of('raw', 'raw', {k: e for k, e in wrench.items() if 'delay' not in k}),
              *faults_of('accelerometer', 'accelerometer', felt),
              Fault('too few poses', 'raw', of({k: Stream(s.seconds[:4], s.values[:4])
                                                for k, s in log.items()}))]  # fmt: skip
    job = 'calibrate offset-without-model LOG --ft wrist_ft --config DIR/poses.yaml'
    imu = {'accelerometer': 'accelerometer'}
    layout = {'time': 't', 'ft_sensors': {'wrist_ft': 'raw'}, 'imus': {'imu': imu}}
    files = (('poses.yaml', json.dumps({'log': layout})),)
    return Setting(log, faults, {'offset': job}, files=files)


def panda() -> Setting:
    """Return a Panda with joint torque sensors."""
    with np.load(DATA / 'panda_excitation' / 'log.npz') as file:
        log = {key: Stream(file['t'], file[key]) for key in ('position', 'velocity', 'torque')}
    motion, push, pair = ('position', 'velocity'), plus(10.0, -6.0), [1, 3]
    slow: Edit = lambda s: s._replace(seconds=1e3 * s.seconds)  # noqa: E731
    faults = [
        Fault('columns swapped', 'all 2 4', dict.fromkeys(log, edit(flipped, pair))),
        Fault('time in ms', 't', dict.fromkeys(log, slow)),
        Fault('sign', 'all torques', {'torque': edit(times(-1.0))}),
        Fault('delay 50 ms', 'torque', {'torque': edit(old(50))}),
        Fault('delay 200 ms', 'torque', {'torque': edit(old(200))}),
        Fault('delay 50 ms', 'motion', dict.fromkeys(motion, edit(old(50)))),
        Fault('contact 2 s', 'joint 2 4', {'torque': edit(push, pair, 0.3, 0.45)}),
        Fault('contact half', 'joint 2 4', {'torque': edit(push, pair, 0.3, 0.8)}),
        Fault('contact always', 'joint 2 4', {'torque': edit(push, pair)}),
        Fault('mass x 3', 'panda_link4', heavier('panda_link4', 3.0)),
        Fault('no motion', 'all', dict.fromkeys(log, edit(held))),
        Fault('one joint moves', 'all but 1', dict.fromkeys(motion, edit(held, slice(1, 7)))),
    ]
    for signal in log:
        unit = ('in Nmm', times(1e3)) if signal == 'torque' else ('in degrees', np.degrees)
        jump = plus(5.0 if signal == 'torque' else 0.3)
        edits = {
            'sign': edit(times(-1.0), [3]),
            'columns swapped': edit(flipped, pair),
            'frozen always': edit(held, [3]),
            'frozen 1 s': edit(held, [3], 0.4, 0.47),
            'saturated': edit(clipped, [3]),
            'offset jump': edit(jump, [3], 0.4),
            'offset jump in test': edit(plus(5.0), [3], 0.85),
            'NaN always': edit(NAN, [3]),
            'NaN 1 s': edit(NAN, [3], 0.4, 0.47),
            f'{unit[0]}, all': edit(unit[1]),
            unit[0]: edit(unit[1], [3]),
            'times 2': edit(times(2.0), [3]),
        }
        faults += faults_of(signal, f'{signal} 4', edits)
    job = 'identify LOG@0:11 --validate LOG@11: --robot URDF --config DIR/identify_panda.yaml'
    urdf = (DATA / 'models' / 'panda_wrist_ft.urdf').read_text()
    return Setting(log, faults, {'identify': job}, urdf)


SETTINGS = {'yoga': yoga, 'humanoid': humanoid, 'motion': motion, 'poses': poses, 'panda': panda}


def run_job(words: list[str]) -> list[dict[str, str]]:
    """Run the command; return code, subject and text of its findings, its error among them."""
    from inertial_estimation.cli import main

    out, errors = io.StringIO(), io.StringIO()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, 'report.json')
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            exit_code = main([*words, '--json', str(path)])
        report = json.loads(path.read_text()) if path.exists() else {}
    found = report.get('findings', [])
    silent = report.get('silent', {}).items()
    found += [{'code': 'silent', 'subject': name, 'text': why} for name, why in silent]
    if exit_code:
        found.append({'code': 'error', 'text': ' '.join(errors.getvalue().split()[2:])})
    return [
        {key: re.sub(r'\S*/tmp/\S*?(?=[\w.]+(@|: |$))', '', one.get(key, '')) for key in KEYS}
        for one in found
    ]


def run_setting(setting: Setting, only: str) -> Iterator[tuple[Fault, str, list[dict[str, str]]]]:
    """Yield fault, job and all its findings; the log without a fault comes first."""
    for fault in [Fault('none', '', {}), *setting.faults]:
        if fault.name != 'none' and only not in f'{fault.name} {fault.subject}':
            continue
        edits = {topic: change for topic, change in fault.edits.items() if topic != 'urdf'}
        log = {topic: edits.get(topic, lambda s: s) for topic in setting.log}
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            path = write_log(
                folder, {t: change(setting.log[t]) for t, change in log.items() if change}
            )
            (folder / 'robot.urdf').write_text((fault.edits.get('urdf') or str)(setting.urdf))
            configs = {file.name: file.read_text() for file in (ROOT / 'config').glob('*.yaml')}
            for file, text in (configs | dict(setting.files)).items():
                (folder / file).write_text(text)
            for job, text in setting.jobs.items():
                text = text.replace('LOG', path).replace('URDF', 'DIR/robot.urdf')
                yield fault, job, run_job(text.replace('DIR', name).split())


def head(finding: dict[str, str]) -> tuple[str, str, str]:
    """Return a finding without its numbers."""
    return finding['code'], finding['subject'], re.sub(r'[-+]?\d[\d.,e+-]*', '#', finding['text'])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--log', nargs='+', choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument('--only', default='', help='part of the names of the faults to run')
    parser.add_argument('--json', type=Path, help='also write the findings')
    chosen = parser.parse_args()
    rows = []
    for key in chosen.log:
        usual: dict[str, set[tuple[str, str, str]]] = {}
        for fault, job, found in run_setting(SETTINGS[key](), chosen.only):
            if fault.name == 'none':
                usual[job], new = set(map(head, found)), found
            else:
                new = [one for one in found if head(one) not in usual[job]]
            rows.append({'log': key, 'fault': fault.name, 'of': fault.subject, 'job': job})
            rows[-1]['found'] = new
            texts = dict.fromkeys(f'{one["code"]} {one["subject"] or one["text"]}' for one in new)
            names = ', '.join(text[:60] for text in texts) or '-'
            sys.stdout.write(f'{key:9}{fault.name:21}{fault.subject:18}{job:9}{names}\n')
            sys.stdout.flush()
    if chosen.json:
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == '__main__':
    main()
