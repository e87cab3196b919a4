# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The demo: recorded estimates against the truth, refused arguments, and processes that end.

Not covered: a whole run, which is `make demo` and a test of the nodes.
"""

import json
import time

import numpy as np
import pytest

from inertial_estimation.demo.processes import DemoError, Processes
from inertial_estimation.demo.run import LONGEST, run
from inertial_estimation.demo.scores import Recording, score_load
from inertial_estimation.errors import ConfigError

N, PERIOD_NS = 3000, 10_000_000
UP = 10 * 1_000_000_000
FORCE_ERROR = np.array([3.0, 4.0, 0.0])
BODY = [1.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.01, 0.0, 0.0, 0.01]


@pytest.fixture
def recording(tmp_path):
    """Write a recording whose estimator is off by 5 N at one of two contacts, with a load."""
    stamps = PERIOD_NS * np.arange(1, N + 1)
    names = ['l_hand', 'r_hand']
    rng = np.random.default_rng(0)
    truth, torques = rng.normal(size=(N, 2, 6)), rng.normal(size=(N, 3, 1))
    found = truth[:, ::-1].copy()
    found[:, 1, :3] += FORCE_ERROR * (stamps < UP + 5e9)[:, None]
    arrays = {}
    for name, wrenches, order in (('robot', truth, names), ('one', found, names[::-1])):
        kept = slice(None) if name == 'robot' else np.r_[100:200, 210:N]
        for topic, values, labels in (
            ('external_wrenches', wrenches, order), ('joint_torques', torques, list('abc')),
        ):  # fmt: skip
            columns = {'names': labels, 'stamps': stamps[kept], 'values': values[kept]}
            columns['arrivals'] = stamps[kept] + 2_000_000
            arrays |= {f'{name}/{topic}/{key}': value for key, value in columns.items()}
    heavier = [2.0, *BODY[1:]]
    events = [
        {'topic': 'robot/load', 'stamp': UP, 'frame': 'l_hand', 'mass': 1.0,
         'center': [0.0, 0.0, 0.1]},
        {'topic': 'inertial_parameters', 'stamp': UP - 1, 'label': 'arm l_hand',
         'data': [*BODY, *BODY]},
        {'topic': 'inertial_parameters', 'stamp': UP + 5, 'label': 'arm l_hand',
         'data': [*BODY, *heavier]},
        {'topic': 'id/payloads', 'stamp': UP + 5, 'label': 'x: y; arm: l_hand',
         'data': [9.0] * 8 + [1.01, 0.0, 0.0, 0.102] + [0.0] * 4},
    ]  # fmt: skip
    path = tmp_path / 'scene.npz'
    np.savez(path, events=json.dumps(events), **arrays)
    return Recording(path, 'robot')


def test_errors_are_those_of_equal_stamps_and_names(recording):
    figures = recording.figures('one')
    share = (UP + 5e9) / (N * PERIOD_NS)
    # 5 N at one of two contacts for a share of the time; 110 of 3000 samples are not compared.
    assert figures['force_n'] == pytest.approx(np.sqrt(25.0 * share / 2), rel=0.05)
    assert figures['moment_nm'] == figures['torque_nm'] == 0.0
    assert figures['missed_cycles'] == 10
    assert figures['age_p50_s'] == pytest.approx(2e-3)


def test_load_is_judged_after_its_time(recording):
    figures, goals = score_load(recording, 'id', 'one', ('arm', 'l_hand'), 'arm', 2.0)
    assert figures['arm_heavier_by_kg'] == pytest.approx(1.0)
    assert figures['found_kg'] == pytest.approx(1.01)
    assert figures['center_error_m'] == pytest.approx(0.002)
    assert figures['false_force_first_n'] == pytest.approx(5.0)
    assert figures['false_force_last_n'] == 0.0
    # The false force at first is smaller than a load of 1 kg makes.
    assert [goal.reached for goal in goals] == [True, True, True, False, True, True]
    recording.events = []
    assert not any(g.reached for g in score_load(recording, 'id', 'one', ('arm',), 'arm', 2.0)[1])


@pytest.mark.parametrize(
    'given', [{'duration': 1.0}, {'duration': LONGEST + 1}, {'duration': np.nan}, {'seed': -1}]
)
def test_arguments_are_refused(given):
    with pytest.raises(ConfigError):
        run(**given)


def test_processes_end_with_their_block_and_early_ends_are_errors():
    with Processes() as processes:
        process = processes.start('clock', 'no_such_module', [])
        deadline = time.monotonic() + 30.0
        while process.popen.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        with pytest.raises(DemoError):
            processes.check()
    assert process.popen.poll() == 1
