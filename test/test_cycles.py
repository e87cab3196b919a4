# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Statistics of the node's cycles; what is made of them is in ros/test_estimator_node.py."""

import numpy as np
import pytest

from inertial_estimation.outputs.cycle_times import CAPACITY, Cycles

PERIOD_NS = 2_000_000


def fed(stamps, durations=None):
    cycles = Cycles()
    for k, stamp in enumerate(stamps):
        cycles.add(int(stamp), 1e-4 if durations is None else durations[k])
    return cycles


def test_percentiles_of_the_durations():
    durations = 1e-6 * np.arange(1, 102)
    report = fed(PERIOD_NS * np.arange(1, 102), durations).report()
    np.testing.assert_allclose(
        [report.duration_p50, report.duration_p99, report.duration_max], (51e-6, 100e-6, 101e-6)
    )
    assert report.count == 101
    assert report.interval == pytest.approx(1e-9 * PERIOD_NS)


def test_gaps_are_counted_in_periods():
    jitter = np.random.default_rng(1).normal(0.0, 0.1 * PERIOD_NS, 100)
    stamps = PERIOD_NS * np.arange(1, 101) + jitter
    kept = np.delete(stamps, [10, 40, 41, 42])
    assert fed(kept).report().missed == 4
    assert fed(stamps).report().missed == 0


def test_late_stamps_are_not_missing():
    stamps = PERIOD_NS * np.arange(1, 101)
    stamps[10] += round(0.7 * PERIOD_NS)
    # A publisher that stood still for a while and then caught up.
    stamps[30:36] = stamps[36] - np.arange(6, 0, -1)
    assert fed(stamps).report().missed == 0


def test_a_gap_between_two_reports_is_counted_once():
    cycles = fed(PERIOD_NS * np.arange(1, 11))
    assert cycles.report().missed == 0
    for k in range(13, 23):
        cycles.add(k * PERIOD_NS, 1e-4)
    assert cycles.report().missed == 2
    assert cycles.report().missed == 0
    assert cycles.total_missed == 2


def test_time_set_back_is_no_gap():
    stamps = PERIOD_NS * np.concatenate([np.arange(500, 520), np.arange(1, 20)])
    assert fed(stamps).report().missed == 0


@pytest.mark.parametrize('report_between', [False, True])
def test_a_pause_is_no_gap(report_between):
    cycles = fed(PERIOD_NS * np.arange(1, 11))
    missed = cycles.report().missed if report_between else 0
    cycles.restart()
    for k in (1000, 1001, 1003, 1004):
        cycles.add(k * PERIOD_NS, 1e-4)
    report = cycles.report()
    # What is missing after the pause still counts.
    assert missed + report.missed == cycles.total_missed == 1
    assert report.interval == pytest.approx(1e-9 * PERIOD_NS)


@pytest.mark.parametrize(('seconds', 'waited'), [(7200.0, 0.004), (4.0, 4.0), (4.0, 1.0)])
@pytest.mark.parametrize('report_between', [False, True])
def test_a_jump_and_a_stop_are_no_missing_cycles(seconds, waited, report_between):
    cycles, stamp, now = Cycles(), 1_000_000_000, 0
    for k in range(60):
        long = k == 30
        stamp += round(1e9 * seconds) if long else PERIOD_NS
        now += round(1e9 * waited) if long else PERIOD_NS
        if long and report_between:
            assert cycles.report().missed == 0
        # The one cycle after it may be the only one of a report.
        cycles.add(stamp, 1e-4, now)
        if long and report_between:
            report = cycles.report()
    report = report if report_between else cycles.report()
    jumps = waited < 0.1
    assert report.jumped == pytest.approx(seconds if jumps else 0.0)
    assert report.stopped == pytest.approx(0.0 if jumps else seconds)
    after = cycles.report()
    assert (after.stopped, after.jumped) == (0.0, 0.0)
    assert cycles.total_missed == 0


def test_cycles_that_are_missing_beside_a_stop_count():
    stamps = PERIOD_NS * np.concatenate([np.arange(1, 50), np.arange(2052, 2080)])
    stamps = np.delete(stamps, [10, 60])
    cycles = Cycles()
    for stamp in stamps:
        cycles.add(int(stamp), 1e-4, int(stamp))
    report = cycles.report()
    assert (report.missed, report.stopped) == (2, pytest.approx(4.006))


def test_slow_joint_states_are_no_stop():
    seconds = 1_500_000_000 * np.arange(1, 10)
    report = fed(np.delete(seconds, 5)).report()
    assert (report.missed, report.stopped, report.jumped) == (1, 0.0, 0.0)


def test_nothing_to_report():
    report = Cycles().report()
    assert (report.count, report.missed) == (0, 0)
    assert np.isnan(
        [report.interval, report.duration_p50, report.duration_p99, report.duration_max]
    ).all()
    assert (report.stopped, report.jumped) == (0.0, 0.0)


def test_only_the_newest_are_kept():
    n = CAPACITY + 100
    durations = np.zeros(n)
    durations[:50] = 1.0
    report = fed(PERIOD_NS * np.arange(1, n + 1), durations).report()
    assert report.count == n
    assert report.duration_max == 0.0
