# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What it costs to neglect accelerations, or to take them from here or there.

A robot moves at random. Every accelerometer and gyroscope of its description reads what the motion
is there. The wrench of each submodel from all true accelerations is compared with that from what
is neglected, differentiated, or told by arrays of accelerometers [T 4.4.2-4.4.4]. FT readings add
the same to both and do not matter. Rows with noise have that of `NoiseLevels`, and derivatives by
the usual filter, without delay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.forest import build_forest
from inertial_estimation.estimation.link_motion import Motions, Walk
from inertial_estimation.estimation.sensor_arrays import Body
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.motion_sources import Source
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensor_models import accelerometer, gyroscope
from inertial_estimation.model.sensors import Imu, LinkSensorSpec
from inertial_estimation.sample import Array, SampleBatch
from inertial_estimation.signals.savitzky_golay import differentiate
from inertial_estimation.simulation.noise import NoiseLevels

RATE = 500
"""Of all sensors [Hz]."""
DURATION = 5.5
SETTLED = 0.5
"""Part of it that does not count: until the filters are filled [s]."""
EVERY = 5
"""Of the samples so many make one state."""
WINDOW, ORDER = 0.12, 3
"""The demo's filter [s]."""
FREQUENCIES = 0.5, 1.5
"""Of the motion [Hz]."""
JOINT_ACCELERATION = 8.0
"""Root mean square [rad/s^2]."""
TURNING = 4.0
"""Angular acceleration of the link with the one IMU, root mean square per axis [rad/s^2]."""
SHAKING = 1.0
"""The same of its acceleration [m/s^2]."""
IMU = 'head'
"""Link with the one IMU, where iCub carries it."""
MODEL = 'iCubGenova02'
"""The one of icub-models whose tags are those of an iCub with all its boards."""
TITLE = 'Cost of neglect: median error of the force on each submodel, and of the worst torque'
ONE, ALL = 'one IMU', 'all sensors'


@dataclass(frozen=True)
class Choice:
    """Where accelerations come from."""

    sensors: str
    """`ONE` or `ALL`."""
    spin: str
    """Angular accelerations of the IMUs: ``true``, ``filter``, ``array`` or ``zero``."""
    joints: str
    """Accelerations of the joints: ``true``, ``filter`` or ``zero``."""
    noise: bool


CHOICES = (
    Choice(ONE, 'zero', 'true', noise=False),
    Choice(ONE, 'true', 'zero', noise=False),
    Choice(ONE, 'zero', 'zero', noise=False),
    Choice(ONE, 'filter', 'filter', noise=True),
    Choice(ALL, 'zero', 'true', noise=False),
    Choice(ALL, 'true', 'zero', noise=False),
    Choice(ALL, 'zero', 'zero', noise=False),
    Choice(ALL, 'array', 'zero', noise=False),
    Choice(ALL, 'filter', 'filter', noise=True),
    Choice(ALL, 'filter', 'zero', noise=True),
    Choice(ALL, 'array', 'filter', noise=True),
    Choice(ALL, 'array', 'zero', noise=True),
)


class Cost(NamedTuple):
    """What one choice costs."""

    choice: Choice
    forces: Mapping[str, float]
    """Median error by submodel [N]."""
    torque: float
    """Median over the states of the largest error of a joint torque [Nm]."""

    @property
    def row(self) -> tuple[str, ...]:
        """The figures as a row of `columns`."""
        choice = self.choice
        noise = 'yes' if choice.noise else 'no'
        forces = (f'{force:.3g}' for force in self.forces.values())
        return choice.sensors, choice.spin, choice.joints, noise, *forces, f'{self.torque:.2g}'

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a machine."""
        choice = self.choice
        return {
            'sensors': choice.sensors,
            'angular_accelerations': choice.spin,
            'joint_accelerations': choice.joints,
            'noise': choice.noise,
            'median_force_error_n': dict(self.forces),
            'median_largest_torque_error_nm': self.torque,
        }


def columns(costs: Sequence[Cost]) -> tuple[str, ...]:
    """Return the names of the columns of `Cost.row`."""
    forces = (f'{name} [N]' for name in costs[0].forces)
    return 'IMUs', 'angular accel.', 'joint accel.', 'noise', *forces, 'worst torque [Nm]'


def urdf() -> str:
    """Return the description of an iCub with all its boards."""
    from inertial_estimation.simulation.description import icub_urdf

    return icub_urdf(MODEL)


def with_all_sensors(description: str) -> Robot:
    """Return a robot that uses each accelerometer and gyroscope of its description by itself."""
    plain, levels = Robot.from_urdf(description, imus=[]), NoiseLevels()
    kinds = (('accelerometer', plain.accelerometers), ('gyroscope', plain.gyroscopes))
    specs = [
        LinkSensorSpec(
            f'{sensor.name} ({kind})',
            plain.link_names[sensor.link],
            sensor.L_H_S,
            kind,
            levels.accelerometer,
            levels.gyroscope,
        )
        for kind, sensors in kinds
        for sensor in sensors
    ]
    return Robot.from_urdf(description, imus=specs)


def measure(
    description: str, choices: Sequence[Choice] = CHOICES, seed: int = 0, imu: str = IMU
) -> tuple[Cost, ...]:
    """Measure what choices cost."""
    recording = Recording.make(description, seed, imu)
    contacts = [Contact(submodel.name) for submodel in recording.robot(ONE).submodels]
    truth = recording.samples(Choice(ONE, 'true', 'true', noise=False))
    expected = WrenchEstimator(recording.robot(ONE), contacts).batch(truth)
    costs = []
    for choice in choices:
        estimator = WrenchEstimator(
            recording.robot(choice.sensors), contacts, acceleration_arrays=choice.spin == 'array'
        )
        found = estimator.batch(recording.samples(choice))
        errors = np.linalg.norm((found.wrenches - expected.wrenches)[..., :3], axis=-1)
        torques = np.abs(found.torques - expected.torques).max(axis=1)
        names = [contact.name for contact in contacts]
        forces = dict(zip(names, np.median(errors, axis=0).tolist(), strict=True))
        costs.append(Cost(choice, forces, float(np.median(torques))))
    return tuple(costs)


@dataclass(frozen=True, eq=False)
class Recording:
    """A motion and what all sensors read, with and without noise."""

    robots: Mapping[str, Robot]
    """With `ONE` whole IMU, and with `ALL` sensors."""
    stamps_ns: NDArray[np.int64]
    joints: Array
    """Positions, velocities, accelerations, shape (3, n, n_joints)."""
    readings: Mapping[str, Array]
    """Angular velocities, accelerations, angular accelerations, (3, n, n_imus, 3) by robot."""
    noise: Mapping[str, Array]
    """Added to the first two of them."""
    encoders: Array
    """Positions with noise, shape (n, n_joints)."""

    @classmethod
    def make(cls, description: str, seed: int, imu: str) -> Recording:
        """Let a robot move."""
        one = Robot.from_urdf(description, imus=[imu])
        levels, rng = NoiseLevels(), np.random.default_rng(seed)
        robots = {ONE: one, ALL: with_all_sensors(description)}
        times = np.arange(round(DURATION * RATE)) / RATE
        n_joints = len(one.joint_names)
        joints = _waves(times, np.full(n_joints, JOINT_ACCELERATION), rng)
        turns = _waves(times, np.full(3, TURNING), rng, order=1)
        shakes = _waves(times, np.full(3, SHAKING), rng, order=0)[0] + [0.0, 0.0, 9.81]
        base = Motions(*(x[:, None] for x in (turns[0], turns[1], shakes)))
        stamps = np.round(1e9 * (1.0 + times)).astype(np.int64)
        readings = {
            name: _readings(robot, _batch(robot, stamps, joints), base, one.imus[0].link)
            for name, robot in robots.items()
        }
        sizes = np.array([levels.gyroscope, levels.accelerometer]).reshape(2, 1, 1, 1)
        noise = {
            name: sizes * rng.standard_normal((2, *values.shape[1:]))
            for name, values in readings.items()
        }
        encoders = joints[0] + levels.encoder * rng.standard_normal(joints[0].shape)
        return cls(robots, stamps, joints, readings, noise, encoders)

    def robot(self, sensors: str) -> Robot:
        """Return the robot with some sensors."""
        return self.robots[sensors]

    def samples(self, choice: Choice) -> SampleBatch:
        """Return the states as the estimator gets them."""
        rates, shifts, spins = self.readings[choice.sensors]
        if choice.noise:
            noise = self.noise[choice.sensors]
            rates, shifts = rates + noise[0], shifts + noise[1]
        if choice.spin == 'filter':
            spins = self._slopes(rates.reshape(len(rates), -1))[0].reshape(rates.shape)
        elif choice.spin != 'true':
            spins = np.zeros_like(spins)
        joints = self.joints.copy()
        if choice.noise:
            joints[0] = self.encoders
        if choice.joints == 'filter':
            joints[1:] = self._slopes(joints[0])
        elif choice.joints == 'zero':
            joints[2] = 0.0
        batch = _batch(self.robots[choice.sensors], self.stamps_ns, joints)
        whole = replace(
            batch,
            angular_velocities=rates,
            proper_accelerations=shifts,
            angular_accelerations=spins,
        )
        return whole.take(slice(round(SETTLED * RATE), None, EVERY))

    def _slopes(self, values: Array) -> Array:
        """Return both derivatives by the usual filter."""
        return np.array(differentiate(self.stamps_ns, values, WINDOW, ORDER))


def _waves(times: Array, sizes: Array, rng: np.random.Generator, order: int = 2) -> Array:
    """Return sums of sines and their derivatives, of which the last has the given size."""
    shape = (len(sizes), 2)
    omega = 2.0 * np.pi * rng.uniform(*FREQUENCIES, shape)
    angles = omega * times[:, None, None] + rng.uniform(0.0, 2.0 * np.pi, shape)
    curves = [
        (sizes[:, None] * omega ** (k - order) * np.sin(angles + 0.5 * np.pi * k)).sum(axis=-1)
        for k in range(order + 1)
    ]
    return np.array(curves)


def _batch(robot: Robot, stamps_ns: NDArray[np.int64], joints: Array) -> SampleBatch:
    """Return samples without motion of IMUs and without load."""
    n = len(stamps_ns)
    nothing = np.zeros((n, len(robot.imus), 3))
    fts = np.zeros((n, len(robot.ft_sensors), 6))
    q, v, a = joints
    return SampleBatch(stamps_ns, q, v, a, nothing, nothing, nothing, fts)


def _readings(robot: Robot, samples: SampleBatch, base: Motions, origin: int) -> Array:
    """Return what the sensors read when one link moves as told, shape (3, n, n_imus, 3)."""
    links = [origin, *sorted({imu.link for imu in robot.imus} - {origin})]
    bodies = [Body(link, -1, np.eye(4), (), (), is_array=False) for link in links]
    motion = [base]
    if len(links) > 1:
        forest = build_forest(robot, [Source('', origin, np.eye(4))])
        walk = Walk(robot, bodies, forest, np.array([0]))
        n = len(samples), len(links) - 1, 3
        given = Motions(*(np.concatenate([x, np.zeros(n)], axis=1) for x in base))
        motion.append(walk.run(samples, given))
    turn, spin, shift = (np.concatenate(parts, axis=1) for parts in zip(*motion))
    at = {link: k for k, link in enumerate(links)}
    read = [_read(imu, *(x[:, at[imu.link]] for x in (turn, spin, shift))) for imu in robot.imus]
    return np.array(read).transpose(1, 2, 0, 3)


def _read(imu: Imu, turn: Array, spin: Array, shift: Array) -> tuple[Array, Array, Array]:
    """Return what one sensor reads on a link that moves."""
    return (
        gyroscope(turn, imu.L_H_S),
        accelerometer(turn, np.concatenate([shift, spin], axis=1), imu.L_H_S),
        gyroscope(spin, imu.L_H_S),
    )
