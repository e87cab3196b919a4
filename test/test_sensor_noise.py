# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Noise of joints and IMUs behind a filter, and of readings by the settings and rates of streams.

Last, coverage from noisy messages to results. Not covered: errors that stay, such as offsets, lag
and wrong models; stamps that jitter; noise that is not white; momentum (test_momentum_check.py).
"""

from itertools import count

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch, SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.derivatives import (
    joint_differentiator,
    smoother,
)
from inertial_estimation.signals.stream_statistics import StreamRates
from inertial_estimation.uncertainty.deviations import LiveUncertainty, Uncertainty
from inertial_estimation.uncertainty.sensor_noise import (
    MomentumNoise,
    filter_weights,
    imu_covariance,
    joint_covariance,
    stream_noise,
)

JOINT_RATE, IMU_RATE, FT_RATE = 400.0, 200.0, 100.0
FT_NOISE = [0.1, 0.2, 0.3, 0.004, 0.005, 0.006]
STATED = {
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'imus': ['head'],
    'contacts': ['sole', 'hand', 'thigh', 'root'],
    'joint_states.position_noise': 2e-4,
    'joint_states.velocity_noise': 0.05,
    'ft.leg_sensor.noise': FT_NOISE,
    'imu.head.accelerometer_noise': 0.07,
    'imu.head.gyroscope_noise': 4e-3,
}
HIP = {'imus': ['head', 'hip'], 'imu.hip.gyroscope_noise': 0.5, 'imu.hip.accelerometer_noise': 0.2}
# The same products of the same weights.
ROUND_OFF = 1e-12


def settings_of(**given):
    return EstimatorSettings.from_dict(STATED | given)


def robot_of(settings):
    return build_robot(settings, nested_humanoid_urdf())


def rates_of(robot, joint=JOINT_RATE, imu=IMU_RATE, ft=FT_RATE):
    return StreamRates(
        np.full(len(robot.joint_names), joint),
        np.full(len(robot.imus), imu),
        np.full(len(robot.ft_sensors), ft),
    )


def noise_of(settings, **rates):
    robot = robot_of(settings)
    return stream_noise(settings, robot, rates_of(robot, **rates))


def assert_rows(rows, wanted):
    for row in rows:
        np.testing.assert_allclose(row, wanted, rtol=ROUND_OFF)


def test_noise_is_that_of_the_filters_at_their_rates():
    """The sample is that of the first joint state that lies as far back as the delay."""
    settings = settings_of(**{
        'filter.delay': 0.0205, 'filter.smooth_readings': True,
        'joint_states.velocity_source': 'filter',
    })  # fmt: skip
    noise = noise_of(settings)
    joints, imus, fts = (
        filter_weights(one, rate, delay=delay, smooth=True)
        for one, rate, delay in (
            (joint_differentiator(settings, 1), JOINT_RATE, 0.0225),
            (smoother(settings), IMU_RATE, 0.025), (smoother(settings), FT_RATE, 0.03),
        )
    )  # fmt: skip
    assert_rows(noise.model.joints, joint_covariance(2e-4, joints))
    accelerometer = 0.07 * np.linalg.norm(imus[0])
    assert_rows(noise.model.imus, imu_covariance(4e-3, accelerometer, imus))
    assert_rows(noise.model.fts[1:2], np.array(FT_NOISE) * np.linalg.norm(fts[0]))
    assert noise.joints.all() and noise.imus.all() and noise.fts.all()
    # Unfiltered signals are those of the nearest sample.
    weights = filter_weights(smoother(settings), 99.1, delay=0.05, smooth=False)
    assert weights[0, -1 - round(0.05 * 99.1)] == 1.0
    # Velocities of messages err on their own.
    own = noise_of(settings_of(**{'joint_states.velocity_source': 'message'})).model.joints
    assert own[:, 0, 2].all() and not own[:, 1, [0, 2]].any()


@pytest.mark.parametrize('rate', [np.nan, 30.0], ids=['unknown', 'too low for the window'])
def test_noise_is_stated_only_where_the_filter_works(rate, rng):
    settings = settings_of()
    robot, noise = robot_of(settings), noise_of(settings, imu=rate)
    assert noise.joints.all() and noise.fts.all() and not noise.imus.any()
    sample = random_sample(robot, rng)
    for state in (SensorState.FRESH, SensorState.WARMING):
        states = np.full(len(robot.imus), state, dtype=np.uint8)
        covered = noise.covers(sample._replace(imu_states=states))
        assert covered == (state is SensorState.WARMING)


def test_live_deviations_follow_the_rates(rng):
    settings = settings_of()
    robot = robot_of(settings)
    estimator = build_estimator(settings, robot)
    live, sample = LiveUncertainty(estimator, settings), random_sample(robot, rng)
    stamps = count(1_000_000_000, 1_000_000_000)

    def settled(rates):
        for _ in range(3):
            found = live.of(sample._replace(stamp_ns=next(stamps)), None, lambda: rates)
        return found

    assert settled(rates_of(robot, imu=np.nan)) is None
    for joint in (JOINT_RATE, 100.0):
        rates = rates_of(robot, joint=joint)
        wanted = Uncertainty(estimator, stream_noise(settings, robot, rates).model).of(sample)
        found = settled(rates)
        np.testing.assert_array_equal(found.wrenches, wanted.wrenches)
        np.testing.assert_array_equal(found.torques, wanted.torques)
    # A rate that is lost for a moment, or that of a stream that is not used, changes nothing.
    np.testing.assert_array_equal(settled(rates_of(robot, joint=np.nan)).torques, wanted.torques)
    sample = sample._replace(imu_states=np.array([SensorState.STALE], dtype=np.uint8))
    found = settled(rates_of(robot, joint=100.0, imu=7.0))
    np.testing.assert_array_equal(found.torques, wanted.torques)


def test_assembler_knows_the_rates_of_its_streams():
    settings = settings_of(**{'ft.foot_sensor.time_offset': 0.1})
    robot = robot_of(settings)
    assembler = SampleAssembler(robot, settings)
    assert all(np.isnan(own).all() for own in assembler.rates())
    names, zeros = robot.joint_names, np.zeros(6)
    for k in range(10):
        stamp = 1_000_000_000 + 10_000_000 * k
        assembler.push_joints(0, stamp, names[:2], zeros[:2], zeros[:2], np.empty(0))
        assembler.push_joints(1, 2 * stamp, names[2:4], zeros[:2], zeros[:2], np.empty(0))
        assembler.push_ft(2, stamp // 2, zeros)
        assembler.push_imu(0, 4 * stamp, zeros[:3], zeros[:3])
    joints, imus, fts = assembler.rates()
    np.testing.assert_allclose(joints, [100.0, 100.0, 50.0, 50.0, np.nan, np.nan])
    np.testing.assert_allclose(imus, [25.0])
    np.testing.assert_allclose(fts, [np.nan, np.nan, 200.0])


def test_momentum_noise_is_that_of_the_imu_in_use(rng):
    assumed = {'joint_states.assumed': ['neck'], 'joint_states.assumed_positions': [0.1]}
    settings = settings_of(**HIP, **assumed, **{'joint_states.velocity_source': 'message'})
    robot = robot_of(settings)
    noise, rates = MomentumNoise(settings, robot), rates_of(robot)
    unknown = np.isin(robot.joint_names, ['knee', 'neck'])
    rates.joints[unknown] = np.nan
    # An assumed joint has no noise and no rate.
    wanted = np.where(np.isin(robot.joint_names, ['neck']), 0.0, 0.05)
    wanted[robot.joint_names.index('knee')] = np.nan
    np.testing.assert_array_equal(noise.velocities(rates), wanted)
    rates.joints[:] = JOINT_RATE
    sample = random_sample(robot, rng)._replace(stamp_ns=1)
    for imu, gyroscope in (('head', 4e-3), ('hip', 0.5)):
        check, estimator = MomentumCheck(robot), WrenchEstimator(robot, [Contact('root')])
        check.add(sample, estimator.update(sample))
        assert check.imu == imu
        wanted = check.deviation(gyroscope, noise.velocities(rates))
        np.testing.assert_array_equal(noise.deviation(check, rates), wanted)
        sample.angular_velocities[0] = np.nan


# ---- Coverage: from noisy messages through the filters to results -------------------------------

# One motion is sent without noise and with it, so that both have the lag of the filters. It
# repeats itself after a second, so that a few states serve all draws. Draws are independent: the
# filters have forgotten the one before.

MESSAGE_RATE = 200
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
"""Deviations up to which a component cannot err by more than 1e-6 [N, Nm]."""

FORCES = {
    'contacts': ['root', 'hand', 'upper_arm', 'thigh', 'foot'],
    'contact.hand.kind': 'force',
    'contact.hand.point': [0.0, 0.1, -0.2],
    'contact.upper_arm.kind': 'force',
    'contact.upper_arm.point': [0.05, 0.0, 0.1],
}
"""Two forces in one submodel: undetermined along the line through their points."""
HEAD = {
    'imu.h1.frame': 'head',
    'imu.h1.pose': [0.1, 0.0, 0.05, 0.3, 0.2, 0.1],
    'imu.h2.frame': 'head',
    'imu.h2.pose': [0.0, 0.1, 0.0, -0.4, 0.1, 0.2],
    'imu.h2.accelerometer_noise': 0.1,
    'imu.c.frame': 'chest',
    'imu.c.pose': [0.2, 0.1, 0.0, 0.1, 0.0, 0.9],
    'imu.c.measures': 'accelerometer',
}
CASES = {
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
    'no accelerations': {
        'filter.smooth_readings': True,
        'joint_states.velocity_source': 'filter',
        'joint_states.acceleration_source': 'zero',
        'angular_acceleration_source': 'zero',
    },
}


def noisy_settings(given):
    """Return settings; what the filters assume is not the noise of the gyroscopes."""
    stated = {
        'ft_sensors': STATED['ft_sensors'],
        'imus': ['head'],
        'contacts': ['root', 'hand', 'thigh', 'foot'],
        'filter.window': WINDOW,
        'joint_states.position_noise': 2e-5,
        'joint_states.velocity_noise': 0.02,
    } | given
    stated |= {
        f'ft.{name}.noise': [0.3, 0.4, 0.5, 0.02, 0.03, 0.01] for name in stated['ft_sensors']
    }
    stated |= {f'imu.{stated["imus"][0]}.gyroscope_noise': 8e-3}
    return EstimatorSettings.from_dict(stated)


class Messages:
    """A motion that repeats itself, as messages of all streams."""

    def __init__(self, settings):
        self.settings = settings
        self.robot = robot = robot_of(settings)
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

    def samples(self, draws, lost, rng=None):
        """Return the sample of each draw, with noise if there is a generator, and the rates."""
        assembler = SampleAssembler(self.robot, self.settings)
        rows = np.tile(self.truth, (draws // STATES + 1, 1))
        if rng is not None:
            rows += self.noise * rng.standard_normal(rows.shape)
        n, n_imus = len(self.robot.joint_names), len(self.robot.imus)
        names = [sensor.name for sensor in self.robot.ft_sensors]
        found = []
        for k, row in enumerate(rows):
            stamp = 1_000_000_000 + k * round(1e9 / MESSAGE_RATE)
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
                found.append(sample)
        return found, assembler.rates()


@pytest.mark.parametrize('case', CASES)
def test_coverage_from_messages_to_results(case):
    given = dict(CASES[case])
    lost = given.pop('lost', '')
    settings = noisy_settings(given)
    messages = Messages(settings)
    exact, rates = messages.samples(STATES, lost)
    noisy, _ = messages.samples(DRAWS, lost, np.random.default_rng(0))
    noise = stream_noise(settings, messages.robot, rates)
    assert all(noise.covers(sample) for sample in exact)
    estimator = build_estimator(settings, messages.robot)
    uncertainty = Uncertainty(estimator, noise.model)
    deviations = [uncertainty.of(sample) for sample in exact]
    exact, noisy = SampleBatch.stack(exact), SampleBatch.stack(noisy)
    truth, found = estimator.batch(exact), estimator.batch(noisy)
    states = np.arange(DRAWS) % STATES
    counted = 0
    for kind in ('wrenches', 'torques', 'external_torques', 'residuals'):
        deviation = np.array([getattr(one, kind) for one in deviations])[states]
        error = np.abs(getattr(found, kind) - getattr(truth, kind)[states])
        sure = np.isfinite(deviation).all(axis=0) & (deviation > STILL).all(axis=0)
        still = (deviation <= STILL).all(axis=0)
        assert error[:, still].max(initial=0.0) < 1e-6, kind
        within = (error < 2.0 * deviation)[:, sure].mean(axis=0)
        counted += len(within)
        assert ((within > COVERAGE[0]) & (within < COVERAGE[1])).all(), (kind, within)
    assert counted > 2 * len(messages.robot.joint_names)
