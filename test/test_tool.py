# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Tool, offset and delay from free motion, and ``calibrate tool``: synthetic and real tools."""

import json

import numpy as np
import pinocchio as pin
import pytest
from bag_messages import imu, sent, wrench, write_bag
from scipy.spatial.transform import Rotation
from shared_data import SHARED
from test_in_situ import axia

from inertial_estimation.calibration.calibration_file import SensorCalibration, read, write
from inertial_estimation.calibration.tool import ToolMotion, fit_tool
from inertial_estimation.cli import main
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.findings import Level
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.replay import replay
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.representations import net_wrench
from inertial_estimation.model.spatial import hat

NTNU = SHARED / 'data' / 'ntnu_fts_imu'
G = 9.80665
OFFSET = np.array([9.0, -1.0, 10.0, 0.4, -0.7, -0.2])
BODY = np.array([0.93, 0.01, -0.02, 0.041, 4e-3, 2e-4, 5e-3, -1e-4, 3e-4, 3e-3])
"""m, m c, inertia about the sensor's origin."""
R_SENSOR_IMU = np.array([[0.0, -1.0, 0.0], [0.0, 0.0, 1.0], [-1.0, 0.0, 0.0]])
RPY = (-np.pi / 2, np.pi / 2, 0.0)
POSE = np.eye(4)
POSE[:3, :3] = R_SENSOR_IMU
POSE[:3, 3] = [0.02, -0.03, 0.05]
PUBLISHED = np.array([9.07633, -1.01814, 9.98482, 0.432449, -0.692162, -0.156746])
"""Force and moment bias by the author of the data [N, Nm]."""
NOISE = np.repeat([0.1, 0.005], 3)
START = 1_700_000_000_000_000_000
# Splines through 250 Hz samples of a vibration of 9 Hz, once differentiated.
NEAR = 1e-5
FROZEN = 2e-3
"""Relative change by a reading that stays for a seventh of a second."""


def angles(times):
    """Return three angles of a swing with their first two derivatives, (3, n, 3)."""
    found = np.zeros((3, len(times), 3))
    for axis, (size, rate, phase) in enumerate(((0.5, 3.1, 2), (1.1, 1.7, 1), (0.8, 2.3, 0))):
        # A quick vibration beside the swing shows a delay.
        for part, speed in ((size, rate), (0.01, 54.0 - 7.0 * axis)):
            found[0, :, axis] += part * np.sin(speed * times + phase)
            found[1, :, axis] += part * speed * np.cos(speed * times + phase)
            found[2, :, axis] -= part * speed**2 * np.sin(speed * times + phase)
    return found


def motion(times):
    """Return proper acceleration of the sensor's origin, angular velocity and acceleration."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelSphericalZYX(), pin.SE3.Identity(), 'swing')
    data, found = model.createData(), []
    for q, v, a in zip(*angles(times)):
        pin.forwardKinematics(model, data, q, v, a)
        found.append(np.array([data.oMi[1].rotation[2], data.v[1].angular, data.a[1].angular]))
    up, omega, alpha = np.swapaxes(found, 0, 1)
    shake = 0.5 * np.stack([np.sin(35.0 * times), np.cos(51.0 * times), np.sin(28.0 * times)], 1)
    return G * up + shake, omega, alpha


def recorded(seconds=8.0, delay=0.0063, direction=1):
    """Return the readings of a tool with an IMU at `POSE`, at 700 and 250 Hz."""
    ft_times, imu_times = np.arange(0.0, seconds, 1 / 700), np.arange(0.001, seconds, 1 / 250)
    proper, omega, alpha = motion(ft_times)
    readings = OFFSET - direction * net_wrench(BODY, omega, np.hstack([proper, alpha]))
    proper, omega, alpha = motion(imu_times - delay)
    place = POSE[:3, 3]
    there = proper + np.cross(alpha, place) + np.cross(omega, np.cross(omega, place))
    return ToolMotion(
        ft_times, readings, imu_times, there @ R_SENSOR_IMU, omega @ R_SENSOR_IMU, POSE
    )


@pytest.mark.parametrize(('delay', 'direction'), [(-0.0117, -1), (0.0, 1)])
def test_without_noise_all_is_found(direction, delay):
    given = recorded(delay=delay, direction=direction)
    fit = fit_tool(given, inertia=True, direction=direction)
    assert fit.mass == pytest.approx(BODY[0], rel=NEAR)
    np.testing.assert_allclose(fit.centre, BODY[1:4] / BODY[0], atol=NEAR * 0.05)
    np.testing.assert_allclose(fit.inertia, BODY[4:], atol=NEAR * 0.05)
    np.testing.assert_allclose(fit.offset, OFFSET, atol=NEAR * 10.0)
    # A thousandth of the time between two samples of the IMU.
    assert fit.delay == pytest.approx(delay, abs=4e-6)
    assert fit.misalignment < NEAR and fit.used.all()


def test_deviations_are_as_large_as_errors(rng):
    given = recorded(seconds=3.0)
    truth = np.concatenate([BODY[:1], BODY[1:4] / BODY[0], BODY[4:], OFFSET, [0.0063]])
    ratios = []
    for _ in range(8):
        noise = [rng.normal(size=one.shape) for one in given[1:2] + given[3:5]]
        fit = fit_tool(given._replace(
            readings=given.readings + NOISE * noise[0],
            accelerations=given.accelerations + 0.05 * noise[1],
            angular_velocities=given.angular_velocities + 0.003 * noise[2],
        ), inertia=True)  # fmt: skip
        found = np.hstack([fit.mass, fit.centre, fit.inertia, fit.offset, fit.delay])
        deviations = np.hstack([
            fit.mass_deviation, fit.centre_deviations, fit.inertia_deviations,
            fit.offset_deviations, fit.delay_deviation,
        ])  # fmt: skip
        ratios.append((found - truth) / deviations)
    # 136 ratios, of deviations that ten blocks determine to a third.
    assert 0.6 < np.sqrt(np.mean(np.square(ratios))) < 1.6


def test_rest_determines_no_delay(rng):
    times = np.arange(0.0, 40.0, 0.01)
    slow = np.stack([np.sin(0.1 * times), np.cos(0.1 * times), 0.3 * np.sin(0.05 * times)], 1)
    proper = G * slow / np.linalg.norm(slow, axis=1)[:, None]
    still = np.zeros_like(proper)
    readings = OFFSET - net_wrench(BODY, still, np.hstack([proper, still]))
    readings += 5.0 * NOISE * rng.normal(size=readings.shape)
    fit = fit_tool(ToolMotion(times, readings, times, proper), max_delay=0.002)
    assert fit.delay == 0.0 and fit.delay_deviation == np.inf


def test_wrong_axes_and_insufficient_logs_are_refused():
    given = recorded()
    level = np.tile([[0.0, 0.0, G]], (len(given.imu_times), 1))
    times = given.ft_times.copy()
    times[:5] -= 1e6
    late = given._replace(ft_times=times)
    for wrong in late, given._replace(accelerations=level, angular_velocities=None):
        with pytest.raises(LogError):
            fit_tool(wrong)
    # By less or by more than a right angle: `--accept` may write the offset all the same.
    for angle, code in ((1.0, 'residual'), (2.8, 'inertia')):
        R = Rotation.from_rotvec(np.array([1, 1, 0]) * angle / np.sqrt(2.0)).as_matrix()
        turned = given._replace(
            accelerations=given.accelerations @ R, angular_velocities=given.angular_velocities @ R
        )
        errors = [one for one in fit_tool(turned).findings('ft') if one.level >= Level.ERROR]
        assert code in {one.code for one in errors}


def pushed(given, rng, share, seconds=1.0):
    """Return readings with a push, as large as the tool is heavy, in a share of each second."""
    number = (given.ft_times // seconds).astype(int)
    force = rng.normal(0.0, 5.0, (number[-1] + 1, 3))[number]
    push = np.hstack([force, np.cross([0.0, 0.0, 0.1], force)])
    touched = given.ft_times % seconds < share * seconds
    return given._replace(readings=given.readings + push * touched[:, None])


def errors_of(fit):
    return {one.code for one in fit.findings('wrist') if one.level == Level.ERROR}


@pytest.mark.parametrize('share', [0.1, 0.3])
def test_touches_are_left_out(rng, share):
    given = recorded()
    noise = NOISE * rng.normal(size=given.readings.shape)
    fit = fit_tool(pushed(given._replace(readings=given.readings + noise), rng, share))
    assert not errors_of(fit) and share < (~fit.used).mean() < share + 0.12
    assert abs(fit.mass - BODY[0]) < 3.0 * fit.mass_deviation + 1e-3
    assert fit.mass_deviation < 0.05 * BODY[0]


def test_contact_for_half_of_the_time_is_an_error(rng):
    assert errors_of(fit_tool(pushed(recorded(), rng, 0.5)))


@pytest.mark.parametrize('axis', range(3))
def test_gain_error_of_an_axis_is_within_the_deviations(rng, axis):
    given = recorded()
    readings = given.readings + NOISE * rng.normal(size=given.readings.shape)
    readings[:, axis] *= 1.08
    fit = fit_tool(given._replace(readings=readings), inertia=True)
    assert fit.used.all() and not errors_of(fit)
    errors = np.abs(fit.offset - np.where(np.arange(6) == axis, 1.08, 1.0) * OFFSET)
    # Forces of one axis more than the others make 2.7 % of the mass.
    assert abs(fit.mass - BODY[0]) < 2.0 * fit.mass_deviation < 0.2 * BODY[0]
    assert (errors < 3.0 * fit.offset_deviations).all()


@pytest.mark.skipif(not NTNU.is_dir(), reason='no real log')
def test_axes_of_a_real_sensor_that_disagree():
    """60 poses, held for 1 s each; the axes weigh 1.17, 1.16 and 1.25 kg, the authors 1.239 kg."""
    wrenches, accelerations = axia('poses60')
    times = np.arange(0.0, 60.0, 0.02)
    pose = times.astype(int)
    fit = fit_tool(ToolMotion(times, wrenches[pose], times, accelerations[pose]), max_delay=0.0)
    assert fit.used.all() and not errors_of(fit)
    for kilograms in 1.17, 1.25:
        assert abs(fit.mass - kilograms) < 4.0 * fit.mass_deviation < 0.2


@pytest.mark.parametrize('run', ['1-baseline', '2-vibrations'])
def test_free_motion_of_a_real_tool(run):
    if not NTNU.is_dir():
        pytest.skip('no real log')
    wrenches, readings = (
        np.array(np.genfromtxt(NTNU / f'{run}_{name}.csv', delimiter=',', names=True).tolist())
        for name in ('wrench', 'accel')
    )
    start, pose = wrenches[0, 0], np.eye(4)
    pose[:3, :3] = R_SENSOR_IMU
    given = ToolMotion(
        (wrenches[:, 0] - start) * 1e-6, wrenches[:, 1:], (readings[:, 0] - start) * 1e-6,
        (readings[:, 1:] - [-0.00366, 0.00885, 0.07711]) * G, None, pose,
    )  # fmt: skip
    fit = fit_tool(given)
    assert fit.mass == pytest.approx(0.9323, abs=0.005)
    np.testing.assert_allclose(fit.centre, [0.0, 0.0, 0.044], atol=5e-4)
    # The first reading of each run, at rest, is off by 0.1 to 0.2 N from the author's poses: the
    # sensor drifted meanwhile; its IMU is turned by 0.8 degrees, 0.13 N of this weight.
    np.testing.assert_allclose(fit.offset[:3], PUBLISHED[:3], atol=0.25)
    np.testing.assert_allclose(fit.offset[3:], PUBLISHED[3:], atol=0.01)
    assert 0.0055 < fit.delay < 0.0075 and fit.delay_deviation < 0.0005
    assert fit.misalignment < np.radians(1.0)
    assert (fit.rms[:3] < fit.rms_without_delay[:3]).all()
    assert (~fit.used).sum() == 0 if run == '1-baseline' else 0 < (~fit.used).sum() < 300
    # Far beyond the limit the best delay is at it in the first rounds, not in the last one.
    late = fit_tool(given._replace(imu_times=given.imu_times + 1.0))
    assert any(one.level >= Level.ERROR for one in late.findings('ft'))


URDF = """
<robot name="arm">
  <link name="flange"/> <link name="tool"/> <link name="imu"/>
  <joint name="wrist_joint" type="fixed"><parent link="flange"/><child link="tool"/></joint>
  <joint name="imu_joint" type="fixed"><parent link="tool"/><child link="imu"/>
    <origin xyz="{}" rpy="{}"/></joint>
  <sensor name="wrist" type="force_torque"><parent joint="wrist_joint"/>
    <force_torque><frame>child</frame><measure_direction>child_to_parent</measure_direction>
    </force_torque></sensor>
</robot>
""".format(' '.join(map(str, POSE[:3, 3])), ' '.join(map(str, RPY)))


def test_tool_in_a_bag(tmp_path, capsys):
    """The sensor freezes for 1/7 s; the matrix of its file is used and stays."""
    pytest.importorskip('rosbags')
    given = recorded()
    given.readings[3000:3100] = given.readings[3000]
    messages = [
        sent('/ft', wrench, START + round(t * 1e9), 'ft', reading / 2.0)
        for t, reading in zip(given.ft_times, given.readings)
    ]
    motion = zip(given.imu_times, given.angular_velocities, given.accelerations)
    messages += [sent('/imu', imu, START + round(t * 1e9), 'imu', *one) for t, *one in motion]
    bag = write_bag(tmp_path / 'bag', sorted(messages, key=lambda message: message[2]))
    urdf, config, saved, out = (
        tmp_path / name for name in ('arm.urdf', 'node.yaml', 'arm.yaml', 'tool.json')
    )
    urdf.write_text(URDF)
    node = {'imus': ['imu'], 'ft.wrist.topic': '/ft', 'ft.wrist.frame_id': 'ft',
            'imu.imu.topic': '/imu', 'imu.imu.frame_id': 'imu'}  # fmt: skip
    config.write_text(json.dumps({'/**': {'ros__parameters': node}}))
    write(saved, 'arm', {'wrist': SensorCalibration(2.0 * np.eye(6))})

    def call(*more, part=''):
        options = '--robot', urdf, '--config', config, '--ft', 'wrist', '--imu', 'imu', *more
        return main(['calibrate', 'tool', f'{bag}{part}', *map(str, options)])

    assert call('--out', saved) == 1
    assert call('--out', saved, '--calibration', saved, '--inertia', '--json', out) == 0
    found, sensor = json.loads(out.read_text())['sensors']['wrist'], read(saved)[1]['wrist']
    assert found['mass'] == pytest.approx(BODY[0], rel=FROZEN)
    assert found['delay'] == pytest.approx(0.0063, abs=1e-4)
    np.testing.assert_allclose(found['offset'], OFFSET, atol=FROZEN * 10.0)
    np.testing.assert_array_equal(sensor.offset, found['offset'])
    np.testing.assert_array_equal(sensor.matrix, 2.0 * np.eye(6))
    # Contact for half of the time.
    given = pushed(given, np.random.default_rng(0), 0.5)
    touched, written = tmp_path / 'touched', tmp_path / 'touched.yaml'
    readings = zip(given.ft_times, given.readings)
    messages = [
        sent('/ft', wrench, START + round(t * 1e9), 'ft', reading) for t, reading in readings
    ] + [message for message in messages if message[0] == '/imu']
    write_bag(touched, sorted(messages, key=lambda message: message[2]))
    options = ('--robot', urdf, '--config', config, '--ft', 'wrist', '--imu', 'imu')
    again = ['calibrate', 'tool', str(touched), *map(str, options), '--out', str(written)]
    assert main(again) == 1 and not written.exists()
    assert main([*again, '--accept']) == 0
    assert 'accepted' in str(read(written)[1]['wrist'].provenance[-1].notes)
    # Errors name options and topics.
    capsys.readouterr()
    for more, part, named in (
        (('--max-delay', '0.003'), '', '--max-delay'),
        ((), '@20:30', '/ft'),
    ):
        assert call(*more, part=part) == 1 and named in capsys.readouterr().err
    urdf.write_text(URDF.replace('child_to_parent', 'parent_to_child'))
    assert call('--max-delay', '0') == 1 and 'kg' in capsys.readouterr().err


def tool_urdf(arm=''):
    """Return the URDF with the inertia of the tool, on a link or on an arm."""
    mass, moment, (xx, xy, yy, xz, yz, zz) = BODY[0], BODY[1:4], BODY[4:]
    about = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) + hat(moment) @ hat(moment) / mass
    inertia = ' '.join(
        f'i{"xyz"[i]}{"xyz"[j]}="{about[i, j]}"' for i in range(3) for j in range(i, 3)
    )
    origin = ' '.join(map(str, moment / mass))
    body = (
        f'<link name="tool"><inertial><origin xyz="{origin}"/><mass value="{mass}"/>'
        f'<inertia {inertia}/></inertial></link>'
    )
    return URDF.replace('<link name="tool"/>', body).replace('<link name="flange"/>', f"""
        <link name="flange"/>{arm}""")  # fmt: skip


ARM = """<link name="base"/><joint name="turn" type="continuous"><parent link="base"/>
  <child link="flange"/></joint>"""


@pytest.mark.parametrize('source', ['bag', 'assumed', 'table'])
def test_wrist_sensor_and_imu_are_replayed_without_joint_states(tmp_path, source):
    """The messages of the FT sensor make the samples; joints of an arm may be assumed."""
    pytest.importorskip('rosbags')
    given, push = recorded(seconds=1.0, delay=0.0), np.array([3.0, -2.0, 5.0, 0.1, 0.2, -0.3])
    given.readings[:] += push
    settings = {
        'imus': ['imu'], 'contacts': ['tool', 'flange'], 'ft.wrist.offset': OFFSET.tolist(),
        'ft.wrist.frame_id': 'ft', 'imu.imu.frame_id': 'imu', 'filter.delay': 0.05,
    }  # fmt: skip
    if source == 'assumed':
        settings |= {'joint_states.assumed': ['turn'], 'joint_states.assumed_positions': [0.3]}
    settings = EstimatorSettings.from_dict(settings)
    robot = build_robot(settings, tool_urdf(ARM if source == 'assumed' else ''))
    motion = given.angular_velocities, given.accelerations
    times = given.imu_times if source == 'table' else given.ft_times
    if source == 'table':
        ft = np.stack([np.interp(times, given.ft_times, one) for one in given.readings.T], axis=1)
        np.savez(tmp_path / 't.npz', t=1.0 + times, ft=ft, w=motion[0], a=motion[1])
        signals = {'time': 't', 'ft_sensors': {'wrist': 'ft'},
                   'imus': {'imu': {'gyroscope': 'w', 'accelerometer': 'a'}}}  # fmt: skip
        (tmp_path / 'layout.yaml').write_text(json.dumps({'log': signals}))
        layout = IdentifySettings.from_yaml(tmp_path / 'layout.yaml').log
        log = open_log(tmp_path / 't.npz', robot, settings, layout=layout)
    else:
        stamps = [(START + np.round(t * 1e9).astype(int)).tolist() for t in given[::2][:2]]
        messages = [
            sent('/ft/wrist', wrench, at, 'ft', one) for at, one in zip(stamps[0], given.readings)
        ] + [sent('/imu/imu', imu, at, 'imu', *one) for at, *one in zip(stamps[1], *motion)]
        bag = write_bag(tmp_path / 'bag', sorted(messages, key=lambda message: message[2]))
        log = open_log(bag, robot, settings)
    found = replay(robot, log, settings)
    wrenches = found.estimate.wrenches[:, 0]
    known = np.isfinite(wrenches).all(axis=1)
    # The window of the filter, and its delay.
    assert 0.85 * len(times) < known.sum() < len(times)
    np.testing.assert_allclose(wrenches[known].mean(axis=0), push, atol=0.02)
    # Angular accelerations of vibrations of 9 Hz, from a window of 0.1 s.
    assert (wrenches[known].std(axis=0) < np.repeat([0.2, 0.1], 3)).all()
    assert np.isfinite(found.deviations.wrenches[-1, 0]).all()
    # Without any reading there is nothing to estimate.
    log.samples.ft_readings[:] = np.nan
    with pytest.raises(LogError):
        replay(robot, log, settings)
