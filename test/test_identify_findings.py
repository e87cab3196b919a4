# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Findings of ``identify``: faults put into the log of a simulated arm."""

import json

import numpy as np
import pytest
import yaml
from simulated_arm import LINKS, arm, arm_urdf, efforts_of, moving

from inertial_estimation.cli import main

JOINTS = [f'j_{link}' for link in LINKS]
DEGREES = 180 / np.pi
SECONDS, RATE = 12.0, 100.0
NOISE = 0.02
"""Of efforts [Nm], about a hundredth of them."""
VISCOUS = 0.5


@pytest.fixture
def folder(tmp_path, rng):
    """Write an arm with end stops, a good log of it, and what it holds."""
    body = """<link name="base"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01"
      izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
    stops = '<limit lower="-3" upper="3" effort="100" velocity="5"/><axis '
    urdf = arm_urdf().replace('type="continuous"', 'type="revolute"').replace('<axis ', stops)
    (tmp_path / 'arm.urdf').write_text(urdf.replace('<link name="base"/>', body))
    write_log(tmp_path / 'log.npz', rng)
    write_settings(tmp_path)
    return tmp_path


def write_log(path, rng):
    samples = moving(rng, SECONDS, RATE)
    efforts = efforts_of(arm(), samples) + VISCOUS * samples.velocities
    columns = {'t': samples.stamp_ns * 1e-9, 'q': samples.positions, 'v': samples.velocities}
    np.savez(path, **columns, e=efforts + rng.normal(0.0, NOISE, efforts.shape))


def write_settings(folder, **rows):
    columns = {'time': 't', 'positions': 'q', 'velocities': 'v', 'efforts': 'e'}
    given = {
        'robot': {'fixed_link': 'base'},
        'log': {'joints': JOINTS, **columns},
        'preparation': {'cutoff': 10.0, 'measured_velocities': True},
        'rows': {'efforts': 'all', 'friction': ['viscous'], **rows},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(given))


def change(folder, **columns):
    """Replace columns of the log by functions of what they were."""
    with np.load(folder / 'log.npz') as log:
        found = dict(log)
    np.savez(folder / 'log.npz', **found | {name: f(found[name]) for name, f in columns.items()})


def of_column(k, f):
    """Return what changes one column only."""

    def changed(values):
        found = values.copy()
        found[:, k] = f(found[:, k])
        return found

    return changed


def run(folder, *more):
    out = ('--json', folder / 'o.json', '--out-urdf', folder / 'o.urdf')
    arguments = ['identify', folder / 'log.npz', *more, '--robot', folder / 'arm.urdf', '--config',
                 folder / 'logs.yaml', *out]  # fmt: skip
    return main(list(map(str, arguments)))


def found_by(folder, *more):
    """Return code and subject of the findings, without the name of the log."""
    assert run(folder, *more) == 0
    findings = json.loads((folder / 'o.json').read_text())['findings']
    return {(one['code'], one['subject'].split(': ')[-1]) for one in findings}


def rows_of(folder):
    return json.loads((folder / 'o.json').read_text())['submodels'][0]['rows']


def swapped(e):
    return e[:, [1, 0, *range(2, e.shape[1])]]


def stuck(e):
    """Repeat one value for four seconds."""
    return np.concatenate([e[:400], np.repeat(e[400:401], 400), e[800:]])


def some_missing(q):
    return np.where((np.arange(len(q)) % 100 < 5)[:, None], np.nan, q)


@pytest.mark.parametrize(
    ('columns', 'subject'),
    [
        ({'q': lambda q: DEGREES * q, 'v': lambda v: DEGREES * v}, 'j_drawn: position'),
        (
            {'v': of_column(0, lambda v: np.sin(0.043 * np.arange(len(v))))},
            'j_drawn: positions change',
        ),
        ({'e': lambda e: 1000.0 * e}, 'base: all effort'),
        ({'e': np.negative}, 'base: all effort'),
        ({'t': lambda t: 1e3 * t}, 'time: rate 0.1 Hz'),
    ],
)
def test_impossible_logs_are_refused(folder, capsys, columns, subject):
    change(folder, **columns)
    assert run(folder) == 1 and subject in capsys.readouterr().err
    assert not (folder / 'o.json').exists() and not (folder / 'o.urdf').exists()


@pytest.mark.parametrize(
    ('columns', 'code', 'subject'),
    [
        ({'e': lambda e: 10.0 * e}, 'scale', 'base'),
        ({'e': of_column(1, np.negative)}, 'scale', 'base'),
        ({'e': of_column(1, np.zeros_like)}, 'constant', 'j_seen'),
        ({'q': some_missing}, 'missing', 'j_bare'),
        ({'e': of_column(2, stuck)}, 'frozen', 'j_told'),
        ({'v': of_column(0, stuck)}, 'frozen', 'j_drawn'),
        ({'e': of_column(1, lambda e: np.clip(e, -0.5, 0.5))}, 'frozen', 'j_seen'),
    ],
)  # fmt: skip
def test_faults_are_found(folder, columns, code, subject):
    change(folder, **columns)
    assert (code, subject) in found_by(folder)


@pytest.mark.parametrize('how', ['fitted', 'predicted'])
@pytest.mark.parametrize(
    ('change_of', 'joints'),
    [
        (of_column(2, np.negative), JOINTS[2:3]),
        (lambda e: 5 * e, JOINTS),
        (swapped, JOINTS[:2]),
        (lambda e: e, []),
    ],
)
def test_logs_that_contradict_are_found(folder, rng, change_of, joints, how):
    write_log(folder / 'other.npz', rng)
    with np.load(folder / 'other.npz') as log:
        np.savez(folder / 'other.npz', **dict(log) | {'e': change_of(log['e'])})
    run(folder, *(['--validate'] if how == 'predicted' else []), folder / 'other.npz')
    findings = json.loads((folder / 'o.json').read_text())['findings']
    odd = [one for one in findings if one['code'] == 'logs_disagree']
    assert {one['values']['what'] for one in odd} == {f'base effort {joint}' for joint in joints}
    assert how == 'predicted' or len({one['subject'] for one in odd}) == (2 if joints else 0)


@pytest.mark.parametrize('how', ['fitted', 'predicted'])
def test_constant_effort_in_one_log_costs_its_equations(folder, how):
    with np.load(folder / 'log.npz') as log:
        np.savez(folder / 'dead.npz', **dict(log) | {'e': of_column(1, np.zeros_like)(log['e'])})
    more = [folder / 'dead.npz']
    codes = found_by(folder, *(['--validate', *more] if how == 'predicted' else more))
    assert ('constant', JOINTS[1]) in codes and ('missing', JOINTS[1]) not in codes
    counts = [rows_of(folder)[f'effort {name}']['count'] for name in JOINTS]
    assert (counts[1] < counts[0]) == (how == 'fitted')
    assert rows_of(folder)[f'effort {JOINTS[1]}']['validation'] is None


@pytest.mark.parametrize(('key', 'old'), [('effort', '100'), ('velocity', '5')])
def test_values_beyond_ratings_are_found(folder, key, old):
    urdf = (folder / 'arm.urdf').read_text()
    (folder / 'arm.urdf').write_text(urdf.replace(f'{key}="{old}"', f'{key}="0.05"'))
    assert {code for code, _ in found_by(folder)} == {'rating'}
    (folder / 'arm.urdf').write_text(urdf.replace(f'{key}="{old}"', f'{key}="0"'))
    assert found_by(folder) == set()


def test_frozen_efforts_give_no_equations(folder):
    def kept(wanted):
        assert (('frozen', 'j_told') in found_by(folder)) == wanted
        rows = rows_of(folder)
        return {kind.split()[1]: row['count'] for kind, row in rows.items()}, rows

    clean, _ = kept(False)
    change(folder, e=of_column(2, stuck))
    rows, figures = kept(True)
    assert all(rows[name] == clean[name] for name in JOINTS if name != 'j_told')
    # The repeated ones, and what the filter spreads them to on both sides (`edges`, 0.2 s).
    assert 399 <= clean['j_told'] - rows['j_told'] <= 399 + 2 * 0.2 * RATE + 2
    assert figures['effort j_told']['fit'] < 3 * NOISE
    write_settings(folder, frozen_after=0)
    rows, figures = kept(False)
    assert rows == clean
    assert figures['effort j_told']['fit'] > 30 * NOISE


def test_negative_friction_is_found(folder):
    with np.load(folder / 'log.npz') as log:
        v = log['v']
    change(folder, e=lambda e: e - 1.5 * v * [0, 1, 0, 0])
    assert ('indefinite', 'j_seen.viscous') in found_by(folder)
