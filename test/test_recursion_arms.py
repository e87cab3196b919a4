# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Real arms that report currents or torques, from their first joint states on, as the node sees them.

They rest, then move: samples are those of the node's filters, which know no future. Not covered:
the node itself, which is in ros/test_identifier_arms.py; recursive against batch, which is in
test_recursion_real_robots.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
from recorded_arms import PANDA, UR10E

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.identification.equations.builder import EquationBuilder, EquationChoice
from inertial_estimation.identification.equations.friction import JointModel
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.ros.recursion_choice import recursion_settings
from inertial_estimation.ros.sample_windows import SampleWindows
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.assembler import build_assembler

FIRST, LAST = UR10E.first, UR10E.last
"""Of the part that is used: it rests for a second, then begins to move [s]."""
REST = 5.0
"""Further seconds of rest before, in which noise is told [s]."""
WAITS = 4.0
"""Time that gives no rows: rest, filters that fill, and stretches that wait for others [s]."""
PUSH = 50.0
"""[N]."""


def settings(arm=UR10E, **others):
    return replace(IdentifierSettings.from_yaml(arm.config, 'parameter_identifier'), **others)


class Arm:
    """An arm, an identifier beside it, and what came of each stretch."""

    def __init__(self, settings, recorded=UR10E, urdf=None):
        self._recorded, self._log = recorded, recorded.read()
        self.robot = build_robot(settings, urdf or recorded.description())
        self.identifier = RecursiveIdentifier(self.robot, recursion_settings(settings, self.robot))
        self._assembler = build_assembler(settings, self.robot)
        self._stretches = SampleWindows(
            self.robot, settings.rows_rate, settings.contact_margin, ()
        )
        self._gains = np.array(settings.effort_gains) if settings.effort_gains else 1.0
        self.changes, self.refits = [], []

    def play(self, first, last, pushed=(0.0, 0.0), later=0.0):
        """Play a part of the log, say later; the tool is pushed across in a part of that."""
        log = self._log.between(first, last)
        is_pushed = (log.times >= pushed[0]) & (log.times < pushed[1])
        efforts = log.efforts.copy()
        if is_pushed.any():
            efforts[is_pushed] += self.pushes(log.positions[is_pushed]) / self._gains
        for k, time in enumerate(log.times):
            stamp_ns = round(1e9 * (1000.0 + later + time))
            sample = self._assembler.push_joints(
                0, stamp_ns, log.joints, log.positions[k], log.velocities[k], efforts[k]
            )
            stretch = None if sample is None else self._stretches.add(sample, ())
            self._assembler.wanted_ns = self._stretches.next_ns
            if stretch is not None:
                changes = self.identifier.add(stretch.samples, free=stretch.free)
                self.changes += [change for _, change in changes]
                self.refits.append(self.identifier.refit())
        return self

    def pushes(self, positions):
        """Return what joints do against a push across the tool [Nm]."""
        n = len(positions)
        still = np.zeros_like(positions)
        none = np.zeros((n, 0, 3))
        samples = SampleBatch(
            np.arange(n), positions, still, still, none, none, none, np.zeros((n, 0, 6)),
            efforts=still,
        )  # fmt: skip
        builder = EquationBuilder(
            self.robot, EquationChoice(efforts=self.robot.joint_names, joint=JointModel(()))
        )
        push = np.tile([PUSH, 0.0, 0.0, 0.0, 0.0, 0.0], (n, 1))
        (rows,) = builder.equations(samples, external={self._recorded.tool: push})
        return -np.stack([rows[f'effort {name}'].y for name in self.robot.joint_names], axis=1)

    @property
    def seconds(self):
        return self.identifier.memories[0].seconds

    def errors(self):
        """Return what description and bodies left of efforts, all of the last eight seconds."""
        (name,) = (submodel.name for submodel in self.robot.submodels)
        pairs = [
            (np.fromiter(refit.prior_residuals[name].values(), float),
             np.fromiter(refit.residuals[name].values(), float))
            for refit in self.refits[-8:] if refit is not None and refit.prior_residuals
        ]  # fmt: skip
        return np.sqrt(np.nanmean(np.square(pairs), axis=(0, 2)))


def light(urdf):
    """Return a description whose links all have 0.3 kg."""
    return re.sub(r'<mass value="[0-9.]+"', '<mass value="0.3"', urdf)


BOTH = pytest.mark.parametrize('recorded', [UR10E, PANDA], ids=['ur10e', 'panda'])


@pytest.mark.parametrize(
    ('recorded', 'description_of', 'last'),
    [(UR10E, str, LAST), (UR10E, light, LAST + 6.0), (PANDA, str, PANDA.last)],
    ids=['ur10e', 'light ur10e', 'panda'],
)
def test_it_learns_from_all_motion_and_predicts_better(recorded, description_of, last):
    arm = Arm(settings(recorded), recorded, description_of(recorded.description()))
    arm.play(recorded.first, last)
    assert arm.changes == []
    assert arm.seconds > last - recorded.first - WAITS
    assert arm.refits[-1].refitted == (arm.robot.submodels[0].name,)
    assert arm.refits[-1].least_margin > 0.0
    before, after = arm.errors()
    assert after < 0.5 * before


def test_rest_that_tells_noise_does_not_keep_motion_out():
    """Rows of joints at rest, with stiction in them, leave a tenth of what those in motion do."""
    arm = Arm(settings(dead_zone=0.0)).play(FIRST - REST, LAST)
    assert arm.changes == [Change.TOUCHED, Change.BEGUN]
    assert arm.seconds > LAST - FIRST - WAITS
    before, after = arm.errors()
    assert after < 0.6 * before


@BOTH
def test_a_push_in_motion_is_kept_out(recorded):
    begins = recorded.last - 5.0
    arm = Arm(settings(recorded), recorded)
    arm.play(recorded.first, begins + 3.0, pushed=(begins, recorded.last))
    assert arm.changes == [Change.TOUCHED]
    # The stretch in which it begins waits for the next one and is left out as well.
    assert arm.seconds < begins - recorded.first
    assert arm.refits[-1].refitted == (arm.robot.submodels[0].name,)


def test_a_push_at_rest_is_kept_out_before_anything_is_known():
    """Nothing moves, so rows tell no more than before."""
    arm = Arm(settings(dead_zone=0.0))
    arm.play(FIRST - REST, FIRST)
    assert arm.changes == []
    known, n = arm.seconds, len(arm.refits)
    arm.play(FIRST - REST, FIRST, pushed=(0.0, FIRST), later=REST)
    assert len(arm.refits) > n + 3
    assert arm.changes == [Change.TOUCHED]
    assert arm.seconds <= known


def test_gains_are_those_of_joints_and_no_others():
    robot = build_robot(settings(), UR10E.description())
    found = recursion_settings(settings(efforts=('elbow_joint',), effort_gains=(11.13,)), robot)
    assert found.effort_gains == {'elbow_joint': 11.13}
    with pytest.raises(ConfigError):
        recursion_settings(settings(efforts=('elbow_joint',)), robot)
    with pytest.raises(NameNotFound):
        RecursiveIdentifier(robot, replace(found, effort_gains={'elbo': 1.0}))
    with pytest.raises(ConfigError):
        RecursionSettings(effort_gains={'elbow_joint': 0.0})
