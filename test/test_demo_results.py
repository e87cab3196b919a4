# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the demo writes for a machine, and what it says about its goals.

Not covered: the figures themselves (test_demo_scores), the look of the tables.
"""

import json

import pytest

from inertial_estimation.demo.display import Display
from inertial_estimation.demo.results import Estimator, Result, as_dict, goals, lateness

pytest.importorskip('rich', reason='the tables of the demo')

ONE = Estimator('one_imu', ('root_link',), 'one_imu_true_fts')
SEVERAL = Estimator('several_imus', ('root_link', 'chest', 'head'), 'several_imus_true_fts')


def figures(force: float, missed: int = 0, slowness: float = 1.0) -> dict:
    return {
        'force_rms_n': force,
        'force_rms_all_contacts_n': 2.0 * force,
        'moment_rms_nm': 0.1,
        'torque_rms_nm': 0.02,
        'samples': 1000,
        'not_estimated': 0,
        'without_truth': 0,
        'missed_cycles': missed,
        'age_ms': {'p50': slowness, 'p99': 2.0 * slowness, 'max': 3.0 * slowness},
        'cycle_time_us': {'p50': 100.0, 'p99': 200.0, 'max': 300.0 / slowness},
    }


def result(scene, estimator, force, true_force, *, acceleration=3.5, **kwargs) -> Result:
    cpu = {'one_imu': 11.0, 'several_imus': 22.0, 'watcher': 5.0}
    return Result(
        scene, estimator, figures(force, **kwargs), figures(true_force), acceleration, cpu
    )


def good() -> list[Result]:
    return [
        result('pole', ONE, 0.8, 0.5, missed=2),
        result('pole', SEVERAL, 0.4, 0.3, slowness=4.0),
        result('standing', ONE, 0.7, 0.4, acceleration=3.1),
        result('standing', SEVERAL, 0.3, 0.34, acceleration=3.1, missed=1),
    ]


def test_what_a_machine_reads():
    data = json.loads(json.dumps(as_dict(good())))
    assert [(s['name'], s['imus']) for s in data['scenes']] == [
        ('pole', 1),
        ('pole', 3),
        ('standing', 1),
        ('standing', 3),
    ]
    first = data['scenes'][0]
    assert (first['force_rms_n'], first['torque_rms_nm']) == (0.8, 0.02)
    assert first['noise_free_ft']['force_rms_n'] == 0.5
    assert first['imu_names'] == ['root_link']
    assert first['cpu_percent'] == 11.0
    assert data['cycle_time_us'] == {'p50': 100.0, 'p99': 200.0, 'max': 300.0}
    assert data['age_ms'] == {'p50': 4.0, 'p99': 8.0, 'max': 12.0}
    assert data['missed_cycles'] == 3
    assert all(goal['met'] for goal in data['goals'])


def test_what_was_not_measured_is_null():
    unmeasured = result('pole', ONE, 0.8, 0.5, slowness=float('nan'))
    data = as_dict([unmeasured, *good()[1:]])
    assert data['scenes'][0]['age_ms'] == dict.fromkeys(('p50', 'p99', 'max'))
    json.dumps(data, allow_nan=False)


def test_goals_name_the_worst_figure():
    texts = [text for text, _ in goals(good())]
    assert '0.80 N (pole, 1 IMU)' in texts[0]
    assert '40% (0.50 N, 0.30 N)' in texts[1]
    assert texts[2].startswith('standing')
    assert '15% (0.40 N, 0.34 N)' in texts[2]
    assert '3.10 rad/s^2 (standing)' in texts[3]


@pytest.mark.parametrize(
    ('missed', 'spoiled'),
    [
        (0, {0: result('pole', ONE, 1.01, 0.5)}),
        (1, {1: result('pole', SEVERAL, 0.4, 0.43)}),
        (2, {3: result('standing', SEVERAL, 0.3, 0.35)}),
        (3, {2: result('standing', ONE, 0.7, 0.4, acceleration=2.9)}),
    ],
)
def test_a_goal_that_is_missed_is_said_to_be(missed, spoiled):
    results = [spoiled.get(k, r) for k, r in enumerate(good())]
    assert [k for k, (_, met) in enumerate(goals(results)) if not met] == [missed]


def test_a_late_machine_is_told_from_a_late_node():
    assert lateness(good()) == ''
    slow = [result('pole', ONE, 0.8, 0.5, slowness=100.0), *good()[1:]]
    assert lateness(slow).startswith('estimates were 100 ms old')


def test_tables_hold_the_figures_where_nobody_watches(capsys):
    report = {
        'contacts': ['l_sole'],
        'wrenches': {
            'truth': [[1.5, 2.5, 3.5, 0.1, 0.2, 0.3]],
            'one_imu': [[-1.5, 2.5, 3.5, 0.1, 0.2, 0.3]],
            'several_imus': [[1.5, 2.5, 30.5, 0.1, 0.2, 0.33]],
        },
        'estimators': {
            name: figures(force)
            for e, force in ((ONE, 0.81), (SEVERAL, 0.42))
            for name in (e.name, e.twin)
        },
    }
    with Display([ONE, SEVERAL]) as display:
        display.show("scene 'pole'", report)
        display.show('too early for another one', report)
        display.summarize(good())
    text = capsys.readouterr().out
    for part in (
        "scene 'pole'",
        'l_sole',
        '-1.5   2.5   3.5',
        '30.5',
        '0.33',
        '0.81',
        '0.42',
        '[us]',
        '[ms]',
    ):
        assert part in text
    assert 'too early' not in text
    assert text.count('\nmet ') == 4
