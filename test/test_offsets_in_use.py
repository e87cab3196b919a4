# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Offsets that go with the bodies that are told, and rows that nobody has measured."""

import numpy as np
import pytest
from test_recursion import KINDS, NOISE, log, prior, robot, settings

from inertial_estimation.identification.equations.wrenches import COMPONENTS
from inertial_estimation.identification.recursion import offsets as offset_module
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.offsets import fitted_offsets
from inertial_estimation.identification.recursion.refit import joint_refit

__all__ = ['prior', 'robot']

# Least squares of a thousand rows two ways; offsets are of the size of 10.
SAME = 1e-6
APART = 0.1
"""Of offsets by the rows of one submodel and by those of both beside a sensor [N, Nm]."""
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
    """Of two submodels beside a sensor the outer one says its offset."""
    identifier, samples, refit = told
    assert refit.refitted == ()
    np.testing.assert_array_equal(refit.parameters, prior)
    offsets = {}
    rows = list(zip(identifier.builder.blocks, identifier.builder.equations(samples), strict=True))
    for block, kinds in reversed(rows):
        n, names = block.unknowns.n_inertial, block.unknowns.names
        bodies = prior[list(block.submodel.links)].reshape(-1)
        new = [k for k, name in enumerate(names[n:], start=n) if name not in offsets]
        known = [k for k in range(n, len(names)) if k not in new]
        Y, y = [], []
        for kind, part in kinds.items():
            given = part.Y[:, known] @ [offsets[names[k]] for k in known] if known else 0.0
            Y.append(part.Y[:, new] / STATED[kind])
            y.append((part.y - part.Y[:, :n] @ bodies - given) / STATED[kind])
        if new:
            found = np.linalg.lstsq(np.concatenate(Y), np.concatenate(y), rcond=None)[0]
            offsets |= dict(zip([names[k] for k in new], found.tolist(), strict=True))
    for sensor in robot.ft_sensors:
        wanted = [offsets[f'{sensor.name}.{part}'] for part in COMPONENTS]
        # The other submodel counts a thousandth, and offsets are drawn to zero a little.
        np.testing.assert_allclose(refit.offsets[sensor.name], wanted, atol=1e-4)


def test_an_offset_that_the_innermost_alone_tells_is_told_however_many_sensors_lie_further_out(
    prior, told, monkeypatch
):
    identifier, *_ = told
    inner, *outer = (one for one in identifier.memories if one.information is not None)
    beside = next(one for one in outer if set(one.offset_names) & set(inner.offset_names))
    others = [one for one in outer if one is not beside]
    bodies = {
        one.block.submodel.name: prior[list(one.block.submodel.links)] for one in (inner, *others)
    }
    alone = set(inner.offset_names) - {name for one in others for name in one.offset_names}
    assert alone
    found = fitted_offsets([inner, *others], bodies)
    monkeypatch.setattr(offset_module, '_depths', lambda known: [0] + [6] * len(others))
    far = fitted_offsets([inner, *others], bodies)
    for name in alone:
        assert far[name] == pytest.approx(found[name], abs=1e-4)


def test_beside_bodies_that_are_told_they_are_those_of_the_refit(told):
    identifier, _, refit = told
    known = [one for one in identifier.memories if one.information is not None]
    fit = joint_refit(known, 0.1)
    found = fit.offsets
    bodies = {one.memory.block.submodel.name: one.parameters for one in fit.fits}
    # The refit's minimum, which all submodels agree on, is one beside its bodies as well.
    everything = fitted_offsets(known, bodies)
    for name, value in found.items():
        assert everything[name] == pytest.approx(value, abs=APART)
    mixed = {one.block.submodel.name: one.prior for one in known}
    mixed['l_upper_arm'] = bodies['l_upper_arm']
    used = fitted_offsets(known, mixed)
    assert used.keys() == found.keys()
    for name, value in used.items():
        sensor, part = name.split('.')
        # Whatever is told of the trunk and of the other arm.
        if sensor == 'r_arm_ft':
            wanted = refit.offsets[sensor][COMPONENTS.index(part)]
            assert value == pytest.approx(wanted, abs=1e-4)
        elif sensor == 'l_arm_ft':
            assert value == pytest.approx(everything[name], abs=1e-4)
    # With other bodies they were others.
    right = [name for name in found if name.startswith('r_arm_ft.force')]
    assert max(abs(used[name] - found[name]) for name in right) > 0.1
