# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What filtered rows are worth: deviations that are stated, against the scatter over many logs.

Not covered: noise that is not white before the filter; then deviations are too small.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import two_link_urdf

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.evidence import Gathering, gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.preparation import Preparation, independent_share, prepare
from inertial_estimation.identification.priors import PriorRows
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

STEP = 1e-3
LOGS = 60
# Of a standard deviation told from 60 logs; three times 1 / sqrt(2 * 60).
SCATTER = 0.27
# Of values that are equal but for the order of sums.
ROUND_OFF = 1e-9
TERMS = (Term.VISCOUS, Term.OFFSET)


@pytest.fixture(scope='module')
def builder():
    robot = Robot.from_urdf(two_link_urdf(), fixed_link='body')
    joint = JointModel(terms=TERMS)
    return EquationBuilder(robot, EquationChoice(wrenches=False, efforts=('elbow',), joint=joint))


@pytest.fixture(scope='module')
def motion(builder):
    """Return a log without noise."""
    t = np.arange(5000) * STEP
    q = 0.8 * np.sin(3.1 * t) + 0.5 * np.sin(6.9 * t + 1.0)
    n = len(t)
    empty, nothing = np.zeros((n, 0, 3)), np.full((n, 1), np.nan)
    raw = SampleBatch(
        np.round(t * 1e9).astype(np.int64), q[:, None], nothing, nothing, empty, empty, empty,
        np.zeros((n, 0, 6)), efforts=np.zeros((n, 1)),
    )  # fmt: skip
    found = prepare(raw, Preparation(cutoff=0.0, edges=0.0)).samples
    (rows,) = builder.equations(found)
    x = builder.blocks[0].unknowns.join(builder.robot.parameters, np.array([0.7, 0.2]))
    Y, y, _ = rows['effort elbow']
    return replace(found, efforts=(Y @ x - y)[:, None])


def seen(builder, log, how):
    """Return what a log says."""
    samples = prepare(log, how).samples
    return gather(builder, samples, share=independent_share(how, STEP))


@pytest.mark.parametrize('every', [1, 40, 100])
# A prior of more weight would hold answers together that are as unsure as stated.
@pytest.mark.parametrize(
    ('method', 'options'), [('least_squares', {}), ('entropic', {'weight': PriorRows(0.1)})]
)
def test_deviations_are_those_of_many_logs(builder, motion, every, method, options):
    how = Preparation(every=every)
    values, stated = [], []
    for k in range(LOGS):
        noise = 0.3 * np.random.default_rng(k).normal(size=motion.efforts.shape)
        log = replace(motion, efforts=motion.efforts + noise)
        answer = fit(builder.robot, seen(builder, log, how), method, options).blocks[0].answer
        values.append(answer.x[-len(TERMS) :])
        stated.append(answer.deviations[-len(TERMS) :])
    told = np.sqrt(np.mean(np.square(stated), axis=0))
    np.testing.assert_allclose(told / np.std(values, axis=0), 1.0, rtol=0, atol=SCATTER)


def test_what_every_row_counts_changes_no_fit(builder, motion, rng):
    noisy = replace(motion, efforts=motion.efforts + rng.normal(size=motion.efforts.shape))
    samples = prepare(noisy, Preparation()).samples
    options = {'least_squares': {'noise': 1.0}, 'entropic': {'noise': 1.0, 'weight': 0.01}}
    for method in options:
        whole, part = (
            fit(builder.robot, gather(builder, samples, share=share), method, options[method])
            for share in (1.0, 0.25)
        )
        one, other = whole.blocks[0], part.blocks[0]
        np.testing.assert_allclose(other.answer.x, one.answer.x, rtol=1e-3)
        assert other.evidence.rows == one.evidence.rows
        for kind, residual in one.evidence.residuals(one.answer.x).items():
            assert other.evidence.residuals(one.answer.x)[kind] == pytest.approx(
                residual, rel=ROUND_OFF
            )


def test_shares_of_logs_are_merged(builder, motion):
    one, other = (gather(builder, motion, share=share)[0] for share in (0.5, 0.1))
    both = one.merge(other)
    n = len(motion)
    assert both.rows == {'effort elbow': 2 * n}
    assert both.kinds['effort elbow'].count == pytest.approx(0.6 * n)


@pytest.mark.parametrize('share', [0.0, -1.0, 1.1, np.nan])
def test_a_share_that_is_none_is_refused(builder, motion, share):
    with pytest.raises(InertialEstimationError):
        Gathering(builder).add(motion, share=share)


def test_rows_that_are_far_apart_count_fully():
    assert independent_share(Preparation(cutoff=0.0), STEP) == 1.0
    assert independent_share(Preparation(every=200), STEP) == 1.0
    assert independent_share(Preparation(every=1), STEP) == pytest.approx(
        1.8 * 10 * STEP, rel=0.01
    )
