# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings as parameters of nodes: names, types, ranges, and parameter files through ROS.

Not covered: the settings themselves (../test_config.py), changes of a configured node
(test_estimator_node.py).
"""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import BenchRobot
from rclpy.parameter import Parameter

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, settings_of
from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.settings import IDENTIFIER_NAME
from inertial_estimation.errors import NameNotFound
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.ros.parameters import READ_AT_START

CONFIG = Path(__file__).parents[2] / 'config'
LISTS = {'ft': 'ft_sensors', 'imu': 'imus', 'contact': 'contacts'}
NAMED = {names: [f'one_of_{names}'] for names in LISTS.values()}
NODES = pytest.mark.parametrize(
    ('kind', 'settings'),
    [(EstimatorNode, EstimatorSettings), (IdentifierNode, IdentifierSettings)],
)


@pytest.fixture
def make_node(context, keep):
    """Return a function that makes an unconfigured node."""

    def make(*words, kind=EstimatorNode, **parameters):
        given, arguments = parameters | {'autostart': False}, ['--ros-args', *map(str, words)]
        return keep(BenchRobot(context, given, kind, cli_args=arguments)).estimator

    return make


@NODES
def test_exactly_the_settings_are_declared(make_node, kind, settings):
    node, wanted = make_node(kind=kind, **NAMED), {}
    for item in settings_of(settings):
        owner = NAMED.get(LISTS.get(item.name.split('.')[0], ''), [''])[0]
        wanted[item.name.replace('<name>', owner)] = item
    declared = set(node.get_parameters_by_prefix('')) - {'start_type_description_service'}
    assert declared - {'use_sim_time'} == wanted.keys()
    for name, item in wanted.items():
        found = node.describe_parameter(name)
        assert found.description == item.description
        assert found.read_only == (name == READ_AT_START)


def test_files_of_both_nodes_and_command_line_are_merged(make_node):
    files = CONFIG / 'icub.yaml', CONFIG / 'identifier.yaml'
    words = '--params-file', files[0], '--params-file', files[1], '-p', 'half_life:=50.0'
    node = make_node(*words, kind=IdentifierNode)
    given = {name: v for f in files for name, v in load_parameters(f, IDENTIFIER_NAME).items()}
    given |= {'autostart': False, 'half_life': 50.0}
    assert node.settings == IdentifierSettings.from_dict(given)
    with pytest.raises(NameNotFound):
        make_node(*words)


@NODES
def test_empty_lists_of_a_file_are_empty(make_node, tmp_path, kind, settings):
    path = tmp_path / 'parameters.yaml'
    path.write_text('/**: {ros__parameters: {imus: [], ft_sensors: [], contacts: [sole]}}')
    found = make_node('--params-file', path, kind=kind).settings
    assert (found.imus, found.ft_sensors, found.contacts) == ((), (), ('sole',))
    assert settings().ft_sensors == ('all',)


def test_identifier_takes_over_timeouts(bench):
    node = bench(IdentifierNode).estimator
    (found,) = node.set_parameters([Parameter('joint_states.max_age', value=0.7)])
    assert found.successful and node.settings.joint_states.max_age == 0.7
    assert node.pipeline._inputs.assembler._joint_max_age_ns == 700_000_000
    (found,) = node.set_parameters([Parameter('refit.prior_weight', value=0.2)])
    assert not found.successful
