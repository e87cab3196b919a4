# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings: strict reading, checks as a set; files that readers take or refuse; the exceptions.

That the node declares the same parameters is in ros/test_interface.py; that names belong to a
robot is checked where the robot is built. Not covered: what the nodes make of a refused file
(ros/test_identifier_node.py, ros/test_model_updates.py), and bags.
"""

import pickle
from dataclasses import replace
from pathlib import Path

import pytest

from inertial_estimation import errors
from inertial_estimation.calibration import calibration_file
from inertial_estimation.config import (
    ContactSettings,
    EstimatorSettings,
    FtSettings,
    IdentifierSettings,
    ImuSettings,
    JointStateSettings,
    settings_of,
)
from inertial_estimation.config.files import load_mapping, load_parameters
from inertial_estimation.config.settings import IDENTIFIER_NAME
from inertial_estimation.errors import ConfigError, InertialEstimationError, NameNotFound
from inertial_estimation.model import parameter_update
from inertial_estimation.model.urdf import load_text, parse

CONFIG = Path(__file__).parents[1] / 'config'
READ = EstimatorSettings.from_dict


def test_nested_dotted_and_made_by_hand_are_the_same():
    assert READ({}) == EstimatorSettings()
    dotted = READ({
        'ft_sensors': ['leg'], 'imus': ['head'], 'ft.leg.max_age': 0.2, 'ft': {'leg.topic': 'a'},
        'joint_states.max_age': 0.3,
    })  # fmt: skip
    nested = READ({
        'ft_sensors': ['leg'], 'imus': ['head'], 'ft': {'leg': {'max_age': 0.2, 'topic': 'a'}},
        'joint_states': {'max_age': 0.3},
    })  # fmt: skip
    made = EstimatorSettings(
        ft_sensors=('leg',), imus=['head'], ft={'leg': FtSettings(max_age=0.2, topic='a')},
        joint_states=JointStateSettings(max_age=0.3),
    )  # fmt: skip
    assert dotted == nested == made
    assert dotted.imu == {'head': ImuSettings()}
    assert READ(made.to_parameters()) == made
    # Names fill in what is empty.
    settings = READ({'imus': ['head'], 'contacts': ['sole'], 'imu.head.topic': '/head/imu'})
    assert settings.ft_of('leg') == FtSettings(topic='ft/leg')
    assert settings.imu_of('head') == ImuSettings(topic='/head/imu', frame='head')
    assert settings.contact_of('sole') == ContactSettings(frame='sole')


@pytest.mark.parametrize(
    ('given', 'error', 'name'),
    [
        ({'jonits': ['a']}, NameNotFound, 'jonits'),
        ({'ft_sensors': ['l_leg'], 'ft.l_lge.topic': 'x'}, NameNotFound, 'l_lge'),
        ({'contact_timeout': 1}, ConfigError, 'contact_timeout'),
        ({'filter.delay': 0.6}, ConfigError, 'filter.delay'),
        ({'gravity': [0.0, 0.0, float('nan')]}, ConfigError, 'gravity'),
        ({'ft.leg.offset': [1.0] * 5}, ConfigError, 'ft.leg.offset'),
        ({'ft_sensors': ['a', 'b', 'a']}, ConfigError, 'ft_sensors'),
        # Values that do not fit together.
        ({'joint_states.assumed': ['a'], 'joint_states.assumed_positions': [0.1, 0.2]},
         ConfigError, 'assumed_positions'),
        ({'fixed_link': 'sole', 'imus': ['head']}, ConfigError, 'fixed_link'),
        ({'ft.leg.direction': 'child_to_parent'}, ConfigError, 'leg'),
        ({'imus': ['a'], 'imu.a.pose': [0.0] * 6}, ConfigError, 'imu.a'),
        ({'ft_sensors': ['a', 'b'], 'ft.a.topic': 'w', 'ft.b.topic': 'w'}, ConfigError, 'w'),
        ({'filter.smooth_readings': True, 'filter.kind': 'kalman'}, ConfigError, 'kalman'),
    ],
)  # fmt: skip
def test_wrong_settings_are_refused_by_name(given, error, name):
    with pytest.raises(error) as found:
        READ(given)
    assert name in str(found.value)


@pytest.mark.parametrize('given', [{'imus': 'head'}, {'ft': {'leg': {'max_age': 0.1}}}])
def test_settings_made_by_hand_are_checked(given):
    with pytest.raises(ConfigError):
        EstimatorSettings(**given)
    with pytest.raises(ConfigError):
        replace(READ({}), **given)


def test_sections_of_a_parameter_file_are_merged(tmp_path):
    (path := tmp_path / 'parameters.yaml').write_text("""
/**:
  ros__parameters:
    use_sim_time: true
    contact_timeout: 2e-1
    autostart: true
other_node:
  ros__parameters: {nonsense: 1}
/left:
  wrench_estimator:
    ros__parameters:
      autostart: false
      ft_sensors: [leg]
      ft.leg.topic: /leg
      ft: {leg: {max_age: 0.5}}
""")
    settings = EstimatorSettings.from_yaml(path)
    assert (settings.contact_timeout, settings.autostart) == (0.2, False)
    assert settings.ft['leg'] == FtSettings(topic='/leg', max_age=0.5)
    with pytest.raises(ConfigError):
        EstimatorSettings.from_yaml(tmp_path / 'nowhere.yaml')


def test_shipped_files_hold_settings_of_their_node():
    for path in CONFIG.glob('*.yaml'):
        if path.name.startswith('ident') or path.name == 'replay_qos.yaml':
            continue
        EstimatorSettings.from_yaml(
            path, 'one_imu' if path.name == 'demo.yaml' else 'wrench_estimator'
        )
        IdentifierSettings.from_yaml(path, IDENTIFIER_NAME)
    for path in CONFIG.glob('identifier_*.yaml'):
        own = IdentifierSettings.from_yaml(path, IDENTIFIER_NAME)
        assert own.joints == EstimatorSettings.from_yaml(path).joints
        assert own.efforts.joints == ('all',)
    # Generated from the settings: their values are the defaults.
    own = load_parameters(CONFIG / 'identifier.yaml', IDENTIFIER_NAME)
    shared = load_parameters(CONFIG / 'estimator.yaml', IDENTIFIER_NAME)
    assert IdentifierSettings.from_dict(shared | own) == IdentifierSettings()
    lists = {item.name for item in settings_of(IdentifierSettings) if item.is_list}
    names = {item.name for item in settings_of(IdentifierSettings) if '<name>' not in item.name}
    assert names - set(shared | own) <= lists
    with pytest.raises(ConfigError):
        EstimatorSettings.from_yaml(CONFIG / 'identifier.yaml')


# ---- Odd files -------------------------------------------------------------------------

DEEP = 3000
"""Beyond what Python's stack has room for."""
RAW = {
    'lists in lists': '[' * DEEP,
    'names below names': '{"a":' * DEEP,
    'elements in elements': '<robot>' * DEEP,
    'deep, and closed': '[' * 900 + ']' * 900,
    'holds itself': '/**: {ros__parameters: &a {b: *a}}',
    'calibration that holds itself': 'ft_calibration: &a {version: 1, sensors: *a}',
    'number without end': 'a: ' + '1' * 5000,
    'no date': 'a: 2020-99-99',
    'no time': 'a: !!timestamp foo',
    'no number': 'a: !!int ""',
    'notes that are none': 'ft_calibration: {version: 1, sensors: {a: {provenance: '
    '[{method: x, notes: 5}]}}}',
    'half a pair': 'a: "\\ud800"',
    'no nodes': 'autostart: true',
    'a key twice': '/**: {ros__parameters: {contact_timeout: 0.1, contact_timeout: 0.2}}',
    'an alias': '/**: {ros__parameters: {joints: &a [x], contacts: *a}}',
    'another node': 'my_node: {ros__parameters: {autostart: true}}',
    'a group twice': '/**: {ros__parameters: {ft: {wrist.max_age: 1.0, wrist: {max_age: 2.0}}}}',
    'a section twice': '/**: {ros__parameters: {autostart: true}}\n/**: {ros__parameters: {}}',
    'no text': b'\xff\xfe\x00',
}


def outcome(read, *arguments):
    """Return why something is refused, empty if it is taken; nothing else is raised."""
    try:
        read(*arguments)
    except InertialEstimationError as error:
        return str(error)
    return ''


@pytest.mark.parametrize('case', list(RAW))
def test_odd_files_are_refused(tmp_path, nested_humanoid, case):
    path, content = tmp_path / 'file', RAW[case]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refusals = [
        outcome(load_mapping, path),
        outcome(load_parameters, path, 'node'),
        outcome(EstimatorSettings.from_yaml, path, 'node'),
        outcome(calibration_file.read, path),
        outcome(lambda: parse(load_text(path))),
    ]
    if isinstance(content, str):
        refusals.append(outcome(parameter_update.from_text, nested_humanoid, content))
    assert all(refusals[1:]) and str(path) in refusals[2]


def test_errors_have_one_base_a_matching_builtin_and_pickle():
    special = {
        errors.OffsetsNotUnique: ('no', ('l_leg',)),
        errors.ShapeError: ('positions', (3,), (4,)),
        errors.NameNotFound: ('joint', 'elbw', ['elbow'], 'it is named'),
    }
    classes = [item for item in vars(errors).values() if isinstance(item, type)]
    for kind in classes:
        if issubclass(kind, InertialEstimationError) and kind is not InertialEstimationError:
            error = kind(*special.get(kind, ('no',)))
            assert isinstance(error, ValueError | KeyError)
            copy = pickle.loads(pickle.dumps(error))
            assert (type(copy), str(copy)) == (type(error), str(error))
