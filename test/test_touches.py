# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Reported contacts: the default contacts that they replace, and points that move.

Not covered: how messages become contacts (test_contact_stream.py).
"""

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.robot import Robot

DEFAULTS = ('root', 'hand', 'thigh', 'sole')
# Two ways to the same least-squares solution, relative to the largest number.
ROUND_OFF = 1e-12


@pytest.fixture(params=[['head'], ['head', 'hand', 'shank']])
def robot(request):
    return Robot.from_urdf(nested_humanoid_urdf(), imus=request.param)


@pytest.fixture
def estimator(robot):
    return WrenchEstimator(robot, [Contact(frame) for frame in DEFAULTS])


def assert_same(got, wanted):
    """Compare all that is not about contacts, and the contacts that are there, by name."""
    for name in ('torques', 'external_torques', 'residuals'):
        a, b = getattr(got, name), getattr(wanted, name)
        np.testing.assert_allclose(a, b, rtol=0.0, atol=ROUND_OFF * np.abs(b).max(initial=1.0))
    rows = {contact.name: row for contact, row in zip(got.contacts, got.wrenches)}
    for contact, row in zip(wanted.contacts, wanted.wrenches):
        np.testing.assert_allclose(rows[contact.name], row, rtol=0.0, atol=1e3 * ROUND_OFF)


@pytest.mark.parametrize('kind', ['wrench', 'force', 'axial_force'])
def test_only_the_touched_submodel_leaves_its_default(estimator, robot, kind, rng):
    """Fault F5 of others: one touch, and the defaults of all submodels change."""
    touch = Contact('shank', kind, (0.02, -0.03, 0.1))
    sample = random_sample(robot, rng)
    got = estimator.update(sample, estimator.with_touches([touch]))
    explicit = [Contact('root'), Contact('hand'), Contact('sole'), touch]
    assert_same(got, estimator.update(sample, explicit))
    names = [contact.name for contact in got.contacts]
    assert names == [*DEFAULTS, 'shank']
    np.testing.assert_array_equal(got.contact_quality, [0, 0, Quality.DROPPED, 0, 0])
    assert np.isnan(got.wrenches[2]).all()
    assert np.isfinite(np.delete(got.wrenches, 2, axis=0)).all()


@pytest.mark.parametrize('lost', ['leg_sensor', 'foot_sensor'])
def test_where_submodels_merge_the_touch_stays(estimator, robot, lost, rng):
    """The thigh is touched; with a sensor lost its submodel swallows a neighbour's default."""
    sample = random_sample(robot, rng)
    readings = sample.ft_readings.copy()
    readings[[sensor.name for sensor in robot.ft_sensors].index(lost)] = np.nan
    sample = sample._replace(ft_readings=readings)
    touches = estimator.with_touches([Contact('shank', 'force', (0.0, 0.0, 0.2))])
    got = dict(
        zip([c.name for c in touches.contacts], estimator.update(sample, touches).contact_quality)
    )
    given_way = Quality.DROPPED | Quality.MERGED
    neighbour, other = ('root', 'sole') if lost == 'leg_sensor' else ('sole', 'root')
    expected = {'shank': Quality.MERGED, 'thigh': given_way, neighbour: given_way, other: 0}
    assert got == expected | {'hand': 0}
