# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Updates of inertial parameters on probation, on simulated streams with noise.

The oracle is the robot that made the readings. Not covered: updates of an identifier, whose
figures docs/live_identification.md has; topics (test/ros/test_model_updates.py).
"""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf
from test_set_parameters import others

from bench.live_robots import smooth_motion, with_readings
from inertial_estimation.estimation.model_update import LEAST_SAMPLES, SAMPLE_PERIOD_NS, ModelInUse
from inertial_estimation.estimation.momentum_check import MomentumCheck
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

TRUE = Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')
RATE, BLEND = 50.0, 0.5
FT_NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
# Three sets on sixteen samples, one in each cycle.
TRIAL = 48 / RATE
SEEDS = pytest.mark.parametrize('seed', [1, 2, 3])
NO_OFFSETS = np.zeros((len(TRUE.ft_sensors), 6))


def stream(seed, seconds, wrenches=None, offsets=NO_OFFSETS, still=0.0):
    """Return samples of a robot that may stand still at first, and is pushed at some links."""
    motion = smooth_motion(TRUE, seconds, RATE, seed)
    rest = round(still * RATE)
    if rest:
        motion.positions[:rest] = motion.positions[rest]
        motion.velocities[:rest] = motion.accelerations[:rest] = 0.0
    samples = with_readings(TRUE, motion, TRUE.parameters, wrenches)
    noise = FT_NOISE * np.random.default_rng(seed).normal(size=samples.ft_readings.shape)
    return replace(samples, ft_readings=samples.ft_readings + offsets + noise)


class Live:
    """An estimator with some URDF that gets updates while it runs."""

    def __init__(self, samples: SampleBatch, parameters=TRUE.parameters):
        self.estimator = WrenchEstimator(TRUE.with_parameters(parameters))
        self.model = ModelInUse(self.estimator, BLEND)
        self._samples, self._next = samples, 0

    def run(self, seconds):
        for _ in range(round(seconds * RATE)):
            sample = self._samples[self._next]
            self.model.step(sample.stamp_ns)
            self.model.judge(sample)
            self._next += 1

    def offer(self, parameters, offsets=None):
        on = calibration_fingerprint(FtCalibration.identity(len(TRUE.ft_sensors)))
        update = ParameterUpdate(parameters, None, offsets, on)
        self.model.offer(update)
        return update

    def uses(self, parameters, offsets=NO_OFFSETS):
        used = self.estimator.robot.parameters, self.estimator.calibration.offsets
        return np.array_equal(used[0], parameters) and np.array_equal(used[1], offsets)


def wrong(kind, seed):
    """Return consistent parameters that the estimator accepts as those of its robot."""
    parameters, rng = TRUE.parameters.copy(), np.random.default_rng(seed)
    if kind == 'random':
        return others(TRUE, rng, 0.9)
    if kind == 'one link':
        parameters[TRUE.link_names.index('hand')] *= 2.0
        return parameters
    return {'half': 0.5, 'double': 2.0}[kind] * parameters


@SEEDS
@pytest.mark.parametrize('kind', ['half', 'double', 'random', 'one link'])
@pytest.mark.parametrize('start', [0.0, 6.0])
def test_wrong_updates_are_not_in_use_for_long(kind, start, seed):
    """Before there are samples to try them on they are taken, and gone back from."""
    live, bad = Live(stream(seed, 20.0)), wrong(kind, seed)
    live.run(start)
    live.offer(bad)
    assert (live.model.source == 'update') == (start == 0.0)
    live.run(10.0)
    assert live.uses(TRUE.parameters) and live.model.source == 'URDF'
    assert live.model.worse == 1 and live.model.taken == (start == 0.0) and live.model.refusal
    # The truth is an update as good as the URDF.
    good = live.offer(TRUE.parameters.copy())
    live.run(TRIAL + BLEND + 0.1)
    assert live.model.goal is good.parameters and not live.model.refusal


@SEEDS
def test_right_updates_are_taken_within_a_trial(seed):
    """A wrong URDF, offsets that come after their update, and a push meanwhile."""
    rng = np.random.default_rng(seed)
    urdf, offsets = others(TRUE, rng), rng.normal(0.0, 5.0, NO_OFFSETS.shape)
    wrench = np.zeros((round(30.0 * RATE), 6))
    wrench[round(4.0 * RATE) :, :3] = 40.0
    live = Live(stream(seed, 30.0, {'hand': wrench}, offsets), urdf)
    live.run(6.0)
    update = live.offer(TRUE.parameters.copy())
    live.run(3 / RATE)
    on = calibration_fingerprint(FtCalibration.identity(len(TRUE.ft_sensors)))
    live.model.offer_offsets(update.fingerprint, on, offsets)
    live.run(TRIAL + BLEND + 0.1)
    assert live.uses(TRUE.parameters, offsets) and live.model.worse == 0
    # A wrong one is not: what is in use is better than the URDF, and stays.
    live.offer(urdf + 0.3 * (urdf - TRUE.parameters), offsets)
    live.run(10.0)
    assert live.uses(TRUE.parameters, offsets) and live.model.worse == 1
    assert live.model.source == 'update'


@SEEDS
def test_a_stream_that_was_refused_is_taken_again_once_it_is_right(seed):
    """As that of an identifier whose wrong start fades: too little is wrong to refuse it alone."""
    faded = 1.01 * TRUE.parameters
    for first, taken in ((None, 1), (wrong('double', seed), 0)):
        live = Live(stream(seed, 20.0))
        live.run(5.0)
        if first is not None:
            live.offer(first)
            live.run(TRIAL)
        live.offer(faded)
        live.run(TRIAL + BLEND + 0.1)
        assert live.model.taken == taken and live.uses(faded) == bool(taken)
    live.offer(TRUE.parameters.copy())
    live.run(TRIAL + BLEND + 0.1)
    assert live.uses(TRUE.parameters) and live.model.taken == 1 and not live.model.refusal


@SEEDS
def test_payload_is_taken_and_gone_back_from_once_it_is_gone(seed):
    hand = TRUE.link_names.index('hand')
    loaded = TRUE.parameters.copy()
    loaded[hand, :4] += 1.0, 0.05, 0.02, -0.08
    loaded[hand, 4:] += 0.02 * np.array([1.0, 0.0, 1.0, 0.0, 0.0, 1.0])
    samples = stream(seed, 30.0)
    carried = slice(0, round(15.0 * RATE))
    samples.ft_readings[carried] += (
        with_readings(TRUE, samples, loaded).ft_readings
        - with_readings(TRUE, samples, TRUE.parameters).ft_readings
    )[carried]
    live = Live(samples)
    live.run(5.0)
    live.offer(loaded)
    live.run(TRIAL + BLEND + 0.1)
    assert live.uses(loaded) and not live.model.worse
    live.run(18.0)
    assert live.uses(TRUE.parameters) and live.model.worse == 1


@SEEDS
def test_offsets_hide_wrong_masses_only_at_rest(seed):
    """A set whose offsets were tared with it explains rest as well as the truth."""
    bad = wrong('half', seed)
    samples = stream(seed, 25.0, still=10.0)
    off = with_readings(TRUE, samples.take(slice(0, 1)), TRUE.parameters - bad).ft_readings[0]
    live = Live(samples)
    live.run(4.0)
    live.offer(bad, off)
    live.run(5.0)
    assert live.uses(bad, off)
    live.run(10.0)
    assert live.uses(TRUE.parameters) and live.model.worse == 1


def test_restored_set_is_gone_back_to_and_held_updates_wait(rng):
    saved, live = wrong('random', 5), Live(stream(4, 30.0))
    live.run(3.0)
    live.model.restore(saved)
    live.offer(wrong('double', 5))
    live.run(3.0)
    assert live.uses(saved) and live.model.waiting is not None
    live.model.release()
    live.run(3.0)
    assert live.uses(saved) and live.model.source == 'file' and live.model.worse == 1
    live.offer(TRUE.parameters.copy())
    live.run(3.0)
    assert live.uses(TRUE.parameters)
    # Without cycles nothing is tried.
    live.offer(saved)
    live.model.finish()
    assert live.uses(saved)


def test_samples_before_a_jump_of_time_do_not_count():
    live = Live(stream(1, 5.0))
    live.run(1e-9 * LEAST_SAMPLES * SAMPLE_PERIOD_NS)
    assert live.model._trial.is_informed
    live._next = 0
    live.run(0.1)
    assert not live.model._trial.is_informed


def test_balance_of_momentum_does_not_speak_against_light_links():
    """The reason for which it does not judge: it is proportional to all masses."""
    samples, found = stream(1, 4.0), []
    # Accelerations that are not those of the velocities leave something unexplained.
    samples = replace(samples, accelerations=1.3 * samples.accelerations)
    for scale in (1.0, 0.5):
        robot = TRUE.with_parameters(scale * TRUE.parameters)
        estimator, momentum = WrenchEstimator(robot), MomentumCheck(robot)
        for k in range(len(samples)):
            momentum.add(samples[k], estimator.update(samples[k]))
        found.append(momentum.report().unexplained)
    assert (found[0] > 0.0).all()
    np.testing.assert_allclose(found[1], 0.5 * found[0], rtol=1e-6)  # round-off of FT readings
