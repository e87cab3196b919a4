# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Momentum, locked inertia and average velocity of a robot [T 2.84, 2.85 and section 3.9].

Held against Pinocchio's centroidal quantities, sums over links, differences, and a fall in which
nothing touches the robot. Not covered: momentum of one body (test_rigid_body.py), the maps
between variables (test_free_floating.py has these among its own).
"""

import numpy as np
import pinocchio as pin
import pytest
from floating_states import ROBOTS, printed_coriolis, random_state, rate
from scipy.integrate import solve_ivp
from scipy.linalg import block_diag

from inertial_estimation.errors import ModelError
from inertial_estimation.model import rigid_body
from inertial_estimation.model.free_floating import State
from inertial_estimation.model.momentum import (
    average_equations,
    centroidal,
    com_equations,
    momentum_matrix,
)
from inertial_estimation.model.representations import Representation, convert_velocity

LEFT, RIGHT, MIXED, SENSOR = Representation
ROUND_OFF = 1e-11  # of sums over some ten bodies of products of numbers up to hundreds
LAST_DIGITS = 1e-14  # of moments of 1 kg m^2, turned and moved
DIFFERENCE = 1e-6  # of central differences of numbers up to hundreds
INTEGRATION = 1e-8  # of solve_ivp at a relative tolerance of 1e-11 over half a second


def assert_near(got, expected, atol=ROUND_OFF):
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


@pytest.fixture(params=ROBOTS)
def state(request, rng):
    return random_state(ROBOTS[request.param], rng)


@pytest.fixture
def oracle(state):
    """Return Pinocchio's data for a state, in the variables of the root."""
    model = state.model.model
    data = model.createData()
    q = np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(state.pose())), state.positions])
    pin.dccrba(model, data, q, state.root_velocity)
    pin.centerOfMass(model, data, q, state.root_velocity)
    return data


def test_centroidal_quantities_are_pinocchio_s(state, oracle):
    got = centroidal(state)
    assert_near(got.mass, state.model.robot.mass)
    assert_near(got.com, oracle.com[0])
    assert_near(got.com_velocity, oracle.vcom[0])
    assert_near(got.inertia, oracle.Ig.matrix())
    assert_near(got.momentum, oracle.Ag @ state.root_velocity)
    assert_near(momentum_matrix(state, state.equations('', LEFT)), oracle.Ag)


def test_the_momentum_is_the_sum_of_those_of_the_links(state):
    # T 2.83, 3.56
    robot = state.model.robot
    poses = np.array([state.pose(name) for name in robot.link_names])
    velocities = np.array([state.velocity(name, RIGHT) for name in robot.link_names])
    links = rigid_body.momentum(robot.parameters, poses, velocities, RIGHT)
    for name in robot.link_names:
        assert_near(state.equations(name, RIGHT).momentum, links.sum(axis=0))


def test_the_locked_inertia_is_that_of_the_links_as_they_stand(state):
    # T 3.55
    robot = state.model.robot
    poses = np.array([state.pose(name) for name in robot.link_names])
    M = rigid_body.inertia_seen_from(rigid_body.spatial_inertia(robot.parameters), poses)
    got = state.equations('', RIGHT).mass_matrix[:6, :6]
    assert_near(got, M.sum(axis=0), ROUND_OFF * 10)


def test_momentum_changes_by_weight_and_external_wrenches_alone(state, rng):
    # T 2.84 about the world, 2.85 about the centre of mass.
    root, last = state.equations('', LEFT), state.model.robot.link_names[-1]
    a = rng.normal(0.0, 5.0, root.velocity.size)
    world, whole = state.equations(last, RIGHT), centroidal(state)
    external = world.forces_from(root, root.inverse_dynamics(a))[:6]
    weight = whole.mass * state.model.robot.gravity
    got = rate(lambda s: s.equations(last, RIGHT).momentum, state, a)
    moment = np.cross(whole.com, weight)
    assert_near(got, external + np.array([*weight, *moment]), DIFFERENCE)
    about_com = external - np.concatenate([np.zeros(3), np.cross(whole.com, external[:3])])
    got = rate(lambda s: centroidal(s).momentum, state, a)
    assert_near(got, about_com + np.array([*weight, 0, 0, 0]), DIFFERENCE)


def test_a_robot_that_nothing_touches_keeps_its_angular_momentum(nested_humanoid, rng):
    start = random_state(nested_humanoid, rng)
    torques = rng.normal(size=start.positions.size)
    before, end = centroidal(start), fly(start, torques, 0.5)
    now = centroidal(end)
    fall = 0.5 * nested_humanoid.gravity
    assert np.abs(end.positions - start.positions).max() > 0.3
    assert_near(now.momentum[3:], before.momentum[3:], INTEGRATION)
    assert_near(now.com_velocity, before.com_velocity + fall, INTEGRATION)
    assert_near(now.com, before.com + 0.5 * (before.com_velocity + fall / 2), INTEGRATION)


def fly(state, torques, time):
    """Return the state after a flight with constant joint torques, in coordinates of the root."""
    n = state.root_velocity.size
    forces = np.concatenate([np.zeros(6), torques])

    def at(y):
        # Pose as the exponential of six numbers from the start, which stay well below pi.
        pose = state.pose() @ pin.exp6(pin.Motion(y[:6])).homogeneous
        return State(state.model, pose, y[6:n], y[n:])

    def derivative(_, y):
        now = at(y)
        root = now.equations('', LEFT)
        rest = forces - root.inverse_dynamics(np.zeros(n))
        coordinates = np.linalg.solve(pin.Jexp6(pin.Motion(y[:6])), y[n : n + 6])
        return np.concatenate([coordinates, y[n + 6 :], np.linalg.solve(root.mass_matrix, rest)])

    y0 = np.concatenate([np.zeros(6), state.positions, state.root_velocity])
    flight = solve_ivp(derivative, (0.0, time), y0, rtol=1e-11, atol=1e-11, method='DOP853')
    assert np.linalg.norm(flight.y[3:6, -1]) < 3.0
    return at(flight.y[:, -1])


# The average velocity as base velocity


def test_the_average_velocity_is_momentum_over_inertia(state):
    # T 3.86
    whole, equations = centroidal(state), average_equations(state)
    average = equations.velocity[:6]
    assert_near(whole.inertia @ average, whole.momentum)
    assert_near(average[:3], whole.com_velocity)
    assert_near(equations.momentum, whole.momentum)


def test_with_joints_at_rest_it_is_that_of_the_body(nested_humanoid, rng):
    moving = random_state(nested_humanoid, rng)
    v = np.concatenate([moving.root_velocity[:6], np.zeros(moving.positions.size)])
    state = State(moving.model, moving.pose(), moving.positions, v)
    average = average_equations(state).velocity
    H = np.eye(4)
    H[:3, 3] = centroidal(state).com
    expected = convert_velocity(state.velocity('', RIGHT), H, RIGHT, MIXED)
    assert_near(average[:6], expected)


def test_blocking_the_joints_by_an_impulse_leaves_the_average_velocity(state):
    # T section 3.9.3: an impulse of the joints alone leaves the momentum, and they stop.
    equations = state.equations('', RIGHT)
    stopped = np.zeros(equations.velocity.size)
    M = equations.mass_matrix
    stopped[:6] = np.linalg.solve(M[:6, :6], M[:6] @ equations.velocity)
    average = average_equations(state)
    after_impulse = average.velocity_map(equations) @ stopped
    assert_near(after_impulse[:6], average.velocity[:6])


def test_the_average_equations_fall_into_blocks(state):
    # T 3.96-3.98
    equations, whole = average_equations(state), centroidal(state)
    M, C = equations.mass_matrix, equations.coriolis_matrix
    root, n = state.equations('', LEFT), M.shape[0]
    F, H = root.mass_matrix[:6, 6:], root.mass_matrix[6:, 6:]
    H_G = H - F.T @ np.linalg.solve(root.mass_matrix[:6, :6], F)
    blocks = block_diag(whole.mass * np.eye(3), whole.inertia[3:, 3:], H_G)
    assert_near(M, blocks)
    assert_near(C[:3], np.zeros((3, n)))
    assert_near(C[:, :3], np.zeros((n, 3)))
    weight = np.zeros(n)
    weight[:3] = -whole.mass * state.model.robot.gravity
    assert_near(equations.gravity_forces, weight)


def test_the_printed_coriolis_matrix_does_not_fall_into_these_blocks(state):
    # T Lemma 3.11 claims it of every matrix with the skew property; (3.58b) is one and does not.
    average = average_equations(state)
    T_inverse = np.linalg.inv(average.T)
    T_inverse_rate = -T_inverse @ average.T_rate @ T_inverse
    M, C = state.equations('', LEFT).mass_matrix, printed_coriolis(state)
    C_G = T_inverse.T @ (M @ T_inverse_rate + C @ T_inverse)
    assert_near(C_G + C_G.T, average.coriolis_matrix + average.coriolis_matrix.T, ROUND_OFF * 10)
    assert_near(C_G @ average.velocity, average.coriolis_matrix @ average.velocity, ROUND_OFF * 10)
    assert np.abs(C_G[:3]).max() > 1e-2


def test_twice_the_coriolis_matrix_differs_from_the_mass_rate_by_a_skew_matrix(state):
    for variables in (average_equations, com_equations):
        mass_rate = rate(lambda s, f=variables: f(s).mass_matrix, state)
        N = mass_rate - 2 * variables(state).coriolis_matrix
        assert_near(N + N.T, np.zeros_like(N), DIFFERENCE * 10)


def test_the_rate_of_the_momentum_matrix_is_pinocchio_s(state, oracle):
    root = state.equations('', LEFT)
    got = rate(lambda s: momentum_matrix(s, s.equations('', LEFT)), state)
    assert_near(got, oracle.dAg, DIFFERENCE)
    assert_near(momentum_matrix(state, root) @ root.velocity, centroidal(state).momentum)


def test_the_centre_of_mass_serves_as_origin_of_the_base(state):
    # T 3.89-3.91
    base = state.model.robot.link_names[-1]
    equations, whole = com_equations(state, base), centroidal(state)
    assert_near(equations.velocity[:3], whole.com_velocity)
    assert_near(equations.velocity[3:6], state.velocity(base, MIXED)[3:])
    assert_near(equations.momentum, whole.momentum)
    assert_near(rate(lambda s: centroidal(s).com, state), whole.com_velocity, DIFFERENCE)


# Degenerate robots


@pytest.mark.parametrize('mass', [0.0, -2.0])
def test_a_robot_without_mass_has_no_centre_of_mass(mass, two_link, rng):
    parameters = np.zeros((2, 10))
    parameters[0, 0] = mass
    state = random_state(two_link.with_parameters(parameters), rng)
    for function in (centroidal, average_equations, com_equations):
        with pytest.raises(ModelError):
            function(state)


@pytest.mark.parametrize(('least', 'regular'), [(1e-10, True), (-0.1, True), (1e-14, False)])
def test_the_average_angular_velocity_needs_momentum_about_every_axis(least, regular, rng):
    """A moment may be negative, as least squares give it, but not round-off."""
    robot = ROBOTS['one_link']
    parameters = np.array([[2.0, 0, 0, 0, 1.0, 0, 1.0, 0, 0, least]])
    state = random_state(robot.with_parameters(parameters), rng)
    if not regular:
        with pytest.raises(ModelError):
            average_equations(state)
        return
    expected = state.velocity(robot.link_names[0], MIXED)[3:]
    got = average_equations(state).velocity[3:6]
    assert_near(got, expected, LAST_DIGITS / abs(least))


def test_a_point_has_no_average_angular_velocity(rng):
    parameters = np.zeros((1, 10))
    c = np.array([0.1, -0.2, 0.3])
    parameters[0, :4] = 2.0, *(2.0 * c)
    moments = 2.0 * (c @ c * np.eye(3) - np.outer(c, c))
    parameters[0, 4:] = moments[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    state = random_state(ROBOTS['one_link'].with_parameters(parameters), rng)
    assert_near(centroidal(state).inertia, np.diag([2.0, 2.0, 2.0, 0.0, 0.0, 0.0]))
    with pytest.raises(ModelError):
        average_equations(state)


def test_a_massless_link_does_not_disturb(two_link, rng):
    parameters = two_link.parameters.copy()
    parameters[1] = 0.0
    state = random_state(two_link.with_parameters(parameters), rng)
    equations = average_equations(state)
    assert_near(equations.velocity[3:6], state.velocity('body', MIXED)[3:])
    assert_near(equations.mass_matrix[6, 6], 0.0)
