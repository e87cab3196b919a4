# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Printed tables of S and M: which base parameters bodies can have, and when least squares suffices.

Not covered: the WAM (test_wam7), the humanoid of A (test_humanoid_identification).
"""

import numpy as np
import pytest
from published_experiments.published_tables import CORRECTED, TABLE_1, ThreeLinks
from published_experiments.shoulder_experiment import PACES, arm, arm_problem
from shared_data import SHARED

from inertial_estimation.identification.feasibility import Verdict
from inertial_estimation.identification.solvers.conic import Consistency
from inertial_estimation.identification.solvers.least_squares import solve_least_squares
from inertial_estimation.identification.solvers.manifold import solve_manifold

DATA = SHARED / 'data'
FULL, PHYSICAL = Consistency.FULL, Consistency.PHYSICAL
# Distance of beta_t2 in Table 1 of S, three digits.
PRINTED_DISTANCE = 1.65e-3


@pytest.mark.skipif(not (DATA / TABLE_1).exists(), reason='needs ../shared/data')
def test_table_1_of_s_has_the_printed_verdicts():
    pytest.importorskip('clarabel')
    links = ThreeLinks.read(DATA)
    first, second = (links.check(name, PHYSICAL) for name in ('beta_t1', 'beta_t2'))
    assert (first.verdict, second.verdict) == (Verdict.FEASIBLE, Verdict.INFEASIBLE)
    assert second.distance == pytest.approx(PRINTED_DISTANCE, rel=0.01)
    np.testing.assert_allclose(second.nearest, links.columns[CORRECTED], atol=2e-6)
    # With the triangle inequality neither is feasible, and the second is far from it.
    full = [links.check(name, FULL) for name in ('beta_t1', 'beta_t2')]
    assert all(one.verdict is Verdict.INFEASIBLE for one in full)
    assert full[1].distance > 30.0 * second.distance


def test_slow_paths_of_m_need_the_manifold():
    gaps = {}
    for pace in PACES:
        problem = arm_problem(pace)
        plain, consistent = solve_least_squares(problem), solve_manifold(problem, weight=None)
        assert consistent.consistent
        assert plain.consistent == (pace.duration <= 2.0)
        gaps[pace.duration] = np.abs(consistent.x - plain.x).max() / np.abs(arm()).max()
    # On fast paths both find the same.
    assert max(gap for duration, gap in gaps.items() if duration <= 1.0) < 1e-6
