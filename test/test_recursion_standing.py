# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Identification beside an embedded robot that stands (MuJoCo), on shorter logs than `bench`.

Not covered: the figures of `bench`, which take minutes.
"""

import numpy as np
import pytest

from bench.live import carried_load, standing_still
from bench.live_robots import equal_parts, node_settings, state_noise, tare, wrong_robot
from inertial_estimation import FtCalibration, RecursiveIdentifier, WrenchEstimator
from inertial_estimation.estimation.model_update import ModelInUse
from inertial_estimation.identification.recursion.refit import MAX_OFFSET_DEVIATION

pytest.importorskip('mujoco', reason='the simulated robot runs in mujoco')
pytest.importorskip('icub_models', reason='the simulated robot is the iCub of icub-models')

from bench import live, live_robots

SECONDS = 20.0
ARMS = {'l_upper_arm', 'r_upper_arm'}
LEGS = ('l_foot', 'r_foot', 'l_hip', 'r_hip')


@pytest.fixture(scope='module')
def log():
    return live_robots.record(live_robots.at_random(SECONDS), SECONDS)


def identify(log, robot, held=live.HELD, calibration=None):
    """Return an identifier that was given the log, and its last refit."""
    identifier = RecursiveIdentifier(robot, node_settings(robot), calibration)
    identifier.noise = state_noise(robot, live_robots.SETTINGS, live_robots.RATE)
    free = np.array([one.name not in held for one in robot.submodels])
    for part in equal_parts(log.samples, 1.0):
        identifier.add(part, free=np.tile(free, (len(part), 1)))
        refit = identifier.refit()
    return identifier, refit


def test_identified_parameters_predict_torques_better(log):
    found = live.torque_errors(log, seed=3)
    assert found.least_margin > 0
    urdf, true, identified, _ = found.rms(15.0, SECONDS)
    assert true < identified < live.HALF * urdf
    # Nothing is published before there is motion.
    still = found.rms(0.0, 4.0)
    assert still[2] == still[0]
    assert (found.base[-1] < found.base[0]).all()


def test_a_tare_with_wrong_parameters_is_corrected(log):
    """Offsets from wrong parameters hold their errors: the update corrects both."""
    wrong = wrong_robot(log.robot, np.random.default_rng(2))
    tared = tare(wrong, log.samples.take(np.flatnonzero(log.times < 2.0)), live.ARMS)
    calibration = FtCalibration.identity(len(tared)).with_offsets(tared)
    _, refit = identify(log, wrong, calibration=calibration)
    assert set(refit.refitted) >= ARMS
    model = ModelInUse(WrenchEstimator(wrong, calibration=calibration), 0.0)
    assert model.offer(refit.update(wrong, calibration))
    model.finish()
    arms = [k for k, sensor in enumerate(wrong.ft_sensors) if 'arm' in sensor.name]
    # The sensors themselves have none.
    assert np.abs(tared[arms, :3]).max() > 1.0
    assert np.abs((tared + model.offsets)[arms, :3]).max() < 0.5
    assert np.abs((tared + model.offsets)[arms, 3:]).max() < 0.05


def test_an_exact_urdf_of_a_standing_robot_is_kept(log):
    """The trunk hardly tilts: noise that passes for motion makes it lighter, offsets larger."""
    held = [one.name for one in log.robot.submodels if one.name.startswith(LEGS)]
    identifier, refit = identify(log, log.robot, held=held)
    truth, root = log.robot.parameters[:, 0], log.robot.submodels[0]
    links = list(root.links)
    off = identifier.found[root.name][: 10 * len(links) : 10].sum() - truth[links].sum()
    # A hundredth of 19.7 kg, which is a fifth of the error if states are taken for exact.
    assert abs(off) < 0.2
    assert refit.parameters[:, 0].sum() == pytest.approx(truth.sum(), abs=0.2)
    # Legs that stand still never distinguish the offsets of their sensors.
    assert (refit.offset_deviations['l_leg_ft'] > MAX_OFFSET_DEVIATION).any()
    for sensor, offset in refit.offsets.items():
        deviation = refit.offset_deviations[sensor]
        if sensor.endswith('arm_ft'):
            assert (deviation <= MAX_OFFSET_DEVIATION).all()
            assert (np.abs(offset) < 0.5).all()
        else:
            assert (np.abs(offset) < 5.0 * deviation).all()


@pytest.mark.parametrize('goals', [lambda: carried_load(3), lambda: standing_still(300)])
def test_goals_of_bench_are_reached(goals):
    assert [goal for goal in goals() if not goal.reached] == []
