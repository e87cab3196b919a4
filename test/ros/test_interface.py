# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Names of running nodes: settings as parameters, parameter files; topics as documented and in rviz.

Not covered: the settings themselves (../test_config.py), changes of a configured node
(test_estimator_node.py).
"""

import re
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from threading import Event
from xml.etree import ElementTree

import pytest
from bench_robot import BenchRobot
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, settings_of
from inertial_estimation.config.files import load_parameters
from inertial_estimation.config.settings import IDENTIFIER_NAME
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.findings import Level, finding
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.background import Diagnostics
from inertial_estimation.ros.configured_node import READ_AT_START
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode

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
        assert found.read_only == (name in READ_AT_START)


def test_files_of_both_nodes_and_command_line_are_merged(make_node):
    files = CONFIG / 'icub.yaml', CONFIG / 'identifier.yaml'
    words = '--params-file', files[0], '--params-file', files[1], '-p', 'half_life:=50.0'
    node = make_node(*words, kind=IdentifierNode)
    given = {name: v for f in files for name, v in load_parameters(f, IDENTIFIER_NAME).items()}
    given |= {'autostart': False, 'half_life': 50.0}
    assert node.settings == IdentifierSettings.from_dict(given)
    with pytest.raises(NameNotFound):
        make_node(*words)


@pytest.mark.parametrize(
    ('in_file', 'given', 'used'),
    [
        ('frozen_after: 20', '30.0', None),
        ('frozen_after: 0.1', 'abc', None),
        ('autostart: true', '0', None),
        ('imus: [head]', '[true]', None),
        ('imus: [head]', '[]', None),
        ('frozen_after: 0.1', '1e-1', 0.1),
        ('fixed_link: root', 'sole', 'sole'),
    ],
)
def test_command_line_of_another_type_is_not_lost(make_node, tmp_path, in_file, given, used):
    """ROS keeps one value of each type, and uses the first type of its own order."""
    path, name = tmp_path / 'parameters.yaml', in_file.split(':')[0]
    path.write_text(f'/**: {{ros__parameters: {{{in_file}}}}}')
    words = '--params-file', path, '-p', f'{name}:={given}', '-p', f'another:{name}:=other'
    if used is None:
        with pytest.raises(ConfigError, match=name):
            make_node(*words)
    else:
        assert getattr(make_node(*words).settings, name) == used


@NODES
def test_files_are_named_at_the_start_only(make_node, kind, settings):
    """They are what parameters name that end so; no service may choose what is written."""
    node = make_node(kind=kind)
    files = [one.name for one in settings_of(settings) if one.name.endswith('file')]
    for name in files:
        (answer,) = node.set_parameters([Parameter(name, value='/tmp/other')])
        assert not answer.successful
    assert len(files) >= 3 and node.settings == node._declared.collect()


@NODES
def test_empty_lists_of_a_file_are_empty(make_node, tmp_path, kind, settings):
    path = tmp_path / 'parameters.yaml'
    path.write_text('/**: {ros__parameters: {imus: [], ft_sensors: [], contacts: [sole]}}')
    found = make_node('--params-file', path, kind=kind).settings
    assert (found.imus, found.ft_sensors, found.contacts) == ((), (), ('sole',))
    assert settings().ft_sensors == ('all',)


def test_findings_of_every_level_are_logged(make_node, capfd):
    """In one report: rclpy refuses another severity from a line that has logged before."""
    diagnostics = Diagnostics(make_node(), 'robot')
    found = [finding('clock', level.name, level=level, what='jumps') for level in Level]
    diagnostics.report(lambda: [Status('sensors', found)], is_logged=True)
    diagnostics.destroy()
    logged = capfd.readouterr().err
    assert all(f'{level.name}: jumps' in logged for level in Level)


def test_reports_wait_beside_windows_that_are_judged(make_node):
    diagnostics, made = Diagnostics(make_node(), 'robot'), []
    begun, end = Event(), Event()
    diagnostics.report(lambda: (begun.set(), end.wait())[2:], is_logged=True)
    begun.wait()
    for name, limit in (('window', 1), ('another', 1), ('report', 2), ('next', 2)):
        make = partial(lambda one: made.append(one) or [], name)
        diagnostics.report(make, is_logged=True, limit=limit)
    end.set()
    diagnostics.destroy()
    assert made == ['window', 'report']


# Topics and services

PAGE = CONFIG.parent / 'docs' / 'topics.md'
OF_ROS = re.compile(
    '/(rosout|parameter_events|.*/transition_event|.*/(get|set|list|describe)_parameter.*'
    '|.*/set_parameters_atomically|.*/get_type_description'
    '|.*/(change_state|get_state|get_available_(states|transitions)|get_transition_graph))'
)
EVERYTHING = {
    # Its name is given, as the page has it.
    'ft.arm_sensor.temperature_topic': 'ft/arm_sensor/temperature_topic',
    'outputs.internal_wrench_joints': ['knee'],
    'outputs.net_wrench_links': ['hand'],
    'contact.sole.kind': 'surface',
    'contact.sole.friction': 0.5,
    'contact.sole.size': [0.2, 0.1],
}


def documented(node):
    """Return patterns of topics by direction, with the types of their row."""
    section = PAGE.read_text(encoding='utf-8').split(f'## {node}\n')[1].split('\n## ')[0]
    found = {'in': {}, 'out': {}, 'srv': {}}
    rows = re.findall(r'^\| (in|out|srv) \| (.*?) \| (.*?) \|', section, re.M)
    for direction, names, types in rows:
        for name in re.findall('`(.*?)`', names):
            absolute = name if name.startswith('/') else '/' + name.replace('~', node)
            found[direction][re.sub('<.*?>', '[^/]+', absolute)] = types
    return found


@pytest.mark.parametrize('make', [EstimatorNode, IdentifierNode], ids=lambda one: one.__name__)
def test_page_of_topics_is_current(bench, make):
    node = bench(make, **EVERYTHING).estimator
    name, pages = node.get_name(), documented(node.get_name())
    inherited = documented('wrench_estimator')['in'] if make is IdentifierNode else {}
    for direction, running in (
        ('in', node.get_subscriber_names_and_types_by_node(name, '/')),
        ('out', node.get_publisher_names_and_types_by_node(name, '/')),
        ('srv', node.get_service_names_and_types_by_node(name, '/')),
    ):
        ours = {topic: kinds for topic, kinds in running if not OF_ROS.fullmatch(topic)}
        patterns = pages[direction] | (inherited if direction == 'in' else {})
        for topic, kinds in ours.items():
            rows = [types for pattern, types in patterns.items() if re.fullmatch(pattern, topic)]
            assert any(kind.split('/')[-1] in types for types in rows for kind in kinds), topic
        for pattern in pages[direction]:
            assert any(re.fullmatch(pattern, topic) for topic in ours), pattern


@pytest.mark.parametrize('make', [EstimatorNode, IdentifierNode], ids=lambda one: one.__name__)
def test_policy_allows_what_nodes_have(bench, make):
    node = bench(make, **EVERYTHING, use_sim_time=True).estimator
    name, policy = node.get_name(), ElementTree.parse(CONFIG / 'policy.xml')
    (profile,) = policy.iterfind(f'.//profile[@node="{name}"]')
    for rule, running in (
        ('subscribe', node.get_subscriber_names_and_types_by_node(name, '/')),
        ('publish', node.get_publisher_names_and_types_by_node(name, '/')),
        ('reply', node.get_service_names_and_types_by_node(name, '/')),
    ):
        (group,) = profile.iterfind(f'*[@{rule}="ALLOW"]')
        allowed = ['/' + one.text.replace('~', name).lstrip('/') for one in group]
        for topic, _ in running:
            assert any(fnmatchcase(topic, one) for one in allowed), topic


def test_every_topic_of_the_rviz_file_is_published(bench):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    pytest.importorskip('icub_models', reason='needs the URDF of icub-models')
    from inertial_estimation.simulation.description import icub_urdf

    types = {'Wrench': 'WrenchStamped', 'Effort': 'JointState', 'MarkerArray': 'MarkerArray'}
    rviz = yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())
    settings = EstimatorSettings.from_yaml(CONFIG / 'icub.yaml')
    given = {name: value for name, value in settings.to_parameters().items() if value != []}
    given |= {
        'outputs.internal_wrench_joints': ['l_knee'], 'outputs.net_wrench_links': ['chest'],
        'robot_description': icub_urdf(),
    }  # fmt: skip
    node = bench(**given).node
    for display in rviz['Visualization Manager']['Displays']:
        kind = types.get(display['Class'].partition('/')[2])
        if kind is not None:
            topic = display['Topic']
            (found,) = node.get_publishers_info_by_topic('/' + topic['Value'].lstrip('/'))
            latched = topic['Durability Policy'] == 'Transient Local'
            assert found.topic_type.endswith(f'/{kind}'), topic
            assert (found.qos_profile.durability == DurabilityPolicy.TRANSIENT_LOCAL) >= latched
