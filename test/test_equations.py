# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Equations of samples against known parameters; their reduction, rank, and the noise of each kind.

Last, priors of URDFs, and linear algebra on one thread. Not covered: filtering of logs; speed.
"""

import os
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_sample

from inertial_estimation import EquationBuilder, EquationChoice, FreeFloatingModel, Robot
from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification import evidence
from inertial_estimation.identification import one_thread as module
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import determined, friction_scales, gather
from inertial_estimation.identification.information import Information, weighted_sum
from inertial_estimation.identification.noise import MIN_RELATIVE_NOISE, noise_levels
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import SMALLEST_RADIUS, widened
from inertial_estimation.identification.row_space import RowSpace, independent_fit
from inertial_estimation.identification.solvers.mass_points import composition
from inertial_estimation.identification.unknowns import OF_A_JOINT, Term
from inertial_estimation.model.inertia import consistency_margin, pseudo_inertia
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.sensor_models import floating_acceleration, sensor_readings
from inertial_estimation.sample import SampleBatch
from inertial_estimation_nodes import THREADS

# A few dozen transforms of forces of some hundred newton.
ROUND_OFF = 1e-9
# Orthogonal transforms and a few products, over the size of what they work on.
REDUCTION_ROUND_OFF = 1e-11
N = 12
FRAMES = ('sole', 'hand', 'head')
JOINTS = ('shoulder', 'elbow', 'lift')


def moving(robot, rng, frames=()):
    """Return samples of a robot that moves, with efforts, and the wrenches that act on it."""
    model, samples = FreeFloatingModel(robot), []
    wrenches = {frame: rng.normal(0.0, 20.0, (N, 6)) for frame in frames}
    left, fixed = Representation.LEFT, robot.fixed_frame
    for k in range(N):
        motion = random_sample(robot, rng)
        acting = {frame: wrench[k] for frame, wrench in wrenches.items()}
        v = np.zeros(6) if fixed else rng.normal(0.0, 1.0, 6)
        state = model.state(
            motion.positions, motion.velocities, None, v, base=fixed, representation=left
        )
        equations = state.equations(fixed, left)
        acceleration = np.concatenate([np.zeros(6), motion.accelerations])
        if not fixed:
            acceleration = floating_acceleration(state, motion.accelerations, acting)
        sample, _ = sensor_readings(state, equations, acceleration, acting)
        efforts = equations.inverse_dynamics(acceleration)
        for frame, wrench in acting.items():
            efforts = efforts - state.jacobian(frame, equations, left).T @ wrench
        samples.append(sample._replace(efforts=efforts[6:]))
    return SampleBatch.stack(samples), wrenches


def assert_solved(builder, samples, extras=(), **known):
    """Assert that the robot's parameters and extras of each block solve all equations."""
    found = builder.equations(samples, **known)
    extras = extras or [()] * len(found)
    for block, values, rows in zip(builder.blocks, extras, found, strict=True):
        parameters = builder.robot.parameters[list(block.submodel.links)]
        x = block.unknowns.join(parameters, np.array(values, dtype=float))
        assert set(rows) == set(block.kinds)
        for kind, (Y, y, _) in rows.items():
            assert len(y) == N
            np.testing.assert_allclose(Y @ x, y, rtol=0, atol=ROUND_OFF, err_msg=kind)


@pytest.fixture
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['hand', 'root'])


@pytest.fixture
def arm(arm_with_wrist_sensor):
    return arm_with_wrist_sensor


@pytest.mark.parametrize('held', ['root', 'shank'])
def test_submodel_that_the_ground_holds_has_no_wrench_equations(held, rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), fixed_link=held)
    samples, wrenches = moving(robot, rng, ['head'])
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    assert_solved(builder, samples, external=wrenches)
    link = robot.frame(held)[0]
    for block in builder.blocks:
        assert (COMPONENTS[0] in block.kinds) == (link not in block.submodel.links)


def test_offsets_are_unknowns_of_both_neighbours(humanoid, rng):
    samples, wrenches = moving(humanoid, rng, FRAMES)
    offset = np.array([3.0, -2.0, 5.0, 0.3, 0.1, -0.2])
    samples.ft_readings[:] += offset
    names = tuple(sensor.name for sensor in humanoid.ft_sensors)
    choice = EquationChoice(efforts=humanoid.joint_names, offsets=names)
    builder = EquationBuilder(humanoid, choice)
    borders = [
        len(block.submodel.child_sensors) + (block.submodel.root_sensor >= 0)
        for block in builder.blocks
    ]
    assert_solved(builder, samples, [np.tile(offset, k) for k in borders], external=wrenches)
    kinds = sum(len(block.kinds) for block in builder.blocks)
    assert kinds == 6 * len(builder.blocks) + len(humanoid.joint_names)


def test_friction_and_drive_inertia_load_their_joint_and_coupled_drives_both(arm, rng):
    """Power of a coupled drive is its friction times the sum of both velocities."""
    samples, _ = moving(arm, rng)
    values, (viscous, coulomb, inertia) = rng.normal(size=(3, 4)), rng.normal(size=3)
    v, a = samples.velocities, samples.accelerations
    terms = np.stack([v, np.tanh(v / 0.3), np.ones_like(v), a])
    samples.efforts[:] += np.einsum('knj,jk->nj', terms, values)
    speed, change = v[:, :2].sum(axis=1), a[:, :2].sum(axis=1)
    drive = viscous * speed + coulomb * np.tanh(speed / 0.3) + inertia * change
    samples.efforts[:, :2] += drive[:, None]
    choice = EquationChoice(
        efforts=JOINTS, friction=OF_A_JOINT, sign_width=0.3, couplings=(JOINTS[:2],)
    )
    builder = EquationBuilder(arm, choice)
    names = [str(extra) for extra in builder.blocks[0].unknowns.extras]
    shared = ('viscous', 'coulomb', 'drive_inertia')
    assert names[-3:] == [f'shoulder+elbow.{term}' for term in shared]
    # Each of both joints has all of what its own motion takes from the drive.
    values[:2] += [viscous, 0.0, 0.0, inertia]
    assert_solved(builder, samples, [[*values.reshape(-1), viscous, coulomb, inertia], ()])
    scales = dict(zip(names, friction_scales(gather(builder, samples)[0]), strict=True))
    mean = (scales['shoulder.viscous'] + scales['elbow.viscous']) / 2
    assert scales['shoulder+elbow.viscous'] == pytest.approx(mean)
    for wrong in (('elbow', 'elbow'), ('elbow', 'tip')):
        with pytest.raises(ConfigError):
            EquationBuilder(arm, replace(choice, couplings=(wrong,)))


def test_missing_values_and_dead_zones_cost_their_own_equations(humanoid, rng):
    samples, wrenches = moving(humanoid, rng, FRAMES)
    wrenches['sole'][3] = np.nan
    samples.ft_readings[5, 0] = np.nan
    samples.velocities[7, humanoid.joint_names.index('neck')] = np.nan
    free = np.ones((N, len(humanoid.submodels)), dtype=bool)
    free[1, 0] = False
    slow = np.sum(np.abs(samples.velocities[:, humanoid.joint_names.index('knee')]) < 1.0)
    assert 0 < slow < N
    choice = EquationChoice(efforts=humanoid.joint_names, dead_zones={'knee': 1.0})
    builder = EquationBuilder(humanoid, choice)
    found = builder.equations(samples, external=wrenches, free=free)
    left = {
        (block.submodel.name, kind): row.left_out
        for block, rows in zip(builder.blocks, found, strict=True)
        for kind, row in rows.items()
    }
    assert left['foot', 'force_x'] == 1
    assert left['thigh', 'effort knee'] == slow
    assert left['upper_arm', 'force_x'] == 1  # its sensor
    assert left['root', 'force_x'] == 3  # the sensor, the neck, not free
    assert left['root', 'effort hip_joint'] == 1  # not free
    assert left['root', 'effort neck'] == 2
    rows = builder.equations(replace(samples, efforts=None), external=wrenches)
    assert len(rows[0]['effort neck'].y) == 0


@pytest.mark.parametrize('name', ['humanoid', 'arm'])
def test_reduced_equations_have_the_products_of_all(humanoid, arm, name, monkeypatch):
    monkeypatch.setattr(evidence, 'SAMPLES_AT_ONCE', 70)
    robot, others = {
        'humanoid': (humanoid, {'offsets': tuple(one.name for one in humanoid.ft_sensors)}),
        'arm': (arm, {
            'sign_width': 0.3, 'dead_zones': dict.fromkeys(JOINTS, 0.05),
            'couplings': (JOINTS[:2],), 'gains': ('lift',),
        }),
    }[name]  # fmt: skip
    choice = EquationChoice(efforts=robot.joint_names, friction=OF_A_JOINT, **others)
    builder = EquationBuilder(robot, choice)
    samples = builder.random_samples(4, 300)
    samples.positions[17, 0] = np.nan
    some = [gather(builder, samples.take(part)) for part in (slice(0, 50), slice(50, 300))]
    merged = [one.merge(two) for one, two in zip(*some, strict=True)]
    for found in (gather(builder, samples), merged):
        for one, kinds in zip(found, builder.equations(samples), strict=True):
            assert set(one.kinds) == set(kinds)
            for kind, (Y, y, left_out) in kinds.items():
                part, rows = one.kinds[kind], np.column_stack([Y, y])
                R = np.column_stack([part.R, part.rho])
                products = R.T @ R
                products[-1, -1] += part.energy
                size = np.maximum(np.linalg.norm(rows, axis=0), 1.0)
                atol = REDUCTION_ROUND_OFF * size.max() * size
                assert (np.abs(products - rows.T @ rows) <= atol).all()
                assert (part.count, one.left_out[kind]) == (len(y), left_out)
                assert one.used[kind] + left_out == 300


def determined_by(builder, samples):
    """Return what samples determine of each block."""
    return [
        determined(one.block, base, weighted_sum(one.kinds.values(), [1.0] * len(one.kinds)))
        for one, (base, _) in zip(gather(builder, samples), builder.bases, strict=True)
    ]


def test_rank_with_a_joint_at_rest():
    arm = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    friction = (Term.VISCOUS, Term.COULOMB)
    builder = EquationBuilder(arm, EquationChoice(efforts=JOINTS, friction=friction))
    samples = builder.random_samples(2, 200)
    still = {
        name: getattr(samples, name) * [1.0, 0.0, 1.0]
        for name in ('positions', 'velocities', 'accelerations')
    }
    (whole,), (part,) = (
        determined_by(builder, one) for one in (samples, replace(samples, **still))
    )
    assert whole.missing == ()
    assert whole.possible == part.possible == part.seen.rank + len(part.missing)
    assert {'elbow.viscous', 'elbow.coulomb'} <= set(part.missing)
    assert 'shoulder.viscous' not in part.missing


# ---- Reduced equations, and noise by reweighting

ILL = 1e-9
"""Error over the largest unknown at condition 1e7; normal equations lose to 1e-2 there."""
LEVELS = {'force': 2.0, 'moment': 0.05, 'effort': 0.4}
COUNTS = {'force': 300, 'moment': 240, 'effort': 15}
UNKNOWNS = 8
FIVE_SIGMA = 5.0
"""Of a standard deviation from f equations, which is known to 1 / sqrt(2 f)."""


def test_ill_conditioned_equations_keep_their_digits():
    """Products of integers below 2^53, so that the equations are exact; condition 1e7."""
    rng = np.random.default_rng(7)
    base = rng.integers(-(2**23), 2**23, size=(400, 5))
    Y = np.hstack([base, base + rng.integers(-1, 2, size=(400, 5))]).astype(float)
    assert np.linalg.cond(Y) > 1e7
    x = rng.integers(-9, 10, size=10).astype(float)
    y = Y @ x
    some, rest = Information.of(Y[:100], y[:100]), Information.of(Y[150:], y[150:])
    information = some.add(Y[100:150], y[100:150]).merge(rest)
    assert information.count == 400
    found = np.linalg.solve(information.R, information.rho)
    np.testing.assert_allclose(found, x, atol=ILL * np.abs(x).max())


@pytest.fixture
def kinds(rng):
    """Return equations of each kind with its noise; nothing depends on two more unknowns."""
    x, kinds = rng.normal(size=UNKNOWNS), {}
    for kind, level in LEVELS.items():
        Y = rng.normal(size=(COUNTS[kind], UNKNOWNS)) * level * 3.0
        y = Y @ x + level * rng.normal(size=len(Y))
        kinds[kind] = Information.of(np.pad(Y, ((0, 0), (0, 2))), y)
    return kinds


def test_noise_of_each_kind_is_found(kinds):
    found = noise_levels(kinds)
    assert found.notes == ()
    for kind, level in LEVELS.items():
        error = FIVE_SIGMA / np.sqrt(2.0 * (COUNTS[kind] - 1))
        assert found.deviations[kind] == pytest.approx(level, rel=error)
    # The merged equations are in units of their noise.
    x = RowSpace.of(found.information.R).solve(found.information.rho)
    freedom = sum(COUNTS.values()) - UNKNOWNS
    assert found.information.squared_residual(x) == pytest.approx(freedom, rel=1e-4)


def test_independent_fit_has_the_residual_of_the_row_space(rng):
    Y = rng.normal(size=(30, 3)) @ rng.normal(size=(3, 6))
    rows = Information.of(Y, rng.normal(size=30))
    (x, columns, root), space = independent_fit(rows), RowSpace.of(rows.R)
    np.testing.assert_allclose(Y @ x, Y @ space.solve(rows.rho), atol=1e-12)
    one, other = Y[:, columns] @ root, Y @ space.inverse_root()
    np.testing.assert_allclose(one @ one.T, other @ other.T, atol=1e-12)
    assert not len(independent_fit(rows.scaled(0.0))[1])


def test_units_of_a_kind_do_not_matter(kinds, rng):
    one, other = noise_levels(kinds), noise_levels(kinds | {'force': kinds['force'].scaled(1e3)})
    expected = one.deviations | {'force': 1e3 * one.deviations['force']}
    assert other.deviations == pytest.approx(expected, rel=1e-4)
    # Exact equations have the least noise, in the unit of what they measure.
    Y, x = rng.normal(size=(40, 4)), rng.normal(size=4)
    found = noise_levels({'exact': Information.of(Y, Y @ x)})
    size = np.sqrt(np.mean((Y @ x) ** 2))
    assert found.deviations['exact'] == pytest.approx(MIN_RELATIVE_NOISE * size)


def test_kind_of_too_few_equations_is_left_out(rng, kinds):
    few = Information.of(np.eye(UNKNOWNS + 2)[UNKNOWNS:], np.ones(2))
    with pytest.raises(ModelError) as error:
        noise_levels({'wrist': few})
    assert 'wrist' in str(error.value)
    found, without = noise_levels(kinds | {'wrist': few}), noise_levels(kinds)
    assert found.deviations == pytest.approx(without.deviations)
    assert found.information.count == without.information.count
    assert 'wrist' in found.notes[0]
    # With a prior the fit does not use them up.
    prior = Information.of(1e3 * np.eye(UNKNOWNS + 2), np.zeros(UNKNOWNS + 2))
    few = Information.of(rng.normal(size=(3, UNKNOWNS + 2)), rng.normal(size=3))
    assert 'wrist' in noise_levels(kinds | {'wrist': few}, prior=prior).deviations


def test_prior_keeps_short_logs_from_fitting_their_noise(rng):
    """30 equations of 20 unknowns that a prior knows but for a little."""
    prior, truth = Information.of(np.eye(20) / 0.01, np.zeros(20)), {'force': 2.0, 'moment': 0.5}
    squares = dict.fromkeys(truth, 0.0)
    for _ in range(60):
        x, kinds = 0.01 * rng.normal(size=20), {}
        for kind, level in truth.items():
            Y = rng.normal(size=(15, 20))
            kinds[kind] = Information.of(Y, Y @ x + level * rng.normal(size=15))
        for kind, level in noise_levels(kinds, prior=prior).deviations.items():
            squares[kind] += level**2 / 60
    # 60 estimates from 15 equations each: known to 1 / sqrt(2 * 900), times five.
    assert np.sqrt(list(squares.values())) == pytest.approx(list(truth.values()), rel=0.12)


def test_wrong_prior_is_not_taken_for_noise(rng):
    prior = Information.of(15.0 * np.eye(10), np.zeros(10))
    Y = rng.normal(size=(200, 10))
    y = Y.sum(axis=1)
    exact = noise_levels({'all': Information.of(Y, y)}, prior=prior)
    assert exact.deviations['all'] <= 2.0 * MIN_RELATIVE_NOISE * np.sqrt(10.0)
    noisy = noise_levels({'all': Information.of(Y, y + 0.1 * rng.normal(size=200))}, prior=prior)
    assert noisy.deviations['all'] == pytest.approx(0.1, rel=FIVE_SIGMA / np.sqrt(2.0 * 190))


# ---- Priors, widened until they are strictly consistent

BODY = np.array([2.0, 0.2, 0.0, -0.1, 0.06, 0.001, 0.08, 0.0, 0.0, 0.06])
BALL = SMALLEST_RADIUS**2 / 5
PARALLEL_AXES = 1e-12  # to and fro
POINT, STICK = (
    composition(np.array(points, dtype=float)) @ np.full(len(points), 0.5)
    for points in ([(1, 2, 3)], [(0, 3, 1), (0, 3, 2)])
)
BROKEN = np.array([1.0, 0, 0, 0, 0.052, 0, 0.03, 0, 0, 0.02])  # ixx > Iyy + Izz


@pytest.mark.parametrize(
    ('parameters', 'moments'),
    [
        (POINT, [0.5 * BALL] * 3),
        # Two points a metre apart: 2 * 0.5 kg * (0.5 m)^2 along their line.
        (STICK, [BALL, BALL, 0.25]),
        (BROKEN, [BALL, 0.021, 0.031]),
    ],
    ids=['point', 'stick', 'triangle inequality'],
)
def test_second_moments_are_raised_to_a_small_ball(parameters, moments):
    found, changed = widened('ab', np.array([BODY, parameters]))
    assert changed == ('b',)
    assert (consistency_margin(found) > 0).all()
    np.testing.assert_array_equal(found[0], BODY)
    np.testing.assert_array_equal(found[1, :4], parameters[:4])
    J = pseudo_inertia(found[1])
    central = J[:3, :3] - np.outer(J[:3, 3], J[:3, 3]) / J[3, 3]
    np.testing.assert_allclose(np.linalg.eigvalsh(central), moments, atol=PARALLEL_AXES)


def test_frames_get_a_mass():
    """As URDFs describe frames: no mass, and at most a trace of inertia."""
    trace = np.array([0, 0, 0, 0, 5e-8, 0, 5e-8, 0, 0, 5e-8])
    found, changed = widened('ab', np.array([trace, np.zeros(10)]))
    assert changed == ('a', 'b') and (found[:, 0] > 0).all()
    np.testing.assert_allclose(found[0, 4:], trace[4:], atol=1e-6 * 5e-8)
    for impossible in (1e5 * trace, np.where(np.arange(10) == 4, -0.1, BODY), np.nan * BODY):
        with pytest.raises(ModelError) as error:
            widened(['arm', 'leg'], np.array([BODY, impossible]))
        assert 'leg' in str(error.value)


# ---- One thread


def test_threads_are_one_inside_and_as_before_afterwards():
    libraries = module._libraries()
    if not libraries:
        pytest.skip('no OpenBLAS is loaded')
    before = [get() for get, _ in libraries]
    for _, set_ in libraries:
        set_(2)
    outside = [get() for get, _ in libraries]
    with suppress(ValueError), one_thread():
        inside = [get() for get, _ in libraries]
        raise ValueError
    assert inside == [1] * len(libraries)
    assert [get() for get, _ in libraries] == outside
    for (_, set_), threads in zip(libraries, before, strict=True):
        set_(threads)


@pytest.mark.parametrize('given', [None, '2'])
def test_node_has_one_thread_by_default(tmp_path, given):
    text = 'import os\n\ndef main():\n    print(os.environ["OMP_NUM_THREADS"])\n    return 0\n'
    (tmp_path / 'some_node.py').write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    environment |= {THREADS: given} if given else {}
    environment['PYTHONPATH'] = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, '-m', 'inertial_estimation_nodes', 'some_node']
    assert subprocess.check_output(command, env=environment, text=True).strip() == (given or '1')
