# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Coverage from noisy messages to results: through the streams, their filters, and the estimate.

One motion is sent without noise and with it, so that both have the lag of the filters. It repeats
itself after a second, so that a few states serve all draws. Draws are independent: the filters
have forgotten the one before.

Not covered: errors that stay, such as offsets, lag and wrong models; stamps that jitter; noise
that is not white.
"""

from typing import Any

import numpy as np
import pytest
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import Sample, SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import stream_noise

RATE = 200
"""Of all messages [Hz]."""
WINDOW = 0.03
"""Of the derivatives: seven samples [s]."""
SPACING = 8
"""
Messages from draw to draw: one more than a window holds.

Of a draw the Kalman filter below has forgotten all but exp(-5.6) by the next one.
"""
STATES = 20
"""Draws after which the motion repeats itself."""
DRAWS = 3000
COVERAGE = (0.93, 0.97)
"""Of two standard deviations, 95.45 %: the nearer bound is four deviations of the count away."""
STILL = 1e-9
"""Deviations [N, Nm] up to which a component cannot err."""
ROUND_OFF = 1e-6
"""By how much it does [N, Nm]."""
FT_NOISE = (0.3, 0.4, 0.5, 0.02, 0.03, 0.01)

FORCES = {
    'contacts': ['root', 'hand', 'upper_arm', 'thigh', 'foot'],
    'contact.hand.kind': 'force',
    'contact.hand.point': [0.0, 0.1, -0.2],
    'contact.upper_arm.kind': 'force',
    'contact.upper_arm.point': [0.05, 0.0, 0.1],
}
"""Two forces in one submodel: undetermined along the line through their points."""
HEAD: dict[str, Any] = {
    'imu.h1.frame': 'head',
    'imu.h1.pose': [0.1, 0.0, 0.05, 0.3, 0.2, 0.1],
    'imu.h2.frame': 'head',
    'imu.h2.pose': [0.0, 0.1, 0.0, -0.4, 0.1, 0.2],
    'imu.h2.accelerometer_noise': 0.1,
    'imu.c.frame': 'chest',
    'imu.c.pose': [0.2, 0.1, 0.0, 0.1, 0.0, 0.9],
    'imu.c.measures': 'accelerometer',
}
CASES: dict[str, dict[str, Any]] = {
    'savitzky_golay, forces': {'joint_states.velocity_source': 'filter', **FORCES},
    'kalman, an FT sensor lost': {
        'filter.kind': 'kalman',
        'joint_states.velocity_source': 'filter',
        'filter.joint_jerk': 300.0,
        'lost': 'foot_sensor',
    },
    'several IMUs, delay and smoothing': {
        'joint_states.velocity_source': 'filter',
        'filter.delay': 0.013,
        'filter.smooth_readings': True,
        'imus': ['h1', 'h2', 'c'],
        **HEAD,
    },
}


def settings_of(**given: Any) -> EstimatorSettings:
    """Return settings; what the filters assume is not the noise of the gyroscopes."""
    stated: dict[str, Any] = {
        'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
        'imus': ['head'],
        'contacts': ['root', 'hand', 'thigh', 'foot'],
        'filter.window': WINDOW,
        'joint_states.position_noise': 2e-5,
        'joint_states.velocity_noise': 0.02,
    } | given
    stated |= {f'ft.{name}.noise': list(FT_NOISE) for name in stated['ft_sensors']}
    stated |= {f'imu.{stated["imus"][0]}.gyroscope_noise': 8e-3}
    return EstimatorSettings.from_dict(stated)


class Messages:
    """A motion that repeats itself, as messages of all streams."""

    def __init__(self, settings: EstimatorSettings) -> None:
        self.settings = settings
        self.robot = robot = build_robot(settings, nested_humanoid_urdf())
        n, n_imus, n_fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        imus = [settings.imu_of(imu.name) for imu in robot.imus]
        # Mean, amplitude and noise of each signal: joints, IMUs, FT sensors.
        mean = np.r_[np.zeros(2 * n), np.tile([0.0] * 5 + [9.81], n_imus), np.zeros(6 * n_fts)]
        size = [np.full(n, 0.3), np.full(n, 2.0), np.tile([1.0] * 3 + [3.0] * 3, n_imus)]
        size.append(np.tile([30.0] * 3 + [3.0] * 3, n_fts))
        self.noise = np.concatenate([
            np.full(n, settings.joint_states.position_noise),
            np.full(n, settings.joint_states.velocity_noise),
            *(np.repeat([imu.gyroscope_noise, imu.accelerometer_noise], 3) for imu in imus),
            *(np.array(settings.ft_of(sensor.name).noise) for sensor in robot.ft_sensors),
        ])  # fmt: skip
        phases = np.random.default_rng(7).uniform(0.0, 2.0 * np.pi, len(self.noise))
        turns = 2.0 * np.pi * np.arange(STATES * SPACING)[:, None] / (STATES * SPACING)
        self.truth = mean + np.concatenate(size) * np.sin(turns + phases)

    def samples(
        self, draws: int, lost: str, rng: np.random.Generator | None = None
    ) -> tuple[list[Sample], StreamRates]:
        """Return the sample of each draw, with noise if there is a generator, and the rates."""
        assembler = SampleAssembler(self.robot, self.settings)
        rows = np.tile(self.truth, (draws // STATES + 1, 1))
        if rng is not None:
            rows += self.noise * rng.standard_normal(rows.shape)
        n, n_imus = len(self.robot.joint_names), len(self.robot.imus)
        names = [sensor.name for sensor in self.robot.ft_sensors]
        found: list[Sample] = []
        for k, row in enumerate(rows):
            stamp = 1_000_000_000 + k * round(1e9 / RATE)
            imus, fts = np.split(row[2 * n :].reshape(-1, 6), [n_imus])
            for i, (name, reading) in enumerate(zip(names, fts, strict=True)):
                if name != lost:
                    assembler.push_ft(i, stamp, reading)
            for i, reading in enumerate(imus):
                assembler.push_imu(i, stamp, reading[:3], reading[3:])
            sample = assembler.push_joints(
                0, stamp, self.robot.joint_names, row[:n], row[n : 2 * n], np.empty(0)
            )
            # The first round fills the filters.
            if k >= STATES * SPACING and k % SPACING == 0:
                assert sample is not None
                found.append(sample)
        return found, assembler.rates()


@pytest.mark.parametrize('case', CASES)
def test_coverage_from_messages_to_results(case):
    given = dict(CASES[case])
    lost = given.pop('lost', '')
    settings = settings_of(**given)
    messages = Messages(settings)
    exact, rates = messages.samples(STATES, lost)
    noisy, _ = messages.samples(DRAWS, lost, np.random.default_rng(0))
    noise = stream_noise(settings, messages.robot, rates)
    assert all(noise.covers(sample) for sample in exact)
    estimator = build_estimator(settings, messages.robot)
    exact, noisy = SampleBatch.stack(exact), SampleBatch.stack(noisy)
    deviations = Uncertainty(estimator, noise.model).of_batch(exact)
    truth, found = estimator.batch(exact), estimator.batch(noisy)
    states = np.arange(DRAWS) % STATES
    counted = 0
    for kind in ('wrenches', 'torques', 'external_torques', 'residuals'):
        deviation = getattr(deviations, kind)[states]
        error = np.abs(getattr(found, kind) - getattr(truth, kind)[states])
        sure = np.isfinite(deviation).all(axis=0) & (deviation > STILL).all(axis=0)
        still = (deviation <= STILL).all(axis=0)
        assert error[:, still].max(initial=0.0) < ROUND_OFF, kind
        within = (error < 2.0 * deviation)[:, sure].mean(axis=0)
        counted += len(within)
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), (kind, within)
    assert counted > 2 * len(messages.robot.joint_names)
