# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bounds in the file of ``identify``.

Not covered: how solvers keep them; see `test_semidefinite.py` and `test_entropic.py`.
"""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.identify_bounds import read_bounds
from inertial_estimation.model.robot import Robot

INF = np.inf
BALL = {'center': [0, 0, 0], 'semi_axes': [1, 1, 1]}


@pytest.fixture
def blocks():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    model = JointModel(terms=(Term.VISCOUS, Term.COULOMB))
    return EquationBuilder(
        robot, EquationChoice(efforts=('shoulder', 'elbow'), joint=model)
    ).blocks


def test_each_bound_goes_to_its_link_joint_or_submodel(blocks):
    inner, tool = blocks
    found = read_bounds(
        {
            'mass': {'lower': [0.5, 2.0], 'tool': [0.1, INF]},
            'center_of_mass': {'tool': {'lower': [-1, -1, 0], 'upper': [1, 1, 0.5]}},
            'total_mass': {inner.submodel.name: [1.0, 9.0]},
            'extras': {'viscous': [0.0, INF], 'elbow.viscous': [0.1, 0.2]},
        },
        blocks,
    )
    one, other = found[inner.submodel.name], found[tool.submodel.name]
    lower = inner.unknowns.links.index('lower')
    np.testing.assert_array_equal(one.mass[lower], [0.5, 2.0])
    assert np.isinf(np.delete(one.mass, lower, axis=0)).all()
    assert one.center_of_mass is None
    np.testing.assert_array_equal(other.center_of_mass[0], [[-1, -1, 0], [1, 1, 0.5]])
    np.testing.assert_array_equal(one.total_mass, [1.0, 9.0])
    assert other.total_mass is None
    names = [str(extra) for extra in inner.unknowns.extras]
    bounds = dict(zip(names, one.extras.tolist(), strict=True))
    assert bounds['shoulder.viscous'] == [0.0, INF]
    assert bounds['elbow.viscous'] == [0.1, 0.2]
    assert bounds['elbow.coulomb'] == [-INF, INF]
    assert read_bounds({}, blocks) == {}


def test_an_ellipsoid_holds_what_its_axes_and_its_matrix_say(blocks, rng):
    center, axes = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.3, 0.5])
    said = {'center': center.tolist(), 'semi_axes': axes.tolist()}
    inner, tool = blocks
    read = read_bounds({'ellipsoids': {'tool': said}}, blocks)
    assert read[inner.submodel.name].ellipsoids is None
    (Q,) = read[tool.submodel.name].ellipsoids
    for direction in rng.standard_normal((20, 3)):
        outward = axes * direction / np.linalg.norm(direction)
        for share in (0.99, 1.01):
            x = np.append(center + share * outward, 1.0)
            assert (x @ Q @ x > 0) == (share < 1)
    rows = ((Q + Q.T) / 2).tolist()
    again = read_bounds({'ellipsoids': {'tool': rows, 'lower': said}}, blocks)
    np.testing.assert_array_equal(again[tool.submodel.name].ellipsoids[0], rows)
    both = again[inner.submodel.name].ellipsoids
    lower = inner.unknowns.links.index('lower')
    np.testing.assert_allclose(both[lower], Q, rtol=1e-15, atol=1e-15)
    assert np.isnan(np.delete(both, lower, axis=0)).all()


@pytest.mark.parametrize(
    ('said', 'match'),
    [
        ({'ellipsoids': {'hand': BALL}}, "link is named 'hand'"),
        ({'ellipsoids': {'tool': {'center': [0, 0, 0]}}}, 'expected center and semi_axes'),
        ({'ellipsoids': {'tool': BALL | {'semi_axes': [1, 0, 1]}}}, 'semi_axes above 0'),
        ({'ellipsoids': {'tool': BALL | {'center': [0, INF, 1]}}}, 'finite'),
        ({'ellipsoids': {'tool': [[1, 0, 0, 0]] * 3}}, 'expected 4 numbers'),
        ({'ellipsoids': {'tool': [[1, 0, 0]] * 4}}, 'expected 4 numbers'),
        ({'ellipsoids': {'tool': [[1, 2, 3, 4]] * 4}}, 'no symmetric matrix'),
        ({'ellipsoids': {'tool': np.eye(4).tolist()}}, 'no ellipsoid'),
        ({'ellipsoids': {'tool': (-np.eye(4)).tolist()}}, 'no ellipsoid'),
        ({'mass': {'hand': [0, 1]}}, "link is named 'hand'"),
        ({'mass': {'tool': [2, 1]}}, 'bounds.mass.tool.*nothing between 2 and 1'),
        ({'mass': {'tool': 2}}, 'expected 2 numbers'),
        ({'mass': [0, 1]}, 'names and values'),
        ({'center_of_mass': {'tool': {'lower': [0, 0, 0]}}}, 'lower and upper'),
        (
            {'center_of_mass': {'tool': {'lower': [0, 0, 0], 'upper': [1, 0, 1]}}},
            'tool along y.*between 0 and 0',
        ),
        ({'total_mass': {'arm': [0, 1]}}, "submodel is named 'arm'"),
        ({'total_mass': [3, 'x']}, 'expected 2 numbers'),
        ({'extras': {'elbow.offset': [0, 1]}}, 'elbow.offset'),
    ],
)
def test_bounds_that_make_no_sense_are_refused(blocks, said, match):
    with pytest.raises((ConfigError, NameNotFound)):
        read_bounds(said, blocks)
