# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Fixtures that many tests use; the robots themselves are in robots.py.

Linear algebra has one thread, in the processes of tests as well, set before numpy is imported.
Several gain nothing on matrices of this size, and on a busy machine they wait for each other.
"""

from __future__ import annotations

import os

os.environ['OMP_NUM_THREADS'] = '1'

from pathlib import Path

import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf
from shared_data import SHARED

from inertial_estimation.model.robot import Robot


@pytest.fixture
def rng() -> np.random.Generator:
    """Return a seeded generator."""
    return np.random.default_rng(20161)


@pytest.fixture
def two_link() -> Robot:
    """Return the pair of links with an IMU on the body."""
    return Robot.from_urdf(two_link_urdf(), imus=['body'])


@pytest.fixture
def arm_with_wrist_sensor() -> Robot:
    """Return the arm, bolted to the ground."""
    return Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base')


@pytest.fixture
def nested_humanoid() -> Robot:
    """Return the humanoid with one IMU at the head."""
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


@pytest.fixture
def shared_models() -> Path:
    """Return the folder of the shared robot models, or skip."""
    folder = SHARED / 'data' / 'models'
    if not folder.is_dir():
        pytest.skip('the shared data folder is not beside this checkout')
    return folder
