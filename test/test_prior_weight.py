# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The weight of a prior: as it is said, and what it means as a log grows."""

from dataclasses import replace

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.identification.priors import (
    DEFAULT_PRIOR_WEIGHT,
    PriorRows,
    against_the_mean,
    prior_weight,
)
from inertial_estimation.model.robot import Robot


@pytest.mark.parametrize('rows', [1.0, 10.0, 0.5, 1e6])
def test_what_is_written_is_read(rows):
    assert prior_weight(str(PriorRows(rows))) == PriorRows(rows)


def test_a_number_is_a_share():
    assert prior_weight('0.01') == 0.01
    assert against_the_mean({'weight': 0.01}, 7.0) == {'weight': 0.01}


def test_rows_weigh_the_less_the_more_were_measured():
    assert against_the_mean({'weight': PriorRows(3.0)}, 600.0) == {'weight': 3.0 / 600.0}
    assert against_the_mean({}, 600.0) == {'weight': DEFAULT_PRIOR_WEIGHT.rows / 600.0}
    assert against_the_mean({'weight': None}, 600.0) == {'weight': None}


@pytest.mark.parametrize(
    'text',
    [
        '',
        'rows',
        '-rows',
        'ten-rows',
        '-1-rows',
        '0-rows',
        'inf-rows',
        '0',
        'nan',
        '1 row',
        '1e-30',
        '1e30',
        '1e30-rows',
    ],
)
def test_what_is_no_weight_is_named(text):
    with pytest.raises(ConfigError):
        prior_weight(text)


@pytest.mark.parametrize('rows', [0.0, -1.0, np.inf, np.nan, 1e-13, 1e13])
def test_a_number_of_rows_is_within_what_numbers_can_tell(rows):
    with pytest.raises(ModelError):
        PriorRows(rows)


def test_a_wrong_prior_is_forgotten_as_rows_grow():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    wrong = robot.with_parameters(1.5 * robot.parameters)
    builder = EquationBuilder(robot, EquationChoice(efforts=robot.joint_names))
    pulled = {}
    for count, weight in (
        (100, DEFAULT_PRIOR_WEIGHT),
        (10_000, DEFAULT_PRIOR_WEIGHT),
        (10_000, 0.03),
    ):
        model, _ = gather(builder, random_samples(robot, count))
        links = list(model.block.submodel.links)
        truth = model.block.unknowns.join(robot.parameters[links])
        # What is left of the rows has a variance of one, and nothing but the prior pulls.
        kinds = {
            kind: replace(rows, rho=rows.R @ truth, energy=rows.count)
            for kind, rows in model.kinds.items()
        }
        evidence = replace(model, kinds=kinds)
        x = fit(wrong, [evidence], options={'weight': weight}).blocks[0].answer.x
        squares = np.array(list(evidence.residuals(x).values())) ** 2
        pulled[count, weight] = np.sqrt(squares.mean() - 1.0)
    # 600 rows of 100 instants: ten of them are a share between 0.01 and 0.03.
    few, many, share = pulled.values()
    assert 0.0 < many < few / 3 < share
