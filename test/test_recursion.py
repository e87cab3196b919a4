# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of an iCub on a pole, simulated by its own equations.

Answers against batches, minima, least squares and one dense inverse; changes.
Not covered: real logs and joint efforts (test_recursion_robots.py), the information state of one
submodel (test_recursion_memory.py), wrong matrices (test_calibration_followed.py); what
covariances do to wrenches and torques (test_uncertainty.py).
"""

from dataclasses import replace

import numpy as np
import pytest

from bench.live_robots import equal_parts, smooth_motion, with_readings, wrong_robot
from inertial_estimation import EquationChoice, FtCalibration, Information, RecursionSettings
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.recursion.covariance import parameter_roots
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.payload import PayloadFit
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.simulation.description import icub_urdf

NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
# Merging in parts and at once differ by round-off times the condition of the equations.
SAME = 1e-8
# Covariances over the product of their deviations: round-off times the condition of the inverse.
DENSE = 1e-8
# Of the largest singular value, and of the longest column: round-off.
DEPENDENT, EMPTY = 1e-10, 1e-12
WEIGHT = 1e-2


@pytest.fixture(scope='module')
def robot():
    pytest.importorskip('icub_models')
    return Robot.from_urdf(icub_urdf(), fixed_link='root_link')


@pytest.fixture(scope='module')
def prior(robot):
    """Return parameters off by a tenth in each whitened coordinate."""
    return wrong_robot(robot, np.random.default_rng(3), 0.1).parameters


def settings(robot, **others):
    names = tuple(sensor.name for sensor in robot.ft_sensors)
    return RecursionSettings(equations=EquationChoice(offsets=names), **others)


def log(robot, seconds, parameters=None, pushes=None, seed=0, offset_rate=0.0, moving=None):
    """Return samples with noise and offsets, and the offsets at the end; rest after `moving`."""
    rng = np.random.default_rng(seed + 1)
    samples = smooth_motion(robot, seconds, seed=seed)
    if moving is not None:
        samples.positions[moving:] = samples.positions[moving]
        samples.velocities[moving:] = samples.accelerations[moving:] = 0.0
    given = robot.parameters if parameters is None else parameters
    samples = with_readings(robot, samples, given, pushes)
    offsets = rng.normal(size=(len(robot.ft_sensors), 6)) * [10, 10, 10, 1, 1, 1]
    drift = np.zeros((len(samples), 1, 6))
    drift[:, 0, 0] = offset_rate * 1e-9 * (samples.stamp_ns - samples.stamp_ns[0])
    samples.ft_readings[:] += offsets + drift + NOISE * rng.normal(size=samples.ft_readings.shape)
    return samples, offsets + drift[-1]


def identify(robot, prior, samples, **chosen):
    """Return an identifier that was given a log in windows of a second."""
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot, **chosen))
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    return identifier


def known_of(identifier):
    return [one for one in identifier.memories if one.information is not None]


def test_recursion_without_forgetting_is_the_batch(robot, prior):
    samples, _ = log(robot, 8.0)
    identifier = identify(robot, prior, samples, warm_up=1.0)
    whole = gather(identifier.builder, samples)
    fresh = RecursiveIdentifier(identifier.robot, identifier.settings)
    for one, new, evidence in zip(identifier.memories, fresh.memories, whole, strict=True):
        if one.block.kinds:
            new.noise = one.noise
            new.information, new.errors = new.whitened(evidence)
            assert one.information.count == new.information.count
    recursive, at_once = identifier.refit(), fresh.refit()
    assert set(recursive.refitted) == {s.name for s in robot.submodels} - {'root_link'}
    assert (
        recursive.reasons['root_link'] and (consistency_margin(recursive.parameters) > 0.0).all()
    )
    np.testing.assert_allclose(recursive.parameters, at_once.parameters, atol=SAME)
    for name, offset in at_once.offsets.items():
        np.testing.assert_allclose(recursive.offsets[name], offset, atol=SAME)


def assert_minimum(found, weight, rng, size=1e-3):
    """Check by central differences along random directions that a refit is a minimum."""

    def objective(xs, offsets):
        total = 0.0
        for fit, x in zip(found.fits, xs, strict=True):
            one, full = fit.memory, x.copy()
            full[one.offsets] = offsets[one.own]
            links, extras = one.block.unknowns.split(full)
            # Infinite scales: no prior.
            pull = entropic_divergence(links, one.prior).sum()
            pull += 0.5 * np.sum((extras / one.scales) ** 2)
            total += 0.5 * one.information.squared_residual(full)
            total += weight * one.information.count * pull
        return total

    at, offsets = [fit.x for fit in found.fits], found.offsets
    least = objective(at, offsets)
    for _ in range(20):
        steps, off = [], size * rng.normal(size=len(offsets))
        for fit in found.fits:
            maps, scales = whitening(fit.memory.prior), np.minimum(fit.memory.scales, 1.0)
            links = np.einsum('lij,lj->li', maps, rng.normal(size=(len(maps), 10)))
            steps.append(size * np.append(links, scales * rng.normal(size=len(scales))))
        ahead = objective([x + d for x, d in zip(at, steps)], offsets + off)
        behind = objective([x - d for x, d in zip(at, steps)], offsets - off)
        assert min(ahead, behind) > least
        assert abs(ahead - behind) < 1e-2 * (ahead + behind - 2 * least)


@pytest.mark.parametrize('weight', [1.0, 1e-4, 1e-6])
def test_refit_from_far_is_the_minimum_of_all_submodels(robot, prior, weight):
    identifier = identify(robot, prior, log(robot, 3.0)[0], weight=weight)
    found = joint_refit(known_of(identifier), weight)
    assert found.converged
    assert_minimum(found, weight, np.random.default_rng(0), size=1e-4)


def test_refit_that_does_not_converge_is_withheld(robot, prior, monkeypatch):
    identifier = identify(robot, prior, log(robot, 5.0)[0])
    monkeypatch.setattr('inertial_estimation.identification.recursion.refit.MAX_STEPS', 1)
    found = identifier.refit()
    assert found.refitted == () and set(found.reasons) == {one.name for one in robot.submodels}
    np.testing.assert_array_equal(found.parameters, prior)
    assert identifier.found == {}


@pytest.mark.parametrize('moving', [None, 1000], ids=['moving', 'at rest'])
def test_a_push_changes_no_offset(robot, prior, moving):
    push = np.zeros((4500, 6))
    push[1250:3250, :3] = [30.0, -20.0, 34.6]
    samples, offsets = log(robot, 45.0, pushes={'l_hand': push}, moving=moving)
    chosen = settings(robot, half_life=300.0, force_walk=0.2, gate=4.0)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    changes, refits = [], []
    for part in equal_parts(samples, 1.0):
        changes += identifier.add(part)
        refits.append(identifier.refit())
    kinds = [change for name, change in changes if name == 'l_upper_arm']
    assert kinds == [Change.TOUCHED, Change.FREE]
    before = refits[10].offsets['l_arm_ft']
    for refit in refits[11:]:
        assert np.abs(refit.offsets['l_arm_ft'][:3] - before[:3]).max() < 1.0
    if moving is None:
        assert np.abs(refits[-1].offsets['l_arm_ft'] - offsets[4]).max() < 0.2


def test_held_neighbour_releases_an_offset_that_jumps(robot, prior):
    samples, offsets = log(robot, 30.0)
    sensors = [sensor.name for sensor in robot.ft_sensors]
    foot, leg = sensors.index('l_foot_ft'), sensors.index('l_leg_ft')
    samples.ft_readings[1550:, foot, 1] += 40.0
    offsets[foot, 1] += 40.0
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot, gate=4.0))
    names, changes = [submodel.name for submodel in robot.submodels], []
    for k, part in enumerate(equal_parts(samples, 1.0)):
        # It stands on the foot before the offset jumps: only the leg has equations.
        free = np.ones((len(part), len(names)), dtype=bool)
        free[:, names.index('l_foot')] = k < 15
        changes += identifier.add(part, free=free)
        found = identifier.refit()
    assert changes == [('l_hip_3', Change.TOUCHED), ('l_hip_3', Change.OFFSET)]
    assert found.offsets['l_foot_ft'][1] == pytest.approx(offsets[foot, 1], abs=0.5)
    # Its tracking begins again, at once.
    assert found.subtracted['l_foot_ft'][1] == pytest.approx(offsets[foot, 1], abs=1.0)
    # The leg released that of its other sensor as well.
    np.testing.assert_allclose(found.offsets['l_leg_ft'][:3], offsets[leg, :3], atol=0.5)


def test_payload_centre_deviation_has_the_correlation_with_mass(rng):
    load = np.array([2.0, 0.2, -0.4, 0.6, *0.01 * rng.normal(size=6)])
    Y = rng.normal(size=(60, 10))
    Y[:, 1:4] += 2.0 * Y[:, :1]
    found = []
    for _ in range(400):
        fit = PayloadFit('hand', np.arange(10), Information.of(100.0 * np.eye(10), np.zeros(10)))
        fit.add(Information.of(Y, Y @ load + 0.05 * rng.normal(size=60)), 1.0)
        found.append(fit.payload())
    # The deviation of 400 draws is known to 3.5 %; without the correlation it is 20 % off.
    spread = np.std([one.center for one in found], axis=0)
    stated = np.mean([one.center_deviation for one in found], axis=0)
    np.testing.assert_allclose(stated, spread, rtol=0.12)


def reduced(fit):
    """Return equations and prior of a submodel at its answer, and variances of their errors."""
    one, information = fit.memory, fit.memory.information
    pull, n, m = WEIGHT * information.count, information.n, one.block.unknowns.n_inertial
    prior = entropic_model(one.block.unknowns, one.prior, fit.parameters, one.scales, pull)
    rows = np.vstack([information.R, prior.R])
    hat = rows @ pseudo_inverse(rows)
    freedom = information.count - np.trace(hat[:n, :n])
    noise = information.squared_residual(fit.x) / freedom
    # Twice the divergence, less what noise and friction explain, over that of an exact answer.
    moved, of_prior = 2.0 * entropic_divergence(fit.parameters, one.prior).sum(), hat[n : n + m]
    determined = np.eye(m) - of_prior[:, n : n + m]
    other = noise / pull * np.sum(of_prior[:, :n] ** 2) + np.sum(of_prior[:, n + m :] ** 2)
    error = (max(moved - other, 0.0) + 1.0) / (np.trace(determined @ determined) + 1.0)
    return rows, np.repeat([noise, pull * error, pull], [n, m, n - m])


def pseudo_inverse(rows):
    lengths = np.linalg.norm(rows, axis=0)
    scale = np.where(lengths > EMPTY * lengths.max(), lengths, lengths.max())
    return np.linalg.pinv(rows / scale, rcond=DEPENDENT) / scale[:, None]


def assert_roots_of_dense_inverse(known):
    found = joint_refit(known, WEIGHT)
    roots = parameter_roots(found, WEIGHT)
    size = len(found.offsets) + sum(one.information.n for one in known)
    first, places, blocks, variances = len(found.offsets), [], [], []
    for fit in found.fits:
        rows, variance = reduced(fit)
        at = first + np.arange(rows.shape[1])
        at[fit.memory.offsets] = fit.memory.own
        blocks.append(np.zeros((len(rows), size)))
        blocks[-1][:, at] = rows
        places.append(at)
        variances.append(variance)
        first += rows.shape[1]
    everything = pseudo_inverse(np.vstack(blocks)) * np.sqrt(np.concatenate(variances))
    for fit, at in zip(found.fits, places, strict=True):
        root, own = roots[fit.memory.name], at[: fit.memory.block.unknowns.n_inertial]
        wanted = everything[own] @ everything[own].T
        sizes = np.sqrt(np.diag(wanted))
        assert root.shape == (len(own), len(own))
        assert np.abs((root @ root.T - wanted) / sizes / sizes[:, None]).max() < DENSE


def test_roots_are_those_of_one_dense_inverse(robot, prior):
    """Of all submodels and of one, with friction in the joints of one side."""
    joints = tuple(name for name in robot.joint_names if name.startswith('l_'))
    choice = replace(settings(robot).equations, efforts=joints, friction=(Term.VISCOUS,))
    samples, _ = log(robot, 4.0)
    rng = np.random.default_rng(2)
    efforts = 0.3 * samples.velocities + 0.1 * rng.normal(size=samples.velocities.shape)
    chosen = replace(settings(robot), equations=choice)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(replace(samples, efforts=efforts))
    known = known_of(identifier)
    assert {len(one.block.unknowns.extras) > len(one.offsets) for one in known} == {True, False}
    assert_roots_of_dense_inverse(known)
    assert_roots_of_dense_inverse(known[-1:])


def test_a_reference_temperature_is_an_offset(robot, rng):
    """A reading above it is a drift: what is subtracted at any temperature changes alike."""
    n = len(robot.ft_sensors)
    given = np.eye(6) * np.ones((n, 1, 1)), rng.normal(size=(n, 6)), rng.normal(size=(n, 6))
    before, after = (FtCalibration(*given, rng.uniform(20.0, 40.0, n)) for _ in range(2))
    raw, temperatures = rng.normal(size=(n, 6)), rng.uniform(10.0, 50.0, n)
    change = before.apply(raw, temperatures) - after.apply(raw, temperatures)
    identifier = RecursiveIdentifier(robot, settings(robot), before)
    assert identifier.set_calibration(after) == ()
    names = [sensor.name for sensor in robot.ft_sensors]
    for one in identifier.memories:
        unknowns = one.block.unknowns
        offsets = [unknowns.names[k].rpartition('.') for k in one.offsets]
        wanted = [change[names.index(of), COMPONENTS.index(term)] for of, _, term in offsets]
        np.testing.assert_allclose(one.shift, wanted, atol=1e-11)


def test_offsets_fit_the_prior_from_the_outside_in(robot, prior):
    samples, _ = log(robot, 4.0)
    chosen = settings(robot, warm_up=1.0, weight=0.1, excited=10_000)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(samples)
    refit = identifier.refit()
    assert refit.refitted == ()
    np.testing.assert_array_equal(refit.parameters, prior)
    offsets, blocks = {}, identifier.builder.blocks
    equations = identifier.builder.equations(samples)
    for block, kinds, memory in reversed([*zip(blocks, equations, identifier.memories)]):
        if not kinds:
            continue
        names = [str(extra) for extra in block.unknowns.extras]
        new = [k for k, name in enumerate(names) if name not in offsets]
        known = np.array([offsets.get(name, 0.0) for name in names])
        x = block.unknowns.join(prior[list(block.submodel.links)], known)
        Y = np.concatenate([part.Y / memory.noise[kind] for kind, part in kinds.items()])
        y = np.concatenate([part.y / memory.noise[kind] for kind, part in kinds.items()])
        of_offsets = Y[:, block.unknowns.n_inertial :]
        found = np.linalg.lstsq(of_offsets[:, new], y - Y @ x, rcond=None)[0]
        offsets |= {names[k]: value for k, value in zip(new, found.tolist(), strict=True)}
    for sensor in robot.ft_sensors:
        wanted = [offsets[f'{sensor.name}.{part}'] for part in COMPONENTS]
        # The inner submodel counts a thousandth, and the weak prior a little.
        np.testing.assert_allclose(refit.offsets[sensor.name], wanted, atol=1e-4)
