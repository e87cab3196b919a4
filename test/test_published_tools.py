# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Six workshop tools at an FT sensor: always consistent, errors no larger than of least squares.

The data are simulated [Nadeau, Giamou, Kelly, The sum of its parts, ICRA 2023] and come without
noise; the authors' noise is added here. Not covered: their other tools; masses at points, which
need the shape of a tool.
"""

import numpy as np
import pytest
from shared_data import SHARED

from inertial_estimation.identification.equations.builder import EquationBuilder
from inertial_estimation.identification.evidence import gather
from inertial_estimation.identification.fit import fit
from inertial_estimation.model.inertia import (
    consistency_margin,
    inertia_seen_from,
    parameters_of,
    spatial_inertia,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

DATA = SHARED / 'data' / 'stars_tools_sim'
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason='needs ../shared/data')

TOOLS = ('c_clamp', 'electronic_caliper', 'hammer', 'pliers', 'ruler', 'screwdriver')
LEVELS = {'none': 0.0, 'low': 1.0, 'moderate': 2.0, 'high': 4.0}
"""Of the authors' noise, over the low one."""
LOW_NOISE = (0.025, 0.25, 0.05, 0.0025)
"""
Standard deviations of linear and angular acceleration, force and torque [m/s^2, rad/s^2, N, Nm].
"""
UPWARD = np.array([0.0, 0.0, 9.81])
"""The generator's gravity, in world axes: it has the other sign than usual [m/s^2]."""
DRAWS = 6
"""Of the noise at each level; enough for a standard error."""
CERTAIN = 3.0
"""A mean difference beyond this number of its standard errors is not chance."""


def about(parameters, place):
    """Return the parameters, (10,), about another point."""
    seen_from = np.eye(4)
    seen_from[:3, 3] = -place
    return parameters_of(inertia_seen_from(spatial_inertia(parameters), seen_from))


def ball(mass, center, radius):
    """Return the parameters of a ball, (10,)."""
    moment = 0.4 * mass * radius**2
    own = np.array([mass, 0, 0, 0, moment, 0, moment, 0, 0, moment])
    return about(own, -center)


def errors_of(found, truth):
    """Return relative errors of mass and inertia, and the distance of the centres."""
    centers = [one[1:4] / one[0] for one in (found, truth)]
    inertias = [
        spatial_inertia(about(one, center))[3:, 3:]
        for one, center in zip((found, truth), centers, strict=True)
    ]
    inertia = np.linalg.norm(inertias[0] - inertias[1]) / np.linalg.norm(inertias[1])
    distance = np.linalg.norm(centers[0] - centers[1])
    return np.array([abs(found[0] / truth[0] - 1.0), distance, inertia])


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
    mass, inertia = float(log['mass']), log['inertia_com_ft'][np.tril_indices(3)]
    truth = about(np.array([mass, 0, 0, 0, *inertia]), -log['com_ft'])
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


def placed(robot, seen):
    """Return the answer with a ball as prior: where least squares state, back to the sensor."""
    mass, *first = fit(robot, seen, 'least_squares').parameters[0, :4]
    center = np.array(first) / mass
    prior = ball(mass, center, np.linalg.norm(center))
    return fit(robot.with_parameters(prior[None]), seen, 'entropic', {'weight': 1.0})


METHODS = {
    'least squares': lambda robot, seen: fit(robot, seen, 'least_squares'),
    'default': lambda robot, seen: fit(robot, seen, 'entropic'),
    'placed': placed,
}


@pytest.fixture(scope='module')
def scores():
    """Return consistency and errors of each draw, by tool, level and method."""
    rng = np.random.default_rng(0)
    robot = Robot.from_urdf('<robot name="tool"><link name="tool"/></robot>', imus=['tool'])
    robot = robot.with_parameters(ball(0.3, np.zeros(3), 0.1)[None])
    builder, found = EquationBuilder(robot), {}
    for tool in TOOLS:
        stamps, signals, truth = read(tool)
        for level, size in LEVELS.items():
            draws = [evidence(builder, stamps, signals, size, rng)
                     for _ in range(DRAWS if size else 1)]  # fmt: skip
            for method, solve in METHODS.items():
                answers = np.array([solve(robot, seen).parameters[0] for seen in draws])
                errors = np.array([errors_of(answer, truth) for answer in answers])
                found[tool, level, method] = consistency_margin(answers) > 0, errors
    return found


def test_truth_is_found_and_answers_with_a_prior_are_consistent(scores):
    squares = []
    for (_, level, method), (consistent, errors) in scores.items():
        if level == 'none':
            assert errors.max() <= (1e-9 if method == 'least squares' else 1e-6)
        if method != 'least squares':
            assert consistent.all()
        elif level != 'none':
            squares.append(consistent)
    assert np.mean(squares) < 0.3


def test_errors_are_no_larger_than_of_least_squares(scores):
    for tool in TOOLS:
        for level in ('low', 'moderate', 'high'):
            more = scores[tool, level, 'placed'][1] - scores[tool, level, 'least squares'][1]
            chance = more.std(axis=0, ddof=1) / np.sqrt(DRAWS)
            assert (more.mean(axis=0) <= CERTAIN * chance).all(), (tool, level)
