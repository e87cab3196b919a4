# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of an iCub on a pole, simulated by its own equations.

Not covered: real logs, friction, joint efforts; sensors whose matrix is wrong.
"""

from dataclasses import replace

import numpy as np
import pytest
from free_air import smooth_motion, with_readings

from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.information import Information
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.memory import whitened
from inertial_estimation.identification.recursion.payload import PayloadFit
from inertial_estimation.identification.recursion.refit import (
    _problem,
    alternate,
    joint_minimum,
    joint_refit,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.state import fingerprint, from_text, to_text
from inertial_estimation.identification.recursion.submodel_identifier import SubmodelIdentifier
from inertial_estimation.identification.row_space import eliminated, wandered
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import icub_urdf

NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
KINDS = ('force_x', 'force_y', 'force_z', 'moment_x', 'moment_y', 'moment_z')
# Merging in parts and at once differ by round-off, blown up by the condition of the rows.
SAME = 1e-8


@pytest.fixture(scope='module')
def robot():
    pytest.importorskip('icub_models')
    return Robot.from_urdf(icub_urdf(), fixed_link='root_link')


@pytest.fixture(scope='module')
def prior(robot):
    """Bodies off by a tenth in each whitened coordinate."""
    rng = np.random.default_rng(3)
    bodies, _ = widened(robot.link_names, robot.parameters)
    moves = 0.1 * rng.normal(size=(len(bodies), 10))
    return bodies + np.einsum('lij,lj->li', whitening(bodies), moves)


def settings(robot, **others):
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    return RecursionSettings(equations=EquationChoice(offsets=names), **others)


def log(robot, seconds, parameters=None, pushes=None, seed=0, offset_rate=0.0):
    """Return samples with noise and offsets, and the offsets at the end."""
    rng = np.random.default_rng(seed + 1)
    samples = smooth_motion(robot, seconds, seed=seed)
    given = robot.parameters if parameters is None else parameters
    samples = with_readings(robot, samples, given, pushes)
    offsets = rng.normal(size=(len(robot.ft_sensors), 6)) * [10, 10, 10, 1, 1, 1]
    t = (samples.stamp_ns - samples.stamp_ns[0]) / 1e9
    drift = np.zeros((len(samples), 1, 6))
    drift[:, 0, 0] = offset_rate * t
    samples.ft_readings[:] += offsets + drift + NOISE * rng.normal(size=samples.ft_readings.shape)
    return samples, offsets + drift[-1]


def test_elimination_leaves_what_the_rest_says(rng):
    Y, y = rng.normal(size=(30, 7)), rng.normal(size=30)
    found = eliminated(Information.of(Y, y), np.array([1, 4]))
    # Least squares of all have the same rest, and the same covariance of it.
    x, *_ = np.linalg.lstsq(Y, y, rcond=None)
    kept = [0, 2, 3, 5, 6]
    np.testing.assert_allclose(np.linalg.solve(found.R, found.rho), x[kept], atol=1e-12)
    covariance = np.linalg.inv(Y.T @ Y)[np.ix_(kept, kept)]
    np.testing.assert_allclose(np.linalg.inv(found.R.T @ found.R), covariance, atol=1e-12)
    assert found.energy == pytest.approx(np.sum((Y @ x - y) ** 2))


def test_wandering_adds_variance_and_moves_nothing(rng):
    Y, y = rng.normal(size=(30, 5)), rng.normal(size=30)
    before = Information.of(Y, y)
    after = wandered(before, np.array([1, 3]), np.array([0.5, np.inf]))
    # What is not known any more has no variance: the others and the first must agree.
    kept = [0, 1, 2, 4]
    known = eliminated(after, np.array([3]))
    wanted = np.linalg.inv(Y.T @ Y)[np.ix_(kept, kept)]
    wanted[1, 1] += 0.25
    np.testing.assert_allclose(np.linalg.inv(known.R.T @ known.R), wanted, atol=1e-12)
    x, *_ = np.linalg.lstsq(Y, y, rcond=None)
    np.testing.assert_allclose(np.linalg.solve(known.R, known.rho), x[kept], atol=1e-12)
    np.testing.assert_allclose(after.R[:, 3], 0.0, atol=1e-12)


def test_recursion_without_forgetting_is_the_batch(robot, prior):
    samples, _ = log(robot, 8.0)
    stated = dict(zip(KINDS, NOISE.tolist(), strict=True))
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior), settings(robot, noise=stated, warm_up=1.0)
    )
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    whole = gather(identifier.builder, samples)
    rng = np.random.default_rng(0)
    for one, evidence in zip(identifier.memories, whole, strict=True):
        if one.information is None:
            assert not one.block.kinds
            continue
        batch = whitened(evidence, one.noise)
        assert one.information.count == batch.count
        # Triangles of rows that do not tell everything are not unique, what they say is.
        for x in rng.normal(size=(20, batch.n)):
            wanted = batch.squared_residual(x)
            assert one.information.squared_residual(x) == pytest.approx(wanted, rel=SAME)
    recursive = identifier.refit()
    fresh = RecursiveIdentifier(identifier.robot, identifier.settings)
    for one, evidence in zip(fresh.memories, whole, strict=True):
        if one.block.kinds:
            one.information = whitened(evidence, stated)
    at_once = fresh.refit()
    np.testing.assert_allclose(recursive.parameters, at_once.parameters, atol=SAME)
    for name, offset in at_once.offsets.items():
        np.testing.assert_allclose(recursive.offsets[name], offset, atol=SAME)


def test_joint_refit_is_the_minimum(robot, prior):
    samples, _ = log(robot, 5.0)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot))
    identifier.add(samples)
    known = [one for one in identifier.memories if one.information is not None]
    found = joint_refit(known, 1e-2)
    names = list(found.offsets)
    rng = np.random.default_rng(0)

    def objective(moved, offsets):
        total = 0.0
        for one, x in zip(known, moved, strict=True):
            full = x.copy()
            full[one.offsets] = [offsets[names.index(name)] for name in one.offset_names]
            bodies = full[: one.block.unknowns.n_inertial].reshape(-1, 10)
            total += 0.5 * one.information.squared_residual(full)
            count = one.information.count
            total += 1e-2 * count * entropic_divergence(bodies, one.prior).sum()
        return total

    at = [bodies.x for bodies in found.fits]
    offsets = np.array(list(found.offsets.values()))
    least = objective(at, offsets)
    # Central differences along random directions vanish against the curvature there.
    for _ in range(20):
        directions = []
        for one, x in zip(known, at, strict=True):
            d = np.zeros_like(x)
            n = one.block.unknowns.n_inertial
            maps = whitening(one.prior)
            d[:n] = np.einsum('lij,lj->li', maps, rng.normal(size=(len(maps), 10))).reshape(-1)
            directions.append(1e-3 * d)
        off = 1e-3 * rng.normal(size=len(offsets))
        ahead = objective([x + d for x, d in zip(at, directions, strict=True)], offsets + off)
        behind = objective([x - d for x, d in zip(at, directions, strict=True)], offsets - off)
        assert min(ahead, behind) > least
        assert abs(ahead - behind) < 1e-2 * (ahead + behind - 2 * least)


def test_bodies_and_offsets_are_found(robot, prior):
    samples, offsets = log(robot, 15.0)
    # Of a foot of 0.4 kg little shows beside noise, unless the description says less.
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot, weight=1e-2))
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    found = identifier.refit()
    assert set(found.refitted) == {s.name for s in robot.submodels} - {'root_link'}
    assert 'unknown wrench' in found.reasons['root_link']
    assert found.least_margin > 0
    for k, sensor in enumerate(robot.ft_sensors):
        # A twentieth of the spread that offsets have.
        np.testing.assert_allclose(found.offsets[sensor.name][:3], offsets[k, :3], atol=0.5)
        np.testing.assert_allclose(found.offsets[sensor.name][3:], offsets[k, 3:], atol=0.05)
    for submodel in robot.submodels[1:]:
        links = list(submodel.links)
        mass = found.parameters[links, 0].sum()
        assert mass == pytest.approx(robot.parameters[links, 0].sum(), rel=0.01)


def test_standing_still_for_an_hour_updates_nothing(robot, prior):
    samples, _ = log(robot, 10.0)
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior),
        settings(robot, half_life=60.0, force_walk=0.2, moment_walk=0.02, gate=4.0),
    )
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    moved = identifier.refit()
    still = smooth_motion(robot, 1.0)
    for array in (still.positions, still.velocities, still.accelerations):
        array[:] = 0.0
    still = with_readings(robot, still, robot.parameters)
    rng = np.random.default_rng(5)
    clean = still.ft_readings.copy()
    last = np.array([moved.offsets[sensor.name] for sensor in robot.ft_sensors])
    # An hour in steps of a minute: what is forgotten goes by the time that rows span.
    stamp = int(samples.stamp_ns[-1])
    for minute in range(60):
        still.stamp_ns[:] = stamp + 60_000_000_000 * minute + np.linspace(0, 6e10, 100).astype(int)
        still.ft_readings[:] = clean + last + NOISE * rng.normal(size=clean.shape)
        identifier.add(still)
    found = identifier.refit()
    assert found.refitted == ()
    assert all(s.name in found.reasons for s in robot.submodels[1:])
    # Masses go back to the description's, a tenth off; offsets take what these weigh less.
    weights = 9.81 * np.abs(prior - moved.parameters)[:, 0]
    for name in moved.offsets:
        change = np.linalg.norm((found.offsets[name] - moved.offsets[name])[:3])
        assert change < weights.sum()
    for one in identifier.memories:
        if one.information is not None:
            assert np.isfinite(one.information.R).all()


def test_drift_is_followed(robot, prior):
    samples, offsets = log(robot, 60.0, offset_rate=20.0 / 600.0)
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior),
        settings(robot, weight=0.1, half_life=300.0, force_walk=0.2, moment_walk=0.02, gate=4.0),
    )
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    found = identifier.refit()
    # Beside a body that is as described, which is off, an offset is what fits that.
    assert len(found.refitted) == 6
    for k, sensor in enumerate(robot.ft_sensors):
        np.testing.assert_allclose(found.offsets[sensor.name][:3], offsets[k, :3], atol=0.3)


def run_with_changes(robot, prior, samples):
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior),
        settings(robot, half_life=300.0, force_walk=0.2, moment_walk=0.02, gate=4.0),
    )
    changes, refits = [], []
    for part in equal_parts(samples, 1.0):
        changes += [(float(part.stamp_ns[-1] / 1e9), *change) for change in identifier.add(part)]
        refits.append(identifier.refit())
    return changes, refits, identifier


def test_a_push_of_twenty_seconds_changes_no_offset(robot, prior):
    n = 4500
    push = np.zeros((n, 6))
    push[1250:3250, :3] = [30.0, -20.0, 34.6]
    samples, offsets = log(robot, n / 100, pushes={'l_hand': push})
    changes, refits, _ = run_with_changes(robot, prior, samples)
    kinds = [change for _, name, change in changes if name == 'l_upper_arm']
    assert kinds == [Change.TOUCHED, Change.FREE]
    before = refits[10].offsets['l_arm_ft']
    for refit in refits[11:]:
        assert np.abs(refit.offsets['l_arm_ft'][:3] - before[:3]).max() < 1.0
    assert np.abs(refits[-1].offsets['l_arm_ft'] - offsets[4]).max() < 0.2


@pytest.mark.parametrize('size', [30.0, 50.0])
def test_constant_push_at_rest_is_no_offset(robot, prior, size):
    n = 4500
    push = np.zeros((n, 6))
    push[1250:3250, :3] = size * np.array([0.6, -0.4, 0.69])
    samples = smooth_motion(robot, n / 100)
    # It moves for ten seconds, and holds what posture it then has.
    samples.positions[1000:] = samples.positions[1000]
    samples.velocities[1000:] = samples.accelerations[1000:] = 0.0
    samples = with_readings(robot, samples, robot.parameters, {'l_hand': push})
    rng = np.random.default_rng(1)
    samples.ft_readings[:] += NOISE * rng.normal(size=samples.ft_readings.shape)
    changes, refits, _ = run_with_changes(robot, prior, samples)
    assert [change for _, name, change in changes if name == 'l_upper_arm'] == [
        Change.TOUCHED,
        Change.FREE,
    ]
    for refit in refits[11:]:
        assert np.abs(refit.offsets['l_arm_ft'][:3]).max() < 1.0


def test_a_payload_is_taken_for_one(robot, prior):
    hand = robot.link_names.index('l_hand')
    carrying = robot.parameters.copy()
    center = np.array([0.05, 0.02, -0.08])
    inertia = (center @ center) * np.eye(3) - np.outer(center, center) + 0.002 * np.eye(3)
    carrying[hand] += [1.0, *center, *inertia[np.tril_indices(3)]]
    samples, offsets = log(robot, 25.0)
    loaded, _ = log(robot, 25.0, carrying)
    samples.ft_readings[1250:] = loaded.ft_readings[1250:]
    changes, refits, identifier = run_with_changes(robot, prior, samples)
    assert [change for _, _, change in changes] == [Change.TOUCHED, Change.BODY]
    links = list(next(s for s in robot.submodels if s.name == 'l_upper_arm').links)
    gained = refits[-1].parameters[links, 0].sum() - refits[9].parameters[links, 0].sum()
    assert gained == pytest.approx(1.0, abs=0.05)
    payload = identifier.payloads()['l_upper_arm']
    assert payload.link == 'l_hand'
    assert payload.mass == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(payload.center, center, atol=0.005)
    # Within four deviations, which are no more than the tolerances above.
    assert np.abs(payload.center - center).max() < 4 * payload.center_deviation.max() < 0.02
    assert np.abs(refits[-1].offsets['l_arm_ft'] - offsets[4]).max() < 0.2


@pytest.mark.parametrize('weight', [0.0, -1.0, np.nan, 1e-30, 1e30])
def test_a_weight_that_numbers_cannot_tell_is_refused(robot, weight):
    with pytest.raises(ConfigError):
        settings(robot, weight=weight)


def test_links_that_carry_payloads_are_checked(robot, prior):
    hand = robot.link_names.index('l_hand')
    arm = next(s for s in robot.submodels if hand in s.links)
    others = [robot.link_names[k] for k in arm.links if k != hand]
    for names, error in ((('l_hnad',), NameNotFound), (('l_hand', others[0]), ConfigError)):
        with pytest.raises(error):
            RecursiveIdentifier(robot, settings(robot, payload_links=names))
    # Not the last one of its submodel, which would be taken without a name.
    chosen = RecursiveIdentifier(robot, settings(robot, payload_links=(others[0], 'r_hand')))
    known = next(one for one in chosen.memories if one.block.submodel is arm)
    carrier = SubmodelIdentifier(known, chosen.settings).carrier
    assert known.block.unknowns.links[carrier] == others[0]


def test_an_offset_that_jumps_is_taken_for_one(robot, prior):
    samples, offsets = log(robot, 25.0)
    samples.ft_readings[1250:, 4, 1] += 40.0
    changes, refits, _ = run_with_changes(robot, prior, samples)
    assert [change for _, _, change in changes] == [Change.TOUCHED, Change.OFFSET]
    assert refits[-1].offsets['l_arm_ft'][1] == pytest.approx(offsets[4, 1] + 40.0, abs=0.3)


def test_held_neighbour_releases_an_offset_that_jumps(robot, prior):
    samples, offsets = log(robot, 30.0)
    foot = next(k for k, s in enumerate(robot.ft_sensors) if s.name == 'l_foot_ft')
    samples.ft_readings[1550:, foot, 1] += 40.0
    offsets[foot, 1] += 40.0
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot, gate=4.0))
    names, changes = [submodel.name for submodel in robot.submodels], []
    for k, part in enumerate(equal_parts(samples, 1.0)):
        # It stands on the foot before the offset jumps: only the leg tells.
        free = np.ones((len(part), len(names)), dtype=bool)
        free[:, names.index('l_foot')] = k < 15
        changes += identifier.add(part, free=free)
        found = identifier.refit()
    assert changes == [('l_hip_3', Change.TOUCHED), ('l_hip_3', Change.OFFSET)]
    assert found.offsets['l_foot_ft'][1] == pytest.approx(offsets[foot, 1], abs=0.5)
    # That of the other sensor, which the leg let go of as well.
    leg = next(k for k, s in enumerate(robot.ft_sensors) if s.name == 'l_leg_ft')
    np.testing.assert_allclose(found.offsets['l_leg_ft'][:3], offsets[leg, :3], atol=0.5)


def test_what_is_known_survives_as_text(robot, prior):
    samples, _ = log(robot, 6.0)
    given = robot.with_parameters(prior)
    first = RecursiveIdentifier(given, settings(robot))
    for part in equal_parts(samples, 1.0):
        first.add(part)
    # Rows that fade tell too little again, and what disagrees would pass for the first motion.
    next(one for one in first.memories if one.information is not None).excited = True
    text = to_text(first)
    second = RecursiveIdentifier(given, settings(robot))
    assert len(from_text(second, text)) == 6
    assert [one.excited for one in second.memories] == [one.excited for one in first.memories]
    np.testing.assert_array_equal(first.refit().parameters, second.refit().parameters)
    for damaged in (text[:-20], text.replace('"energy": ', '"energy": 1', 1), '{}'):
        with pytest.raises(ModelError):
            from_text(second, damaged)
    with pytest.raises(ModelError):
        from_text(RecursiveIdentifier(robot, settings(robot)), text)
    # Other rows that go by the same names.
    joint = JointModel(terms=(Term.COULOMB,))
    choice = EquationChoice(efforts=('l_knee',), joint=joint)
    smooth = replace(choice, joint=replace(joint, sign_width=0.1))
    turned = Robot.from_urdf(icub_urdf(), fixed_link='root_link', gravity=(0.0, 9.81, 0.0))
    prints = [
        fingerprint(RecursiveIdentifier(described, RecursionSettings(rows)))
        for described, rows in ((robot, choice), (robot, smooth), (turned, choice))
    ]
    assert len(set(prints)) == 3
    with pytest.raises(ModelError):
        from_text(second, text.replace('"version": 2', '"version": 9', 1))


@pytest.mark.parametrize('weight', [1.0, 1e-2, 1e-4])
def test_steps_of_all_at_once_end_where_submodels_in_turn_do(robot, prior, weight):
    samples, _ = log(robot, 5.0)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot))
    identifier.add(samples)
    known = [one for one in identifier.memories if one.information is not None]
    at_once = joint_refit(known, weight)
    names = tuple(at_once.offsets)
    near = {one.block.submodel.name: one.prior for one in known}
    problems = [_problem(one) for one in known]
    # Or the two would be the same calls.
    assert joint_minimum(known, problems, names, weight, near) is not None
    in_turn = alternate(known, problems, names, weight, near)
    for one, other in zip(at_once.fits, in_turn.fits, strict=True):
        # In turn they end where bodies move by 0.02 of their size, whose square is left.
        moved = one.memory.largest_change(one.parameters - other.parameters)
        assert moved < 1e-3
    for name, offset in at_once.offsets.items():
        assert offset == pytest.approx(in_turn.offsets[name], abs=1e-3)


def test_offsets_that_wander_are_no_load(rng):
    # One body, two offsets; rows are noise-free, but count as if their noise were one.
    def rows(x):
        Y = 10.0 * rng.normal(size=(100, 12))
        return Information.of(Y, Y @ x)

    offsets, body = np.array([10, 11]), np.arange(10)
    without = rng.normal(size=12)
    load = np.array([1.0, 0.1, -0.2, 0.3, *rng.normal(size=6)])
    found = []
    for wandering in (30.0, 0.0):
        fit = PayloadFit('hand', body, rows(without))
        fit.drift(offsets, np.full(2, wandering))
        later = without + np.array([*load, 20.0, -30.0])
        for _ in range(3):
            fit.add(rows(later), 1.0)
        found.append(fit.payload())
    # That they do not wander far weighs a thirtieth, against 300 rows of ten.
    assert found[0].mass == pytest.approx(1.0, abs=1e-3)
    np.testing.assert_allclose(found[0].center, load[1:4], atol=1e-3)
    # Offsets that must not wander are taken for a load, if for anything.
    assert found[1] is None or abs(found[1].mass - 1.0) > 0.1


def test_what_was_not_known_before_a_change_makes_it_less_sure(rng):
    # Rows since tell the sum of body and load only.
    body = np.arange(10)
    Y = 10.0 * rng.normal(size=(100, 10))
    weak = Y.copy()
    weak[:, 0] *= 0.1
    x, load = rng.normal(size=10), np.array([1.0, 0.1, -0.2, 0.3, *np.zeros(6)])
    deviations = []
    for known in (weak, Y):
        fit = PayloadFit('hand', body, Information.of(known, known @ x))
        fit.add(Information.of(Y, Y @ (x + load) + rng.normal(size=100)), 1.0)
        deviations.append(fit.payload().mass_deviation)
    assert deviations[0] > 3.0 * deviations[1]
