# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""An identification whose FT calibration changes, or is wrong by a tenth."""

from dataclasses import replace

import numpy as np
import pytest
from robots import nested_humanoid_urdf
from test_recursion import NOISE as ICUB_NOISE
from test_recursion import robot as icub
from test_recursion import settings

from bench.live_robots import equal_parts, smooth_motion, with_readings
from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.identification.recursion import offsets as offset_module
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.state import from_text, to_text
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot

__all__ = ['icub']

NOISE = 0.05
ROUND_OFF = 1e-6
DRAWN = 1e-4
N_FTS = 3
FOOT = 2
"""The sensor between two submodels with equations; the root is held."""


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def parts(robot):
    """Return seconds of a log of a robot that is heavier than its URDF, with offsets."""
    samples = smooth_motion(robot, 9.0, rate=50.0, seed=3, swing=0.8)
    samples = with_readings(robot, samples, 1.2 * robot.parameters)
    rng = np.random.default_rng(1)
    offsets = 5.0 * rng.normal(size=(N_FTS, 6))
    samples.ft_readings[:] += offsets + NOISE * rng.normal(size=samples.ft_readings.shape)
    efforts = 0.1 * rng.normal(size=samples.velocities.shape)
    return equal_parts(replace(samples, efforts=efforts), 1.0)


@pytest.fixture
def other(rng):
    """Return a calibration with other offsets."""
    return FtCalibration.identity(N_FTS).with_offsets(10.0 * rng.normal(size=(N_FTS, 6)))


def identifier(robot, calibration=None, *, efforts=False, unknown=True, **given):
    names = tuple(sensor.name for sensor in robot.ft_sensors) if unknown else ()
    choice = EquationChoice(offsets=names, efforts=robot.joint_names if efforts else ())
    settings = RecursionSettings(choice, warm_up=2.0, half_life=20.0, **given)
    return RecursiveIdentifier(robot, settings, calibration)


def products(memory):
    """Return R'R and R' rho, with the offsets beyond what is subtracted now."""
    rows = memory.corrected
    return rows.R.T @ rows.R, rows.R.T @ (rows.rho - rows.R[:, memory.offsets] @ memory.shift)


@pytest.mark.parametrize(
    ('given', 'at'),
    [({}, 1), ({'gate': 4.0, 'force_walk': 0.1}, 5), ({'efforts': True, 'gate': 4.0}, 9)],
    ids=['wrenches', 'drifting offsets, outliers', 'efforts'],
)
@pytest.mark.parametrize('errs', [False, True])
def test_nothing_is_lost_when_offsets_change(robot, parts, other, given, at, errs):
    """Nor are the errors of the measured state."""
    joints = np.tile(np.diag([1e-3, 1e-2, 0.3]) ** 2, (len(robot.joint_names), 1, 1))
    every = [identifier(robot, **given) for _ in range(3)]
    changed, whole, _ = every
    whole.set_calibration(other)
    for one in every if errs else ():
        one.noise = StateNoise.of(joints, np.zeros((0, 3, 3)), is_white=False)
    for k, part in enumerate(parts):
        if k == at:
            for one in every:
                one.refit()
            assert changed.set_calibration(other) == ()
        for one in every:
            one.add(part)
    if at == len(parts):
        assert changed.set_calibration(other) == ()
    restored = identifier(robot, other, **given)
    from_text(restored, to_text(changed))
    for one, wanted in zip(changed.memories + restored.memories, 2 * whole.memories, strict=True):
        for ours, theirs in zip(*map(products, (one, wanted))) if wanted.information else ():
            np.testing.assert_allclose(ours, theirs, atol=ROUND_OFF * np.abs(theirs).max())
    found, wanted, old = (one.refit() for one in every)
    assert found.refitted == wanted.refitted != ()
    scale = np.abs(wanted.parameters).max()
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=ROUND_OFF * scale)
    np.testing.assert_allclose(found.parameters, old.parameters, atol=DRAWN * scale)
    for k, sensor in enumerate(robot.ft_sensors):
        ours, theirs = found.offsets[sensor.name], wanted.offsets[sensor.name]
        np.testing.assert_allclose(ours, theirs, atol=ROUND_OFF * 10.0)
        # The sum of what is subtracted stays, and so does every torque.
        total = other.offsets[k] + ours
        np.testing.assert_allclose(total, old.offsets[sensor.name], atol=DRAWN * 10.0)


def test_changed_matrix_restarts_the_submodels_beside_it(robot, parts):
    one = identifier(robot)
    for part in parts[:5]:
        one.add(part)
    matrices = np.tile(np.eye(6), (N_FTS, 1, 1))
    matrices[FOOT] *= 1.1
    known = {k.block.submodel.name: k.information for k in one.memories}
    restarted = one.set_calibration(FtCalibration(matrices, np.zeros((N_FTS, 6))))
    sensor = robot.ft_sensors[FOOT]
    beside = {s.name for s in robot.submodels if {sensor.parent, sensor.child} & set(s.links)}
    assert set(restarted) == beside and len(beside) == 2
    for now in one.memories:
        name = now.block.submodel.name
        assert (now.information is None) is (name in beside or not now.block.kinds)
        assert name in beside or now.information is known[name]
    fresh = identifier(robot, one.calibration)
    fresh.stamp_ns = one.stamp_ns
    for part in parts[5:]:
        one.add(part)
        fresh.add(part)
    for ours, theirs in zip(one.memories, fresh.memories, strict=True):
        if ours.block.submodel.name in beside:
            np.testing.assert_array_equal(ours.information.rho, theirs.information.rho)


def test_tare_restarts_tracking_of_an_offset(robot, parts, monkeypatch):
    # Without drift the mean of the first two seconds is subtracted.
    monkeypatch.setattr(offset_module, 'SETTLING', 2.0)
    monkeypatch.setattr(offset_module, 'DRIFT', 0.0)
    names = [sensor.name for sensor in robot.ft_sensors]
    jump, subtracted, left = np.zeros((N_FTS, 6)), {}, {}
    jump[FOOT] = [4.0, -3.0, 5.0, 0.3, 0.2, -0.1]
    for tared in ('none', names[FOOT]):
        one = identifier(robot, gate=0.0, force_walk=3.0)
        for k, part in enumerate(parts):
            one.add(replace(part, ft_readings=part.ft_readings + jump * (k >= 5)))
            before = one.refit()
        offsets = np.zeros((N_FTS, 6))
        offsets[FOOT] = before.offsets[names[FOOT]]
        one.set_calibration(FtCalibration.identity(N_FTS).with_offsets(offsets), (tared,))
        after = one.refit()
        left[tared] = after.subtracted[names[FOOT]] - after.offsets[names[FOOT]]
        subtracted[tared] = np.array([after.subtracted[name] for name in names[:FOOT]])
    np.testing.assert_allclose(left[names[FOOT]], 0.0, atol=ROUND_OFF)
    assert np.linalg.norm((left['none'] + jump[FOOT])[:3]) < 0.3 * np.linalg.norm(jump[FOOT, :3])
    np.testing.assert_allclose(subtracted[names[FOOT]], subtracted['none'], atol=ROUND_OFF)


def test_state_beside_other_offsets_is_refused_where_they_are_no_unknowns(robot, parts, other):
    every = FtCalibration.identity(N_FTS), other
    saved, restored = (identifier(robot, one, unknown=False) for one in every)
    with pytest.raises(ModelError):
        from_text(restored, to_text(saved))


SIZES = np.array([1.0, 1.0, 1.0, 0.1, 0.1, 0.1])  # moments over a lever of 0.1 m
SECONDS, PUSHED = 40.0, 30.0


def test_sway_of_offsets_is_accepted_and_a_push_rejected(icub):
    """Where matrices of FT sensors are wrong by a tenth."""
    rng = np.random.default_rng(2)
    push = np.zeros((round(100 * SECONDS), 6))
    push[round(100 * PUSHED) :, :3] = [30.0, -20.0, 34.6]
    samples = smooth_motion(icub, SECONDS, seed=1, swing=0.2)
    samples = with_readings(icub, samples, icub.parameters, {'r_lower_leg': push})
    for k in range(len(icub.ft_sensors)):
        matrix = np.eye(6) + 0.1 * rng.normal(size=(6, 6)) * np.outer(SIZES, 1.0 / SIZES)
        samples.ft_readings[:, k] = samples.ft_readings[:, k] @ matrix.T
    samples.ft_readings[:] += ICUB_NOISE * rng.normal(size=samples.ft_readings.shape)
    given = settings(icub, half_life=600.0, force_walk=0.3, warm_up=3.0, gate=4.0)
    identifier, changes = RecursiveIdentifier(icub, given), []
    for part in equal_parts(samples, 1.0):
        changes += [(1e-9 * part.stamp_ns[0], *change) for change in identifier.add(part)]
        identifier.refit()
    # The first is that of the push: swaying alone is none.
    begin, submodel, change = changes[0]
    assert (submodel, change) == ('r_hip_3', Change.TOUCHED)
    assert PUSHED <= begin < PUSHED + 2.0
    assert {name for _, name, _ in changes} == {'r_hip_3'}
