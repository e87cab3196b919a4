# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Six workshop tools at an FT sensor: truth without noise, consistent parameters with it.

The data are simulated [Nadeau, Giamou, Kelly, The sum of its parts, ICRA 2023] and come without
noise; the authors' noise is added here. Not covered: their other tools; masses at points, which
need the shape of a tool.
"""

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation import EquationBuilder, Robot, SampleBatch
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.model.inertia import inertia_seen_from, parameters_of, spatial_inertia

DATA = SHARED / 'data' / 'stars_tools_sim'
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')

TOOLS = ('c_clamp', 'electronic_caliper', 'hammer', 'pliers', 'ruler', 'screwdriver')
LOW_NOISE = (0.025, 0.25, 0.05, 0.0025)
"""
Standard deviations of linear and angular acceleration, force and torque [m/s^2, rad/s^2, N, Nm].
"""
LEVELS = (1.0, 2.0, 4.0)
"""Of the authors' noise, over the low one."""
UPWARD = np.array([0.0, 0.0, 9.81])
"""The generator's gravity, in world axes: it has the other sign than usual [m/s^2]."""
DRAWS = 6
EXACT = {'least_squares': 1e-9, 'entropic': 1e-6}
"""Relative error without noise, of mass, first moment and inertia about the sensor."""
TERMS = (slice(0, 1), slice(1, 4), slice(4, 10))


def read(name):
    """Return the motion and the wrench of a tool in sensor axes, and its true parameters."""
    log = np.load(DATA / f'{name}.npz')
    world_R_sensor = log['ft_pose'][:, :3, :3]
    signals = (
        np.einsum('nij,ni->nj', world_R_sensor, vectors)
        for vectors in (
            log['ft_vel'][:, 3:], log['ft_acc'][:, :3] - UPWARD, log['ft_acc'][:, 3:],
            log['wrench'][:, :3], log['wrench'][:, 3:],
        )
    )  # fmt: skip
    center = np.eye(4)
    center[:3, 3] = log['com_ft']
    own = np.array([float(log['mass']), 0, 0, 0, *log['inertia_com_ft'][np.tril_indices(3)]])
    truth = parameters_of(inertia_seen_from(spatial_inertia(own), center))
    return np.round(1e9 * log['t']).astype(np.int64), list(signals), truth


def evidence(builder, stamps, signals, level, rng):
    """Return the equations of noisy readings."""
    w, *exact = signals
    # White noise alike on all axes is the same in sensor axes as in those of the world.
    a, dw, force, torque = (
        value + level * deviation * rng.normal(size=value.shape)
        for value, deviation in zip(exact, LOW_NOISE, strict=True)
    )
    none = np.zeros((len(stamps), 0))
    samples = SampleBatch(
        stamps, none, none, none, w[:, None], a[:, None], dw[:, None],
        np.zeros((len(stamps), 0, 6)),
    )  # fmt: skip
    return gather(builder, samples, external={'tool': np.hstack([force, torque])})


def test_truth_is_found_and_answers_with_a_prior_are_consistent(rng):
    robot = Robot.from_urdf('<robot name="tool"><link name="tool"/></robot>', imus=['tool'])
    ball = np.array([0.3, 0, 0, 0, *0.4 * 0.3 * 0.1**2 * np.array([1, 0, 1, 0, 0, 1])])
    robot = robot.with_parameters(ball[None])
    builder, consistent = EquationBuilder(robot), []
    for tool in TOOLS:
        stamps, signals, truth = read(tool)
        exact = evidence(builder, stamps, signals, 0.0, rng)
        for method, least in EXACT.items():
            error = fit(robot, exact, method).parameters[0] - truth
            for term in TERMS:
                assert np.linalg.norm(error[term]) <= least * np.linalg.norm(truth[term]), tool
        for level in np.repeat(LEVELS, DRAWS):
            noisy = evidence(builder, stamps, signals, level, rng)
            assert fit(robot, noisy).consistent, (tool, level)
            consistent.append(fit(robot, noisy, 'least_squares').consistent)
    assert np.mean(consistent) < 0.3
