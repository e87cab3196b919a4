# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Bodies, and floating robots about every base [T chapters 2 and 3].

Bodies against mass points; robots against iDynTree, identities of the thesis and central
differences. iDynTree knows all joints of a URDF: only robots with all joints in use are compared.
"""

from contextlib import nullcontext
from itertools import product

import numpy as np
import pytest
from robots import _link, arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_pose
from scipy.linalg import expm

from inertial_estimation.errors import ModelError
from inertial_estimation.model.free_floating import (
    FreeFloatingModel,
    State,
    average_equations,
    centroidal,
)
from inertial_estimation.model.inertia import (
    check_centres,
    inertia_complaint,
)
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec

ROBOTS = {
    'one_link': Robot.from_urdf(f'<robot name="one_link">{_link("only", 2.0)}</robot>'),
    # One FT sensor behind the other.
    'arm': Robot.from_urdf(
        arm_with_wrist_sensor_urdf(),
        ft_sensors=['wrist_sensor', FtSpec('tip_sensor', 'tip_joint')],
        gravity=(1.0, -2.0, -9.0),
    ),
    'nested_humanoid': Robot.from_urdf(nested_humanoid_urdf()),
}
LEFT, RIGHT, MIXED, _ = Representation
FORMS = (LEFT, RIGHT, MIXED)
STEP = 1e-5
"""Of central differences [s]; their error is step^2 of a third derivative and round-off / step."""
ROUND_OFF = 1e-10  # of sums over some ten bodies of products of numbers up to hundreds
DIFFERENCE = 1e-5  # of central differences of numbers up to hundreds
ORACLE = 1e-12  # relative: sums over up to sixty bodies, and poses made orthonormal


def assert_near(got, expected, atol=ROUND_OFF):
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


def random_state(robot, rng):
    """Return a robot that moves fast, seen from its root."""
    n = len(robot.joint_names)
    return FreeFloatingModel(robot).state(
        rng.uniform(-1.5, 1.5, n),
        rng.normal(0.0, 2.0, n),
        random_pose(rng),
        rng.normal(0.0, 1.5, 6),
    )


def rate(function, state, root_acceleration=0.0):
    """
    Return the rate of a function of the state by central differences.

    The left-trivialised acceleration of the root and those of the joints stay the same; without
    them the velocities do.
    """
    values, a = [], root_acceleration
    for time in (STEP, -STEP):
        mean = state.root_velocity + a * time / 2  # exact to second order in time
        twist = np.zeros((4, 4))
        twist[:3, :3] = np.cross(np.eye(3), mean[3:6])
        twist[:3, 3] = mean[:3]
        pose, positions = state.pose() @ expm(twist * time), state.positions + mean[6:] * time
        velocity = state.root_velocity + a * time
        values.append(np.asarray(function(State(state.model, pose, positions, velocity))))
    return (values[0] - values[1]) / (2 * STEP)


def variables_of(state):
    """Return the equations in a few very different variables."""
    last = state.model.robot.link_names[-1]
    chosen = [state.equations(last, form) for form in FORMS]
    return [*chosen, state.equations('', LEFT), average_equations(state)]


# Against iDynTree


class Oracle:
    """iDynTree's KinDynComputations of a robot in a state, in our order of joints."""

    def __init__(self, state, base, form):
        self.library = iDynTree = pytest.importorskip('idyntree.bindings')
        loader, self.theirs = iDynTree.ModelLoader(), iDynTree.KinDynComputations()
        robot = state.model.robot
        assert loader.loadModelFromString(robot.urdf)
        assert self.theirs.loadRobotModel(loader.model())
        self.model = self.theirs.model()
        joints = [self.model.getJoint(self.model.getJointIndex(n)) for n in robot.joint_names]
        dofs = np.array([joint.getDOFsOffset() for joint in joints], dtype=int)
        self.columns = np.concatenate([np.arange(6), 6 + dofs])
        forms = {
            LEFT: iDynTree.BODY_FIXED_REPRESENTATION,
            RIGHT: iDynTree.INERTIAL_FIXED_REPRESENTATION,
            MIXED: iDynTree.MIXED_REPRESENTATION,
        }
        assert self.theirs.setFloatingBase(base)
        assert self.theirs.setFrameVelocityRepresentation(forms[form])
        velocity = state.equations(base, form).velocity
        s = np.zeros((2, len(dofs)))
        s[:, dofs] = state.positions, velocity[6:]
        gravity = robot.gravity.copy()
        assert self.theirs.setRobotState(
            state.pose(base), s[0], velocity[:6].copy(), s[1], gravity
        )

    def matrix(self, name, rows, *arguments):
        """Return what a method writes into a matrix."""
        J = self.library.MatrixDynSize(rows, len(self.columns))
        assert getattr(self.theirs, name)(*arguments, J)
        return J.toNumPy()[:, self.columns]

    def forces(self, name):
        forces = self.library.FreeFloatingGeneralizedTorques(self.model)
        assert getattr(self.theirs, name)(forces)
        wrench = forces.baseWrench().toNumPy()
        return np.concatenate([wrench, forces.jointTorques().toNumPy()])[self.columns]


def assert_same(got, expected):
    scale = np.abs(expected).max() if np.size(expected) else 1.0
    assert_near(got, expected, ORACLE * max(scale, 1.0))


@pytest.mark.parametrize('name', ['arm', 'nested_humanoid', 'icub_v2_5'])
def test_dynamics_about_any_link_are_idyntree_s(name, request, rng):
    robot = ROBOTS.get(name)
    if robot is None:
        robot = Robot.from_urdf(request.getfixturevalue('shared_models') / f'{name}.urdf')
    state, names = random_state(robot, rng), robot.link_names
    oracle, mixed, whole = (
        Oracle(state, names[0], MIXED),
        state.equations('', MIXED),
        centroidal(state),
    )
    average = average_equations(state).velocity_map(mixed)[:6]
    assert_same(average, oracle.matrix('getCentroidalAverageVelocityJacobian', 6))
    inertia = oracle.theirs.getCentroidalRobotLockedInertia().asMatrix().toNumPy()
    assert_same(whole.inertia, inertia)
    names = [link for link in names if oracle.model.isLinkNameUsed(link)]
    bases = names if name in ROBOTS else (names[0], names[len(names) // 2], names[-1])
    for base, form in product(bases, FORMS):
        frame = names[len(names) // 3 if base != names[len(names) // 3] else -1]
        oracle, equations = Oracle(state, base, form), state.equations(base, form)
        theirs, n = oracle.theirs, len(oracle.columns)
        M = oracle.matrix('getFreeFloatingMassMatrix', n)[oracle.columns]
        assert_same(equations.mass_matrix, M)
        bias = equations.inverse_dynamics(np.zeros(n))
        assert_same(bias, oracle.forces('generalizedBiasForces'))
        assert_same(equations.gravity_forces, oracle.forces('generalizedGravityForces'))
        H = theirs.getWorldTransform(frame).asHomogeneousTransform().toNumPy()
        assert_same(state.pose(frame), H)
        assert_same(state.velocity(frame, form), theirs.getFrameVel(frame).toNumPy())
        J = oracle.matrix('getFrameFreeFloatingJacobian', 6, frame)
        assert_same(state.jacobian(frame, equations, form), J)
        assert_same(whole.com, theirs.getCenterOfMassPosition().toNumPy())
        assert_same(whole.com_velocity, theirs.getCenterOfMassVelocity().toNumPy())
        # In the axes of the base with the left-trivialised representation.
        R = state.pose(base)[:3, :3] if form is LEFT else np.eye(3)
        momentum = theirs.getCentroidalTotalMomentum().toNumPy().reshape(2, 3) @ R.T
        assert_same(whole.momentum, momentum.ravel())


# Identities


@pytest.mark.parametrize('form', FORMS)
@pytest.mark.parametrize('robot', ROBOTS.values(), ids=ROBOTS)
def test_states_by_any_base_have_skew_coriolis_matrices(robot, form, rng):
    """The mass rate less twice the Coriolis matrix [T Proposition 3.4, Theorem 3.3]."""
    for link in robot.link_names:
        s, s_rate = rng.normal(size=(2, len(robot.joint_names)))
        H, v = random_pose(rng), rng.normal(size=6)
        given = {'base': link, 'representation': form}
        state = FreeFloatingModel(robot).state(s, s_rate, H, v, **given)
        assert_near(state.pose(link), H)
        equations = state.equations(link, form)
        assert_near(state.velocity(link, form), v)
        assert_near(equations.velocity, np.concatenate([v, s_rate]))
        mass_rate = rate(lambda s, link=link: s.equations(link, form).mass_matrix, state)
        N = mass_rate - 2 * equations.coriolis_matrix
        assert_near(N + N.T, np.zeros_like(N), DIFFERENCE)


@pytest.mark.parametrize('robot', ROBOTS.values(), ids=ROBOTS)
def test_motion_power_and_energy_do_not_depend_on_the_variables(robot, rng):
    state = random_state(robot, rng)
    root = state.equations('', LEFT)
    a = rng.normal(0.0, 3.0, root.velocity.size)
    forces = root.inverse_dynamics(a)
    for k, equations in enumerate(variables_of(state)):
        acceleration = equations.acceleration_from(root, a)
        expected = rate(lambda s, k=k: variables_of(s)[k].velocity, state, a)
        assert_near(acceleration, expected, DIFFERENCE)
        assert_near(equations.T_rate, rate(lambda s, k=k: variables_of(s)[k].T, state), DIFFERENCE)
        got = equations.inverse_dynamics(acceleration)
        assert_near(got, equations.forces_from(root, forces))
        assert_near(got @ equations.velocity, forces @ root.velocity)
        energy = equations.velocity @ equations.mass_matrix @ equations.velocity
        assert_near(energy, root.velocity @ root.mass_matrix @ root.velocity)
        assert_near(equations.velocity_map(root) @ root.velocity, equations.velocity)
    last = robot.link_names[-1]
    for form in FORMS:
        wanted = state.equations(last, form).acceleration_from(root, a)[:6]
        assert_near(state.acceleration(last, root, a, form), wanted)


# Mistakes and degenerate robots


def test_poses_and_bodies_without_meaning_are_refused(rng):
    robot = ROBOTS['one_link']
    with pytest.raises(ModelError):
        FreeFloatingModel(robot).state([], [], 2.0 * np.eye(4))
    state = random_state(robot.with_parameters(np.zeros((1, 10))), rng)
    for function in (centroidal, average_equations):
        with pytest.raises(ModelError):
            function(state)
    for least in (1e-10, -0.1, 1e-14):
        parameters = np.array([[2.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, least]])
        state = random_state(robot.with_parameters(parameters), rng)
        if least == 1e-14:
            with pytest.raises(ModelError):
                average_equations(state)
        else:
            got, expected = average_equations(state).velocity, state.velocity('only', MIXED)
            assert_near(got[3:6], expected[3:], 1e-14 / abs(least))


# Bodies


def test_inconsistent_parameters_are_named(nested_humanoid):
    assert {inertia_complaint(p) for p in nested_humanoid.parameters} == {''}
    for changes in (
        {0: 1.0, 5: np.inf},
        {0: 1.0},  # a point, on the boundary
        {0: -1.0, 4: 1.0, 6: 1.0, 9: 1.0},
        {0: 1.0, 4: 1.0, 6: 1.0, 9: 3.0},  # breaks the triangle inequality
        {0: 1.0, 1: 2.0, 4: 1.0, 6: 1.0, 9: 1.0},  # the centre of mass too far out
    ):
        parameters = np.zeros(10)
        parameters[list(changes)] = list(changes.values())
        assert inertia_complaint(parameters)


def test_centre_of_mass_must_not_be_too_far_away():
    for mass, moment, largest, refused in (
        (0.0, 0.0, 1.0, False),
        (0.0, 1e-300, 1.0, True),
        # A centre of mass 10 km away, of a body that would not be noticed there.
        (1e-20, 1e-16, 1.0, False),
        # 0.01 / 1e-9 is beyond a million, unless a robot is that heavy.
        (-1e-9, 0.1, 1.0, True),
        (1e-9, 0.1, 20.0, False),
    ):
        parameters = np.array([[mass, 0.0, moment, 0.0, *np.ones(6)]])
        with pytest.raises(ModelError) if refused else nullcontext():
            check_centres(['hand'], parameters, largest)
