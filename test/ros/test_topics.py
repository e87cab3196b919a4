# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""docs/topics.md names the topics and services of the running nodes, with their types."""

import re
from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode

PAGE = Path(__file__).parents[2] / 'docs' / 'topics.md'
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
