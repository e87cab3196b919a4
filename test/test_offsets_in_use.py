# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets that go with the bodies that are told, and rows that nobody has measured."""

import numpy as np
import pytest
from test_recursion import KINDS, NOISE, log, prior, robot, settings

from inertial_estimation.identification.recursion.joint_refit import joint_refit
from inertial_estimation.identification.recursion.offsets_in_use import fitted_offsets
from inertial_estimation.identification.recursion.recursive_identifier import RecursiveIdentifier
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS

__all__ = ['prior', 'robot']

# Least squares of a thousand rows two ways; offsets are of the size of 10.
SAME = 1e-6
STATED = dict(zip(KINDS, NOISE.tolist(), strict=True))
NOBODY = 10_000
"""Combinations that no rows tell."""


@pytest.fixture(scope='module')
def told(robot, prior):
    """Return an identification that tells no body, its samples, and a refit."""
    samples, _ = log(robot, 4.0)
    identifier = RecursiveIdentifier(
        robot.with_parameters(prior),
        settings(robot, noise=STATED, warm_up=1.0, weight=0.1, excited=NOBODY),
    )
    identifier.add(samples)
    return identifier, samples, identifier.refit()


def test_without_bodies_they_fit_the_description(robot, prior, told):
    identifier, samples, refit = told
    assert refit.refitted == ()
    np.testing.assert_array_equal(refit.parameters, prior)
    names = [f'{s.name}.{part}' for s in robot.ft_sensors for part in COMPONENTS]
    Y, y = [], []
    for block, kinds in zip(
        identifier.builder.blocks, identifier.builder.rows(samples), strict=True
    ):
        n = block.unknowns.n_inertial
        columns = [names.index(name) for name in block.unknowns.names[n:]]
        bodies = prior[list(block.submodel.links)].reshape(-1)
        for kind, rows in kinds.items():
            placed = np.zeros((len(rows.y), len(names)))
            placed[:, columns] = rows.Y[:, n:] / STATED[kind]
            Y.append(placed)
            y.append((rows.y - rows.Y[:, :n] @ bodies) / STATED[kind])
    wanted = np.linalg.lstsq(np.concatenate(Y), np.concatenate(y), rcond=None)[0]
    found = np.concatenate([refit.offsets[s.name] for s in robot.ft_sensors])
    np.testing.assert_allclose(found, wanted, atol=SAME)


def test_beside_bodies_that_are_told_they_are_those_of_the_refit(told):
    identifier, _, refit = told
    known = [one for one in identifier.known if one.information is not None]
    fit = joint_refit(known, 0.1)
    found = fit.offsets
    bodies = {one.knowledge.block.submodel.name: one.parameters for one in fit.bodies}
    # The refit's minimum is one of offsets beside its bodies as well.
    everything = fitted_offsets(known, list(bodies), bodies)
    for name, value in found.items():
        assert everything[name] == pytest.approx(value, abs=SAME)
    mixed = {one.block.submodel.name: one.prior for one in known}
    mixed['l_upper_arm'] = bodies['l_upper_arm']
    used = fitted_offsets(known, ('l_upper_arm',), mixed)
    assert used.keys() == found.keys()
    for name, value in used.items():
        sensor, part = name.split('.')
        if sensor == 'r_arm_ft':
            # Nothing is shared with the other arm: as if nobody was told.
            wanted = refit.offsets[sensor][COMPONENTS.index(part)]
            assert value == pytest.approx(wanted, abs=SAME)
    # With other bodies they were others.
    right = [name for name in found if name.startswith('r_arm_ft.force')]
    assert max(abs(used[name] - found[name]) for name in right) > 0.1
