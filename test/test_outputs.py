# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Records of markers and diagnostics, findings that are logged, and statistics of the cycles.

Not covered: rviz, and what arrives on topics (ros/test_estimator_node.py).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from robots import nested_humanoid_urdf, random_sample
from test_set_parameters import others

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contact_stream import ContactStatistics
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality
from inertial_estimation.estimation.sender_rates import SlowSender
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Level, finding
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs import diagnostics, markers
from inertial_estimation.outputs.result_checks import CycleStatus, DependenceStatus, MomentumStatus
from inertial_estimation.sample import SensorState
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.signals.router import Source
from inertial_estimation.uncertainty.deviations import Deviations

CONFIG = Path(__file__).parents[1] / 'config'
# Lengths are below a metre.
ROUND_OFF = 1e-12
POINT = (0.0, 0.1, 0.2)
KINDS = {'inertia_cuboid', 'inertia_ellipsoid'}
DESCRIBED = {'described_cuboid', 'described_ellipsoid'}


# Markers


@pytest.fixture
def robot():
    return Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])


@pytest.fixture
def estimate(robot, rng):
    contacts = [Contact('root'), Contact('hand', 'force', POINT), Contact('foot')]
    return WrenchEstimator(robot, contacts).update(random_sample(robot, rng))


def deviations_of(estimate, wrenches, age_ns=0):
    empty = np.empty(0)
    return Deviations(estimate.stamp_ns - age_ns, estimate.contacts, wrenches, *[empty] * 3)


def by_kind(shown):
    found = {}
    for marker in shown:
        found.setdefault(marker.namespace, []).append(marker)
    return found


def test_forces_have_arrows_with_an_ellipsoid_of_two_deviations(estimate):
    sigmas = np.arange(1.0, 19.0).reshape(3, 6)
    found = by_kind(markers.wrench_markers(estimate, deviations_of(estimate, sigmas)))
    for arrow, surface, sigma in zip(found['force'], found['force_deviation'], sigmas):
        assert (surface.shape, surface.frame) == (markers.SPHERE, arrow.frame)
        np.testing.assert_allclose(surface.position, arrow.points[1], atol=ROUND_OFF)
        # Two deviations on either side, as long as an arrow of that force.
        np.testing.assert_allclose(
            surface.scale, 4.0 * markers.FORCE_SCALE * sigma[:3], atol=ROUND_OFF
        )
    start, tip = np.array(found['force'][1].points)
    np.testing.assert_allclose(start, POINT, atol=ROUND_OFF)
    wanted = markers.FORCE_SCALE * np.linalg.norm(estimate.wrenches[1, :3])
    assert np.linalg.norm(tip - start) == pytest.approx(wanted)
    old = deviations_of(estimate, sigmas, markers.WRENCH_LIFETIME_NS + 1)
    for given in (None, deviations_of(estimate, np.full((3, 6), np.inf)), old):
        assert 'force_deviation' not in by_kind(markers.wrench_markers(estimate, given))


def test_submodels_have_a_status_and_spheres_of_its_colour(robot, estimate):
    flags = np.zeros_like(estimate.submodel_quality)
    flags[1:3] = Quality.MISSING, Quality.MERGED
    flagged = estimate._replace(submodel_quality=flags)
    first, second, third, *_ = diagnostics.submodel_statuses(robot, flagged)
    assert (first.level, first.message) == (Level.INFO, 'measured')
    assert (second.level, second.values['quality']) == (Level.ERROR, 'missing')
    assert (third.level, third.values['quality']) == (Level.WARNING, 'merged')
    shown = markers.health_markers(markers.link_balls(robot), flagged)
    shown.sort(key=lambda marker: marker.index)
    assert [marker.index for marker in shown] == list(range(len(robot.links)))
    red = {marker.index for marker in shown if marker.colour == markers.RED}
    assert red == set(robot.submodels[1].links)
    centers = robot.parameters[:, 1:4] / robot.parameters[:, :1]
    np.testing.assert_allclose([m.position for m in shown], centers, atol=ROUND_OFF)


def test_every_namespace_is_in_the_rviz_file(robot, estimate, rng):
    yaml = pytest.importorskip('yaml', reason='needs PyYAML')
    rviz = yaml.safe_load((CONFIG / 'wrench_estimator.rviz').read_text())
    displays = rviz['Visualization Manager']['Displays']
    listed = [name for display in displays for name in display.get('Namespaces', ())]
    lost = random_sample(robot, rng)._replace(imu_states=np.array([SensorState.STALE]))
    shown = [
        *markers.wrench_markers(estimate, deviations_of(estimate, np.ones((3, 6)))),
        *markers.sensor_markers(robot, lost),
        *markers.uninformed_markers(robot, ['neck']),
        *markers.momentum_markers(robot, 'wrong'),
        *markers.health_markers(markers.link_balls(robot), estimate),
        *markers.inertia_markers(robot, 1.1 * robot.parameters)[1:],
    ]
    assert sorted(by_kind(shown)) == sorted(listed)
    assert markers.uninformed_markers(robot, []) == markers.momentum_markers(robot, '') == []


def parameters_of(marker, mass):
    """Return the inertial parameters of a marker of uniform density."""
    place = pin.SE3(pin.Quaternion(np.array(marker.orientation)), np.array(marker.position))
    x, y, z = marker.scale
    ball = pin.Inertia.FromEllipsoid(mass, x / 2.0, y / 2.0, z / 2.0)
    solid = pin.Inertia.FromBox(mass, x, y, z) if marker.shape == markers.CUBE else ball
    return place.act(solid).toDynamicParameters()


def test_solids_have_the_inertia_of_their_links(robot, rng):
    parameters = others(robot, rng)
    shown = markers.inertia_markers(robot, parameters)[1:]
    assert {m.namespace for m in shown} == KINDS | DESCRIBED
    assert len({(m.namespace, m.index) for m in shown}) == len(shown) == 4 * len(robot.links)
    for marker in shown:
        of = parameters if marker.namespace in KINDS else robot.parameters
        wanted = of[marker.index]
        assert marker.frame == robot.link_names[marker.index] and marker.frame_locked
        found = parameters_of(marker, wanted[0])
        # Round-off of roots and squares.
        np.testing.assert_allclose(found, wanted, atol=1e-9 * np.abs(wanted).max())
    # The URDF is shown beside where it differs, be it in one number.
    parameters = robot.parameters.copy()
    parameters[1, 4] *= 1.01
    beside = [m for m in markers.inertia_markers(robot, parameters) if m.namespace in DESCRIBED]
    assert [m.index for m in beside] == [1, 1]
    # A rod has no volume, and no solid.
    parameters[1] = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.01, 0.0, 0.0, 0.01]
    used = [
        m.index for m in markers.inertia_markers(robot, parameters)[1:] if m.namespace in KINDS
    ]
    assert len(used) == 2 * (len(robot.links) - 1) and 1 not in used


# Diagnostics


def codes(findings):
    return [(one.code, one.level) for one in findings]


def source(name='foot', kind='ft'):
    return Source(kind, name, f'{kind}/{name}', lambda data, kind: None)


def test_a_finding_is_logged_once_and_its_end_once():
    log, one = diagnostics.FindingLog(), finding('clock', 'ft leg', what='late')
    begun, ended = [], []
    for is_there in [True] * 5 + [False, True] * 3 + [False] * 12 + [True]:
        new, over = log.update([one] if is_there else [])
        begun.append(len(new))
        ended.append(len(over))
    assert np.flatnonzero(begun).tolist() == [0, 23]
    assert np.flatnonzero(ended).tolist() == [10 + diagnostics.REPORTS_TO_END]
    # Subject and code make the finding, its figures do not.
    assert log.update([finding('clock', 'ft leg', what='later')]) == ([], [])
    others = [finding(code, 'a', what='') for code in ('clock', 'suboptimal')]
    assert log.update(others)[0] == others


@pytest.mark.parametrize(
    ('skews', 'all_off', 'each_off'),
    [
        ((None, 9.0, 9.4), True, [False, False, False]),
        ((None, None, 9.0), False, [False, False, True]),
        ((9.0, 9.0, 0.0), False, [True, True, False]),
        ((9.0, 9.0, -9.0), False, [True, True, True]),
        ((0.1, 0.2, 0.0), False, [False, False, False]),
    ],
)
def test_a_clock_that_is_off_from_all_stamps_is_one_finding(skews, all_off, each_off):
    sources = [source(name) for name in ('foot', 'leg', 'arm')]
    for one, skew in zip(sources, skews):
        one.skew = skew
    common = diagnostics.common_skew(sources)
    assert bool(diagnostics.clock_status(common).findings) == all_off
    found = [list(diagnostics.check_skew(one.name, one, common)) for one in sources]
    assert list(map(bool, found)) == each_off


def test_refused_messages_and_slow_contacts_are_findings(robot, rng):
    assert not list(diagnostics.check_problems('ft foot', {}))
    (one,) = diagnostics.check_problems('ft foot', {'frame': 3, 'bytes': 2})
    assert one.values['count'] == 5
    slow = [SlowSender('hand', 0.25, 4)]
    status = diagnostics.contacts_status(ContactStatistics(9, 2, 0), [], slow, 0.1)
    assert codes(status.findings) == [('slow_contacts', Level.WARNING)]
    statistics = SampleAssembler(robot, EstimatorSettings()).statistics()
    statistics = replace(statistics, ignored_joints=('tail',))
    fresh = np.full(len(robot.joint_names), SensorState.FRESH, dtype=np.uint8)
    sample = random_sample(robot, rng)._replace(joint_states=fresh)
    status = diagnostics.known_joints_status(robot, sample, statistics)
    assert status.level == Level.INFO and status.values['not estimated'] == 'tail'
    sample.velocities[0] = np.nan
    status = diagnostics.known_joints_status(robot, sample, statistics)
    assert status.level == Level.ERROR and robot.joint_names[0] in status.message


def test_uninformed_torques_beyond_the_configured_are_warnings(robot, rng):
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    dependence = DependenceStatus(robot, estimator.contacts, acceleration_arrays=False)
    sample = random_sample(robot, rng)
    assert dependence.configured == ['neck']
    status = dependence.status(estimator.update(sample))
    assert codes(status.findings) == [('uninformed', Level.INFO)]
    touched = tuple(Contact(name) for name in ('root', 'upper_arm', 'foot'))
    status = dependence.status(estimator.update(sample, touched))
    assert status.level == Level.WARNING
    assert status.findings[-1].values['joints'] == 'elbow'
    for readings in sample[1:8]:
        readings[...] = np.nan
    assert not dependence.status(estimator.update(sample)).findings


RATE, OMEGA = 100, 2.0 * np.pi * 0.8


@pytest.mark.parametrize(('source', 'late'), [('filter', 0.0), ('message', 0.08)])
def test_wrong_accelerations_are_a_finding_of_momentum(robot, rng, source, late):
    """Joints swing for four seconds; velocities may be late."""
    settings = EstimatorSettings.from_dict({
        'imus': ('head',), 'filter.window': 0.12, 'joint_states.velocity_source': source,
    })  # fmt: skip
    assembler = SampleAssembler(robot, settings)
    estimator = WrenchEstimator(robot, [Contact(name) for name in ('root', 'hand', 'foot')])
    checked = MomentumStatus(robot, settings, assembler)
    n = len(robot.joint_names)
    phases = rng.uniform(-np.pi, np.pi, n)
    for k in range(4 * RATE):
        stamp, angles = (k + 1) * 10**9 // RATE, OMEGA * k / RATE + phases
        for row in range(len(robot.ft_sensors)):
            assembler.push_ft(row, stamp, rng.normal(size=6))
        proper = np.array([0.0, 0.0, 9.81]) + 0.01 * rng.normal(size=3)
        assembler.push_imu(0, stamp, 3e-3 * rng.normal(size=3), proper)
        positions = 0.5 * np.sin(angles) + 1e-4 * rng.normal(size=n)
        velocities = 0.5 * OMEGA * np.cos(angles - OMEGA * late)
        values = positions, velocities, np.empty(0)
        if (sample := assembler.push_joints(0, stamp, robot.joint_names, *values)) is not None:
            checked.add(sample, estimator.update(sample))
    status = checked.status()
    assert codes(status.findings) == [('momentum', Level.WARNING)] * bool(late)
    assert status.values['windows'] >= 6


# Cycles

PERIOD_NS = 2_000_000
TICKS = PERIOD_NS * np.arange(1, 101)


@pytest.mark.parametrize(
    ('stamps', 'missed', 'code'),
    [
        (np.delete(TICKS + np.tile([0, 0.1, -0.1, 0.2], 25) * PERIOD_NS, [10, 40, 41, 42]), 4,
         'late_cycle'),
        ([*TICKS[:10], TICKS[10] + 0.7 * PERIOD_NS, *TICKS[11:]], 0, ''),
        ([*TICKS[:30], *(TICKS[36] - np.arange(6, 0, -1)), *TICKS[36:]], 0, ''),
        ([*TICKS[50:], *TICKS[:50]], 0, ''),
        (750 * np.delete(TICKS[:10], 5), 1, 'late_cycle'),
        (np.delete(np.where(TICKS[50] < TICKS, TICKS + 4_000_000_000, TICKS), [10, 60]), 2,
         'clock'),
    ],
    ids=['gaps', 'late', 'caught up', 'set back', 'slow', 'stopped'],
)  # fmt: skip
def test_gaps_are_counted_in_periods(stamps, missed, code):
    cycles = CycleStatus()
    for stamp in np.asarray(stamps).tolist():
        cycles.add(round(stamp), 1e-4, 2e-4)
    status = cycles.status(*cycles.take(), {})
    assert codes(status.findings) == [(code, Level.WARNING)] * bool(code)
    assert status.values['missed cycles, total'] == missed
    assert (status.values['cycle time p99 [us]'], status.values['age max [us]']) == ('100', '200')


def test_no_cycle_and_a_failure_are_errors():
    assert codes(CycleStatus().status([], [], {}).findings) == [('missing', Level.ERROR)]
    assert not CycleStatus().status([], [], {}, active=False).findings
    failed = CycleStatus().status([], [], {}, 'singular')
    assert codes(failed.findings) == [('suboptimal', Level.ERROR)]
