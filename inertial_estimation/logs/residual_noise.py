# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the stated noise leaves of the residuals of sensors: readings are disturbed by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from inertial_estimation.building import build_noise
from inertial_estimation.logs.replay import Replay
from inertial_estimation.sample import Array, SampleBatch
from inertial_estimation.uncertainty.sensor_noise import NoiseModel, triangular_root
from inertial_estimation.uncertainty.stream_noise import StreamNoise

SEED = 0
"""Of the disturbance, so that a replay says the same each time."""


class Disturbance:
    """Adds to samples what the settings state as noise, behind the filters."""

    def __init__(self, replay: Replay) -> None:
        robot, rates, settings = replay.robot, replay.recording.rates, replay.settings
        found = None if rates is None else build_noise(settings, robot, rates)
        assumed = np.isin(robot.joint_names, settings.assumed_joints)
        self._model, known = _of_messages(replay), assumed
        if found is not None:
            self._model = _where_known(found, self._model)
            known = np.concatenate([found.joints | assumed, found.imus, found.fts])
        self.is_whole = found is not None and bool(known.all())
        self._assumed = assumed
        self._random = np.random.default_rng(SEED)

    def of(self, samples: SampleBatch) -> SampleBatch:
        """Return disturbed samples."""
        model, n = self._model, len(samples)
        joints = self._draw(n, model.joints)
        joints[:, self._assumed] = 0.0
        assumed = self._random.normal(size=joints.shape[:2]) * model.assumed_positions
        joints[:, self._assumed, 0] = assumed[:, self._assumed]
        imus = np.stack([self._draw(n, model.imus) for _ in range(3)], axis=-2)
        fts = self._random.normal(size=samples.ft_readings.shape) * model.fts
        return replace(
            samples,
            positions=samples.positions + joints[..., 0],
            velocities=samples.velocities + joints[..., 1],
            accelerations=samples.accelerations + joints[..., 2],
            angular_velocities=samples.angular_velocities + imus[..., 0],
            proper_accelerations=samples.proper_accelerations + imus[..., 1],
            angular_accelerations=samples.angular_accelerations + imus[..., 2],
            ft_readings=samples.ft_readings + fts,
        )

    def _draw(self, n: int, covariances: Array) -> Array:
        """Return noise of streams with three correlated signals each, (n, n_streams, 3)."""
        white = self._random.normal(size=(n, len(covariances), 3))
        found: Array = np.einsum('sab,nsb->nsa', triangular_root(covariances), white)
        return found


def _of_messages(replay: Replay) -> NoiseModel:
    """Return the noise of messages, without derivatives."""
    robot, settings = replay.robot, replay.settings
    imus = [settings.imu_of(imu.name) for imu in robot.imus]
    fts = [settings.ft_of(sensor.name).noise for sensor in robot.ft_sensors]
    joint = np.diag([settings.derivative_joint_noise**2, 0.0, 0.0])
    signals = [np.diag([i.gyroscope_noise**2, i.accelerometer_noise**2, 0.0]) for i in imus]
    n = len(robot.joint_names)
    return NoiseModel(
        joints=np.broadcast_to(joint, (n, 3, 3)),
        imus=np.array(signals).reshape(-1, 3, 3),
        fts=np.array(fts).reshape(-1, 6),
        assumed_positions=np.full(n, settings.assumed_position_noise),
    )


def _where_known(found: StreamNoise, otherwise: NoiseModel) -> NoiseModel:
    """Return the noise behind the filters, another one where it is not known."""
    model = found.model
    return replace(
        model,
        joints=np.where(found.joints[:, None, None], model.joints, otherwise.joints),
        imus=np.where(found.imus[:, None, None], model.imus, otherwise.imus),
        fts=np.where(found.fts[:, None], model.fts, otherwise.fts),
    )
