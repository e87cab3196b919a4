# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Which sums are a submodel's external wrench and a joint's load, link by link.

Every factor is spread over the links that its term stands for; what comes out must be each link of
the sum once, and no other. Not covered: the numbers (test_newton_euler.py).
"""

from itertools import combinations

import brute_force
import numpy as np
import pytest
from robots import arm_with_wrist_sensor_urdf, nested_humanoid_urdf, two_link_urdf

from inertial_estimation.estimation.balance import build_balance, subtrees
from inertial_estimation.estimation.forest import build_forest
from inertial_estimation.model.motion_sources import serving_sources
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.submodels import decompose

HUMANOID = nested_humanoid_urdf()
ROBOTS = {
    'two links': Robot.from_urdf(two_link_urdf(), imus=['arm']),
    'arm on the ground': Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='base'),
    'arm held by its tool': Robot.from_urdf(arm_with_wrist_sensor_urdf(), fixed_link='tool'),
    'imu at the head': Robot.from_urdf(HUMANOID, imus=['head']),
    'imu at the foot': Robot.from_urdf(HUMANOID, imus=['foot']),
    'imus in a row': Robot.from_urdf(HUMANOID, imus=['foot', 'shank', 'hip', 'root', 'neck']),
    'torques about the shank': Robot.from_urdf(
        HUMANOID, imus=['head'], external_torque_base='shank'
    ),
    'fixed hand': Robot.from_urdf(HUMANOID, fixed_link='hand'),
}
CASES = [
    (name, used)
    for name, robot in ROBOTS.items()
    for size in range(len(robot.ft_sensors) + 1)
    for used in combinations(range(len(robot.ft_sensors)), size)
]


class Terms:
    """The balance of a robot with a contact on each link, and what its terms stand for."""

    def __init__(self, robot, used):
        _, sources = serving_sources(robot, range(len(robot.imus)))
        self.robot, self.used, self.n = robot, used, len(robot.links)
        self.forest = build_forest(robot, sources)
        submodels = decompose(robot.links, robot.ft_sensors, used)
        self.balance = build_balance(robot, self.forest, submodels, used, range(self.n))
        self.n_tops, self.n_fts = len(self.forest.tops), len(robot.ft_sensors)

    def net(self, factors):
        """Return how often the net wrench of each link is in a sum."""
        counts = np.zeros(self.n)
        for factor, top in zip(factors, self.forest.tops, strict=False):
            counts[list(top.below)] += factor
        return counts

    def sensors(self, factors):
        return factors[self.n_tops : self.n_tops + self.n_fts]

    def contacts(self, factors):
        return factors[self.n_tops + self.n_fts :]

    def expected_sensors(self, links):
        """Return what takes internal wrenches off a sum: + on the child, - on the parent."""
        factors = np.zeros(self.n_fts)
        for k in self.used:
            sensor = self.robot.ft_sensors[k]
            factors[k] = float(sensor.child in links) - float(sensor.parent in links)
        return factors


def indicator(links, n):
    counts = np.zeros(n)
    counts[sorted(links)] = 1.0
    return counts


@pytest.fixture(params=CASES, ids=lambda case: f'{case[0]}, {case[1]}')
def terms(request):
    name, used = request.param
    return Terms(ROBOTS[name], used)


def test_a_submodel_sums_its_links_and_its_sensors(terms):
    for submodel, factors in zip(
        terms.balance.submodels, terms.balance.submodel_factors, strict=True
    ):
        links = set(submodel.links)
        np.testing.assert_array_equal(terms.net(factors), indicator(links, terms.n))
        np.testing.assert_array_equal(terms.sensors(factors), terms.expected_sensors(links))
        np.testing.assert_array_equal(terms.contacts(factors), 0.0)


def test_a_torque_sums_its_submodel_away_from_the_root(terms):
    member_of = brute_force.submodel_roots(terms.robot, terms.used)
    for k, link in enumerate(terms.robot.links):
        j = link.joint
        if j < 0:
            continue
        own = {n for n in brute_force.beyond(terms.robot, k) if member_of[n] == member_of[k]}
        assert terms.balance.beyond[j] == own
        factors = terms.balance.joint_factors[j, 0]
        counts = terms.net(factors)
        held = terms.forest.below[j]
        counts[list(held)] += 1.0 if k in held else -1.0
        np.testing.assert_array_equal(counts, indicator(own, terms.n))
        np.testing.assert_array_equal(terms.sensors(factors), terms.expected_sensors(own))
        np.testing.assert_array_equal(terms.contacts(factors), -indicator(own, terms.n))
        np.testing.assert_array_equal(terms.balance.joint_contacts[j], terms.contacts(factors))


def test_an_external_torque_sums_contacts_away_from_the_base(terms):
    for k, link in enumerate(terms.robot.links):
        j = link.joint
        if j < 0:
            continue
        beyond = brute_force.beyond(terms.robot, k)
        factors = terms.balance.joint_factors[j, 1]
        if terms.robot.base in beyond:
            expected = -indicator(set(range(terms.n)) - beyond, terms.n)
        else:
            expected = indicator(beyond, terms.n)
        np.testing.assert_array_equal(terms.contacts(factors), expected)
        np.testing.assert_array_equal(terms.balance.external_contacts[j], expected)
        np.testing.assert_array_equal(terms.net(factors), 0.0)
        np.testing.assert_array_equal(terms.sensors(factors), 0.0)


@pytest.mark.parametrize('name', ROBOTS)
def test_subtrees(name):
    robot = ROBOTS[name]
    for k, links in enumerate(subtrees(robot)):
        assert links[0] == k
        assert sorted(links) == sorted(brute_force.beyond(robot, k))
