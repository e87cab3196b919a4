# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The benchmark of long logs, on a short one. Not covered: how fast it is."""

import pytest

from inertial_estimation.benchmark import reduction
from inertial_estimation.benchmark.reduction import COLUMNS, RATE, as_dict, goals, measure
from inertial_estimation.simulation.description import icub_urdf

pytest.importorskip('icub_models')
DURATION = 1.0


def test_rows_of_all_submodels_are_counted():
    """Per instant that is left: 32 efforts, and six rows of each submodel."""
    left = round((DURATION - 2 * 0.2) * RATE)
    for cuts, submodels in (('at its FT sensors', 7), ('none', 1)):
        found = reduction.reduce(icub_urdf(), cuts, DURATION)
        assert found.rows == left * (32 + 6 * submodels)
        assert len(found.row) == len(COLUMNS)


def test_each_robot_is_measured_in_a_process_of_its_own():
    found = measure(DURATION)
    assert [one['cuts'] for one in as_dict(found)] == ['at its FT sensors', 'none']
    assert all(one.memory > 0 and one.reducing > 0 for one in found)
    assert len(goals(found)) == 2
