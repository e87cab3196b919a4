# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of an iCub on a pole, simulated by its own equations.

Answers against batches, minima, least squares and one dense inverse; changes. Then the information
state of a submodel and its base parameters on small robots, and tracked FT offsets. Not covered:
real logs and joint efforts (test_recursion_robots.py), wrong matrices
(test_calibration_followed.py); what covariances do to wrenches and torques (test_uncertainty.py).
"""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from scipy.linalg import block_diag, null_space
from simulated_arm import efforts_of

from bench.live_robots import equal_parts, smooth_motion, with_readings, wrong_robot
from inertial_estimation import (
    EquationChoice,
    FtCalibration,
    Information,
    RecursionSettings,
    RecursiveIdentifier,
    Robot,
)
from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.matrix_errors import (
    about_offsets,
    products_of_wandered,
    variance_by_sensor,
)
from inertial_estimation.identification.priors import entropic_model
from inertial_estimation.identification.recursion.covariance import (
    LIKELY,
    VARIANCES,
    certainties,
    largest_variance,
    prior_errors,
)
from inertial_estimation.identification.recursion.innovation import SWAY, Change, InnovationTest
from inertial_estimation.identification.recursion.memory import OFFSET_SIZES, SubmodelMemory
from inertial_estimation.identification.recursion.offsets import (
    DRIFT,
    MAX_INTERVAL,
    SETTLING,
    OffsetTracker,
)
from inertial_estimation.identification.recursion.payload import PayloadFit
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.recursion.state import from_text, to_text
from inertial_estimation.identification.row_space import wandered
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.ft_calibration import WRENCH_SCALE
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.simulation.description import icub_urdf

NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
WRENCH = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])
# Merging in parts and at once differ by round-off times the condition of the equations.
SAME = 1e-8
# Covariances over the product of their deviations: round-off times the condition of the inverse.
DENSE = 1e-8
# Of the largest singular value, and of the longest column: round-off.
DEPENDENT, EMPTY = 1e-10, 1e-12


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


def log(robot, seconds, pushes=None, moving=None):
    """Return samples with noise and offsets, and the offsets; rest after `moving` samples."""
    rng = np.random.default_rng(1)
    samples = smooth_motion(robot, seconds, seed=0)
    if moving is not None:
        samples.positions[moving:] = samples.positions[moving]
        samples.velocities[moving:] = samples.accelerations[moving:] = 0.0
    samples = with_readings(robot, samples, robot.parameters, pushes)
    offsets = rng.normal(size=(len(robot.ft_sensors), 6)) * [10, 10, 10, 1, 1, 1]
    samples.ft_readings[:] += offsets + NOISE * rng.normal(size=samples.ft_readings.shape)
    return samples, offsets


def identify(robot, prior, samples, free=None, **chosen):
    """Return an identifier that was given a log in windows of a second, `free` samples of each."""
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot, **chosen))
    free = None if free is None else np.tile(free[:, None], (1, len(robot.submodels)))
    for part in equal_parts(samples, 1.0):
        identifier.add(part, free=free)
    return identifier


def test_size_and_sway_are_those_of_released_offsets(robot, prior):
    samples, _ = log(robot, 6.0)
    identifier = identify(robot, prior, samples, warm_up=1.0)
    for one, evidence in zip(identifier.memories, gather(identifier.builder, samples)):
        if one.block.kinds:
            before, (new, *_) = one.information.merge(one.loose_prior), one.whitened(evidence)
            size, sway = InnovationTest(one, one.offsets, 4.0)._size_and_sway(before, new)
            assert size == pytest.approx(added(before, new) / new.count)
            scales = one.offset_scales(*np.maximum(SWAY, [one.noise[k] for k in COMPONENTS[::3]]))
            held, free = (
                added(wandered(before, one.offsets, each), new)
                for each in (scales, np.full(len(scales), np.inf))
            )
            # A small difference of two energies has fewer digits.
            assert sway == pytest.approx(held - free, rel=1e-5, abs=1e-9 * held)


def added(before, new):
    return before.merge(new).energy - before.energy


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
            new.information, new.errors, new.matrices = new.whitened(evidence)
            assert one.information.count == new.information.count
    recursive, at_once = identifier.refit(), fresh.refit()
    assert set(recursive.refitted) == {s.name for s in robot.submodels} - {'root_link'}
    assert (
        recursive.reasons['root_link'] and (consistency_margin(recursive.parameters) > 0.0).all()
    )
    np.testing.assert_allclose(recursive.parameters, at_once.parameters, atol=SAME)
    for name, offset in at_once.offsets.items():
        np.testing.assert_allclose(recursive.offsets[name], offset, atol=SAME)


def assert_minimum(found, rng, size=1e-3):
    """Check by central differences along random directions that a refit is a minimum."""

    def objective(xs, offsets):
        total = 0.0
        for fit, x in zip(found.fits, xs, strict=True):
            one, full = fit.memory, x.copy()
            full[one.offsets] = offsets[one.own]
            links, extras = one.block.unknowns.split(full)
            # Infinite scales: no prior.
            pull = 0.5 * np.sum((extras / one.scales) ** 2) / one.stated_variance
            pull += entropic_divergence(links, one.prior).sum() / one.prior_variance
            total += 0.5 * one.information.squared_residual(full) + pull
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


@pytest.mark.parametrize('error', [0.03, 1.0, 3.0])
def test_refit_from_far_is_the_minimum_of_all_submodels(robot, prior, error):
    identifier = identify(robot, prior, log(robot, 3.0)[0], prior_error=error)
    found = joint_refit(known_of(identifier))
    assert found.converged
    assert_minimum(found, np.random.default_rng(0), size=1e-4)


def test_refit_that_does_not_converge_is_withheld(robot, prior, monkeypatch):
    identifier = identify(robot, prior, log(robot, 5.0)[0])
    for name in ('DIRECT_STEPS', 'MAX_STEPS'):
        monkeypatch.setattr(f'inertial_estimation.identification.recursion.refit.{name}', 1)
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


@pytest.mark.parametrize(
    ('seconds', 'bias', 'angle', 'still', 'share'),
    [
        (11.0, 0.0, 0.0, False, 1.0),
        (11.0, 0.0, 0.0, True, 1.0),
        (9.0, 20.0, 0.0, False, 1.0),
        (15.0, 0.0, 0.5, False, 1.0),
        (22.0, 0.0, 0.0, False, 0.4),
    ],
    ids=['touch in motion', 'touch at rest', 'only forces biased', 'wrong joint', 'partly free'],
)
def test_a_wrong_start_is_replaced(robot, prior, seconds, bias, angle, still, share):
    """A hand is held, its sensor biased or a joint wrong at first: later equations count alone."""
    samples, _ = log(robot, seconds)
    n = round(300 / share)
    if still:
        # It begins to move as the hand is released.
        samples.positions[:n] = samples.positions[n]
        samples.velocities[:n] = samples.accelerations[:n] = 0.0
        readings = samples.ft_readings.copy()
        clean = with_readings(robot, samples, robot.parameters).ft_readings
        samples.ft_readings[:n] = clean[:n] + (readings - clean)[n]
    sensor = [one.name for one in robot.ft_sensors].index('l_arm_ft')
    wrong = 10.0 * np.sin(np.linspace(0.0, 9.0, n))[:, None] * WRENCH
    if bias:
        # It ends while the noise is estimated, and only that of forces is too large.
        wrong = np.tile([bias, 0.0, 0.0, 0.0, 0.0, 0.0], (n - 50, 1))
    readings, positions = samples.ft_readings.copy(), samples.positions.copy()
    if angle:
        # Without noise of its own: other parameters explain it.
        positions[:350, robot.joint_names.index('l_ankle_pitch')] += angle
    else:
        readings[: len(wrong), sensor] += wrong
    free = np.arange(100) < 100 * share
    started = replace(samples, ft_readings=readings, positions=positions)
    touched = identify(robot, prior, started, free, gate=4.0, warm_up=3.0)
    untouched = identify(robot, prior, samples, free, gate=4.0, warm_up=3.0)
    name = 'l_foot' if angle else 'l_upper_arm'
    links = list(next(one.links for one in robot.submodels if one.name == name))
    errors = []
    for one in (touched, untouched):
        memory = next(each for each in one.memories if each.name == name)
        # The noise of the readings, and not that of the hand.
        assert memory.noise['force_x'] < 2.0 * NOISE[0]
        moved = (one.refit().parameters - robot.parameters)[links]
        errors.append(np.linalg.norm(np.linalg.solve(memory.maps, moved[..., None])))
    assert errors[0] < 1.5 * errors[1]


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
    """Return equations and prior of a submodel, and variances of their errors."""
    one, information, v = fit.memory, fit.memory.information, fit.memory.prior_variance
    n, m, w = information.n, one.block.unknowns.n_inertial, one.stated_variance
    scales = one.scales * np.sqrt(w / v)
    prior = entropic_model(one.block.unknowns, one.prior, fit.parameters, scales, 1.0 / v)
    rows = np.vstack([one.regularised.R, prior.R])
    hat = rows @ pseudo_inverse(rows)
    freedom = information.count - np.trace(hat[:n, :n])
    noise = information.squared_residual(fit.x) / freedom
    return rows, np.repeat([noise, one.largest_variance / v, 1.0 / w], [n, m, n - m])


def pseudo_inverse(rows):
    lengths = np.linalg.norm(rows, axis=0)
    scale = np.where(lengths > EMPTY * lengths.max(), lengths, lengths.max())
    return np.linalg.pinv(rows / scale, rcond=DEPENDENT) / scale[:, None]


def assert_roots_of_dense_inverse(known):
    for one in known:
        one.prior_variance = 0.01
    found = joint_refit(known)
    certain = certainties(found)
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
    by_matrices = effect_of_matrices(found, places, pseudo_inverse(np.vstack(blocks)))
    everything = np.hstack([everything, by_matrices])
    for fit, at in zip(found.fits, places, strict=True):
        own = np.append(at[: fit.memory.block.unknowns.n_inertial], fit.memory.own)
        root = np.vstack(certain[fit.memory.name][:2])
        wanted = everything[own] @ everything[own].T
        sizes = np.sqrt(np.diag(wanted))
        assert root.shape == (len(own), len(own))
        assert np.abs((root @ root.T - wanted) / sizes / sizes[:, None]).max() < DENSE


def effect_of_matrices(found, places, inverse):
    """Return the effect of likely errors of matrices on all unknowns, (n, 36 n_sensors)."""
    n = 6 * len(found.offsets)
    products, gram, left = np.zeros((len(inverse), n)), np.zeros((n, n)), np.zeros(n)
    for fit, at in zip(found.fits, places, strict=True):
        one, known = fit.memory, fit.memory.information
        of_own = np.add.outer(6 * one.own, np.arange(6)).ravel()
        parts = about_offsets(one.matrices, known.R, known.rho, one.offsets, fit.x[one.offsets])
        YM, yM, MM = np.split(parts, [known.n, known.n + 1])
        products[np.ix_(at, of_own)] += YM
        gram[np.ix_(of_own, of_own)] += MM
        left[of_own] += yM[0] - fit.x @ YM
    shares = inverse.T @ products
    variance = variance_by_sensor(gram - shares.T @ shares, left)
    assert variance > 0.0
    return np.sqrt(variance) * inverse @ shares


def test_products_of_errors_of_matrices_are_those_of_unknowns(rng):
    """They wander as if the errors were unknowns, and loads are taken about offsets."""
    n, k, m = 9, 6, 80
    Y, y, offsets = rng.normal(size=(m, n)), rng.normal(size=m), np.arange(n - k, n)
    loads, x = 10.0 * rng.normal(size=(m, k)), rng.normal(size=k)

    def products(about):
        scaled = (loads - about) / WRENCH_SCALE
        M = (WRENCH_SCALE[:, None] * Y[:, offsets, None] * scaled[:, None]).reshape(m, 36)
        return M, np.column_stack([Y, y, M]).T @ M

    known, (M, before), (_, moved) = Information.of(Y, y), products(0.0), products(x)
    found = about_offsets(before, known.R, known.rho, offsets, x)
    np.testing.assert_allclose(found, moved, atol=1e-9 * np.abs(moved).max())
    some, deviations = offsets[:4], np.array([0.3, np.inf, 0.0, 0.05])
    both = wandered(Information.of(np.column_stack([Y, M]), y), some, deviations)
    wanted = np.vstack([both.R[:, :n].T, both.rho, both.R[:, n:].T]) @ both.R[:, n:]
    found = products_of_wandered(before, known, some, deviations)
    np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(before).max())


@pytest.mark.parametrize('share', [0.0, 1.0])
def test_error_of_the_prior_is_the_likeliest(robot, prior, share):
    samples, _ = log(robot, 6.0)
    near = robot.parameters + share * (prior - robot.parameters)
    identifier = RecursiveIdentifier(robot.with_parameters(near), settings(robot))
    identifier.add(samples)
    for one in known_of(identifier):
        rows, n, stated = one.regularised, one.block.unknowns.n_inertial, one.stated_variance
        # Of combinations without the other unknowns.
        free = null_space(rows.R[:, n:].T)
        right = free.T @ (rows.rho - rows.R[:, :n] @ one.prior.reshape(-1))
        Y = free.T @ rows.R[:, :n] @ block_diag(*one.maps)
        losses = np.array([
            np.linalg.slogdet(C)[1] + right @ np.linalg.solve(C, right)
            for C in (np.eye(len(Y)) + v * Y @ Y.T for v in VARIANCES)
        ])  # fmt: skip
        best, errors = VARIANCES[np.argmin(losses)], prior_errors(one)
        most = VARIANCES[losses <= losses.min() + LIKELY].max()
        assert errors.likeliest(stated) == pytest.approx(min(best, stated))
        largest = largest_variance(one, errors, 0.0)
        assert largest == pytest.approx(min(most, max(best, stated)))
        assert largest >= errors.likeliest(stated)


def test_errors_of_matrices_are_none_of_the_prior(robot, prior, rng):
    samples, _ = log(robot, 6.0)
    errors = 0.1 * rng.normal(size=(len(robot.ft_sensors), 6, 6)) * WRENCH[:, None] / WRENCH
    samples.ft_readings[:] += np.einsum('sij,nsj->nsi', errors, samples.ft_readings)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), settings(robot))
    identifier.add(samples)
    identifier.refit()
    for one in known_of(identifier):
        # The prior is off by a tenth, and stated to be by a fifth.
        assert one.largest_variance <= 2.0 * one.stated_variance
        assert largest_variance(one, prior_errors(one), 0.0) > 10.0 * one.stated_variance


def test_deviations_are_the_same_after_a_restart(robot, prior):
    """Errors of matrices are found in the refit that needs them, and are no part of the state."""
    samples, _ = log(robot, 6.0)
    samples.ft_readings[..., 0] *= 1.1
    given = robot.with_parameters(prior)
    identifier, restored = (RecursiveIdentifier(given, settings(robot)) for _ in range(2))
    identifier.add(samples)
    before, again = identifier.refit(), identifier.refit()
    np.testing.assert_allclose(again.parameter_roots, before.parameter_roots, atol=1e-9)
    from_text(restored, to_text(identifier))
    # Roots of one covariance may be turned against each other; numbers are stored in full.
    covariances = [one @ one.swapaxes(1, 2) for one in
                   (before.parameter_roots, restored.refit().parameter_roots)]  # fmt: skip
    np.testing.assert_allclose(*covariances, rtol=1e-6, atol=1e-12)


def test_efforts_without_ft_offsets_are_refitted_again(robot, prior):
    samples, _ = log(robot, 6.0)
    samples = replace(samples, efforts=np.zeros_like(samples.positions))
    choice = EquationChoice(offsets=('l_arm_ft',), efforts=robot.joint_names)
    given = replace(settings(robot), equations=choice)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), given)
    identifier.add(samples)
    identifier.refit()
    assert np.isfinite(identifier.refit().parameter_roots).all()


def test_roots_are_those_of_one_dense_inverse(robot, prior):
    """Of all submodels and of one, with friction in the joints of one side."""
    joints = tuple(name for name in robot.joint_names if name.startswith('l_'))
    choice = replace(settings(robot).equations, efforts=joints, friction=(Term.VISCOUS,))
    samples, _ = log(robot, 4.0)
    rng = np.random.default_rng(2)
    samples.ft_readings[..., :3] += 0.05 * samples.ft_readings[..., [1, 2, 0]]
    efforts = 0.3 * samples.velocities + 0.1 * rng.normal(size=samples.velocities.shape)
    chosen = replace(settings(robot), equations=choice)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(replace(samples, efforts=efforts))
    known = known_of(identifier)
    assert {len(one.block.unknowns.extras) > len(one.offsets) for one in known} == {True, False}
    assert_roots_of_dense_inverse(known)
    assert_roots_of_dense_inverse(known[-1:])


def test_an_unknown_moment_and_efforts_without_friction_spoil_no_refit(robot):
    """The forces of a reading do not need its moments, whose factors are errors of matrices."""
    choice = replace(settings(robot).equations, efforts=robot.joint_names)
    samples, _ = log(robot, 4.0)
    samples.ft_readings[100, 2, 4] = np.nan
    identifier = RecursiveIdentifier(robot, replace(settings(robot), equations=choice))
    identifier.add(replace(samples, efforts=np.zeros_like(samples.velocities)))
    assert np.isfinite(identifier.refit().parameter_roots).all()


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
    chosen = settings(robot, warm_up=1.0, excited=10_000)
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


# ---- Information state of one submodel

FT_NOISE, EFFORT_NOISE, FRICTION = 0.02, 0.1, 0.3


@pytest.fixture(scope='module')
def humanoid():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def arm():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def small_log(robot, seconds, rate=100.0, swing=0.8):
    """Return samples with noise, offsets and friction of all joints."""
    samples = smooth_motion(robot, seconds, rate=rate, seed=0, swing=swing)
    samples = with_readings(robot, samples, robot.parameters)
    rng = np.random.default_rng(0)
    samples.ft_readings[:] += 3.0 + FT_NOISE * rng.normal(size=samples.ft_readings.shape)
    efforts = FRICTION * samples.velocities
    return replace(samples, efforts=efforts + EFFORT_NOISE * rng.normal(size=efforts.shape))


def by_name(identifier, name):
    return next(one for one in identifier.memories if one.name == name)


def test_an_undetermined_offset_is_as_uncertain_as_its_prior(humanoid):
    """At rest, a submodel between two sensors tells what their offsets sum up to."""
    identifier = RecursiveIdentifier(humanoid, settings(humanoid, warm_up=3.0))
    for part in equal_parts(small_log(humanoid, 4.0, swing=0.0), 1.0):
        identifier.add(part)
    known = by_name(identifier, 'thigh')
    assert len(known.own) == 12
    found = joint_refit([known])
    root = certainties(found)['thigh'].offset_root
    # In units of the prior, about the offsets of the log.
    sizes = known.offset_scales(*OFFSET_SIZES)
    errors, root = (found.offsets[known.own] - 3.0) / sizes, root / sizes[:, None]
    shares, directions = np.linalg.eigh(root @ root.T)
    assert (np.abs(errors @ directions) < 3.0 * np.sqrt(shares)).all()
    # Six of twelve; what the noise of a second leaves of the size of the prior.
    np.testing.assert_allclose(shares[6:], 1.0, rtol=0.2)
    assert shares[5] < 0.1


def test_offsets_walk_by_the_root_of_time_and_equations_fade(humanoid, rng):
    chosen = settings(humanoid, force_walk=0.3, half_life=8.0)
    block = EquationBuilder(humanoid, chosen.equations).blocks[-1]
    known = SubmodelMemory(block, humanoid.parameters[[*block.submodel.links]], chosen)
    n = len(block.unknowns)
    before = Information.of(rng.normal(size=(3 * n, n)), rng.normal(size=3 * n))

    def covariance():
        return np.linalg.inv(known.information.R.T @ known.information.R)

    known.information = before
    wanted = covariance()
    wanted[known.offsets, known.offsets] += [0.81] * 3 + [0.0081] * 3
    for seconds in (4.0, 0.0, 5.0):
        known.drift(seconds)
    np.testing.assert_allclose(covariance(), wanted, atol=DENSE)
    known.information = before
    for _ in range(4):
        known.absorb(Information.empty(n), known.errors, known.matrices, 2.0)
    faded = known.information
    np.testing.assert_allclose(faded.R.T @ faded.R, 0.5 * before.R.T @ before.R, rtol=1e-10)
    assert faded.count == pytest.approx(0.5 * before.count)
    assert faded.energy == pytest.approx(0.5 * before.energy)
    assert known.seconds == 8.0


def test_single_samples_count_for_time_and_time_set_back_does_not(humanoid):
    identifier = RecursiveIdentifier(humanoid, settings(humanoid, warm_up=3.0, half_life=300.0))
    parts = equal_parts(small_log(humanoid, 60.0, rate=1.0), 1.0)
    for part in parts:
        identifier.add(part)
        refit = identifier.refit()
    thigh = by_name(identifier, 'thigh')
    assert thigh.seconds == pytest.approx(60.0, rel=0.05)
    assert 'thigh' in refit.refitted
    assert set(thigh.noise) == set(thigh.block.kinds)
    # A pause of an hour is no time with equations, and the way back strengthens no old ones.
    late = parts[-1].take(slice(0, 1))
    for hours in (3_600_000_000_000, -3_600_500_000_000):
        late.stamp_ns[:] += hours
        before, count = thigh.seconds, thigh.information.count
        identifier.add(late)
        assert 0.0 <= thigh.seconds - before <= 1.0
        assert thigh.information.count <= count + len(thigh.block.kinds)
        assert identifier.stamp_ns == int(late.stamp_ns[-1])


def with_efforts(arm, **others):
    choice = EquationChoice(efforts=arm.joint_names, friction=(Term.VISCOUS,))
    return RecursiveIdentifier(arm, RecursionSettings(choice, **others))


def test_friction_hides_no_error_of_the_urdf(arm):
    """Four terms a joint, whose prior is an upper size: deviations hold."""
    friction = Term.VISCOUS, Term.COULOMB, Term.OFFSET, Term.DRIVE_INERTIA
    choice = EquationChoice(efforts=arm.joint_names, friction=friction)
    samples, covered = small_log(arm, 6.0), []
    samples = replace(samples, efforts=samples.efforts + efforts_of(arm, samples))
    for seed in range(4):
        wrong = wrong_robot(arm, np.random.default_rng(seed), 0.2)
        identifier = RecursiveIdentifier(wrong, RecursionSettings(choice))
        for part in equal_parts(samples, 1.0):
            identifier.add(part)
            identifier.refit()
        found = joint_refit(known_of(identifier))
        certain = certainties(found)['base']
        (fit,) = (one for one in found.fits if one.memory.name == 'base')
        truth = arm.parameters[list(fit.memory.block.submodel.links)]
        deviations = np.linalg.norm(certain.root, axis=1)
        covered.append(np.abs((fit.parameters - truth).reshape(-1)) < 2.0 * deviations)
    # Less where the most that friction may explain is subtracted from the error of the URDF.
    assert np.mean(covered) > 0.85


def test_efforts_that_come_late_are_used(arm):
    samples = small_log(arm, 24.0)
    samples.efforts[:800, arm.joint_names.index('elbow')] = np.nan
    identifier = with_efforts(arm, half_life=600.0, gate=4.0, warm_up=3.0)
    base = by_name(identifier, 'base')
    for k, part in enumerate(equal_parts(samples, 1.0)):
        identifier.add(part)
        identifier.refit()
        assert ('effort elbow' in base.noise) == (k >= 8)
    assert base.noise['effort elbow'] < 3 * base.noise['effort shoulder']
    assert np.isfinite(base.scales).all()


def test_refit_with_friction_is_the_minimum_with_its_prior(arm):
    identifier, samples = with_efforts(arm, prior_error=0.1), small_log(arm, 4.0)
    identifier.add(samples)
    base = by_name(identifier, 'base')
    # As large as all of the effort at 1 rad/s.
    kinds = next(own for own in identifier.builder.equations(samples) if 'effort elbow' in own)
    sizes = [np.sqrt(np.mean(kinds[f'effort {name}'].y ** 2)) for name in arm.joint_names]
    np.testing.assert_allclose(base.scales, sizes, rtol=DENSE)
    # Larger scales would not show.
    base.scales, base.prior_variance = 0.1 * base.scales, 0.2 * base.stated_variance
    found = joint_refit(known_of(identifier))
    assert_minimum(found, np.random.default_rng(0), size=3e-5)


@pytest.mark.parametrize(('gate', 'over'), [(2.0, 1.15), (4.0, 0.85)])
def test_equations_are_rejected_from_the_gate_times_their_noise(humanoid, gate, over):
    identifier = RecursiveIdentifier(humanoid, settings(humanoid, gate=gate))
    samples = small_log(humanoid, 5.0)
    loud = samples.ft_readings[400:]
    # White noise is no offset that jumps, only larger than usual.
    sensor = [s.name for s in humanoid.ft_sensors].index('arm_sensor')
    more = np.random.default_rng(1).normal(size=(len(loud), 6))
    loud[:, sensor] += FT_NOISE * np.sqrt((over * gate) ** 2 - 1.0) * more
    changes = [change for part in equal_parts(samples, 1.0) for change in identifier.add(part)]
    assert changes == ([('upper_arm', Change.TOUCHED)] if over > 1.0 else [])


def test_base_deviations_are_those_of_all_submodels(humanoid):
    identifier = identify(humanoid, humanoid.parameters, small_log(humanoid, 10.0))
    identifier.refit()
    known, values = known_of(identifier), identifier.base_values()
    names = list(dict.fromkeys(name for one in known for name in one.block.unknowns.names))
    columns = [[names.index(name) for name in one.block.unknowns.names] for one in known]
    rows = [np.zeros((one.information.n, len(names))) for one in known]
    for one, own, part in zip(known, columns, rows, strict=True):
        part[:, own] = one.information.R
    stacked = np.vstack(rows)
    scales = np.linalg.norm(stacked, axis=0)
    scales[scales == 0.0] = 1.0
    root = np.linalg.pinv(stacked / scales, rcond=1e-9) / scales[:, None]
    for one, own in zip(known, columns, strict=True):
        found, unknowns = values[one.name], one.block.unknowns.names
        determined = np.isfinite(found.deviations)
        assert determined.sum() == found.rank > 10
        grouping = identifier._bases[one.name][0].grouping
        assert len(found.names) == len(grouping) and grouping.shape[1] == len(unknowns)
        wanted = np.linalg.norm(grouping @ root[own], axis=1)
        np.testing.assert_allclose(found.deviations[determined], wanted[determined], rtol=1e-6)
    # At rest, in one pose, a weight and an offset are the same.
    identifier = identify(humanoid, humanoid.parameters, small_log(humanoid, 6.0, swing=0.0))
    identifier.refit()
    values = identifier.base_values()
    assert len(values) == 3
    for one in values.values():
        assert np.isinf(one.deviations).all()
        assert 0 < one.rank < len(one.names)


# ---- Tracked offsets

ALL = np.ones(6, dtype=bool)
# Sums of two or three numbers of about ten.
ROUND_OFF = 1e-13


@pytest.fixture
def tracker():
    """Return a tracker that has subtracted ten of each for long."""
    tracker, ten = OffsetTracker(6, 0.1 / DRIFT), np.full(6, 10.0)
    first = tracker.proposed(ten, np.zeros(6), ALL, 0.0)
    # Offsets that are determined for the first time are taken at once.
    assert (first.values == 10.0).all()
    for seconds in (0.0, MAX_INTERVAL, MAX_INTERVAL):
        tracker.now = tracker.proposed(ten, ten, ALL, seconds)
    return tracker


def ask(tracker, found, before, seconds=1.0, determined=ALL):
    """Return what is proposed, and take it."""
    pair = np.broadcast_to(found, 6), np.broadcast_to(before, 6)
    tracker.now = tracker.proposed(*pair, determined, seconds)
    return tracker.now.values


def test_tracker_follows_at_drift_rate(tracker):
    asked = np.array([13.0, 10.0, 6.0, 10.0, 9.0, 10.0])
    # Along the way there: 5 N, 1 Nm.
    wanted = [10.12, 10.0, 9.84, 10.0, 9.98, 10.0]
    # A proposal changes nothing.
    for _ in range(2):
        found = tracker.proposed(asked, asked, ALL, 2.0).values
        np.testing.assert_allclose(found, wanted, atol=ROUND_OFF)
    for _ in range(60):
        ask(tracker, asked, asked, 2.0)
    np.testing.assert_allclose(tracker.now.values, asked, atol=ROUND_OFF)
    # Long intervals count as MAX_INTERVAL, time set back as none.
    far = np.full(6, 1e6)
    short, long, back = (
        tracker.proposed(far, far, ALL, seconds).values for seconds in (MAX_INTERVAL, 1e4, -5.0)
    )
    np.testing.assert_array_equal(long, short)
    np.testing.assert_allclose(back, asked, atol=ROUND_OFF)


def test_tracker_begins_with_the_mean(rng):
    tracker = OffsetTracker(6, 0.0)
    swaying = 10.0 + rng.normal(size=(round(SETTLING), 6))
    for values in swaying:
        ask(tracker, values, values)
    # The first one counts for no time yet.
    np.testing.assert_allclose(tracker.now.values, swaying[1:].mean(axis=0), atol=ROUND_OFF)
    for _ in range(2):
        before = tracker.now.values
        ask(tracker, 1e3, 1e3)
    np.testing.assert_array_equal(tracker.now.values, before)


def test_tracker_takes_what_parameters_change(tracker):
    np.testing.assert_array_equal(ask(tracker, 13.0, 10.0), 13.0)
    # Back again while a push acts, which is hidden no faster than a drift; but not away from the
    # readings.
    for found, before, sign in ((-10.0, -7.0, -1.0), (30.0, 33.0, 1.0)):
        pair = np.full(6, found), np.full(6, before)
        values = tracker.proposed(*pair, ALL, 1.0).values
        start = 10.0 if sign < 0.0 else 13.0
        np.testing.assert_allclose(values[:3], start + sign * 0.1 / 3**0.5)


@pytest.mark.parametrize('push', [20.0, -20.0])
def test_swaying_parameters_hide_no_push(tracker, rng, push):
    sways = 0.3 * rng.normal(size=(21, 6))
    for before, after in pairwise(sways):
        found = ask(tracker, 10.0 + push + after, 10.0 + push + before)
    # A drift of 20 s, and from one end of the sways to the other.
    hidden = np.linalg.norm(found[:3] - 10.0)
    assert hidden < 20.0 * 0.1 + np.linalg.norm(np.ptp(sways[:, :3], axis=0))


def test_offsets_that_are_forgotten_or_without_equations(tracker):
    tracker.forget(np.arange(3))
    found = ask(tracker, 20.0, 20.0)
    np.testing.assert_array_equal(found[:3], 20.0)
    assert (found[3:] < 10.1).all()
    # What is not determined changes with parameters only.
    np.testing.assert_array_equal(ask(tracker, 25.0, 20.0, determined=~ALL), found + 5.0)
    found, nothing = tracker.now.values, np.full(6, np.nan)
    np.testing.assert_array_equal(ask(tracker, nothing, nothing, determined=~ALL), found)
