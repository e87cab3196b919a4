# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Covariance of refitted parameters: against one dense inverse of all submodels, and against draws.

Not covered: what it does to wrenches and torques (test_uncertainty.py); equations whose
errors have much in common, as those of a sensor with a wrong matrix.
"""

from dataclasses import replace

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from test_recursion import NOISE, known_of, log, settings
from test_recursion import prior as prior
from test_recursion import robot as robot

from inertial_estimation.identification.priors import entropic_model, widened
from inertial_estimation.identification.recursion.covariance import parameter_roots
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.refit import joint_refit
from inertial_estimation.identification.solvers.divergence import entropic_divergence, whitening
from inertial_estimation.identification.unknowns import Term

# Covariances over the product of their deviations: round-off times the condition of the inverse.
DENSE = 1e-8
# Of the largest singular value, and of the longest column: round-off.
DEPENDENT, EMPTY = 1e-10, 1e-12
WEIGHT, DRAWS, OFF = 1e-2, 16, 0.2
"""OFF: error of the prior in whitened coordinates; the prior would allow one."""


@pytest.fixture(scope='module')
def known(robot, prior):
    return memories(robot, prior, settings(robot))


def memories(robot, prior, chosen):
    samples, _ = log(robot, 4.0)
    rng = np.random.default_rng(2)
    efforts = 0.3 * samples.velocities + 0.1 * rng.normal(size=samples.velocities.shape)
    identifier = RecursiveIdentifier(robot.with_parameters(prior), chosen)
    identifier.add(replace(samples, efforts=efforts))
    return known_of(identifier)


def reduced(fit, weight):
    """Return equations and prior of a submodel at its answer, and variances of their errors."""
    one, information = fit.memory, fit.memory.information
    pull, n, m = weight * information.count, information.n, one.block.unknowns.n_inertial
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


def check_against_dense(known):
    found = joint_refit(known, WEIGHT)
    roots = parameter_roots(found, WEIGHT)
    size = len(found.offsets) + sum(one.information.n for one in known)
    first, places, blocks, variances = len(found.offsets), [], [], []
    for fit in found.fits:
        rows, variance = reduced(fit, WEIGHT)
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


def test_roots_are_those_of_one_dense_inverse(known):
    assert sum(len(one.own) for one in known) > known[0].n_offsets
    check_against_dense(known)
    check_against_dense(known[-1:])


def test_friction_is_eliminated(robot, prior):
    joints = tuple(name for name in robot.joint_names if name.startswith('l_'))
    choice = replace(settings(robot).equations, efforts=joints, friction=(Term.VISCOUS,))
    known = memories(robot, prior, replace(settings(robot), equations=choice))
    assert any(len(one.block.unknowns.extras) > len(one.offsets) for one in known)
    check_against_dense(known)


def test_draws_scatter_as_stated(robot):
    rng = np.random.default_rng(3)
    truth, _ = widened(robot.link_names, robot.parameters)
    clean, maps = with_readings(robot, smooth_motion(robot, 4.0), truth), whitening(truth)
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
    determined, drawn = (np.sqrt(np.mean(np.square(own))) for own in ratios.values())
    # Four deviations of the root mean square of 6 x 16 draws of variance one.
    assert determined == pytest.approx(1.0, abs=0.3)
    # About ten combinations show OFF^2, and one of variance one is added to them.
    assert 0.5 < drawn < 1.3
