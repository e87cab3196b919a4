# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
An identification whose FT calibration changes, against one that had the new one from the start.

The node that hears of it is in `ros/test_calibration_followed_live.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
from free_air import smooth_motion, with_readings
from robots import nested_humanoid_urdf

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.equations.builder import EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.errors_in_variables import StateNoise
from inertial_estimation.identification.recursion import offsets as offset_module
from inertial_estimation.identification.recursion import update_policy
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
    equal_parts,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.state import from_text, to_text
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration

NOISE = 0.05
# Of least squares of a hundred unknowns, whose right-hand sides differ by offsets of ten newtons,
# and of noise that follows what an earlier refit left.
ROUND_OFF = 1e-6
# Offsets are drawn to what is subtracted already, by a thousandth of one of hundreds of rows.
DRAWN = 1e-4
N_FTS = 3
FOOT = 2
"""The sensor on both sides of which submodels give rows; the root is held."""


@pytest.fixture(scope='module')
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), fixed_link='root')


@pytest.fixture(scope='module')
def parts(robot):
    """Return seconds of a log of a robot that is heavier than described, with offsets."""
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
    rows = EquationChoice(offsets=names)
    if efforts:
        # How large friction may be is told by efforts, and those by offsets: here there is none.
        rows = EquationChoice(offsets=names, efforts=robot.joint_names, joint=JointModel(()))
    settings = RecursionSettings(rows, warm_up=2.0, half_life=20.0, **given)
    return RecursiveIdentifier(robot, settings, calibration)


GIVEN = {
    'rows of wrenches': {},
    'wandering offsets, suspects': {'gate': 4.0, 'force_walk': 0.1, 'moment_walk': 0.01},
    'rows of efforts': {'efforts': True, 'gate': 4.0},
}


@pytest.mark.parametrize('case', GIVEN)
def test_errors_of_the_state_follow_offsets_that_change(robot, parts, other, case):
    joints = np.tile(np.diag([1e-3, 1e-2, 0.3]) ** 2, (len(robot.joint_names), 1, 1))
    noise = StateNoise.of(joints, np.zeros((0, 3, 3)), is_white=False)
    changed, whole = identifier(robot, **GIVEN[case]), identifier(robot, other, **GIVEN[case])
    for k, part in enumerate(parts):
        if k == 5:
            changed.set_calibration(other)
        for one in (changed, whole):
            one.noise = noise
            one.add(part)
    for one, wanted in zip(changed.memories, whole.memories, strict=True):
        if wanted.errors is None:
            continue
        scale = np.abs(wanted.errors.cross).max()
        np.testing.assert_allclose(one.errors.cross, wanted.errors.cross, atol=ROUND_OFF * scale)
        for product in (lambda told: told.R.T @ told.R, lambda told: told.R.T @ told.rho):
            told = product(wanted.corrected)
            scale = np.abs(told).max()
            np.testing.assert_allclose(product(one.corrected), told, atol=ROUND_OFF * scale)
    # And so they do beyond a restart.
    again = identifier(robot, other, **GIVEN[case])
    from_text(again, to_text(changed))
    for one, wanted in zip(again.memories, changed.memories, strict=True):
        if wanted.information is None:
            continue
        scale = np.abs(wanted.errors.cross).max()
        np.testing.assert_allclose(one.errors.gram, wanted.errors.gram)
        np.testing.assert_allclose(one.errors.cross, wanted.errors.cross, atol=ROUND_OFF * scale)


@pytest.mark.parametrize('at', [1, 5, 9])
@pytest.mark.parametrize('case', GIVEN)
def test_nothing_is_lost_when_offsets_change(robot, parts, other, case, at):
    given = GIVEN[case]
    changed, whole, before = (identifier(robot, **given) for _ in range(3))
    whole.set_calibration(other)
    for k, part in enumerate(parts):
        if k == at:
            for one in (changed, whole, before):
                one.refit()
            assert changed.set_calibration(other) == ()
        for one in (changed, whole, before):
            one.add(part)
    if at == len(parts):
        assert changed.set_calibration(other) == ()
    found, wanted, old = (one.refit() for one in (changed, whole, before))
    assert found.refitted == wanted.refitted != ()
    scale = np.abs(wanted.parameters).max()
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=ROUND_OFF * scale)
    np.testing.assert_allclose(found.parameters, old.parameters, atol=DRAWN * scale)
    for k, sensor in enumerate(robot.ft_sensors):
        np.testing.assert_allclose(
            found.offsets[sensor.name], wanted.offsets[sensor.name], atol=ROUND_OFF * 10.0
        )
        # What is subtracted in all is the same, and so is every torque.
        in_all = other.offsets[k] + found.offsets[sensor.name]
        np.testing.assert_allclose(in_all, old.offsets[sensor.name], atol=DRAWN * 10.0)


def test_a_changed_matrix_begins_the_submodels_beside_it_anew(robot, parts):
    one = identifier(robot)
    for part in parts[:5]:
        one.add(part)
    matrices = np.tile(np.eye(6), (N_FTS, 1, 1))
    matrices[FOOT] *= 1.1
    known = {k.block.submodel.name: k.information for k in one.memories}
    assert known[robot.submodels[-1].name] is not None
    anew = one.set_calibration(FtCalibration(matrices, np.zeros((N_FTS, 6))))
    sensor = robot.ft_sensors[FOOT]
    beside = {
        submodel.name
        for submodel in robot.submodels
        if {sensor.parent, sensor.child} & set(submodel.links)
    }
    assert set(anew) == beside and len(beside) == 2
    for now in one.memories:
        name = now.block.submodel.name
        assert (now.information is None) is (name in beside or not now.block.kinds)
        assert name in beside or now.information is known[name]
    other = identifier(robot, one.calibration)
    # Time goes on for who begins anew.
    other.stamp_ns = one.stamp_ns
    for part in parts[5:]:
        one.add(part)
        other.add(part)
    for ours, theirs in zip(one.memories, other.memories, strict=True):
        if ours.block.submodel.name in beside:
            np.testing.assert_array_equal(ours.information.rho, theirs.information.rho)


def test_tare_restarts_tracking_of_an_offset(robot, parts, monkeypatch):
    # Without drift what is subtracted is the mean of the first two seconds.
    monkeypatch.setattr(offset_module, 'SETTLING', 2.0)
    names = [sensor.name for sensor in robot.ft_sensors]
    jump = np.zeros((N_FTS, 6))
    jump[FOOT] = [4.0, -3.0, 5.0, 0.3, 0.2, -0.1]
    subtracted, left = {}, {}
    for tared in ('nobody', names[FOOT]):
        walks = {'force_walk': 3.0, 'moment_walk': 0.3, 'force_drift': 0.0, 'moment_drift': 0.0}
        one = identifier(robot, gate=0.0, **walks)
        for k, part in enumerate(parts):
            moved = part.ft_readings + jump * (k >= 5)
            one.add(replace(part, ft_readings=moved))
            before = one.refit()
        offsets = np.zeros((N_FTS, 6))
        offsets[FOOT] = before.offsets[names[FOOT]]
        one.set_calibration(FtCalibration.identity(N_FTS).with_offsets(offsets), (tared,))
        after = one.refit()
        left[tared] = after.subtracted[names[FOOT]] - after.offsets[names[FOOT]]
        subtracted[tared] = {name: after.subtracted[name] for name in names if name != names[FOOT]}
    np.testing.assert_allclose(left[names[FOOT]], 0.0, atol=ROUND_OFF)
    # Who takes a tare back, say, was not asked whether somebody pushes.
    assert np.linalg.norm((left['nobody'] + jump[FOOT])[:3]) < 0.3 * np.linalg.norm(jump[FOOT, :3])
    for name, values in subtracted['nobody'].items():
        np.testing.assert_allclose(subtracted[names[FOOT]][name], values, atol=ROUND_OFF)


def test_offset_of_own_submodel_replaces_that_of_neighbours(robot, parts, monkeypatch):
    monkeypatch.setattr(offset_module, 'SETTLING', 2.0)
    true, late = update_policy.excitation, 'foot'

    def seen(known, weight):
        is_late = known.block.submodel.name == late and len(told) < 5
        return replace(true(known, weight), determined=0) if is_late else true(known, weight)

    monkeypatch.setattr(update_policy, 'excitation', seen)
    told = []
    one = identifier(robot, force_drift=0.0, moment_drift=0.0)
    for part in parts:
        one.add(part)
        told.append(one.refit())
    names = [sensor.name for sensor in robot.ft_sensors]
    before, first, *_ = (k for k in told[4:] if k is not None)
    assert late not in before.refitted
    assert late in first.refitted
    subtracted, offsets = first.subtracted[names[FOOT]], first.offsets[names[FOOT]]
    # What is subtracted is what two seconds told, not all of them; it was off by 2.6 N where rows
    # of the neighbour had said it.
    np.testing.assert_allclose(subtracted[:3], offsets[:3], atol=0.2)
    np.testing.assert_allclose(subtracted[3:], offsets[3:], atol=0.02)


def test_temperatures(robot, parts, rng):
    slopes = np.zeros((N_FTS, 6))
    slopes[FOOT] = rng.normal(size=6)
    cold = replace(FtCalibration.identity(N_FTS), temperature_coefficients=slopes)
    # With another reference temperature the same slopes are other offsets.
    warm = replace(cold, reference_temperatures=np.full(N_FTS, 20.0))
    changed, whole = identifier(robot, cold), identifier(robot, warm)
    told = [replace(p, ft_temperatures=np.full((len(p), N_FTS), 25.0)) for p in parts]
    for k, part in enumerate(told):
        if k == 4:
            assert changed.set_calibration(warm) == ()
        changed.add(part)
        whole.add(part)
    found, wanted = changed.refit(), whole.refit()
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=1e-6)
    assert len(changed.set_calibration(FtCalibration.identity(N_FTS))) == 2


def test_offsets_that_are_no_unknowns_begin_anew(robot, parts, other):
    one = identifier(robot, unknown=False)
    for part in parts[:4]:
        one.add(part)
    alone = other.offsets.copy()
    alone[:FOOT] = 0.0
    assert len(one.set_calibration(other.with_offsets(alone))) == 2


def test_what_was_saved_is_restored_beside_other_offsets(robot, parts, other):
    saved, restored = (identifier(robot, FtCalibration.identity(N_FTS)), identifier(robot, other))
    for part in parts:
        saved.add(part)
    assert from_text(restored, to_text(saved))
    found, wanted = restored.refit(), saved.refit()
    np.testing.assert_allclose(found.parameters, wanted.parameters, atol=DRAWN)
    for k, sensor in enumerate(robot.ft_sensors):
        in_all = other.offsets[k] + found.offsets[sensor.name]
        np.testing.assert_allclose(in_all, wanted.offsets[sensor.name], atol=DRAWN * 10.0)
    # Where offsets are no unknowns, rows would be others.
    saved, restored = (identifier(robot, c, unknown=False) for c in (saved.calibration, other))
    with pytest.raises(ModelError):
        from_text(restored, to_text(saved))
