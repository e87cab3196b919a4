# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Parts of logs as they are named on the command line."""

import numpy as np
import pytest

from inertial_estimation.errors import ConfigError, LogError
from inertial_estimation.logs.log import LogSlice

STAMPS = 5 * 10**9 + np.arange(100, dtype=np.int64) * 100_000_000


@pytest.mark.parametrize(
    ('said', 'rows'),
    [
        ('run.npz', (0, 100)),
        ('run.npz@2:4', (20, 40)),
        ('run.npz@9.5:', (95, 100)),
        ('run.npz@:0.35', (0, 4)),
        ('user@host.npz', (0, 100)),
        ('user@host.npz@0:1', (0, 10)),
    ],
)
def test_a_part_is_named_by_seconds_after_the_first_sample(said, rows):
    found = LogSlice.parse(said)
    assert found.rows(STAMPS).indices(100)[:2] == rows
    assert LogSlice.parse(str(found)) == found


@pytest.mark.parametrize('times', ['4:2', '-1:2', 'a:b', '1:nan', '3:3'])
def test_times_that_make_no_sense_are_refused(times):
    with pytest.raises(ConfigError):
        LogSlice.parse(f'run.npz@{times}')


def test_a_part_that_the_log_does_not_hold_is_refused():
    with pytest.raises(LogError):
        LogSlice.parse('run.npz@20:30').rows(STAMPS)


def test_parts_of_one_log_overlap_or_do_not():
    one = LogSlice.parse('run.npz@1:5')
    assert one.overlaps(LogSlice.parse('./run.npz@4:6'))
    assert one.overlaps(LogSlice.parse('run.npz'))
    assert not one.overlaps(LogSlice.parse('run.npz@5:6'))
    assert not one.overlaps(LogSlice.parse('other.npz@1:5'))
