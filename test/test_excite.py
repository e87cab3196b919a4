# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``inertial-estimation excite``: an arm that could fold onto itself, and the WAM of S.

Not covered: search, distances and the simulator by themselves, which have tests of their own.
"""

import json

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf
from scipy.interpolate import BPoly
from test_geometry import folding_urdf
from wam import WAM, WamArm

from inertial_estimation.cli import main
from inertial_estimation.cli.excite import POINTS, csv_text, trajectory_text
from inertial_estimation.identification.excitation.fourier import FourierBasis, FourierMotion
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.robot import Robot

# Numbers are written with ten digits.
WRITTEN = 1e-8
# Second differences at 100 Hz of motions whose fourth derivatives are of order a hundred.
DIFFERENCED = 2e-3
# Of the condition number [S 5.2.2]; random starts have several hundred.
PUBLISHED = 99.0
CLEARANCE = 0.03
FAST = ('--starts', '1', '--period', '6', '--harmonics', '3')


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / 'folding.urdf'
    path.write_text(folding_urdf())
    return path


def run(urdf, *more):
    return main(['excite', '--robot', str(urdf), *map(str, more)])


def refusal(capsys, urdf, *more, code=1):
    """Return the one line that says why nothing was done."""
    assert run(urdf, *more) == code
    said = capsys.readouterr()
    assert not said.out
    (line,) = said.err.splitlines()
    return line


def test_what_is_designed_is_what_is_written(urdf, tmp_path, capsys):
    pytest.importorskip('mujoco')
    names = ('out.json', 'out.csv', 'out.yaml')
    out, table, trajectory = (tmp_path / name for name in names)
    files = ('--json', out, '--out-csv', table, '--out-trajectory', trajectory)
    assert run(urdf, *FAST, '--clearance', CLEARANCE, *files) == 0
    assert 'Condition number' in capsys.readouterr().out
    found = json.loads(out.read_text())
    assert found['condition'] < found['condition_at_start']
    assert found['played']['touching'] == [] and found['played']['tracking'] < 1e-3
    motion = motion_of(found)
    header, *rows = table.read_text().splitlines()
    assert header.split(',')[:5] == ['time', 'q_joint_1', 'q_joint_2', 'q_joint_3', 'v_joint_1']
    numbers = np.array([[float(cell) for cell in row.split(',')] for row in rows])
    assert numbers.shape == (601, 10)
    states = np.hstack(motion.at(numbers[:, 0]))
    np.testing.assert_allclose(numbers[:, 1:], states, atol=WRITTEN)
    q, a = numbers[:, 1:4], numbers[1:-1, 7:]
    np.testing.assert_allclose(np.diff(q, 2, axis=0) * 1e4, a, atol=DIFFERENCED)
    check_trajectory(yaml.safe_load(trajectory.read_text()), motion)
    check_limits(found, motion)


def test_ft_sensors_count_as_a_submodel_of_their_own(tmp_path, capsys):
    urdf, limits, out = (tmp_path / name for name in ('arm.urdf', 'limits.yaml', 'out.json'))
    urdf.write_text(arm_with_wrist_sensor_urdf())
    limits.write_text('shoulder: {lower: -1.0, upper: 2.0, velocity: 2.0}')
    more = (*FAST, '--limits', limits, '--acceleration', 4, '--time', 5, '--json', out)
    assert run(urdf, *more, '--ft', 'wrist_sensor') == 0
    found = json.loads(out.read_text())
    base, tool = found['submodels']
    assert (base['name'], base['rows']) == ('base', '3 efforts')
    assert (tool['name'], tool['rows'], tool['base_parameters']) == ('tool', 'wrench', 10)
    assert found['condition'] == max(base['condition'], tool['condition'])
    assert found['base_parameters'] == base['base_parameters'] + 10
    assert run(urdf, *more, '--ft', 'all', '--efforts', 'none') == 0
    (alone,) = json.loads(out.read_text())['submodels']
    assert alone['name'] == 'tool'
    assert json.loads(out.read_text())['unknowns'] == 10
    assert alone['condition'] < alone['condition_at_start']
    # The effort that the description wants is that of the whole arm, whatever is measured.
    efforts = [json.loads(out.read_text())['joints'][name]['reached']['effort']
               for name in ('elbow', 'lift')]  # fmt: skip
    assert min(efforts) > 1.0
    capsys.readouterr()
    assert 'wrist_sensor' in refusal(capsys, urdf, *more, '--ft', 'wrist')


def motion_of(found):
    """Return the motion that the file for machines tells of."""
    said = found['motion']
    basis = FourierBasis(said['period'], said['harmonics'])
    rows = [[*row['a'], *row['b'], row['q0']] for row in said['joints'].values()]
    return FourierMotion(basis, tuple(said['joints']), np.array(rows))


def check_trajectory(found, motion):
    """Check the fields of trajectory_msgs/JointTrajectory."""
    assert found['joint_names'] == list(motion.joint_names)
    points = found['points']
    assert len(points) == POINTS * motion.basis.harmonics + 1
    stamps = [p['time_from_start'] for p in points]
    t = np.array([stamp['sec'] + 1e-9 * stamp['nanosec'] for stamp in stamps])
    assert t[0] == 0.0 and t[-1] == motion.basis.period
    keys = ('positions', 'velocities', 'accelerations')
    states = np.array([[p[key] for p in points] for key in keys])
    np.testing.assert_allclose(states, motion.at(t), atol=WRITTEN)
    np.testing.assert_allclose(states[1:, [0, -1]], 0.0, atol=WRITTEN)
    assert all(set(p) == {*keys, 'time_from_start'} for p in points)


def test_names_of_the_trajectory_are_those_of_the_message():
    typesys = pytest.importorskip('rosbags.typesys')
    known = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE).fielddefs
    motion = FourierMotion(FourierBasis(2.0, 2), ("it's", 'on'), np.ones((2, 5)))
    found = yaml.safe_load(trajectory_text(motion))
    assert found['joint_names'] == ["it's", 'on']
    for data, message in (
        (found, 'trajectory_msgs/msg/JointTrajectory'),
        (found['points'][0], 'trajectory_msgs/msg/JointTrajectoryPoint'),
        (found['points'][0]['time_from_start'], 'builtin_interfaces/msg/Duration'),
    ):
        assert set(data) <= {name for name, _ in known[message][1]}


def check_limits(found, motion):
    """Check limits and clearance apart from what was said of them."""
    q, v, a = motion.at(motion.basis.instants(5000))
    assert np.abs(q).max() < 3.0 and np.abs(v).max() < 2.0 and np.abs(a).max() < 5.0
    robot = Robot.from_urdf(folding_urdf(), fixed_link='link_0')
    clearance = SelfClearance.of_robot(robot, q.min(axis=0), q.max(axis=0))
    least = clearance.near(q, 1.0).distances.min()
    # Between the instants at which it is held, some of it may be used.
    assert least > CLEARANCE / 2
    nearest = found['clearance']['nearest']
    assert nearest is None or nearest == pytest.approx(least, abs=1e-3)
    joint = found['joints']['joint_2']
    assert joint['reached']['upper'] == pytest.approx(q[:, 1].max(), abs=1e-4)


def test_an_arm_that_would_fold_onto_itself_does_not(urdf, tmp_path, capsys):
    limits, out = tmp_path / 'limits.yaml', tmp_path / 'out.json'
    limits.write_text(''.join(f'joint_{k}: {{lower: 1.6, upper: 2.7}}\n' for k in (2, 3)))
    robot = Robot.from_urdf(folding_urdf(), fixed_link='link_0')
    clearance = SelfClearance.of_robot(robot, np.full(3, -3.0), np.full(3, 3.0))
    pairs = [('link_0', 'link_3'), ('link_1', 'link_3'), ('link_0', 'link_2')]
    ignored = [word for pair in pairs for word in ('--ignore', *pair)]
    least = []
    for options in (ignored, []):
        call = (*FAST, *options, '--limits', limits, '--clearance', CLEARANCE, '--json', out)
        assert run(urdf, *call) == 0
        q = motion_of(json.loads(out.read_text())).at(FourierBasis(6.0, 3).instants(600))[0]
        least.append(clearance.near(q, 1.0).distances.min())
    assert least[0] < 0.0
    assert least[1] == pytest.approx(CLEARANCE, rel=0.1)


@pytest.mark.parametrize(
    ('more', 'code'),
    [
        (('--joints', 'joint_1', 'joint_1'), 2),
        (('--efforts', 'joint_1', 'joint_1'), 2),
        (('--ft', 'wrist', 'wrist'), 2),
        (('--joints', 'joint_9'), 1),
        (('--fixed-link', 'link_9'), 1),
        (('--fixed-link', 'link_3'), 1),
        (('--ignore', 'link_0', 'link_9'), 1),
        (('--clearance', '2'), 1),
        (('--clearance', '-1'), 2),
        (('--harmonics', '1'), 2),
        (('--harmonics', '1000000'), 2),
        (('--period', '0'), 2),
        (('--starts', '0'), 2),
        (('--time', '0'), 2),
        (('--seed', '-1'), 2),
        (('--rate', '0'), 2),
        (('--friction', 'none', 'viscous'), 2),
        (('--limits', 'nowhere.yaml'), 1),
        (('--out-csv', '/nowhere/out.csv'), 1),
    ],
)
def test_impossible_call_is_refused(urdf, capsys, more, code):
    refusal(capsys, urdf, *FAST, *more, code=code)


@pytest.mark.parametrize('rate', ['1e9', '0.001', '1'])
def test_rate_is_refused_before_the_search(urdf, tmp_path, capsys, rate):
    out = tmp_path / 'out.csv'
    refusal(capsys, urdf, *FAST, '--rate', rate, '--out-csv', out, code=2)
    assert not out.exists()


def test_limits_that_are_missing_or_impossible(tmp_path, capsys):
    urdf, limits = tmp_path / 'arm.urdf', tmp_path / 'limits.yaml'
    urdf.write_text(arm_with_wrist_sensor_urdf())
    out = tmp_path / 'out.csv'
    call = (*FAST, '--limits', limits, '--out-csv', out)
    limits.write_text('elbow: {velocity: 1e-1}\n')
    assert "'shoulder' has no limit 'lower'" in refusal(capsys, urdf, *call)
    limits.write_text('shoulder: {lower: 1.0, upper: -1.0, velocity: 1.0}\n')
    assert "'shoulder' has no limit 'acceleration'" in refusal(capsys, urdf, *call)
    line = refusal(capsys, urdf, *call, '--acceleration', '3')
    assert "'shoulder' cannot move: its limits are 1.0 and -1.0" in line
    limits.write_text('knee: {lower: 1.0}\n')
    assert "no joint is named 'knee'" in refusal(capsys, urdf, *call)
    assert not out.exists()


def test_points_of_a_trajectory_are_close_enough(rng):
    basis = FourierBasis(10.0, 5)
    motion = FourierMotion(basis, ('a',), rng.normal(size=(1, basis.size)))
    points = yaml.safe_load(trajectory_text(motion))['points']
    stamps = [p['time_from_start'] for p in points]
    t = [stamp['sec'] + 1e-9 * stamp['nanosec'] for stamp in stamps]
    keys = ('positions', 'velocities', 'accelerations')
    joined = BPoly.from_derivatives(t, [[p[key][0] for key in keys] for p in points])
    dense = basis.instants(3000)
    q = motion.at(dense)[0, :, 0]
    assert np.abs(joined(dense) - q).max() < 1e-7 * np.ptp(q)


def test_a_table_ends_where_the_period_does():
    motion = FourierMotion(FourierBasis(2.0, 2), ('a',), np.ones((1, 5)))
    for rate, last in ((10.0, 2.0), (0.7, 1.0 / 0.7), (3.0, 2.0)):
        rows = csv_text(motion, rate).splitlines()
        assert float(rows[-1].split(',')[0]) == pytest.approx(last)


@pytest.mark.parametrize(
    ('change', 'more', 'code'),
    [
        (('effort="20"', 'effort="0.5"'), (), 'rating'),
        (('', ''), ('--period', '0.001'), 'unexcited'),
        (('', ''), ('--time', '1e-6'), 'suboptimal'),
        (('<collision', '<visual_'), (), 'suboptimal'),
    ],
)
def test_finding_is_reported(urdf, tmp_path, change, more, code):
    out = tmp_path / 'out.json'
    text = folding_urdf().replace('</collision', '</visual_') if 'coll' in change[0] else (
        folding_urdf())  # fmt: skip
    urdf.write_text(text.replace(*change) if change[0] else text)
    assert run(urdf, *FAST, *more, '--json', out) == 0
    assert code in [one['code'] for one in json.loads(out.read_text())['findings']]


def test_limits_beyond_the_urdf_are_reported(urdf, tmp_path):
    limits, out = tmp_path / 'limits.yaml', tmp_path / 'out.json'
    limits.write_text('joint_2: {lower: -57, upper: 57, velocity: 1.5}\njoint_3: {lower: -1}\n')
    assert run(urdf, *FAST, '--limits', limits, '--json', out) == 0
    found = json.loads(out.read_text())['findings']
    assert {one['subject'] for one in found if one['code'] == 'rating'} == {'joint_2'}


@pytest.mark.skipif(not WAM.is_dir(), reason='needs ../shared/data')
@pytest.mark.parametrize('seed', [0, 1])
def test_the_wam_is_excited_as_published(tmp_path, seed):
    """S 5.2.2: maxima of the published motion as limits, a random start, condition 99."""
    urdf, limits, out = (tmp_path / name for name in ('wam.urdf', 'limits.yaml', 'out.json'))
    arm = WamArm()
    urdf.write_text(arm.urdf)
    q, v, a = arm.trajectory(1)
    columns = np.array([q.min(axis=0), q.max(axis=0), *(np.abs(x).max(axis=0) for x in (v, a))])
    keys = ('lower', 'upper', 'velocity', 'acceleration')
    said = {
        f'joint_{k}': dict(zip(keys, column.tolist(), strict=True))
        for k, column in enumerate(columns.T, start=1)
    }
    limits.write_text(yaml.safe_dump(said))
    call = ('--limits', limits, '--starts', '1', '--seed', seed, '--json', out)
    assert run(urdf, *call) == 0
    found = json.loads(out.read_text())
    assert found['base_parameters'] == 69
    assert found['condition_at_start'] > 2 * PUBLISHED
    assert found['condition'] <= PUBLISHED
    states = motion_of(found).at(FourierBasis(20.0, 5).instants(4000))
    assert (states[0] > columns[0]).all() and (states[0] < columns[1]).all()
    assert (np.abs(states[1]) < columns[2]).all() and (np.abs(states[2]) < columns[3]).all()
    # About the frames and over the columns of S the number is nearly the same.
    Y = arm.regressor(*states)
    assert np.linalg.cond(Y.reshape(-1, 98)[:, arm.table3.independent]) <= PUBLISHED
