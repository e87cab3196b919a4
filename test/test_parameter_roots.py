# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How sure refitted parameters are: against one dense inverse of all submodels, and against draws.

Not covered: what it makes of wrenches and torques (test_parameter_deviations.py); rows whose
errors have much in common, as those of a sensor with a wrong matrix.
"""

from dataclasses import replace

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from test_recursion import NOISE, log, settings
from test_recursion import prior as prior
from test_recursion import robot as robot

from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.priors import entropic_model, widened
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.parameter_roots import (
    divergence_of_errors,
    parameter_roots,
)
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Term

# Covariances over the product of their deviations: round-off times the condition of the inverse.
DENSE = 1e-8
# Of the longest column: round-off in those of what has no effect.
NOTHING = 1e-12
# Of the largest singular value: efforts of a submodel that is held tell only sums of offsets.
DEPENDENT = 1e-10
WEIGHT = 1e-2
DRAWS = 16
# Of the root mean square of 6 x 16 draws of variance one; four of its deviations of 0.07.
SPREAD = 0.3
OFF = 0.2
"""How far descriptions are off; the prior would let them be off by one."""


def known_of(robot, prior, chosen=None, seconds=4.0, efforts=False):
    """Return what is known of the submodels after some seconds of motion."""
    samples, _ = log(robot, seconds)
    if efforts:
        rng = np.random.default_rng(2)
        measured = 0.3 * samples.velocities + 0.1 * rng.normal(size=samples.velocities.shape)
        samples = replace(samples, efforts=measured)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen or settings(robot))
    identifier.add(samples)
    return [one for one in identifier.memories if one.information is not None]


def dense(found, weight):
    """Return a root of the covariance of all unknowns, and where each submodel's are in it."""
    names = list(found.offsets)
    size = len(names) + sum(bodies.memory.information.n for bodies in found.fits)
    first, places, blocks, variances = len(names), [], [], []
    for bodies in found.fits:
        one, information = bodies.memory, bodies.memory.information
        drawn = weight * information.count
        of_prior = entropic_model(
            one.block.unknowns, one.prior, bodies.parameters, one.scales, drawn
        )
        own = np.vstack([information.R, of_prior.R])
        hat = own @ pseudo_inverse(own)
        n, n_inertial = information.n, one.block.unknowns.n_inertial
        freedom = information.count - np.trace(hat[:n, :n])
        variance = information.squared_residual(bodies.x) / freedom
        of_bodies = drawn * description_error(bodies, hat, variance / drawn)
        variances.append(np.repeat([variance, of_bodies, drawn], [n, n_inertial, n - n_inertial]))
        at = first + np.arange(information.n)
        at[one.offsets] = [names.index(name) for name in one.offset_names]
        blocks.append(np.zeros((len(own), size)))
        blocks[-1][:, at] = own
        places.append(at)
        first += information.n
    return pseudo_inverse(np.vstack(blocks)) * np.sqrt(np.concatenate(variances)), places


def description_error(bodies, hat, noise):
    """Return the variance of it that the found bodies speak for, over that of divergence one."""
    moved = 2.0 * entropic_divergence(bodies.parameters, bodies.memory.prior).sum()
    n, n_bodies = bodies.memory.information.n, bodies.memory.block.unknowns.n_inertial
    of_bodies = hat[n : n + n_bodies]
    told = np.eye(n_bodies) - of_bodies[:, n : n + n_bodies]
    by_noise = noise * np.sum(of_bodies[:, :n] ** 2) + np.sum(of_bodies[:, n + n_bodies :] ** 2)
    return (max(moved - by_noise, 0.0) + 1.0) / (np.trace(told @ told) + 1.0)


def pseudo_inverse(rows):
    """Return what solves rows whose columns differ in their units; some may tell nothing."""
    lengths = np.linalg.norm(rows, axis=0)
    scale = np.where(lengths > NOTHING * lengths.max(), lengths, lengths.max())
    return np.linalg.pinv(rows / scale, rcond=DEPENDENT) / scale[:, None]


def check_against_dense(known):
    found = joint_refit(known, WEIGHT)
    roots = parameter_roots(found, WEIGHT)
    everything, places = dense(found, WEIGHT)
    for bodies, at in zip(found.fits, places, strict=True):
        root = roots[bodies.memory.block.submodel.name]
        own = at[: bodies.memory.block.unknowns.n_inertial]
        wanted = everything[own] @ everything[own].T
        sizes = np.sqrt(np.diag(wanted))
        assert root.shape == (len(own), len(own))
        error = (root @ root.T - wanted) / sizes / sizes[:, None]
        assert np.abs(error).max() < DENSE


def test_roots_are_those_of_one_dense_inverse(robot, prior):
    known = known_of(robot, prior)
    assert sum(len(one.offsets) for one in known) > len({n for o in known for n in o.offset_names})
    check_against_dense(known)


def test_a_submodel_alone_and_without_offsets(robot, prior):
    known = known_of(robot, prior)
    check_against_dense(known[-1:])
    check_against_dense(known_of(robot, prior, RecursionSettings()))


def test_friction_is_eliminated(robot, prior):
    joints = tuple(name for name in robot.joint_names if name.startswith('l_'))
    friction = JointModel(terms=(Term.VISCOUS,))
    rows = replace(settings(robot).equations, efforts=joints, joint=friction)
    known = known_of(robot, prior, replace(settings(robot), equations=rows), efforts=True)
    assert any(len(one.block.unknowns.extras) > len(one.offsets) for one in known)
    check_against_dense(known)


def test_roots_scale_prior_error_by_divergence(robot, prior):
    known = known_of(robot, prior)
    deviations = []
    for times in (1.0, 100.0):
        # The same rows again and again: more of them, and nothing new in them.
        for one in known:
            size = np.sqrt(times)
            one.information = one.information.scaled(size)
            one.information = replace(one.information, count=times * one.information.count)
        found = joint_refit(known, WEIGHT)
        roots = parameter_roots(found, WEIGHT)
        whitened, expected = [], []
        for bodies in found.fits:
            one = bodies.memory
            root = roots[one.block.submodel.name]
            maps = np.linalg.inv(whitening(bodies.parameters))
            z = np.einsum('lij,ljr->lir', maps, root.reshape(len(maps), 10, -1))
            whitened.append(np.linalg.svd(z.reshape(len(root), -1), compute_uv=False))
            near = (one.block.unknowns, one.prior, bodies.parameters, one.scales)
            own = np.vstack(
                [one.information.R, entropic_model(*near, WEIGHT * one.information.count).R]
            )
            hat, rows = own @ pseudo_inverse(own), one.information
            freedom = rows.count - np.trace(hat[: rows.n, : rows.n])
            noise = rows.squared_residual(bodies.x) / freedom / (WEIGHT * rows.count)
            expected.append(np.sqrt(description_error(bodies, hat, noise)))
        deviations.append(np.concatenate(whitened))
        # In coordinates in which the divergence is half a square, about bodies near the prior.
        largest = [one.max() for one in whitened]
        np.testing.assert_allclose(largest, expected, rtol=0.2)
        # A description that is off by less than a divergence of one is not said to be that bad.
        assert max(expected) < 0.5
    few, many = deviations
    assert many.max() == pytest.approx(few.max(), rel=0.02)
    # What rows tell gets surer, down to the pull of the prior.
    assert many.min() < 0.5 * few.min()


@pytest.mark.parametrize(('off', 'noise'), [(0.0, 0.3), (0.5, 0.3), (2.0, 1e-3)])
def test_how_far_answers_move_tells_how_far_descriptions_are_off(rng, off, noise):
    """Draws of rows, noise, friction and descriptions, in coordinates in which these are alike."""
    n, n_others, m, draws = 6, 2, 5, 20000
    R = rng.normal(size=(m, n + n_others))
    z = off * rng.normal(size=(draws, n))
    friction = rng.normal(size=(draws, n_others))
    e = np.sqrt(noise) * rng.normal(size=(draws, m))
    # The truth is zero but for friction; descriptions are at z, the priors of friction at zero.
    right = np.hstack([e + friction @ R[:, n:].T, z, np.zeros((draws, n_others))])
    rows = np.vstack([R, np.eye(n + n_others)])
    moved = (right @ np.linalg.pinv(rows).T)[:, :n] - z
    basis, _ = np.linalg.qr(rows)
    of_rows, of_bodies, others = np.split(basis, [m, m + n])
    told = np.eye(n) - of_bodies @ of_bodies.T
    other = divergence_of_errors(of_bodies, of_rows, others, noise)
    expected = off**2 * np.sum(told**2) + other
    squares = np.sum(moved**2, axis=1)
    # Four standard deviations of a mean of so many draws.
    assert abs(squares.mean() - expected) < 4.0 * squares.std() / np.sqrt(draws)


def test_draws_scatter_as_is_said(robot):
    rng = np.random.default_rng(3)
    truth, _ = widened(robot.link_names, robot.parameters)
    clean = with_readings(robot, smooth_motion(robot, 4.0), truth)
    maps = whitening(truth)
    ratios = {1e-4: [], 1.0: []}
    for _ in range(DRAWS):
        off = OFF * rng.normal(size=(len(truth), 10))
        given = robot.with_parameters(truth + np.einsum('lij,lj->li', maps, off))
        offsets = rng.normal(size=(len(robot.ft_sensors), 6))
        noise = NOISE * rng.normal(size=clean.ft_readings.shape)
        samples = replace(clean, ft_readings=clean.ft_readings + offsets + noise)
        for weight, found in ratios.items():
            identifier = RecursiveIdentifier(given, settings(robot, weight=weight, excited=0))
            identifier.add(samples)
            refit = identifier.refit()
            for submodel in robot.submodels[1:]:
                links = list(submodel.links)
                error = (refit.parameters - truth)[links, 0].sum()
                spread = refit.parameter_roots[links, 0].sum(axis=0)
                found.append(error / np.linalg.norm(spread))
    told, held = (np.sqrt(np.mean(np.square(ratios[weight]))) for weight in (1e-4, 1.0))
    # The mass of each submodel. A prior of weight one draws it, by as far as that is off: that is
    # told from few combinations then, beside one that is taken to be off by a divergence of one.
    assert told == pytest.approx(1.0, abs=SPREAD)
    # About ten combinations that show OFF^2, and one of variance one: (10 OFF^2 + 1) / 11 is 1.8
    # times OFF^2 in deviations, were nothing told.
    assert 0.5 < held < 1.0 + SPREAD


@pytest.mark.parametrize('method', ['euclidean', 'pullback'])
def test_inconsistent_submodel_keeps_roots_of_others(robot, prior, method):
    samples, _ = log(robot, 2.0)
    chosen = settings(robot, method=method, weight=1e-6, warm_up=1.0)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(samples)
    found = identifier.refit()
    assert found.least_margin < 0.0
    assert np.isfinite(found.parameter_roots).all()
