# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The embedded robot stands, moves, is the same in every run, and reads its sensors with our signs.

Not covered: whether the truth is complete (test_simulation_truth), whether it keeps up with real
time on a given machine.
"""

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')

from inertial_estimation.errors import ConfigError, FrameNotFound, ModelError, NameNotFound
from inertial_estimation.simulation.robot import IMUS, SimulatedRobot
from inertial_estimation.simulation.scenario import SCENES, Push, Scenario, pole, standing
from inertial_estimation.simulation.truth import Snapshot

GRAVITY = 9.81
REST = 0.02
"""N: of 324 N, what is left of the swinging 4 s after the robot was put down."""
SAG = 0.01
"""Share of a weight that turns sideways, or out of it, when servos give way by some 5 mrad."""
ASKED = 3.0
"""Root mean square joint acceleration that the scenes must reach [rad/s^2]."""
UPRIGHT = 0.999
"""Cosine of the root link's tilt: a standing robot sways by less than 2.5 degrees."""
SWAY = 0.03
"""How far the root link of a standing robot may move [m]."""


def run(robot: SimulatedRobot, seconds: float, every: int = 1) -> list[Snapshot]:
    """Return every so many of the snapshots of a run at 500 Hz."""
    return [robot.step() for _ in range(round(seconds * 500))][every - 1 :: every]


def resting(scenario: Scenario, posture: dict[str, float] | None = None) -> Scenario:
    """Return the scenario without motion and pushes."""
    posture = scenario.posture if posture is None else posture
    return replace(scenario, motion={}, pushes=(), posture=posture)


def mass(robot: SimulatedRobot, links: Sequence[str] = ()) -> float:
    """Return the mass of some links, or of all [kg]."""
    tree = ElementTree.fromstring(robot.urdf)
    masses = {link.get('name'): link.find('inertial/mass') for link in tree.findall('link')}
    return sum(
        float(m.get('value'))
        for n, m in masses.items()
        if m is not None and (n in links or not links)
    )


def moving_rms(robot: SimulatedRobot, scenario: Scenario, snapshots: list[Snapshot]) -> float:
    """Return the acceleration of the joints that move, over joints and time [rad/s^2]."""
    rows = [robot.joint_names.index(name) for name in scenario.motion]
    accelerations = np.array([snapshot.accelerations[rows] for snapshot in snapshots])
    return float(np.sqrt(np.mean(accelerations**2)))


def test_rows_have_the_names_of_the_urdf() -> None:
    robot = SimulatedRobot(pole(), rate_hz=250)
    first = robot.step()
    assert robot.ft_names == (
        'l_leg_ft', 'r_leg_ft', 'l_foot_ft', 'r_foot_ft', 'l_arm_ft', 'r_arm_ft'
    )  # fmt: skip
    tree = ElementTree.fromstring(robot.urdf)
    movable = {j.get('name') for j in tree.findall('joint') if j.get('type') != 'fixed'}
    assert set(robot.joint_names) == movable and len(movable) == 32
    links = {link.get('name') for link in tree.findall('link')}
    assert {*robot.contact_frames, *IMUS.values()} <= links
    assert robot.imu_names == tuple(IMUS)
    shapes = {name: np.shape(value) for name, value in first._asdict().items()}
    assert shapes['positions'] == shapes['torques'] == (32,)
    assert shapes['ft_wrenches'] == (6, 6)
    assert shapes['external_wrenches'] == (7, 6)
    assert shapes['proper_accelerations'] == (13, 3)


@pytest.mark.parametrize('rate', [250, 500, 1000])
def test_stamps_are_multiples_of_the_period(rate: int) -> None:
    robot = SimulatedRobot(pole(), rate_hz=rate)
    period = 1_000_000_000 // rate
    assert [robot.step().time_ns for _ in range(3)] == [period, 2 * period, 3 * period]


def test_the_rate_changes_nothing_but_the_number_of_snapshots() -> None:
    slow, fast = (SimulatedRobot(pole(), rate_hz=rate) for rate in (250, 1000))
    snapshots = [fast.step() for _ in range(40)]
    for k in range(10):
        same(slow.step(), snapshots[4 * k + 3])


def same(left: Snapshot, right: Snapshot) -> None:
    """Assert that two snapshots are equal to the last bit."""
    for mine, theirs in zip(left, right):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize('name', list(SCENES))
def test_runs_of_one_seed_are_equal_to_the_last_bit(name: str) -> None:
    scenario = SCENES[name](3.0, 5)
    for left, right in zip(*(run(SimulatedRobot(scenario), 1.5, 50) for _ in range(2))):
        same(left, right)


def test_another_seed_moves_otherwise() -> None:
    one, other = (run(SimulatedRobot(pole(seed=seed)), 2.0)[-1] for seed in (0, 1))
    assert np.abs(one.positions - other.positions).max() > 0.05


def test_snapshots_keep_their_values() -> None:
    robot = SimulatedRobot(standing())
    first = robot.step()
    kept = [np.copy(value) for value in first]
    run(robot, 1.2)
    for mine, theirs in zip(first, kept):
        np.testing.assert_array_equal(mine, theirs)


def test_no_imu_at_all_is_possible() -> None:
    snapshot = SimulatedRobot(pole(), imus={}).step()
    assert snapshot.proper_accelerations.shape == (0, 3)


def test_every_joint_moves_on_the_pole() -> None:
    scenario = pole(10.0, seed=1)
    robot = SimulatedRobot(scenario)
    snapshots = run(robot, 10.0, 5)
    assert set(scenario.motion) == set(robot.joint_names)
    assert moving_rms(robot, scenario, snapshots) >= ASKED
    assert all(np.array_equal(snapshot.W_H_B, np.eye(4)) for snapshot in snapshots)


# Seed 1 ends with the push that comes first with seed 0; 7 lifts a foot the farthest.
@pytest.mark.parametrize('seed', [0, 1, 7])
def test_the_standing_robot_moves_and_does_not_fall(seed: int) -> None:
    scenario = standing(20.0, seed)
    robot = SimulatedRobot(scenario)
    snapshots = run(robot, 20.0, 5)
    poses = np.array([snapshot.W_H_B for snapshot in snapshots])
    assert poses[:, 2, 2].min() > UPRIGHT
    assert np.ptp(poses[:, :3, 3], axis=0).max() < SWAY
    assert moving_rms(robot, scenario, snapshots) >= ASKED
    assert {p.frame for p in scenario.pushes} == {*robot.contact_frames} - {'l_sole', 'r_sole'}
    feet = [robot.contact_frames.index(sole) for sole in ('l_sole', 'r_sole')]
    assert min(snapshot.external_wrenches[feet, 2].min() for snapshot in snapshots) > 20.0


def test_a_standing_robot_rests_on_its_weight() -> None:
    robot = SimulatedRobot(resting(standing()))
    last = run(robot, 4.0)[-1]
    feet = [robot.contact_frames.index(sole) for sole in ('l_sole', 'r_sole')]
    weight = GRAVITY * mass(robot)
    carried = last.external_wrenches[feet, 2]
    np.testing.assert_allclose(carried.sum(), weight, rtol=0.0, atol=REST)
    np.testing.assert_allclose(carried, weight / 2.0, rtol=SAG)


@pytest.mark.parametrize('side', ['l', 'r'])
def test_a_hanging_leg_pulls_with_its_weight(side: str) -> None:
    straight = {**pole().posture, **dict.fromkeys(_legs(), 0.0)}
    robot = SimulatedRobot(resting(pole(), straight))
    last = run(robot, 2.0)[-1]
    links = ('hip_3', 'upper_leg', 'lower_leg', 'ankle_1', 'ankle_2', 'foot')
    weight = GRAVITY * mass(robot, [f'{side}_{link}' for link in links])
    force = last.ft_wrenches[robot.ft_names.index(f'{side}_leg_ft'), :3]
    # The sensor's z axis points down a straight leg: child on parent, the leg pulls that way.
    np.testing.assert_allclose(force, [0.0, 0.0, weight], rtol=SAG, atol=SAG * weight)


def _legs() -> list[str]:
    """Return the joints of the legs."""
    return [name for name in pole().posture if 'hip' in name or 'knee' in name or 'ankle' in name]


def test_an_accelerometer_at_rest_reads_gravity_upward() -> None:
    robot = SimulatedRobot(resting(pole()))
    last = run(robot, 2.0)[-1]
    norms = np.linalg.norm(last.proper_accelerations, axis=1)
    np.testing.assert_allclose(norms, GRAVITY, rtol=SAG)
    root = last.proper_accelerations[robot.imu_names.index('root_link')]
    np.testing.assert_allclose(root, [0.0, 0.0, GRAVITY], atol=1e-9)


def test_what_is_wrong_is_named() -> None:
    with pytest.raises(ConfigError):
        SimulatedRobot(pole(), rate_hz=300)
    with pytest.raises(FrameNotFound, match="'left_hand'"):
        SimulatedRobot(replace(pole(), pushes=(Push(1.0, 1.0, 'left_hand', (0.0,) * 6),)))
    with pytest.raises(FrameNotFound, match="'haed'"):
        SimulatedRobot(pole(), imus={'head': 'haed'})
    with pytest.raises(NameNotFound):
        SimulatedRobot(replace(pole(), posture={'l_nee': 0.0}))
    with pytest.raises(ConfigError):
        SimulatedRobot(replace(pole(), motion={'l_wrist_yaw': 20.0}))


@pytest.mark.parametrize('contacts', [('root_link',), (*pole().contacts, 'chest')])
def test_contacts_are_one_per_submodel(contacts: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError):
        SimulatedRobot(replace(pole(), contacts=contacts, pushes=()))


@pytest.mark.parametrize('package', ['mujoco', 'icub_models'])
def test_a_missing_package_is_named_with_the_remedy(package, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelError):
        SimulatedRobot(pole())


def test_importing_the_simulation_needs_no_simulator() -> None:
    code = (
        'import sys; sys.modules.update(mujoco=None, icub_models=None, rclpy=None);'
        'from inertial_estimation.simulation import noise, robot, scenario'
    )
    subprocess.run([sys.executable, '-c', code], check=True)
