# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The engine against the thesis written out link by link (brute_force.py), on any readings at all.

IMUs contradict each other and the joints, FT sensors contradict both; still every number must be
the one that the equations give. Not covered: missing readings (test_quality.py), other engines
(test_against_idyntree.py).
"""

from types import SimpleNamespace

import brute_force
import numpy as np
import pytest
from robots import (
    arm_with_wrist_sensor_urdf,
    assert_close,
    at_roots,
    nested_humanoid_urdf,
    random_sample,
    two_link_urdf,
)

from inertial_estimation.estimation.contacts import Contact, ContactKind
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration, LinkSensorSpec
from inertial_estimation.model.tree import Link, Source, assign_owners

# Relative to the largest number of a result: round-off of sums over some sixty links, times the
# condition of the least squares, which the rank tolerance bounds at 1e3.
ROUND_OFF = 1e-10
TEXTS = {
    'two_link': two_link_urdf(),
    'arm': arm_with_wrist_sensor_urdf(),
    'humanoid': nested_humanoid_urdf(),
}
SHARED = ['icub_v2_5', 'icub_genova01', 'icub_sensorised', 'ergocub_sn001', 'panda_wrist_ft']
KINDS = [str(kind) for kind in ContactKind]


def read_robot(name, request, **options):
    """Return a robot of the tests by name, or a shared one; the panda without its fingers."""
    if name in TEXTS:
        return Robot.from_urdf(TEXTS[name], **options)
    if name.startswith('panda'):
        options.setdefault('joints', [f'panda_joint{k}' for k in range(1, 8)])
    return Robot.from_urdf(request.getfixturevalue('shared_models') / f'{name}.urdf', **options)


def any_imus(frames, rng, largest):
    """Return IMUs at any frames, some of them on one link."""
    count = rng.integers(1, largest + 1)
    return [LinkSensorSpec(f'imu_{k}', str(rng.choice(frames))) for k in range(count)]


def any_contacts(frames, rng, largest=9):
    """Return contacts of all kinds at any frames, several, one or none to a submodel."""
    return tuple(
        Contact(
            frame=str(rng.choice(frames)),
            kind=str(rng.choice(KINDS)),
            point=tuple(rng.normal(0.0, 0.1, 3)),
            direction=tuple(rng.normal(size=3)),
            wrench=tuple(rng.normal(0.0, 10.0, 6)),
            name=f'contact_{k}',
        )
        for k in range(rng.integers(0, largest + 1))
    )


def compare(robot, sample, contacts, **options):
    estimate = WrenchEstimator(robot, contacts, **options).update(sample)
    if calibration := options.get('calibration'):
        own = np.einsum('kij,kj->ki', calibration.matrices, sample.ft_readings)
        sample = sample._replace(ft_readings=own - calibration.offsets)
    length = options.get('length_scale', 0.1)
    answer = brute_force.estimate(robot, sample, contacts, length_scale=length)
    roots = [submodel.root for submodel in robot.submodels]
    for name in ('wrenches', 'torques', 'external_torques'):
        assert_close(getattr(estimate, name), getattr(answer, name), ROUND_OFF, name)
    assert_close(estimate.residuals, [answer.residuals[k] for k in roots], ROUND_OFF)
    np.testing.assert_array_equal(estimate.ranks, [answer.ranks[k] for k in roots])


@pytest.mark.parametrize('seed', range(8))
@pytest.mark.parametrize('name', TEXTS)
def test_imus_anywhere_or_any_fixed_link(name, seed, request):
    rng = np.random.default_rng(seed)
    frames = list(read_robot(name, request).frames)
    for _ in range(5):
        imus = any_imus(frames, rng, largest=len(frames))
        fixed, gravity = str(rng.choice(frames)), rng.normal(0.0, 5.0, 3)
        for options in ({'imus': imus}, {'fixed_link': fixed, 'gravity': gravity}):
            robot = read_robot(name, request, **options)
            length = rng.choice([0.01, 0.1, 1.0])
            given = random_sample(robot, rng), any_contacts(frames, rng)
            compare(robot, *given, length_scale=length)


@pytest.mark.parametrize('seed', range(4))
@pytest.mark.parametrize('name', SHARED)
def test_imus_anywhere_on_real_robots(name, seed, request):
    rng = np.random.default_rng(seed)
    frames = list(read_robot(name, request).frames)
    robot = read_robot(name, request, imus=any_imus(frames, rng, largest=6))
    compare(robot, random_sample(robot, rng), any_contacts(frames, rng, largest=20))


def test_calibrated_readings(request, rng):
    """The sensors' own wrench is matrix times reading minus offset, whatever their direction."""
    robot = read_robot('humanoid', request, imus=['head'])
    calibration = FtCalibration(rng.normal(size=(3, 6, 6)), rng.normal(0.0, 20.0, (3, 6)))
    compare(robot, random_sample(robot, rng), at_roots(robot), calibration=calibration)


# Motion sources


@pytest.mark.parametrize('seed', range(60))
def test_sources_of_random_trees(seed):
    """Compare with the oracle, which walks distances instead of spreading from the IMUs."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 25))
    cuts, links = [k for k in range(1, n) if rng.random() < 0.25], []
    for k in range(n):
        parent = int(rng.integers(0, k)) if k else -1
        sensor = cuts.index(k) if k in cuts else -1
        joint = -1 if sensor >= 0 or k == 0 else k
        links.append(Link(f'l{k}', parent, joint, sensor, np.eye(4), np.zeros(6)))
    imus = [int(k) for k in rng.integers(0, n, rng.integers(1, 6))]
    sources = [Source(f'i{k}', k, np.eye(4)) for k in imus]
    robot = SimpleNamespace(links=links, ft_sensors=[SimpleNamespace(child=k) for k in cuts])
    for rigid, oracle in ((False, brute_force.owners), (True, brute_force.owners_of_motion)):
        found = assign_owners(links, sources, rigid_sensors=rigid)
        assert list(found) == oracle(robot, imus)
        for s in set(found):  # the links of each IMU hang together
            members = [k for k, owner in enumerate(found) if owner == s]
            assert sum(links[k].parent < 0 or found[links[k].parent] != s for k in members) == 1
