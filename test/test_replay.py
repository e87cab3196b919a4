# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""From a bag to wrenches, torques, figures and findings: a small robot, and a real iCub's log."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip('rosbags')

from bag_messages import STORE, point, pose, sent, write_bag
from consistent_readings import ConsistentReadings, random_motion
from replays import MS, SETTINGS, START, humanoid_columns, humanoid_messages
from robots import nested_humanoid_urdf

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError, NameNotFound
from inertial_estimation.estimation.contacts import Contact, rotation_to
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.reading_checks import ReadingChecks
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.log import Log, TimeRange
from inertial_estimation.logs.offsets import OffsetRequest
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import replay, with_deviations
from inertial_estimation.logs.sensor_agreement import find_situations
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.sensor_noise import stream_noise

REPOSITORY = Path(__file__).resolve().parents[1]
DATA = REPOSITORY.parent / 'shared' / 'data'
# The batch form and the steps are the same sums in another order.
BATCH_ROUND_OFF = 1e-12
# Windows of filters are fitted with stamps from another origin, second derivatives of them.
PIECES = 1e-9


def replay_bag(bag, settings, urdf=None, *, out=None, **options):
    """Replay a bag and return its figures with attributes, and its findings."""
    rate = None if out is None else settings.outputs.deviations_rate
    robot = build_robot(settings, urdf or nested_humanoid_urdf())
    found = replay(robot, bag, settings, deviations_rate=rate, **options)
    if out is not None:
        found.save(out)
    text = json.dumps(dict(found.summary))
    report = json.loads(text, object_hook=lambda d: SimpleNamespace(**d))
    report.findings = found.findings
    return report


def run(log, robot, settings):
    return replay(robot, log, settings, deviations_rate=0.0)


def codes(report):
    """Return code and subject of each finding."""
    return {(one.code, one.subject) for one in report.findings}


@pytest.fixture
def settings():
    return EstimatorSettings.from_dict(SETTINGS)


@pytest.fixture
def robot(settings):
    return build_robot(settings, nested_humanoid_urdf())


@pytest.fixture
def bag(tmp_path, robot):
    return write_bag(tmp_path / 'bag', humanoid_messages(robot))


def replay_live(robot, settings, messages, columns):
    """Do what the node does, in the order of the messages."""
    assembler, estimator = SampleAssembler(robot, settings), build_estimator(settings, robot)
    checks, counts, estimates = ReadingChecks(robot), Counter(), []
    for topic, *_ in messages:
        k, name = counts[topic], topic.removeprefix('/ft/')
        counts[topic] += 1
        stamp = START + 5 * k * MS
        if topic == '/joint_states':
            arrays = (columns[key][k] for key in 'qve')
            sample = assembler.push_joints(0, stamp, robot.joint_names, *arrays)
            if sample is not None:
                step, estimate = estimator.step(sample)
                failing = checks.at(sample.stamp_ns, checks.known.changes(sample)[0])
                estimates.append(checks.marked(estimate, step.plan, failing))
                if window := checks.add(sample):
                    checks.judge(window)
        elif topic == '/imu/head':
            assembler.push_imu(0, stamp, columns['w'][k], columns['a'][k])
        else:
            assembler.push_ft(SETTINGS['ft_sensors'].index(name), stamp, columns[name][k])
    return estimates


def beyond_range(columns):
    columns['foot_sensor'][100:150] *= 10.0


def in_g(columns):
    columns['w'] *= 0.1
    columns['a'][60:160] /= 9.81


def in_degrees(columns):
    columns['q'][60:160] *= 180.0 / np.pi


def spike(columns):
    """Between missing readings."""
    columns['arm_sensor'][130, 2] += 2000.0
    columns['arm_sensor'][[127, 128, 129, 131]] = np.nan


@pytest.mark.parametrize(
    ('delay_ms', 'fault'),
    [(0.0, None), (8.0, None), (0.0, beyond_range), (0.0, in_g), (0.0, in_degrees), (0.0, spike)],
)
def test_replay_equals_the_node_with_messages_in_time(tmp_path, delay_ms, fault):
    """Also where they were recorded after the joint state of their stamp."""
    settings = EstimatorSettings.from_dict(SETTINGS | {'ft.foot_sensor.range': [50.0] * 6})
    robot = build_robot(settings, nested_humanoid_urdf())
    columns = humanoid_columns(robot, 240 if fault else 60)
    if fault:
        fault(columns)
    messages = humanoid_messages(robot, delay_ms=delay_ms, columns=columns)
    replay = run(open_log(write_bag(tmp_path / 'bag', messages), robot, settings), robot, settings)
    live = replay_live(robot, settings, humanoid_messages(robot, columns=columns), columns)
    late = {one.subject for one in replay.findings if one.code == 'late_message'}
    assert late == (set(SETTINGS['ft_sensors']) if delay_ms else set())
    assert len(live) == len(replay.recording.samples) == len(columns['t'])
    assert np.isfinite(replay.estimate.torques[-1]).all()
    for name in WrenchEstimate._fields:
        if name == 'contacts':
            continue
        wanted, found = (
            np.array([getattr(one, name) for one in live]),
            getattr(replay.estimate, name),
        )
        if wanted.dtype == float:
            atol = BATCH_ROUND_OFF * np.nanmax(np.abs(wanted))
            np.testing.assert_allclose(found, wanted, rtol=0.0, atol=atol)
        else:
            np.testing.assert_array_equal(found, wanted)
    doubtful = (replay.estimate.contact_quality & Quality.DOUBTFUL != 0).any(axis=1)
    assert doubtful.any() == (fault in (in_g, in_degrees, spike)) and not doubtful.all()


def read_bag(path):
    """Return the messages of each topic that the node would publish."""
    with BagReader(path) as reader:
        return {
            name.removeprefix('/wrench_estimator/'): [
                STORE.deserialize_cdr(m.data, topic.type) for m in reader.messages([name])
            ]
            for name, topic in reader.topics.items()
        }


def test_written_bag_holds_what_the_node_publishes(tmp_path, robot, bag):
    """Deviations at their rate, and wrenches inside the robot."""
    contacts, out = SETTINGS['contacts'], tmp_path / 'out'
    settings = EstimatorSettings.from_dict(SETTINGS | {
        'outputs.deviations_rate': 50.0, 'outputs.internal_wrench_joints': ['elbow', 'knee'],
        'outputs.net_wrench_links': ['shank', 'foot'],
    })  # fmt: skip
    report = replay_bag(bag, settings, out=out)
    read, replay = read_bag(out), run(open_log(bag, robot, settings), robot, settings)
    estimate, samples = replay.estimate, replay.recording.samples
    rows = np.arange(0, 60, 4)
    known = int(np.isfinite(estimate.wrenches[:, 0]).all(axis=1).sum())
    assert 0 < known < 60
    inside = {f'internal_wrench/{joint}' for joint in ('elbow', 'knee')} | {
        f'net_wrench/{link}' for link in ('shank', 'foot')
    }
    assert inside < read.keys()
    every = 'external_wrenches', 'joint_torques', 'external_joint_torques', 'quality'
    deviations = 'external_wrench', 'joint_torque', 'external_joint_torque', 'residual'
    assert {name: len(read[name]) for name in read.keys() - inside} == {
        **dict.fromkeys(every, 60),
        **{f'{name}_deviations': len(rows) for name in deviations},
        **{f'external_wrench/{contact}': known for contact in contacts},
        **{f'residual/{submodel.name}': known for submodel in robot.submodels},
        **{f'ft_offset/{sensor}': 1 for sensor in SETTINGS['ft_sensors']},
    }
    message = read['external_wrenches'][-1]
    assert message.joint_names == contacts
    assert message.wrench[2].force.x == estimate.wrenches[-1, 2, 0]
    stamp = read['external_wrench/sole'][-1].header.stamp
    assert stamp.sec * 10**9 + stamp.nanosec == samples.stamp_ns[-1]
    with BagReader(out) as reader:
        torques = reader.messages(['/wrench_estimator/joint_torques'])
        np.testing.assert_array_equal([m.recorded_ns for m in torques], samples.stamp_ns)
    assert tuple(read['joint_torques'][-1].name) == robot.joint_names
    assert read['quality'][0].name[2] == f'external_wrench/{contacts[2]}'
    for name, wanted in (('joint_torques', estimate.torques), ('quality', estimate.quality)):
        np.testing.assert_array_equal([message.effort for message in read[name]], wanted)
    message = read['ft_offset/foot_sensor'][0]
    assert message.wrench.torque.z == SETTINGS['ft.foot_sensor.offset'][5]
    found = with_deviations(replay, rows).deviations
    noise = stream_noise(settings, robot, replay.recording.rates).model
    wanted = Uncertainty(build_estimator(settings, robot), noise).of(samples[rows[-1]])
    for name in ('wrenches', 'torques', 'external_torques', 'residuals'):
        np.testing.assert_array_equal(getattr(found, name)[-1], getattr(wanted, name))
    # The filters are not filled yet.
    assert np.isnan(found.torques[0]).all() and np.isfinite(found.torques[-1]).all()
    message = read['external_wrench_deviations'][-1]
    assert message.joint_names == contacts
    assert message.wrench[1].torque.z == found.wrenches[-1, 1, 5] > 0.0
    np.testing.assert_array_equal(read['joint_torque_deviations'][-1].effort, found.torques[-1])
    assert [through.joint for through in report.through] == ['elbow', 'knee']
    assert [one.link for one in report.net] == ['shank', 'foot']
    net = InternalWrenches(build_estimator(settings, robot)).net(samples, estimate)
    wanted = net[np.isfinite(net).all(axis=(1, 2)), robot.link_names.index('foot')]
    assert 0 < report.net[1].n_samples == len(wanted)
    np.testing.assert_allclose(report.net[1].mean, wanted.mean(axis=0), rtol=BATCH_ROUND_OFF)
    written = [[m.wrench.force.x, m.wrench.torque.z] for m in read['net_wrench/foot']]
    np.testing.assert_array_equal(written, wanted[:, [0, 5]])


def test_interrupted_replay_leaves_no_bag(tmp_path, robot, settings, bag):
    def interrupt(stage, done):
        if stage == 'writing':
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replay(robot, bag, settings, out=tmp_path / 'out', progress=interrupt)
    assert not (tmp_path / 'out').exists()


def test_bag_that_does_not_fit_is_refused(tmp_path, robot, settings, bag):
    for name, value, error in (
        ('ft.leg_sensor.topic', 'ft/legs', NameNotFound),
        ('joint_states.topics', ['/ft/leg_sensor'], LogError),
        ('ft.leg_sensor.frame_id', 'shank', LogError),
    ):
        with pytest.raises(error):
            open_log(bag, robot, EstimatorSettings.from_dict({**SETTINGS, name: value}))
    for options in ({'time_range': TimeRange(5.0, 6.0)}, {'out': tmp_path}):
        with pytest.raises(LogError):
            replay_bag(bag, settings, **options)


# ---- Findings ----------------------------------------------------------------------------------


def test_inconsistent_sensors_are_found(rng):
    given = {'imus': ['head', 'thigh'], 'contacts': ['root'], 'ft_sensors': SETTINGS['ft_sensors']}
    settings = EstimatorSettings.from_dict(given)
    robot = build_robot(settings, nested_humanoid_urdf())
    readings, touch = ConsistentReadings(robot), {'root': np.array([30.0, -20.0, 10.0, 2, -1, 3])}
    samples = SampleBatch.stack([
        readings.sample(random_motion(robot, rng), touch)[0]._replace(stamp_ns=k * 10**9)
        for k in range(1, 21)
    ])  # fmt: skip
    for values in (samples.proper_accelerations, samples.angular_velocities):
        values[:, 1] *= -1.0
    samples.ft_readings[:, 0, :3] += 50.0
    statistics = SampleAssembler(robot, settings).statistics()
    report = replay_bag(Log(samples, 1_000_000_000, statistics), settings)
    assert {('fault', 'thigh'), ('weight', 'upper_arm')} <= codes(report)


# ---- Touches ----------------------------------------------------------------------------------


SOLE = {'kind': 'surface', 'friction': 0.6, 'size': [0.2, 0.1], 'point': [0.0, 0.0, -0.01]}
SOLE |= {'direction': [0.6, 0.0, 0.8]}


def test_contacts_that_push_are_replayed_with_their_normals(tmp_path, robot):
    """A sole by configuration and a shank by its poses; the bag has the centre of pressure."""
    settings = EstimatorSettings.from_dict(
        SETTINGS
        | {'contact': {'sole': SOLE}, 'touch_kind': 'friction_cone', 'touch_friction': 0.3}
    )
    turn, at = (0.0, 0.6, 0.0, 0.8), (0.0, 0.1, 0.2)
    messages = humanoid_messages(robot) + [
        sent('/contact_poses', pose, START + ms * MS, 'shank', at, turn)
        for ms in range(100, 300, 10)
    ]
    bag = write_bag(tmp_path / 'bag', sorted(messages, key=lambda message: message[2]))
    replay_bag(bag, settings, out=tmp_path / 'out')
    replay = run(open_log(bag, robot, settings), robot, settings)
    estimate = replay.estimate
    names = [contact.name for contact in estimate.contacts]
    touch = Contact('shank', 'friction_cone', at, (-0.96, 0.0, -0.28), friction=0.3)
    estimator = build_estimator(settings, robot)
    wanted = estimator.update(replay.recording.samples[40], estimator.with_touches([touch]))
    np.testing.assert_allclose(estimate.wrenches[40], wanted.wrenches, rtol=0.0, atol=1e-3)
    np.testing.assert_array_equal(estimate.limits[40], wanted.limits)
    assert (estimate.limits[:, names.index('shank')] > 0).any()
    row = names.index('sole')
    sole, normal, origin = estimate.contacts[row], np.array(SOLE['direction']), SOLE['point']
    forces, moments = np.split(estimate.wrenches[:, row], 2, axis=1)
    pressed = forces @ normal > 5.0
    assert 5 < pressed.sum() < 60 and (estimate.limits[~pressed, row] > 0).any()
    found = read_bag(tmp_path / 'out')['center_of_pressure/sole']
    assert len(found) == pressed.sum()
    for message, force, moment in zip(found, forces[pressed], moments[pressed], strict=True):
        assert message.header.frame_id == 'sole'
        cop = np.array([message.point.x, message.point.y, message.point.z])
        about = moment - np.cross(cop, force)
        # Only a moment about the normal is left; it lies in the plane, and in the rectangle.
        np.testing.assert_allclose(np.cross(about, normal), 0.0, atol=1e-9)
        local = rotation_to(sole.direction).T @ (cop - origin)
        assert abs(local[2]) < 1e-12 and (np.abs(local[:2]) < [0.1 + 1e-4, 0.05 + 1e-4]).all()


def test_touch_in_place_of_a_sole_has_no_centre_of_pressure(tmp_path, robot):
    """A node has none then, as it is not known to be flat."""
    settings = EstimatorSettings.from_dict(SETTINGS | {'contact': {'sole': SOLE}})
    messages = humanoid_messages(robot) + [
        sent('/contacts', point, START + ms * MS, 'sole', (0.0, 0.0, 0.0))
        for ms in range(0, 1000, 10)
    ]
    bag = write_bag(tmp_path / 'bag', sorted(messages, key=lambda message: message[2]))
    replay_bag(bag, settings, out=tmp_path / 'out')
    found = read_bag(tmp_path / 'out')
    assert not found.get('center_of_pressure/sole')
    assert len(found['external_wrench/sole']) > 40


AT_FOOT = (0.1, 0.0, 0.0)


def test_samples_are_estimated_with_the_touches_of_their_time(tmp_path, robot):
    """The shank is touched at a moving point from 100 to 150 ms, the foot once."""
    touching = {'touch_kind': 'force', 'contact_timeout': 0.02}
    touch_settings = EstimatorSettings.from_dict(SETTINGS | touching)
    places = [(ms, 'shank', (0.0, 1e-4 * ms, 0.2)) for ms in range(100, 151, 10)]
    messages = humanoid_messages(robot) + [
        sent('/contacts', point, START + ms * MS, *place)
        for ms, *place in (*places, (120, 'foot', AT_FOOT))
    ]
    touched = write_bag(tmp_path / 'touched', sorted(messages, key=lambda message: message[2]))
    replay = run(open_log(touched, robot, touch_settings), robot, touch_settings)
    estimate, samples = replay.estimate, replay.recording.samples
    defaults = list(SETTINGS['contacts'])
    names = [contact.name for contact in estimate.contacts]
    there = (estimate.contact_quality & Quality.ABSENT) == 0
    ms = (samples.stamp_ns - START) / MS
    assert there[:, : len(defaults)].all()
    np.testing.assert_array_equal(there[:, names.index('shank')], (ms >= 100) & (ms <= 170))
    np.testing.assert_array_equal(there[:, names.index('foot')], (ms >= 120) & (ms <= 140))
    estimator, taking = build_estimator(touch_settings, robot), []
    for k, now in enumerate(ms.tolist()):
        y = 1e-4 * min(150, 10 * (now // 10))
        touches = [Contact('shank', 'force', (0.0, y, 0.2))] * (100 <= now <= 170)
        touches += [Contact('foot', 'force', AT_FOOT)] * (120 <= now <= 140)
        wanted = estimator.update(samples[k], estimator.with_touches(touches))
        rows = [names.index(contact.name) for contact in wanted.contacts]
        scale = np.nanmax(np.abs(wanted.wrenches), initial=1.0)
        np.testing.assert_allclose(
            estimate.wrenches[k, rows], wanted.wrenches, rtol=0.0, atol=BATCH_ROUND_OFF * scale
        )
        np.testing.assert_array_equal(estimate.contact_quality[k, rows], wanted.contact_quality)
        np.testing.assert_array_equal(estimate.torque_quality[k], wanted.torque_quality)
        taking.append({
            contact.name
            for contact, quality in zip(wanted.contacts, wanted.contact_quality, strict=True)
            if not quality & Quality.DROPPED
        })  # fmt: skip
    situations = find_situations(replay)
    assert len({one.contacts for one in situations}) == 3
    for one in situations:
        assert all(taking[k] == {contact.name for contact in one.contacts} for k in one.rows)
    # The bag names the contacts that are there.
    replay_bag(touched, touch_settings, out=tmp_path / 'out')
    read, found = read_bag(tmp_path / 'out'), set()
    for wrenches, quality in zip(read['external_wrenches'], read['quality'], strict=True):
        known = [n.removeprefix('external_wrench/') for n in quality.name if '_wrench/' in n]
        assert known == wrenches.joint_names
        assert not (quality.effort.astype(int) & Quality.ABSENT).any()
        found.add(tuple(known))
    assert found == {(*defaults, *more) for more in ((), ('shank',), ('shank', 'foot'))}


def test_replay_in_pieces_is_that_of_the_whole_log(tmp_path, monkeypatch, robot):
    """With a sensor that freezes and touches across the pieces; also with few samples kept."""
    settings = EstimatorSettings.from_dict(SETTINGS | {
        'touch_kind': 'force', 'contact_timeout': 0.02, 'outputs.deviations_rate': 50.0,
        'outputs.net_wrench_links': ['shank'],
    })  # fmt: skip
    messages = humanoid_messages(robot, 400)
    reading = next(m for m in messages if m[0] == '/ft/arm_sensor' and m[2] > START + 900 * MS)
    for k, (topic, kind, stamp, data) in enumerate(messages):
        if topic == '/ft/arm_sensor' and 0 <= stamp - reading[2] < 400 * MS:
            # The stamp of its own, the numbers of one.
            messages[k] = topic, kind, stamp, data[:12] + reading[3][12:]
    touches = [sent('/contacts', point, START + ms * MS, 'shank', (0.0, 0.0, 0.2))
               for ms in range(700, 1400, 10)]  # fmt: skip
    bag = write_bag(tmp_path / 'bag', sorted(messages + touches, key=lambda message: message[2]))
    options = {'deviations_rate': 50.0}
    wanted = replay(robot, bag, settings, out=tmp_path / 'whole', **options)
    assert wanted.recording.frozen.any() and wanted.clean is not wanted.estimate
    monkeypatch.setattr('inertial_estimation.logs.replay.PIECE', 0.3)
    monkeypatch.setattr('inertial_estimation.logs.replay.MAX_SAMPLES', 10)
    monkeypatch.setattr('inertial_estimation.logs.array_samples.HELD_NS', 20 * MS)
    monkeypatch.setattr('inertial_estimation.logs.bag.PIECE', 100)
    found = replay(robot, bag, settings, out=tmp_path / 'pieces', whole=False, **options)
    rows = np.searchsorted(wanted.times, found.times)
    assert len(rows) < len(wanted.times) == 400
    for name in ('estimate', 'clean'):
        one, other = getattr(found, name), getattr(wanted, name).at(rows)
        assert [c.name for c in one.contacts] == [c.name for c in other.contacts]
        for kind in ('wrenches', 'torques', 'external_torques', 'residuals'):
            scale = np.nanmax(np.abs(getattr(other, kind)))
            np.testing.assert_allclose(
                getattr(one, kind), getattr(other, kind), rtol=0.0, atol=PIECES * scale
            )
        np.testing.assert_array_equal(one.quality, other.quality)
    assert_alike(found.summary, wanted.summary)
    one, other = read_bag(tmp_path / 'pieces'), read_bag(tmp_path / 'whole')
    assert {name: len(part) for name, part in one.items()} == {
        name: len(part) for name, part in other.items()
    }
    scale = np.nanmax(np.abs(wanted.torques))
    for k, message in enumerate(one['joint_torques']):
        np.testing.assert_allclose(
            message.effort, other['joint_torques'][k].effort, rtol=0.0, atol=PIECES * scale
        )


def test_clock_that_is_set_back_in_a_later_piece_is_replayed(tmp_path, monkeypatch, robot):
    """Message by message, as the node does; of the results written before nothing stays."""
    settings = EstimatorSettings.from_dict(SETTINGS)
    again = [(topic, kind, recorded + 10_000 * MS, data)
             for topic, kind, recorded, data in humanoid_messages(robot)]  # fmt: skip
    bag = write_bag(tmp_path / 'bag', humanoid_messages(robot, 300) + again)
    monkeypatch.setattr('inertial_estimation.logs.replay.PIECE', 0.3)
    monkeypatch.setattr('inertial_estimation.logs.bag.PIECE', 100)
    found = replay(robot, bag, settings, out=tmp_path / 'out', whole=False)
    wanted = replay(robot, bag, settings)
    assert found.summary['n_samples'] == len(wanted.times) == 360
    assert {one.code for one in found.findings} >= {'clock'}
    assert len(read_bag(tmp_path / 'out')['joint_torques']) == 360


def assert_alike(one, other):
    """Compare records, their numbers to the round-off of sums in another order."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        one, other = list(one.values()), list(other.values())
    if isinstance(one, list):
        assert len(one) == len(other)
        for a, b in zip(one, other):
            assert_alike(a, b)
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=1e-6, abs=1e-9, nan_ok=True)
    else:
        assert one == other


# ---- The log of a real iCub on one foot --------------------------------------------------------


@pytest.fixture(scope='module')
def yoga():
    """Return a function that replays the log with offsets from some source."""
    bag = DATA / 'icub_yoga_left' / 'bag'
    if not bag.is_dir():
        pytest.skip('the shared data folder is not beside this checkout')
    settings = EstimatorSettings.from_yaml(REPOSITORY / 'config' / 'icub_yoga_left.yaml')

    def replay(source, offset_range=(13.07, 38.0), time_range=(13.07, 65.64)):
        return replay_bag(
            bag,
            settings,
            str(DATA / 'models' / 'icub_v2_5.urdf'),
            time_range=TimeRange(*time_range),
            offsets=OffsetRequest(source, TimeRange(*offset_range)),
        )

    return replay


@pytest.fixture(scope='module')
def fitted(yoga):
    return yoga('torques')


def test_real_robot_follows_its_own_torques_and_its_weight(fitted):
    torques = {torque.joint: torque for torque in fitted.torques}
    for joint in ('l_hip_pitch', 'l_knee', 'r_hip_pitch', 'r_knee'):
        torque = torques[joint]
        assert torque.n_compared > 2500 and not torque.assumed
        assert torque.error_rms <= 0.5
        assert torque.correlation >= 0.97 or joint == 'r_hip_pitch'
    assert fitted.support.contact == 'l_sole'
    assert fitted.support.weight_n == pytest.approx(324.3, abs=0.1)
    assert abs(fitted.support.relative_error) <= 0.01
    # Half a second each, in spans of ten seconds and what is left.
    assert [one.windows for one in fitted.momentum] == [20] * 5 + [1]


def test_the_frozen_sensor_is_found_with_its_intervals(fitted):
    frozen = {ft.name: ft.frozen_intervals_s for ft in fitted.fts if ft.frozen_intervals_s}
    assert list(frozen) == ['l_leg_ft'] and ('frozen', 'l_leg_ft') in codes(fitted)
    # As the README of the data lists them, in times of that sensor's own first stamp.
    found = np.array(frozen['l_leg_ft']) - 0.028
    for listed in (
        (13.87, 14.47), (14.56, 14.87), (16.75, 17.04), (21.45, 21.66), (25.75, 35.13)
    ):  # fmt: skip
        assert np.abs(found - listed).max(axis=1).min() < 0.02, listed
    second = found[np.argsort(found[:, 0] - found[:, 1])[1]]
    assert 17.94 < second[0] < second[1] < 20.64


def test_samples_that_gave_all_offsets_are_judged(yoga):
    span = (17.5, 20.5)
    found = yoga('model', offset_range=span, time_range=span)
    assert found.judged_s == pytest.approx(3.0, abs=0.05)
    assert all(one.n_samples for one in found.wrenches)


def test_double_support_is_no_range_for_offsets_from_the_model(yoga):
    # Both feet stand until 13 s. Nothing moves before 6 s: only the geometry shows it.
    still, short = (0.5, 6.0), (13.07, 14.5)
    with pytest.raises(LogError):
        yoga('model', offset_range=still, time_range=short)
    with pytest.raises(LogError):
        yoga('model', offset_range=(9.0, 18.0), time_range=short)
    found = yoga('torques', offset_range=still, time_range=short)
    (doubt,) = (one for one in found.findings if one.code == 'second_support')
    assert (doubt.subject, doubt.values['share']) == ('r_sole', 1.0)
    assert doubt.values['change'] < 5.0
    # Of these 1.43 s, 13.87 s to 14.47 s and a short interval; of the log more than 10 s.
    (time,) = (ft.frozen_s for ft in found.fts if ft.frozen_s)
    (frozen,) = (one for one in found.findings if one.code == 'frozen')
    assert 0.6 < time < 0.7
    assert frozen.values['share'] == pytest.approx(time / 1.43, abs=0.02)
