# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What a session leaves: a matrix that cannot be is neither written nor handed over.

Not covered: sessions with topics and an estimator, in `test_calibration_session`.
"""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rclpy')


from hanging_body import GRAVITY, MATRIX
from turned_body import TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration, read
from inertial_estimation.calibration.coverage import DIRECTIONS
from inertial_estimation.calibration.session import NOTHING, Load, Plan, Session
from inertial_estimation.ros.calibration_results import finish

LOADS = (NOTHING, Load('far', 0.5, (0.3, -0.05, 0.1)), Load('side', 0.5, (0.0, 0.2, 0.1)))
POSES = GRAVITY * np.vstack([DIRECTIONS, DIRECTIONS[:14]])


@pytest.mark.parametrize('hung', [(0, 1, 2), (0, 2, 1)])
def test_a_matrix_that_cannot_be_is_not_written(rng, tmp_path, hung):
    before = SensorCalibration(1.02 * MATRIX)
    plan = Plan('foot', "IMU 'foot'", LOADS, before=before, rotation=np.eye(3))
    session, body = Session(plan), TurnedBody(rng)
    for k in hung:
        body.added, body.at = LOADS[k].mass, LOADS[k].centre
        body.go_through(session.collection, POSES, 0.6)
        session.close_step()
    out = tmp_path / 'new.yaml'
    setup = SimpleNamespace(output=out, robot='robot', warnings=())
    # Nobody is asked to take it over: there is no node.
    job = {'sensor': 'foot', 'temperature': 20.0, 'estimator': '', 'session': None}
    found = finish(None, None, job, setup, session, '2026-11-22T12:00:00+00:00')
    assert found.tables and found.as_dict()['refused'] == found.refused
    if hung == (0, 1, 2):
        assert not found.refused and list(read(out)[1]) == ['foot']
    else:
        assert 'wrong order' in found.refused and not out.exists()
        assert found.figures['output'] is None
