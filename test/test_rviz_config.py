# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The rviz file against the properties that rviz 14.3 knows.

How it looks is not covered; that its topics are published is in ros/test_estimator_node.py.
"""

from pathlib import Path

import pytest

from inertial_estimation.config import EstimatorSettings

yaml = pytest.importorskip('yaml', reason='needs PyYAML')

CONFIG = Path(__file__).parents[1] / 'config'
EVERY = {'Class', 'Name', 'Enabled', 'Value'}
WRENCH = {
    'Topic', 'Force Color', 'Torque Color', 'Alpha', 'Force Arrow Scale', 'Torque Arrow Scale',
    'Arrow Width', 'History Length', 'Accept NaN Values',
}  # fmt: skip
DISPLAYS = {
    'Wrench': WRENCH,
    'Effort': {
        'Topic', 'Robot Description', 'TF Prefix', 'Alpha', 'Width', 'Scale', 'History Length',
    },
    'RobotModel': {
        'Description Source', 'Description Topic', 'Description File', 'TF Prefix', 'Alpha',
        'Visual Enabled', 'Collision Enabled', 'Mass Properties', 'Update Interval',
    },
    'MarkerArray': {'Topic', 'Namespaces'},
    'TF': {'Marker Scale', 'Show Arrows', 'Show Axes', 'Show Names', 'Update Interval'},
    'Grid': {'Alpha', 'Cell Size', 'Plane', 'Plane Cell Count', 'Reference Frame', 'Color'},
    'Axes': {'Alpha', 'Length', 'Radius', 'Reference Frame'},
}  # fmt: skip
TOPIC = {
    'History Policy': {'Keep Last', 'Keep All', 'System Default'},
    'Reliability Policy': {'Reliable', 'Best Effort', 'System Default'},
    'Durability Policy': {'Transient Local', 'Volatile', 'System Default'},
}
FILTERED = {'Wrench', 'Effort'}
TOOLS = {'Interact', 'MoveCamera', 'Select', 'FocusCamera', 'Measure'}
PANELS = {'Displays', 'Views', 'Time', 'Selection', 'Tool Properties'}
SMALLEST_PUSH = 5.0
"""Forces from here on are to be seen [N]."""


@pytest.fixture(scope='module')
def rviz():
    return yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())


@pytest.fixture(scope='module')
def displays(rviz):
    return rviz['Visualization Manager']['Displays']


def kind(item):
    plugin, _, name = item['Class'].partition('/')
    assert plugin == 'rviz_default_plugins'
    return name


def test_every_property_is_known(displays):
    for display in displays:
        assert set(display) - EVERY <= DISPLAYS[kind(display)]
        assert set(display) >= EVERY


def test_every_topic_is_a_map_with_allowed_words(displays):
    topics = [(d, d[key]) for d in displays for key in ('Topic', 'Description Topic') if key in d]
    assert topics
    for display, topic in topics:
        expected = {'Value', 'Depth', *TOPIC} | ({'Filter size'} & set(topic))
        assert set(topic) == expected
        assert kind(display) in FILTERED or 'Filter size' not in topic
        for policy, words in TOPIC.items():
            assert topic[policy] in words
        assert topic['Value'] and not topic['Value'].startswith('/')


def test_the_description_is_latched(displays):
    (model,) = (d for d in displays if kind(d) == 'RobotModel')
    assert model['Description Topic']['Durability Policy'] == 'Transient Local'
    assert model['Description Topic']['Depth'] == 1


def test_the_bodies_of_links_are_latched(displays):
    (bodies,) = (d for d in displays if d.get('Topic', {}).get('Value', '').endswith('ia_markers'))
    assert bodies['Topic']['Durability Policy'] == 'Transient Local'


def test_arrows_of_small_forces_are_longer_than_wide(displays):
    wrenches = [d for d in displays if kind(d) == 'Wrench']
    assert wrenches
    for display in wrenches:
        # rviz hides an arrow that is shorter than its width.
        assert SMALLEST_PUSH * display['Force Arrow Scale'] >= display['Arrow Width']
        assert display['Accept NaN Values'] is False


def test_one_wrench_for_each_contact_of_the_icub(displays):
    prefix = 'wrench_estimator/external_wrench/'
    topics = [d['Topic']['Value'] for d in displays if kind(d) == 'Wrench']
    shown = [topic.removeprefix(prefix) for topic in topics if topic.startswith(prefix)]
    assert shown == list(EstimatorSettings.from_yaml(CONFIG / 'icub.yaml').contacts)


def test_all_kinds_of_results_have_a_display(displays):
    topics = {d['Topic']['Value'].split('/')[1] for d in displays if 'Topic' in d}
    wrenches = {'external_wrench', 'residual', 'internal_wrench', 'net_wrench'}
    markers = {'markers', 'inertia_markers'}
    assert topics == wrenches | markers | {'joint_torques', 'external_joint_torques'}


def test_the_frame_of_the_world_view_is_a_link(rviz):
    models = Path(__file__).parents[2] / 'shared' / 'data' / 'models'
    if not models.is_dir():
        pytest.skip('needs the robot descriptions in ../shared')
    frame = rviz['Visualization Manager']['Global Options']['Fixed Frame']
    assert f'<link name="{frame}"' in (models / 'icub_v2_5.urdf').read_text()


def test_tools_views_and_panels_exist(rviz):
    manager = rviz['Visualization Manager']
    assert {kind(tool) for tool in manager['Tools']} <= TOOLS
    assert kind(manager['Views']['Current']) == 'Orbit'
    panels = {panel['Class'].partition('/') for panel in rviz['Panels']}
    assert {plugin for plugin, _, _ in panels} == {'rviz_common'}
    assert {name for _, _, name in panels} <= PANELS
