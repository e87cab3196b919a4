# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Old names of `log` and `open_log`."""

from pathlib import Path

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.log import Log as Recording
from inertial_estimation.logs.log import Progress, TimeRange, no_progress
from inertial_estimation.logs.open_log import open_log, require_temperatures
from inertial_estimation.model.robot import Robot

__all__ = ['Progress', 'Recording', 'TimeRange', 'no_progress', 'require_temperatures']


def read_samples(
    bag: str | Path, robot: Robot, settings: EstimatorSettings, progress: Progress = no_progress
) -> Recording:
    """Open a bag."""
    return open_log(bag, robot, settings, progress=progress)


def require_derivatives(recording: Recording) -> None:
    """Raise if a stream never had derivatives."""
    recording.require_derivatives()
