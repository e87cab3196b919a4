# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The weak prior of friction: as large as efforts are, infinite where it says nothing."""

import numpy as np
from robots import arm_with_wrist_sensor_urdf

from inertial_estimation.identification.equations.builder import (
    EquationBuilder,
    EquationChoice,
    random_samples,
)
from inertial_estimation.identification.equations.friction import Coupling, JointModel
from inertial_estimation.identification.evidence import FRICTION_SHARES, friction_scales, gather
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot


def test_scales_are_the_size_of_efforts():
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')
    choice = EquationChoice(
        efforts=robot.joint_names,
        joint=JointModel(terms=(Term.VISCOUS, Term.OFFSET)),
        couplings=(Coupling(('shoulder', 'elbow'), (Term.COULOMB,)),),
        gains=('lift',),
        offsets=('wrist_sensor',),
    )
    evidence = gather(EquationBuilder(robot, choice), random_samples(robot, 100))[0]
    names = [str(extra) for extra in evidence.block.unknowns.extras]
    found = dict(zip(names, friction_scales(evidence), strict=True))
    sizes = evidence.signals()
    assert found['elbow.viscous'] == sizes['effort elbow']
    assert found['elbow.offset'] == FRICTION_SHARES[Term.OFFSET] * sizes['effort elbow']
    shared = (sizes['effort shoulder'] + sizes['effort elbow']) / 2
    np.testing.assert_allclose(found['shoulder+elbow.coulomb'], shared)
    assert np.isinf(found['lift.drive_gain'])
    assert np.isinf([found[name] for name in names if name.startswith('wrist_sensor')]).all()
    assert (np.array(list(found.values())) > 0).all()
