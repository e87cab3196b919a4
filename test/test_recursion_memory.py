# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What one submodel remembers: how offsets wander, rows fade, time is counted and noise followed.

Held against covariances and least squares written out. What becomes of it in the refit of a whole
robot is in test_recursion.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.errors_in_variables import StateErrors, StateNoise
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.memory import (
    NOISE_TIME_CONSTANT,
    SubmodelMemory,
    excitation,
)
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.row_space import eliminated
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import FT_OFFSET, Term
from inertial_estimation.model.robot import Robot

NOISE = 0.02
EFFORT_NOISE = 0.1
FRICTION = 0.3
# Inverses of random triangles of a few dozen unknowns.
DENSE = 1e-8
FORCES = ('force_x', 'force_y', 'force_z')
MOMENTS = ('moment_x', 'moment_y', 'moment_z')


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def settings(robot, **others):
    return RecursionSettings(
        EquationChoice(offsets=tuple(s.name for s in robot.ft_sensors)), **others
    )


def log(robot, seconds, rate=100.0, seed=0):
    samples = smooth_motion(robot, seconds, rate=rate, seed=seed, swing=0.8)
    samples = with_readings(robot, samples, robot.parameters)
    rng = np.random.default_rng(seed)
    samples.ft_readings[:] += 3.0 + NOISE * rng.normal(size=samples.ft_readings.shape)
    efforts = FRICTION * samples.velocities
    return replace(samples, efforts=efforts + EFFORT_NOISE * rng.normal(size=efforts.shape))


def of_foot(robot, **others):
    """Return what is known of a submodel with one sensor: whatever rows it will be given."""
    chosen = settings(robot, **others)
    (block,) = (
        b for b in EquationBuilder(robot, chosen.equations).blocks if b.submodel.name == 'foot'
    )
    return SubmodelMemory(block, robot.parameters[list(block.submodel.links)], chosen)


def covariance(information):
    return np.linalg.inv(information.R.T @ information.R)


def by_name(identifier, name):
    return next(one for one in identifier.memories if one.block.submodel.name == name)


def test_offsets_walk_by_the_root_of_time(robot, rng):
    known = of_foot(robot, force_walk=0.3, moment_walk=0.05)
    n = len(known.block.unknowns)
    known.information = Information.of(rng.normal(size=(3 * n, n)), rng.normal(size=3 * n))
    before = known.information
    known.drift(9.0)
    wanted = covariance(before)
    wanted[known.offsets, known.offsets] += [0.81] * 3 + [0.0225] * 3
    np.testing.assert_allclose(covariance(known.information), wanted, atol=DENSE)
    # So much in two steps as in one, and nothing in no time.
    twice = replace(before)
    known.information = twice
    for seconds in (4.0, 0.0, 5.0):
        known.drift(seconds)
    np.testing.assert_allclose(covariance(known.information), wanted, atol=DENSE)


def test_rows_count_half_after_half_of_their_life(robot, rng):
    known = of_foot(robot, half_life=8.0)
    n = len(known.block.unknowns)
    rows = Information.of(rng.normal(size=(3 * n, n)), rng.normal(size=3 * n))
    known.information = rows
    nothing = Information.empty(n)
    for _ in range(4):
        known.absorb(nothing, 2.0)
    faded = known.information
    np.testing.assert_allclose(faded.R.T @ faded.R, 0.5 * rows.R.T @ rows.R, rtol=1e-10)
    assert faded.count == pytest.approx(0.5 * rows.count)
    assert faded.energy == pytest.approx(0.5 * rows.energy)
    assert known.seconds == 8.0


def test_identifier_caps_state_noise_by_samples(arm):
    joints = np.tile(np.diag([1e-3, 1e-2, 0.1]) ** 2, (len(arm.joint_names), 1, 1))
    samples, sizes = log(arm, 3.0, rate=500.0), []
    for is_white in (True, False):
        identifier = RecursiveIdentifier(arm, settings(arm, warm_up=1.0))
        identifier.noise = StateNoise.of(joints, np.zeros((0, 3, 3)), is_white=is_white)
        identifier.add(samples)
        sizes.append(max(np.trace(k.errors.gram) for k in identifier.memories if k.errors))
    # There is none.
    assert 0.0 < sizes[0] < 1e-4 * sizes[1]


def test_state_errors_are_whitened(arm, rng):
    chosen = settings(arm, noise=dict.fromkeys((*FORCES, *MOMENTS), 0.5), warm_up=1.0)
    efforts = replace(chosen.equations, efforts=arm.joint_names, joint=JointModel())
    builder = EquationBuilder(arm, efforts)
    samples = log(arm, 4.0)
    block, evidence = max(
        zip(builder.blocks, gather(builder, samples)),
        key=lambda both: len(both[0].unknowns.extras),
    )
    n, prior = len(block.unknowns), arm.parameters[list(block.submodel.links)]
    rows = {kind: rng.normal(size=(9, n + 1)) for kind in block.kinds}
    evidence = replace(evidence, errors=rows)
    known = SubmodelMemory(block, prior, replace(chosen, equations=efforts))
    known.warm_up(evidence, 4.0)
    scaled = np.vstack([own / known.noise[kind] for kind, own in rows.items()])
    # Of friction there are none.
    is_known = [extra.term in FT_OFFSET for extra in block.unknowns.extras]
    kept = np.concatenate([np.ones(block.unknowns.n_inertial), is_known])
    assert not kept.all()
    wanted = kept[:, None] * (scaled.T @ scaled)[:n, :n] * kept
    np.testing.assert_allclose(known.errors.gram, wanted, atol=DENSE * wanted.max())
    np.testing.assert_allclose(
        known.errors.cross, kept * (scaled.T @ scaled)[:n, n], atol=DENSE * wanted.max()
    )
    # What is told follows either of the two.
    told = known.corrected
    assert known.corrected is told
    assert told.squared_residual(np.zeros(n)) != known.information.squared_residual(np.zeros(n))
    known.errors = StateErrors.of([], n)
    assert known.corrected is known.information


def test_prior_fit_keeps_prior_parameters(robot):
    identifier = RecursiveIdentifier(robot, settings(robot))
    identifier.add(log(robot, 4.0))
    for one in identifier.memories:
        if one.information is None:
            continue
        x, n = one.prior_fit(), one.block.unknowns.n_inertial
        np.testing.assert_array_equal(x[:n], one.prior.reshape(-1))
        left = one.information.rho - one.information.R @ x
        # Normal equations of the rest.
        slope = one.information.R[:, n:].T @ left
        assert np.abs(slope).max() < DENSE * np.linalg.norm(one.information.R[:, n:]) ** 2
        if one.block.submodel.name == 'foot':
            # Its bodies are the true ones here, so 400 samples tell the offsets of one sensor.
            np.testing.assert_allclose(x[n:], 3.0, atol=5 * NOISE)


@pytest.mark.parametrize('weight', [1e-6, 1e-4, 1e-2, 1.0])
def test_excitation_counts_combinations_beyond_the_prior(robot, weight):
    identifier = RecursiveIdentifier(robot, settings(robot))
    identifier.add(log(robot, 4.0))
    for one in identifier.memories:
        if one.information is None:
            continue
        n, R = one.block.unknowns.n_inertial, one.information.R
        # The Schur complement of offsets, in coordinates in which the prior's distance is round.
        inner = R[:, :n] - R[:, n:] @ np.linalg.lstsq(R[:, n:], R[:, :n], rcond=None)[0]
        maps = whitening(one.prior)
        z = np.hstack([inner[:, 10 * k : 10 * k + 10] @ own for k, own in enumerate(maps)])
        wanted = np.sum(np.linalg.eigvalsh(z.T @ z) > weight * one.information.count)
        found = excitation(one, weight)
        assert found.determined == wanted
        assert (found.seconds, found.equations) == (one.seconds, one.information.count)


def test_time_with_rows_is_that_of_the_samples_that_give_them(robot):
    samples = log(robot, 10.0)
    identifier = RecursiveIdentifier(robot, settings(robot))
    at = [submodel.name for submodel in robot.submodels].index('foot')
    for part in equal_parts(samples, 1.0):
        free = np.ones((len(part), len(robot.submodels)), dtype=bool)
        free[::2, at] = False
        identifier.add(part, free=free)
    # Every sample stands for the time to the next one; of the very first stretch none is known.
    assert by_name(identifier, 'thigh').seconds == pytest.approx(9.99, abs=1e-6)
    assert by_name(identifier, 'foot').seconds == pytest.approx(0.5 * 9.99, abs=1e-6)


@pytest.mark.parametrize('rate', [1.0, 1.7, 3.0])
def test_samples_that_come_alone_stand_for_time_too(robot, rate):
    identifier = RecursiveIdentifier(robot, settings(robot, warm_up=3.0))
    parts = equal_parts(log(robot, 60.0, rate=rate), 1.0)
    for part in parts:
        identifier.add(part)
        identifier.refit()
    thigh = by_name(identifier, 'thigh')
    assert thigh.seconds == pytest.approx(60.0, rel=0.05)
    assert 'thigh' in identifier.refit().refitted
    # All six kinds, though so few rows tell the noise of some of them late.
    assert set(thigh.noise) == {*FORCES, *MOMENTS}
    # After a pause of an hour it is no hour with rows.
    late = parts[-1].take(slice(0, 1))
    late.stamp_ns[:] += 3_600_000_000_000
    before = thigh.seconds
    identifier.add(late)
    assert 0.0 < thigh.seconds - before <= 1.0


def test_offsets_wander_while_no_samples_come(robot):
    parts = equal_parts(log(robot, 6.0), 1.0)
    identifier = RecursiveIdentifier(robot, settings(robot, force_walk=0.3))
    for part in parts[:5]:
        identifier.add(part)
    foot = by_name(identifier, 'foot')
    before = foot.information
    late = replace(parts[5], stamp_ns=parts[5].stamp_ns + 100_000_000_000)
    late.ft_readings[:] = np.nan
    identifier.add(late)
    sizes = []
    for information in (before, foot.information):
        others = np.setdiff1d(np.arange(information.n), foot.offsets[:3])
        sizes.append(np.diag(covariance(eliminated(information, others))))
    # From the last sample before to the last one of the stretch.
    np.testing.assert_allclose(sizes[1] - sizes[0], 0.09 * 101.0, rtol=1e-3)


def test_noise_follows_what_is_left_as_a_mean_over_its_memory(robot):
    known = of_foot(robot, noise={'moment_x': 0.7})
    known.noise = dict.fromkeys(FORCES, 1.0) | dict.fromkeys(MOMENTS, 0.2) | {'moment_x': 0.7}
    left = dict.fromkeys(FORCES, 3.0) | {'moment_x': 9.0, 'moment_y': 0.4, 'moment_z': np.nan}
    for _ in range(10):
        known.adapt_noise(left, NOISE_TIME_CONSTANT / 10)
    share = 1.0 - np.exp(-1.0)
    for kind in FORCES:
        assert known.noise[kind] == pytest.approx(np.sqrt(1.0 + share * 8.0))
    # What is stated stays, and has no part in the noise of the others.
    assert known.noise['moment_x'] == 0.7
    assert known.noise['moment_y'] == known.noise['moment_z']
    assert 0.2 < known.noise['moment_y'] < 0.4


def with_efforts(arm, **others):
    choice = EquationChoice(efforts=arm.joint_names, joint=JointModel((Term.VISCOUS,)))
    return RecursiveIdentifier(arm, RecursionSettings(choice, **others))


def test_a_joint_that_reports_efforts_late_is_learned_from(arm):
    samples = log(arm, 24.0)
    late = arm.joint_names.index('elbow')
    samples.efforts[:800, late] = np.nan
    identifier = with_efforts(arm, half_life=600.0, gate=4.0, warm_up=3.0)
    for k, part in enumerate(equal_parts(samples, 1.0)):
        identifier.add(part)
        identifier.refit()
        base = by_name(identifier, 'base')
        assert ('effort elbow' in base.noise) == (k >= 8)
    assert base.noise['effort elbow'] < 3 * base.noise['effort shoulder']
    assert np.isfinite(base.scales).all()


def test_a_refit_with_friction_is_the_minimum_with_its_prior(arm):
    identifier, samples = with_efforts(arm), log(arm, 4.0)
    identifier.add(samples)
    known = [one for one in identifier.memories if one.information is not None]
    weight, rng = 0.1, np.random.default_rng(0)
    base = by_name(identifier, 'base')
    # As large as all of the effort is, for 1 rad/s.
    rows = next(
        kinds for kinds in identifier.builder.equations(samples) if 'effort elbow' in kinds
    )
    sizes = [np.sqrt(np.mean(rows[f'effort {name}'].y ** 2)) for name in arm.joint_names]
    np.testing.assert_allclose(base.scales, sizes, rtol=DENSE)
    # A prior that pulls: friction of a large scale shows nothing.
    base.scales = 0.1 * base.scales
    for bodies in joint_refit(known, weight).fits:
        one, n = bodies.memory, bodies.memory.block.unknowns.n_inertial

        def objective(x, one=one, n=n):
            drawn = weight * one.information.count
            pull = entropic_divergence(x[:n].reshape(-1, 10), one.prior).sum()
            pull += 0.5 * np.sum((x[n:] / one.scales) ** 2)
            return 0.5 * one.information.squared_residual(x) + drawn * pull

        maps, least = whitening(one.prior), objective(bodies.x)
        for _ in range(20):
            z = 1e-4 * rng.normal(size=(len(maps), 10))
            moves = np.einsum('lij,lj->li', maps, z).reshape(-1)
            rest = 1e-4 * rng.normal(size=len(one.scales)) * np.minimum(one.scales, 1.0)
            step = np.concatenate([moves, rest])
            ahead, behind = objective(bodies.x + step), objective(bodies.x - step)
            assert min(ahead, behind) > least
            assert abs(ahead - behind) < 1e-2 * (ahead + behind - 2 * least)


def test_a_refit_does_not_depend_on_where_it_starts(robot):
    rng = np.random.default_rng(5)
    bodies, _ = widened(robot.link_names, robot.parameters)
    off = np.einsum('lij,lj->li', whitening(bodies), 0.25 * rng.normal(size=(len(bodies), 10)))
    described, _ = widened(robot.link_names, bodies + off)
    identifier = RecursiveIdentifier(robot.with_parameters(described), settings(robot))
    identifier.add(log(robot, 4.0))
    known = [one for one in identifier.memories if one.information is not None]
    start = {}
    for one in known:
        z = 0.2 * rng.uniform(-1, 1, size=one.prior.shape)
        start[one.block.submodel.name] = one.prior + np.einsum(
            'lij,lj->li', whitening(one.prior), z
        )
    near, far = joint_refit(known, 1.0), joint_refit(known, 1.0, start)
    # Once more from the answer, where models of second order are exact.
    again = {one.memory.block.submodel.name: one.parameters for one in near.fits}
    exact = joint_refit(known, 1.0, again)
    for name, offset in exact.offsets.items():
        # Made anew until bodies move by less than NEAR, models are wrong by the square of it; if
        # they were not, offsets would be off by 5e-3.
        assert near.offsets[name] == pytest.approx(offset, abs=1e-4)
        assert far.offsets[name] == pytest.approx(offset, abs=1e-4)


@pytest.mark.parametrize('gate', [2.0, 4.0])
@pytest.mark.parametrize('over', [0.85, 1.15])
def test_rows_are_suspect_from_the_gate_times_their_noise_on(robot, gate, over):
    stated = dict.fromkeys((*FORCES, *MOMENTS), NOISE)
    identifier = RecursiveIdentifier(robot, settings(robot, gate=gate, noise=stated))
    samples = log(robot, 5.0)
    loud = samples.ft_readings[400:]
    # White noise is none of an offset that jumps, only more than usual.
    sensor = [s.name for s in robot.ft_sensors].index('arm_sensor')
    more = np.random.default_rng(1).normal(size=(len(loud), 6))
    loud[:, sensor] += NOISE * np.sqrt((over * gate) ** 2 - 1.0) * more
    changes = []
    for part in equal_parts(samples, 1.0):
        changes += identifier.add(part)
    assert changes == ([('upper_arm', Change.TOUCHED)] if over > 1.0 else [])
