# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What sensors should read, against iDynTree, Pinocchio, the physics engine and finite differences.

Not covered: noise, offsets and calibration, which are no part of the models.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from consistent_readings import ConsistentReadings, Motion, random_motion
from floating_states import after, random_pose, random_state
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf
from scipy.spatial.transform import Rotation

from inertial_estimation.errors import FrameNotFound, ShapeError
from inertial_estimation.model.free_floating import FreeFloating
from inertial_estimation.model.representations import Representation
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import SensorModels
from inertial_estimation.model.sensors import Imu, LinkSensor

ROUND_OFF = 1e-10
"""Of some hundred N, Nm and m/s^2, through up to 57 joints; a forgotten term would show."""
TRUTH = 1e-9
"""N, Nm, m/s^2, rad/s: the physics engine leaves 1e-12 of 400 N open."""
STEP = 1e-4
"""Of central second differences [s]; their error is 1e-8 of a fourth derivative, and 1e-7."""
DIFFERENCES = 1e-4
"""m/s^2 of some hundred: of the second differences."""
WRENCH = np.array([30.0, -20.0, 10.0, 2.0, -1.0, 3.0])


def fixed_state(robot: Robot, motion: Motion) -> SensorModels:
    """Return the sensors of a robot whose fixed frame stands still."""
    base = robot.fixed_frame
    state = FreeFloating(robot).state(motion.positions, motion.velocities, base=base)
    equations = state.equations(base, Representation.MIXED)
    return SensorModels(state, equations, np.concatenate([np.zeros(6), motion.accelerations]))


def assert_same_readings(ours, theirs, tolerance=ROUND_OFF):
    for field in ('angular_velocities', 'proper_accelerations', 'angular_accelerations'):
        np.testing.assert_allclose(
            getattr(ours, field), getattr(theirs, field), rtol=0, atol=tolerance, err_msg=field
        )
    np.testing.assert_allclose(ours.ft_readings, theirs.ft_readings, rtol=0, atol=tolerance)


def test_a_floating_robot_against_pinocchio(rng):
    """IMUs on several links, FT sensors of both directions and kinds of frame."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'hand', 'sole'])
    motion = random_motion(robot, rng)
    wrenches = {'hand': WRENCH, 'sole': -2 * WRENCH}
    theirs, _, _ = ConsistentReadings(robot).sample(motion, wrenches)
    v = np.concatenate([np.zeros(3), motion.rate])
    state = FreeFloating(robot).state(
        motion.positions, motion.velocities, None, v, representation=Representation.LEFT
    )
    models = SensorModels.floating(state, motion.accelerations, wrenches)
    assert_same_readings(models.sample(), theirs)
    np.testing.assert_allclose(models.reaction, 0, rtol=0, atol=ROUND_OFF)
    assert {sensor.direction for sensor in robot.ft_sensors} == {1, -1}


@pytest.mark.parametrize('held', ['base', 'tool'])
def test_a_fixed_robot_needs_no_reaction(held, rng):
    """Held on either side of the FT sensor; one joint is continuous."""
    robot = Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link=held, imus=['slider'])
    motion = random_motion(robot, rng)
    models = fixed_state(robot, motion)
    readings = models.sample()
    whole = SensorModels(
        models.state,
        models.state.equations(held, Representation.MIXED),
        np.concatenate([np.zeros(6), motion.accelerations]),
        {held: models.reaction},
    )
    np.testing.assert_allclose(whole.reaction, 0, rtol=0, atol=ROUND_OFF)
    assert_same_readings(whole.sample(), readings)
    assert np.linalg.norm(models.reaction[:3]) > 50.0
    if held == 'base':
        theirs, _, reaction = ConsistentReadings(robot).sample(motion, {})
        assert_same_readings(readings, theirs)
        np.testing.assert_allclose(models.reaction, reaction, rtol=0, atol=ROUND_OFF)


def test_readings_do_not_depend_on_the_inertial_frame_or_the_variables(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head', 'foot'])
    state = random_state(robot, rng)
    n = len(robot.joint_names)
    first = SensorModels.floating(state, rng.normal(0, 8, n), {'hand': WRENCH})
    mixed = state.equations('foot', Representation.MIXED)
    acceleration = mixed.acceleration_from(first.variables, first.acceleration)
    again = SensorModels(state, mixed, acceleration, {'hand': WRENCH})
    assert_same_readings(again.sample(), first.sample())


def test_the_lever_arm_of_an_accelerometer(rng):
    """What an accelerometer reads is how its origin moves, by second differences."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), gravity=(1.0, -2.0, -9.0), imus=['head'])
    state = random_state(robot, rng)
    equations = state.equations('', Representation.LEFT)
    acceleration = rng.normal(0, 5, equations.velocity.size)
    head = robot.link_names.index('head')
    sensor = LinkSensor('board', head, random_pose(rng))

    def origin(time):
        moved = after(state, time, acceleration)
        return (moved.pose('head') @ sensor.L_H_S)[:3, 3]

    rate = (origin(STEP) - 2 * origin(0.0) + origin(-STEP)) / STEP**2
    A_R_S = (state.pose('head') @ sensor.L_H_S)[:3, :3]
    models = SensorModels(state, equations, acceleration)
    expected = A_R_S.T @ (rate - robot.gravity)
    np.testing.assert_allclose(models.accelerometer(sensor), expected, rtol=0, atol=DIFFERENCES)
    at_link = models.accelerometer(LinkSensor('link', head, np.eye(4)))
    assert abs(np.linalg.norm(at_link) - np.linalg.norm(expected)) > 1.0


def test_magnetometer_and_orientation(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf())
    state = random_state(robot, rng)
    equations = state.equations('', Representation.LEFT)
    models = SensorModels(state, equations, np.zeros_like(equations.velocity))
    A_field = np.array([20.0, 1.0, -44.0])
    L_H_S = random_pose(rng)
    imu = Imu('board', 'board', robot.link_names.index('hand'), L_H_S)
    A_R_S = state.pose('hand')[:3, :3] @ L_H_S[:3, :3]
    np.testing.assert_allclose(A_R_S @ models.magnetometer(imu, A_field), A_field, atol=ROUND_OFF)
    ref_R_A = Rotation.random(random_state=3).as_matrix()
    reported = models.orientation(imu, ref_R_A)
    np.testing.assert_allclose(reported @ A_R_S.T, ref_R_A, rtol=0, atol=ROUND_OFF)


def test_the_rate_of_an_orientation_is_what_the_gyroscope_reads(rng):
    """And so it is whatever frame the IMU has chosen for itself."""
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['hand'])
    state, (imu,) = random_state(robot, rng), robot.imus
    equations = state.equations('', Representation.LEFT)
    zero = np.zeros_like(equations.velocity)
    ref_R_A = Rotation.random(random_state=4).as_matrix()
    before, then = (
        SensorModels(moved, moved.equations('', Representation.LEFT), zero).orientation(
            imu, ref_R_A
        )
        for moved in (after(state, -STEP), after(state, STEP))
    )
    turned = Rotation.from_matrix(before.T @ then).as_rotvec() / (2 * STEP)
    rate = SensorModels(state, equations, zero).gyroscope(imu)
    np.testing.assert_allclose(turned, rate, rtol=0, atol=DIFFERENCES)


@pytest.mark.parametrize('name', ['pole', 'standing'])
def test_the_sensors_of_the_physics_engine(name):
    """All IMUs and FT sensors from the joints, one IMU and the external wrenches."""
    pytest.importorskip('mujoco', reason='the embedded robot runs in mujoco')
    pytest.importorskip('icub_models', reason='the embedded robot is the iCub of icub-models')
    from inertial_estimation.simulation.robot import IMUS, SimulatedRobot
    from inertial_estimation.simulation.scenario import SCENES

    simulated = SimulatedRobot(SCENES[name](3.0, 1))
    robot = Robot.from_urdf(simulated.urdf, ft_sensors=simulated.ft_names, imus=list(IMUS))
    order = [simulated.joint_names.index(joint) for joint in robot.joint_names]
    model, root = FreeFloating(robot), list(IMUS).index('root_link')
    snapshots = [simulated.step() for _ in range(1200)][499::100]
    assert np.abs([snapshot.ft_wrenches for snapshot in snapshots]).max() > 20.0
    for snapshot in snapshots:
        v = np.concatenate([np.zeros(3), snapshot.angular_velocities[root]])
        state = model.state(
            snapshot.positions[order],
            snapshot.velocities[order],
            snapshot.W_H_B,
            v,
            representation=Representation.LEFT,
        )
        wrenches = dict(zip(simulated.contact_frames, snapshot.external_wrenches))
        models = SensorModels.floating(state, snapshot.accelerations[order], wrenches)
        truth = snapshot.sample()._replace(ft_readings=snapshot.ft_wrenches)
        assert_same_readings(models.sample(), truth, TRUTH)


class IDynTreeSensors:
    """What iDynTree says that the sensors of a URDF read."""

    def __init__(self, robot: Robot) -> None:
        self.library = pytest.importorskip('idyntree.bindings', reason='iDynTree is the oracle')
        loader = self.library.ModelLoader()
        assert loader.loadModelFromString(robot.urdf)
        self.loader, self.model = loader, loader.model()
        joints = [self.model.getJoint(self.model.getJointIndex(n)) for n in robot.joint_names]
        self.columns = [joint.getDOFsOffset() for joint in joints]
        self.gravity = robot.gravity

    def readings(self, state, acceleration, kind):
        """Return what all sensors of a kind read, by name."""
        library, model = self.library, self.model
        pos = library.FreeFloatingPos(model)
        vel, acc = library.FreeFloatingVel(model), library.FreeFloatingAcc(model)
        H = state.pose()
        rotation = library.Rotation.FromPython(H[:3, :3].copy())
        pos.worldBasePos = library.Transform(
            rotation, library.Position.FromPython(H[:3, 3].copy())
        )
        for k, column in enumerate(self.columns):
            pos.jointPos.setVal(column, state.positions[k])
            vel.jointVel.setVal(column, state.root_velocity[6 + k])
            acc.jointAcc.setVal(column, acceleration[6 + k])
        vel.baseVel = library.Twist.FromPython(state.root_velocity[:6].copy())
        acc.baseAcc = library.SpatialAcc.FromPython(acceleration[:6].copy())
        traversal = library.Traversal()
        assert model.computeFullTreeTraversal(traversal, model.getDefaultBaseLink())
        found = library.SensorsMeasurements(model.sensors())
        workspace = (
            library.FreeFloatingAcc(model),
            library.LinkPositions(model),
            library.LinkVelArray(model),
            library.LinkAccArray(model),
            library.LinkWrenches(model),
            library.FreeFloatingGeneralizedTorques(model),
        )
        B_gravity = library.Vector3.FromPython(self.gravity @ H[:3, :3])
        pushes = library.LinkWrenches(model)
        pushes.zero()
        assert library.predictSensorsMeasurements(
            model, traversal, pos, vel, acc, B_gravity, pushes, *workspace, found
        )
        read = {}
        for k in range(model.sensors().getNrOfSensors(kind)):
            value = library.Vector3()
            assert found.getMeasurement(kind, k, value)
            read[model.sensors().getSensor(kind, k).getName()] = value.toNumPy().copy()
        return read


def test_all_inertial_sensors_of_a_humanoid_against_idyntree(shared_models: Path, rng):
    robot = Robot.from_urdf(shared_models / 'icub_sensorised.urdf')
    oracle = IDynTreeSensors(robot)
    state = random_state(robot, rng)
    equations = state.equations('', Representation.LEFT)
    acceleration = rng.normal(0, 8, equations.velocity.size)
    models = SensorModels(state, equations, acceleration)
    library = oracle.library
    for kind, sensors, ours in (
        (library.ACCELEROMETER, robot.accelerometers, models.accelerometer),
        (library.GYROSCOPE, robot.gyroscopes, models.gyroscope),
    ):
        theirs = oracle.readings(state, acceleration, kind)
        assert len(sensors) > 10
        for sensor in sensors:
            np.testing.assert_allclose(
                ours(sensor), theirs[sensor.name], rtol=0, atol=ROUND_OFF, err_msg=sensor.name
            )


@pytest.mark.parametrize(
    ('name', 'frame'), [('icub_v2_5', 'l_foot'), ('ergocub_sn001', 'l_foot_front')]
)
def test_ft_sensors_of_humanoids_against_idyntree(shared_models: Path, name, frame, rng):
    """One wrench somewhere on a floating robot; iDynTree knows it from the motion alone."""
    from oracle_idyntree import IDynTreeOracle, iDynTree

    robot = Robot.from_urdf(shared_models / f'{name}.urdf', imus=['head'])
    oracle = IDynTreeOracle(robot)
    state = random_state(robot, rng)
    models = SensorModels.floating(
        state, rng.normal(0, 8, len(robot.joint_names)), {frame: WRENCH}
    )
    sample = models.sample()
    oracle._update_kinematics(sample)
    model = oracle.model
    unknowns = iDynTree.LinkUnknownWrenchContacts(model)
    number = model.getFrameIndex(frame)
    contact = iDynTree.UnknownWrenchContact(iDynTree.FULL_WRENCH, iDynTree.Position.Zero())
    unknowns.addNewContactForLink(model.getFrameLink(number), contact)
    found = iDynTree.SensorsMeasurements(oracle.estimator.sensors())
    wrenches = iDynTree.LinkContactWrenches(model)
    torques = iDynTree.JointDOFsDoubleArray(model)
    assert oracle.estimator.computeExpectedFTSensorsMeasurements(
        unknowns, found, wrenches, torques
    )
    for k, row in enumerate(oracle._ft_rows):
        reading = iDynTree.Wrench()
        assert found.getMeasurement(oracle._ft_type, k, reading)
        np.testing.assert_allclose(
            sample.ft_readings[row], reading.toNumPy(), rtol=0, atol=ROUND_OFF
        )
    assert np.abs(sample.ft_readings).max() > 10.0


def test_what_does_not_fit_is_refused(rng):
    robot = Robot.from_urdf(nested_humanoid_urdf())
    state = random_state(robot, rng)
    n = len(robot.joint_names)
    with pytest.raises(ShapeError, match='joint_accelerations'):
        SensorModels.floating(state, np.zeros(n + 1))
    with pytest.raises(ShapeError):
        SensorModels.floating(state, np.zeros(n), {'hand': WRENCH[:3]})
    equations = state.equations('', Representation.LEFT)
    with pytest.raises(ShapeError, match='acceleration'):
        SensorModels(state, equations, np.zeros(n))
    with pytest.raises(FrameNotFound, match='wing'):
        SensorModels(state, equations, np.zeros(n + 6), {'wing': WRENCH})
