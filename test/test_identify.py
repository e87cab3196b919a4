# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``inertial-estimation identify``: a simulated arm whose truth is known."""

import json
import shutil

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf
from simulated_arm import swinging, tool_readings

from inertial_estimation.cli import main
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.model.robot import Robot

RATE, SECONDS = 500.0, 8.0
WRENCH = ('fx', 'fy', 'fz', 'mx', 'my', 'mz')
# The low pass at 20 Hz and central differences change motions below 2 Hz by this share.
FILTERED = 5e-3
VISCOUS, COULOMB = 0.7, 0.4
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


def write_log(path, robot, rng):
    """Write the positions, efforts and readings of a robot that moves."""
    samples = swinging(rng, SECONDS, RATE, n_fts=1)
    samples.ft_readings[:, 0] = readings = tool_readings(robot, samples)
    choice = EquationChoice(efforts=robot.joint_names)
    rows = EquationBuilder(robot, choice).equations(samples)[0]
    inner = robot.parameters[list(robot.submodels[0].links)].reshape(-1)
    columns = {'t': samples.stamp_ns * 1e-9}
    for j, name in enumerate(robot.joint_names):
        # With efforts of zero, the residuals of the equations are the efforts.
        Y, y, _ = rows[f'effort {name}']
        v = samples.velocities[:, j]
        friction = VISCOUS * v + COULOMB * np.tanh(v / 0.5)
        columns |= {f'q{j + 1}': samples.positions[:, j], f'e{j + 1}': Y @ inner - y + friction}
    np.savez(path, **columns, **dict(zip(WRENCH, readings.T, strict=True)))


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


def run(folder, *more, logs=('one.npz', 'two.npz')):
    logs = [str(folder / log) for log in logs]
    files = ('--robot', folder / 'arm.urdf', '--config', folder / 'logs.yaml')
    return main(['identify', *logs, *map(str, (*files, *more))])


def test_wrong_masses_are_corrected(files, capsys):
    folder, truth = files
    out = ('--json', folder / 'out.json', '--out-urdf', folder / 'out.urdf')
    assert run(folder, '--weight', '1e-3', '--validate', folder / 'other.npz', *out) == 0
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


def test_locked_joints_join_their_links(files, capsys, rng):
    """What the lift carries up to the wrist sensor belongs to the lower link."""
    folder, _ = files
    with np.load(folder / 'one.npz') as log:
        still = dict(log) | {'q3': np.full(len(log['t']), 0.1)}
    np.savez(folder / 'one.npz', **still)
    more = ('--lock', 'lift', '--json', folder / 'o.json')
    assert run(folder, *more, logs=('one.npz',)) == 0
    base = json.loads((folder / 'o.json').read_text())['submodels'][0]
    assert set(base['margins']) == {'base', 'upper', 'lower'}
    assert run(folder, *more, logs=('two.npz',)) == 1
    assert "'lift'" in capsys.readouterr().err


def test_part_of_a_log_is_fitted_and_the_rest_predicted(files, capsys):
    folder, _ = files
    one = folder / 'one.npz'
    fitted, more = (f'{one}@0:4', 'two.npz'), ('--weight', '1e-3', '--json', folder / 'out.json')
    assert run(folder, *more, '--validate', f'{one}@4:', logs=fitted) == 0
    found = json.loads((folder / 'out.json').read_text())
    assert [part['recorded'] for part in found['logs']] == [4 * RATE, 8 * RATE]
    assert found['validation_logs'][0]['recorded'] == 4 * RATE
    for row in found['submodels'][0]['rows'].values():
        assert row['validation'] < 2 * FILTERED * row['signal']
    assert not found['findings']
    assert run(folder, *more, '--validate', f'{one}@3.5:', logs=fitted) == 0
    assert codes(folder / 'out.json') == {('suboptimal', f'{one}@3.5:')}


def test_bounds_are_kept_or_reported(files, capsys):
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


@pytest.mark.parametrize('share', [1.0, 5.0])
def test_links_that_are_written_lighter_are_found(files, capsys, share):
    """The tip is fixed to the tool, whose readings are those of 0.6 kg."""
    folder, _ = files
    urdf = (folder / 'arm.urdf').read_text()
    at = urdf.index('<mass', urdf.index('<link name="tip">'))
    end = urdf.index('/>', at)
    (folder / 'arm.urdf').write_text(f'{urdf[:at]}<mass value="{share * 0.1}"{urdf[end:]}')
    out = folder / 'out.urdf'
    assert run(folder, '--weight', '1e-3', '--out-urdf', out, '--json', folder / 'o.json') == 0
    assert (('inertia', 'tip') in codes(folder / 'o.json')) == (share > 1)
    kept = f'<mass value="{share * 0.1}"/>' in out.read_text()
    assert kept == (share == 1)


def test_inconsistent_urdf_is_not_written(files, capsys):
    folder, _ = files
    out = folder / 'out.urdf'
    more = ('--json', folder / 'out.json', '--out-yaml', folder / 'out.yaml')
    # What a low pass far below the motion leaves fits no body.
    (folder / 'logs.yaml').write_text(SETTINGS.replace('cutoff: 20.0', 'cutoff: 0.5'))
    assert run(folder, '--method', 'least_squares', '--out-urdf', out, *more) == 1
    shown = capsys.readouterr()
    assert f"'{out}'" in shown.err and shown.err.count('\n') == 1
    assert 'indefinite' in {code for code, _ in codes(folder / 'out.json')}
    assert not out.exists() and not json.loads((folder / 'out.json').read_text())['consistent']
    assert yaml.safe_load((folder / 'out.yaml').read_text())['lift']


def refused(folder, capsys):
    """Return the error of a run that writes nothing."""
    outputs = {'--json': 'o.json', '--out-urdf': 'o.urdf', '--out-yaml': 'o.yaml'}
    given = [part for name, file in outputs.items() for part in (name, folder / file)]
    assert run(folder, *given) == 1
    assert not any((folder / file).exists() for file in outputs.values())
    error = capsys.readouterr().err
    assert error.count('\n') == 1
    return error


@pytest.mark.parametrize(
    ('old', 'new', 'name'),
    [
        ('q1', 'q9', "'q9'"),
        ('fixed_link: base', 'fixed_link: floor', 'floor'),
        ('cutoff: 20.0', 'cutoff: 400.0', '400 Hz'),
    ],
)
def test_wrong_settings_are_refused_by_name(files, capsys, old, new, name):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace(old, new))
    assert name in refused(folder, capsys)


def wrench(scale):
    """Return a change of a log: another wrench."""
    return lambda log: log | {name: s * log[name] for name, s in zip(WRENCH, scale, strict=True)}


@pytest.mark.parametrize(
    ('change', 'name'),
    [
        (lambda log: {key: log[key] for key in log if key != 'e2'}, "'e2'"),
        (lambda log: log | {'fx': np.full(len(log['t']), np.nan)}, 'wrist_sensor: wrench'),
        (lambda log: log | {'t': log['t'].round(2)}, '3199 of 4000'),
        (lambda log: log | {'q1': np.full(len(log['t']), 'a')}, 'q1'),
        (wrench([-1] * 6), 'tool: all force'),
        (wrench([1, 1, 1, 1000, 1000, 1000]), 'tool: all moment'),
        (wrench([0] * 6), 'wrist_sensor: force_x is 0'),
    ],
)
def test_wrong_logs_are_refused_by_name(files, capsys, change, name):
    folder, _ = files
    for log in ('one', 'two'):
        with np.load(folder / f'{log}.npz') as columns:
            changed = change(dict(columns))
        np.savez(folder / f'{log}.npz', **changed)
    assert name in refused(folder, capsys)


def test_friction_is_written_with_units(files, capsys):
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
