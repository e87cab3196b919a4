# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The file that says how logs become rows: what it may hold, and what it may not."""

import pytest
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.errors import ConfigError
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model.robot import Robot

LOG = 'log: {time: t, joints: [elbow], positions: q}\n'


def read(tmp_path, text):
    path = tmp_path / 'identify.yaml'
    path.write_text(text)
    return IdentifySettings.from_yaml(path)


def test_a_file_with_all_it_may_hold(tmp_path):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    found = read(
        tmp_path,
        LOG + 'robot: {fixed_link: base}\npreparation: {cutoff: 5, every: 2}\n'
        'rows: {efforts: all, friction: [viscous], dead_zone: 0.01, gains: [elbow]}\n',
    )
    assert found.preparation.cutoff == 5.0
    assert isinstance(found.preparation.cutoff, float)
    choice = found.choice(robot)
    assert choice.efforts == robot.joint_names
    assert choice.joint.terms == (Term.VISCOUS,)
    assert (choice.joint.dead_zone, choice.gains) == (0.01, ('elbow',))
    assert (choice.dead_zones, choice.couplings) == ({}, ())
    assert read(tmp_path, 'parameters: robot.yaml').parameters == tmp_path / 'robot.yaml'


def test_dead_zones_by_joint_couplings_and_bounds(tmp_path):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    found = read(
        tmp_path,
        LOG + 'rows:\n  dead_zone: {elbow: 0.1}\n  couplings: [{joints: [elbow, shoulder], '
        'terms: [viscous]}]\nbounds: {mass: {tool: [0, 1]}}\n',
    )
    choice = found.choice(robot)
    assert choice.model_of('elbow').dead_zone == 0.1
    assert choice.model_of('shoulder').dead_zone == 0.0
    (coupling,) = choice.couplings
    assert (coupling.joints, coupling.terms) == (('elbow', 'shoulder'), (Term.VISCOUS,))
    assert found.bounds == {'mass': {'tool': [0, 1]}}


@pytest.mark.parametrize(
    ('text', 'said'),
    [
        (LOG + 'bounds: {maas: 3}\n', "'maas'; closest: mass"),
        ('rows: {}\n', "either 'log'"),
        (LOG + 'parameters: x.yaml\n', "either 'log'"),
        ('parameters: x.yaml\nrobot: {fixed_link: a}\n', 'leave it out'),
        (LOG + 'rws: {}\n', "'rws'; closest: rows"),
        (LOG + 'preparation: {cutof: 3.0}\n', "'cutof'"),
        (LOG + 'preparation: {cutoff: fast}\n', 'a number'),
        (LOG + 'preparation: {every: 1.5}\n', 'every'),
        (LOG + 'preparation: {every: 0}\n', 'at least 1'),
        (LOG + 'preparation: {order: 30}\n', 'order is 30, expected at most 10'),
        (LOG + 'robot: {joints: [[1, 2]]}\n', r'holds \[1, 2\]'),
        (LOG + 'robot: {joints: elbow}\n', 'a list'),
        (LOG.replace('q', '{columns: []}'), 'is empty'),
        (LOG.replace('q', '{columns: q, offset: [[1]]}'), 'a matrix'),
        (LOG + 'rows: [efforts]\n', 'names and values'),
        ('- 3\n', 'names and values'),
        (LOG.replace('q', '{columns: q, unit: inch}'), 'inch'),
    ],
)
def test_a_file_that_makes_no_sense_is_refused_with_its_name(tmp_path, text, said):
    with pytest.raises(ConfigError):
        read(tmp_path, text)


@pytest.mark.parametrize('value', ['1.0', '-3', 'often', '.inf', '[5]'])
def test_deviations_that_would_reject_all_are_refused(tmp_path, value):
    assert read(tmp_path, LOG + 'rows: {reject: 5}\n').reject == 5.0
    assert read(tmp_path, LOG).reject == 0.0
    with pytest.raises(ConfigError):
        _ = read(tmp_path, LOG + f'rows: {{reject: {value}}}\n').reject


@pytest.mark.parametrize(
    ('rows', 'said'),
    [
        ('{efforts: elbow}', 'list'),
        ('{efforts: [elbw]}', 'elbw'),
        ('{efforts: }', "'rows.efforts' is empty: list names, say all, or leave"),
        ('{base_link: true}', "'rows.base_link' is true, but 'base' is fixed"),
        ('{friction: [sticky]}', 'sticky'),
        ('{friction: [force_x]}', 'force_x'),
        ('{wrenches: 1}', 'true or false'),
        ('{dead_zone: -1.0}', 'dead_zone'),
        ('{dead_zone: {elbow: slow}}', 'dead_zone.elbow'),
        ('{couplings: 3}', 'couplings'),
        ('{couplings: [3]}', 'names and values'),
        ('{couplings: [{joint: elbow}]}', "'joint'"),
        ('{couplings: [{joints: [elbow]}]}', 'two joints'),
        ('{couplings: [{joints: [elbow, lift], terms: [offset]}]}', 'offset'),
    ],
)
def test_rows_that_cannot_be_built_are_refused(tmp_path, rows, said):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    settings = read(tmp_path, LOG + f'rows: {rows}\n')
    with pytest.raises((ConfigError, KeyError)):
        settings.choice(robot)


def test_offsets_of_sensors_that_there_are_not_are_refused(tmp_path):
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base', ft_sensors=[])
    with pytest.raises(ConfigError):
        read(tmp_path, LOG + 'rows: {efforts: all, offsets: all}\n').choice(robot)


def test_frozen_readings_of_bags_are_up_to_the_file_of_the_node(tmp_path):
    found = read(tmp_path, 'parameters: robot.yaml\nrows: {frozen_after: 0.1}\n')
    with pytest.raises(ConfigError):
        _ = found.frozen_after
    assert read(tmp_path, LOG + 'rows: {frozen_after: 0.1}\n').frozen_after == 0.1
    assert read(tmp_path, LOG).frozen_after == 0.2
