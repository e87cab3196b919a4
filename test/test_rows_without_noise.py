# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Base parameters from rows without noise, as ``identify`` finds them: noise levels, then a method.

The weight of the prior is the default one. Not covered: filters, which change motions and are
tested with preparation.
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.information import weighted_sum
from inertial_estimation.identification.noise import MIN_RELATIVE_NOISE
from inertial_estimation.identification.result import Grade
from inertial_estimation.identification.row_space import RowSpace
from inertial_estimation.identification.solvers.divergence import whitening
from inertial_estimation.identification.solvers.methods import SOLVERS
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

INSTANTS = 200
OFF = 0.1
"""Of the prior, in each whitened coordinate."""
REACHED = dict.fromkeys(SOLVERS, 1e-9) | {'mass_points': 10 * MIN_RELATIVE_NOISE}
"""
Relative error. A prior pulls by about its weight times the square of the noise that exact rows are
given, 1e-12 of the signal. Masses at points are held by their regularization, which moves the fit
by about that noise itself.
"""


@pytest.fixture
def arm():
    """Return an arm on a table with a sensor at its wrist."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


@pytest.fixture
def exact(arm, rng):
    """Return evidence of each submodel without noise, with its truth."""
    q, v, a = rng.normal(size=(3, INSTANTS, 3))
    none = np.zeros((INSTANTS, 0, 3))
    samples = SampleBatch(
        np.arange(1, INSTANTS + 1), q, v, a, none, none, none, np.zeros((INSTANTS, 1, 6)),
        efforts=np.zeros((INSTANTS, 3)),
    )  # fmt: skip
    found = []
    for one in gather(EquationBuilder(arm, EquationChoice(efforts=arm.joint_names)), samples):
        prior = arm.parameters[list(one.block.submodel.links)]
        moves = OFF * rng.normal(size=(len(prior), 10, 1))
        truth = one.block.unknowns.join(prior + (whitening(prior) @ moves)[..., 0])
        kinds = {
            name: replace(part, rho=part.R @ truth, energy=0.0) for name, part in one.kinds.items()
        }
        found.append((replace(one, kinds=kinds), truth))
    return found


@pytest.mark.parametrize('method', sorted(SOLVERS))
def test_base_parameters_are_exact(method, arm, exact):
    result = fit(arm, [one for one, _ in exact], method)
    assert len(result.blocks) == len(exact) == 2
    for block, (one, truth) in zip(result.blocks, exact, strict=True):
        answer = block.answer
        assert answer.grade is Grade.OPTIMAL
        parts = list(one.kinds.values())
        space = RowSpace.of(weighted_sum(parts, [1.0] * len(parts)).R)
        base, expected = (space.directions.T @ (space.scales * x) for x in (answer.x, truth))
        error = np.linalg.norm(base - expected) / np.linalg.norm(expected)
        assert error <= REACHED[method]
        assert not np.isnan(answer.deviations).any()
