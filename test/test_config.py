# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Settings: strict reading, checks as a set, parameter files.

That the node declares the same parameters is in ros/test_parameters.py; that names belong to a
robot is checked where the robot is built.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from inertial_estimation.config import (
    ContactSettings,
    EstimatorSettings,
    FtSettings,
    IdentifierSettings,
    ImuSettings,
    LinkSensorSettings,
    settings_of,
)
from inertial_estimation.config.files import load_mapping, load_parameters
from inertial_estimation.config.groups import GROUPS, name_unused, split_unused
from inertial_estimation.config.identifier import IDENTIFIER_NAME
from inertial_estimation.errors import ConfigError, NameNotFound

CONFIG = Path(__file__).parents[1] / 'config'
READ = EstimatorSettings.from_dict


def write(tmp_path, text):
    path = tmp_path / 'parameters.yaml'
    path.write_text(text)
    return path


def test_nothing_given_is_the_defaults():
    assert READ({}) == EstimatorSettings()


def test_nested_and_dotted_names_are_the_same():
    nested = READ({'ft_sensors': ['leg'], 'ft': {'leg': {'max_age': 0.2, 'topic': 'a'}}})
    dotted = READ({'ft_sensors': ['leg'], 'ft.leg.max_age': 0.2, 'ft': {'leg.topic': 'a'}})
    assert nested == dotted
    assert nested.ft['leg'] == FtSettings(max_age=0.2, topic='a')


def test_round_trip_through_parameters():
    settings = READ(
        {
            'joints': ['a', 'b'],
            'imus': ['head'],
            'contacts': ['sole', 'hand'],
            'contact.hand.kind': 'axial_force',
            'imu.head.frame': 'head_imu_acc',
            'ft.leg.matrix': [float(i) for i in range(36)],
            'accelerometers': ['skin', 'board'],
            'accelerometer.skin.frame': 'hand',
            'accelerometer.skin.pose': [0.1, 0.2, 0.3, 0.4, 0.5, 0.6],
            'gyroscopes': ['board'],
        }
    )
    parameters = settings.to_parameters()
    assert READ(parameters) == settings
    assert parameters['contact.sole.kind'] == 'wrench'
    assert parameters['ft.leg.matrix'][35] == 35.0
    assert parameters['accelerometer.skin.pose'][5] == 0.6
    assert settings.gyroscope == {'board': LinkSensorSettings()}


def test_names_fill_in_what_is_empty():
    settings = READ({'imus': ['head'], 'contacts': ['sole'], 'imu.head.topic': '/head/imu'})
    assert settings.ft_of('leg') == FtSettings(topic='ft/leg')
    assert settings.imu_of('head') == ImuSettings(topic='/head/imu', frame='head')
    assert settings.contact_of('sole') == ContactSettings(frame='sole')


@pytest.mark.parametrize(
    'given',
    [
        {'jonits': ['a']},
        {'ft.leg.max_ag': 0.1},
        {'ft.leg': 0.1},
        {'ft_sensors': ['l_leg'], 'ft.l_lge.topic': 'x'},
        {'imu.head.topic': 'x'},
        {'accelerometer.a.frame': 'x'},
        {'gyroscopes': ['board'], 'gyroscope.bord.frame': 'x'},
        {'gyroscopes': ['g'], 'gyroscope.g.topic': 'x'},
        {'contacts': ['sole'], 'contact.sloe.kind': 'force'},
        {'joints': ['knee'], 'assumed_joints': ['kne'], 'assumed_positions': [0.0]},
    ],
)
def test_unknown_names_are_refused_with_the_nearest(given):
    with pytest.raises(NameNotFound):
        READ(given)


@pytest.mark.parametrize(
    'given',
    [
        {'length_scale': 1},
        {'queue_depth': 5.0},
        {'queue_depth': 5.5},
        {'queue_depth': True},
        {'autostart': 'true'},
        {'autostart': 1},
        {'fixed_link': 5},
        {'joints': 'knee'},
        {'joints': ['knee', 3]},
        {'gravity': [0.0, 0, -9.81]},
        {'gravity': [0.0, 0.0]},
        {'gravity': [0.0, 0.0, float('nan')]},
        {'fixed_link': None},
        {'ft.leg.max_age': -0.1},
        {'ft.leg.offset': [0.0] * 5},
        {'ft.leg.matrix': [1.0] * 6},
        {'imus': ['a'], 'imu.a.pose': [0.0] * 5},
        {'imus': ['a'], 'imu.a.pose': [float('inf')] * 6},
        {'gyroscopes': ['a'], 'gyroscope.a.pose': [1.0]},
        {'queue_depth': 1001},
        {'velocity_source': 'multi'},
    ],
)
def test_one_wrong_value(given):
    with pytest.raises(ConfigError):
        READ(given)


@pytest.mark.parametrize(
    'given',
    [
        {'assumed_joints': ['a', 'b'], 'assumed_positions': [0.1]},
        {'joint_topics': []},
        {'ft_sensors': ['a', 'b', 'a']},
        {'joints': ['']},
        {'fixed_link': 'sole', 'imus': ['head']},
        {'ft.leg.direction': 'child_to_parent'},
        {'ft.leg.joint': 'j', 'ft.leg.frame': 'sensor'},
        {'ft.leg.joint': 'j', 'ft.leg.pose': [0.0] * 6},
        {'ft.leg.joint': 'j'},
        {'imus': ['a'], 'imu.a.pose': [0.0] * 6},
        {'accelerometers': ['a'], 'accelerometer.a.pose': [0.0] * 6},
        {'gyroscopes': ['a', 'a']},
        {'ft_sensors': ['a', 'b'], 'ft.a.topic': 'w', 'ft.b.topic': 'w'},
        {'imus': ['a', 'b'], 'imu.a.topic': 'imu/b'},
        {
            'contacts': ['c'],
            'contact.c.kind': 'axial_force',
            'contact.c.direction': [0.0, 0.0, 0.0],
        },
    ],
)
def test_values_that_do_not_fit_together(given):
    with pytest.raises(ConfigError):
        READ(given)


@pytest.mark.parametrize(
    'given',
    [
        {'acceleration_source': 'foo'},
        {'velocity_source': 'Filter'},
        {'derivative_window': -1.0},
        {'derivative_window': 'a'},
        {'derivative_order': 9},
        {'imus': 'head'},
        {'gravity': {'z': -9.81}},
        {'assumed_joints': ('hip',)},
        {'fixed_link': 'sole', 'imus': ('head',)},
        {'ft': None},
        {'ft': {'leg': {'max_age': 0.1}}},
    ],
)
def test_settings_made_by_hand_are_checked_as_well(given):
    with pytest.raises(ConfigError):
        EstimatorSettings(**given)
    with pytest.raises(ConfigError):
        replace(READ({}), **given)


def test_touches_are_of_the_kind_of_their_frame_or_else_of_the_common_one():
    settings = READ({'touch_kind': 'force', 'touch_frames': ['palm'], 'touch.palm.kind': 'wrench'})
    assert (settings.touch_of('palm').kind, settings.touch_of('chest').kind) == ('wrench', 'force')
    assert replace(settings, touch_kind='wrench').touch_of('chest').kind == 'wrench'


@pytest.mark.parametrize('group', GROUPS.values(), ids=lambda g: g.__name__)
def test_groups_made_by_hand_are_checked_as_well(group):
    first = settings_of(group)[0]
    with pytest.raises(ConfigError):
        group(**{first.name: 5})


def test_settings_made_by_hand_are_as_those_that_are_read():
    ft = {'leg': FtSettings(max_age=0.2)}
    made = EstimatorSettings(imus=['head'], contacts=('sole',), ft=ft)
    read = READ({'imus': ['head'], 'contacts': ['sole'], 'ft.leg.max_age': 0.2})
    assert made == read
    assert READ(made.to_parameters()) == made


def test_a_name_can_be_taken_off_its_list_unless_its_group_says_something():
    settings = READ({'ft_sensors': ['leg', 'arm'], 'imus': ['head'], 'imu.head.max_age': 0.2})
    assert set(replace(settings, ft_sensors=('arm',)).ft) == {'arm'}
    with pytest.raises(NameNotFound):
        replace(settings, imus=())


def test_a_group_of_defaults_that_nothing_lists_is_refused_when_read():
    with pytest.raises(NameNotFound):
        READ({'imus': ['head'], 'imu.haed.max_age': 0.05})


def test_sections_of_a_parameter_file(tmp_path):
    path = write(
        tmp_path,
        """
/**:
  ros__parameters:
    use_sim_time: true
    length_scale: 2e-1
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
""",
    )
    settings = EstimatorSettings.from_yaml(path)
    assert (settings.length_scale, settings.autostart) == (0.2, False)
    assert settings.ft['leg'] == FtSettings(topic='/leg', max_age=0.5)


@pytest.mark.parametrize(
    'text',
    [
        'a: [',
        'just text',
        'autostart: true',
        'my_node: {ros__parameters: {autostart: true}}',
    ],
)
def test_files_that_are_no_parameter_files(tmp_path, text):
    with pytest.raises(ConfigError):
        EstimatorSettings.from_yaml(write(tmp_path, text))


@pytest.mark.parametrize(
    'text',
    [
        'a: 1\nb: {c: 2,\n  c: 3}\n',
        'a: 1\nb: 2\n"a": 3\n',
        '/**: {ros__parameters: {a: 1}}\n/**: {ros__parameters: {b: 1}}\n',
    ],
)
def test_a_name_that_is_there_twice_is_refused(tmp_path, text):
    path = tmp_path / 'twice.yaml'
    path.write_text(text)
    with pytest.raises(ConfigError):
        load_mapping(path)


def test_what_an_anchor_says_may_be_replaced(tmp_path):
    path = tmp_path / 'merged.yaml'
    path.write_text('a: &a {x: 1, y: 2}\nb: &b {<<: *a, x: 3}\nc: {<<: *b, y: 4}\n')
    assert load_mapping(path)['c'] == {'x': 3, 'y': 4}


def test_a_parameter_that_is_there_nested_and_dotted_is_refused(tmp_path):
    path = tmp_path / 'twice.yaml'
    path.write_text('/**: {ros__parameters: {ft: {wrist.max_age: 1.0, wrist: {max_age: 2.0}}}}\n')
    with pytest.raises(ConfigError):
        load_parameters(path, 'wrench_estimator')


def test_missing_file():
    with pytest.raises(ConfigError):
        EstimatorSettings.from_yaml('nowhere.yaml')


@pytest.mark.parametrize(
    'group',
    [EstimatorSettings, *GROUPS.values()],
    ids=lambda g: g.__name__,
)
def test_every_default_passes_its_own_check(group):
    for item in settings_of(group):
        assert item.read(item.default) == item.default
        assert item.description


@pytest.mark.parametrize('name', ['icub', 'panda'])
def test_shipped_files_load(name):
    EstimatorSettings.from_yaml(CONFIG / f'{name}.yaml')


@pytest.mark.parametrize('name', ['icub', 'panda'])
def test_shipped_files_document_every_parameter(name):
    words = (CONFIG / f'{name}.yaml').read_text().replace('#', ' ').split()
    for group in (EstimatorSettings, *GROUPS.values()):
        missing = [item.name for item in settings_of(group) if f'{item.name}:' not in words]
        assert not missing


def own_settings():
    """Return the settings that the identifier has beside those of the estimator."""
    shared = {item.name for item in settings_of(EstimatorSettings)}
    return [item for item in settings_of(IdentifierSettings) if item.name not in shared]


def test_the_file_of_the_identifier_documents_every_parameter_of_its_own():
    path = CONFIG / 'identifier.yaml'
    words = path.read_text().replace('#', ' ').split()
    assert not [item.name for item in own_settings() if f'{item.name}:' not in words]
    given = load_parameters(path, IDENTIFIER_NAME)
    # What the file gives is what holds without it.
    for item in own_settings():
        if not item.is_list:
            assert given[item.name] == item.default, item.name
    assert IdentifierSettings.from_dict(given) == IdentifierSettings()


@pytest.mark.parametrize(('name', 'gains'), [('ur10e', 6), ('panda', 0)])
def test_the_file_of_an_arm_by_efforts_is_for_both_nodes(name, gains):
    path = CONFIG / f'identifier_{name}.yaml'
    shared, own = (
        EstimatorSettings.from_yaml(path),
        IdentifierSettings.from_yaml(path, IDENTIFIER_NAME),
    )
    assert shared.joints == own.joints
    assert shared.ft_sensors == own.ft_sensors
    assert own.efforts == ('all',)
    assert len(own.effort_gains) == gains


def test_a_file_of_the_identifier_is_told_from_one_of_the_estimator(tmp_path):
    with pytest.raises(NameNotFound):
        EstimatorSettings.from_yaml(CONFIG / 'identifier.yaml')
    # In one file for both it stands in a section of its own.
    own = (CONFIG / 'identifier.yaml').read_text().replace('/**:', 'parameter_identifier:')
    both = tmp_path / 'both.yaml'
    both.write_text((CONFIG / 'panda.yaml').read_text() + own)
    assert EstimatorSettings.from_yaml(both) == EstimatorSettings.from_yaml(CONFIG / 'panda.yaml')
    found = IdentifierSettings.from_yaml(both, IDENTIFIER_NAME)
    assert (found.fixed_link, found.rows_rate) == ('panda_link0', 100.0)


def test_groups_that_no_list_names_are_told_apart():
    values = {'imus': ['chest'], 'imu.chest.topic': 'a', 'imu.head.topic': 'b', 'touch_spacing': 1}
    values |= {'ft.arm.topic': 'c'}
    used, unused = split_unused(values)
    assert unused == {'imu.head.topic': 'b'}
    assert used == {name: value for name, value in values.items() if name not in unused}
    _, unused = split_unused(values | {'ft_sensors': ['leg']})
    assert set(unused) == {'imu.head.topic', 'ft.arm.topic'}


def test_an_unused_group_must_be_called_like_something_of_the_robot():
    unused = {'imu.head.topic': 'b', 'imu.board.frame': 'head', 'imu.board.topic': 'c'}
    assert name_unused(unused, {'head', 'chest'}) == ['imu.head', 'imu.board']
    with pytest.raises(NameNotFound):
        name_unused({'imu.haed.topic': 'b'}, {'head', 'chest'})
