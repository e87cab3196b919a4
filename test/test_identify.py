# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``inertial-estimation identify``: an arm of known truth, its payloads and currents; an iCub."""

import json
import re
import shutil

import numpy as np
import pytest
import yaml
from identify_command import codes, refused, report, run
from robots import arm_with_wrist_sensor_urdf
from shared_data import SHARED
from simulated_arm import efforts_of, swinging, tool_readings

from bench.arms import CONFIGS
from inertial_estimation import IdentifySettings, identify, open_log
from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.cli import main
from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.payloads import Payload
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot

pytest.importorskip('rosbags')

from bag_messages import JOINT_STATE, WRENCH, joint_state, wrench, write_bag

RATE, SECONDS = 500.0, 8.0
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
  positions: q
  efforts: e
  ft_sensors: {wrist_sensor: ft}
preparation: {cutoff: 20.0, every: 4}
rows: {efforts: all, friction: [viscous, coulomb], sign_width: 0.5}
"""


def write_log(path, robot, rng):
    """Write the positions, efforts and readings of a robot that moves."""
    samples = swinging(rng, SECONDS, RATE)
    v, plain = samples.velocities, Robot.from_urdf(robot.urdf, fixed_link='base', ft_sensors=[])
    np.savez(
        path, t=samples.stamp_ns * 1e-9, q=samples.positions, ft=tool_readings(robot, samples),
        e=efforts_of(plain, samples) + VISCOUS * v + COULOMB * np.tanh(v / 0.5),
    )  # fmt: skip


@pytest.fixture(scope='module')
def written(tmp_path_factory):
    """Write logs of a true arm, and a description of it that is wrong."""
    folder, rng = tmp_path_factory.mktemp('written'), np.random.default_rng(20161)
    truth = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = arm_with_wrist_sensor_urdf().replace('<mass value="1.5"/>', '<mass value="2.1"/>')
    (folder / 'robot.urdf').write_text(wrong.replace('value="0.5"', 'value="0.65"'))
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


LIGHT = '--weight', '1e-3'


def logs(folder):
    return folder / 'one.npz', folder / 'two.npz'


def test_wrong_masses_are_corrected(files, capsys):
    folder, truth = files
    more = '--validate', folder / 'other.npz', '--out-urdf', folder / 'out.urdf'
    assert run(folder, *logs(folder), *LIGHT, *more) == 0
    found = report(folder)
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
    assert len(of_tool) == 10
    link = truth.link_names.index('tool')
    for one, value in zip(of_tool, truth.parameters[link][CONDITIONED], strict=True):
        assert one['terms'] == {}
        assert one['value'] == pytest.approx(value, abs=2e-3)
        assert 0.0 < one['deviation'] < 1e-3
    again = Robot.from_urdf(folder / 'out.urdf', fixed_link='base')
    np.testing.assert_allclose(again.parameters[link, :4], truth.parameters[link, :4], atol=2e-3)


def test_locked_joints_join_their_links(files, capsys, rng):
    """What the lift carries up to the wrist sensor belongs to the lower link."""
    folder, _ = files
    log = dict(np.load(folder / 'one.npz'))
    log['q'][:, 2] = 0.1
    np.savez(folder / 'one.npz', **log)
    # Settings of a joint do not keep it from being locked.
    zone = SETTINGS.replace('rows: {', 'rows: {dead_zone: {lift: 0.01}, ')
    (folder / 'logs.yaml').write_text(zone)
    assert run(folder, folder / 'one.npz', '--lock', 'lift') == 0
    assert set(report(folder)['submodels'][0]['margins']) == {'base', 'upper', 'lower'}
    assert "'lift'" in refused(folder, capsys, folder / 'two.npz', '--lock', 'lift')
    # Options are checked before logs are read.
    (folder / 'broken.npz').touch()
    for more in (['--lock', 'lfit'], ['--validate', 'lfit']):
        assert run(folder, folder / 'broken.npz', *more) in (1, 2)
        assert 'lfit' in capsys.readouterr().err


def test_part_of_a_log_is_fitted_and_the_rest_predicted(files):
    folder, _ = files
    one, two = logs(folder)
    fitted = f'{one}@0:4', two, *LIGHT, '--validate'
    assert run(folder, *fitted, f'{one}@4:') == 0
    found = report(folder)
    assert [part['recorded'] for part in found['logs']] == [4 * RATE, 8 * RATE]
    assert found['validation_logs'][0]['recorded'] == 4 * RATE
    for row in found['submodels'][0]['rows'].values():
        assert row['validation'] < 2 * FILTERED * row['signal']
    assert not found['findings']
    assert run(folder, *fitted, f'{one}@3.5:') == 0
    assert codes(folder) == {('suboptimal', f'{one}@3.5:')}


def test_bounds_are_kept_or_reported(files, capsys):
    folder, truth = files
    mass = truth.parameters[truth.link_names.index('tool'), 0]
    bounds = f'bounds: {{mass: {{tool: [{1.2 * mass}, .inf]}}}}\n'
    (folder / 'logs.yaml').write_text(SETTINGS + bounds)
    assert run(folder, *logs(folder)) == 0
    found = report(folder)
    assert found['links']['tool']['m'] > 1.2 * mass * (1 - 1e-6)
    assert [one['bounds_not_kept'] for one in found['submodels']] == [[], []]
    (held,) = (one['values']['limit'] for one in found['findings'] if one['code'] == 'suboptimal')
    assert held == 1.2 * mass
    urdf = folder / 'out.urdf'
    assert run(folder, *logs(folder), '--method', 'euclidean', '--out-urdf', urdf) == 1
    assert 'least mass of tool' in ' '.join(capsys.readouterr().err.split())
    assert ('suboptimal', 'bounds') in codes(folder) and not urdf.exists()
    found = report(folder)
    assert found['links']['tool']['m'] < 1.1 * mass
    assert ['least mass of tool'] in [one['bounds_not_kept'] for one in found['submodels']]


def test_link_that_would_be_written_lighter_is_found(files, capsys):
    """The tip, of 0.5 kg, is fixed to the tool, whose readings are those of 0.6 kg."""
    folder, _ = files
    text = (folder / 'robot.urdf').read_text()
    before, tip = text.split('<link name="tip">')
    tip = re.sub('<mass value="[^"]*"', '<mass value="0.5"', tip, count=1)
    (folder / 'robot.urdf').write_text(f'{before}<link name="tip">{tip}')
    assert run(folder, *logs(folder), *LIGHT) == 0
    assert ('inertia', 'tip') in codes(folder)


def test_inconsistent_urdf_is_not_written(files, capsys):
    folder, _ = files
    out, table = folder / 'out.urdf', folder / 'out.yaml'
    # What a low pass far below the motion leaves fits no body.
    (folder / 'logs.yaml').write_text(SETTINGS.replace('cutoff: 20.0', 'cutoff: 0.5'))
    more = '--method', 'least_squares', '--out-urdf', out, '--out-yaml', table
    assert run(folder, *logs(folder), *more) == 1
    error = capsys.readouterr().err
    assert f"'{out}'" in error and error.count('\n') == 1
    assert 'indefinite' in {code for code, _ in codes(folder)}
    assert not out.exists() and not report(folder)['consistent']
    assert yaml.safe_load(table.read_text())['lift']


@pytest.mark.parametrize(
    ('change', 'name'),
    [
        ('fixed_link: floor', 'floor'),
        ('cutoff: 400.0', '400 Hz'),
        ('efforts: i', "'i'"),
        (lambda log: {'ft': np.nan * log['ft']}, 'wrist_sensor: wrench'),
        (lambda log: {'t': log['t'].round(2)}, '3199 of 4000'),
        (lambda log: {'ft': -log['ft']}, 'tool: all force'),
        (lambda log: {'ft': 0 * log['ft']}, 'wrist_sensor: force_x is 0'),
    ],
)
def test_wrong_settings_and_logs_are_refused_by_name(files, capsys, change, name):
    folder, _ = files
    if isinstance(change, str):
        text = re.sub(rf'\b{change.partition(" ")[0]} [\w.]+', change, SETTINGS)
        (folder / 'logs.yaml').write_text(text)
    else:
        for log in logs(folder):
            found = dict(np.load(log))
            np.savez(log, **found | change(found))
    assert name in refused(folder, capsys, *logs(folder))


def test_friction_is_written_with_units(files):
    folder, _ = files
    friction = SETTINGS.replace('[viscous, coulomb]', '[viscous, drive_inertia]')
    (folder / 'logs.yaml').write_text(friction.replace('rows: {', 'rows: {offsets: all, '))
    assert run(folder, *logs(folder), '--out-yaml', folder / 'o.yaml') == 0
    text, units = (folder / 'o.yaml').read_text(), report(folder)['units']
    for of, term, unit in (
        ('elbow', 'viscous', 'N m s/rad'), ('elbow', 'drive_inertia', 'kg m^2'),
        ('lift', 'viscous', 'N s/m'), ('lift', 'drive_inertia', 'kg'),
        ('wrist_sensor', 'force_y', 'N'), ('wrist_sensor', 'moment_z', 'N m'),
    ):  # fmt: skip
        assert f'  {term}:  # [{unit}]\n' in text[text.index(f'{of}:') :]
        assert units[f'{of}.{term}'] == unit
    assert yaml.safe_load(text)['lift']['viscous']['deviation'] > 0


# ---- Bags --------------------------------------------------------------------------------------

START = 1_700_000_000_000_000_000
MATRIX = np.eye(6) + 0.2 * np.diag([1.0, 0.0, -1.0, 0.0, 1.0], k=1)
CONFIGURED = np.array([20.0, -5.0, 3.0, 0.4, -0.3, 0.2])
ON_TOP = np.array([1.5, -2.0, 0.7, 0.1, 0.05, -0.08])
"""Offset that the node's file does not know [N, Nm]."""
# The share `FILTERED` of a signal of 5 N and 2 Nm.
OFFSET_ERROR = 0.05
MASS_ERROR = 0.01
ICUB = SHARED / 'data' / 'icub_yoga_left' / 'bag'


def record(folder, **more):
    """Return a bag of the first log with raw readings; write the node's settings and offsets."""
    path, sensor = folder / 'calibration.yaml', SensorCalibration(MATRIX, CONFIGURED)
    write(path, 'arm_with_wrist_sensor', {'wrist_sensor': sensor})
    node = {
        'fixed_link': 'base', 'ft_sensors': ['wrist_sensor'], 'calibration_file': str(path),
        'ft': {'wrist_sensor': {'topic': '/ft', 'frame_id': 'wrist'}}, **more,
    }  # fmt: skip
    (folder / 'node.yaml').write_text(yaml.safe_dump({'/**': {'ros__parameters': node}}))
    (folder / 'logs.yaml').write_text(
        'parameters: node.yaml\npreparation: {cutoff: 20.0}\nrows: {offsets: all}\n'
    )
    log, messages = dict(np.load(folder / 'one.npz')), []
    raw = np.linalg.solve(MATRIX, (log['ft'] + CONFIGURED + ON_TOP).T).T
    for t, q, reading in list(zip(log['t'], log['q'], raw, strict=True))[::2]:
        stamp = START + round(1e9 * t)
        messages.append(('/ft', WRENCH, stamp, wrench(stamp, 'wrist', reading)))
        state = joint_state(stamp, ['shoulder', 'elbow', 'lift'], q)
        messages.append(('/joint_states', JOINT_STATE, stamp, state))
    return write_bag(folder / 'bag', messages)


def test_offsets_add_to_the_calibration_of_the_node(files):
    """And a robot with an open log gives what the command makes of their files."""
    folder, truth = files
    bag = record(folder)
    more = *LIGHT, '--validate', f'{bag}@6:', '--out-yaml', folder / 'o.yaml'
    assert run(folder, f'{bag}@0:6', *more) == 0
    found = report(folder)
    tool = truth.parameters[truth.link_names.index('tool')]
    assert found['links']['tool']['m'] == pytest.approx(tool[0], rel=MASS_ERROR)
    (block,) = found['submodels']
    for row in block['rows'].values():
        assert max(row['fit'], row['validation']) < OFFSET_ERROR
    text = (folder / 'o.yaml').read_text()
    assert 'ft.<sensor>.offset' in text
    offsets = [term['value'] for term in yaml.safe_load(text)['wrist_sensor'].values()]
    np.testing.assert_allclose(offsets, ON_TOP, rtol=0.0, atol=OFFSET_ERROR)
    settings = IdentifySettings(parameters=folder / 'node.yaml')
    urdf = (folder / 'robot.urdf').read_text()
    robot = build_robot(settings.node, urdf)
    one, other = (
        identify(given, log, settings, options={'weight': 1e-3}).parameters
        for given, log in ((robot, open_log(bag, robot, settings.node)), (urdf, bag))
    )
    np.testing.assert_array_equal(one, other)
    with pytest.raises(ConfigError):
        identify(urdf, bag, {})


def test_assumed_joints_cost_equations_unless_locked(files, capsys):
    folder, _ = files
    assumed = {'joint_states.assumed': ['lift'], 'joint_states.assumed_positions': [0.1]}
    bag = record(folder, **assumed)
    assert 'lift: ' in refused(folder, capsys, bag)
    assert run(folder, bag, '--lock', 'lift') == 0
    assert report(folder)['submodels'][0]['rows']


@pytest.mark.skipif(not ICUB.exists(), reason='needs ../shared/data')
def test_offsets_of_a_real_icub_are_identified(tmp_path, capsys):
    out = tmp_path / 'o.json'
    arguments = ['identify', f'{ICUB}@13.1:38', '--robot', SHARED / 'data/models/icub_v2_5.urdf',
                 '--config', CONFIGS / 'identify_icub_yoga.yaml', '--json', out,
                 '--validate', f'{ICUB}@38:65']  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    found = json.loads(out.read_text())
    # Arms and trunk rest on the arms' joints, and the ground pushes the foot.
    assert [block['name'] for block in found['submodels']] == ['l_hip_3', 'r_hip_3', 'r_foot']
    frozen = next(one for one in found['findings'] if one['code'] == 'frozen')
    assert frozen['values']['share'] == pytest.approx(1474 / 2468)
    leg, hip, foot = found['submodels']
    # Of l_leg_ft 15 s of 25 s are frozen, with what the filter spreads.
    assert leg['left_out']['force_x'] > 0.6 * 489
    assert hip['left_out']['force_x'] == 0
    # From 300 N; the sensors' matrices are wrong in place, by the log's description.
    for block in (leg, hip, foot):
        for kind, row in block['rows'].items():
            assert row['validation'] < (15.0 if kind.startswith('force') else 3.0)
    # The other part of the log has others by 146 N, which errors of matrices of a tenth allow.
    assert 'l_foot_ft.force_z' in capsys.readouterr().out
    arguments[1] = f'{ICUB}@38:65'
    assert main(list(map(str, arguments[:-2]))) == 0
    for block, other in zip(found['submodels'], json.loads(out.read_text())['submodels']):
        for name, value in block['extras'].items():
            allowed = 4.0 * np.hypot(block['deviations'][name], other['deviations'][name])
            assert abs(value - other['extras'][name]) < allowed, name


@pytest.mark.skipif(not ICUB.exists(), reason='needs ../shared/data')
def test_a_foot_on_the_ground_that_is_no_contact_is_refused(tmp_path, capsys):
    robot, config = SHARED / 'data/models/icub_v2_5.urdf', CONFIGS / 'identify_icub_yoga.yaml'
    given = ['--robot', robot, '--config', config, '--json', tmp_path / 'o.json']
    assert main(list(map(str, ['identify', f'{ICUB}@0:13', *given]))) == 1
    assert 'r_foot' in capsys.readouterr().err


# ---- Payloads and gains of drives --------------------------------------------------------------

GAINS = np.array([12.0, 0.5, 3.0])
WEIGHED = Payload('disc', 'tip', 2.0)
OTHERS = np.array([0.1, -0.06, 0.2, 0.042, 0.003, 0.055, -0.01, 0.006, 0.032])
"""Its first moment and inertia."""
# Of torques [Nm].
NOISE = 0.3

CURRENTS = """
robot: {fixed_link: base, ft_sensors: []}
log:
  time: t
  joints: [shoulder, elbow, lift]
  positions: {columns: q}
  efforts: {columns: current}
preparation: {cutoff: 20.0, every: 4}
rows: {efforts: all, gains: all}
payloads:
  disc: {frame: tip, mass: 2.0, logs: ['*_disc.npz']}
"""


def write_currents(path, payloads, rng):
    """Write the currents of an arm that moves with some payloads."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    samples = swinging(rng, 8.0, RATE)
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names, payloads=payloads))
    (rows,) = builder.equations(samples, carried=np.ones((len(samples), len(payloads))))
    x = np.append(robot.parameters[list(robot.submodels[0].links)], OTHERS if payloads else ())
    efforts = [rows[f'effort {name}'] for name in robot.joint_names]
    currents = np.stack([one.Y @ x - one.y for one in efforts], axis=1) / GAINS
    np.savez(path, t=samples.stamp_ns * 1e-9, q=samples.positions, current=currents)


@pytest.fixture
def carrying(tmp_path, rng):
    (tmp_path / 'robot.urdf').write_text(arm_with_wrist_sensor_urdf())
    (tmp_path / 'logs.yaml').write_text(CURRENTS)
    write_currents(tmp_path / 'run.npz', (), rng)
    write_currents(tmp_path / 'run_disc.npz', (WEIGHED,), rng)
    return tmp_path


def add_noise(folder, rng, *more):
    for name in ('run.npz', 'run_disc.npz', *more):
        log = dict(np.load(folder / name))
        log['current'] += rng.normal(0.0, NOISE / GAINS, log['current'].shape)
        np.savez(folder / name, **log)


def both(folder):
    return '--weight', '1e-3', folder / 'run.npz', folder / 'run_disc.npz'


def test_gains_come_from_a_log_without_and_one_with_a_payload(carrying, capsys):
    assert run(carrying, *both(carrying)) == 0
    assert 'Payloads' in capsys.readouterr().out
    found = report(carrying)
    assert [log['payloads'] for log in found['logs']] == [[], ['disc']]
    extras = found['submodels'][0]['extras']
    gains = [extras[f'{joint}.drive_gain'] for joint in ('shoulder', 'elbow', 'lift')]
    np.testing.assert_allclose(gains, GAINS, rtol=2 * FILTERED)
    assert found['payloads']['disc']['m'] == 2.0
    assert found['payloads']['disc']['mc_x'] == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize(
    ('wrong', 'right', 'name'),
    [
        ('mass: 2.0', 'mass: 2000.0', 'torques of the identified parameters'),
        ('columns: current', 'columns: current, scale: [1, -1, 1]', 'elbow.drive_gain'),
    ],
)
def test_impossible_gains_are_refused(carrying, capsys, rng, wrong, right, name):
    add_noise(carrying, rng)
    (carrying / 'logs.yaml').write_text(CURRENTS.replace(wrong, right))
    assert name in refused(carrying, capsys, *both(carrying))


@pytest.mark.parametrize('known', [True, False])
@pytest.mark.parametrize(
    ('third', 'payloads', 'odd'),
    [
        ('more.npz', (WEIGHED,), True),
        ('more_disc.npz', (), True),
        ('more_disc.npz', (WEIGHED,), False),
    ],
)
def test_log_with_another_payload_is_found(carrying, rng, known, third, payloads, odd):
    """With gains to find, or the mass of the payload."""
    write_currents(carrying / third, payloads, rng)
    add_noise(carrying, rng, third)
    if known:
        scale = f'columns: current, scale: {GAINS.tolist()}'
        settings = CURRENTS.replace('columns: current', scale).replace(', gains: all', '')
        (carrying / 'logs.yaml').write_text(settings.replace('mass: 2.0, ', ''))
    assert run(carrying, *both(carrying), f'{carrying / third}@2:6') == 0
    findings = report(carrying)['findings']
    logs = {one['subject'] for one in findings if one['code'] == 'logs_disagree'}
    assert (f'{carrying / third}@2:6' in logs) == bool(logs) == odd
