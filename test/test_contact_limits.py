# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts that only push: the limits, the split within them, and the iCub in MuJoCo.

The oracle solves the same least squares by NNLS, with limits written out from their meaning: force
in the octagon inside the cone of friction, centre of pressure in the rectangle. Not covered:
deviations (test_uncertainty.py), reported normals (test_contact_stream.py), messages.
"""

import signal
import sys
from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import brute_force
import numpy as np
import osqp
import pytest
from robots import arm_with_wrist_sensor_urdf, random_sample
from scipy.optimize import nnls
from scipy.spatial.transform import Rotation
from standing_biped import biped
from test_wrench_estimator import assert_same

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation import contact_limits
from inertial_estimation.estimation.contact_limits import FREEDOM
from inertial_estimation.estimation.contacts import Contact, ContactKind, Limit
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

# N and Nm: the limits that hold determine the answer, up to the round-off of a Hessian of 1e-3.
SOLVER = 1e-5
MU, SIZE, LENGTH = 0.6, (0.16, 0.08), 0.1
SOLE = {'kind': 'surface', 'friction': MU, 'size': SIZE}
PUSHING = [kind for kind in ContactKind if kind.limits]


def oracle_limits(contact):
    """Return the limits (n, 6) of a wrench about the point, in axes with the normal as z."""
    half_x, half_y = 0.5 * np.array(contact.size)
    angles = np.pi / 8 + np.arange(8) * np.pi / 4
    if contact.kind == 'unilateral':
        return np.eye(6)[[2]]
    rows = [[np.cos(a), np.sin(a), contact.friction * np.cos(np.pi / 8), 0, 0, 0] for a in angles]
    if contact.kind == 'surface':
        twist = contact.friction * np.hypot(half_x, half_y)
        for sign in (1, -1):
            rows += [[0, 0, half_y, sign, 0, 0], [0, 0, half_x, 0, sign, 0]]
            rows += [[0, 0, twist, 0, 0, sign]]
    return np.array(rows)


def axes_of(contact):
    """Return axes with the normal as z: those of the frame, or upside down, tilted the least."""
    normal = np.array(contact.direction)
    start = np.diag([1.0, *[1.0 if normal[2] >= 0.0 else -1.0] * 2])
    turn = np.cross(start[:, 2], normal)
    if not turn.any():
        return start
    angle = np.arctan2(np.linalg.norm(turn), start[:, 2] @ normal)
    return Rotation.from_rotvec(turn / np.linalg.norm(turn) * angle).as_matrix() @ start


def oracle(contacts, maps, total):
    """Return the wrenches of contacts; maps: from their frames to the whitened total, (6, 6)."""
    scales = {
        'unilateral': [1.0],
        'friction_cone': [MU, MU, 1.0],
        'force': [1.0] * 3,
        'wrench': [1.0] * 3 + [LENGTH] * 3,
        'surface': [MU, MU, 1.0, SIZE[1] / 2, SIZE[0] / 2, MU * np.hypot(*SIZE) / 2],
    }
    columns, rows, starts = [], [], [0]
    for contact in contacts:
        R, n = axes_of(contact), len(scales[contact.kind])
        to_frame = np.kron(np.eye(2), R)
        to_frame[3:, :3] = brute_force.hat(np.array(contact.point)) @ R
        if contact.kind in ('force', 'wrench'):
            to_frame = np.eye(6)
            to_frame[3:, :3] = brute_force.hat(np.array(contact.point)) * (contact.kind == 'force')
        picked = [2] if n == 1 else range(n)
        units = to_frame[:, picked] * scales[contact.kind]
        columns.append(units)
        starts.append(starts[-1] + n)
        rows.append(
            oracle_limits(contact)[:, picked] * scales[contact.kind]
            if contact.kind in PUSHING
            else np.zeros((0, n))
        )
    A = np.hstack([m @ c for m, c in zip(maps, columns)])
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    shown = s > 1e-2
    x = Vt[shown].T @ (U[:, shown].T @ total / s[shown])
    G = np.zeros((sum(map(len, rows)), starts[-1]))
    place = 0
    for own, start, end in zip(rows, starts, starts[1:]):
        G[place : place + len(own), start:end] = own
        place += len(own)
    # The nearest point to x in the metric of H within G x >= 0: Lawson and Hanson, chapter 23.
    root = np.linalg.cholesky(A.T @ A + FREEDOM**2 * np.eye(len(x)))
    M = np.linalg.solve(root, G.T)
    slack = G @ x
    if slack.min() < 0.0:
        size = -slack.min()
        E, e = np.vstack([M, -slack / size]), np.zeros(len(x) + 1)
        e[-1] = 1.0
        left = E @ nnls(E, e, maxiter=10_000)[0] - e
        x = x + np.linalg.solve(root.T, -left[:-1] / left[-1] * size)
    return [c @ x[a:b] for c, a, b in zip(columns, starts, starts[1:])], slack.min() < 0.0


def arm_case(contacts, readings):
    """Return estimator, sample, and maps of contacts beyond the wrist sensor of an arm at rest."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', gravity=(0, 0, 0))
    zero = np.zeros(len(robot.joint_names))
    sample = random_sample(robot, np.random.default_rng(0))._replace(
        positions=zero, velocities=zero, accelerations=zero, ft_readings=readings[None]
    )
    sensor, poses = robot.ft_sensors[0], brute_force.link_poses(robot, zero)
    W_H_S = poses[sensor.child] @ sensor.child_H_sensor
    white = np.diag(1 / np.array([1, 1, 1, LENGTH, LENGTH, LENGTH]))
    maps = []
    for contact in contacts:
        link, pose = robot.frame(contact.frame)
        maps.append(
            white @ brute_force.wrench_transform(np.linalg.inv(W_H_S) @ poses[link] @ pose)
        )
    return WrenchEstimator(robot, contacts), sample, maps, white


SETS = {
    'sole': [Contact('tip', **SOLE)],
    'two surfaces': [
        Contact('tip', **SOLE, point=(0.03, 0.0, 0.01)),
        Contact('tool', **SOLE, direction=(0.48, 0.36, -0.8), name='other'),
    ],
    'cones': [
        Contact('tip', 'friction_cone', (0.0, 0.1, 0.0), friction=MU),
        Contact('tool', 'friction_cone', (0.1, 0.0, 0.2), (0.0, 1.0, 0.0), friction=MU),
    ],
    'pushes': [
        Contact('tip', 'unilateral', (0.1, 0.0, 0.0)),
        Contact('tool', 'unilateral', (0.0, 0.1, 0.0), (1.0, 0.0, 0.0)),
    ],
    'beside a wrench': [Contact('tip'), Contact('tool', 'unilateral', direction=(0.0, -0.6, 0.8))],
    'beside a force': [Contact('tip', 'force', (0, 0, 0.1)), Contact('tool', **SOLE)],
}  # fmt: skip


@pytest.mark.parametrize('name', SETS)
def test_split_is_the_nearest_within_limits(name, rng):
    contacts, held = SETS[name], 0
    for _ in range(40):
        readings = rng.normal(size=6) * np.repeat([40.0, 4.0], 3)
        estimator, sample, maps, white = arm_case(contacts, readings)
        estimate = estimator.update(sample)
        expected, breaks = oracle(contacts, maps, white @ readings)
        for got, wanted in zip(estimate.wrenches, expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=0, atol=SOLVER)
        assert (estimate.limits.any() and not estimate.contact_quality.any() & 64) == breaks
        held += breaks
    assert held > 0


@pytest.mark.parametrize('kind', PUSHING)
def test_limits_are_those_of_friction_and_of_the_sole(kind):
    """Edges of the octagon lie on the cone of friction; beyond them, and pulling, is outside."""
    contact = Contact('tip', kind, friction=MU, size=SIZE)
    scales, rows = contact.scales(LENGTH), kind.limit_rows
    flags = np.array([flag for flag, _ in kind.limits])
    n = contact.unknowns

    picked = [2] if n == 1 else range(n)

    def broken(wrench):
        return set(flags[rows @ (np.take(wrench, picked) / scales) < -1e-12])

    assert not broken(np.eye(6)[2])
    assert Limit.PUSH in broken(-np.eye(6)[2])
    for k in range(8 if n > 1 else 0):
        edge = np.array([np.cos(k * np.pi / 4), np.sin(k * np.pi / 4)]) * MU
        assert not broken([*edge, 1.0, 0.0, 0.0, 0.0])
        assert broken([*1.001 * edge, 1.0, 0.0, 0.0, 0.0]) == {Limit.FRICTION}
    # The force at a corner of the sole, and just outside of it.
    for x, y in product((-1, 1), (-1, 1)) if n == 6 else ():
        x, y = x * SIZE[0] / 2, y * SIZE[1] / 2
        assert not broken([0.0, 0.0, 1.0, y, -x, 0.0])
        assert broken([0.0, 0.0, 1.0, 1.001 * y, -x, 0.0]) == {Limit.EDGE}
        assert broken([0.0, 0.0, 1.0, y, -1.001 * x, 0.0]) == {Limit.EDGE}
    if n == 6:
        assert broken([0, 0, 1, 0, 0, 1.001 * MU * np.hypot(*SIZE) / 2]) == {Limit.TWIST}


def test_answers_within_limits_are_the_least_squares(monkeypatch):
    """The solver is left alone; across a limit the answer is continuous."""
    readings = np.array([1.0, 2.0, 40.0, 0.3, 0.2, 0.1])
    contact = Contact('tip', **SOLE)
    estimator, sample, _, _ = arm_case([contact], readings)
    inside = Contact('tip').basis() @ [0.0, 0.0, 30.0, 0.2, -0.3, 0.1]
    load = WrenchEstimator(estimator.robot, [Contact('tip')])
    # The readings that give this wrench, which the sensor determines.
    jacobian = np.column_stack(
        [load.update(sample._replace(ft_readings=one[None])).wrenches[0] for one in np.eye(6)]
    )

    def at(wrench):
        return sample._replace(ft_readings=np.linalg.solve(jacobian, wrench)[None])

    found = estimator.update(at(inside))
    np.testing.assert_allclose(found.wrenches[0], inside, rtol=0, atol=1e-9)
    assert found.ranks.max() == 6 and not found.limits.any() and not found.contact_quality.any()
    np.testing.assert_allclose(found.residuals[1], 0.0, atol=1e-9)
    # A pull of some size: nothing is left of the contact, and the residual has it all.
    for size in (1e-3, 1.0, 1e3):
        pull = np.array([0.0, 0.0, -size, 0.0, 0.0, 0.0])
        found = estimator.update(at(pull))
        np.testing.assert_allclose(found.wrenches[0], 0.0, atol=SOLVER * size)
        whole = load.update(at(pull)).wrenches[0]
        assert np.linalg.norm(found.residuals[1]) > 0.5 * np.linalg.norm(whole)
        assert found.limits[0] == Limit.PUSH | Limit.FRICTION | Limit.EDGE | Limit.TWIST
    # Beyond the edge by little, the answer changes by little.
    edge = np.array([0.0, 0.0, 30.0, 30.0 * SIZE[1] / 2, 0.0, 0.0])
    at_edge, beyond = (estimator.update(at(edge * [1, 1, 1, k, 1, 1])) for k in (0.999, 1.001))
    assert not at_edge.limits.any() and beyond.limits[0] == Limit.EDGE
    np.testing.assert_allclose(at_edge.wrenches, beyond.wrenches, rtol=0, atol=0.1)

    monkeypatch.setattr(contact_limits.ContactLimits, 'keep', None)
    estimator.update(at(inside))


def test_batch_and_moved_normals_are_steps(rng):
    """Of two feet and a hand: one plan serves all points and normals of a contact."""
    robot = biped()
    contacts = [Contact(f'{side}_sole', **SOLE) for side in 'lr']
    samples = [random_sample(robot, rng) for _ in range(20)]
    for sample in samples[::3]:
        sample.ft_readings[:4] = np.nan
    estimator, held = WrenchEstimator(robot), 0
    for _ in range(2):
        normal = rng.normal(size=3)
        touch = Contact('hand', 'friction_cone', friction=MU)
        moved = touch.moved(tuple(rng.normal(size=3)), tuple(normal / np.linalg.norm(normal)))
        assert moved.at_origin == touch
        together = estimator.batch(SampleBatch.stack(samples), [*contacts, moved])
        for k, sample in enumerate(samples):
            one = estimator.update(sample, [*contacts, moved])
            fresh = WrenchEstimator(robot, [*contacts, moved]).update(sample, [*contacts, moved])
            assert_same(together.at(k), one, SOLVER)
            assert_same(fresh, one, SOLVER)
            held += one.limits.any()
    assert held > 20


def test_without_an_answer_it_is_the_least_squares_flagged(monkeypatch):
    monkeypatch.setattr(contact_limits, 'SETTINGS', {**contact_limits.SETTINGS, 'max_iter': 1})
    readings = np.array([30.0, -20.0, -40.0, 0.3, 2.0, 0.1])
    estimator, sample, _, _ = arm_case(SETS['cones'], readings)
    found = estimator.update(sample)
    monkeypatch.setattr(contact_limits, 'MAX_VIOLATION', np.inf)
    plain = estimator.update(sample)
    np.testing.assert_array_equal(found.wrenches, plain.wrenches)
    flags = found.contact_quality & Quality.UNLIMITED
    assert flags.all() and not found.limits.any() and not (plain.contact_quality & 64).any()
    monkeypatch.setitem(sys.modules, 'osqp', None)
    with pytest.raises(ModelError):
        WrenchEstimator(estimator.robot, SETS['sole'])


def test_an_interrupt_that_osqp_swallows_is_raised_again(monkeypatch):
    estimator, sample, _, _ = arm_case(
        SETS['cones'], np.array([30.0, -20.0, -40.0, 0.3, 2.0, 0.1])
    )
    interrupted = SimpleNamespace(info=SimpleNamespace(status_val=osqp.SolverStatus.OSQP_SIGINT))
    monkeypatch.setattr(osqp.OSQP, 'solve', lambda self, raise_error: interrupted)
    # Jobs in the background ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            estimator.update(sample)
    finally:
        signal.signal(signal.SIGINT, before)


def test_two_soles_stay_where_their_submodels_merge(rng):
    """Default contacts that push do not give way to one another; others do."""
    robot, sample = biped(), random_sample(biped(), rng)
    sample.ft_readings[:4] = np.nan
    for kind, dropped in ((SOLE, 0), ({}, 1)):
        contacts = [Contact('l_sole', **kind), Contact('r_sole', **kind), Contact('root')]
        flags = WrenchEstimator(robot, contacts).update(sample).contact_quality
        expected = [Quality.MERGED, Quality.MERGED | Quality.DROPPED * dropped]
        np.testing.assert_array_equal(flags[:2] & 11, expected)
        assert flags[2] & Quality.DROPPED


@pytest.mark.parametrize(
    'given',
    [
        {'direction': (0.0, 0.0, 2.0)}, {'direction': (0.0, 0.0, 0.99)}, {'direction': (0, 0, 0)},
        {'direction': (0.0, np.nan, 1.0)}, {'direction': (0.0, 1.0)},
        {'friction': 0.0}, {'friction': 0.01}, {'friction': -0.5},
        {'friction': np.nan}, {'friction': 'high'},
        {'size': (0.1, 0.0)}, {'size': (-0.1, 0.1)}, {'size': (0.1, np.inf)}, {'size': 0.1},
    ],
)  # fmt: skip
def test_contacts_that_cannot_push_are_refused(given):
    Contact('tip', **SOLE)
    with pytest.raises((ModelError, ShapeError)):
        Contact('tip', **{**SOLE, **given})


# The iCub in MuJoCo, on seeds that the method was not made with

SEEDS = range(11, 16)


def icub(scenario, every=10):
    """Return the robot, and a function that yields samples, with noise of FTs, and snapshots."""
    pytest.importorskip('mujoco')
    pytest.importorskip('icub_models')
    from inertial_estimation.simulation.robot import SimulatedRobot

    simulated = SimulatedRobot(scenario, imus={} if scenario.fixed else {'root_link': 'root_link'})
    base = {'fixed_link': 'root_link'} if scenario.fixed else {'imus': ['root_link']}
    robot = Robot.from_urdf(simulated.urdf, ft_sensors=simulated.ft_names, **base)
    order = [simulated.joint_names.index(name) for name in robot.joint_names]

    def run(seconds):
        for k in range(round(500 * seconds)):
            snapshot = simulated.step()
            if k % every == 0:
                sample = snapshot.sample()
                joints = {
                    name: getattr(sample, name)[order]
                    for name in ('positions', 'velocities', 'accelerations', 'efforts')
                }
                sample = sample._replace(**joints)
                noise = rng.normal(size=sample.ft_readings.shape) * np.repeat([0.15, 0.005], 3)
                yield sample._replace(ft_readings=sample.ft_readings + noise), snapshot

    rng = np.random.default_rng(scenario.seed)
    return robot, run


def rms(errors):
    return float(np.sqrt((np.array(errors)[..., :3] ** 2).sum(axis=-1).mean()))


@pytest.mark.parametrize('seed', SEEDS)
def test_soles_halve_the_error_of_two_feet_without_sensors(seed):
    """The sensors of both legs have failed: six equations for both feet."""
    from inertial_estimation.simulation.scenario import standing

    scenario = replace(standing(3.0, seed), pushes=())
    robot, run = icub(scenario)
    sole = {'friction': 0.5, 'size': (0.17, 0.072), 'point': (0.03, 0.0, 0.0)}
    frames = 'l_sole', 'r_sole'
    kinds = {'wrench': {}, 'surface': sole}
    estimator = WrenchEstimator(robot)
    hands = [Contact('l_hand'), Contact('r_hand')]
    legs = [k for k, ft in enumerate(robot.ft_sensors) if 'arm' not in ft.name]
    errors = {kind: [] for kind in kinds}
    for sample, snapshot in run(3.0):
        sample.ft_readings[legs] = np.nan
        rows = [list(scenario.contacts).index(frame) for frame in frames]
        for kind, more in kinds.items():
            given = [Contact(frame, kind, **more) for frame in frames] + hands
            found = estimator.update(sample, given).wrenches[:2]
            errors[kind].append(found - snapshot.external_wrenches[rows])
    assert rms(errors['surface']) < 0.5 * rms(errors['wrench'])
    assert rms(errors['wrench']) > 5.0


@pytest.mark.parametrize('seed', SEEDS)
def test_normals_halve_the_error_of_a_touched_hand_and_forearm(seed):
    """Both are pushed along any normals, by forces within half of the friction cone."""
    from inertial_estimation.simulation.scenario import Push, pole

    rng, touches, pushes, scenario = np.random.default_rng([seed, 7]), [], [], pole(6.0, seed)
    robot, _ = icub(replace(scenario, pushes=()))
    poses = brute_force.link_poses(robot, np.zeros(len(robot.joint_names)))
    arm = [poses[robot.link_names.index(f'l_{name}')] for name in ('forearm', 'hand')]
    reach = (np.linalg.inv(arm[0]) @ arm[1])[:3, 3]

    def unit(vector):
        return vector / np.linalg.norm(vector)

    for start in np.arange(0.2, 5.0, 0.5):
        touches.append([])
        for frame in ('l_forearm', 'l_hand'):
            normal, point = unit(rng.normal(size=3)), np.zeros(3)
            if frame == 'l_forearm':
                normal = unit(np.cross(reach, normal))
                point = rng.uniform(0.3, 0.7) * reach
            point = point - 0.03 * normal
            tangent = unit(np.cross(normal, rng.normal(size=3)))
            force = rng.uniform(5.0, 30.0) * (normal + rng.uniform(0.0, 0.25) * tangent)
            wrench = (*force, *np.cross(point, force))
            pushes.append(Push(start, 0.5, frame, wrench, 0.1))
            touches[-1].append((frame, point, normal, force))
    robot, run = icub(replace(scenario, pushes=tuple(pushes)))
    others = [Contact(frame) for frame in scenario.contacts if frame != 'l_hand']
    estimator, errors = WrenchEstimator(robot), {'force': [], 'friction_cone': []}
    for sample, snapshot in run(5.2):
        number, phase = divmod(1e-9 * snapshot.time_ns - 0.2, 0.5)
        if not (0 <= number < len(touches) and 0.1 < phase < 0.4):
            continue
        touched = touches[int(number)]
        for kind, found in errors.items():
            more = {'friction': 0.5} if kind == 'friction_cone' else {}
            given = [Contact(f, kind, p, tuple(n), **more) for f, p, n, _ in touched] + others
            wrenches = estimator.update(sample, given).wrenches[:2, :3]
            found.append(wrenches - [force for *_, force in touched])
    assert rms(errors['friction_cone']) < 0.5 * rms(errors['force'])
