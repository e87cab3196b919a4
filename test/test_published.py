# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``bench --published``: each experiment of the sources says what is expected, and that it holds.

Not covered: the figures themselves, which `test_humanoid_identification`, `test_manifold`,
`test_feasibility`, `test_wam7` and `test_excite` look at.
"""

import json
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from published_experiments import (
    data_sets,
    excitation,
    humanoid,
    run,
    tools,
    wam,
)
from published_experiments.experiment import Expectation, Finding
from published_experiments.run import EXPERIMENTS, Experiment
from shared_data import SHARED

from inertial_estimation.cli import main
from inertial_estimation.errors import ConfigError
from inertial_estimation.table import Table

DATA = SHARED / 'data'
needs_data = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')
FEW_POSES = 100
FAILS = 'DOES NOT HOLD'
# Not all that is asked of the tools holds: see `test_published_tools`.
HOLDING = [experiment for experiment in EXPERIMENTS if experiment.run is not tools.run]


def thin(experiment):
    """Return the run of an experiment, thinner where that changes nothing else."""
    if experiment.run is wam.run:
        return lambda folder: wam.run(folder, FEW_POSES)
    if experiment.run is excitation.run:
        return lambda folder: excitation.run(folder, starts=1)
    return experiment.run


@needs_data
@pytest.mark.parametrize('experiment', HOLDING, ids=lambda one: one.run.__module__)
def test_all_that_is_expected_holds(experiment):
    pytest.importorskip('clarabel')
    if experiment.run is humanoid.run:
        pytest.importorskip('icub_models')
        pytest.importorskip('clarabel')
    found = thin(experiment)(DATA)
    assert any(note.startswith('holds: ') for note in found.notes)
    assert not [note for note in found.notes if FAILS in note]
    for title, columns, rows in found.tables:
        assert title and rows
        assert all(len(row) == len(columns) for row in rows)
    json.dumps(run.as_dict([found]), allow_nan=False)


def test_names_of_experiments_are_their_own():
    names = [import_module(one.run.__module__).NAME for one in EXPERIMENTS]
    assert len(set(names)) == len(names)


def test_what_does_not_hold_is_said():
    assert Expectation('a < b', True).note == 'holds: a < b'
    assert Expectation('a < b', False).note == f'{FAILS}: a < b'


def test_a_humanoid_with_a_link_that_is_no_body_does_not_hold():
    score = humanoid.Score(
        'some', np.zeros((33, 10)), *np.ones((3, 6)), consistent=33, inside=33, mass_error=0.0,
        time=0.0,
    )  # fmt: skip
    bad = replace(score, consistent=32)
    same, near, bodies, plain, force = humanoid.expectations((bad, bad, score, score))
    assert same.holds and near.holds
    assert not (bodies.holds or plain.holds or force.holds)


@pytest.mark.parametrize('missing', [True, False])
def test_a_missing_folder_or_data_set_is_named_before_anything_runs(tmp_path, missing):
    folder = tmp_path / 'nowhere' if missing else tmp_path
    experiment = Experiment(lambda folder: pytest.fail('was run'), ('wam7/some.csv',))
    with pytest.raises(ConfigError, match='nowhere' if missing else r'lacks wam7/some\.csv'):
        run.run_all(folder, experiments=[experiment])


def test_files_that_hold_something_else_are_named(tmp_path):
    file = tmp_path / 'file'
    file.write_text('a,b\n1,2\n')
    assert data_sets.read_table(file, ('b',)) == [{'a': '1', 'b': '2'}]
    with pytest.raises(ConfigError, match='file.* lacks c'):
        data_sets.read_table(file, ('a', 'c'))
    with pytest.raises(ConfigError, match='file.* cannot be read'):
        data_sets.read_json(file, ())
    with pytest.raises(ConfigError, match='file.* cannot be read'):
        data_sets.read_array(file, 'q')
    file.write_text('{"a": 1}')
    with pytest.raises(ConfigError, match='lacks b'):
        data_sets.read_json(file, ('a', 'b'))


def test_the_command_prints_tables_and_notes_and_writes_json(tmp_path, monkeypatch, capsys):
    pytest.importorskip('icub_models')
    finding = Finding(
        'some source', (Table('its table', ('a',), (('1',),)),), ('holds: 1',), {'a': 1}
    )
    told = []
    experiment = Experiment(lambda folder: told.append(folder) or finding)
    monkeypatch.setattr(run, 'EXPERIMENTS', (experiment,))
    out = tmp_path / 'out.json'
    assert main(['bench', '--published', str(tmp_path), '--json', str(out)]) == 0
    printed = ' '.join(capsys.readouterr().out.split())
    assert all(text in printed for text in ('some source', 'its table', 'holds: 1'))
    assert told == [tmp_path]
    assert json.loads(out.read_text()) == {'some source': {'notes': ['holds: 1'], 'a': 1}}


@pytest.mark.parametrize('more', [(), ('--real-robots', '.')])
def test_calls_that_make_no_sense_end_without_tables(tmp_path, more, capsys):
    pytest.importorskip('icub_models')
    assert main(['bench', '--published', str(tmp_path / 'nowhere'), *more]) != 0
    printed = capsys.readouterr()
    assert '2 runs' in printed.err if more else 'nowhere' in printed.err
    assert not printed.out
