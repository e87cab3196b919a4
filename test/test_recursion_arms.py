# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Recursive identification of real arms from currents or torques, beginning at rest.

Samples are those of the node's filters, which know no future. Not covered: the node itself
(ros/test_identifier_node.py); how well parameters predict other logs (test_real_robots.py).
"""

import json
import re
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from shared_data import SHARED
from simulated_arm import efforts_of

from bench.arms import CONFIGS
from inertial_estimation import IdentifierSettings, RecursiveIdentifier, SampleAssembler
from inertial_estimation.errors import NameNotFound
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.settings import recursion_settings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.ros.sample_windows import CONTACT_MARGIN, SAMPLE_RATE, SampleWindows
from inertial_estimation.sample import SampleBatch

DATA = SHARED / 'data'
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')


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
        self._recorded, (self._joints, self._columns) = recorded, recorded.read()
        self.robot = build_robot(settings, urdf or recorded.description())
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
    assert arm.changes == [Change.TOUCHED, Change.BEGUN]
    assert arm.seconds > LAST - FIRST - WAITS
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
