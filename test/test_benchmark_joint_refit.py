# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The benchmark of joint refits times what it says, beside a peer that solves the same rows.

Not covered: the durations; they say something about a machine, not about the code.
"""

import numpy as np
import pytest

pytest.importorskip('icub_models', reason='the benchmark runs on the iCub of icub-models')

from inertial_estimation.benchmark import joint_refit
from inertial_estimation.identification.recursion.joint_refit import joint_refit as refit


@pytest.fixture(scope='module')
def now():
    return joint_refit.situation(8)


def test_all_links_have_rows_and_the_last_refit_is_near(now):
    assert sum(len(one.block.submodel.links) for one in now.known) == 33 + 6
    assert len(now.known) == 7
    assert all(one.information is not None for one in now.known)
    found = refit(now.known, now.weight)
    for bodies in found.bodies:
        one = bodies.knowledge
        start = now.start[one.block.submodel.name]
        moved = one.largest_change(bodies.parameters - start)
        assert moved < 0.5 * one.largest_change(bodies.parameters - one.prior)


def test_what_holds_the_base_is_known(now):
    found = refit(now.known, now.weight)
    for name, offset in found.offsets.items():
        wanted = joint_refit.OFFSET[['x', 'y', 'z'].index(name[-1]) + 3 * ('moment' in name)]
        # They wander by 0.3 N and 0.03 Nm in a second.
        assert offset == pytest.approx(wanted, abs=0.05 if 'moment' in name else 0.5)


def test_the_peer_solves_the_same_rows(now):
    pytest.importorskip('cvxpy', reason='the peer')
    pytest.importorskip('clarabel', reason='the peer')
    found = refit(now.known, now.weight)
    bodies, offsets = joint_refit.with_cvxpy(now.known, now.weight)
    assert len(offsets) == len(found.offsets)
    for one, mine in zip(now.known, found.bodies, strict=True):
        theirs = mine.x.copy()
        theirs[: one.block.unknowns.n_inertial] = bodies[one.block.submodel.name].reshape(-1)
        names = tuple(found.offsets)
        theirs[one.offsets] = [offsets[names.index(name)] for name in one.offset_names]
        # Another prior, the same rows: what both leave of them is noise.
        left = one.information.squared_residual(theirs) / one.information.count
        assert left == pytest.approx(
            one.information.squared_residual(mine.x) / one.information.count, rel=0.1
        )


def test_a_short_run_fills_the_report():
    durations = joint_refit.measure(rounds=1)
    assert all(len(row) == len(joint_refit.COLUMNS) for row in joint_refit.rows(durations))
    report = joint_refit.as_dict(durations)
    assert len(report['goals']) == 6
    assert all(np.isfinite(value) for value in report['goals'].values())
