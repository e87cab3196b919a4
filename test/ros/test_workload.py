# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Why work does not keep up. Not covered: how long anything takes."""

from inertial_estimation.ros.workload import Spent, shortfall, stopwatch


def test_work_that_keeps_up_has_no_reason():
    assert shortfall(Spent(1.0, 1.0), 1.0) == ''


def test_who_waits_is_told_from_who_has_too_much_to_do():
    waits = shortfall(Spent(8.6, 0.4), 1.0)
    assert '8.6 s' in waits and '0.4 s' in waits and 'processor of its own' in waits
    works = shortfall(Spent(1.2, 0.5).plus(Spent(0.3, 0.4)), 1.0)
    assert "'rows_rate'" in works and 'waits' not in works


def test_a_stopwatch_goes_on():
    spent = stopwatch()
    first = spent()
    assert Spent(0.0, 0.0) <= first <= spent()
