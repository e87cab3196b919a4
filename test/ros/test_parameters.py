# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The settings as parameters of the node, and the shipped files through the parser of ROS.

Reading and checking of values is in test_config.py, changes at run time in
test_estimator_node.py.
"""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import overrides
from rclpy.parameter import Parameter

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, settings_of
from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.settings import IDENTIFIER_NAME, NODE_NAME
from inertial_estimation.errors import NameNotFound
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.parameters import READ_AT_START

CONFIG = Path(__file__).parents[2] / 'config'
LISTS = {'ft': 'ft_sensors', 'imu': 'imus', 'contact': 'contacts'}
NAMED = {names: [f'one_of_{names}'] for names in LISTS.values()}


@pytest.fixture
def make_node(context):
    """Return a function that makes an unconfigured node."""
    made = []

    def make(*args, kind=EstimatorNode, **parameters):
        made.append(
            kind(
                context=context,
                cli_args=list(args),
                parameter_overrides=overrides(parameters | {'autostart': False}),
            )
        )
        return made[-1]

    yield make
    for node in made:
        node.destroy_node()


def all_settings(kind=EstimatorSettings):
    """Yield full name and setting of everything that a node with `NAMED` declares."""
    for item in settings_of(kind):
        owner = NAMED.get(LISTS.get(item.name.split('.')[0], ''), [''])[0]
        yield item.name.replace('<name>', owner), item


def test_every_setting_is_declared_and_described(make_node):
    node = make_node(**NAMED)
    for name, item in all_settings():
        described = node.describe_parameter(name)
        assert described.description == item.description
        assert described.additional_constraints == item.constraint
        ranges = [*described.floating_point_range, *described.integer_range]
        assert [(r.from_value, r.to_value) for r in ranges] == ([item.range] if item.range else [])
        assert described.read_only == (name == READ_AT_START)


def test_every_setting_of_the_identifier_is_declared_and_described(make_node):
    node = make_node(kind=IdentifierNode, **NAMED)
    for name, item in all_settings(IdentifierSettings):
        assert node.describe_parameter(name).description == item.description


def test_the_files_of_both_nodes_through_ros(make_node):
    """What the estimator's file says for all holds for the identifier; its own comes on top."""
    files = [str(CONFIG / name) for name in ('icub.yaml', 'identifier.yaml')]
    arguments = ['--ros-args', *(word for name in files for word in ('--params-file', name))]
    arguments += ['-p', 'sample_rate:=50.0']
    identifier = make_node(*arguments, kind=IdentifierNode)
    shared = EstimatorSettings.from_yaml(files[0]).to_parameters()
    own = load_parameters(files[0], IDENTIFIER_NAME) | load_parameters(files[1], IDENTIFIER_NAME)
    # The command line has the last word.
    expected = IdentifierSettings.from_dict(
        shared | own | {'autostart': False, 'sample_rate': 50.0}
    )
    assert identifier.settings == expected
    with pytest.raises(NameNotFound):
        make_node(*arguments)


def test_nothing_else_is_declared(make_node):
    declared = set(make_node(**NAMED).get_parameters_by_prefix(''))
    others = declared - {name for name, _ in all_settings()}
    assert others <= {'use_sim_time', 'start_type_description_service'}


def test_types_of_empty_lists_are_kept(make_node):
    node = make_node()
    (accepted,) = node.set_parameters([Parameter('joints', value=['knee'])])
    assert accepted.successful
    (refused,) = node.set_parameters([Parameter('joints', value=[1.0])])
    assert not refused.successful


def test_autostart_cannot_be_changed(make_node):
    (refused,) = make_node().set_parameters([Parameter(READ_AT_START, value=True)])
    assert not refused.successful


@pytest.mark.parametrize('name', ['icub', 'panda'])
def test_shipped_files_through_ros(make_node, name):
    path = CONFIG / f'{name}.yaml'
    node = make_node('--ros-args', '--params-file', str(path))
    expected = EstimatorSettings.from_yaml(path)
    assert node.settings.to_parameters() == expected.to_parameters() | {'autostart': False}
    for key in load_parameters(path, NODE_NAME):
        assert node.has_parameter(key)


def test_empty_list_in_a_parameter_file(make_node, tmp_path):
    path = tmp_path / 'parameters.yaml'
    path.write_text('/**: {ros__parameters: {imus: [], contacts: [sole]}}')
    settings = make_node('--ros-args', '--params-file', str(path)).settings
    assert (settings.imus, settings.contacts) == ((), ('sole',))


def test_groups_follow_the_lists(make_node):
    node = make_node(**NAMED, **{'contact.one_of_contacts.kind': 'force'})
    node.set_parameters([Parameter('contacts', value=['hand'])])
    settings = node._declared.collect()
    assert set(settings.contact) == {'hand'}
    assert node.has_parameter('contact.hand.kind')


@pytest.mark.parametrize('kind', [EstimatorNode, IdentifierNode])
def test_no_ft_sensors_in_a_file_are_none(make_node, tmp_path, kind):
    """An empty list there reaches both nodes, and is not that of a line left out."""
    path = tmp_path / 'robot.yaml'
    path.write_text('/**:\n  ros__parameters:\n    ft_sensors: []\n')
    arguments = ['--ros-args', '--params-file', str(path)]
    node = make_node(*arguments, kind=kind)
    assert node.settings.ft_sensors == ()
    assert make_node(kind=kind).settings.ft_sensors == ('all',)
