# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Simulated logs of an iCub on a pole, by Pinocchio alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import numpy as np
import pinocchio as pin

INPUTS = Path(__file__).parent / 'inputs'
NOISE = np.array([0.15, 0.15, 0.15, 0.005, 0.005, 0.005])
OFFSETS = np.array([10.0, 10.0, 10.0, 1.0, 1.0, 1.0])
START_NS = 1_000_000_000


def icub_urdf() -> str:
    """Return the URDF of iCub v2.5 from the package icub-models."""
    import icub_models

    return Path(icub_models.get_model_file('iCubGazeboV2_5')).read_text(encoding='utf-8')


def saved(name: str) -> dict[str, np.ndarray]:
    """Return saved inputs as float64."""
    with np.load(INPUTS / f'{name}.npz') as file:
        return {
            key: file[key].astype(float) if file[key].dtype == np.float32 else file[key]
            for key in file.files
        }


def write_skin_bag(path: Path) -> None:
    """Write the saved log of a pushed robot, whose skin tells the pushed link, as a bag (mcap)."""
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store, given = get_typestore(Stores.ROS2_HUMBLE), saved('skin')
    new = {name.rpartition('/')[2]: kind for name, kind in store.types.items()}
    names = given['joints'].tolist()
    unknown = np.array([-1.0, *[0.0] * 8])

    def vector(values: np.ndarray) -> Any:
        return new['Vector3'](*map(float, values))

    with Writer(path, version=8, storage_plugin=StoragePlugin.MCAP) as writer:
        topics: dict[str, Any] = {}

        def write(topic: str, kind: str, stamp_ns: int, frame: str, *values: Any) -> None:
            if topic not in topics:
                topics[topic] = writer.add_connection(topic, kind, typestore=store)
            header = new['Header'](new['Time'](*divmod(stamp_ns, 1_000_000_000)), frame)
            data = store.serialize_cdr(store.types[kind](header, *values), kind)
            writer.write(topics[topic], stamp_ns, data)

        for k, time_ns in enumerate(given['stamp_ns'].tolist()):
            stamp = 1_700_000_000_000_000_000 + int(time_ns)
            for s, (name, frame) in enumerate(zip(given['fts'], given['ft_frames'], strict=True)):
                force, torque = given['ft_readings'][k, s].reshape(2, 3)
                wrench = new['Wrench'](vector(force), vector(torque))
                kind = 'geometry_msgs/msg/WrenchStamped'
                write(f'/ft/{name}', kind, stamp, str(frame), wrench)
            for s, name in enumerate(given['imus']):
                rate, acceleration = (
                    vector(given[key][k, s])
                    for key in ('angular_velocities', 'proper_accelerations')
                )
                turned = new['Quaternion'](0.0, 0.0, 0.0, 1.0)
                values = turned, unknown, rate, np.zeros(9), acceleration, np.zeros(9)
                write(f'/imu/{name}', 'sensor_msgs/msg/Imu', stamp, str(name), *values)
            for frame in filter(None, str(given['felt'][k]).split(',')):
                point = new['Point'](0.01, -0.02, 0.005)
                write('/contacts', 'geometry_msgs/msg/PointStamped', stamp, frame, point)
            states = names, given['positions'][k], np.empty(0), given['torques'][k]
            write('/joint_states', 'sensor_msgs/msg/JointState', stamp, '', *states)


class Load(NamedTuple):
    """A body that is picked up for a while."""

    frame: str
    mass: float
    center: tuple[float, float, float]
    inertia: float
    start: float
    stop: float


class Push(NamedTuple):
    """A wrench at a frame for a while."""

    frame: str
    wrench: tuple[float, ...]
    start: float
    stop: float


class Pole:
    """The iCub on a pole at its root link; its joints move, FT sensors are as in its URDF."""

    def __init__(self) -> None:
        urdf = icub_urdf()
        tree = ElementTree.fromstring(urdf)
        moving = {'revolute', 'continuous', 'prismatic'}
        self.joints = [j.get('name') for j in tree.findall('joint') if j.get('type') in moving]
        tags = [s for s in tree.findall('sensor') if s.get('type') == 'force_torque']
        self.fts = [tag.get('name') for tag in tags]
        self._cut = [tag.find('parent').get('joint') for tag in tags]
        for tag in tags:
            assert tag.findtext('force_torque/frame').strip() in ('child', 'sensor')
        self._poses = [_pose(tag) for tag in tags]
        self._signs = [
            -1.0 if tag.findtext('force_torque/measure_direction') == 'parent_to_child' else 1.0
            for tag in tags
        ]
        for joint in tree.findall('joint'):
            if joint.get('name') in self._cut:
                joint.set('type', 'floating')
        text = ElementTree.tostring(tree, encoding='unicode')
        self.model = pin.buildModelFromXML(text)
        self.data = self.model.createData()
        self._rows = [self.model.idx_vs[self.model.getJointId(name)] for name in self.joints]
        self._ft_rows = [self.model.idx_vs[self.model.getJointId(name)] for name in self._cut]

    def motion(self, seconds: float, rate: float, seed: int, swing: float = 0.4) -> dict[str, Any]:
        """Return four sines for each joint."""
        rng = np.random.default_rng(seed)
        n, joints = round(seconds * rate), len(self.joints)
        t = np.arange(n) / rate
        q, v, a = np.zeros((3, n, joints))
        for _ in range(4):
            w = 2 * np.pi * rng.uniform(0.05, 0.8, joints)
            phase, size = rng.uniform(0, 2 * np.pi, joints), swing * rng.normal(size=joints) / 2
            q += size * np.sin(np.outer(t, w) + phase)
            v += size * w * np.cos(np.outer(t, w) + phase)
            a -= size * w**2 * np.sin(np.outer(t, w) + phase)
        return {
            'joints': self.joints, 'imus': [], 'fts': self.fts,
            'stamp_ns': START_NS + (t * 1e9).astype(np.int64),
            'positions': q, 'velocities': v, 'accelerations': a,
            'angular_velocities': np.zeros((n, 0, 3)), 'proper_accelerations': np.zeros((n, 0, 3)),
            'angular_accelerations': np.zeros((n, 0, 3)),
        }  # fmt: skip

    def readings(
        self,
        motion: Mapping[str, Any],
        loads: tuple[Load, ...] = (),
        pushes: tuple[Push, ...] = (),
    ) -> np.ndarray:
        """Return exact readings, (n, n_fts, 6)."""
        times = (motion['stamp_ns'] - START_NS) / 1e9
        found = np.zeros((len(times), len(self.fts), 6))
        v, a = np.zeros((2, self.model.nv))
        models = {(): self.model}
        for k, time in enumerate(times):
            carried = tuple(load for load in loads if load.start <= time < load.stop)
            if carried not in models:
                models[carried] = self._with(carried)
            model = models[carried]
            external = [pin.Force.Zero() for _ in range(model.njoints)]
            for push in pushes:
                if push.start <= time < push.stop:
                    frame = model.frames[model.getFrameId(push.frame)]
                    force = pin.Force(np.array(push.wrench))
                    external[frame.parentJoint] += frame.placement.act(force)
            v[:] = 0.0
            v[self._rows] = motion['positions'][k]
            q = pin.integrate(model, pin.neutral(model), v)
            v[self._rows], a[self._rows] = motion['velocities'][k], motion['accelerations'][k]
            tau = pin.rnea(model, self.data, q, v, a, external)
            for s, (row, pose) in enumerate(zip(self._ft_rows, self._poses, strict=True)):
                found[k, s] = -self._signs[s] * pose.actInv(pin.Force(tau[row : row + 6])).vector
        return found

    def _with(self, loads: tuple[Load, ...]) -> pin.Model:
        """Return the model with loads."""
        model = self.model.copy()
        for load in loads:
            frame = model.frames[model.getFrameId(load.frame)]
            body = pin.Inertia(load.mass, np.array(load.center), load.inertia * np.eye(3))
            model.inertias[frame.parentJoint] += frame.placement.act(body)
        return model

    def noisy(self, readings: np.ndarray, seed: int, drift: float = 0.0) -> np.ndarray:
        """Return readings with offsets, which drift by so many newtons, and white noise."""
        rng = np.random.default_rng([seed, 1])
        offsets = OFFSETS * rng.normal(size=readings.shape[1:])
        ways = rng.normal(size=readings.shape[1:]) * [1.0, 1.0, 1.0, 0.1, 0.1, 0.1]
        share = np.linspace(0.0, drift, len(readings))[:, None, None]
        return readings + offsets + share * ways + NOISE * rng.normal(size=readings.shape)


def _pose(tag: ElementTree.Element) -> pin.SE3:
    """Return the pose of a sensor in the frame of the child link."""
    origin = tag.find('origin')
    if tag.findtext('force_torque/frame').strip() != 'sensor' or origin is None:
        return pin.SE3.Identity()
    xyz, rpy = (np.array(origin.get(key, '0 0 0').split(), float) for key in ('xyz', 'rpy'))
    return pin.SE3(pin.rpy.rpyToMatrix(*rpy), xyz)
