# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The rviz file against the properties that rviz 14.3 knows.

Its look is not covered; that its topics are published is in ros/test_publishers.py.
"""

from pathlib import Path

import pytest
import yaml
from shared_data import SHARED

from inertial_estimation.config import EstimatorSettings

CONFIG = Path(__file__).parents[1] / 'config'
EVERY = {'Class', 'Name', 'Enabled', 'Value'}
DISPLAYS = {
    'Wrench': {
        'Topic', 'Force Color', 'Torque Color', 'Alpha', 'Force Arrow Scale',
        'Torque Arrow Scale', 'Arrow Width', 'History Length', 'Accept NaN Values',
    },
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
MIN_PUSH = 5.0
"""Forces from here on are to be seen [N]."""


@pytest.fixture(scope='module')
def manager():
    return yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())['Visualization Manager']


@pytest.fixture(scope='module')
def displays(manager):
    return manager['Displays']


def kind(item):
    plugin, _, name = item['Class'].partition('/')
    assert plugin == 'rviz_default_plugins'
    return name


def test_properties_are_known(displays):
    for display in displays:
        assert EVERY <= set(display) <= EVERY | DISPLAYS[kind(display)]
        for topic in (display[key] for key in ('Topic', 'Description Topic') if key in display):
            filtered = {'Filter size'} if kind(display) in FILTERED else set()
            wanted = {'Value', 'Depth', *TOPIC}
            assert wanted <= set(topic) <= wanted | filtered
            assert all(topic[policy] in words for policy, words in TOPIC.items())
            assert topic['Value'] and not topic['Value'].startswith('/')


def test_latched_topics_are_subscribed_so(displays):
    topics = [d.get('Topic') or d.get('Description Topic') for d in displays]
    latched = {t['Value'] for t in topics if t and t['Durability Policy'] == 'Transient Local'}
    assert latched == {'robot_description', 'wrench_estimator/inertia_markers'}


def test_arrows_of_small_forces_are_longer_than_wide(displays):
    for display in displays:
        if kind(display) == 'Wrench':
            # rviz hides an arrow that is shorter than its width.
            assert MIN_PUSH * display['Force Arrow Scale'] >= display['Arrow Width']
            assert display['Accept NaN Values'] is False


def test_every_kind_of_result_and_contact_has_a_display(displays):
    topics = [
        d['Topic']['Value'].removeprefix('wrench_estimator/') for d in displays if 'Topic' in d
    ]
    assert {topic.partition('/')[0] for topic in topics} == {
        'external_wrench', 'residual', 'internal_wrench', 'net_wrench', 'markers',
        'inertia_markers', 'joint_torques', 'external_joint_torques',
    }  # fmt: skip
    shown = [t.partition('/')[2] for t in topics if t.startswith('external_wrench/')]
    assert shown == list(EstimatorSettings.from_yaml(CONFIG / 'icub.yaml').contacts)


def test_fixed_frame_is_a_link(manager):
    path = SHARED / 'data' / 'models' / 'icub_v2_5.urdf'
    if not path.is_file():
        pytest.skip('needs the robot models in ../shared')
    assert f'<link name="{manager["Global Options"]["Fixed Frame"]}"' in path.read_text()
