# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets that go with the bodies that are told, and rows that nobody has measured."""

from dataclasses import replace

import numpy as np
import pytest
from test_recursion import KINDS, NOISE, log, prior, robot, settings

from inertial_estimation.identification.recursion.joint_refit import joint_refit
from inertial_estimation.identification.recursion.offsets_in_use import offsets_in_use
from inertial_estimation.identification.recursion.recursive_identifier import RecursiveIdentifier
from inertial_estimation.identification.rows.outer_wrenches import COMPONENTS
from inertial_estimation.sample import SensorState

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


def test_beside_a_body_that_is_told_they_stay(told):
    identifier, _, refit = told
    known = [one for one in identifier.known if one.information is not None]
    found = joint_refit(known, 0.1).offsets
    used = offsets_in_use(known, ('l_upper_arm',), found)
    assert list(used) == list(found)
    for name, value in found.items():
        sensor, part = name.split('.')
        if sensor == 'l_arm_ft':
            assert used[name] == value
        elif sensor == 'r_arm_ft':
            # Nothing is shared with the other arm: as if nobody was told.
            wanted = refit.offsets[sensor][COMPONENTS.index(part)]
            assert used[name] == pytest.approx(wanted, abs=SAME)
    # With other bodies they were others.
    right = [k for k, name in enumerate(found) if name.startswith('r_arm_ft.force')]
    moved = np.array(list(used.values()))[right] - np.array(list(found.values()))[right]
    assert np.abs(moved).max() > 0.1
    assert offsets_in_use(known, [one.block.submodel.name for one in known], found) == found


def test_what_rests_on_an_assumed_joint_gives_no_rows(robot):
    samples, _ = log(robot, 3.0)
    states = np.full(samples.positions.shape, SensorState.FRESH)
    states[:, robot.joint_names.index('l_elbow')] = SensorState.ASSUMED
    identifier = RecursiveIdentifier(robot, settings(robot, warm_up=1.0))
    identifier.add(replace(samples, joint_states=states))
    seconds = {one.block.submodel.name: one.seconds for one in identifier.known}
    assert seconds['l_upper_arm'] == 0.0
    assert seconds['r_upper_arm'] > 2.0
    reasons = identifier.refit().reasons
    assert reasons['l_upper_arm'].endswith('what rests on assumed joints gives none: l_elbow')
    assert 'assumed' not in ' '.join(reasons[name] for name in reasons if name != 'l_upper_arm')
