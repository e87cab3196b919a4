# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``identify`` with wrenches of the environment: known ones, then outliers by unknown ones.

A biped floats through short pieces of polynomials, whose central differences are exact;
pinocchio gives the wrenches on its feet. In the end ``rows.reject``: pushes on a real arm that no
log states.
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pinocchio as pin
import pytest
import yaml
from bag_messages import IMU, JOINT_STATE, WRENCH, imu, joint_state, wrench, write_bag
from identify_command import refused, report, run
from numpy.polynomial.polynomial import polyder, polyint, polyval
from robots import arm_with_wrist_sensor_urdf, two_link_urdf
from shared_data import SHARED
from simulated_arm import efforts_of, swinging
from standing_biped import FEET, biped_urdf

from bench.arms import CONFIGS
from inertial_estimation import Information, identify
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.outliers import (
    Reference,
    WindowEquations,
    least_trimmed,
    refitted,
)
from inertial_estimation.logs import reduction
from inertial_estimation.logs.bag import Stream
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.log import LogSlice, Touches, no_progress
from inertial_estimation.logs.reduction import LogReader, free_submodels
from inertial_estimation.model.robot import Robot

EXACT = 1e-9
"""Of base parameters; polynomials of 0.3 s at a condition of the rows below 1e4 keep it."""
ROUND_OFF = 1e-12
"""Of wrenches that are only turned, a few hundred newtons large."""
PERIOD_NS = 10_000_000
PIECE, PIECES = 30, 40
"""Instants of each piece, and how many there are, a second apart."""

SETTINGS = {
    'preparation': {
        'cutoff': 0.0, 'order': 1, 'edges': 0.0, 'largest_gap': 0.05, 'measured_velocities': True,
    },
    'rows': {'base_link': True},
}  # fmt: skip
LOG = {
    'time': {'columns': 'ns', 'unit': 'ns'},
    'positions': {'columns': 'q'},
    'velocities': {'columns': 'v'},
    'ft_sensors': {'l_leg': 'nonsense'},
    'imus': {'root': {'gyroscope': 'w', 'accelerometer': 'a'}},
}


def walker(heavier=1.0):
    """Return the URDF of the walker, with another mass of its root."""
    return biped_urdf().replace('<mass value="8.0"/>', f'<mass value="{8.0 * heavier}"/>')


def polynomials(rng, shape, degree=2):
    """Return polynomials of time on a piece, their first derivatives and their integrals."""
    t = (np.arange(PIECE) - PIECE / 2) * PERIOD_NS * 1e-9
    c = np.moveaxis(rng.normal(size=(*shape, degree + 1)) * 4.0 ** np.arange(degree + 1), -1, 0)
    return (np.moveaxis(polyval(t, one), -1, 0) for one in (c, polyder(c), polyint(c)))


def simulate(model, rng, pieces=PIECES):
    """Return joints and the columns of a log: motion, IMU at the root, what each sole feels."""
    data = model.createData()
    n = model.njoints - 2
    found = {key: [] for key in ('ns', 'q', 'v', 'w', 'a', *FEET)}
    for piece in range(pieces):
        v, dv, q = polynomials(rng, (n,))
        q = q + rng.uniform(-1.0, 1.0, n)
        w, dw, _ = polynomials(rng, (3,))
        down = rng.normal(size=3)
        a = next(polynomials(rng, (3,))) + 9.81 * down / np.linalg.norm(down)
        left = next(polynomials(rng, (6,))) * ([30.0] * 3 + [3.0] * 3)
        found['ns'] += [1_000_000_000 * (piece + 1) + PERIOD_NS * k for k in range(PIECE)]
        for k in range(PIECE):
            place = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q[k]])
            rate = np.concatenate([np.zeros(3), w[k], v[k]])
            # Gravity stands in the acceleration of the root, whose axes are the world's here.
            change = np.concatenate([a[k] + [0.0, 0.0, -9.81], dw[k], dv[k]])
            total = pin.rnea(model, data, place, rate, change)[:6]
            pin.framesForwardKinematics(model, data, place)
            l_sole, r_sole = (data.oMf[model.getFrameId(name)] for name in FEET)
            held = l_sole.act(pin.Force(left[k])).vector
            found['r_sole'].append(r_sole.actInv(pin.Force(total - held)).vector)
        for key, values in (('q', q), ('v', v), ('w', w), ('a', a), ('l_sole', left)):
            found[key] += list(values)
    return tuple(model.names[2:]), {key: np.array(values) for key, values in found.items()}


@pytest.fixture(scope='module')
def motion():
    """Return a log of the walker; an FT sensor reads nonsense, which is not used."""
    model = pin.buildModelFromXML(walker(), pin.JointModelFreeFlyer())
    names, columns = simulate(model, np.random.default_rng(7))
    nonsense = np.full((len(columns['ns']), 6), 1e6)
    return names, columns | {'nonsense': nonsense}


def write(folder, settings, log=None, columns=None):
    """Write a description that is wrong, settings and a table."""
    (folder / 'robot.urdf').write_text(walker(1.3))
    given = dict(settings) | ({'log': log, 'robot': {'imus': ['root']}} if log else {})
    (folder / 'logs.yaml').write_text(yaml.safe_dump(given))
    (folder / 'robot.yaml').write_text('/**: {ros__parameters: {imus: [root]}}')
    if columns is not None:
        np.savez(folder / 'log.npz', **columns)


def base_error(folder):
    """Return the relative error of the base parameters of the whole robot, and their number."""
    truth = Robot.from_urdf(walker(), ft_sensors=[], imus=['root'])
    ((base, _),) = EquationBuilder(truth).bases
    links = report(folder)['links']
    found = np.array([list(links[name].values()) for name in truth.link_names])
    wanted = base.grouping @ truth.parameters.reshape(-1)
    error = base.grouping @ found.reshape(-1) - wanted
    return np.abs(error).max() / np.abs(wanted).max(), base.rank


def test_base_link_equations_of_a_table_give_the_truth(tmp_path, motion):
    """A 33: six rows at an instant, of the base link; the soles' wrenches are known."""
    names, columns = motion
    # The left one as the robot pushes on the ground, in a plate that lies askew below the sole.
    plate = pin.SE3(pin.rpy.rpyToMatrix(0.1, -0.2, 2.0), np.array([0.1, 0.02, -0.3]))
    askew = [plate.actInv(pin.Force(-one)).vector for one in columns['l_sole']]
    log = LOG | {
        'joints': list(names),
        'external': {
            'l_sole': {'columns': ['force', 'moment'], 'scale': -1.0, 'unit': 'N, N m',
                       'xyz': [0.1, 0.02, -0.3], 'rpy': [0.1, -0.2, 2.0]},
            'r_sole': 'r_sole',
        },
    }  # fmt: skip
    halves = {'force': np.array(askew)[:, :3], 'moment': np.array(askew)[:, 3:]}
    write(tmp_path, SETTINGS, log, columns | halves)
    assert run(tmp_path, tmp_path / 'log.npz', '--method', 'least_squares') == 0
    (block,) = report(tmp_path)['submodels']
    assert block['name'] == 'root' and len(block['rows']) == 6
    error, rank = base_error(tmp_path)
    assert len(block['base_parameters']) == rank == 10 + 7 * 5
    assert error < EXACT


def messages(names, columns, left_ns=0):
    """Yield what a bag of the walker holds; the left plate's clock may be another one."""
    for k, now in enumerate(columns['ns'].tolist()):
        yield '/imu/root', IMU, now, imu(now, 'root', columns['w'][k], columns['a'][k])
        left = wrench(now - left_ns, 'l_sole', columns['l_sole'][k])
        yield '/plate/left', WRENCH, now, left
        yield '/plate/right', WRENCH, now, wrench(now, 'plate', -columns['r_sole'][k])
        state = joint_state(now, names, columns['q'][k], columns['v'][k])
        yield '/joint_states', JOINT_STATE, now, state


def of_bag(external):
    return SETTINGS | {
        'parameters': 'robot.yaml',
        'rows': {'base_link': True, 'external': external},
    }


def test_base_link_equations_of_a_bag_give_the_truth(tmp_path, motion, capsys):
    write_bag(tmp_path / 'log', messages(*motion, left_ns=500_000_000))
    left = {'topic': 'plate/left', 'time_offset': 0.5}
    write(tmp_path, of_bag({'l_sole': left, 'r_sole': '/plate/right'}))
    assert "header.frame_id is 'plate'" in refused(tmp_path, capsys, tmp_path / 'log')
    right = {'topic': '/plate/right', 'scale': -1, 'frame_id': 'plate'}
    write(tmp_path, of_bag({'l_sole': left, 'r_sole': right}))
    assert run(tmp_path, tmp_path / 'log', '--method', 'least_squares') == 0
    error, rank = base_error(tmp_path)
    assert rank == 10 + 7 * 5 and error < EXACT


def test_messages_are_interpolated_between_near_ones_only():
    stamps = np.array([0, 10, 40, 50]) * 1_000_000
    values = np.array([[0.0], [1.0], [4.0], [np.nan]]) * np.ones(6)
    instants = np.array([-1, 0, 4, 10, 12, 40, 45, 50, 51]) * 1_000_000
    stream = Stream('/plate', stamps, values)
    found = stream.at(instants, max_age=0.02)[:, 0]
    nan = np.nan
    np.testing.assert_allclose(found, [nan, 0.0, 0.4, 1.0, nan, 4.0, nan, nan, nan])
    assert stream.at(instants, max_age=0.03)[4, 0] == pytest.approx(1.2)


def read(folder, urdf, log):
    """Return the known wrenches of a log."""
    given, first = IdentifySettings.from_yaml(folder / 'logs.yaml'), LogSlice.parse(folder / log)
    return LogReader(urdf, given, (), first, no_progress).read(first).external


@pytest.mark.parametrize(('limit', 'known'), [(0.05, 1), (0.0, 20)])
def test_frozen_messages_are_unknown(motion, tmp_path, limit, known):
    names, columns = motion
    some = {key: values[:20] for key, values in columns.items()}
    stuck = some | {'l_sole': np.tile(columns['l_sole'][0], (20, 1))}
    write_bag(tmp_path / 'log', messages(names, stuck))
    topic = {'topic': 'plate/left', 'frozen_after': limit}
    write(tmp_path, of_bag({'l_sole': topic}))
    found = read(tmp_path, walker(), 'log')['l_sole']
    assert np.isfinite(found).all(axis=1).sum() == known


def test_constant_wrench_in_axes_of_the_base(tmp_path, rng):
    """Of an arm on a table: a constant in axes elsewhere, about a point beside the frame."""
    urdf = arm_with_wrist_sensor_urdf()
    n, q = 6, rng.uniform(-1.0, 1.0, (6, 3))
    np.savez(tmp_path / 'log.npz', t=np.arange(n), q=q)
    hangs = {'wrench': [0, 0, -5.0, 0, 0, 0], 'axes': 'base', 'xyz': [0.1, 0.0, 0.2]}
    given = {
        'robot': {'fixed_link': 'base', 'joints': ['shoulder', 'elbow', 'lift']},
        'log': {'time': 't', 'joints': ['shoulder', 'elbow', 'lift'], 'positions': 'q'},
        'rows': {'external': {'tip': hangs}},
    }
    (tmp_path / 'logs.yaml').write_text(yaml.safe_dump(given))
    found = read(tmp_path, urdf, 'log.npz')['tip']
    model = pin.buildModelFromXML(urdf)
    data = model.createData()
    for k in range(n):
        pin.framesForwardKinematics(model, data, pin.integrate(model, pin.neutral(model), q[k]))
        down = data.oMf[model.getFrameId('tip')].rotation.T @ [0.0, 0.0, -5.0]
        moment = np.cross([0.1, 0.0, 0.2], down)
        np.testing.assert_allclose(found[k], [*down, *moment], atol=ROUND_OFF)


def test_touch_with_known_wrench_costs_nothing():
    robot = Robot.from_urdf(walker(), imus=['root'])
    recorded = SimpleNamespace(stamp_ns=PERIOD_NS * np.arange(9))
    felt = Touches(((), (Contact('l_sole_joint'),)), np.ones(9, dtype=int))
    names = [submodel.name for submodel in robot.submodels]
    for known, free in ((), False), (('l_sole',), True), (('root',), False):
        found = free_submodels(robot, recorded.stamp_ns, [], recorded, felt, 0.1, known)
        assert (found[:, names.index('l_foot')] == free).all()
        assert found[:, names.index('root')].all()


# ---- Outliers in time: the least trimmed fit, and pushes on a real arm

DATA = SHARED / 'data'
# What a push leaves within the limit is harmless: starts and ends of weak ones.
FOUND = 0.98
# Of clean samples, margins of 0.2 s and more on both sides of as many pushes of a second or two.
LOST = 0.25
UNKNOWNS, WINDOWS, EQUATIONS = 8, 60, 20
NOISE = {'fine': 0.05, 'coarse': 2.0}
# Half of 1200 equations of the finer kind for 8 unknowns: five deviations of an estimate.
CLOSE = 5 * NOISE['fine'] / np.sqrt(WINDOWS * EQUATIONS / 2)
# Of the median window, each of 20 equations.
SPREAD = 0.15


def regressors(rng, levers=1.0):
    """Return the window of each equation, and regressors."""
    window = np.repeat(np.arange(WINDOWS), EQUATIONS)
    return window, rng.normal(size=(len(window), UNKNOWNS)) * np.resize(levers, WINDOWS)[
        window, None
    ]


def prior_of(x, weight):
    return Information.of(weight * np.eye(UNKNOWNS), weight * x)


@pytest.mark.parametrize('share', [0.0, 0.2, 0.45])
@pytest.mark.parametrize('off', [0.1, 3.0])
@pytest.mark.parametrize('lever', [1.0, 4.0])
def test_cleaner_half_is_found(rng, share, off, lever):
    """
    All disturbed windows follow another truth, the worst case, and have larger regressors.

    A fit to all windows then agrees with them and not with the clean ones.
    """
    truth, pushed = rng.normal(size=(2, UNKNOWNS))
    bad = np.zeros(WINDOWS, dtype=bool)
    while bad.mean() < share:
        start = rng.integers(WINDOWS)
        bad[start : start + min(3, round(share * WINDOWS) - bad.sum())] = True
    kinds = {}
    for kind, noise in NOISE.items():
        window, Y = regressors(rng, np.where(bad, lever, 1.0))
        y = Y @ truth + noise * rng.normal(size=len(window)) + bad[window] * (Y @ pushed)
        kinds[kind] = WindowEquations(np.column_stack([Y, y]), window)
    wrong = truth + off * rng.normal(size=UNKNOWNS)
    prior = prior_of(wrong, 1e-3)
    found = least_trimmed(kinds, WINDOWS, prior, wrong)
    assert not (found.kept & bad).any()
    assert found.kept.sum() == WINDOWS // 2
    np.testing.assert_allclose(found.x, truth, atol=CLOSE)
    if share < 0.3:
        # Beyond that the median window is among the worst of the clean ones.
        assert found.noise == pytest.approx(NOISE, rel=SPREAD)
    # Windows without equations do not count.
    moved = {kind: WindowEquations(one.system, 2 * one.window) for kind, one in kinds.items()}
    other = least_trimmed(moved, 2 * WINDOWS, prior, wrong)
    np.testing.assert_allclose(other.x, found.x, atol=1e-12)


def test_objective_weighs_noise_of_the_half_against_the_prior(rng):
    (window, Y), wrong = regressors(rng), rng.normal(size=UNKNOWNS)
    kinds = {
        kind: WindowEquations(np.column_stack([Y, noise * rng.normal(size=len(window))]), window)
        for kind, noise in NOISE.items()
    }
    found = least_trimmed(kinds, WINDOWS, prior_of(wrong, 30.0), wrong)
    count = EQUATIONS * found.kept.sum()
    pull = 900.0 * np.sum((found.x - wrong) ** 2) / 2
    assert pull > 0.01 * count
    total = count * sum(np.log(level) for level in found.noise.values()) + pull
    assert found.objective == pytest.approx(total / (2 * count), rel=1e-9)


@pytest.mark.parametrize('nearer', [0, 1])
def test_prior_decides_between_equal_halves(rng, nearer):
    truths, (window, Y) = rng.normal(size=(2, UNKNOWNS)), regressors(rng)
    y = np.einsum('ni,ni->n', Y, truths[window % 2]) + NOISE['fine'] * rng.normal(size=len(window))
    kinds = {'one': WindowEquations(np.column_stack([Y, y]), window)}
    found = least_trimmed(kinds, WINDOWS, prior_of(truths[nearer], 30.0), truths[nearer])
    np.testing.assert_allclose(found.x, truths[nearer], atol=CLOSE)


def test_noise_of_samples_that_agree_withstands_outliers(rng):
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    builder = EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',)))
    (evidence,) = gather(builder, swinging(rng, 10.0, 100, n_joints=1))
    left = rng.normal(size=1000)
    left[:40], left[40:60] = 1e6, np.nan
    before = Reference(robot.parameters.ravel(), {'effort elbow': 5.0})
    noise = refitted(robot, evidence, {'effort elbow': left}, before).noise
    assert noise['effort elbow'] == pytest.approx(1.0, rel=0.15)


def pushes(rng, t, frames):
    """Return wrenches for two seconds in five, on one frame after the other, and when."""
    number, time = np.divmod(t, 5.0)
    rise = np.clip(4.0 * np.minimum(time, 2.0 - time), 0.0, 1.0)
    force = rng.normal(size=(int(number[-1]) + 1, 3))
    force *= rng.uniform(10.0, 50.0, (len(force), 1)) / np.linalg.norm(force, axis=1)[:, None]
    wrench = np.hstack([force, np.cross(rng.uniform(-0.1, 0.1, force.shape), force)])
    wrench = rise[:, None] * wrench[number.astype(int)]
    on = (number % len(frames))[:, None]
    return {frame: np.where(on == k, wrench, 0.0) for k, frame in enumerate(frames)}, time < 2.0


@pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
def test_pushes_on_a_real_log_are_rejected(tmp_path, monkeypatch):
    """Friction, filters and the URDF are what they are; only the pushes are made up."""
    log = DATA / 'panda_excitation' / 'log.npz'
    urdf = (DATA / 'models' / 'panda_wrist_ft.urdf').read_text()
    given = yaml.safe_load((CONFIGS / 'identify_panda.yaml').read_text())
    settings = []
    for reject in (0, 4):
        given['rows']['reject'] = reject
        (tmp_path / 'settings.yaml').write_text(yaml.safe_dump(given))
        settings.append(IdentifySettings.from_yaml(tmp_path / 'settings.yaml'))
    plain, rejecting = settings
    reader = LogReader(urdf, plain, (), LogSlice.parse(log), no_progress)
    raw = reader.read(LogSlice.parse(log)).samples
    still = np.zeros_like(raw.positions)
    still = replace(raw, velocities=still, accelerations=still, efforts=still)
    t = (raw.stamp_ns - raw.stamp_ns[0]) * 1e-9
    frames = [f'panda_link{k}' for k in (4, 5, 6, 7)]
    wrenches, bad = pushes(np.random.default_rng(2), t, frames)
    extra = efforts_of(reader.robot, still, wrenches) - efforts_of(reader.robot, still)
    with np.load(log) as columns:
        np.savez(tmp_path / 'pushed.npz', **dict(columns) | {'torque': columns['torque'] + extra})
    rounds, find_outliers = [], reduction.find_outliers

    def watched(builder, observed, *rest):
        found = find_outliers(builder, observed, *rest)
        rounds.append((found[0], observed.samples.stamp_ns))
        return found

    monkeypatch.setattr(reduction, 'find_outliers', watched)
    clean = identify(urdf, [log], plain).fit.blocks[0]
    found = identify(urdf, [tmp_path / 'pushed.npz'], rejecting)
    spoilt = identify(urdf, [tmp_path / 'pushed.npz'], plain)
    assert 'disturbed' in {one.code for one in found.findings}
    rejected, stamps = rounds[-1]
    disturbed = np.interp((stamps - raw.stamp_ns[0]) * 1e-9, t, bad.astype(float)) > 0.5
    assert rejected[disturbed].mean() > FOUND
    assert rejected[~disturbed].mean() < LOST

    def residual(x):
        left, size = clean.evidence.residuals(x), clean.evidence.signals()
        return np.sqrt(sum(v**2 for v in left.values()) / sum(v**2 for v in size.values()))

    # Of the undisturbed log: what is left of it, of which half may not be seen.
    best = residual(clean.answer.x)
    assert residual(found.fit.blocks[0].answer.x) < 1.2 * best
    assert residual(spoilt.fit.blocks[0].answer.x) > 4.0 * best
