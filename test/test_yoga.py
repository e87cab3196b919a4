# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Predictions of readings on one foot: what they are judged by, and the library on the real log.

Not covered: the node while the log is played, which is in ros/test_bench_played.py.
"""

import json

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from robots import nested_humanoid_urdf
from shared_data import SHARED

from inertial_estimation.benchmark.run import Goal
from inertial_estimation.benchmark.yoga import log, predictions, run
from inertial_estimation.benchmark.yoga.predictions import (
    CONSTANT,
    IDENTIFIED,
    MATRIX,
    NONE,
    PAST,
    Told,
    errors,
    rms,
)
from inertial_estimation.cli import main
from inertial_estimation.errors import LogError
from inertial_estimation.model.robot import Robot
from inertial_estimation.verbs import bench

FREE = ('leg_sensor', 'foot_sensor')
DATA = SHARED / 'data'
# Round-off of readings of some hundred newtons.
SAME = 1e-9


@pytest.fixture
def robot(monkeypatch):
    monkeypatch.setattr(predictions, 'FREE', FREE)
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


def moving(robot, seconds=4.0):
    samples = smooth_motion(robot, seconds, seed=3)
    return with_readings(robot, samples, robot.parameters)


def told_at(robot, samples, row, offsets, parameters=None):
    given = robot.parameters if parameters is None else parameters
    return Told(int(samples.stamp_ns[row]), given, offsets, (), 1.0)


def test_the_truth_leaves_nothing_and_each_rival_what_it_lacks(robot, rng):
    offsets = rng.normal(size=(2, 6))
    samples = moving(robot)
    free = [[s.name for s in robot.ft_sensors].index(name) for name in FREE]
    samples.ft_readings[:, free] += offsets
    wrong = robot.with_parameters(1.1 * robot.parameters)
    told = [told_at(robot, samples, 99, offsets), told_at(robot, samples, 199, offsets)]
    found = errors(wrong, samples, told)
    assert len(found[NONE]) == len(samples) - 100
    np.testing.assert_allclose(found[IDENTIFIED], 0.0, atol=SAME)
    # Bodies a tenth too heavy: readings beside them are an affine map of what was read.
    np.testing.assert_allclose(found[MATRIX], 0.0, atol=SAME)
    heavy = 0.1 * (samples.ft_readings[:, free] - offsets)
    np.testing.assert_allclose(found[NONE], (offsets - heavy)[100:], atol=SAME)
    np.testing.assert_allclose(found[CONSTANT].mean(axis=0), 0.0, atol=SAME)
    known = -heavy - np.concatenate([
        np.broadcast_to(-heavy[:100].mean(axis=0), (200, 2, 6)),
        np.broadcast_to(-heavy[:200].mean(axis=0), (len(heavy) - 200, 2, 6)),
    ])  # fmt: skip
    np.testing.assert_allclose(found[PAST], known[100:], atol=SAME)
    np.testing.assert_allclose(
        rms(found[PAST])[1, 0], np.sqrt(np.mean(known[100:, 1, :3] ** 2)), rtol=SAME
    )


def test_nothing_is_predicted_by_what_comes_later(robot, rng):
    samples = moving(robot)
    told = [told_at(robot, samples, row, rng.normal(size=(2, 6))) for row in (99, 199)]
    before = errors(robot, samples, told)
    samples.ft_readings[250:] += 1.0
    after = errors(robot, samples, told)
    for way in (NONE, PAST, IDENTIFIED):
        np.testing.assert_array_equal(after[way][:150], before[way][:150])
        assert np.abs(after[way][150:] - before[way][150:]).min() > 0.5


def test_instants_without_a_reading_do_not_count(robot, rng):
    samples = moving(robot)
    samples.ft_readings[120:130] = np.nan
    told = [told_at(robot, samples, 99, np.zeros((2, 6)))]
    found = errors(robot, samples, told)
    assert {len(one) for one in found.values()} == {len(samples) - 110}
    assert all(np.isfinite(one).all() for one in found.values())


def test_without_offsets_there_is_nothing_to_predict(robot):
    samples = moving(robot)
    nothing = told_at(robot, samples, 99, np.full((2, 6), np.nan))
    with pytest.raises(LogError, match='leg_sensor and foot_sensor'):
        errors(robot, samples, [nothing])


def test_what_the_node_says_is_read(robot):
    parameters = robot.parameters.tolist()
    answer = {
        'sent': 7, 'samples': 5, 'update_margins': [0.5],
        'refits': [{'stamp_ns': 3, 'parameters': parameters, 'offsets': {'r_foot_ft': [1.0] * 6},
                    'refitted': ['r_foot'], 'least_margin': 0.25}],
    }  # fmt: skip
    played = run.played_of(answer)
    (one,) = played.told
    np.testing.assert_array_equal(one.parameters, robot.parameters)
    # That of the leg is not known yet.
    assert np.isnan(one.offsets[0]).all()
    assert (one.offsets[1] == 1.0).all()
    assert played.update_margins == (0.5,)


@pytest.mark.parametrize(
    ('arguments', 'said', 'code'),
    [
        (['--play'], '--play is for --yoga', 2),
        (['--yoga', 'nowhere'], f'there is no nowhere/{log.BAG}', 1),
        (['--yoga', 'nowhere', '--background'], 'are 2 runs', 2),
        (['--published', 'nowhere', '--strict'], '--strict is for runs with goals', 2),
    ],
)
def test_calls_that_cannot_be_answered(arguments, said, code, capsys):
    assert main(['bench', *arguments]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ('limit', 'strict', 'code'), [(1.0, True, 1), (1.0, False, 0), (3.0, True, 0)]
)
@pytest.mark.parametrize('way', ['_run_yoga', '_run_background', '_measure'])
def test_missed_goals_are_counted_and_with_strict_the_exit_code(
    monkeypatch, capsys, way, limit, strict, code
):
    """Whatever run they are of."""
    goals = Goal('a', 2.0, limit), Goal('b', 0.5, 1.0)
    monkeypatch.setattr(bench, way, lambda chosen: goals)
    options = {'_run_yoga': ['--yoga', 'folder'], '_run_background': ['--background']}.get(way, [])
    assert main(['bench', *options, *(['--strict'] if strict else [])]) == code
    assert ('1 of 2 goals are missed' in capsys.readouterr().out) == (limit < 2.0)


@pytest.mark.skipif(not (DATA / log.BAG).exists(), reason='needs ../shared/data')
def test_a_real_icub_on_one_foot(tmp_path, capsys):
    out = tmp_path / 'o.json'
    assert main(['bench', '--yoga', str(DATA), '--json', str(out)]) == 0
    found = json.loads(out.read_text())
    goals = {goal['name']: goal for goal in found['goals']}
    assert len(goals) == 10
    for name, goal in goals.items():
        # No constant offset brings the others there, not even one of hindsight.
        if PAST in name or 'eigenvalue' in name or 'r_foot_ft, forces' in name:
            assert goal['reached'], name
    library = found['library']
    assert library['instants'] > 4000
    assert library['refits'] > 45
    for sensor in log.FREE:
        for sizes in zip(*(library['rms'][sensor][way].values() for way in (CONSTANT, MATRIX))):
            assert sizes[1] < sizes[0]
    asked, *less = found['told_from_less']
    # What the node asks for is not reached here; with less bodies are told, all that could exist.
    assert asked['telling'] == 0
    assert all(one['telling'] > 0 and one['least_margin'] > 0.0 for one in less)
    assert asked['worst'] < 1.0 < max(one['worst'] for one in less)
    assert 'Readings of the second to come (library)' in capsys.readouterr().out
