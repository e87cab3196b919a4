# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The demo: recorded estimates against the truth, and refused arguments.

Not covered: a whole run, which is `make demo` and a test of the nodes.
"""

import numpy as np
import pytest

from inertial_estimation.demo.run import LONGEST, run
from inertial_estimation.demo.scores import Recording
from inertial_estimation.errors import ConfigError

N, PERIOD_NS = 3000, 10_000_000
UP = 10 * 1_000_000_000
FORCE_ERROR = np.array([3.0, 4.0, 0.0])


@pytest.fixture
def recording(tmp_path):
    """Write a recording whose estimator is off by 5 N at one of two contacts."""
    stamps, names = PERIOD_NS * np.arange(1, N + 1), ['l_hand', 'r_hand']
    rng = np.random.default_rng(0)
    truth, torques = rng.normal(size=(N, 2, 6)), rng.normal(size=(N, 3, 1))
    found = truth[:, ::-1].copy()
    found[:, 1, :3] += FORCE_ERROR * (stamps < UP + 5e9)[:, None]
    arrays = {}
    for name, wrenches, order in (('robot', truth, names), ('one', found, names[::-1])):
        kept = np.r_[0:500, 505:N] if name == 'robot' else np.r_[100:200, 210:500, 505:N]
        for topic, values, labels in (
            ('external_wrenches', wrenches, order), ('joint_torques', torques, list('abc')),
        ):  # fmt: skip
            columns = {'names': labels, 'stamps': stamps[kept], 'values': values[kept]}
            columns['arrivals'] = stamps[kept] + 2_000_000
            arrays |= {f'{name}/{topic}/{key}': value for key, value in columns.items()}
    path = tmp_path / 'scene.npz'
    np.savez(path, events='[]', **arrays)
    return Recording(path, 'robot')


def test_errors_are_those_of_equal_stamps_and_names(recording):
    figures = recording.figures('one')
    share = (UP + 5e9) / (N * PERIOD_NS)
    # 5 N at one of two contacts for a share of the time; 115 of 3000 samples are not compared.
    assert figures['force_n'] == pytest.approx(np.sqrt(25.0 * share / 2), rel=0.05)
    assert figures['moment_nm'] == figures['torque_nm'] == 0.0
    # Five of them the robot left out.
    assert figures['missed_cycles'] == 15
    assert figures['missed_share'] == pytest.approx(15 / 2900)
    assert figures['age_p50_s'] == pytest.approx(2e-3)


@pytest.mark.parametrize(
    'given', [{'duration': 1.0}, {'duration': LONGEST + 1}, {'duration': np.nan}, {'seed': -1}]
)
def test_arguments_are_refused(given):
    with pytest.raises(ConfigError):
        run(**given)
