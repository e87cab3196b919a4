# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters of a working robot with their deviations; what jumps, stops or has no mass.

The deviations are held against least squares over all submodels at once, in which an offset is
one unknown, not one of each neighbour.
"""

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from robots import nested_humanoid_urdf

from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.recursion.base_values import BaseTable
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.model.robot import Robot

NOISE = 0.02
SAME = 1e-6
"""Both ways solve rows of condition 1e5."""


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


def make(robot, **others):
    offsets = tuple(sensor.name for sensor in robot.ft_sensors)
    return RecursiveIdentifier(robot, RecursionSettings(EquationChoice(offsets=offsets), **others))


def log(robot, seconds, seed=0, noise=NOISE, swing=0.8):
    samples = smooth_motion(robot, seconds, seed=seed, swing=swing)
    samples = with_readings(robot, samples, robot.parameters)
    rng = np.random.default_rng(seed)
    samples.ft_readings[:] += 3.0 + noise * rng.normal(size=samples.ft_readings.shape)
    return samples


def worked_in(robot, samples, **others):
    identifier = make(robot, **others)
    for part in equal_parts(samples, 1.0):
        identifier.add(part)
    identifier.refit()
    return identifier


def whole_problem(identifier):
    """Return the rows of all submodels over all unknowns, offsets once, and their columns."""
    ready = [one for one in identifier.memories if one.information is not None]
    names = list(dict.fromkeys(name for one in ready for name in one.block.unknowns.names))
    columns = [[names.index(name) for name in one.block.unknowns.names] for one in ready]
    rows = np.zeros((sum(one.information.n for one in ready), len(names)))
    start = 0
    for one, own in zip(ready, columns):
        rows[start : start + one.information.n, own] = one.information.R
        start += one.information.n
    return ready, rows, columns


def test_base_deviations_are_those_of_all_submodels(robot):
    identifier = worked_in(robot, log(robot, 10.0))
    table = BaseTable(identifier.builder)
    values = {one.submodel: one for one in table.values(identifier.memories, identifier.found)}
    ready, rows, columns = whole_problem(identifier)
    scales = np.linalg.norm(rows, axis=0)
    scales[scales == 0.0] = 1.0
    _, s, directions = np.linalg.svd(rows / scales, full_matrices=False)
    kept = s > 1e-9 * s[0]
    root = directions[kept].T / s[kept] / scales[:, None]
    assert len(values) == len(ready) == 3
    for one, own in zip(ready, columns):
        name = one.block.submodel.name
        base, _ = table._of[name]
        told = np.isfinite(values[name].deviations)
        wanted = np.linalg.norm(base.grouping @ root[own], axis=1)
        assert told.sum() == values[name].rank > 10
        np.testing.assert_allclose(values[name].deviations[told], wanted[told], rtol=SAME)
        np.testing.assert_allclose(values[name].values, base.of(identifier.found[name]))


def test_values_are_within_their_deviations(robot):
    true = {}
    errors = []
    for seed in range(4):
        # A weak prior: these say what rows alone tell.
        identifier = worked_in(robot, log(robot, 10.0, seed), weight=1e-6, warm_up=1.0)
        table = BaseTable(identifier.builder)
        for one in table.values(identifier.memories, identifier.found):
            base, names = table._of[one.submodel]
            block = next(
                known.block
                for known in identifier.memories
                if known.block.submodel.name == one.submodel
            )
            bodies = robot.parameters[list(block.submodel.links)]
            x = block.unknowns.join(bodies, np.full(len(block.unknowns.extras), 3.0))
            true[one.submodel] = base.of(x)
            told = np.isfinite(one.deviations)
            assert len(names) == len(one.values)
            errors.append((one.values - true[one.submodel])[told] / one.deviations[told])
    # Of some hundred numbers with a standard deviation of one.
    assert 0.7 < np.std(np.concatenate(errors)) < 1.3


def test_what_is_not_moved_has_no_deviation(robot):
    identifier = worked_in(robot, log(robot, 6.0, swing=0.0))
    values = BaseTable(identifier.builder).values(identifier.memories, identifier.found)
    assert len(values) == 3
    for one in values:
        # At rest in one pose, a weight and an offset are the same thing.
        assert np.isinf(one.deviations).all()
        assert 0 < one.rank < len(one.names)


def test_another_submodel_tells_an_offset_that_they_share(robot):
    """The shank hangs still while its foot is told by a neighbour: what that knows counts."""
    identifier = worked_in(robot, log(robot, 10.0))
    table = BaseTable(identifier.builder)
    both = {one.submodel: one for one in table.values(identifier.memories, identifier.found)}
    foot = next(one for one in identifier.memories if one.block.submodel.name == 'foot')
    foot.information = None
    alone = {one.submodel: one for one in table.values(identifier.memories, identifier.found)}
    assert set(alone) == {'upper_arm', 'thigh'}
    gained = alone['thigh'].deviations / both['thigh'].deviations
    assert (gained > 1.0 - SAME).all()
    assert gained.max() > 1.2
    same = alone['upper_arm'].deviations / both['upper_arm'].deviations
    np.testing.assert_allclose(same, 1.0, rtol=SAME)


def test_a_pause_is_no_time_with_rows(robot):
    samples = log(robot, 8.0)
    parts = equal_parts(samples, 1.0)
    steady, paused = make(robot, half_life=5.0), make(robot, half_life=5.0)
    for k, part in enumerate(parts):
        steady.add(part)
        part.stamp_ns[:] += 3_600_000_000_000 * (k >= 4)
        paused.add(part)
    for one, other in zip(steady.memories, paused.memories):
        assert other.seconds == pytest.approx(one.seconds, rel=0.01)
        if one.information is not None:
            assert other.information.count == pytest.approx(one.information.count, rel=0.01)


def test_time_that_is_set_back_does_not_strengthen_old_rows(robot):
    parts = equal_parts(log(robot, 8.0), 1.0)
    identifier = make(robot, half_life=5.0)
    for part in parts:
        identifier.add(part)
    before = {one.block.submodel.name: one.seconds for one in identifier.memories}
    counts = [one.information.count for one in identifier.memories if one.information]
    first = parts[0]
    first.stamp_ns[:] -= 500_000_000
    identifier.add(first)
    for one in identifier.memories:
        assert before[one.block.submodel.name] <= one.seconds
    after = [one.information.count for one in identifier.memories if one.information]
    assert all(b < a + 700.0 for a, b in zip(counts, after))
    assert identifier.stamp_ns == int(first.stamp_ns[-1])


def test_readings_without_noise_are_no_trouble(robot):
    identifier = worked_in(robot, log(robot, 10.0, noise=0.0), gate=4.0)
    found = identifier.refit()
    assert set(found.refitted) == {'upper_arm', 'thigh', 'foot'}
    for submodel in robot.submodels[1:]:
        links = list(submodel.links)
        mass = robot.parameters[links, 0].sum()
        assert found.parameters[links, 0].sum() == pytest.approx(mass, rel=1e-4)


def test_a_link_without_mass_is_a_body_in_what_is_found(robot):
    bodies = robot.parameters.copy()
    head = robot.link_names.index('head')
    bodies[head] = 0.0
    identifier = make(robot.with_parameters(bodies))
    for part in equal_parts(log(robot, 6.0), 1.0):
        identifier.add(part)
    found = identifier.refit()
    assert found.refitted
    assert found.least_margin > 0.0
    assert 0.0 < found.parameters[head, 0] < 0.01
    assert 'head' in identifier.widened
