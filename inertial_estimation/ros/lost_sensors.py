# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which sensors rows of a submodel lack in a sample."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.sample import Sample, SensorState

HELD = (SensorState.STALE, SensorState.FROZEN)
"""Said some time after the last reading, which was used until then."""


def lost_sensors(robot: Robot, submodel: Submodel, sample: Sample) -> list[str]:
    """Name the sensors without which rows of a submodel cannot be built."""
    fts = sorted({submodel.root_sensor, *submodel.child_sensors} - {-1})
    absent = np.isnan(sample.ft_readings).any(axis=1)
    names = [sensor.name for sensor in robot.ft_sensors]
    found = [_said('FT sensor', names, k, sample.ft_states) for k in fts if absent[k]]
    if found:
        return found
    imus, joints = [imu.name for imu in robot.imus], robot.joint_names
    still = np.isnan(sample.angular_velocities).any(axis=1) & _not_fresh(sample.imu_states)
    motion = np.isnan([sample.positions, sample.velocities, sample.accelerations]).any(axis=0)
    return [
        *(_said('IMU', imus, k, sample.imu_states) for k in np.flatnonzero(still)),
        *(_said('joint', joints, k, sample.joint_states) for k in np.flatnonzero(motion)),
    ]


def held_too_long(sample: Sample) -> NDArray[np.intp]:
    """Return the FT sensors whose last reading was used for longer than it was true."""
    if sample.ft_states is None:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(np.isin(sample.ft_states, HELD))


def _not_fresh(states: NDArray[np.uint8] | None) -> NDArray[np.bool_] | bool:
    """Return who may be lost; an IMU that is to measure one quantity has only this, and is not."""
    return True if states is None else states != SensorState.FRESH


def _said(kind: str, names: Sequence[str], index: int, states: NDArray[np.uint8] | None) -> str:
    """Name a sensor, and say how it was found if that is known."""
    state = '' if states is None else f' ({SensorState(int(states[index])).name.lower()})'
    return f"{kind} '{names[index]}'{state}"
