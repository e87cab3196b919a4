# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of real arms from currents or torques, beginning at rest.

Samples are those of the node's filters, which know no future. Then beside an embedded robot that
stands (MuJoCo), on shorter logs than `bench`. Not covered: the node itself
(ros/test_identifier_node.py); how well parameters predict other logs; the figures of `bench`.
"""

import json
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from shared_data import SHARED
from simulated_arm import efforts_of

from bench import convergence, live, live_robots
from bench.arms import CONFIGS
from bench.live_robots import equal_parts, node_settings, state_noise, wrong_robot
from inertial_estimation import (
    FtCalibration,
    IdentifierSettings,
    RecursiveIdentifier,
    SampleAssembler,
    WrenchEstimator,
)
from inertial_estimation.calibration.support_loads import support_loads
from inertial_estimation.errors import NameNotFound
from inertial_estimation.estimation.model_update import ModelInUse
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.refit import MAX_OFFSET_DEVIATION
from inertial_estimation.identification.recursion.settings import recursion_settings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.ros.sample_windows import CONTACT_MARGIN, SAMPLE_RATE, SampleWindows
from inertial_estimation.sample import SampleBatch
from inertial_estimation.simulation.scenario import standing

DATA = SHARED / 'data'


class RecordedArm(NamedTuple):
    """An arm that begins to move and goes on, from `first` to `last` [s] of a log."""

    config: str
    urdf: str
    log: str
    columns: tuple[str, str, str, str]
    """Time [s], positions, velocities, efforts in what the arm reports, Nm or A."""
    first: float
    last: float
    tool: str
    """Frame at its end."""

    def description(self):
        if not DATA.is_dir():
            pytest.skip('needs ../shared/data')
        return (DATA / self.urdf).read_text()

    def read(self):
        """Return the names of the joints, and the columns."""
        with np.load(DATA / self.log) as table:
            meta = (DATA / self.log).with_name('meta.json')
            names = table['names'] if 'names' in table else json.loads(meta.read_text())['joints']
            return tuple(map(str, names)), [table[name] for name in self.columns]


UR10E = RecordedArm(
    'identifier_ur10e.yaml', 'ur10e/ur10e.urdf', 'ur10e/fourier_30s_12h.npz',
    ('t', 'q', 'v', 'current'), 5.0, 20.0, 'tool0',
)  # fmt: skip
PANDA = RecordedArm(
    'identifier_panda.yaml', 'models/panda_wrist_ft.urdf', 'panda_excitation/log.npz',
    ('t', 'position', 'velocity', 'torque'), 0.0, 14.0, 'panda_hand',
)  # fmt: skip
FIRST, LAST = UR10E.first, UR10E.last
REST = 5.0
"""Further seconds of rest before, from which noise is estimated [s]."""
WAITS = 4.0
"""Time without equations: rest, filters that fill, windows that wait for others [s]."""
PUSH = 50.0
"""[N]."""


def settings(arm=UR10E, **others):
    given = IdentifierSettings.from_yaml(CONFIGS / arm.config, 'parameter_identifier')
    return replace(given, efforts=replace(given.efforts, **others))


class Arm:
    """An arm, an identifier beside it, and the result of each window."""

    def __init__(self, settings, recorded=UR10E, urdf=None):
        self.robot = build_robot(settings, urdf or recorded.description())
        self._recorded, (self._joints, self._columns) = recorded, recorded.read()
        self.identifier = RecursiveIdentifier(self.robot, recursion_settings(settings, self.robot))
        self._assembler = SampleAssembler(self.robot, settings)
        self._windows = SampleWindows(self.robot, SAMPLE_RATE, CONTACT_MARGIN, ())
        self._gains = np.array(settings.efforts.gains) if settings.efforts.gains else 1.0
        self.changes, self.refits = [], []

    def play(self, first, last, pushed=(0.0, 0.0), later=0.0):
        """Play a part of the log, later by some time; the tool is pushed during a part of it."""
        times, *columns = self._columns
        part = (times >= first) & (times <= last)
        times, positions, velocities, efforts = (one[part] for one in (times, *columns))
        is_pushed = (times >= pushed[0]) & (times < pushed[1])
        if is_pushed.any():
            efforts[is_pushed] += self.pushes(positions[is_pushed]) / self._gains
        for time, *state in zip(times, positions, velocities, efforts, strict=True):
            stamp_ns = round(1e9 * (1000.0 + later + time))
            sample = self._assembler.push_joints(0, stamp_ns, self._joints, *state)
            window = None if sample is None else self._windows.add(sample, ())
            self._assembler.wanted_ns = self._windows.next_ns
            if window is not None:
                changes = self.identifier.add(window.samples, free=window.free)
                self.changes += [change for _, change in changes]
                self.refits.append(self.identifier.refit())
        return self

    def pushes(self, positions):
        """Return joint torques against a push across the tool [Nm]."""
        n, still = len(positions), np.zeros_like(positions)
        none = np.zeros((n, 0, 3))
        samples = SampleBatch(
            np.arange(n), positions, still, still, none, none, none, np.zeros((n, 0, 6))
        )
        push = {self._recorded.tool: np.tile([PUSH, 0.0, 0.0, 0.0, 0.0, 0.0], (n, 1))}
        return efforts_of(self.robot, samples, push) - efforts_of(self.robot, samples)

    @property
    def seconds(self):
        return self.identifier.memories[0].seconds

    @property
    def refitted(self):
        return self.refits[-1].refitted == (self.robot.submodels[0].name,)

    def errors(self):
        """Return residuals of efforts of prior and fit, over the last eight seconds."""
        name = self.robot.submodels[0].name
        pairs = [
            [list(each[name].values()) for each in (refit.prior_residuals, refit.residuals)]
            for refit in self.refits[-8:] if refit is not None and refit.prior_residuals
        ]  # fmt: skip
        return np.sqrt(np.nanmean(np.square(pairs), axis=(0, 2)))


@pytest.mark.parametrize(
    ('recorded', 'mass', 'last'),
    [(UR10E, None, LAST), (UR10E, 0.3, LAST + 6.0), (PANDA, None, PANDA.last)],
    ids=['ur10e', 'light ur10e', 'panda'],
)
def test_identified_parameters_predict_efforts_better(recorded, mass, last):
    """Also from a URDF in which all links have one mass."""
    urdf = recorded.description()
    if mass:
        urdf = re.sub(r'<mass value="[0-9.]+"', f'<mass value="{mass}"', urdf)
    arm = Arm(settings(recorded), recorded, urdf).play(recorded.first, last)
    assert arm.changes == []
    assert arm.seconds > last - recorded.first - WAITS
    assert arm.refitted
    assert (consistency_margin(arm.refits[-1].parameters) > 0.0).all()
    before, after = arm.errors()
    assert after < 0.5 * before


def test_noise_estimated_at_rest_does_not_reject_motion():
    """At rest, with stiction, residuals are a tenth of those in motion."""
    arm = Arm(settings(dead_zone=0.0)).play(FIRST - REST, LAST)
    # The first three seconds of motion contain how it breaks away: twice as noisy as all later.
    assert arm.changes == [Change.TOUCHED, Change.BEGUN, Change.BEGUN]
    assert arm.seconds > LAST - FIRST - WAITS
    moving = Arm(settings(dead_zone=0.0)).play(FIRST + WAITS, LAST)
    (noise,), (usual,) = ([m.noise for m in one.identifier.memories] for one in (arm, moving))
    # Of ten seconds of one motion, the first ones counted or not.
    assert all(0.7 < noise[kind] / usual[kind] < 1.4 for kind in usual)
    before, after = arm.errors()
    assert after < 0.6 * before


@pytest.mark.parametrize('recorded', [UR10E, PANDA], ids=['ur10e', 'panda'])
def test_a_push_in_motion_is_rejected(recorded):
    begins = recorded.last - 5.0
    arm = Arm(settings(recorded), recorded)
    arm.play(recorded.first, begins + 3.0, pushed=(begins, recorded.last))
    assert arm.changes == [Change.TOUCHED]
    # The window in which it begins waits for the next one and is left out as well.
    assert arm.seconds < begins - recorded.first
    assert arm.refitted


def test_a_push_at_rest_is_rejected_before_any_motion():
    arm = Arm(settings(dead_zone=0.0)).play(FIRST - REST, FIRST)
    assert arm.changes == []
    known = arm.seconds
    arm.play(FIRST - REST, FIRST, pushed=(0.0, FIRST), later=REST)
    assert arm.changes == [Change.TOUCHED]
    assert arm.seconds <= known


def test_gains_belong_to_the_named_joints():
    robot = build_robot(settings(), UR10E.description())
    found = recursion_settings(settings(joints=('elbow_joint',), gains=(11.13,)), robot)
    assert found.effort_gains == {'elbow_joint': 11.13}
    with pytest.raises(NameNotFound):
        RecursiveIdentifier(robot, replace(found, effort_gains={'elbo': 1.0}))


# ---- An embedded robot that stands

SECONDS = 20.0
LEGS = ('l_foot', 'r_foot', 'l_hip', 'r_hip')


@pytest.fixture(scope='module')
def log():
    pytest.importorskip('mujoco', reason='the simulated robot runs in mujoco')
    pytest.importorskip('icub_models', reason='the simulated robot is the iCub of icub-models')
    return live_robots.record(replace(standing(SECONDS), pushes=(), onset=5.0), SECONDS)


def identify(log, robot, held=live.HELD, calibration=None):
    """Return an identifier that was given the log, and its last refit."""
    identifier = RecursiveIdentifier(robot, node_settings(robot), calibration)
    identifier.noise = state_noise(robot, live_robots.CENTRED, live_robots.RATE)
    free = np.array([one.name not in held for one in robot.submodels])
    for part in equal_parts(log.centred, 1.0):
        identifier.add(part, free=np.tile(free, (len(part), 1)))
        refit = identifier.refit()
    return identifier, refit


def test_identified_parameters_predict_torques_better():
    pytest.importorskip('mujoco', reason='the simulated robot runs in mujoco')
    pytest.importorskip('icub_models', reason='the simulated robot is the iCub of icub-models')
    log = convergence.motion(3, 27.0)
    course = convergence.identify(log, np.zeros((len(log.robot.ft_sensors), 6)), seed=3)
    # Of ten wrong URDFs and all limbs the median is less than a tenth then, the largest one.
    assert max(course.shares(10.0).values()) < 0.5
    errors, deviations, _ = course.base[10.0]
    # Those of the wrong URDF are about one.
    assert np.sqrt(np.mean(errors[deviations < convergence.EXCITED] ** 2)) < 0.5
    assert course.covered[10.0].min() > 0.85


def test_a_tare_with_wrong_parameters_is_corrected(log):
    """Offsets from wrong parameters hold their errors: the update corrects both."""
    wrong = wrong_robot(log.robot, np.random.default_rng(2))
    rest = log.samples.take(np.flatnonzero(log.times < 2.0))
    arms = [k for k, sensor in enumerate(wrong.ft_sensors) if 'arm' in sensor.name]
    loads = support_loads(WrenchEstimator(wrong), rest, ['l_foot', 'r_foot'])
    tared = np.zeros((len(wrong.ft_sensors), 6))
    tared[arms] = np.nanmean((rest.ft_readings - loads.readings)[:, arms], axis=0)
    calibration = FtCalibration.identity(len(tared)).with_offsets(tared)
    _, refit = identify(log, wrong, calibration=calibration)
    assert set(refit.refitted) >= {'l_upper_arm', 'r_upper_arm'}
    model = ModelInUse(WrenchEstimator(wrong, calibration=calibration), 0.0)
    assert model.offer(refit.update(wrong, calibration))
    model.finish()
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


@pytest.mark.parametrize('goals', [lambda: live.carried_load(3), lambda: live.standing_still(300)])
def test_goals_of_bench_are_reached(log, goals):
    assert [goal for goal in goals() if not goal.reached] == []
