# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Methods beside each other on logs of real arms: the default is as good as any other.

Not covered: FIGAROH, which is no requirement; its process is replaced by one that is like it.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from identification_problems import humanoid_case

from inertial_estimation.benchmark import figaroh, real_robots
from inertial_estimation.benchmark.real_robots import (
    CONFIGS,
    DEFAULT,
    ENTROPIC,
    LMI,
    LMI_EUCLIDEAN,
    OLS,
    PRIOR,
    ROBOTS,
    WLS,
    as_dict,
    compare,
    notes,
    tables,
)
from inertial_estimation.cli import main
from inertial_estimation.errors import ConfigError, ModelError

DATA = Path(__file__).resolve().parents[2] / 'shared' / 'data'
needs_logs = pytest.mark.skipif(not DATA.exists(), reason='needs ../shared/data')
# What another part of the log, or another filter, changes in a held-out error.
NOISE = 1.03
RANKS = {'Panda': 64, 'UR10e': 58, 'TX40': 61, 'TIAGo': 73}
# Reached elsewhere on these robots [%]; parts of the logs differ, so some room is left.
LEAST_SQUARES_FIT = {'Panda': 1.2, 'UR10e': 4.9, 'TX40': 4.7, 'TIAGo': 1.03}


@needs_logs
@pytest.mark.parametrize('robot', ROBOTS, ids=lambda robot: robot.name)
def test_the_default_is_as_good_as_the_best_of_the_others(robot):
    found = compare(replace(robot, short=()), DATA, CONFIGS)
    scores = {score.method: score for score in found.scores}
    best = min(score.total_predicted for score in found.scores)
    assert found.rank == RANKS[robot.name]
    assert scores[ENTROPIC].total_predicted <= NOISE * best
    assert scores[DEFAULT].total_predicted <= NOISE * best
    assert 100 * scores[OLS].total_fitted <= LEAST_SQUARES_FIT[robot.name]
    assert scores[DEFAULT].margin > 0
    for other in (PRIOR, OLS, WLS):
        assert scores[DEFAULT].total_predicted < scores[other].total_predicted
    assert 'no interpreter' in found.left_out
    (robots_table, little) = tables([found])
    assert len(robots_table.rows) == 1 + len(found.scores)
    assert all(len(row) == len(robots_table.columns) for row in robots_table.rows)
    assert little.rows == ()
    assert as_dict([found])[robot.name]['methods'][OLS]['rank'] == found.rank
    assert notes([found])[0].startswith(robot.name)


@needs_logs
@pytest.mark.parametrize('robot', ROBOTS[1:], ids=lambda robot: robot.name)
def test_rows_could_tell_no_more_than_they_do(robot, tmp_path):
    out = tmp_path / 'out.json'
    arguments = ['identify', f'{DATA}/{robot.fitted[0]}', '--robot', DATA / robot.urdf,
                 '--config', CONFIGS / robot.config, '--json', out]  # fmt: skip
    assert main(list(map(str, arguments))) == 0
    (found,) = json.loads(out.read_text())['submodels']
    assert found['combinations'] == found['determined'] == found['rank'] == RANKS[robot.name]


@needs_logs
def test_with_little_data_a_prior_of_bodies_is_worth_most():
    tx40 = next(robot for robot in ROBOTS if robot.name == 'TX40')
    found = compare(tx40, DATA, CONFIGS).short
    for seconds in tx40.short:
        errors = {method: np.median(values) for method, values in found[seconds].items()}
        for other in (OLS, WLS, LMI, LMI_EUCLIDEAN):
            assert errors[ENTROPIC] < 0.8 * errors[other], (seconds, other)
            assert errors[DEFAULT] < 0.8 * errors[other], (seconds, other)


def test_a_folder_without_logs_is_refused(tmp_path):
    with pytest.raises(ConfigError, match='holds none of'):
        real_robots.compare_all(tmp_path)


PEER = """
import json, sys
import numpy as np
given = np.load(sys.argv[1])
print('hello')
x = None if {nothing} else list(map(float, given['prior'][::-1]))
print(json.dumps(dict(x=x, names=json.loads(str(given['names']))[::-1], time=0.5, status='odd')))
"""


def test_figaroh_is_asked_by_names(monkeypatch, rng):
    problem = humanoid_case(rng).problem()
    monkeypatch.setattr(figaroh, 'SCRIPT', PEER.format(nothing=False))
    found = figaroh.solve(problem, sys.executable)
    np.testing.assert_array_equal(found.x, problem.prior_point())
    assert found.time == 0.5
    monkeypatch.setattr(figaroh, 'SCRIPT', PEER.format(nothing=True))
    with pytest.raises(ModelError, match='finds nothing: odd'):
        figaroh.solve(problem, sys.executable)
    monkeypatch.setattr(figaroh, 'SCRIPT', 'import no_such_module')
    with pytest.raises(ModelError, match='no_such_module'):
        figaroh.solve(problem, sys.executable)
    with pytest.raises(ModelError, match='does not run'):
        figaroh.solve(problem, '/no/such/python')
