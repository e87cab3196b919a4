# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The engine against the thesis written out link by link (brute_force.py), on any readings at all.

IMUs contradict each other and the joints, FT sensors contradict both; still every number must be
the one that the equations give. Links carry whole IMUs, several of them, or accelerometers and
gyroscopes alone. A result depends on exactly the sensors, joints and links whose change changes
it; where a submodel's wrench is split, some may happen not to change it. Not covered: marks of
missing FT sensors and joints (test_quality.py), contacts that only push
(test_contact_limits.py), other engines (test_against_idyntree.py), how
messages become samples with absent parts (test_streams.py).
"""

from contextlib import nullcontext, suppress
from functools import cache
from itertools import product

import brute_force
import numpy as np
import pytest
from robots import (
    all_kinds,
    arm_with_wrist_sensor_urdf,
    assert_close,
    at_ends,
    at_roots,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)
from scipy.spatial.transform import Rotation
from shared_data import SHARED

from inertial_estimation.errors import ModelError
from inertial_estimation.estimation.contacts import Contact, ContactKind
from inertial_estimation.estimation.dependence import dependence_table
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import LinkSensorSpec
from inertial_estimation.sample import SampleBatch

# Relative to the largest number of a result: round-off of sums over some sixty links, times the
# condition of the least squares, which the rank tolerance bounds at 1e3.
ROUND_OFF = 1e-10
# Likewise, without a least squares; arrays are blown up by their inverse.
ARRAYS = 1e-11
MEASURED = ('angular_velocities', 'proper_accelerations', 'angular_accelerations')
TEXTS = {
    'two_link': two_link_urdf(),
    'arm': arm_with_wrist_sensor_urdf(),
    'humanoid': nested_humanoid_urdf(),
}
REAL = ['icub_v2_5', 'icub_genova01', 'icub_sensorised', 'ergocub_sn001', 'panda_wrist_ft']


def read_robot(name, request, **options):
    """Return a robot of the tests by name, or a shared one; the panda without its fingers."""
    if name in TEXTS:
        return Robot.from_urdf(TEXTS[name], **options)
    if name.startswith('panda'):
        options.setdefault('joints', [f'panda_joint{k}' for k in range(1, 8)])
    return Robot.from_urdf(request.getfixturevalue('shared_models') / f'{name}.urdf', **options)


def any_contacts(frames, rng, largest):
    """Return contacts of all kinds at any frames, several, one or none to a submodel."""
    return tuple(
        Contact(
            frame=str(rng.choice(frames)),
            kind=str(rng.choice([kind for kind in ContactKind if not kind.limits])),
            point=tuple(rng.normal(0.0, 0.1, 3)),
            direction=tuple(rng.normal(size=3)),
            wrench=tuple(rng.normal(0.0, 10.0, 6)),
            name=f'contact_{k}',
        )
        for k in range(rng.integers(0, largest + 1))
    )


@pytest.mark.parametrize(('name', 'seed'), [*product(TEXTS, range(8)), *product(REAL, range(4))])
def test_estimates_are_those_of_the_thesis(name, seed, request):
    """Any FT sensors, IMUs or fixed link; own wrenches are matrix times reading less offset."""
    rng, whole = np.random.default_rng(seed), read_robot(name, request)
    frames = list(whole.frames)
    for _ in range(5 if name in TEXTS else 1):
        fts = [sensor.name for sensor in whole.ft_sensors if rng.random() < 0.8]
        at = rng.choice(frames, rng.integers(1, min(len(frames), 20)))
        imus = [LinkSensorSpec(f'imu_{k}', str(frame)) for k, frame in enumerate(at)]
        fixed, gravity = str(rng.choice(frames)), rng.normal(0.0, 5.0, 3)
        for options in ({'imus': imus}, {'fixed_link': fixed, 'gravity': gravity}):
            robot = read_robot(name, request, ft_sensors=fts, **options)
            matrices = np.eye(6) + 0.1 * rng.normal(size=(len(robot.ft_sensors), 6, 6))
            calibration = FtCalibration(matrices, rng.normal(0.0, 20.0, matrices.shape[:2]))
            sample, contacts = random_sample(robot, rng), any_contacts(frames, rng, 15)
            length = rng.choice([0.01, 0.1, 1.0])
            given = {'length_scale': length, 'calibration': calibration}
            estimator = WrenchEstimator(robot, contacts, **given)
            estimate, internal = estimator.update(sample), InternalWrenches(estimator)
            through = internal.of(sample, estimate, robot.joint_names)
            net = internal.net(sample, estimate)
            cut = internal.of(sample, estimate, [sensor.joint for sensor in robot.ft_sensors])
            own = np.einsum('kij,kj->ki', matrices, sample.ft_readings) - calibration.offsets
            sample = sample._replace(ft_readings=own)
            answer = brute_force.estimate(robot, sample, contacts, length_scale=length)
            assert_close(net, answer.net, ROUND_OFF)
            assert_close(through, answer.internal, ROUND_OFF)
            for k, wrench in enumerate(cut):
                assert_close(wrench, -brute_force.child_on_parent(robot, k, own[k]), ROUND_OFF)
            for result in ('wrenches', 'torques', 'external_torques'):
                found, expected = getattr(estimate, result), getattr(answer, result)
                assert_close(found, expected, ROUND_OFF, result)
            roots = [submodel.root for submodel in robot.submodels]
            assert_close(estimate.residuals, [answer.residuals[k] for k in roots], ROUND_OFF)
            np.testing.assert_array_equal(estimate.ranks, [answer.ranks[k] for k in roots])


# Several sensors on a link, or parts of an IMU alone


def spec(name, link, xyz=(0.0, 0.0, 0.0), measures='both', noise=(1.0, 1.0)):
    """Return a sensor at a point of a link, turned somehow; noise: accelerometer, gyroscope."""
    pose = np.eye(4)
    turn = 0.3 * np.arange(1, 4) + np.array(xyz)
    pose[:3, :3], pose[:3, 3] = Rotation.from_rotvec(turn).as_matrix(), xyz
    return LinkSensorSpec(name, link, pose, measures, *noise)


@cache
def nested():
    """Return a robot with whole IMUs, parts, several on a link, and two arrays."""
    acc, gyro = 'accelerometer', 'gyroscope'
    specs = [
        spec('h1', 'head', (0.1, 0.0, 0.05), acc, (0.02, 1.0)),
        spec('h2', 'head', (0.0, 0.1, 0.0), acc, (0.05, 1.0)),
        spec('h3', 'head', (-0.1, 0.0, 0.0), 'both', (0.03, 0.01)),
        spec('h4', 'head', (0.0, 0.0, 0.0), gyro, (1.0, 0.02)),
        spec('c', 'chest', (0.2, 0.1, 0.0), acc),
        spec('a', 'hand', (0.0, 0.02, 0.1), gyro),
        # The hip turns as the thigh beyond an FT sensor does, not as the root beyond a joint.
        spec('r', 'root', (0.0, 0.1, 0.0), gyro),
        spec('p', 'hip', (0.05, 0.1, 0.0), acc),
        spec('t', 'thigh', (0.05, 0.0, -0.1), gyro),
        spec('f1', 'foot', (0.1, 0.02, 0.0), acc, (0.05, 1.0)),
        spec('f2', 'foot', (-0.1, 0.02, 0.0), acc, (0.04, 1.0)),
        spec('f3', 'foot', (0.0, -0.05, 0.03), acc, (0.03, 1.0)),
    ]
    return Robot.from_urdf(nested_humanoid_urdf(), imus=specs)


@cache
def sensorised():
    """Return the iCub with its 55 accelerometers and 11 gyroscopes, each for itself."""
    path = SHARED / 'data' / 'models' / 'icub_sensorised.urdf'
    if not path.is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    robot, rng = Robot.from_urdf(path), np.random.default_rng(3)
    tags = {'accelerometer': robot.accelerometers, 'gyroscope': robot.gyroscopes}
    specs = [
        LinkSensorSpec(tag.name, '', None, kind, *rng.uniform(0.02, 0.06, 2))
        for kind, found in tags.items()
        for tag in found
    ]
    return Robot.from_urdf(path, imus=specs)


def delivered(robot, sample, rows):
    """Put NaN where an IMU is not in rows, or does not measure."""
    kinds, fields = np.array([imu.measures for imu in robot.imus]), {}
    for name in MEASURED:
        other = 'gyroscope' if name == 'proper_accelerations' else 'accelerometer'
        kept = np.isin(np.arange(len(kinds)), rows) & (kinds != other)
        fields[name] = np.where(kept[:, None], getattr(sample, name), np.nan)
    return sample._replace(**fields)


def any_subset(robot, rng, *, arrays):
    """Return IMUs that deliver: enough of them to tell how one link moves."""
    while True:
        chosen = np.flatnonzero(rng.uniform(size=len(robot.imus)) < rng.choice([0.15, 0.5, 0.9]))
        imus = [
            LinkSensorSpec(i.name, robot.link_names[i.link], i.L_H_S, i.measures)
            for i in (robot.imus[k] for k in chosen)
        ]
        with suppress(ModelError):
            LinkMotions(some := Robot.from_urdf(robot.urdf, imus=imus), arrays=arrays)
            if len(some.imus):
                return chosen.tolist()


@pytest.mark.parametrize('arrays', [False, True])
@pytest.mark.parametrize('make', [nested, sensorised])
def test_contradicting_readings_are_weighed_as_by_hand(make, arrays, rng):
    robot = make()
    contacts = at_ends(robot)
    estimator = WrenchEstimator(robot, contacts, acceleration_arrays=arrays)
    samples = [random_sample(robot, rng) for _ in range(10)]
    whole = [imu.measures == 'both' for imu in robot.imus]
    for sample in samples[5:]:  # messages may leave out the angular velocity
        sample.angular_velocities[whole] = sample.angular_accelerations[whole] = np.nan
    chosen = [any_subset(robot, rng, arrays=arrays) for _ in range(5)]
    chosen += [list(range(len(robot.imus)))] * 5
    faulty = [delivered(robot, sample, rows) for sample, rows in zip(samples, chosen)]
    batch = estimator.batch(SampleBatch.stack(faulty))
    for k, rows in enumerate(chosen):
        answer = brute_force.estimate(robot, samples[k], contacts, imus=rows, arrays=arrays)
        one, other = estimator.update(faulty[k]), batch.at(k)
        for estimate in (one, other):
            assert_close(estimate.wrenches, answer.wrenches, ARRAYS)
            assert_close(estimate.torques, answer.torques, ARRAYS)
        assert set(np.flatnonzero(one.used_imus)) <= set(rows)
        for name in ('used_imus', 'torque_quality'):
            np.testing.assert_array_equal(getattr(other, name), getattr(one, name))


@pytest.mark.parametrize(('off', 'is_array'), [(0.0, False), (0.0068, False), (0.0075, True)])
def test_accelerometers_near_one_line_are_no_array(off, is_array):
    """Two of four are off the line of the others: an rms distance of off / sqrt(2), limit 5 mm."""
    points = [(0.0, off, 0.0), (0.1, 0.0, 0.0), (-0.1, 0.0, 0.0), (0.0, -off, 0.0)]
    imus = [spec(f'{k}', 'body', xyz, 'accelerometer') for k, xyz in enumerate(points)]
    robot = Robot.from_urdf(two_link_urdf(), imus=[*imus, spec('g', 'body', measures='gyroscope')])
    with nullcontext() if is_array else pytest.raises(ModelError):
        WrenchEstimator(robot, acceleration_arrays=True)


# Wrenches through joints


@pytest.mark.parametrize('contacts', [at_ends, all_kinds])
@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('two_link', {'imus': ['arm']}),
        ('arm', {'fixed_link': 'tip'}),
        ('humanoid', {'imus': ['foot', 'shank', 'hip', 'root', 'neck']}),
        ('icub_v2_5', {'imus': ['head', 'chest', 'l_foot']}),
    ],
)
def test_missing_sensors_cost_what_they_cost_the_torques(name, options, contacts, request, rng):
    """A wrench depends on what its torque does, and maybe on its own position."""
    robot = read_robot(name, request, **options)
    estimator, sample = WrenchEstimator(robot, contacts(robot)), random_sample(robot, rng)
    internal = InternalWrenches(estimator)
    n = len(robot.joint_names)
    for j in {0, n // 2, n - 1}:
        positions, readings = sample.positions.copy(), sample.ft_readings.copy()
        positions[j] = np.nan
        readings[: j % 2] = np.nan
        whole = sample._replace(ft_readings=readings)
        faulty = whole._replace(positions=positions)
        estimate = estimator.update(faulty)
        wrenches = internal.of(faulty, estimate, robot.joint_names)
        lost, others = np.isnan(wrenches).any(axis=1), np.arange(n) != j
        np.testing.assert_array_equal(lost[others], np.isnan(estimate.torques)[others])
        assert lost[j] or np.isfinite(estimate.torques[j])
        expected = internal.of(whole, estimator.update(whole), robot.joint_names)
        assert_close(wrenches[~lost], expected[~lost], ROUND_OFF)


# Dependence: one joint, FT sensor, IMU or link at a time is disturbed


# Relative to the largest number: far above round-off, far below what a disturbance does.
CHANGED = 1e-9
ROBOTS = {
    'humanoid, imu at the head': (nested_humanoid_urdf(), {'imus': ['head']}),
    'humanoid, imus around joints': (nested_humanoid_urdf(), {'imus': ['chest', 'hip', 'shank']}),
    'humanoid, fixed foot': (nested_humanoid_urdf(), {'fixed_link': 'foot'}),
    'humanoid without sensors': (nested_humanoid_urdf(), {'imus': ['root'], 'ft_sensors': []}),
    'arm held by its tip': (arm_with_wrist_sensor_urdf(), {'fixed_link': 'tip'}),
    'two links': (two_link_urdf(), {'imus': ['arm']}),
}


def with_known_wrenches(robot):
    known = [Contact(name, 'known', wrench=(1, 2, 3, 4, 5, 6)) for name in robot.link_names]
    return [*known, *at_ends(robot)]


def root_and_end(robot):
    """Return two full wrenches in every submodel of several links."""
    ends = {(s.links[0], s.links[-1]) for s in robot.submodels}
    return [Contact(robot.link_names[k]) for k in sorted({k for pair in ends for k in pair})]


SETS = [at_roots, at_ends, with_known_wrenches, root_and_end, lambda robot: at_ends(robot)[::2]]
THINGS = ('fts', 'imus', 'joints', 'links')


def disturbances(robot, sample, rng):
    """Yield kind and name of a thing, with the robot and the sample when it is another."""
    for k, name in enumerate(robot.joint_names):
        step = np.eye(len(robot.joint_names))[k]
        yield 'joints', name, robot, sample._replace(
            positions=sample.positions + 0.7 * step,
            velocities=sample.velocities + step,
            accelerations=sample.accelerations + 3.0 * step,
        )  # fmt: skip
    for k, sensor in enumerate(robot.ft_sensors):
        readings = sample.ft_readings.copy()
        readings[k] += rng.normal(0.0, 10.0, 6)
        yield 'fts', sensor.name, robot, sample._replace(ft_readings=readings)
    for k, imu in enumerate(robot.imus):
        readings = {name: getattr(sample, name).copy() for name in MEASURED}
        for rows in readings.values():
            rows[k] += rng.normal(size=3)
        yield 'imus', imu.name, robot, sample._replace(**readings)
    for k, name in enumerate(robot.link_names):
        parameters = np.array(robot.parameters)
        parameters[k] += rng.uniform(0.5, 1.5, 10)
        yield 'links', name, robot.with_parameters(parameters), sample


def assert_exact(robot, contacts, rng, *, lost_fts=(), lost_imus=(), **options):
    """Check that exactly the named things move each torque and each external wrench."""
    fts = [k for k, sensor in enumerate(robot.ft_sensors) if sensor.name not in lost_fts]
    imus = [k for k, imu in enumerate(robot.imus) if imu.name not in lost_imus]
    sample = delivered(robot, random_sample(robot, rng), imus)
    sample.ft_readings[np.delete(np.arange(len(robot.ft_sensors)), fts)] = np.nan
    before = WrenchEstimator(robot, contacts, **options).update(sample)
    moves = {
        (result, thing): [set() for _ in getattr(before, result)]
        for result in ('torques', 'wrenches')
        for thing in THINGS
    }
    for thing, name, other, disturbed in disturbances(robot, sample, rng):
        after = WrenchEstimator(other, contacts, **options).update(disturbed)
        for result in ('torques', 'wrenches'):
            a, b = getattr(before, result), getattr(after, result)
            size = max(1.0, np.abs(a).max(initial=0.0), np.abs(b).max(initial=0.0))
            changed = (np.abs(a - b) > CHANGED * size).reshape(len(a), a[0:1].size).any(axis=1)
            for row in np.flatnonzero(changed):
                moves[result, thing][row].add(name)
    table = dependence_table(robot, contacts, fts=fts, imus=imus, **options)
    assert [row.name for row in table.torques] == list(robot.joint_names)
    for (result, thing), moved in moves.items():
        rows = getattr(table, result)
        if thing == 'imus' and robot.fixed_frame:
            moved = [{robot.fixed_frame} if row.links else set() for row in rows]
        assert [set(getattr(row, thing)) for row in rows] == moved, f'{result} and {thing}'


@pytest.mark.parametrize('contacts', SETS)
@pytest.mark.parametrize('name', ROBOTS)
def test_exactly_what_is_named_moves_a_result(name, contacts, rng):
    text, options = ROBOTS[name]
    robot = Robot.from_urdf(text, **options)
    assert_exact(robot, contacts(robot), rng)


@pytest.mark.parametrize(
    ('lost_fts', 'contacts'),
    [
        (['leg_sensor'], ['thigh', 'hand', 'foot']),
        (['foot_sensor'], ['chest', 'hand', 'sole']),
        (['arm_sensor', 'leg_sensor'], ['hand', 'foot']),
        (['arm_sensor', 'leg_sensor', 'foot_sensor'], ['root']),
    ],
)
@pytest.mark.parametrize('lost_imus', [[], ['foot', 'hand']])
def test_exactly_what_is_named_moves_where_sensors_are_lost(lost_fts, lost_imus, contacts, rng):
    """Submodels merge, and other IMUs serve."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot', 'hand'])
    chosen = [Contact(name) for name in contacts]
    assert_exact(robot, chosen, rng, lost_fts=lost_fts, lost_imus=lost_imus)


@pytest.mark.parametrize('arrays', [False, True])
def test_exactly_what_is_named_moves_where_imus_measure_halves(arrays, rng):
    robot = nested()
    assert_exact(robot, at_ends(robot), rng, acceleration_arrays=arrays)


@pytest.mark.parametrize('contacts', [*SETS, all_kinds])
@pytest.mark.parametrize('lost', [[], [0, 2], [0, 1, 2]])
def test_uninformed_torques_are_those_without_ft_sensor(lost, contacts):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    table = dependence_table(robot, contacts(robot), fts=[k for k in range(3) if k not in lost])
    joints = {joint for group in table.uninformed for joint in group.joints}
    assert joints == {row.name for row in table.torques if not row.fts}
