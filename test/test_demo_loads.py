# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the demo makes of a load: its figures, its goals, its table, and the time that it takes.

Not covered: the scene itself (test/ros/test_demo.py).
"""

import json
from dataclasses import replace

import numpy as np
import pytest

from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.demo.carrying import IDENTIFIER, NEEDED
from inertial_estimation.demo.display import Display
from inertial_estimation.demo.identifier_says import IdentifierSays
from inertial_estimation.demo.load_results import NOT_UPDATED, UPDATED, Carried
from inertial_estimation.demo.load_scores import WITHIN, FoundLoad, LoadScores, TrueLoad
from inertial_estimation.demo.results import LATE, as_dict, lateness
from inertial_estimation.demo.run import LEAST_DURATION, find_config, shares
from inertial_estimation.simulation.scenario import PICK_UP, carrying

S = 1_000_000_000
UP = 100 * S
LOAD = TrueLoad(UP, 1.0, (0.03, 0.0, -0.04))
NAMES = (UPDATED, NOT_UPDATED)
DESCRIBED = 2.0
LINKS = (1, 2)


def bodies(*masses):
    """Return balls."""
    parameters = np.zeros((len(masses), 10))
    parameters[:, 0] = masses
    parameters[:, [4, 6, 9]] = 0.01
    return parameters


@pytest.fixture
def scores():
    """Return a second before, and ten after the load came; it was identified after six."""
    found = LoadScores(NAMES)
    found.add_update(UP - 2 * S, bodies(5.0, 1.0, 1.01), LINKS)
    found.add_found(UP - 2 * S, None)
    for k in range(110):
        stamp = UP - S + k * S // 10
        up, known = stamp >= UP, stamp >= UP + 6 * S
        force = np.array([[0.0, 3.0, 4.0]])
        found.add_forces(
            [stamp], {UPDATED: (2.0 * up * (not known) + 0.1) * force, NOT_UPDATED: up * force}
        )
    found.add_update(UP + 6 * S, bodies(5.0, 1.0, 1.99), LINKS)
    found.add_found(UP + 6 * S, FoundLoad(0.97, (0.03, 0.003, -0.044)))
    return found


def report(scores, load=LOAD):
    """Return what the watcher would write."""
    return {
        'estimators': list(NAMES),
        'complete': scores.is_complete(load),
        'updates': scores.updates,
        'inconsistent_updates': scores.inconsistent,
        'refusal': scores.refusal,
        'least_margin': scores.least_margin,
        'age_ms': {'p50': 2.0, 'p99': 5.0, 'max': 9.0},
        'identifier': IdentifierSays(IDENTIFIER, 'l_upper_arm').report(0.0),
        'carried_for_s': 10.0,
        'load': {'link': 'l_hand', 'mass_kg': load.mass, 'center_m': list(load.center)},
        **scores.figures(load, DESCRIBED),
        'false_force_n': {name: scores.false_forces(load, name) for name in NAMES},
    }


def carried(scores):
    return Carried('carrying', report(scores), {IDENTIFIER: 12.0, UPDATED: 20.0})


def test_figures_are_those_of_the_time_that_identification_has(scores):
    figures = scores.figures(LOAD, DESCRIBED)
    assert figures['mass_gain_kg'] == pytest.approx(0.98)
    assert figures['mass_error_kg'] == pytest.approx(0.02)
    assert figures['followed_after_s'] == pytest.approx(6.0)
    assert figures['payload_mass_error_kg'] == pytest.approx(0.03)
    assert figures['payload_center_m'] == [0.03, 0.003, -0.044]
    assert figures['payload_center_error_m'] == pytest.approx(0.005)
    forces = scores.false_forces(LOAD, UPDATED)
    assert forces['before'] == pytest.approx(0.5)
    assert forces['at_first'] == pytest.approx(10.5)
    assert forces['at_last'] == forces['now'] == pytest.approx(0.5)
    assert scores.false_forces(LOAD, NOT_UPDATED)['at_last'] == pytest.approx(5.0)


def test_what_comes_later_does_not_count(scores):
    before = scores.figures(LOAD, DESCRIBED)
    scores.add_update(UP + 11 * S, bodies(5.0, 9.0, 9.0), LINKS)
    scores.add_found(UP + 11 * S, None)
    scores.add_forces([UP + 11 * S], {name: np.full((1, 3), 99.0) for name in NAMES})
    assert scores.figures(LOAD, DESCRIBED) == before
    assert scores.false_forces(LOAD, UPDATED)['at_last'] == pytest.approx(0.5)
    assert scores.false_forces(LOAD, UPDATED)['now'] > 99.0


def test_without_an_update_before_it_is_the_description_that_gets_heavier():
    scores = LoadScores(NAMES)
    scores.add_update(UP + S, bodies(5.0, 1.0, 2.0), LINKS)
    assert scores.figures(LOAD, DESCRIBED)['mass_gain_kg'] == pytest.approx(1.0)


def test_it_is_complete_when_the_time_is_over(scores):
    assert not scores.is_complete(LOAD)
    assert not scores.is_complete(None)
    scores.add_forces([UP + round(WITHIN) * S], {name: np.zeros((1, 3)) for name in NAMES})
    assert scores.is_complete(LOAD)
    assert not scores.is_complete(None)


def test_all_goals_are_met(scores):
    goals = carried(scores).goals()
    assert len(goals) == 5 and all(met for _, met in goals)
    said = ' '.join(text for text, _ in goals)
    assert all(part in said for part in ('0.980 kg', '0.030 kg', '5.0 mm', '10.5 N, 0.50 N'))


@pytest.mark.parametrize(
    ('spoil', 'missed'),
    [
        (lambda s: s.add_update(UP + 7 * S, bodies(5.0, 1.0, 1.9), LINKS), 0),
        (lambda s: s.add_found(UP + 7 * S, FoundLoad(0.94, LOAD.center)), 1),
        (lambda s: s.add_found(UP + 7 * S, FoundLoad(1.0, (0.03, 0.011, -0.04))), 2),
        (
            lambda s: s.add_forces([UP + 10 * S - 1], {n: np.full((1, 3), 9.0) for n in NAMES}),
            3,
        ),
        (lambda s: s.add_refusal("'l_hand' is no body"), 4),
    ],
)
def test_each_goal_can_be_missed(scores, spoil, missed):
    spoil(scores)
    assert [met for _, met in carried(scores).goals()] == [k != missed for k in range(5)]


def test_a_body_that_could_not_exist_is_counted(scores):
    impossible = bodies(5.0, 1.0, 1.99)
    impossible[0, 4] = 1.0
    scores.add_update(UP + 7 * S, impossible, LINKS)
    assert scores.inconsistent == 1 and scores.least_margin < 0.0
    assert not carried(scores).goals()[-1][1]


def test_what_is_not_known_is_missed_and_null_for_a_machine():
    scores = LoadScores(NAMES)
    nothing = carried(scores)
    assert not any(met for _, met in nothing.goals())
    later = ('load', 'carried_for_s', 'false_force_n', *scores.figures(LOAD, DESCRIBED))
    report = {key: value for key, value in nothing.report.items() if key not in later}
    early = replace(nothing, report=report)
    assert not any(met for _, met in early.goals())
    data = json.loads(json.dumps(early.as_dict() | {'goals': early.goals()}))
    assert data['updates'] == 0


def test_a_table_before_and_after(scores, capsys):
    pytest.importorskip('rich', reason='the tables of the demo')
    full = report(scores)
    early = {key: full[key] for key in ('updates', 'inconsistent_updates')}
    with Display([]) as display:
        display.show_load('nothing picked up yet', early)
        display._printed = 0.0
        display.show_load('12 s left', full)
    said = capsys.readouterr().out
    for part in (
        'nothing picked up yet',
        '12 s left',
        '0.970',
        '30.0 3.0 -44.0',
        '10.50',
        '[kg]',
        '[N]',
    ):
        assert part in said


def test_json_holds_it(scores):
    pytest.importorskip('rich', reason='the tables of the demo')
    from test_demo_results import good

    found = json.loads(json.dumps(as_dict(good(), carried(scores)), allow_nan=False))
    assert found['carrying']['name'] == 'carrying'
    assert found['carrying']['payload_mass_kg'] == 0.97
    assert found['carrying']['false_force_n'][NOT_UPDATED]['at_last'] == pytest.approx(5.0)
    assert len(found['goals']) == 9
    assert as_dict(good())['carrying'] is None
    unknown = as_dict(good(), carried(LoadScores(NAMES)))['carrying']
    assert unknown['payload_mass_kg'] is unknown['least_margin'] is None


def test_a_machine_that_is_late_with_the_load_is_told(scores):
    from test_demo_results import good

    late = carried(scores)
    assert lateness(good(), late) == ''
    late.report['age_ms']['p50'] = LATE + 1.0
    assert '51 ms old at the median with the load' in lateness(good(), late)


def test_what_is_missed_has_the_reason_of_the_identifier(scores):
    assert carried(scores).reason == ''
    nothing = carried(LoadScores(NAMES))
    assert nothing.as_dict()['reason'] == 'the identifier has said nothing at all'
    says = IdentifierSays(IDENTIFIER, 'l_arm')
    says.hear({'updated: cycle': 'running'}, 1.0)
    assert says.report(1.0)['recursion'] == ''
    said = {f'{IDENTIFIER}: recursion': 'running', f'{IDENTIFIER}: submodel l_arm': 'waits'}
    says.hear(said, 2.0)
    nothing.report['identifier'] = says.report(3.0)
    assert nothing.reason == 'the identifier says: recursion running; submodel l_arm waits'
    nothing.report['identifier'] = says.report(22.0)
    assert 'that was 20 s ago' in nothing.as_dict()['reason']


@pytest.mark.parametrize('duration', [LEAST_DURATION, 20.0, 60.0, 600.0])
def test_scenes_share_the_whole_run(duration):
    pushes, load = shares(duration)
    assert 2 * pushes + load == pytest.approx(duration)
    assert load in (0.0, NEEDED)
    assert pushes >= 0.5 * LEAST_DURATION
    assert (load > 0.0) == (duration >= LEAST_DURATION + NEEDED)


def test_the_scene_has_time_for_it():
    (load,) = carrying(NEEDED).loads
    assert load.start == PICK_UP < NEEDED - WITHIN


def test_estimators_differ_in_taking_updates_over():
    pytest.importorskip('yaml', reason='reads parameter files')
    config = find_config()
    one, other = (EstimatorSettings.from_yaml(config, name).to_parameters() for name in NAMES)
    assert {key for key, value in one.items() if other[key] != value} == {
        'take_inertial_parameters'
    }
    identifier = IdentifierSettings.from_yaml(config, IDENTIFIER)
    assert list(identifier.imus) == one['imus']
    assert {'l_sole', 'r_sole'} <= set(identifier.held_frames)
