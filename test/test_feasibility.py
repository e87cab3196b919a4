# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Base parameters of consistent parameters: Table 1 of S, certificates, corrections."""

import numpy as np
import pytest
from shared_data import SHARED
from wam import link_symbols, table

from inertial_estimation.identification.feasibility import (
    Consistency,
    Verdict,
    check_base_parameters,
)
from inertial_estimation.identification.problem import Bounds
from inertial_estimation.identification.solvers.divergence import parameters_of
from inertial_estimation.identification.unknowns import Unknowns
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.identifiable import null_space

TABLE_1 = SHARED / 'data' / 'papers' / 'seed003_table1_3link.csv'
FULL, PHYSICAL = Consistency.FULL, Consistency.PHYSICAL
# Consistent parameters near a boundary may be large, and the solver's tolerance is relative.
SOLVER = 1e-5


class ThreeLinks:
    """The robot of Table 1 and the vectors that are printed."""

    unknowns = Unknowns(tuple(f'link_{k}' for k in (1, 2, 3)))

    def __init__(self):
        self.rows = table(TABLE_1)
        symbols = [symbol for k in (1, 2, 3) for symbol in link_symbols(k)]
        self.base = BaseParameters.parse([row['combination'] for row in self.rows], symbols)

    def values(self, column):
        return np.array([float(row[column]) for row in self.rows])

    def check(self, values, consistency, **options):
        if isinstance(values, str):
            values = self.values(values)
        return check_base_parameters(
            self.base, values, self.unknowns, consistency=consistency, **options
        )


@pytest.fixture(scope='module')
def table1():
    if not TABLE_1.is_file():
        pytest.skip('needs ../shared/data')
    return ThreeLinks()


def test_table_1_has_the_printed_verdicts(table1):
    first, second = (table1.check(column, PHYSICAL) for column in ('beta_t1', 'beta_t2'))
    assert (first.verdict, second.verdict) == (Verdict.FEASIBLE, Verdict.INFEASIBLE)
    # Printed: 1.65e-3, and the vector with six digits.
    assert second.distance == pytest.approx(1.65e-3, abs=5e-6)
    np.testing.assert_allclose(second.nearest, table1.values('beta_t2_corrected'), atol=5e-6)
    # With the triangle inequality neither is feasible.
    first, second = (table1.check(column, FULL) for column in ('beta_t1', 'beta_t2'))
    assert first.verdict is second.verdict is Verdict.INFEASIBLE
    assert first.distance == pytest.approx(2.0e-4, rel=0.05)
    assert second.distance == pytest.approx(5.6e-2, rel=0.02)
    # With fewer digits it may be feasible.
    loose = table1.check('beta_t1', FULL, rounding=np.full(table1.base.rank, 5e-3))
    assert loose.verdict is Verdict.FEASIBLE
    assert loose.margin > first.margin


def beyond(certificate, values):
    """Return the distance from the half-space of a certificate; negative: inside."""
    return certificate.offset - certificate.normal @ values


def consistent_unknowns(rng, n):
    """Return unknowns of three strictly consistent links, (n, 30)."""
    roots = rng.normal(size=(n, 3, 4, 6))
    return parameters_of(roots @ np.swapaxes(roots, -1, -2)).reshape(n, 30)


@pytest.mark.parametrize('consistency', Consistency)
def test_certificates_are_proofs_without_the_solver(table1, consistency, rng):
    found = table1.check('beta_t2', consistency)
    proof = found.certificate
    missed = beyond(proof, table1.values('beta_t2'))
    assert missed > 0
    assert found.margin == pytest.approx(-missed, rel=1e-3)
    assert all(np.linalg.eigvalsh(Z).min() > -1e-9 for Z in proof.multipliers)
    assert proof.mismatch < 1e-6
    again = table1.check(found.nearest, consistency)
    assert again.margin > 0 and again.distance < SOLVER
    # The identity by which the half-space holds all consistent parameters.
    for x in rng.normal(size=(20, 30)):
        matrices = consistency.matrix(table1.unknowns.split(x)[0])
        traces = sum(np.trace(Z @ M) for Z, M in zip(proof.multipliers, matrices, strict=True))
        assert proof.normal @ table1.base.of(x) == pytest.approx(traces, abs=SOLVER)
    for x in consistent_unknowns(rng, 50):
        assert beyond(proof, table1.base.of(x)) < SOLVER


@pytest.mark.parametrize('consistency', Consistency)
def test_consistent_parameters_are_feasible(table1, consistency, rng):
    for x in consistent_unknowns(rng, 5):
        values = table1.base.of(x)
        found = table1.check(values, consistency)
        assert found.verdict is Verdict.FEASIBLE
        assert found.certificate is None
        assert found.distance == 0.0
        np.testing.assert_allclose(table1.base.of(found.x), values, atol=SOLVER)


def test_point_mass_on_the_boundary_is_undecided():
    point = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.5])
    base = BaseParameters(np.arange(10), np.eye(10))
    found = check_base_parameters(base, point, Unknowns(('link',)))
    assert found.verdict is Verdict.UNDECIDED
    assert found.certificate is None
    assert 0 < found.distance < 1e-4
    assert FULL.margins(found.x) > 0


@pytest.fixture
def submodel(nested_humanoid):
    """Return null space, unknowns and true values of the root submodel."""
    one = nested_humanoid.submodels[0]
    links = tuple(nested_humanoid.links[k].name for k in one.links)
    truth = nested_humanoid.parameters[list(one.links)].reshape(-1)
    return null_space(nested_humanoid, one), Unknowns(links), truth


def test_bounds_count(submodel):
    null, unknowns, truth = submodel
    base, most = BaseParameters.of_null_space(null), truth[::10].sum() - 0.1
    assert check_base_parameters(base, base.of(truth), unknowns).verdict is Verdict.FEASIBLE
    bounds = Bounds(total_mass=np.array([0.0, most]))
    light = check_base_parameters(base, base.of(truth), unknowns, bounds=bounds)
    assert light.verdict is Verdict.INFEASIBLE
    assert light.margin == -np.inf
    assert light.distance > 0
    assert light.x[::10].sum() == pytest.approx(most, abs=1e-4)
    # The half-space holds the base parameters of lighter links.
    assert beyond(light.certificate, base.of(truth)) > 0
    for share in (0.1, 0.5, 0.9 * most / (most + 0.1)):
        assert beyond(light.certificate, base.of(share * truth)) < SOLVER


@pytest.mark.parametrize('size', [1.0, 0.1, 0.01])
def test_verdict_does_not_depend_on_the_size_of_links(size):
    """Three links like balls about a point, of 2 kg at a size of one."""
    unknowns = Unknowns(('near', 'middle', 'far'))
    ball = np.array([1.0, 0.5, 0.0, 0.0, 0.01, 0.0, 0.26, 0.0, 0.0, 0.26])
    ball *= 2.0 * size**3 * np.array([1.0, *[size] * 3, *[size**2] * 6])
    scale, mass, moment = np.tile(ball, (3, 1)), ball[0], 0.01 * ball[0] * size**2
    rows = np.eye(30)[[0, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 29, 25]]
    base = BaseParameters.of_regressor(rows)

    def check(x, **options):
        return check_base_parameters(
            base, base.of(x.reshape(-1)), unknowns, mass=mass, moment=moment, **options
        )

    found = check(scale)
    assert found.verdict is Verdict.FEASIBLE and found.distance == 0.0
    rounded = check(scale, rounding=np.full(base.rank, 1e-12))
    assert rounded.verdict is Verdict.FEASIBLE
    assert rounded.distance < SOLVER * np.abs(base.of(scale.reshape(-1))).max()
    spoilt = scale.copy()
    spoilt[-1, [4, 6, 9]] = [3.0, 0.2, 0.2] * spoilt[-1, 6:7]
    worse = check(spoilt)
    assert worse.verdict is Verdict.INFEASIBLE and worse.certificate is not None
