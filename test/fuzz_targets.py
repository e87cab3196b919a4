# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Damaged input for every reader: an `InertialEstimationError` or an answer, and nothing else.

`test_fuzz.py` tries random changes of the examples, `fuzz.py` searches from them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import bag_messages as messages
import numpy as np
from replays import SETTINGS, humanoid_messages
from robots import nested_humanoid_urdf, random_sample
from test_router import FIXED, JOINTS, START_NS
from test_router import Robot as Routed

from inertial_estimation.calibration import calibration_file
from inertial_estimation.calibration.calibration_file import SensorCalibration
from inertial_estimation.config import EstimatorSettings, IdentifierSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.recursion import state
from inertial_estimation.identification.recursion.identifier import RecursiveIdentifier
from inertial_estimation.identification.recursion.settings import recursion_settings
from inertial_estimation.logs.open_log import open_log
from inertial_estimation.logs.table_formats import Layout, Signal
from inertial_estimation.model import parameter_update
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf import is_xml
from inertial_estimation.sample import SampleBatch

Read = Callable[[bytes], object]
NUMBERS = (b'0', b'-1', b'1e308', b'nan', b'1e-300', b'4294967295', b'[]', b'{}', b'null', b'""')


def _text(data: bytes) -> str:
    return data.decode('utf-8', 'replace')


def message_target() -> tuple[Read, list[bytes]]:
    """Messages of every topic; the first byte chooses it."""
    routed = Routed(imus=['root', 'head'], fixed_link='')
    topics = [source.topic for source in routed.router.sources]

    def read(data: bytes) -> object:
        return routed.router.handle(topics[data[0] % len(topics)], data[1:]) if data else None

    made = {
        'ft': (messages.wrench, np.ones(6)),
        'imu': (messages.imu, np.ones(3), np.ones(3)),
        'temperature': (messages.temperature, 20.0),
        'contacts': (messages.point, np.ones(3)),
        'contact_poses': (messages.pose, np.ones(3), [0, 0, 0, 1]),
        'joints': (messages.joint_state, np.ones(6), np.ones(6)),
    }
    examples = []
    for k, source in enumerate(routed.router.sources):
        make, *values = made[source.kind]
        frame = JOINTS if source.kind == 'joints' else min(source.frames or ('hand',))
        examples.append(bytes([k]) + make(START_NS, frame, *values))
    return read, examples


def urdf_target() -> tuple[Read, list[bytes]]:
    """Robot descriptions, as from a topic."""

    def read(data: bytes) -> object:
        text = _text(data)
        return Robot.from_urdf(text) if is_xml(text) else None

    return read, [nested_humanoid_urdf().encode()]


def settings_target() -> tuple[Read, list[bytes]]:
    """Parameter files."""
    path = Path(mkdtemp()) / 'node.yaml'

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return EstimatorSettings.from_yaml(path)

    configs = sorted((Path(__file__).parents[1] / 'config').glob('icub*.yaml'))
    return read, [one.read_bytes() for one in configs[:2]]


def calibration_target() -> tuple[Read, list[bytes]]:
    """Calibrations, as in a file or on the topic `ft_calibration`."""
    example = calibration_file.to_json('robot', {'arm': SensorCalibration(np.eye(6), np.ones(6))})
    return lambda data: calibration_file.from_text(_text(data), 'it'), [example.encode()]


def _sealed_target(
    kind: str, version: int, text: str, read: Callable[[str], object]
) -> tuple[Read, list[bytes]]:
    """Return a target whose checksum is right, so that changes of the content get further."""

    def target(data: bytes) -> object:
        with suppress(ValueError, RecursionError):
            content = json.loads(data)
            return read(parameter_update.sealed(kind, version, content))
        return read(_text(data))

    return target, [json.dumps(json.loads(text)['content']).encode(), text.encode()]


def parameters_target() -> tuple[Read, list[bytes]]:
    """Inertial parameters in a file."""
    robot = Robot.from_urdf(nested_humanoid_urdf())
    text = parameter_update.to_text(robot, robot.parameters)
    read = partial(parameter_update.from_text, robot)
    return _sealed_target(parameter_update.KIND, parameter_update.VERSION, text, read)


def state_target() -> tuple[Read, list[bytes]]:
    """States of an identifier."""
    settings = IdentifierSettings.from_dict(FIXED)
    robot = build_robot(settings, settings.robot_description)
    identifier = RecursiveIdentifier(robot, recursion_settings(settings, robot))
    rng = np.random.default_rng(0)
    for second in range(8):
        samples = SampleBatch.stack([
            random_sample(robot, rng)._replace(stamp_ns=START_NS * (50 * second + k + 1) // 50)
            for k in range(50)
        ])  # fmt: skip
        identifier.add(samples, free=np.ones((50, len(robot.submodels)), dtype=bool))
    read = partial(state.from_text, identifier)
    return _sealed_target(state.KIND, state.VERSION, state.to_text(identifier), read)


def _log_target(suffix: str, examples: list[bytes], **given: Any) -> tuple[Read, list[bytes]]:
    """Return a target that opens logs of a type of file."""
    path = Path(mkdtemp()) / f'log{suffix}'
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])

    def read(data: bytes) -> object:
        path.write_bytes(data)
        return open_log(path, robot, **given)

    return read, examples


def csv_target() -> tuple[Read, list[bytes]]:
    """Tables as text."""
    names = 't', 'q'
    rows = '\n'.join(f'{0.01 * k},{0.1 * k}' for k in range(1, 8))
    layout = Layout(
        time=Signal(name='time', kind='time', columns=names[:1]), joints=('knee',),
        positions=Signal(name='positions', kind='positions', columns=names[1:]),
    )  # fmt: skip
    return _log_target('.csv', [f'{",".join(names)}\n{rows}\n'.encode()], layout=layout)


def npz_target() -> tuple[Read, list[bytes]]:
    """Tables as arrays."""
    file = BytesIO()
    np.savez(file, t=np.arange(1.0, 6.0), q=np.ones((5, 6)))
    layout = Layout(
        time=Signal(name='time', kind='time', columns=('t',)), joints=JOINTS,
        positions=Signal(name='positions', kind='positions', columns=('q',)),
    )  # fmt: skip
    return _log_target('.npz', [file.getvalue()], layout=layout)


def _bag_target(storage: str, suffix: str) -> tuple[Read, list[bytes]]:
    robot = Robot.from_urdf(nested_humanoid_urdf(), imus=['head'])
    folder = messages.write_bag(Path(mkdtemp()) / 'bag', humanoid_messages(robot, 8), storage)
    (file,) = folder.glob(f'*{suffix}')
    settings = EstimatorSettings.from_dict(SETTINGS)
    return _log_target(suffix, [file.read_bytes()], settings=settings)


TARGETS: Mapping[str, Callable[[], tuple[Read, list[bytes]]]] = {
    'messages': message_target,
    'urdf': urdf_target,
    'settings': settings_target,
    'calibration': calibration_target,
    'parameters': parameters_target,
    'state': state_target,
    'csv': csv_target,
    'npz': npz_target,
    'mcap': partial(_bag_target, 'mcap', '.mcap'),
    'db3': partial(_bag_target, 'sqlite3', '.db3'),
}


def survives(read: Read, data: bytes) -> None:
    """Read input that may be damaged; only refusals of our own are an answer."""
    with suppress(InertialEstimationError):
        read(data)


def changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Return data with one to four random changes."""
    for _ in range(rng.integers(1, 5)):
        at, to = np.sort(rng.integers(0, len(data) + 1, 2))
        to = min(to, at + rng.integers(1, 17))
        new = (
            b'', rng.bytes(to - at), 2 * data[at:to], NUMBERS[rng.integers(len(NUMBERS))],
            data[(start := rng.integers(len(data) + 1)) : start + 16],
        )[rng.integers(5)]  # fmt: skip
        data = data[:at] + new + data[to:]
    return data
