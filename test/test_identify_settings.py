# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The file of settings of ``identify``: its values, and what is refused."""

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.config.values import record
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.identify_settings import (
    BoundSettings,
    IdentifySettings,
    submodel_bounds,
)
from inertial_estimation.model.robot import Robot

LOG = 'log: {time: t, joints: [elbow], positions: q}\n'
INF = np.inf


@pytest.fixture
def robot():
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


def read(tmp_path, text):
    path = tmp_path / 'identify.yaml'
    path.write_text(text)
    return IdentifySettings.from_yaml(path)


def test_dead_zone_is_of_all_efforts_or_of_named_joints(tmp_path, robot):
    everywhere = dict.fromkeys(robot.joint_names, 0.1)
    for zone, wanted in (('0.1', everywhere), ('{elbow: 0.1}', {'elbow': 0.1})):
        found = read(tmp_path, f'{LOG}rows: {{efforts: all, dead_zone: {zone}}}\n')
        assert found.choice(robot).dead_zones == wanted


def blocks_of(robot):
    friction = (Term.VISCOUS, Term.COULOMB)
    choice = EquationChoice(efforts=('shoulder', 'elbow'), friction=friction)
    return EquationBuilder(robot, choice).blocks


def bounds_of(robot, given):
    return submodel_bounds(record(BoundSettings, given, 'bounds'), blocks_of(robot))


def test_each_bound_goes_to_its_link_joint_or_submodel(robot):
    inner, tool = blocks_of(robot)
    found = bounds_of(
        robot,
        {
            'mass': {'lower': [0.5, 2.0], 'tool': [0.1, INF]},
            'center_of_mass': {'tool': [[-1, -1, 0], [1, 1, 0.5]]},
            'total_mass': {inner.submodel.name: [1.0, 9.0]},
            'extras': {'viscous': [0.0, INF], 'elbow.viscous': [0.1, 0.2]},
        },
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
    extras = dict(zip(names, one.extras.tolist(), strict=True))
    assert extras['shoulder.viscous'] == [0.0, INF]
    assert extras['elbow.viscous'] == [0.1, 0.2]
    assert extras['elbow.coulomb'] == [-INF, INF]
    assert bounds_of(robot, {}) == bounds_of(robot, {'mass': None}) == {}


def test_ellipsoid_holds_what_its_axes_state(robot, rng):
    center, axes = np.array([0.1, -0.2, 0.3]), np.array([0.2, 0.3, 0.5])
    given = {'center': center.tolist(), 'semi_axes': axes.tolist()}
    inner, tool = blocks_of(robot)
    found = bounds_of(robot, {'ellipsoids': {'tool': given}})
    assert found[inner.submodel.name].ellipsoids is None
    (Q,) = found[tool.submodel.name].ellipsoids
    for direction in rng.standard_normal((20, 3)):
        outward = axes * direction / np.linalg.norm(direction)
        for share in (0.99, 1.01):
            x = np.append(center + share * outward, 1.0)
            assert (x @ Q @ x > 0) == (share < 1)


@pytest.mark.parametrize(
    'text',
    [
        LOG + 'rws: {}\n',
        LOG + 'rows: {efforts: [elbw]}\n',
        LOG + 'robot: {fixed_link: base}\nrows: {base_link: true}\n',
        LOG + 'payloads: {disc: {frame: tip, mass: -1.0, logs: [a]}}',
        LOG + 'bounds: {mass: {hand: [0, 1]}}',
        LOG + 'bounds: {mass: {tool: [2, 1]}}',
        LOG + 'bounds: {extras: {elbow.offset: [0, 1]}}',
    ],
)
def test_wrong_file_is_refused(tmp_path, robot, text):
    def use(found):
        submodel_bounds(found.bounds, EquationBuilder(robot, found.choice(robot)).blocks)

    with pytest.raises((ConfigError, NameNotFound)):
        use(read(tmp_path, text))
