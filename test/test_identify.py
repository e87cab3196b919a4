# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``inertial-estimation identify``: a simulated arm whose truth is known, and a real one.

Not covered: the solvers by themselves, which have tests of their own.
"""

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.cli import main
from inertial_estimation.config.methods import METHODS
from inertial_estimation.identification import fit
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import determined
from inertial_estimation.identification.solvers.entropic import solve_entropic
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.logs.identify import identify
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model.inertia import pseudo_inertia
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import net_wrench_regressor
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

RATE = 500.0
PANDA = Path(__file__).resolve().parents[2] / 'shared' / 'data'
CONFIG = Path(__file__).resolve().parents[1] / 'config'
# The low pass at 20 Hz and central differences change motions below 2 Hz by this share.
FILTERED = 5e-3
VISCOUS, COULOMB = 0.7, 0.4
# Of two values of an offset, where submodels have to agree to 1e-7 of the largest.
AGREED = 1e-6
CONDITIONED = [4, 5, 7, 6, 8, 9, 1, 2, 3, 0]
"""Order in which the parameters of a link become base parameters."""

SETTINGS = """
robot: {fixed_link: base}
log:
  time: t
  joints: [shoulder, elbow, lift]
  positions: {columns: [q1, q2, q3]}
  efforts: {columns: [e1, e2, e3]}
  ft_sensors:
    wrist_sensor: {columns: [fx, fy, fz, mx, my, mz]}
preparation: {cutoff: 20.0, every: 4}
rows: {efforts: all, friction: [viscous, coulomb], sign_width: 0.5}
"""


def motion(rng, n=4000):
    """Return times, positions, velocities, accelerations of three joints below 2 Hz."""
    t = np.arange(n) / RATE
    q, v, a = np.zeros((3, n, 3))
    for f in (0.3, 0.7, 1.1, 1.7):
        size, phase, w = rng.uniform(0.05, 0.3, 3), rng.uniform(0, 6, 3), 2 * np.pi * f
        q += size * np.sin(w * t[:, None] + phase)
        v += w * size * np.cos(w * t[:, None] + phase)
        a -= w**2 * size * np.sin(w * t[:, None] + phase)
    return t, q, v, a


def write_log(path, robot, rng):
    """Write what sensors of a robot say while it moves."""
    t, q, v, a = motion(rng)
    n = len(t)
    empty = np.zeros((n, 0, 3))
    samples = SampleBatch(
        np.round(t * 1e9).astype(np.int64), q, v, a, empty, empty, empty, np.zeros((n, 1, 6)),
        efforts=np.zeros((n, 3)),
    )  # fmt: skip
    # With readings and efforts of zero, what rows lack is what these should have been.
    rows = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names)).equations(samples)
    tool = robot.link_names.index('tool')
    motions = link_motions(robot, samples, poses_in_parents(robot, q))
    readings = -net_wrench_regressor(motions[tool]) @ robot.parameters[tool]
    samples.ft_readings[:, 0] = readings
    rows = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names)).equations(samples)[0]
    inner = robot.parameters[list(robot.submodels[0].links)].reshape(-1)
    sign = JointModel(sign_width=0.5)
    columns = {'t': t}
    for j, name in enumerate(robot.joint_names):
        Y, y, _ = rows[f'effort {name}']
        friction = VISCOUS * v[:, j] + COULOMB * np.tanh(v[:, j] / sign.sign_width)
        columns |= {f'q{j + 1}': q[:, j], f'e{j + 1}': Y @ inner - y + friction}
    columns |= {c: readings[:, k] for k, c in enumerate(('fx', 'fy', 'fz', 'mx', 'my', 'mz'))}
    np.savez(path, **columns)


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """Write logs of a true arm, and a description of it that is wrong."""
    folder, rng = tmp_path_factory.mktemp('written'), np.random.default_rng(20161)
    truth = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = arm_with_wrist_sensor_urdf().replace('<mass value="1.5"/>', '<mass value="2.1"/>')
    (folder / 'arm.urdf').write_text(wrong.replace('value="0.5"', 'value="0.65"'))
    (folder / 'logs.yaml').write_text(SETTINGS)
    for name in ('one', 'two', 'other'):
        write_log(folder / f'{name}.npz', truth, rng)
    return folder, truth


@pytest.fixture
def files(written, tmp_path):
    """Return a copy of the files, and the true arm."""
    folder, truth = written
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    return tmp_path, truth


def codes(path):
    findings = json.loads(path.read_text())['findings']
    return {(one['code'], one['subject'].rpartition('.npz: ')[2]) for one in findings}


def run(folder, *more):
    return main(
        ['identify', str(folder / 'one.npz'), str(folder / 'two.npz'), '--robot',
         str(folder / 'arm.urdf'), '--config', str(folder / 'logs.yaml'), *map(str, more)]
    )  # fmt: skip


def test_a_wrong_description_is_put_right(files, capsys):
    folder, truth = files
    out = ('--json', folder / 'out.json', '--out-urdf', folder / 'out.urdf')
    assert run(folder, '--weight', '1e-6', '--validate', folder / 'other.npz', *out) == 0
    found = json.loads((folder / 'out.json').read_text(), parse_constant=pytest.fail)
    assert found['consistent']
    base, tool = found['submodels']
    for rows in (base['rows'], tool['rows']):
        for kind, row in rows.items():
            assert row['fit'] < FILTERED * row['signal'], kind
            assert row['validation'] < 2 * FILTERED * row['signal'], kind
    assert base['rows']['effort elbow']['before'] > 0.05 * base['rows']['effort elbow']['signal']
    for joint in truth.joint_names:
        assert base['extras'][f'{joint}.viscous'] == pytest.approx(VISCOUS, rel=0.03)
        assert base['extras'][f'{joint}.coulomb'] == pytest.approx(COULOMB, rel=0.05)
    of_tool = tool['base_parameters']
    assert len(of_tool) == tool['determined'] == 10
    link = truth.link_names.index('tool')
    for one, value in zip(of_tool, truth.parameters[link][CONDITIONED], strict=True):
        assert one['terms'] == {}
        assert one['value'] == pytest.approx(value, abs=2e-3)
        assert 0.0 < one['deviation'] < 1e-3
    again = Robot.from_urdf(folder / 'out.urdf', fixed_link='base')
    tool = truth.link_names.index('tool')
    np.testing.assert_allclose(again.parameters[tool, :4], truth.parameters[tool, :4], atol=2e-3)


def test_all_but_the_inertials_keeps_its_bytes(files):
    folder, _ = files
    text = (folder / 'arm.urdf').read_text().replace('><', '>\n  <')
    text = f'<?xml version="1.0" encoding="ISO-8859-1"?>\n<!-- Prüfstand -->\n{text}\n'
    (folder / 'arm.urdf').write_bytes(text.replace('\n', '\r\n').encode('latin-1'))
    assert run(folder, '--out-urdf', folder / 'out.urdf') == 0
    old, new = ((folder / name).read_bytes() for name in ('arm.urdf', 'out.urdf'))
    inertial = re.compile(rb'<inertial>.*?</inertial>', re.DOTALL)
    assert inertial.findall(new) != inertial.findall(old)
    assert inertial.sub(b'', new) == inertial.sub(b'', old)


def test_locked_joints_make_one_body(files, capsys, rng):
    """What the lift carries up to the wrist sensor belongs to the lower link."""
    folder, _ = files
    with np.load(folder / 'one.npz') as log:
        still = dict(log) | {'q3': np.full(len(log['t']), 0.1)}
    np.savez(folder / 'one.npz', **still)
    arguments = ['identify', folder / 'one.npz', '--robot', folder / 'arm.urdf', '--config',
                 folder / 'logs.yaml', '--lock', 'lift', '--json', folder / 'o.json']  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    base = json.loads((folder / 'o.json').read_text())['submodels'][0]
    assert set(base['margins']) == {'base', 'upper', 'lower'}
    arguments[1] = folder / 'two.npz'
    assert main(list(map(str, arguments))) == 1
    assert 'two.npz' in (said := capsys.readouterr().err)
    assert 'moves by' in said


@pytest.mark.parametrize(
    ('joint', 'said'),
    [
        ('tip_joint', "'tip_joint'"),
        ('elbow', "'elbow'"),
        ('elbw', "'elbw'"),
    ],
)
def test_what_cannot_be_locked_is_told_why(files, capsys, joint, said):
    folder, _ = files
    settings = SETTINGS.replace('base}', 'base, joints: [shoulder, lift]}')
    settings = settings.replace('[shoulder, elbow, lift]', '[shoulder, lift]')
    settings = settings.replace('q2, ', '').replace('e2, ', '')
    (folder / 'logs.yaml').write_text(settings)
    assert run(folder, '--lock', joint) == 1
    assert said in capsys.readouterr().err


def test_rows_under_an_unknown_wrench_are_left_out(files, capsys):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace('efforts: all,', 'contacts: [tip],'))
    assert run(folder) == 1
    assert 'tip' in capsys.readouterr().err


def test_a_part_of_a_log_is_fitted_and_the_rest_predicted(files, capsys):
    folder, _ = files
    one = folder / 'one.npz'
    arguments = ['identify', f'{one}@0:4', folder / 'two.npz', '--robot', folder / 'arm.urdf',
                 '--config', folder / 'logs.yaml', '--weight', '1e-6', '--json',
                 folder / 'out.json', '--validate', f'{one}@4:']  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    found = json.loads((folder / 'out.json').read_text())
    assert [part['recorded'] for part in found['logs']] == [4 * RATE, 8 * RATE]
    assert found['validation_logs'][0]['recorded'] == 4 * RATE
    for row in found['submodels'][0]['rows'].values():
        assert row['validation'] < 2 * FILTERED * row['signal']
    assert not found['findings']
    arguments[-1] = f'{one}@3.5:'
    assert main(list(map(str, arguments))) == 0
    assert codes(folder / 'out.json') == {('suboptimal', f'{one}@3.5:')}


def test_logs_that_predict_nothing_are_told(files, capsys):
    folder, _ = files
    with np.load(folder / 'other.npz') as log:
        np.savez(folder / 'other.npz', **dict(log) | {'q1': np.full(len(log['t']), np.nan)})
    out = folder / 'out.json'
    assert run(folder, '--validate', folder / 'other.npz', '--json', out) == 0
    assert {('missing', 'shoulder'), ('unexcited', 'base')} <= codes(out)


@pytest.mark.parametrize('weight', ['0', '-1', 'nan', 'inf'])
def test_a_weight_that_is_none_is_refused_as_it_was_given(files, capsys, weight):
    folder, _ = files
    with pytest.raises(SystemExit):
        run(folder, f'--weight={weight}')
    assert f"'{weight}'" in capsys.readouterr().err


def test_friction_is_written_for_other_programs(files):
    folder, _ = files
    assert run(folder, '--weight', '1e-6', '--out-yaml', folder / 'out.yaml') == 0
    found = yaml.safe_load((folder / 'out.yaml').read_text())
    assert found['elbow']['viscous']['value'] == pytest.approx(VISCOUS, rel=0.03)
    assert 0 < found['elbow']['viscous']['deviation'] < 0.1 * VISCOUS


def test_an_offset_between_two_submodels_has_one_value(files, capsys):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace('rows: {', 'rows: {offsets: all, '))
    assert run(folder, '--out-yaml', folder / 'o.yaml', '--json', folder / 'o.json') == 0
    found = yaml.safe_load((folder / 'o.yaml').read_text())['wrist_sensor']
    both = json.loads((folder / 'o.json').read_text())['submodels']
    assert len(found) == 6
    for term, one in found.items():
        name = f'wrist_sensor.{term}'
        sure = min(block['deviations'][name] or np.inf for block in both)
        assert (one['deviation'] or np.inf) == sure
        for block in both:
            assert block['extras'][name] == pytest.approx(one['value'], abs=AGREED)


def test_bounds_are_kept_by_methods_that_do(files, capsys):
    folder, truth = files
    mass = truth.parameters[truth.link_names.index('tool'), 0]
    bounds = f'bounds: {{mass: {{tool: [{1.2 * mass}, .inf]}}}}\n'
    (folder / 'logs.yaml').write_text(SETTINGS + bounds)
    out, urdf = folder / 'out.json', folder / 'out.urdf'
    assert run(folder, '--json', out, '--out-urdf', urdf) == 0
    found = json.loads(out.read_text())
    assert found['links']['tool']['m'] > 1.2 * mass * (1 - 1e-6)
    assert [one['bounds_not_kept'] for one in found['submodels']] == [[], []]
    urdf.unlink()
    assert run(folder, '--method', 'euclidean', '--json', out, '--out-urdf', urdf) == 1
    assert 'least mass of tool' in ' '.join(capsys.readouterr().err.split())
    assert ('suboptimal', 'bounds') in codes(out)
    assert not urdf.exists()
    found = json.loads(out.read_text())
    assert found['links']['tool']['m'] < 1.1 * mass
    assert ['least mass of tool'] in [one['bounds_not_kept'] for one in found['submodels']]


@pytest.mark.parametrize('method', ['entropic', 'semidefinite'])
def test_an_ellipsoid_of_the_file_holds_all_mass(files, method):
    folder, _ = files
    size, center = np.array([0.15, 0.15, 0.15]), np.array([0.02, -0.01, 0.1])
    said = {'center': center.tolist(), 'semi_axes': size.tolist()}
    to_ball = np.column_stack([np.diag(1.0 / size), -center / size])
    Q = np.diag([0.0, 0.0, 0.0, 1.0]) - to_ball.T @ to_ball
    out, seen = folder / 'out.json', []
    for bounds in ({}, {'bounds': {'ellipsoids': {'tool': said}}}):
        (folder / 'logs.yaml').write_text(SETTINGS + (yaml.safe_dump(bounds) if bounds else ''))
        assert run(folder, '--method', method, '--json', out) == 0
        tool = json.loads(out.read_text())['links']['tool']
        seen.append(np.trace(Q @ pseudo_inertia(np.array(list(tool.values())))) / tool['m'])
    # Without it the tool reaches out of the ellipsoid; with it up to it.
    assert seen[0] < -0.05
    assert seen[1] > -1e-5


def test_bounds_that_contradict_each_other_are_named(files, capsys):
    folder, _ = files
    bounds = 'bounds: {mass: {tool: [3, 4]}, total_mass: {tool: [1, 2]}}\n'
    (folder / 'logs.yaml').write_text(SETTINGS + bounds)
    assert run(folder, '--json', folder / 'out.json') == 1
    error = capsys.readouterr().err
    assert 'mass' in error and 'tool' in error
    assert error.count('\n') == 1
    assert not (folder / 'out.json').exists()


def test_logs_without_motion_are_refused_with_what_they_miss(files, capsys):
    folder, _ = files
    with np.load(folder / 'one.npz') as log:
        rest = {key: np.full_like(log[key], log[key][0]) for key in log} | {'t': log['t']}
    for name in ('one', 'two'):
        np.savez(folder / f'{name}.npz', **rest)
    assert run(folder, '--json', folder / 'out.json') == 1
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    assert not (folder / 'out.json').exists()


def test_an_answer_that_is_worse_than_its_prior_is_refused(files, capsys, monkeypatch):
    folder, _ = files

    def far_off(problem, **options):
        found = solve_entropic(problem, **options)
        return replace(found, x=1e6 * found.x, mean_square=problem.mean_square(1e6 * found.x))

    method = replace(SOLVERS['entropic'], solve=far_off)
    monkeypatch.setattr(fit, 'SOLVERS', dict(SOLVERS) | {'entropic': method})
    assert run(folder, '--json', folder / 'out.json') == 1
    assert 'worse than the prior' in capsys.readouterr().err
    assert not (folder / 'out.json').exists()


def test_joints_that_stand_still_are_told(files, capsys):
    folder, _ = files
    for name in ('one', 'two'):
        with np.load(folder / f'{name}.npz') as log:
            np.savez(folder / f'{name}.npz', **dict(log) | {'q3': np.full(len(log['t']), 0.1)})
    assert run(folder, '--json', folder / 'out.json') == 0
    assert ('motion', 'lift') in codes(folder / 'out.json')
    base = json.loads((folder / 'out.json').read_text())['submodels'][0]
    assert 'lift.viscous' in base['not_determined']
    assert base['determined'] == base['combinations'] - len(base['not_determined'])
    told = {one['kept']: one for one in base['base_parameters']}
    assert len(told) == base['determined']
    assert not set(told).intersection(base['not_determined'])
    links = json.loads((folder / 'out.json').read_text())['links']
    for name, one in told.items():
        terms = {name: 1.0, **one['terms']}
        parts = [key.rsplit('.', 1) for key in terms]
        if all(owner in links for owner, _ in parts):
            sums = sum(f * links[o][p] for f, (o, p) in zip(terms.values(), parts, strict=True))
            assert one['value'] == pytest.approx(sums, abs=1e-9)


def test_a_description_that_nobody_can_mean_is_refused_by_name(files, capsys):
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    (folder / 'arm.urdf').write_text(urdf.replace('<mass value="2.1"/>', '<mass value="-2.1"/>'))
    assert run(folder, '--out-urdf', folder / 'out.urdf') == 1
    error = capsys.readouterr().err
    assert '-2.1' in error
    assert error.count('\n') == 1
    assert not (folder / 'out.urdf').exists()


def test_pushes_that_nobody_has_told_of_are_left_out(files, rng):
    """A tenth of what is fitted is disturbed, by ten times the noise and more."""
    folder, _ = files
    out = folder / 'out.json'
    for name, size in (('one', 30.0), ('two', 0.0)):
        with np.load(folder / f'{name}.npz') as log:
            columns = {key: log[key] for key in log}
        t = columns['t']
        push = np.where((t > 3.0) & (t < 4.6), size * np.sin(8.0 * t), 0.0)
        for joint, share in (('e1', 1.0), ('e2', 1.0), ('e3', 0.0)):
            columns[joint] = columns[joint] + share * push + rng.normal(0.0, 0.5, len(t))
        np.savez(folder / f'{name}.npz', **columns)
    errors = {}
    for reject in (0, 8):
        (folder / 'logs.yaml').write_text(
            SETTINGS.replace('rows: {', f'rows: {{reject: {reject}, ')
        )
        out = folder / 'out.json'
        assert (
            run(folder, '--weight', '1e-6', '--validate', folder / 'other.npz', '--json', out) == 0
        )
        base = json.loads(out.read_text())['submodels'][0]
        errors[reject] = base['rows']['effort shoulder']['validation']
        if reject:
            bad = ((t > 2.8) & (t < 4.8)).sum() / 4  # with what the filter spreads; every fourth
            assert 0.8 * bad < base['left_out']['effort shoulder'] < 2.0 * bad
    assert errors[8] < 0.3 * errors[0]


@pytest.mark.parametrize('share', [1.0, 5.0])
def test_links_that_are_written_lighter_are_told(files, capsys, share):
    """The tip is fixed to the tool, whose readings are those of 0.6 kg."""
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    at = urdf.index('<mass', urdf.index('<link name="tip">'))
    end = urdf.index('/>', at)
    (folder / 'arm.urdf').write_text(f'{urdf[:at]}<mass value="{share * 0.1}"{urdf[end:]}')
    out = folder / 'out.urdf'
    assert run(folder, '--weight', '1e-6', '--out-urdf', out, '--json', folder / 'o.json') == 0
    assert (('inertia', 'tip') in codes(folder / 'o.json')) == (share > 1)
    kept = f'<mass value="{share * 0.1}"/>' in out.read_text()
    assert kept == (share == 1)


def test_what_is_no_body_is_not_written_and_all_else_is(files, capsys):
    folder, _ = files
    out = folder / 'out.urdf'
    more = ('--json', folder / 'out.json', '--out-yaml', folder / 'out.yaml')
    # What a low pass far below the motion leaves fits no body.
    (folder / 'logs.yaml').write_text(SETTINGS.replace('cutoff: 20.0', 'cutoff: 0.5'))
    assert run(folder, '--method', 'least_squares', '--out-urdf', out, *more) == 1
    said = capsys.readouterr()
    assert f"'{out}'" in said.err and said.err.count('\n') == 1
    assert 'indefinite' in {code for code, _ in codes(folder / 'out.json')}
    assert not out.exists()
    assert not json.loads((folder / 'out.json').read_text())['consistent']
    assert yaml.safe_load((folder / 'out.yaml').read_text())['lift']


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (('q1', 'q9'), "no column 'q9'"),
        (('fixed_link: base', 'fixed_link: floor'), 'floor'),
        (('robot: {fixed_link: base}', ''), 'imus'),
        (('cutoff: 20.0', 'cutoff: 400.0'), '400 Hz'),
        (('[q1, q2, q3]', '[q1, q2]'), '2 values, expected 3 channels'),
        (('[q1, q2, q3]}', '[q1, q2, q3], unit: deg}'), "'lift' slides"),
        (('[q1, q2, q3]}', '[q1, q2, q3], unit: inch}'), "'inch', expected one of rad"),
        (('rows:', 'bounds: {mass: {tool: [2, 1]}}\nrows:'), 'nothing between 2 and 1'),
        (('rows:', 'bounds: {mass: {tool: [-2, -1]}}\nrows:'), 'bounds.mass.tool'),
        (('rows:', 'bounds: {total_mass: [-2, 0]}\nrows:'), 'bounds.total_mass'),
        (('fixed_link: base', 'fixed_link: base, gravity: 3'), 'gravity'),
        (('fixed_link: base', 'joints: 3'), "'robot.joints' is 3"),
    ],
)
def test_bad_input_is_one_sentence_and_writes_nothing(files, capsys, change, said):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace(*change))
    assert run(folder, '--out-urdf', folder / 'out.urdf') == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count('\n') == 1
    assert not (folder / 'out.urdf').exists()


def nan(*names):
    return lambda log: log | {name: np.full(len(log['t']), np.nan) for name in names}


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (lambda log: {key: log[key] for key in log if key != 'e2'}, "no column 'e2'"),
        (nan('q1'), 'shoulder: position'),
        (nan('fx'), 'wrist_sensor: wrench'),
        (nan('t'), 'log.time holds NaN'),
        (lambda log: log | {'q1': np.full(len(log['t']), np.inf)}, 'shoulder: position'),
        (lambda log: {key: log[key][:0] for key in log}, 'holds no numbers'),
        (lambda log: {key: log[key][:1] for key in log}, 'too few for derivatives'),
        (
            lambda log: log | {'t': log['t'].round(2)},
            '3199 of 4000 stamps do not increase, the first at sample',
        ),
        (lambda log: log | {'q1': log['q1'][:-1]}, 'differ in length'),
        (lambda log: log | {'q1': np.full(len(log['t']), 'a')}, 'holds no numbers'),
    ],
)
def test_bad_logs_are_one_sentence_and_write_nothing(files, capsys, change, said):
    folder, _ = files
    with np.load(folder / 'one.npz') as log:
        columns = change(dict(log))
    for name in ('one', 'two'):
        np.savez(folder / f'{name}.npz', **columns)
    outputs = {'--json': 'o.json', '--out-urdf': 'o.urdf', '--out-yaml': 'o.yaml'}
    given = [part for name, file in outputs.items() for part in (name, folder / file)]
    assert run(folder, *given) == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count('\n') == 1
    assert not any((folder / file).exists() for file in outputs.values())


def test_signals_that_some_rows_lack_are_told(files, capsys):
    folder, _ = files
    for name in ('one', 'two'):
        with np.load(folder / f'{name}.npz') as log:
            np.savez(folder / f'{name}.npz', **nan('e1', 'e2', 'e3')(dict(log)))
    assert run(folder, '--json', folder / 'o.json') == 0
    assert {('missing', 'shoulder'), ('missing', 'elbow'), ('unexcited', 'base')} <= codes(
        folder / 'o.json'
    )


@pytest.mark.parametrize(
    ('moment', 'said'), [('-1', 'moment of inertia is -1 kg m^2'), ('nan', 'no finite number')]
)
def test_inertias_that_no_body_has_are_refused(files, capsys, moment, said):
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    (folder / 'arm.urdf').write_text(re.sub('ixx="[^"]*"', f'ixx="{moment}"', urdf))
    assert run(folder, '--out-urdf', folder / 'out.urdf') == 1
    error = capsys.readouterr().err
    assert said in error
    assert error.count('\n') == 1
    assert not (folder / 'out.urdf').exists()


def test_links_without_mass_are_told(files, capsys):
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    without = re.sub('<inertial>.*?</inertial>', '', urdf, flags=re.DOTALL)
    (folder / 'arm.urdf').write_text(without)
    # What the robot stands on changes no row.
    assert run(folder) == 1
    assert 'base: all effort' in capsys.readouterr().err


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (lambda w: -w, 'tool: all force'),
        (lambda w: 1000.0 * w, 'base: all effort'),
        (lambda w: w[:, [3, 4, 5, 0, 1, 2]], 'tool: all force'),
        (lambda w: w * [1, 1, 1, 1000, 1000, 1000], 'tool: all moment'),
        (lambda w: 0.0 * w, 'wrist_sensor: force_x is 0'),
    ],
)
def test_wrenches_that_no_tool_exerts_are_refused(files, capsys, change, said):
    folder, _ = files
    names = ['fx', 'fy', 'fz', 'mx', 'my', 'mz']
    for path in (folder / 'one.npz', folder / 'two.npz'):
        with np.load(path) as log:
            columns = dict(log)
        wrench = change(np.stack([columns[name] for name in names], axis=1))
        np.savez(path, **columns | dict(zip(names, wrench.T, strict=True)))
    assert run(folder, '--out-urdf', folder / 'out.urdf', '--json', folder / 'o.json') == 1
    error = capsys.readouterr().err
    assert said in error and error.count('\n') == 1
    assert not (folder / 'out.urdf').exists() and not (folder / 'o.json').exists()


def test_a_base_that_stands_still_needs_no_mass(files, capsys):
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    without = re.sub('<inertial>.*?</inertial>', '', urdf, count=1, flags=re.DOTALL)
    (folder / 'arm.urdf').write_text(without)
    assert run(folder) == 0
    assert 'without mass' not in capsys.readouterr().out


@pytest.mark.parametrize(
    ('more', 'said'),
    [
        (('--method', 'magic'), "'magic'"),
        (('--weight', 'much'), "'much'"),
    ],
)
def test_calls_that_are_wrong_have_their_own_exit_code(files, capsys, more, said):
    folder, _ = files
    with pytest.raises(SystemExit) as caught:
        run(folder, *more)
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_two_outputs_in_one_file_are_refused(files, capsys):
    folder, _ = files
    out = folder / 'o.json'
    assert run(folder, '--json', out, '--out-urdf', out) == 2
    assert 'written twice' in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.skipif(not PANDA.exists(), reason='needs ../shared/data')
@pytest.mark.parametrize(
    'method', [('least_squares',), ('entropic', '--weight', '1e-4')], ids=lambda m: m[0]
)
def test_a_real_panda_fits_to_the_goal(tmp_path, method):
    """The hand of the description was not on the arm: its prior must not weigh much here."""
    out = tmp_path / 'out.json'
    arguments = ['identify', PANDA / 'panda_excitation' / 'log.npz', '--robot',
                 PANDA / 'models' / 'panda_wrist_ft.urdf', '--config',
                 CONFIG / 'identify_panda.yaml', '--json', out, '--method', *method]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    (found,) = json.loads(out.read_text())['submodels']
    assert found['rank'] == 64
    squares = [sum(row[key] ** 2 for row in found['rows'].values()) for key in ('fit', 'signal')]
    assert np.sqrt(squares[0] / squares[1]) < 0.012


@pytest.mark.parametrize('method', METHODS)
def test_every_method_finds_the_masses_that_are_determined(files, method):
    """All ten parameters beyond a wrist sensor are; what is missing is filters and priors."""
    folder, truth = files
    weight = ('--weight', '1e-6') if SOLVERS[method].weighted else ()
    out = folder / 'out.json'
    assert run(folder, '--method', method, *weight, '--json', out) == 0
    found = json.loads(out.read_text())
    mass = truth.parameters[truth.link_names.index('tool'), 0]
    assert found['links']['tool']['m'] == pytest.approx(mass, rel=0.02)


def test_percents_of_what_is_predicted_are_of_its_own_signal(files, capsys):
    folder, _ = files
    with np.load(folder / 'other.npz') as log:
        np.savez(folder / 'odd.npz', **dict(log) | {'e1': 3.0 * log['e1']})
    assert run(folder, '--validate', folder / 'odd.npz', '--json', folder / 'o.json') == 0
    found = json.loads((folder / 'o.json').read_text())['submodels'][0]['rows']
    one = found['effort shoulder']
    share = 100 * one['validation'] / one['validation_signal']
    # Two thirds, of a signal that holds what lies beyond the wrist as well.
    assert share == pytest.approx(200 / 3, rel=0.2)
    # A low pass at 20 Hz of 500 Hz, one instant in four.
    assert one['independent'] == pytest.approx(1.8 * 20 / RATE * 4 * one['count'], rel=0.01)


def test_all_efforts_together_are_told(files, capsys):
    folder, _ = files
    more = ('--validate', folder / 'other.npz', '--json', folder / 'o.json')
    assert run(folder, *more) == 0
    found = json.loads((folder / 'o.json').read_text())
    blocks = found['submodels']
    rows = [row for block in blocks for kind, row in block['rows'].items() if 'effort' in kind]
    assert len(rows) == 3
    keys = ('before', 'fit', 'validation_before', 'validation')
    for key in keys:
        signal = 'validation_signal' if key.startswith('validation') else 'signal'
        squares = [sum(row[name] ** 2 for row in rows) for name in (key, signal)]
        share = np.sqrt(squares[0] / squares[1])
        assert found['efforts'][key] == pytest.approx(share, rel=1e-9)
    # The description's masses are wrong.
    assert found['efforts']['validation_before'] > found['efforts']['validation']


def test_readings_alone_have_no_efforts_together(files, capsys):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace('efforts: all, ', ''))
    assert run(folder, '--json', folder / 'o.json') == 0
    assert json.loads((folder / 'o.json').read_text())['efforts'] is None


def test_friction_has_units(files, capsys):
    folder, _ = files
    (folder / 'logs.yaml').write_text(
        SETTINGS.replace('[viscous, coulomb]', '[viscous, drive_inertia]').replace(
            'rows: {', 'rows: {offsets: all, '
        )
    )
    more = ('--out-yaml', folder / 'o.yaml', '--json', folder / 'o.json')
    assert run(folder, *more) == 0
    text = (folder / 'o.yaml').read_text()
    wanted = {
        ('elbow', 'viscous'): 'N m s/rad', ('elbow', 'drive_inertia'): 'kg m^2',
        ('lift', 'viscous'): 'N s/m', ('lift', 'drive_inertia'): 'kg',
        ('wrist_sensor', 'force_y'): 'N', ('wrist_sensor', 'moment_z'): 'N m',
    }  # fmt: skip
    units = json.loads((folder / 'o.json').read_text())['units']
    for (of, term), unit in wanted.items():
        assert f'  {term}:  # [{unit}]\n' in text[text.index(f'{of}:') :]
        assert units[f'{of}.{term}'] == unit
    assert yaml.safe_load(text)['lift']['viscous']['deviation'] > 0


def test_what_nothing_tells_has_no_deviation_in_the_file(files):
    folder, _ = files
    with np.load(folder / 'one.npz') as log:
        still = dict(log) | {'q3': np.zeros_like(log['q3'])}
    for name in ('one', 'two'):
        np.savez(folder / f'{name}.npz', **still)
    more = ('--method', 'least_squares', '--out-yaml', folder / 'o.yaml')
    assert run(folder, *more) == 0
    text = (folder / 'o.yaml').read_text()
    found = yaml.safe_load(text)
    assert found['lift']['viscous']['deviation'] is None
    assert found['elbow']['viscous']['deviation'] > 0
    assert 'inf' not in text


def test_what_is_determined_holds_what_other_submodels_say(files):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace('rows: {', 'rows: {offsets: all, '))
    settings = IdentifySettings.from_yaml(folder / 'logs.yaml')
    logs = [folder / 'one.npz', folder / 'two.npz']
    report = identify((folder / 'arm.urdf').read_text(), logs, settings)
    surer = False
    for block in report.fit.blocks:
        told = report.determined[block.name]
        whole, own = (
            determined(block.evidence.block, told.base, rows).deviations
            for rows in (block.information, block.noise.information)
        )
        np.testing.assert_array_equal(told.deviations, whole)
        surer |= len(whole) != len(own) or bool((whole < 0.9 * own).any())
    assert surer
