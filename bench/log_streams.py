# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Real and simulated logs as arrays, edits, bags and tables of them, and the time they take."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from resource import RUSAGE_SELF, getrusage
from time import process_time
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore
from scipy.interpolate import make_interp_spline

from bench.report import Table
from inertial_estimation import EstimatorSettings, identify, open_log, replay
from inertial_estimation.arrays import Array
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.logs.bag import BagReader
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.model.configured_robot import build_robot

DATA = Path(__file__).resolve().parents[2] / 'shared' / 'data'
STORE = get_typestore(Stores.ROS2_HUMBLE)
JOINT_STATE, IMU = 'sensor_msgs/msg/JointState', 'sensor_msgs/msg/Imu'
WRENCH = 'geometry_msgs/msg/WrenchStamped'
NS, G = 1_000_000_000, 9.80665
FTS = [f'{side}_{limb}_ft' for limb in ('arm', 'leg', 'foot') for side in 'lr']
IMUS = ['root_link', 'chest', 'head_imu_0', 'l_upper_leg', 'r_upper_leg', 'l_foot', 'r_foot']
ONE_IMU = {
    'contacts': ('l_sole',), 'ft_sensors': FTS, 'imus': IMUS[:1],
    f'imu.{IMUS[0]}.topic': f'/imu/{IMUS[0]}', 'joint_states.velocity_source': 'filter',
    **{f'ft.{name}.topic': f'/ft/{name}' for name in FTS},
}  # fmt: skip
"""Settings for a log of `humanoid_log` with one IMU."""


class Stream(NamedTuple):
    """A topic of a bag, or a column of a table of numbers."""

    seconds: Array
    """Stamps, shape (n,)."""
    values: Array
    """Shape (n, k); of joints position, velocity, effort; of IMUs angular velocity first."""
    type: str = ''
    """Message type; empty: a table."""
    frame: str = ''
    names: tuple[str, ...] = ()
    """Joints."""


Log = dict[str, Stream]


def yoga_log(start: float = 13.5, stop: float = 45.0) -> Log:
    """Return a part of the log of a real iCub that stands on its left foot."""
    log: Log = {}
    with np.load(DATA / 'icub_yoga_left' / 'log.npz') as file:
        origin = min(file[key][0] for key in file if key.startswith('ft/') and key[-2:] == '/t')
        for key in (key[:-2] for key in file if key.endswith('/t')):
            kind, name = key.split('/')
            t = file[f'{key}/t'] - origin
            kept = (t >= start) & (t < stop)
            if kind == 'ft':
                log[f'/icub/ft/{name}'] = Stream(t, file[f'{key}/wrench'], WRENCH, name)
            else:
                columns = ('position', 'velocity', 'torque_robot')
                values = np.hstack([file[f'{key}/{column}'] for column in columns])
                names = tuple(str(joint) for joint in file[f'{key}/names'])
                log[f'/icub/{name}/joint_states'] = Stream(t, values, JOINT_STATE, '', names)
            topic, stream = log.popitem()
            log[topic] = stream._replace(seconds=t[kept], values=stream.values[kept])
    return log


def humanoid_log(seed: int = 0, imus: Sequence[str] = tuple(IMUS), rate: float = 100.0) -> Log:
    """Return a log of a simulated iCub on its left sole: two poses, from 7 s to 20 s motion."""
    rng, text = np.random.default_rng(seed), icub_urdf()
    for name in FTS:  # to read the wrench through their joints
        text = text.replace(
            f'<joint name="{name}_sensor" type="fixed">',
            f'<joint name="{name}_sensor" type="revolute"><axis xyz="0 0 1"/>'
            '<limit lower="-1" upper="1" effort="1" velocity="1"/>',
        )
    model = pin.buildModelFromXML(text, pin.JointModelFreeFlyer())
    data = model.createData()
    joints = [model.getJointId(n) for n in list(model.names)[2:] if not n.endswith('_ft_sensor')]
    fts = [model.getJointId(f'{name}_sensor') for name in FTS]
    rows = np.array([model.joints[j].idx_q for j in joints])
    low, high = model.lowerPositionLimit[rows], model.upperPositionLimit[rows]
    middle = np.clip(
        0.0, np.minimum(low + 0.5, (low + high) / 2), np.maximum(high - 0.5, (low + high) / 2)
    )
    t = np.arange(0.0, 20.0, 1.0 / rate)
    motion = smooth_motion(rng, t, np.append(middle, 0.0))
    axis, weightless = np.array([0.6, 0.8, 0.0]), pin.Force.Zero()
    foot = model.frames[model.getFrameId('l_sole')].parentJoint
    frames = [model.getFrameId(name) for name in imus]
    wrenches, inertial = np.zeros((len(t), len(FTS), 6)), np.zeros((len(t), len(imus), 6))
    for k, (q_k, v_k, a_k) in enumerate(np.swapaxes(motion, 0, 1)):
        q, v, a = pin.neutral(model), np.zeros(model.nv), np.zeros(model.nv)
        q[rows], v[rows - 1], a[rows - 1] = q_k[:-1], v_k[:-1], a_k[:-1]
        q[3:7] = pin.Quaternion(pin.AngleAxis(q_k[-1], axis).matrix()).coeffs()
        v[3:6], a[3:6] = v_k[-1] * axis, a_k[-1] * axis
        forces = pin.StdVec_Force()
        forces.extend([weightless] * model.njoints)
        needed = pin.Force(pin.rnea(model, data, q, v, a, forces)[:6])
        forces[foot] = data.oMi[foot].actInv(data.oMi[1].act(needed))
        pin.rnea(model, data, q, v, a, forces)
        wrenches[k] = [-data.f[j].vector for j in fts]
        pin.forwardKinematics(model, data, q, v, a)
        for s, frame in enumerate(frames):
            up = pin.updateFramePlacement(model, data, frame).rotation[2]
            inertial[k, s, :3] = pin.getFrameVelocity(model, data, frame).angular
            felt = pin.getFrameClassicalAcceleration(model, data, frame).linear
            inertial[k, s, 3:] = felt + 9.81 * up
    wrenches += rng.normal(size=wrenches.shape) * np.repeat([0.15, 0.005], 3)
    inertial += rng.normal(size=inertial.shape) * np.repeat([0.003, 0.03], 3)
    angles = motion[0, :, :-1] + 1e-4 * rng.normal(size=(len(t), len(joints)))
    names = tuple(model.names[j] for j in joints)
    return {
        '/joint_states': Stream(t, angles, JOINT_STATE, '', names),
        **{
            f'/ft/{n}': Stream(t, wrenches[:, k], WRENCH, f'{n}_sensor') for k, n in enumerate(FTS)
        },
        **{f'/imu/{n}': Stream(t, inertial[:, k], IMU, n) for k, n in enumerate(imus)},
    }


def smooth_motion(rng: np.random.Generator, t: Array, middle: Array) -> Array:
    """Return positions, velocities and accelerations, shape (3, n, n_joints)."""
    first, second = 0.2 * rng.choice([-1.0, 1.0], (2, len(middle)))
    ramps = [0.5 - 0.5 * np.cos(np.pi * np.clip(x, 0, 1))[:, None] for x in (t - 3.5, t / 2 - 3.5)]
    q = middle + first + ramps[0] * (second - first)
    for _ in range(3):
        size, phase = rng.uniform(0.03, 0.08, len(middle)), rng.uniform(0, 6, len(middle))
        q = q + ramps[1] * size * np.sin(
            2 * np.pi * t[:, None] * rng.uniform(0.1, 0.8, len(middle)) + phase
        )
    spline = make_interp_spline(t, q, k=5)
    return np.array([spline(t, order) for order in range(3)])


def measure() -> tuple[list[Table], list]:
    """Measure reading, replay and identification on a simulated iCub with one IMU."""
    settings, rows, log = EstimatorSettings.from_dict(ONE_IMU), [], None
    how = IdentifySettings(rows=replace(IdentifySettings().rows, contacts=settings.contacts))
    robot = build_robot(settings, icub_urdf())
    batch, run = build_estimator(settings, robot).batch, partial(replay, whole=False)
    with tempfile.TemporaryDirectory() as folder:
        streams = humanoid_log(imus=IMUS[:1], rate=1000.0)
        bag, long = (write_log(Path(folder) / str(n), streams, n) for n in (3, 12))
        with BagReader(bag) as reader:
            for name, seconds, job in (
                ('rosbags alone', 60, lambda _: [0 for _ in reader.messages(reader.topics)]),
                ('replay', 60, lambda _: run(robot, bag, settings)),
                ('replay of 240 s', 240, lambda _: run(robot, long, settings)),
                ('open_log', 60, lambda _: open_log(bag, robot, settings)),
                ('batch after open_log', 60, lambda log: batch(log.samples)),
                ('identify after open_log', 60, lambda log: identify(robot, log, how)),
            ):
                start = process_time()
                found = job(log)
                time, log = process_time() - start, found if name == 'open_log' else log
                memory, speed = getrusage(RUSAGE_SELF).ru_maxrss / 1e3, seconds / time
                rows.append((name, time, rows[0][3] / speed if rows else 1.0, speed, memory))
    columns = 'job', 'processor time [s]', '/ rosbags', 'times real time', 'largest memory [MB]'
    return [Table('Bag of 60 s at 1 kHz', columns, rows)], []


def ntnu_log(name: str) -> Log:
    """Return a wrench and an acceleration of a tool on an arm, in motion or in still poses."""
    axes = (['fx', 'fy', 'fz', 'tx', 'ty', 'tz'], ['ax', 'ay', 'az'])
    if name == '0-calibration_fts-accel':
        file = np.genfromtxt(DATA / 'ntnu_fts_imu' / f'{name}.csv', delimiter=',', names=True)
        wrench, felt = (np.column_stack([file[axis] for axis in part]) for part in axes)
        t = np.arange(float(len(file)))
        return {'raw': Stream(t, wrench), 'accelerometer': Stream(t, G * felt)}
    log: Log = {}
    for part, names, topic, type_ in zip(
        ('wrench', 'accel'), axes, ('/fts/wrench', '/imu'), (WRENCH, IMU), strict=True
    ):
        file = np.genfromtxt(
            DATA / 'ntnu_fts_imu' / f'{name}_{part}.csv', delimiter=',', names=True
        )
        values = np.column_stack([file[axis] for axis in names])
        if type_ == IMU:
            values = np.hstack([np.full_like(values, np.nan), G * values])
        log[topic] = Stream(1e-6 * file['t'], values, type_, topic)
    return log


def icub_urdf() -> str:
    """Return the URDF of the real and the simulated iCub."""
    return (DATA / 'models' / 'icub_v2_5.urdf').read_text()


def write_log(folder: Path, log: Log, copies: int = 1) -> str:
    """Write a bag, to and fro in turn, or a table; return its path."""
    folder.mkdir(exist_ok=True)
    if not any(stream.type for stream in log.values()):
        np.savez(
            folder / 'log.npz',
            t=next(iter(log.values())).seconds,
            **{k: s.values for k, s in log.items()},
        )
        return str(folder / 'log.npz')
    with Writer(folder / 'bag', version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        add = partial(writer.add_connection, typestore=STORE)
        connections = {topic: add(topic, s.type) for topic, s in log.items()}
        for copy in range(copies):
            rows, begin = [], NS * (1_000 + copy * 20)
            for topic, s in log.items():
                way = s._replace(values=s.values[:: (-1) ** copy])
                stamps = (begin + np.round(s.seconds * NS)).astype(int).tolist()
                heard = np.maximum.accumulate(stamps).tolist()
                rows += [(at, t, topic, way, k) for k, (at, t) in enumerate(zip(heard, stamps))]
            for at, stamp, topic, s, k in sorted(rows, key=lambda row: row[0]):
                data = STORE.serialize_cdr(message(s, k, stamp), s.type)
                writer.write(connections[topic], at, data)
    return str(folder / 'bag')


def message(s: Stream, k: int, stamp: int) -> Any:
    """Return one message of a stream."""
    types, v = STORE.types, s.values[k]
    header = types['std_msgs/msg/Header'](
        types['builtin_interfaces/msg/Time'](*divmod(stamp, NS)), s.frame
    )
    if s.type == JOINT_STATE:
        n = len(s.names)
        return types[JOINT_STATE](header, list(s.names), v[:n], v[n : 2 * n], v[2 * n :])
    one, other = (types['geometry_msgs/msg/Vector3'](*part) for part in (v[:3], v[3:6]))
    if s.type == WRENCH:
        return types[WRENCH](header, types['geometry_msgs/msg/Wrench'](one, other))
    known, absent = np.zeros(9), np.array([-1.0, *[0.0] * 8])
    turn = types['geometry_msgs/msg/Quaternion'](0.0, 0.0, 0.0, 1.0)
    return types[IMU](
        header, turn, absent, one, absent if np.isnan(one.x) else known, other, known
    )


JUMP = (15.0, -10.0, 12.0, 1.0, -1.5, 0.8)
"""An offset [N, Nm]."""


def drift(values: Array) -> Array:
    """Return values whose offset grows from zero."""
    return np.asarray(values + np.outer(np.linspace(0, 1, len(values)), JUMP))


def held(values: Array) -> Array:
    """Return the first known row again and again."""
    known = np.isfinite(values).all(axis=1).argmax()
    return np.repeat(values[known : known + 1], len(values), axis=0)


def clipped(values: Array) -> Array:
    """Return values clipped to the middle 60 % of their quantiles."""
    return np.clip(values, *np.nanquantile(values, [0.2, 0.8], axis=0))


def swapped(values: Array) -> Array:
    """Return vectors with x for y."""
    return values.reshape(len(values), -1, 3)[:, :, [1, 0, 2]].reshape(values.shape)
