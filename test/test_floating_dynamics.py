# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Free-floating dynamics and momentum about every base in every representation [T chapter 3].

Against Pinocchio about the root, iDynTree about many bases, identities of the thesis and central
differences. iDynTree knows all joints of a URDF: only robots with all joints in use are compared.
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, random_pose
from scipy.linalg import block_diag, expm

from inertial_estimation.errors import ModelError
from inertial_estimation.model.free_floating import (
    FreeFloatingModel,
    State,
    average_equations,
    centroidal,
)
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtSpec

ONE_LINK = (
    '<robot name="one_link"><link name="only"><inertial>'
    '<origin xyz="0.02 -0.01 0.1" rpy="0.1 0.2 0.3"/><mass value="2.0"/>'
    '<inertia ixx="0.04" ixy="0.001" ixz="-0.002" iyy="0.03" iyz="0.003" izz="0.02"/>'
    '</inertial></link></robot>'
)
ROBOTS = {
    'one_link': Robot.from_urdf(ONE_LINK),
    # One FT sensor behind the other.
    'arm': Robot.from_urdf(
        arm_with_wrist_sensor_urdf(),
        ft_sensors=['wrist_sensor', FtSpec('tip_sensor', 'tip_joint')],
        gravity=(1.0, -2.0, -9.0),
    ),
    'nested_humanoid': Robot.from_urdf(nested_humanoid_urdf()),
}
LEFT, RIGHT, MIXED, SENSOR = Representation
FORMS = (LEFT, RIGHT, MIXED)
STEP = 1e-5
"""Of central differences [s]; their error is step^2 of a third derivative and round-off / step."""
ROUND_OFF = 1e-10  # of sums over some ten bodies of products of numbers up to hundreds
DIFFERENCE = 1e-5  # of central differences of numbers up to hundreds
ORACLE = 1e-12  # relative: sums over up to sixty bodies, and poses made orthonormal
ALL_VARIABLES = [
    (name, link, form)
    for name, robot in ROBOTS.items()
    for link, form in product(robot.link_names, FORMS)
]


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


@pytest.fixture(params=ROBOTS)
def state(request, rng):
    return random_state(ROBOTS[request.param], rng)


@pytest.fixture
def root(state):
    return state.equations('', LEFT)


# Against Pinocchio


def test_accelerations_of_frames_are_pinocchio_s(state, root, rng):
    a = rng.normal(0.0, 3.0, state.root_velocity.size)
    model, frame = state.model.model, state.model.robot.link_names[-1]
    data, q = model.createData(), np.concatenate(
        [pin.SE3ToXYZQUAT(pin.SE3(state.pose())), state.positions]
    )  # fmt: skip
    pin.forwardKinematics(model, data, q, state.root_velocity, a)
    joint, J_H_F = state.model.locate(frame)
    for equations, (form, function, reference) in product(
        variables_of(state),
        [
            (LEFT, pin.getFrameAcceleration, pin.LOCAL),
            (RIGHT, pin.getFrameAcceleration, pin.WORLD),
            (MIXED, pin.getFrameClassicalAcceleration, pin.LOCAL_WORLD_ALIGNED),
            (SENSOR, pin.getFrameClassicalAcceleration, pin.LOCAL),
        ],
    ):
        given = equations.acceleration_from(root, a)
        got = state.acceleration(frame, equations, given, form)
        assert_near(got, function(model, data, joint, pin.SE3(J_H_F), reference).vector)


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


@pytest.mark.parametrize(('name', 'link', 'form'), ALL_VARIABLES)
def test_states_by_any_base_have_skew_coriolis_matrices(name, link, form, rng):
    """The mass rate less twice the Coriolis matrix [T Proposition 3.4, Theorem 3.3]."""
    model, n = FreeFloatingModel(ROBOTS[name]), len(ROBOTS[name].joint_names)
    s, s_rate, H, v = *rng.normal(size=(2, n)), random_pose(rng), rng.normal(size=6)
    state = model.state(s, s_rate, H, v, base=link, representation=form)
    assert_near(state.pose(link), H)
    equations = state.equations(link, form)
    assert_near(state.velocity(link, form), v)
    assert_near(equations.velocity, np.concatenate([v, s_rate]))
    mass_rate = rate(lambda s: s.equations(link, form).mass_matrix, state)
    N = mass_rate - 2 * equations.coriolis_matrix
    assert_near(N + N.T, np.zeros_like(N), DIFFERENCE)


def test_motion_power_and_energy_do_not_depend_on_the_variables(state, root, rng):
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


def test_average_equations_fall_into_blocks(state, root):
    """T 3.86, 3.96-3.98."""
    equations, whole = average_equations(state), centroidal(state)
    average = equations.velocity[:6]
    assert_near(whole.inertia @ average, whole.momentum)
    assert_near(equations.momentum, whole.momentum)
    M, C, n = equations.mass_matrix, equations.coriolis_matrix, len(root.velocity)
    F, H = root.mass_matrix[:6, 6:], root.mass_matrix[6:, 6:]
    H_G = H - F.T @ np.linalg.solve(root.mass_matrix[:6, :6], F)
    assert_near(M, block_diag(whole.mass * np.eye(3), whole.inertia[3:, 3:], H_G))
    assert_near(C[:3], np.zeros((3, n)))
    assert_near(C[:, :3], np.zeros((n, 3)))
    weight = whole.mass * state.model.robot.gravity
    assert_near(equations.gravity_forces, np.append(-weight, np.zeros(n - 3)))


# Mistakes and degenerate robots


@pytest.mark.parametrize('wrong', [2.0 * np.eye(4), np.diag([1, 1, -1, 1]), np.zeros((4, 4))])
def test_pose_without_a_rotation_is_refused(wrong):
    with pytest.raises(ModelError):
        FreeFloatingModel(ROBOTS['one_link']).state([], [], wrong)


def test_robots_without_mass_or_moment_have_no_average_velocity(rng):
    robot = ROBOTS['one_link']
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
