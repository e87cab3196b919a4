# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Motions for identification: equations and search, then ``inertial-estimation excite``."""

import json

import numpy as np
import pytest
import yaml
from robots import arm_with_wrist_sensor_urdf
from test_geometry import folding_urdf
from wam import WAM, WamArm

from inertial_estimation import EquationBuilder, EquationChoice, Robot, SampleBatch
from inertial_estimation.cli import main
from inertial_estimation.cli.excite import trajectory_text
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.excitation.excitation_regressor import ExcitationRegressor
from inertial_estimation.identification.excitation.search import (
    ExcitationSearch,
    FourierBasis,
    FourierMotion,
    descend,
)
from inertial_estimation.identification.unknowns import OF_A_JOINT
from inertial_estimation.model.clearance import SelfClearance
from inertial_estimation.model.joint_limits import joint_limits

STEP, DIFFERENCED = 1e-6, 1e-7
"""Square of the step, and round-off over it, at slopes of order 0.01 to ten."""
ROUND_OFF = 1e-8  # singular values of two ways to the same equations
EXACT = 1e-12  # sums of a dozen numbers of order one
BETTER = 2.0  # random starts are a few times worse than what the search makes of them
BASIS = FourierBasis(6.0, 3)
SHOULDER = {'lower': -1.0, 'upper': 2.0, 'velocity': 2.0}


def test_motion_is_the_formula_of_s_with_its_rates(rng):
    motion = FourierMotion(BASIS, ('a', 'b'), rng.normal(size=(2, BASIS.size)))
    t, w = 1.3, 2 * np.pi / BASIS.period * np.arange(1, 4)
    a, b = motion.coefficients[0, :3], motion.coefficients[0, 3:6]
    expected = motion.coefficients[0, -1] + np.sum(a / w * np.sin(w * t) - b / w * np.cos(w * t))
    np.testing.assert_allclose(motion.at(np.array([t]))[0, 0, 0], expected, atol=EXACT)
    t, step = rng.uniform(0.0, 6.0, 20), 1e-5
    slopes = (motion.at(t + step) - motion.at(t - step)) / (2 * step)
    np.testing.assert_allclose(motion.at(t)[1:], slopes[:2], atol=1e-8)
    # From rest to rest.
    rest = BASIS.at_rest()
    np.testing.assert_allclose(rest.T @ rest, np.eye(BASIS.size - 2), atol=EXACT)
    motion = FourierMotion(BASIS, ('a',), rng.normal(size=(1, BASIS.size - 2)) @ rest.T)
    begin, end = np.swapaxes(motion.at(np.array([0.0, BASIS.period])), 0, 1)
    np.testing.assert_allclose(begin[1:], 0.0, atol=EXACT)
    np.testing.assert_allclose(end, begin, atol=10 * EXACT)


def test_descent_follows_a_bent_valley():
    """The least is at (1, 1) [Rosenbrock]."""

    def valley(x):
        u, bent = x[0], x[1] - x[0] ** 2
        slopes = np.array([-2.0 * (1.0 - u) - 400.0 * bent * u, 200.0 * bent])
        return (1.0 - u) ** 2 + 100.0 * bent**2, slopes

    found = descend(valley, np.array([-1.2, 1.0]), np.eye(2), lambda: False)
    np.testing.assert_allclose(found, 1.0, atol=1e-2)


@pytest.fixture
def arm():
    """Return a fixed arm with a revolute, a continuous and a prismatic joint, not cut."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), ft_sensors=(), fixed_link='base')


@pytest.mark.parametrize('cut', [False, True])
def test_equations_are_those_that_logs_are_fitted_to(arm, arm_with_wrist_sensor, rng, cut):
    robot = arm_with_wrist_sensor if cut else arm
    efforts = ('shoulder', 'lift') if cut else arm.joint_names
    q, v, a = states = rng.normal(size=(3, 30, 3))
    none, readings = np.zeros((len(q), 0, 3)), np.zeros((len(q), len(robot.ft_sensors), 6))
    samples = SampleBatch(
        np.arange(len(q)), q, v, a, none, none, none, readings, efforts=np.zeros((len(q), 3))
    )
    choice = EquationChoice(wrenches=cut, efforts=efforts, friction=OF_A_JOINT)
    equations = EquationBuilder(robot, choice).equations(samples)
    found = ExcitationRegressor(robot, efforts=efforts)
    expected = [
        np.linalg.cond(np.vstack([kind.Y for kind in rows.values()])[:, one.base.independent])
        for rows, one in zip(equations, found.submodels, strict=True)
    ]
    np.testing.assert_allclose(found.conditions(states), expected, rtol=ROUND_OFF)


def test_without_efforts_only_links_beyond_a_sensor_count(arm, arm_with_wrist_sensor):
    found = ExcitationRegressor(arm_with_wrist_sensor, efforts=())
    assert [(one.name, one.base.rank) for one in found.submodels] == [('tool', 10)]
    with pytest.raises(ModelError):
        ExcitationRegressor(arm, efforts=())


@pytest.mark.parametrize('efforts', [None, ('elbow',)])
def test_slopes_of_the_bound_are_slopes(arm_with_wrist_sensor, rng, efforts):
    regressor = ExcitationRegressor(arm_with_wrist_sensor, efforts=efforts)
    states, widths = rng.normal(size=(3, 30, 3)), np.array([0.3, 0.5, 0.7])
    _, found = regressor.bound(states, 6.0, widths)
    for which, k, j in [(0, 0, 0), (0, 20, 2), (1, 7, 1), (1, 29, 0), (2, 7, 1), (2, 20, 2)]:
        bounds = []
        for sign in (1, -1):
            moved = states.copy()
            moved[which, k, j] += sign * STEP
            bounds.append(regressor.bound(moved, 6.0, widths)[0])
        slope = (bounds[0] - bounds[1]) / (2 * STEP)
        np.testing.assert_allclose(found[which, k, j], slope, atol=DIFFERENCED)
    assert np.abs(found).max() > 100 * DIFFERENCED


def test_search_keeps_within_limits_and_gets_better(arm):
    limits = joint_limits(arm, {'shoulder': SHOULDER}, acceleration=4.0)
    search, dense = ExcitationSearch(ExcitationRegressor(arm), limits, BASIS), BASIS.times(3001)
    start, runs = (
        search.motion(search.random_start(np.random.default_rng(0))),
        search.run(starts=3),
    )
    at_start = max(search.regressor.conditions(start.at(dense)))
    for motion in (start, *(found.motion for found in runs)):
        q, v, a = motion.at(dense)
        assert (q > limits.lower).all() and (q < limits.upper).all()
        assert (np.abs(v) < limits.velocity).all() and (np.abs(a) < limits.acceleration).all()
        np.testing.assert_allclose(motion.at(np.zeros(1))[1:], 0.0, atol=EXACT)
    for found in runs:
        assert found.complete and found.condition < at_start / BETTER
        conditions = search.regressor.conditions(found.motion.at(dense))
        assert max(conditions) == pytest.approx(found.condition, rel=1e-2)
    assert runs[0].condition <= runs[1].condition <= runs[2].condition
    # The seed decides.
    one, same, other = (search.run(starts=1, seed=seed)[0].motion for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.coefficients, same.coefficients)
    assert not np.array_equal(one.coefficients, other.coefficients)


# ---- The command: an arm that could fold onto itself, and the WAM of S

WRITTEN = 1e-8  # numbers are written with ten digits
SECOND_DIFFERENCES = 2e-3
"""Second differences at 100 Hz of motions whose fourth derivatives are of order a hundred."""
PUBLISHED = 99.0  # condition number [S section 5.2.2]; random starts have several hundred
CLEARANCE = 0.03
FAST = ('--starts', '1', '--period', '6', '--harmonics', '3')
KEYS = ('positions', 'velocities', 'accelerations')


@pytest.fixture
def urdf(tmp_path):
    path = tmp_path / 'folding.urdf'
    path.write_text(folding_urdf())
    return path


def run(urdf, *more):
    return main(['excite', '--robot', str(urdf), *map(str, more)])


def designed(urdf, tmp_path, *more):
    """Return the JSON of a call."""
    out = tmp_path / 'out.json'
    assert run(urdf, *FAST, *more, '--json', out) == 0
    return json.loads(out.read_text())


def motion_of(found):
    stated = found['motion']
    basis = FourierBasis(stated['period'], stated['harmonics'])
    rows = [[*row['a'], *row['b'], row['q0']] for row in stated['joints'].values()]
    return FourierMotion(basis, tuple(stated['joints']), np.array(rows))


def test_files_hold_the_designed_motion_within_limits(urdf, tmp_path, capsys):
    table, trajectory = tmp_path / 'out.csv', tmp_path / 'out.yaml'
    files = ('--out-csv', table, '--out-trajectory', trajectory)
    found = designed(urdf, tmp_path, *files)
    printed = capsys.readouterr().out
    assert 'Condition number' in printed and max(map(len, printed.splitlines())) <= 80
    motion = motion_of(found)
    names = table.read_text().splitlines()[0].split(',')
    assert names[:5] == ['time', 'q_joint_1', 'q_joint_2', 'q_joint_3', 'v_joint_1']
    numbers = np.loadtxt(table, delimiter=',', skiprows=1)
    assert numbers.shape == (601, 10)
    np.testing.assert_allclose(numbers[:, 1:], np.hstack(motion.at(numbers[:, 0])), atol=WRITTEN)
    second = np.diff(numbers[:, 1:4], 2, axis=0) * 1e4
    np.testing.assert_allclose(second, numbers[1:-1, 7:], atol=SECOND_DIFFERENCES)
    assert trajectory.read_text() == trajectory_text(motion)
    q, v, a = motion.at(motion.basis.times(5000))
    assert np.abs(q).max() < 3.0 and np.abs(v).max() < 2.0 and np.abs(a).max() < 5.0
    reached = found['joints']['joint_2']['upper_reached']
    assert reached == pytest.approx(q[:, 1].max(), abs=1e-4)


def test_trajectory_has_the_message_s_fields(rng):
    typesys = pytest.importorskip('rosbags.typesys')
    known = typesys.get_typestore(typesys.Stores.ROS2_HUMBLE).fielddefs
    basis = FourierBasis(10.0, 5)
    motion = FourierMotion(basis, ("it's", 'on'), rng.normal(size=(2, basis.size)))
    text = trajectory_text(motion)
    found = yaml.safe_load(text)
    assert found['joint_names'] == ["it's", 'on']
    points = found['points']
    for data, message in (
        (found, 'trajectory_msgs/msg/JointTrajectory'),
        (points[0], 'trajectory_msgs/msg/JointTrajectoryPoint'),
        (points[0]['time_from_start'], 'builtin_interfaces/msg/Duration'),
    ):
        assert set(data) <= {name for name, _ in known[message][1]}
    # ROS takes a number without a dot for an integer.
    assert all(isinstance(x, float) for p in points for key in KEYS for x in p[key])
    assert '-0.0,' not in text
    t = [p['time_from_start']['sec'] + 1e-9 * p['time_from_start']['nanosec'] for p in points]
    assert t[0] == 0.0 and t[-1] == basis.period
    states = np.array([[p[key] for p in points] for key in KEYS])
    np.testing.assert_allclose(states, motion.at(np.array(t)), atol=WRITTEN)


def test_arm_does_not_fold_onto_itself(urdf, tmp_path):
    limits = tmp_path / 'limits.yaml'
    limits.write_text(''.join(f'joint_{k}: {{lower: 1.6, upper: 2.7}}\n' for k in (2, 3)))
    robot = Robot.from_urdf(folding_urdf(), fixed_link='link_0')
    clearance = SelfClearance(robot, np.full(3, -3.0), np.full(3, 3.0))
    pairs = [('link_0', 'link_3'), ('link_1', 'link_3'), ('link_0', 'link_2')]
    ignored = [word for pair in pairs for word in ('--ignore', *pair)]
    least = []
    for options in (ignored, []):
        found = designed(urdf, tmp_path, *options, '--limits', limits, '--clearance', CLEARANCE)
        q = motion_of(found).at(FourierBasis(6.0, 3).times(600))[0]
        least.append(clearance.near(q, 1.0).distances.min())
    assert least[0] < 0.0
    assert least[1] == pytest.approx(CLEARANCE, rel=0.1)
    nearest = found['clearance']['nearest_m']
    assert nearest is None or nearest == pytest.approx(least[1], abs=1e-3)


@pytest.mark.parametrize(
    ('old', 'new', 'more', 'code'),
    [
        ('effort="20"', 'effort="0.5"', (), 'rating'),
        ('collision', 'unknown', (), 'suboptimal'),
        ('link', 'link', ('--period', '0.001'), 'unexcited'),
        ('link', 'link', ('--time', '1e-6'), 'suboptimal'),
    ],
)
def test_finding_is_reported(urdf, tmp_path, old, new, more, code):
    urdf.write_text(folding_urdf().replace(old, new))
    assert code in [one['code'] for one in designed(urdf, tmp_path, *more)['findings']]


@pytest.mark.skipif(not WAM.is_dir(), reason='needs ../shared/data')
@pytest.mark.parametrize('seed', range(5))
def test_wam_is_excited_as_published(tmp_path, seed):
    """S 5.2.2: maxima of the published motion as limits, a random start, condition 99."""
    urdf, limits, arm = tmp_path / 'wam.urdf', tmp_path / 'limits.yaml', WamArm()
    urdf.write_text(arm.urdf)
    q, v, a = arm.trajectory(1)
    columns = np.array([q.min(axis=0), q.max(axis=0), *(np.abs(x).max(axis=0) for x in (v, a))])
    keys = ('lower', 'upper', 'velocity', 'acceleration')
    stated = {
        f'joint_{k}': dict(zip(keys, column.tolist(), strict=True))
        for k, column in enumerate(columns.T, start=1)
    }
    limits.write_text(yaml.safe_dump(stated))
    more = '--limits', limits, '--period', 20, '--harmonics', 5, '--seed', seed
    found = designed(urdf, tmp_path, *more)
    assert found['base_parameters'] == 69
    assert found['condition'] <= PUBLISHED
    states = motion_of(found).at(FourierBasis(20.0, 5).times(4000))
    assert (states[0] > columns[0]).all() and (states[0] < columns[1]).all()
    assert (np.abs(states[1]) < columns[2]).all() and (np.abs(states[2]) < columns[3]).all()
    # About the frames and over the columns of S the number is nearly the same.
    Y = arm.regressor(*states)
    assert np.linalg.cond(Y.reshape(-1, 98)[:, arm.table3.independent]) <= PUBLISHED
