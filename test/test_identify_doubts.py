# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``inertial-estimation identify`` of logs that cannot be what they are said to be.

Not covered: bags, whose signals go through the same checks but for those of tables.
"""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from shared_data import SHARED
from simulated_arm import LINKS, arm, arm_urdf, efforts_of, moving

from inertial_estimation.cli import main
from inertial_estimation.identification import fit
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.solvers.methods import SOLVERS

JOINTS = [f'j_{link}' for link in LINKS]
DATA = SHARED / 'data'
CONFIG = Path(__file__).resolve().parents[1] / 'config'
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
    samples = moving(rng, SECONDS, RATE)
    efforts = efforts_of(arm(), samples) + VISCOUS * samples.velocities
    np.savez(
        tmp_path / 'log.npz',
        t=samples.stamp_ns * 1e-9,
        q=samples.positions,
        v=samples.velocities,
        e=efforts + rng.normal(0.0, NOISE, efforts.shape),
    )
    write_settings(tmp_path)
    return tmp_path


def write_settings(folder, *, log=None, rows=None, **groups):
    said = {
        'robot': {'fixed_link': 'base'},
        'log': {'time': 't', 'joints': JOINTS, 'positions': {'columns': 'q'},
                'velocities': {'columns': 'v'}, 'efforts': {'columns': 'e'}, **(log or {})},
        'preparation': {'cutoff': 10.0, 'measured_velocities': True, **groups},
        'rows': {'efforts': 'all', 'friction': ['viscous'], **(rows or {})},
    }  # fmt: skip
    (folder / 'logs.yaml').write_text(yaml.safe_dump(said))


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
    arguments = ['identify', folder / 'log.npz', '--robot', folder / 'arm.urdf', '--config',
                 folder / 'logs.yaml', *out, *more]  # fmt: skip
    return main(list(map(str, arguments)))


def refused(folder, capsys):
    assert run(folder) == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert not (folder / 'o.json').exists() and not (folder / 'o.urdf').exists()
    return error


def warned(folder, *more):
    assert run(folder, *more) == 0
    return json.loads((folder / 'o.json').read_text())['warnings']


def test_a_good_log_gives_no_warning(folder):
    assert warned(folder) == []


def test_degrees_that_are_declared_radians_are_beyond_the_limits(folder, capsys):
    change(folder, q=lambda q: DEGREES * q, v=lambda v: DEGREES * v)
    error = refused(folder, capsys)
    assert "position of 'j_drawn' is" in error and 'are -3 and 3' in error
    assert 'unit: deg' in error and 'divided_by' in error


def test_positions_a_little_beyond_their_limits_are_told(folder):
    urdf = (folder / 'arm.urdf').read_text().replace('upper="3"', 'upper="0.3"')
    (folder / 'arm.urdf').write_text(urdf)
    said = warned(folder)
    assert any("position of 'j_seen'" in text and '-3 and 0.3' in text for text in said)


def test_joints_without_end_stops_that_turn_too_often_are_told(folder):
    urdf = (folder / 'arm.urdf').read_text().replace('type="revolute"', 'type="continuous"')
    (folder / 'arm.urdf').write_text(urdf)
    change(folder, q=lambda q: DEGREES * q, v=lambda v: DEGREES * v)
    assert any("'j_drawn' turns by" in text and 'unit: deg' in text for text in warned(folder))


@pytest.mark.parametrize(
    ('columns', 'said'),
    [
        ({'v': lambda v: DEGREES * v}, '0.0175 times as fast'),
        ({'v': lambda v: DEGREES * v}, 'velocities are in degrees'),
        ({'q': lambda q: q / DEGREES}, 'positions are declared as degrees but are not'),
        ({'v': lambda v: v * 30 / np.pi}, 'velocities are in rpm'),
        ({'v': of_column(0, lambda v: 5.0 * v)}, 'the other side of a gear'),
        ({'v': np.negative}, 'in the other direction'),
        (
            {'v': of_column(0, lambda v: np.sin(0.043 * np.arange(len(v))))},
            'not of the same joint',
        ),
        ({'v': np.zeros_like}, 'the velocities stand still'),
    ],
)
def test_velocities_that_are_no_derivatives_are_refused(folder, capsys, columns, said):
    change(folder, **columns)
    error = refused(folder, capsys)
    assert "positions and velocities of 'j_drawn' contradict each other" in error
    assert said in error


def test_velocities_that_are_not_used_are_told_only(folder):
    write_settings(folder, measured_velocities=False)
    change(folder, v=lambda v: DEGREES * v)
    said = [text for text in warned(folder) if 'contradict' in text]
    assert len(said) == len(JOINTS)


def test_velocities_are_compared_between_gaps_only(folder):
    """The robot moves on while nothing is recorded; some velocities are missing."""

    def without_middle(values):
        return np.concatenate([values[:400], values[700:]])

    change(folder, t=without_middle, q=without_middle, v=without_middle, e=without_middle)
    change(folder, v=of_column(1, lambda v: np.where(np.arange(len(v)) == 50, np.nan, v)))
    assert not any('contradict' in text for text in warned(folder))


@pytest.mark.parametrize('unit', ['A', ['N m', 'N m', 'mA', 'N m']])
def test_currents_that_nothing_scales_are_refused(folder, capsys, unit):
    write_settings(folder, log={'efforts': {'columns': 'e', 'unit': unit}})
    error = refused(folder, capsys)
    joint, name = ('j_drawn', 'A') if unit == 'A' else ('j_told', 'mA')
    assert f"'log.efforts.unit' of joint '{joint}' is '{name}'" in error
    assert "'log.efforts.scale'" in error and "'rows.gains'" in error


def test_currents_with_a_scale_are_taken(folder):
    change(folder, e=lambda e: e / 7.0)
    write_settings(folder, log={'efforts': {'columns': 'e', 'unit': 'A', 'scale': 7.0}})
    assert warned(folder) == []


@pytest.mark.parametrize('value', [0.0, 1.25])
def test_efforts_that_do_not_change_are_refused(folder, capsys, value):
    change(folder, e=of_column(1, lambda e: np.full_like(e, value)))
    error = refused(folder, capsys)
    assert f"effort of 'j_seen' is {value:g} at all 1200 instants" in error
    assert 'rows.efforts' in error


def test_efforts_of_joints_at_rest_may_be_constant(folder):
    still = of_column(3, lambda values: np.full_like(values, 0.0))
    change(folder, q=still, v=still, e=still)
    assert any("effort of 'j_bare' is 0 at all" in text for text in warned(folder))


@pytest.mark.parametrize('factor', [1000.0, 0.1, -1.0])
def test_efforts_of_another_size_than_predicted_are_told(folder, factor):
    change(folder, e=lambda e: factor * e)
    (said,) = [text for text in warned(folder) if 'what the description predicts' in text]
    assert f'effort j_seen ({factor:.2g})' in said
    for word in ('units', 'gears', 'order of columns', 'signs'):
        assert word in said


def test_masses_that_vanish_are_told(folder):
    change(folder, e=lambda e: 0.01 * e)
    (said,) = [text for text in warned(folder, '--weight', '1e-8') if 'next to nothing' in text]
    assert 'bare (' in said and 'of 0.5 kg)' in said and 'units' in said


def test_fits_that_leave_most_of_the_signal_are_told(folder):
    change(folder, e=lambda e: e[:, ::-1])
    (said,) = [text for text in warned(folder) if 'leaves most' in text]
    assert 'effort j_bare (' in said and 'order of columns' in said


def test_missing_and_repeated_values_of_tables_are_told(folder):
    def missing(q):
        return np.where((np.arange(len(q)) % 100 < 5)[:, None], np.nan, q)

    def frozen(e):
        return np.concatenate([e[:500], np.repeat(e[500:501], 50), e[550:]])

    change(folder, q=missing, e=of_column(2, frozen))
    said = warned(folder)
    assert any('position of j_bare: missing at 60 of 1200 instants' in text for text in said)
    assert any(
        'effort of j_told: one reading repeated to the bit' in text and '50 of 1200' in text
        for text in said
    )


def test_values_in_coarse_steps_are_not_taken_for_frozen(folder):
    change(folder, e=lambda e: np.round(e / 2.0) * 2.0)
    assert not any('repeated' in text for text in warned(folder))


def test_friction_and_drives_that_are_negative_are_told_with_their_bounds(folder):
    with np.load(folder / 'log.npz') as log:
        v = log['v']
    change(folder, e=lambda e: e - 1.5 * v * [0, 1, 0, 0])
    (said,) = [text for text in warned(folder) if 'negative' in text]
    assert 'j_seen.viscous (-1' in said
    assert 'bounds: {extras: {viscous: [0, .inf]' in said
    settings = yaml.safe_load((folder / 'logs.yaml').read_text())
    settings['bounds'] = {'extras': {'viscous': [0, float('inf')]}}
    (folder / 'logs.yaml').write_text(yaml.safe_dump(settings))
    assert not any('negative' in text for text in warned(folder))


def test_stiction_at_rest_is_told_until_there_is_a_dead_zone(folder, rng):
    """The arm stands still for a third of the log, where its drives hold some of the load."""
    with np.load(folder / 'log.npz') as log:
        columns = dict(log)
    n = len(columns['t']) // 2
    for name, rest in (('q', columns['q'][-1:]), ('v', np.zeros((1, 4))), ('e', None)):
        rest = efforts_at_rest(columns, rng, n) if rest is None else np.repeat(rest, n, axis=0)
        columns[name] = np.concatenate([columns[name], rest])
    columns['v'][-n - 1] = 0.0
    columns['t'] = np.arange(len(columns['q'])) / RATE
    np.savez(folder / 'log.npz', **columns)
    (said,) = [text for text in warned(folder) if 'stiction' in text]
    assert 'j_seen (' in said and 'rows.dead_zone: 0.05' in said
    write_settings(folder, rows={'dead_zone': 0.05})
    assert not any('stiction' in text for text in warned(folder))


def efforts_at_rest(columns, rng, n):
    """Return efforts that wander slowly about the last one."""
    steps = rng.normal(0.0, 3.0, (6, 4)).repeat(n // 6, axis=0)
    return columns['e'][-1] + steps + rng.normal(0.0, NOISE, (n, 4))


def test_answers_that_are_not_optimal_are_told(folder, monkeypatch):
    method = SOLVERS['manifold']

    def stopped(problem, **options):
        return replace(method.solve(problem, **options), grade=Grade.STOPPED)

    known = dict(SOLVERS) | {'manifold': replace(method, solve=stopped)}
    monkeypatch.setattr(fit, 'SOLVERS', known)
    (said,) = warned(folder, '--method', 'manifold')
    assert 'base: manifold ended stopped after' in said and 'a better answer exists' in said


def test_the_prior_may_weigh_one_row(folder, capsys):
    assert warned(folder, '--weight', 'one-row') == []
    (found,) = json.loads((folder / 'o.json').read_text())['submodels']
    rows = sum(row['independent'] for row in found['rows'].values())
    assert found['weight'] == pytest.approx(1.0 / rows)
    assert f' {found["weight"]:.2g} ' in capsys.readouterr().out
    links = json.loads((folder / 'o.json').read_text())['links']
    assert run(folder, '--weight', str(found['weight'])) == 0
    assert json.loads((folder / 'o.json').read_text())['links'] == links


def test_what_is_no_weight_is_refused(folder, capsys):
    with pytest.raises(SystemExit):
        run(folder, '--weight', 'two-rows')
    assert "'two-rows' is neither a number nor 'one-row'" in capsys.readouterr().err


REAL = {
    'identify_panda.yaml': ('panda_excitation/log.npz@0:8', 'models/panda_wrist_ft.urdf'),
    'identify_ur10e.yaml': ('ur10e/fourier_30s_12h.npz', 'ur10e/ur10e.urdf'),
    'identify_tx40.yaml': ('staubli_tx40/train.npz@0:3', 'staubli_tx40/tx40.urdf'),
    'identify_tiago.yaml': ('tiago/train.npz', 'tiago/tiago.urdf'),
    'identify_icub_yoga.yaml': ('icub_yoga_left/bag@13.1:30', 'models/icub_v2_5.urdf'),
}
ALARMS = 'contradict', 'limits', 'predicts', 'leaves most', 'next to nothing', 'bit, for 0.2 s'


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
@pytest.mark.parametrize('config', REAL)
def test_real_logs_raise_no_false_alarm(tmp_path, config):
    log, urdf = REAL[config]
    out = tmp_path / 'o.json'
    arguments = ['identify', DATA / log, '--robot', DATA / urdf, '--config', CONFIG / config,
                 '--json', out]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    said = json.loads(out.read_text())['warnings']
    assert not [text for text in said if any(alarm in text for alarm in ALARMS)]
    assert any('stiction' in text for text in said) == (config == 'identify_ur10e.yaml')
    assert any('torso_lift_joint.drive_inertia' in one for one in said) == ('tiago' in config)


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
@pytest.mark.parametrize('method', ['manifold', 'least_squares'])
def test_nothing_is_said_of_grades_and_bounds_that_are_as_they_should_be(tmp_path, method):
    """The settings hold empty bounds; the manifold once ended before its optimum here."""
    log, urdf = REAL['identify_panda.yaml']
    out = tmp_path / 'o.json'
    arguments = ['identify', DATA / log, '--robot', DATA / urdf, '--config',
                 CONFIG / 'identify_panda.yaml', '--json', out, '--method', method]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    found = json.loads(out.read_text())
    assert found['submodels'][0]['grade'] == 'optimal'
    assert not [text for text in found['warnings'] if 'ended' in text or 'bounds' in text]
