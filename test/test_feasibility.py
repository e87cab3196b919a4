# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which base parameters bodies can have: Table 1 of S, certificates, corrections.

Not covered: Table 6 of S, see `test_wam7`.
"""

import numpy as np
import pytest
from published_experiments.published_tables import TABLE_1, ThreeLinks
from shared_data import SHARED

from inertial_estimation.identification.feasibility import (
    MARGIN,
    Verdict,
    check_base_parameters,
)
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.unknowns import Extra, Term, Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import null_space

FULL, PHYSICAL = Consistency.FULL, Consistency.PHYSICAL
# Bodies that come near may be large, and the solver's tolerance is relative to that.
SOLVER = 1e-5
# Sideways the distance grows with the square only.
FLAT = 1e-4


@pytest.fixture
def table1():
    if not (SHARED / 'data' / TABLE_1).is_file():
        pytest.skip('the shared data folder is not beside this checkout')
    return ThreeLinks.read(SHARED / 'data')


def test_table_1_is_as_published_for_the_larger_cone(table1):
    assert table1.check('beta_t1', PHYSICAL).verdict is Verdict.FEASIBLE
    second = table1.check('beta_t2', PHYSICAL)
    assert second.verdict is Verdict.INFEASIBLE
    # Printed: 1.65e-3, and the vector with six digits.
    assert second.distance == pytest.approx(1.65e-3, abs=5e-6)
    np.testing.assert_allclose(second.nearest, table1.columns['beta_t2_corrected'], atol=5e-6)


def test_bodies_cannot_have_even_the_first_vector_of_table_1(table1):
    first, second = (table1.check(column, FULL) for column in ('beta_t1', 'beta_t2'))
    assert first.verdict is second.verdict is Verdict.INFEASIBLE
    assert first.distance == pytest.approx(2.0e-4, rel=0.05)
    assert second.distance == pytest.approx(5.6e-2, rel=0.02)


@pytest.mark.parametrize('column', ['beta_t1', 'beta_t2'])
@pytest.mark.parametrize('consistency', Consistency)
def test_corrections_pass_the_test(table1, column, consistency):
    corrected = table1.check(column, consistency)
    np.testing.assert_allclose(corrected.nearest, table1.base.of(corrected.x), atol=1e-9)
    margins = consistency.margins(table1.unknowns.split(corrected.x)[0])
    assert (margins > 0.9 * MARGIN).all()
    again = check_base_parameters(
        table1.base, corrected.nearest, table1.unknowns, consistency=consistency
    )
    assert again.margin > 0
    assert again.distance < SOLVER


def holds(certificate, base, values):
    """Return by how much values are outside of the half-space, in the solver's accuracy."""
    return certificate.offset - certificate.normal @ values


@pytest.mark.parametrize('consistency', Consistency)
def test_certificates_prove_without_the_solver(table1, consistency, rng):
    found = table1.check('beta_t2', consistency)
    proof = found.certificate
    assert holds(proof, table1.base, table1.columns['beta_t2']) > 0
    assert found.margin == pytest.approx(
        -holds(proof, table1.base, table1.columns['beta_t2']), rel=1e-3
    )
    for Z in proof.multipliers:
        assert np.linalg.eigvalsh(Z).min() > -1e-9
    # The identity that makes the half-space hold for every body.
    for x in rng.normal(size=(20, 30)):
        matrices = consistency.matrix(table1.unknowns.split(x)[0])
        traces = sum(np.trace(Z @ M) for Z, M in zip(proof.multipliers, matrices, strict=True))
        assert proof.normal @ table1.base.of(x) == pytest.approx(traces, abs=SOLVER)
    assert proof.mismatch < 1e-6
    for x in bodies(rng, 50):
        assert holds(proof, table1.base, table1.base.of(x)) < SOLVER


def bodies(rng, n):
    """Return unknowns of three strictly consistent links, (n, 30)."""
    roots = rng.normal(size=(n, 3, 4, 6))
    J = roots @ np.swapaxes(roots, -1, -2)
    second = np.trace(J[..., :3, :3], axis1=-2, axis2=-1)[..., None, None] * np.eye(3)
    inertia = second - J[..., :3, :3]
    i, j = [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]
    found = np.concatenate([J[..., 3, 3:], J[..., :3, 3], inertia[..., i, j]], axis=-1)
    return found.reshape(n, 30)


def test_random_bodies_are_feasible_for_both_cones(table1, rng):
    for x in bodies(rng, 5):
        for consistency in Consistency:
            values = table1.base.of(x)
            found = check_base_parameters(
                table1.base, values, table1.unknowns, consistency=consistency
            )
            assert found.verdict is Verdict.FEASIBLE
            assert found.certificate is None
            assert found.distance == 0.0
            np.testing.assert_array_equal(found.nearest, values)
            np.testing.assert_allclose(table1.base.of(found.x), values, atol=SOLVER)


def test_what_is_on_the_boundary_is_not_decided():
    """A point mass: no volume, and nothing wrong with it either."""
    unknowns = Unknowns(('link',))
    base = BaseParameters(np.arange(10), np.eye(10))
    point = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    found = check_base_parameters(base, point, unknowns)
    assert found.verdict is Verdict.UNDECIDED
    assert found.certificate is None
    assert 0 < found.distance < 1e-4
    assert FULL.margins(found.x) > 0


def test_printed_digits_may_decide(table1):
    values = table1.columns['beta_t1']
    exact = check_base_parameters(table1.base, values, table1.unknowns)
    loose = check_base_parameters(
        table1.base, values, table1.unknowns, rounding=np.full(len(values), 5e-3)
    )
    assert exact.verdict is Verdict.INFEASIBLE
    assert loose.verdict is Verdict.FEASIBLE
    assert loose.margin > exact.margin


@pytest.fixture
def arm(nested_humanoid):
    """Return base parameters of the root submodel, its unknowns and its null space."""
    submodel = nested_humanoid.submodels[0]
    links = tuple(nested_humanoid.links[k].name for k in submodel.links)
    return null_space(nested_humanoid, submodel), Unknowns(links)


@pytest.fixture
def spoilt(nested_humanoid, rng):
    parameters = nested_humanoid.parameters[list(nested_humanoid.submodels[0].links)]
    return parameters.reshape(-1) + 0.05 * rng.normal(size=parameters.size)


def test_feasibility_does_not_depend_on_the_columns_but_the_distance_does(arm, spoilt):
    null, unknowns = arm
    n = len(null)
    others = [k for k in range(n) if k % 10]
    orders = (None, [*range(0, n, 10), *others[::-1]])
    found = []
    for order in orders:
        base = BaseParameters.of_null_space(null, order)
        found.append(check_base_parameters(base, base.of(spoilt), unknowns))
    assert found[0].verdict is found[1].verdict is Verdict.INFEASIBLE
    assert found[0].margin == pytest.approx(found[1].margin, rel=1e-4)
    assert found[0].distance != pytest.approx(found[1].distance, rel=1e-3)


def test_bounds_count(arm, nested_humanoid):
    null, unknowns = arm
    base = BaseParameters.of_null_space(null)
    links = list(nested_humanoid.submodels[0].links)
    values = base.of(nested_humanoid.parameters[links].reshape(-1))
    total = nested_humanoid.parameters[links, 0].sum()
    free = check_base_parameters(base, values, unknowns)
    assert free.verdict is Verdict.FEASIBLE
    light = check_base_parameters(
        base, values, unknowns, bounds=Bounds(total_mass=np.array([0.0, total - 0.1]))
    )
    assert light.verdict is Verdict.INFEASIBLE
    assert light.margin == -np.inf
    assert holds(light.certificate, base, values) > 0
    assert light.distance > 0
    assert unknowns.split(light.x)[0][:, 0].sum() == pytest.approx(total - 0.1, abs=1e-4)


def test_negative_friction_is_infeasible_if_bounds_say_so():
    unknowns = Unknowns(('link',), (Extra('joint', Term.VISCOUS),))
    base = BaseParameters.parse(['link.Izz', 'joint.viscous'], unknowns.names)
    values = np.array([0.1, -0.2])
    assert check_base_parameters(base, values, unknowns).verdict is Verdict.FEASIBLE
    found = check_base_parameters(
        base, values, unknowns, bounds=Bounds(extras=np.array([[0.0, np.inf]]))
    )
    assert found.verdict is Verdict.INFEASIBLE
    assert found.distance == pytest.approx(0.2, abs=SOLVER)
    np.testing.assert_allclose(found.nearest, [0.1, 0.0], atol=FLAT)


def fingers(size):
    """Return unknowns, bodies and base parameters of three links like balls about a point."""
    unknowns = Unknowns(('near', 'middle', 'far'))
    ball = np.zeros(10)
    ball[0], ball[1], ball[[4, 6, 9]] = 1.0, 0.5, 0.01
    ball[[6, 9]] += 0.25
    factors = np.array([1.0, *[size] * 3, *[size**2] * 6])
    bodies_ = 2.0 * size**3 * np.tile(ball * factors, (3, 1))
    rows = np.eye(30)[[0, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 29, 25]]
    return unknowns, bodies_, BaseParameters.of_regressor(rows)


@pytest.mark.parametrize('size', [1.0, 0.1, 0.01])
def test_the_verdict_does_not_depend_on_the_size_of_bodies(size):
    unknowns, scale, base = fingers(size)
    values = base.of(scale.reshape(-1))
    found = check_base_parameters(base, values, unknowns, scale=scale)
    assert found.verdict is Verdict.FEASIBLE and found.distance == 0.0
    # As S prints them they are not exact, and the correction stays where they are.
    rounded = check_base_parameters(
        base, values, unknowns, scale=scale, rounding=np.full(len(values), 1e-12)
    )
    assert rounded.verdict is Verdict.FEASIBLE
    assert rounded.distance < SOLVER * np.abs(values).max()
    spoilt = scale.copy()
    spoilt[-1, [4, 6, 9]] = [1.0, 0.2, 0.2] * spoilt[-1, 6:7]
    spoilt[-1, 4] *= 3.0
    worse = check_base_parameters(base, base.of(spoilt.reshape(-1)), unknowns, scale=scale)
    assert worse.verdict is Verdict.INFEASIBLE and worse.certificate is not None


def test_certificates_hold_for_what_is_within_bounds(arm, nested_humanoid):
    null, unknowns = arm
    base = BaseParameters.of_null_space(null)
    true = nested_humanoid.parameters[list(nested_humanoid.submodels[0].links)].reshape(-1)
    total = true[::10].sum()
    bounds = Bounds(total_mass=np.array([0.0, total - 0.1]))
    found = check_base_parameters(base, base.of(true), unknowns, bounds=bounds)
    proof = found.certificate
    # Lighter bodies are within the bounds, and their base parameters in the half-space.
    for share in (0.1, 0.5, 0.9 * (total - 0.1) / total):
        assert holds(proof, base, base.of(share * true)) < SOLVER
    assert holds(proof, base, base.of(true)) > 0.0
