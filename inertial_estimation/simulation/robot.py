# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The embedded robot: the real iCub's model in a physics engine, pushed by a scenario."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.errors import ConfigError, NameNotFound
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.spatial import cross
from inertial_estimation.simulation.description import demo_package, icub_urdf
from inertial_estimation.simulation.loads import Loads
from inertial_estimation.simulation.mjcf import SOLE_HALF_SIZE, SOLES, build_model
from inertial_estimation.simulation.motion import START, Motion
from inertial_estimation.simulation.scenario import Scenario
from inertial_estimation.simulation.truth import Snapshot, TruthReader

PHYSICS_HZ = 1000
"""Steps of the physics engine per second."""
SETTLING = 2.0
"""Time in which the robot comes to rest in its posture before it moves [s]."""
_LIMB_LINKS = ('upper_arm', 'forearm', 'upper_leg', 'lower_leg', 'foot')
_IMU_LINKS = (
    *('head_imu_0', 'root_link', 'chest'),
    *(f'{side}_{link}' for link in _LIMB_LINKS for side in 'lr'),
)
IMUS: Mapping[str, str] = {link: link for link in _IMU_LINKS}
"""Default IMUs: name, and link of the URDF whose frame it measures in."""


class SimulatedRobot:
    """
    The iCub of the package icub-models in MuJoCo, with six FT sensors and any number of IMUs.

    When the scenario starts, the robot has come to rest in its posture and moves in full, unless
    the scenario states that it begins to move later.
    """

    def __init__(
        self, scenario: Scenario, imus: Mapping[str, str] = IMUS, rate_hz: int = 500
    ) -> None:
        if rate_hz < 1 or PHYSICS_HZ % rate_hz:
            raise ConfigError(f"'rate' is {rate_hz}, expected a divisor of {PHYSICS_HZ} Hz")
        robot = Robot.from_urdf(icub_urdf())
        self._engine: Any = demo_package('mujoco')
        self._model = build_model(
            robot,
            fixed=scenario.fixed,
            imus=imus,
            frames=(*scenario.contacts, *(push.frame for push in scenario.pushes)),
            timestep=1.0 / PHYSICS_HZ,
        )
        self._data = self._engine.MjData(self._model)
        self._scenario = scenario
        self._substeps = PHYSICS_HZ // rate_hz
        self.urdf = robot.urdf
        self.joint_names = tuple(self._model.actuator(k).name for k in range(self._model.nu))
        self.ft_names = tuple(sensor.name for sensor in robot.ft_sensors)
        self.imu_names = tuple(imus)
        self.contact_frames = scenario.contacts
        self._truth = TruthReader(self._model, robot, self.imu_names, scenario.contacts)
        self._loads = Loads(self._model, robot, scenario.loads)
        times = [(push.start, push.start + push.duration) for push in scenario.pushes]
        self._push_times = np.array(times).reshape(-1, 2).T
        self._push_sites = [self._model.site(f'frame/{push.frame}').id for push in scenario.pushes]
        self.pushed: list[str] = []
        """Links that are pushed at present."""
        self._motion = self._make_motion()
        # Compensates the damping of the servos [s].
        damping = self._model.dof_damping[-self._model.nu :] - self._model.actuator_biasprm[:, 2]
        self._lead = np.asarray(damping / self._model.actuator_gainprm[:, 0])
        self._settle()

    def step(self) -> Snapshot:
        """Advance by one period of `rate_hz`, and return the new snapshot."""
        self._advance(self._substeps, with_sensors=True)
        return self._truth.read(self._data, self._ticks * (1_000_000_000 // PHYSICS_HZ))

    def _advance(self, steps: int, *, with_sensors: bool) -> None:
        """Integrate over steps of the physics; with sensors: of the state that they lead to."""
        times, commands = self._commands(self._ticks + np.arange(1, steps + 1))
        begun, ended = self._push_times
        near = np.flatnonzero((begun < times[-1]) & (times[0] < ended)).tolist()
        last = self._ticks + steps
        for time, command in zip(times.tolist(), commands, strict=True):
            self._engine.mj_Euler(self._model, self._data)
            self._ticks += 1
            self._forward(time, command, near, with_sensors=with_sensors and self._ticks == last)

    def _commands(self, ticks: Indices) -> tuple[Array, Array]:
        """Return times (n,) [s] and commands of the servos (n, n_joints) [rad] at ticks (n,)."""
        times = ticks / PHYSICS_HZ
        positions, velocities = self._motion.at(times - self._scenario.onset)
        return times, positions + self._lead * velocities

    def _forward(
        self, time: float, command: Array, near: Sequence[int] = (), *, with_sensors: bool = False
    ) -> None:
        """Compute forces and accelerations of the present state, pushes and servos on."""
        self._loads.update(time)
        self._data.ctrl[:] = command
        self._push(time, near)
        every_stage = self._engine.mjtStage.mjSTAGE_NONE
        self._engine.mj_forwardSkip(self._model, self._data, every_stage, not with_sensors)

    def _push(self, time: float, near: Sequence[int]) -> None:
        """Apply those of some pushes that act at a time [s]."""
        data, model = self._data, self._model
        pushes, sites = self._scenario.pushes, self._push_sites
        active = [(k, w) for k in near if (w := pushes[k].at(time)) is not None]
        if active or self.pushed:
            data.xfrc_applied[:] = 0.0
        self.pushed = [pushes[k].frame for k, _ in active]
        if active:
            # The poses in the data are those before the last integration.
            self._engine.mj_kinematics(model, data)
        for k, wrench in active:
            site = sites[k]
            body, W_R_S = model.site_bodyid[site], data.site_xmat[site].reshape(3, 3)
            force, moment = W_R_S @ wrench[:3], W_R_S @ wrench[3:]
            arm = data.site_xpos[site] - data.xipos[body]
            data.xfrc_applied[body] += np.concatenate([force, moment + cross(arm, force)])

    def _by_joint(self, values: Mapping[str, float]) -> Array:
        """Return values by name as an array over the joints, 0 where there is none."""
        for name in values:
            if name not in self.joint_names:
                raise NameNotFound('joint', name, self.joint_names)
        return np.array([values.get(name, 0.0) for name in self.joint_names])

    def _make_motion(self) -> Motion:
        posture, accelerations = map(
            self._by_joint, (self._scenario.posture, self._scenario.motion)
        )
        motion = Motion.random(posture, accelerations, np.random.default_rng(self._scenario.seed))
        lower, upper = self._model.jnt_range[-self._model.nu :].T
        away = np.maximum(posture + motion.excursions - upper, lower - posture + motion.excursions)
        if away.max() > 0.0:
            raise ConfigError(
                f"the motion takes joint '{self.joint_names[away.argmax()]}' {away.max():.3f} rad "
                'beyond its limit'
            )
        return motion

    def _settle(self) -> None:
        """Put the robot into its posture, on its feet unless it is fixed, and start the motion."""
        data = self._data
        data.qpos[-self._model.nu :] = self._motion.posture
        if not self._scenario.fixed:
            self._engine.mj_kinematics(self._model, data)
            data.qpos[2] = SOLE_HALF_SIZE[2] - min(data.geom(sole).xpos[2] for sole in SOLES)
        self._ticks = -round((SETTLING + START) * PHYSICS_HZ)
        (time,), (command,) = self._commands(np.array([self._ticks]))
        self._forward(time, command)
        self._advance(-self._ticks, with_sensors=False)
