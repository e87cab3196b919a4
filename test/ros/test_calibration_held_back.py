# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
``calibrate live`` with loads that are not as stated: shown, not written, not handed over.

Not covered: what else speaks against a matrix, in `test_matrix_doubts`.
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from hanging_body import MATRIX
from session_bench import (
    ACCELEROMETER,
    LOADS,
    READINGS,
    SENSOR,
    WORKSHOP,
    Body,
    SessionBench,
    end_call,
    lead_through,
    stated,
)

from inertial_estimation.calibration.calibration_file import read

pytestmark = pytest.mark.live

MISTAKES = {
    'mass': {1: LOADS[1], 2: (0.25, LOADS[2][1])},
    'order': {1: LOADS[2], 2: LOADS[1]},
}


@pytest.mark.parametrize('mistake', MISTAKES)
def test_a_matrix_that_cannot_be_is_held_back_until_loads_are_restated(
    context, rng, tmp_path, mistake
):
    wrong = MISTAKES[mistake]
    bench, session = SessionBench(context, tmp_path / 'robot.yaml'), tmp_path / 's.json'
    call = (
        '--readings', READINGS, '--imu', ACCELEROMETER, '--imu-rpy', 0, 0, 0,
        '--out', bench.path, '--session', session,
    )  # fmt: skip
    try:
        before = bench.path.read_bytes()
        ended = lead_through(bench, Body(rng, bench), (*call, *stated(wrong)))
        check_held_back(ended, bench)
        assert bench.path.read_bytes() == before
        mended = end_call(bench, (*call, *stated(), '--restate'))
        matrix = bench.matrix
    finally:
        bench.close()
    assert mended.code == 0, mended.errors
    assert mended.figures['estimator']['taken_over'], mended.figures['estimator']
    one = read(bench.path)[1][SENSOR]
    # Six deviations: the largest of 36 errors.
    assert np.abs((one.matrix - MATRIX) / mended.figures['deviations']).max() < 6.0
    np.testing.assert_array_equal(matrix, one.matrix)


def check_held_back(ended, bench):
    """Check that the reason is reported, and nothing is changed."""
    assert ended.code == 1, ended.errors
    assert 'error' in {one['level'] for one in ended.figures['findings']}
    assert ended.figures['output'] is None and ended.figures['estimator'] is None
    np.testing.assert_array_equal(bench.matrix, WORKSHOP)
