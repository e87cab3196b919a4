# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from the model, with one support and with several that share the load in any way.

The readings come from a robot that is held by known wrenches, computed without the engine. Not
covered here: real robots (test_supported_offsets_real.py).
"""

import numpy as np
import pytest
from standing_biped import FEET, biped, standing

from inertial_estimation.calibration.supported_offsets import supported_offsets
from inertial_estimation.errors import OffsetsNotUnique
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.sample import SampleBatch

# Round-off of forces of about 1e3 N.
EXACT = 1e-9
SECOND = 1_000_000_000
SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')


@pytest.fixture
def robot():
    return biped()


@pytest.fixture
def offsets(rng):
    return rng.normal(0.0, [30.0, 30.0, 30.0, 2.0, 2.0, 2.0], (5, 6))


def repeated(samples, offsets, times=10):
    """Return instants 10 ms apart, each sample several times over, with offsets."""
    every = [
        s._replace(ft_readings=s.ft_readings + offsets) for s in samples for _ in range(times)
    ]
    return SampleBatch.stack(
        [s._replace(stamp_ns=SECOND + 10_000_000 * k) for k, s in enumerate(every)]
    )


def pose_of(robot, rng):
    return rng.uniform(-0.8, 0.8, len(robot.joint_names))


@pytest.mark.parametrize('support', ['l_sole', 'r_foot', 'root', 'hand'])
def test_one_support_tells_all_offsets(robot, rng, offsets, support):
    shot = standing(robot, pose_of(robot, rng), {support: 1.0}, up=rng.normal(size=3))
    found = supported_offsets(WrenchEstimator(robot), repeated([shot], offsets), [support])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.is_unique and not len(found.undetermined)


def test_two_supports_tell_sums_and_differences_whatever_the_split(robot, rng, offsets):
    positions = pose_of(robot, rng)
    push = rng.normal(0.0, 40.0, 6)
    shot = standing(
        robot, positions, {'l_sole': 0.8, 'r_sole': 0.2}, {'l_sole': push, 'r_sole': -push}
    )
    samples = repeated([shot], offsets)
    found = supported_offsets(WrenchEstimator(robot), samples, FEET, accept_split=True)
    np.testing.assert_allclose(found.offsets[4], offsets[4], atol=EXACT)
    np.testing.assert_array_equal(found.unique, [False] * 4 + [True])
    error = found.offsets - offsets
    assert np.abs(error[:4]).max() > 10.0
    # What is wrong is a wrench that one foot takes from the other, and nothing else.
    assert found.undetermined.shape == (6, 5, 6)
    scale = np.repeat([1.0, 0.1], 3)
    basis = found.undetermined.reshape(6, 30)
    np.testing.assert_allclose(basis @ basis.T, np.eye(6), atol=1e-12)
    white = (error / scale).ravel()
    np.testing.assert_allclose(basis.T @ (basis @ white), white, atol=1e-8)


def test_two_supports_tell_what_they_say_they_tell(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.7, 'r_sole': 0.3})
    samples = repeated([shot], offsets)
    found = supported_offsets(WrenchEstimator(robot), samples, FEET, accept_split=True)
    assert found.told == ('l_leg - l_foot', 'r_leg - r_foot', 'l_leg + r_leg')
    freedom = found.loads.freedom[0]
    # Each said sum, moved to the root link, is free of every way to share the load.
    _, predicted = _at_root(robot, samples[0], freedom)
    for one, sign, other in ((0, -1, 1), (2, -1, 3), (0, 1, 2)):
        np.testing.assert_allclose(predicted[one] + sign * predicted[other], 0.0, atol=1e-12)
    # Nothing else is told: 24 numbers, less 6 of the sharing, are three sums of six.
    assert np.linalg.matrix_rank(freedom[:4].reshape(24, 6)) == 6


def _at_root(robot, sample, wrenches):
    """Return wrenches of sensors, (n_fts, 6, k), child on parent about the root's origin."""
    from brute_force import link_poses, wrench_transform

    poses = link_poses(robot, sample.positions)
    moved = [
        s.direction * wrench_transform(poses[s.child] @ s.child_H_sensor) @ w
        for s, w in zip(robot.ft_sensors, wrenches)
    ]
    return poses, np.array(moved)


def test_three_supports(robot, rng, offsets):
    supports = ('l_sole', 'r_sole', 'hand')
    shot = standing(robot, pose_of(robot, rng), dict(zip(supports, (0.5, 0.3, 0.2))))
    samples = repeated([shot], offsets)
    found = supported_offsets(WrenchEstimator(robot), samples, supports, accept_split=True)
    assert not found.unique.any()
    assert len(found.undetermined) == 12
    assert found.told == ('l_leg - l_foot', 'r_leg - r_foot', 'l_leg + r_leg + arm')


def test_supports_on_the_same_side_of_all_sensors_share_as_they_like(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.5, 'l_foot': -0.5})
    samples = repeated([shot], offsets)
    found = supported_offsets(WrenchEstimator(robot), samples, ('l_sole', 'l_foot'))
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    assert found.is_unique


def test_a_split_is_refused_with_what_is_told_and_what_helps(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 0.5, 'r_sole': 0.5})
    samples = repeated([shot], offsets)
    with pytest.raises(OffsetsNotUnique) as caught:
        supported_offsets(WrenchEstimator(robot), samples, FEET)
    said = str(caught.value)
    for part in (
        'nothing tells how l_sole and r_sole share the load',
        'l_leg, l_foot, r_leg, r_foot are not unique',
        'told are l_leg - l_foot, r_leg - r_foot, l_leg + r_leg',
        'stand on one support',
        'calibrate arm alone',
        'accept_split',
    ):
        assert part in said
    assert caught.value.sensors == SENSORS[:4]
    found = supported_offsets(WrenchEstimator(robot), samples, FEET, sensors=['arm'])
    np.testing.assert_allclose(found.offsets[4], offsets[4], atol=EXACT)
    assert found.sensors == ('arm',)


def test_sensors_that_were_not_chosen_keep_their_offsets(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    before = FtCalibration(np.tile(np.eye(6), (5, 1, 1)), rng.normal(size=(5, 6)))
    estimator = WrenchEstimator(robot, calibration=before)
    samples = repeated([shot], offsets)
    found = supported_offsets(estimator, samples, ['l_sole'], sensors=['r_leg', 'arm'])
    np.testing.assert_allclose(found.offsets[[2, 4]], offsets[[2, 4]], atol=EXACT)
    np.testing.assert_array_equal(found.offsets[[0, 1, 3]], before.offsets[[0, 1, 3]])
    assert estimator.calibration is before


def test_matrices_and_temperatures_come_before_the_offsets(robot, rng, offsets):
    shot = standing(robot, pose_of(robot, rng), {'l_sole': 1.0})
    matrices = np.eye(6) + rng.normal(0.0, 0.1, (5, 6, 6))
    slopes, references = rng.normal(0.0, 1.0, (5, 6)), rng.uniform(20.0, 30.0, 5)
    calibration = FtCalibration(matrices, rng.normal(size=(5, 6)), slopes, references)
    warmth = references + 7.0
    raw = np.linalg.solve(matrices, (shot.ft_readings + offsets - 7.0 * slopes)[..., None])[..., 0]
    shot = shot._replace(ft_readings=raw, ft_temperatures=warmth)
    estimator = WrenchEstimator(robot, calibration=calibration)
    found = supported_offsets(estimator, repeated([shot], 0.0), ['l_sole'])
    np.testing.assert_allclose(found.offsets, offsets, atol=EXACT)
    np.testing.assert_allclose(found.temperatures, warmth)
    np.testing.assert_array_equal(found.calibration.matrices, matrices)


@pytest.mark.parametrize('supports', [('l_sole',), FEET])
def test_neither_base_nor_order_of_supports_matters(rng, offsets, supports):
    gravity = np.array([0.3, -0.5, -9.78])
    found = []
    positions = pose_of(biped(), rng)
    for more in ({'imus': ['root']}, {'imus': ['hand', 'l_thigh']}, {'imus': ['r_shank']},
                 {'fixed_link': 'root', 'imus': [], 'gravity': gravity}):  # fmt: skip
        robot = biped(**more)
        floating = biped(imus=more['imus'] or ['root'])
        shot = standing(floating, positions, {supports[0]: 0.6, supports[-1]: 0.4}
                        if len(supports) > 1 else {supports[0]: 1.0}, up=-gravity)  # fmt: skip
        if robot.fixed_frame:
            none = np.empty((0, 3))
            shot = shot._replace(angular_velocities=none, proper_accelerations=none,
                                 angular_accelerations=none)  # fmt: skip
            # The length of gravity here is that of the file's constant.
        for order in (supports, supports[::-1]):
            estimator = WrenchEstimator(robot)
            got = supported_offsets(
                estimator, repeated([shot], offsets), order, accept_split=True, stillness=None
            )
            found.append(got.offsets)
    size = np.linalg.norm(gravity) / 9.81
    assert abs(size - 1.0) < 0.01
    for other in found[1:-2]:
        np.testing.assert_allclose(other, found[0], atol=EXACT)
    np.testing.assert_allclose(found[-1], found[-2], atol=EXACT)
