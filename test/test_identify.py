# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``inertial-estimation identify``: a simulated arm whose truth is known, and a real one.

Not covered: the solvers by themselves, which have tests of their own.
"""

import json
from pathlib import Path

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.cli import main
from inertial_estimation.identification.friction import JointModel
from inertial_estimation.identification.rows import RowBuilder, RowChoice
from inertial_estimation.identification.solvers import SOLVERS
from inertial_estimation.model.link_motions import link_motions, poses_in_parents
from inertial_estimation.model.regressor import net_wrench_regressor
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.verbs.identify import METHODS

RATE = 500.0
PANDA = Path(__file__).resolve().parents[2] / 'shared' / 'data'
CONFIG = Path(__file__).resolve().parents[1] / 'config'
# The low pass at 20 Hz and central differences change motions below 2 Hz by this share.
FILTERED = 5e-3
VISCOUS, COULOMB = 0.7, 0.4

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
    rows = RowBuilder(robot, RowChoice(efforts=robot.joint_names)).rows(samples)
    tool = robot.link_names.index('tool')
    motions = link_motions(robot, samples, poses_in_parents(robot, q))
    readings = -net_wrench_regressor(motions[tool]) @ robot.parameters[tool]
    samples.ft_readings[:, 0] = readings
    rows = RowBuilder(robot, RowChoice(efforts=robot.joint_names)).rows(samples)[0]
    inner = robot.parameters[list(robot.submodels[0].links)].reshape(-1)
    sign = JointModel(sign_width=0.5)
    columns = {'t': t}
    for j, name in enumerate(robot.joint_names):
        Y, y, _ = rows[f'effort {name}']
        friction = VISCOUS * v[:, j] + COULOMB * np.tanh(v[:, j] / sign.sign_width)
        columns |= {f'q{j + 1}': q[:, j], f'e{j + 1}': Y @ inner - y + friction}
    columns |= {c: readings[:, k] for k, c in enumerate(('fx', 'fy', 'fz', 'mx', 'my', 'mz'))}
    np.savez(path, **columns)


@pytest.fixture
def files(tmp_path, rng):
    """Write logs of a true arm, and a description of it that is wrong."""
    truth = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = arm_with_wrist_sensor_urdf().replace('<mass value="1.5"/>', '<mass value="2.1"/>')
    (tmp_path / 'arm.urdf').write_text(wrong.replace('value="0.5"', 'value="0.65"'))
    (tmp_path / 'logs.yaml').write_text(SETTINGS)
    for name in ('one', 'two', 'other'):
        write_log(tmp_path / f'{name}.npz', truth, rng)
    return tmp_path, truth


def run(folder, *more):
    return main(
        ['identify', str(folder / 'one.npz'), str(folder / 'two.npz'), '--robot',
         str(folder / 'arm.urdf'), '--config', str(folder / 'logs.yaml'), *map(str, more)]
    )  # fmt: skip


def test_a_wrong_description_is_put_right(files, capsys):
    folder, truth = files
    out = ('--json', folder / 'out.json', '--out-urdf', folder / 'out.urdf')
    assert run(folder, '--weight', '1e-6', '--validate', folder / 'other.npz', *out) == 0
    shown = capsys.readouterr().out
    assert 'effort elbow' in shown
    found = json.loads((folder / 'out.json').read_text())
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
    again = Robot.from_urdf(folder / 'out.urdf', fixed_link='base')
    tool = truth.link_names.index('tool')
    np.testing.assert_allclose(again.parameters[tool, :4], truth.parameters[tool, :4], atol=2e-3)


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


def test_rows_under_an_unknown_wrench_are_left_out(files, capsys):
    folder, _ = files
    (folder / 'logs.yaml').write_text(SETTINGS.replace('efforts: all,', 'contacts: [tip],'))
    assert run(folder) == 1
    assert 'no row' in capsys.readouterr().err


def test_what_is_no_body_is_not_written(files, capsys):
    folder, _ = files
    out = folder / 'out.urdf'
    # What a low pass far below the motion leaves fits no body.
    (folder / 'logs.yaml').write_text(SETTINGS.replace('cutoff: 20.0', 'cutoff: 0.5'))
    assert run(folder, '--method', 'least_squares', '--out-urdf', out) == 1
    assert 'nothing is exported' in capsys.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ('change', 'said'),
    [
        (('q1', 'q9'), "no column 'q9'"),
        (('fixed_link: base', 'fixed_link: floor'), 'floor'),
        (('robot: {fixed_link: base}', ''), 'imus'),
        (('cutoff: 20.0', 'cutoff: 400.0'), '400 Hz'),
        (('fixed_link: base', 'fixed_link: base, gravity: 3'), 'gravity'),
        (('fixed_link: base', 'joints: 3'), "'joints' is 3"),
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


def test_every_method_can_be_named():
    assert set(METHODS) <= set(SOLVERS)
