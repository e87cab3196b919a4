# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Findings of a replay: momentum, sensors against each other, dependence, slow senders.

Not covered: the checks themselves (test_momentum_check.py, test_sensor_residuals.py,
test_dependence.py), and wrenches through joints (test_replay_through.py).
"""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import (
    POINT,
    point,
    write_bag,
)
from consistent_readings import ConsistentReadings, random_motion
from replays import (
    MS,
    SETTINGS,
    START,
    codes,
    humanoid_messages,
    record,
    replay_bag,
    report_of,
    setup,
)
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import run
from inertial_estimation.logs.sensor_agreement import momentum_record
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch

# Sums of squares in another order; a batch and a step sum in another order, too.
ROUND_OFF = 1e-9
# Readings of some hundred N and 10 m/s^2 that fit together.
EXACT = 1e-8
LONG = 500
"""Cycles of 5 ms: four windows of half a second, and the time that filters take to fill."""


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


# ---- Momentum ----------------------------------------------------------------------------------


def test_momentum_is_checked_as_by_the_node(tmp_path, robot, settings):
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, LONG))
    replay = run(open_log(bag, robot, settings), robot, settings)
    found = SimpleNamespace(**momentum_record(replay))
    check, estimator = MomentumCheck(robot), build_estimator(settings, robot)
    for k in range(LONG):
        sample = replay.recording.samples[k]
        check.add(sample, estimator.update(sample))
    wanted = check.report()
    assert found.windows == wanted.windows == 4
    unexplained = found.unexplained_force_n, found.unexplained_moment_nm
    np.testing.assert_allclose(unexplained, wanted.unexplained, rtol=ROUND_OFF)
    change = found.change_of_linear_momentum_n, found.change_of_angular_momentum_nm
    np.testing.assert_allclose(change, wanted.change, rtol=ROUND_OFF)
    assert 0.0 < found.noise_force_n < np.inf
    assert not found.doubtful_s


def test_uninformed_torques_are_found_with_their_share(rng):
    robot, settings = setup(contacts=['root', 'thigh', 'sole', 'hand'])
    report = report_of(record(robot, rng), robot, settings)
    (found,) = (one for one in report.findings if one.code == 'uninformed')
    assert found.values['joints'] == 'neck' and found.values['share'] == 1.0
    samples = record(robot, rng)
    samples.ft_readings[:2] = np.nan
    findings = report_of(samples, robot, settings).findings
    assert 0.25 in [one.values['share'] for one in findings if one.code == 'uninformed']


# ---- Sensors against each other ----------------------------------------------------------------


def consistent(robot, rng, n=20, frame='root'):
    """Return readings that fit together; only one link is touched."""
    readings = ConsistentReadings(robot)
    wrenches = {frame: np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])}
    samples = [readings.sample(random_motion(robot, rng), wrenches)[0] for _ in range(n)]
    batch = SampleBatch.stack(samples)
    return replace(batch, stamp_ns=1_000_000_000 * np.arange(1, n + 1))


def residuals_of(report):
    return {(r.sensor, r.quantity): r for r in report.sensor_residuals}


def test_consistent_sensors_leave_no_residual(rng):
    robot, settings = setup(contacts=['root'])
    report = report_of(consistent(robot, rng), robot, settings)
    assert report.residual_instants == 20
    found = residuals_of(report)
    assert len(found) == 2 * 2 + 2 * 3
    for residual in found.values():
        assert residual.n_instants == 20
        assert residual.rms <= residual.largest < EXACT * max(1.0, residual.rms_reading)
        assert not residual.doubtful


def test_inconsistent_sensors_are_found(rng):
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1] *= -1.0
    samples.ft_readings[:, 0, :3] += 50.0
    report = report_of(samples, robot, settings)
    doubtful = {key for key, r in residuals_of(report).items() if r.doubtful}
    assert {('thigh', 'acceleration'), ('arm_sensor', 'force')} <= doubtful
    np.testing.assert_allclose(residuals_of(report)['arm_sensor', 'moment'].rms, 0, atol=500)
    assert {('sensor_residual', 'thigh'), ('sensor_residual', 'arm_sensor')} <= codes(report)


def test_bias_smaller_than_gravity_is_found(rng):
    robot, settings = setup(contacts=['root'])
    samples = consistent(robot, rng)
    samples.proper_accelerations[:, 1, 2] += 0.3
    report = report_of(samples, robot, settings)
    thigh = residuals_of(report)['thigh', 'acceleration']
    assert thigh.doubtful and thigh.constant
    assert thigh.rms < 0.25 * thigh.rms_change < 0.25 * thigh.rms_reading
    assert thigh.rms == pytest.approx(0.3)
    (found,) = (one for one in report.findings if one.subject == 'thigh')
    assert found.values['constant']


# ---- What is judged, senders of touches, arrays ------------------------------------------------


def touch(ms, frame, values):
    stamp = START + ms * MS
    return ('/contacts', POINT, stamp, point(stamp, frame, values))


@pytest.mark.parametrize(
    ('every', 'warned'), [([10] * 20, False), ([50] * 5, True), ([10, 90, 10, 10, 120], False)]
)
def test_senders_slower_than_the_timeout_are_found(tmp_path, robot, every, warned):
    settings = EstimatorSettings.from_dict(SETTINGS | {'contact_timeout': 0.02})
    touches = [touch(int(ms), 'shank', (0.0, 0.1, 0.2)) for ms in np.cumsum(every)]
    messages = sorted([*humanoid_messages(robot), *touches], key=lambda m: m[2])
    report = replay_bag(write_bag(tmp_path / 'bag', messages), nested_humanoid_urdf(), settings)
    found = [one for one in report.findings if one.code == 'slow_contacts']
    assert bool(found) == warned
    if warned:
        assert found[0].values == {'count': 4, 'period': pytest.approx(0.05)}
