# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Free-floating dynamics about every base in every form [T chapter 3].

About the root they are held against Pinocchio's recursions, about other bases against identities
of the thesis and central differences. Not covered: iDynTree as an oracle
(test_modelling_against_idyntree.py), the centre of mass (test_momentum.py).
"""

from itertools import product

import numpy as np
import pinocchio as pin
import pytest
from floating_states import (
    FORMS,
    ROBOTS,
    after,
    printed_coriolis,
    random_pose,
    random_state,
    rate,
)

from inertial_estimation.errors import FrameNotFound, ModelError, ShapeError
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.momentum import average_equations, com_equations
from inertial_estimation.model.representations import (
    Representation,
    convert_acceleration,
    proper_acceleration,
)
from inertial_estimation.model.rigid_body import spatial_inertia
from inertial_estimation.model.robot import Robot

LEFT, RIGHT, MIXED, SENSOR = Representation
ROUND_OFF = 1e-11  # of sums over some ten bodies of products of numbers up to hundreds
LAST_DIGITS = 1e-14  # two bodies of some kg, no differences of large numbers
DIFFERENCE = 1e-6  # of central differences of numbers up to hundreds
ALL_VARIABLES = [
    (name, link, form)
    for name, robot in ROBOTS.items()
    for link, form in product(robot.link_names, FORMS)
]


def assert_near(got, expected, atol=ROUND_OFF):
    np.testing.assert_allclose(got, expected, rtol=0, atol=atol)


def pinocchio_q(state):
    return np.concatenate([pin.SE3ToXYZQUAT(pin.SE3(state.pose())), state.positions])


def variables_of(state):
    """Return the equations in a few very different variables."""
    links = state.model.robot.link_names
    return [
        *(state.equations(links[-1], form) for form in FORMS),
        state.equations('', LEFT),
        average_equations(state),
        com_equations(state, links[-1]),
    ]


@pytest.fixture(params=ROBOTS)
def state(request, rng):
    return random_state(ROBOTS[request.param], rng)


# About the root, against Pinocchio


def test_about_the_root_all_terms_are_pinocchio_s(state):
    model, q, v = state.model.model, pinocchio_q(state), state.root_velocity
    equations = state.equations('', LEFT)
    data = model.createData()
    assert_near(equations.mass_matrix, pin.crba(model, data, q))
    assert_near(equations.coriolis_matrix, pin.computeCoriolisMatrix(model, data, q, v))
    model.gravity = pin.Motion(np.concatenate([state.model.robot.gravity, np.zeros(3)]))
    data = model.createData()
    acceleration = np.cos(np.arange(v.size))
    assert_near(
        equations.inverse_dynamics(acceleration), pin.rnea(model, data, q, v, acceleration)
    )
    assert_near(equations.gravity_forces, pin.computeGeneralizedGravity(model, data, q))
    assert_near(equations.kinetic_energy, pin.computeKineticEnergy(model, data, q, v))


def test_what_lies_beyond_ft_sensors_is_rigid_and_counts(nested_humanoid, rng):
    # A model in which Pinocchio lumps the fixed joints itself.
    state = random_state(nested_humanoid, rng)
    model = pin.buildModelFromXML(nested_humanoid.urdf, pin.JointModelFreeFlyer())
    mass_matrix = pin.crba(model, model.createData(), pinocchio_q(state))
    assert tuple(model.names[2:]) == nested_humanoid.joint_names
    assert_near(state.equations('', LEFT).mass_matrix, mass_matrix)


def test_the_printed_coriolis_matrix_gives_the_same_forces(state):
    # T 3.58b; it differs in what multiplies to zero.
    C = printed_coriolis(state)
    equations = state.equations('', LEFT)
    assert_near(C @ equations.velocity, equations.coriolis_matrix @ equations.velocity)
    assert_near(C + C.T, equations.coriolis_matrix + equations.coriolis_matrix.T)
    assert np.abs(C - equations.coriolis_matrix).max() > 1e-3


# In all variables


@pytest.mark.parametrize(('name', 'link', 'form'), ALL_VARIABLES)
def test_twice_the_coriolis_matrix_differs_from_the_mass_rate_by_a_skew_matrix(
    name, link, form, rng
):
    # T Proposition 3.4 and Theorem 3.3
    state = random_state(ROBOTS[name], rng)
    mass_rate = rate(lambda s: s.equations(link, form).mass_matrix, state)
    N = mass_rate - 2 * state.equations(link, form).coriolis_matrix
    assert_near(N + N.T, np.zeros_like(N), DIFFERENCE * 10)


def test_left_trivialised_the_mass_matrix_depends_on_the_shape_alone(nested_humanoid, rng):
    # T Remark 3.9
    state = random_state(nested_humanoid, rng)
    elsewhere = state.model.state(state.positions, rng.normal(size=6), random_pose(rng))
    got = elsewhere.equations('hand', LEFT).mass_matrix
    assert_near(got, state.equations('hand', LEFT).mass_matrix)


@pytest.mark.parametrize(('name', 'link', 'form'), ALL_VARIABLES)
def test_the_base_velocity_is_the_rate_of_its_pose(name, link, form, rng):
    state = random_state(ROBOTS[name], rng)
    H, H_rate = state.pose(link), rate(lambda s: s.pose(link), state)
    R, o = H[:3, :3], H[:3, 3]
    v = state.equations(link, form).velocity[:6]
    turn = np.cross(np.eye(3), v[3:])
    assert_near(R @ turn if form is LEFT else turn @ R, H_rate[:3, :3], DIFFERENCE)
    linear = {LEFT: R @ v[:3], RIGHT: v[:3] + np.cross(v[3:], o), MIXED: v[:3]}[form]
    assert_near(linear, H_rate[:3, 3], DIFFERENCE)
    assert_near(state.velocity(link, form), v)


def test_accelerations_are_the_rates_of_velocities(state, rng):
    root_acceleration = rng.normal(0.0, 3.0, state.root_velocity.size)
    root = state.equations('', LEFT)
    for k, equations in enumerate(variables_of(state)):
        got = equations.acceleration_from(root, root_acceleration)
        expected = rate(lambda s, k=k: variables_of(s)[k].velocity, state, root_acceleration)
        assert_near(got, expected, DIFFERENCE)
        assert_near(root.acceleration_from(equations, got), root_acceleration)


def test_accelerations_of_frames_are_pinocchio_s(state, rng):
    a = rng.normal(0.0, 3.0, state.root_velocity.size)
    model, frame = state.model.model, state.model.robot.link_names[-1]
    data = model.createData()
    pin.forwardKinematics(model, data, pinocchio_q(state), state.root_velocity, a)
    joint, J_H_F = state.model.locate(frame)
    args = (model, data, joint, pin.SE3(J_H_F))
    root = state.equations('', LEFT)
    for equations, (form, spatial, reference) in product(
        variables_of(state),
        [
            (LEFT, True, pin.LOCAL),
            (RIGHT, True, pin.WORLD),
            (MIXED, False, pin.LOCAL_WORLD_ALIGNED),
            (SENSOR, False, pin.LOCAL),
        ],
    ):
        function = pin.getFrameAcceleration if spatial else pin.getFrameClassicalAcceleration
        given = equations.acceleration_from(root, a)
        got = state.acceleration(frame, equations, given, form)
        assert_near(got, function(*args, reference).vector, ROUND_OFF * 10)


def test_rates_of_the_maps_between_velocities(state):
    for k, equations in enumerate(variables_of(state)):
        T_rate = rate(lambda s, k=k: variables_of(s)[k].T, state)
        assert_near(equations.T_rate, T_rate, DIFFERENCE)


@pytest.mark.parametrize('name', ROBOTS)
def test_joint_torques_do_not_depend_on_the_base(name, rng):
    assert_same_torques_about_every_link(random_state(ROBOTS[name], rng), rng)


def test_nor_do_those_of_a_humanoid(shared_models, rng):
    robot = Robot.from_urdf(shared_models / 'icub_v2_5.urdf')
    assert_same_torques_about_every_link(random_state(robot, rng), rng)


def assert_same_torques_about_every_link(state, rng):
    """Compare the torques of a motion without external wrenches [T Remark 3.13]."""
    root = state.equations('', LEFT)
    a = rng.normal(0.0, 5.0, root.velocity.size)
    a[:6] -= np.linalg.solve(root.mass_matrix[:6, :6], root.inverse_dynamics(a)[:6])
    forces = root.inverse_dynamics(a)
    assert_near(forces[:6], np.zeros(6))
    for link, form in product(state.model.robot.link_names, FORMS):
        equations = state.equations(link, form)
        got = equations.inverse_dynamics(equations.acceleration_from(root, a))
        assert_near(got, forces, ROUND_OFF * 10)


def test_a_base_wrench_reaches_the_joints_on_the_way_to_another_base(nested_humanoid, rng):
    # T Remark 3.14
    state = random_state(nested_humanoid, rng)
    source, target = state.equations('head', LEFT), state.equations('foot', LEFT)
    forces = np.zeros(source.velocity.size)
    forces[:6] = f = rng.normal(size=6)
    got = target.forces_from(source, forces)
    # Seen from the foot the wrench is one on the head, whose Jacobian holds the joints between.
    assert_near(got, state.jacobian('head', target, LEFT).T @ f)
    names = nested_humanoid.joint_names
    moved = {name for name, torque in zip(names, got[6:]) if abs(torque) > ROUND_OFF}
    assert moved == {'neck', 'waist', 'hip_joint', 'knee'}


def test_motion_power_and_energy_do_not_depend_on_the_variables(state, rng):
    root = state.equations('', LEFT)
    a = rng.normal(0.0, 3.0, root.velocity.size)
    forces = root.inverse_dynamics(a)
    for equations in variables_of(state):
        got = equations.inverse_dynamics(equations.acceleration_from(root, a))
        assert_near(got, equations.forces_from(root, forces), ROUND_OFF * 10)
        assert_near(got @ equations.velocity, forces @ root.velocity, ROUND_OFF * 10)
        assert_near(equations.kinetic_energy, root.kinetic_energy)
        assert_near(equations.velocity_map(root) @ root.velocity, equations.velocity)


def test_kinetic_energy_grows_by_the_power_of_all_forces(state, rng):
    root = state.equations('', LEFT)
    a = rng.normal(0.0, 3.0, root.velocity.size)
    power = (root.inverse_dynamics(a) - root.gravity_forces) @ root.velocity
    got = rate(lambda s: s.equations('', LEFT).kinetic_energy, state, a)
    assert_near(got, power, DIFFERENCE * 10)


def test_contact_wrenches_enter_by_the_transposed_jacobian(nested_humanoid, rng):
    state = random_state(nested_humanoid, rng)
    model, data = state.model.model, state.model.model.createData()
    f, zero = rng.normal(size=6), np.zeros(state.root_velocity.size)
    joint, J_H_F = state.model.locate('sole')
    outside = [pin.Force.Zero() for _ in range(model.njoints)]
    outside[joint] = pin.SE3(J_H_F).act(pin.Force(f))
    q = pinocchio_q(state)
    expected = pin.rnea(model, data, q, zero, zero) - pin.rnea(model, data, q, zero, zero, outside)
    assert_near(state.jacobian('sole', state.equations('', LEFT), LEFT).T @ f, expected)


def test_jacobians_map_every_velocity_to_that_of_the_frame(state):
    frame = state.model.robot.link_names[-1]
    for equations, form in product(variables_of(state), Representation):
        got = state.jacobian(frame, equations, form) @ equations.velocity
        assert_near(got, state.velocity(frame, form))


# States


@pytest.mark.parametrize(('name', 'link', 'form'), ALL_VARIABLES)
def test_a_state_is_given_by_any_base(name, link, form, rng):
    model = FreeFloating(ROBOTS[name])
    s, s_rate = rng.normal(size=(2, len(ROBOTS[name].joint_names)))
    H, v = random_pose(rng), rng.normal(size=6)
    state = model.state(s, s_rate, H, v, base=link, representation=form)
    assert_near(state.pose(link), H)
    assert_near(state.velocity(link, form), v)
    assert_near(state.equations(link, form).velocity, np.concatenate([v, s_rate]))
    again = model.state(s, s_rate, state.pose(), state.velocity())
    assert_near(again.root_velocity, state.root_velocity)


def test_without_a_base_pose_the_root_rests_at_the_origin(arm_with_wrist_sensor):
    state = FreeFloating(arm_with_wrist_sensor).state(np.zeros(3), np.zeros(3))
    np.testing.assert_array_equal(state.pose(), np.eye(4))
    np.testing.assert_array_equal(state.equations().velocity, np.zeros(9))


def test_a_fixed_frame_need_not_be_a_link(nested_humanoid, rng):
    state = random_state(nested_humanoid, rng)
    leg = next(s for s in nested_humanoid.ft_sensors if s.name == 'leg_sensor')
    assert_near(state.pose('sole_joint'), state.pose('sole'))
    assert_near(state.pose(leg.joint), state.pose(nested_humanoid.link_names[leg.child]))


def test_what_imus_and_joints_measure_is_enough(state, rng):
    # T Remark 3.12
    n = len(state.positions)
    a = rng.normal(0.0, 3.0, 6 + n)
    base = state.model.robot.link_names[-1]
    equations = state.equations(base, LEFT)
    H, v = state.pose(base), equations.velocity
    alpha = convert_acceleration(a[:6], v[:6], H, LEFT, SENSOR)
    proper = proper_acceleration(alpha, H, state.model.robot.gravity, SENSOR)
    got = state.model.proper_dynamics(state.positions, v[6:], a[6:], v[3:6], proper, base=base)
    assert_near(got, equations.inverse_dynamics(a), ROUND_OFF * 10)


# Mistakes and degenerate robots


def test_bad_input_is_told(two_link):
    model = FreeFloating(two_link)
    one = np.zeros(1)
    with pytest.raises(ShapeError, match='positions'):
        model.state(np.zeros(2), one)
    with pytest.raises(ShapeError, match='velocities'):
        model.state(one, np.zeros((1, 1)))
    with pytest.raises(ShapeError, match='base_velocity'):
        model.state(one, one, np.eye(4), np.zeros(3))
    with pytest.raises(ShapeError, match='A_H_B'):
        model.state(one, one, np.eye(3))
    with pytest.raises(FrameNotFound, match='elbw'):
        model.state(one, one, base='elbw')
    with pytest.raises(ShapeError, match='proper_acceleration'):
        model.proper_dynamics(one, one, one, np.zeros(3), np.zeros(3))
    with pytest.raises(ModelError, match='proper_dynamics'):
        model.state(one, one).equations('', SENSOR)
    with pytest.raises(ShapeError, match='J_rate'):
        model.state(one, one).equations().change_base_rows(np.eye(6, 7), np.eye(6))


@pytest.mark.parametrize(
    'pose',
    [np.diag([1.0, 1.0, -1.0, 1.0]), 2 * np.eye(4), np.full((4, 4), np.nan), np.eye(4)[::-1]],
)
def test_poses_that_are_none_are_refused(pose, two_link):
    with pytest.raises(ModelError, match='pose'):
        FreeFloating(two_link).state(np.zeros(1), np.zeros(1), pose)


def test_poses_with_six_digits_are_taken(two_link, rng):
    H = random_pose(rng)
    state = FreeFloating(two_link).state(np.zeros(1), np.zeros(1), np.round(H, 6))
    R = state.pose()[:3, :3]
    assert_near(R.T @ R, np.eye(3))
    assert_near(state.pose(), H, 1e-6)


@pytest.mark.parametrize('sign', [0.0, -10.0, 1.0])
def test_the_dynamics_are_linear_in_parameters_of_any_kind(sign, nested_humanoid, rng):
    # Least squares may well give masses that no body has; Pinocchio's rnea can do with them.
    parameters = rng.normal(size=nested_humanoid.parameters.shape)
    parameters[:, 0] = np.abs(parameters[:, 0]) + 0.1
    parameters[4:] *= sign
    state = random_state(nested_humanoid.with_parameters(parameters), rng)
    equations = state.equations('', LEFT)
    model, v = state.model.model, state.root_velocity
    a = rng.normal(size=v.size)
    expected = pin.rnea(model, model.createData(), pinocchio_q(state), v, a)
    got = equations.inverse_dynamics(a) - equations.gravity_forces
    assert_near(got, expected, ROUND_OFF * 10)


@pytest.mark.parametrize('mass', [0.0, 1e-9, -1e-12])
def test_a_first_moment_without_mass_is_told(mass, two_link):
    parameters = two_link.parameters.copy()
    parameters[1, 0] = mass
    with pytest.raises(ModelError):
        FreeFloating(two_link.with_parameters(parameters))


@pytest.mark.parametrize('mass', [1e-3, 1e-6, -1e-6])
def test_small_masses_with_large_first_moments_cost_no_digits(mass, two_link, rng):
    parameters = two_link.parameters.copy()
    parameters[1] = mass, 0.1, -0.2, 0.3, *parameters[1, 4:]
    state = random_state(two_link.with_parameters(parameters), rng)
    of_arm = spatial_inertia(parameters[1])
    J = state.jacobian('arm', state.equations('', LEFT), LEFT)
    of_body = np.zeros((7, 7))
    of_body[:6, :6] = spatial_inertia(parameters[0])
    got = state.equations('', LEFT).mass_matrix
    np.testing.assert_allclose(got, of_body + J.T @ of_arm @ J, rtol=0, atol=LAST_DIGITS)


def test_a_robot_of_one_link_is_a_rigid_body(rng):
    state = random_state(ROBOTS['one_link'], rng)
    equations = state.equations('only', MIXED)
    assert equations.velocity.shape == (6,)
    np.testing.assert_allclose(equations.mass_matrix[0, 0], 2.0, rtol=1e-14)


def test_a_chain_of_massless_links_moves_without_force(two_link, rng):
    state = random_state(two_link.with_parameters(np.zeros((2, 10))), rng)
    equations = state.equations('arm', MIXED)
    np.testing.assert_array_equal(equations.inverse_dynamics(np.ones(7)), np.zeros(7))


def test_results_cannot_be_changed_by_accident(two_link, rng):
    equations = random_state(two_link, rng).equations()
    for array in (equations.mass_matrix, equations.coriolis_matrix, equations.velocity):
        with pytest.raises(ValueError, match='read-only'):
            array[0] = 1.0


def test_the_path_of_the_differences_is_the_motion(two_link, rng):
    # What the differences of this file rest on: the states move as their velocity says.
    state = random_state(two_link, rng)
    expected = pin.integrate(state.model.model, pinocchio_q(state), 0.1 * state.root_velocity)
    later = after(state, 0.1)
    assert_near(later.pose(), pin.XYZQUATToSE3(expected[:7]).homogeneous)
    assert_near(later.positions, expected[7:])
