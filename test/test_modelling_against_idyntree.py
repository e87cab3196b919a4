# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Free-floating dynamics against iDynTree in its three velocity representations, about many bases.

iDynTree knows all URDF links and joints; only robots with all joints in use are compared. Not
covered: the Coriolis matrix, which iDynTree does not give (test_free_floating.py).
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from floating_states import FORMS, ROBOTS, random_state

from inertial_estimation.model.free_floating import State
from inertial_estimation.model.momentum import average_equations, centroidal, momentum_matrix
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot

iDynTree = pytest.importorskip('idyntree.bindings', reason='iDynTree is the oracle')

THEIRS = dict(
    zip(
        FORMS,
        (
            iDynTree.BODY_FIXED_REPRESENTATION,
            iDynTree.INERTIAL_FIXED_REPRESENTATION,
            iDynTree.MIXED_REPRESENTATION,
        ),
    )
)
SMALL = [name for name in ROBOTS if name != 'one_link']
ROUND_OFF = 1e-12
"""Relative to the largest entry: sums over up to sixty bodies, and poses made orthonormal."""


class Oracle:
    """iDynTree's KinDynComputations of one robot, called in our order of joints."""

    def __init__(self, robot: Robot) -> None:
        loader = iDynTree.ModelLoader()
        assert loader.loadModelFromString(robot.urdf)
        self.computations = iDynTree.KinDynComputations()
        assert self.computations.loadRobotModel(loader.model())
        self.model = self.computations.model()
        self.loader = loader
        assert self.model.getNrOfDOFs() == len(robot.joint_names)
        joints = [self.model.getJoint(self.model.getJointIndex(n)) for n in robot.joint_names]
        dofs = np.array([joint.getDOFsOffset() for joint in joints], dtype=int)
        self.columns = np.concatenate([np.arange(6), 6 + dofs])
        self.n = len(self.columns)

    def is_link(self, name: str) -> bool:
        return self.model.getLinkIndex(name) >= 0

    def set(self, state: State, base: str, form: Representation) -> None:
        """Put it into a state, seen from a base."""
        # Anew for each base: its mass matrix keeps entries of the former base where zeros belong.
        self.computations = theirs = iDynTree.KinDynComputations()
        assert theirs.loadRobotModel(self.loader.model())
        self.model = theirs.model()
        assert theirs.setFloatingBase(base)
        assert theirs.setFrameVelocityRepresentation(THEIRS[form])
        equations = state.equations(base, form)
        s, s_rate = np.zeros(self.n - 6), np.zeros(self.n - 6)
        s[self.columns[6:] - 6] = state.positions
        s_rate[self.columns[6:] - 6] = equations.velocity[6:]
        gravity = state.model.robot.gravity.copy()
        v = equations.velocity[:6].copy()
        assert theirs.setRobotState(state.pose(base), s, v, s_rate, gravity)

    def mass_matrix(self) -> np.ndarray:
        M = iDynTree.MatrixDynSize(self.n, self.n)
        assert self.computations.getFreeFloatingMassMatrix(M)
        return M.toNumPy()[np.ix_(self.columns, self.columns)]

    def forces(self, name: str) -> np.ndarray:
        """Return generalised forces that a method of this name gives."""
        forces = iDynTree.FreeFloatingGeneralizedTorques(self.model)
        assert getattr(self.computations, name)(forces)
        wrench = forces.baseWrench().toNumPy()
        return np.concatenate([wrench, forces.jointTorques().toNumPy()])[self.columns]

    def jacobian(self, frame: str) -> np.ndarray:
        J = iDynTree.MatrixDynSize(6, self.n)
        assert self.computations.getFrameFreeFloatingJacobian(frame, J)
        return J.toNumPy()[:, self.columns]

    def momentum_matrix(self, name: str) -> np.ndarray:
        J = iDynTree.MatrixDynSize(6, self.n)
        assert getattr(self.computations, name)(J)
        return J.toNumPy()[:, self.columns]


def assert_same(got, expected):
    scale = np.abs(expected).max() if np.size(expected) else 1.0
    np.testing.assert_allclose(got, expected, rtol=0, atol=ROUND_OFF * max(scale, 1.0))


def compare(state: State, oracle: Oracle, base: str, frame: str, form: Representation) -> None:
    oracle.set(state, base, form)
    equations = state.equations(base, form)
    theirs = oracle.computations
    assert_same(equations.mass_matrix, oracle.mass_matrix())
    bias = equations.inverse_dynamics(np.zeros(oracle.n))
    assert_same(bias, oracle.forces('generalizedBiasForces'))
    assert_same(equations.gravity_forces, oracle.forces('generalizedGravityForces'))
    H = theirs.getWorldTransform(frame).asHomogeneousTransform().toNumPy()
    assert_same(state.pose(frame), H)
    assert_same(state.velocity(frame, form), theirs.getFrameVel(frame).toNumPy())
    assert_same(state.jacobian(frame, equations, form), oracle.jacobian(frame))
    whole = centroidal(state)
    assert_same(whole.com, theirs.getCenterOfMassPosition().toNumPy())
    assert_same(whole.com_velocity, theirs.getCenterOfMassVelocity().toNumPy())
    # In the axes of the base with the left-trivialised representation.
    R = state.pose(base)[:3, :3] if form is Representation.LEFT else np.eye(3)
    momentum = theirs.getCentroidalTotalMomentum().toNumPy().reshape(2, 3) @ R.T
    assert_same(whole.momentum, momentum.ravel())


@pytest.mark.parametrize('name', SMALL)
def test_small_robots_about_every_link(name, rng):
    state, oracle = random_state(ROBOTS[name], rng), Oracle(ROBOTS[name])
    names = ROBOTS[name].link_names
    for base, form in product(names, FORMS):
        assert oracle.is_link(base)
        compare(state, oracle, base, names[-1] if base == names[0] else names[0], form)


@pytest.mark.parametrize('name', SMALL)
def test_the_average_velocity_of_small_robots(name, rng):
    state, oracle = random_state(ROBOTS[name], rng), Oracle(ROBOTS[name])
    oracle.set(state, ROBOTS[name].link_names[0], Representation.MIXED)
    mixed = state.equations('', Representation.MIXED)
    average = average_equations(state).velocity_map(mixed)[:6]
    assert_same(average, oracle.momentum_matrix('getCentroidalAverageVelocityJacobian'))
    matrix = oracle.momentum_matrix('getCentroidalTotalMomentumJacobian')
    assert_same(momentum_matrix(state, mixed), matrix)


def icub_models_urdf() -> Path:
    models = pytest.importorskip('icub_models', reason='the robot of icub-models')
    return Path(models.get_model_file('iCubGazeboV2_5'))


@pytest.mark.parametrize('source', ['icub_v2_5', 'ergocub_sn001', 'icub_models'])
def test_humanoids_about_several_links(source, request, rng):
    if source == 'icub_models':
        path = icub_models_urdf()
    else:
        path = request.getfixturevalue('shared_models') / f'{source}.urdf'
    robot = Robot.from_urdf(path)
    state, oracle = random_state(robot, rng), Oracle(robot)
    names = [name for name in robot.link_names if oracle.is_link(name)]
    for base, form in product((names[0], names[len(names) // 2], names[-1]), FORMS):
        compare(state, oracle, base, names[len(names) // 3], form)
