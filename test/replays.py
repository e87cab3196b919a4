# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Replays of small bags and samples, with their figures as attributes."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from robots import nested_humanoid_urdf, random_sample

pytest.importorskip('rosbags')

from bag_messages import IMU, JOINT_STATE, WRENCH, imu, joint_state, wrench

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.logs.log import Log
from inertial_estimation.logs.replay import replay
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.sample import SampleBatch
from inertial_estimation.signals.assembler import SampleAssembler

START = 1_700_000_000_000_000_000
MS = 1_000_000
SETTINGS = {
    'imus': ['head'],
    'contacts': ['root', 'thigh', 'sole', 'hand'],
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
    'ft.leg_sensor.frame_id': 'leg_frame',
    'ft.foot_sensor.offset': [1.0, -2.0, 3.0, 0.1, -0.2, 0.3],
    'joint_states.velocity_source': 'filter',
}
TWO_IMUS = {
    'imus': ['head', 'thigh'],
    'contacts': ['root', 'thigh', 'sole', 'hand'],
    'ft_sensors': ['arm_sensor', 'leg_sensor', 'foot_sensor'],
}


def humanoid_messages(robot, n=60, delay_ms=0.0):
    """Return 5 ms cycles of all topics of the humanoid, FT messages recorded with a delay."""
    rng = np.random.default_rng(7)
    names = list(robot.joint_names)
    frames = ('arm_sensor', 'leg_frame', 'foot_sensor')
    messages = []
    for k in range(n):
        ms = 5 * k
        stamp = START + ms * MS
        positions = np.sin(1e-3 * ms * np.arange(1.0, len(names) + 1.0))
        efforts = rng.normal(0.0, 1.0, len(names))
        data = joint_state(stamp, names, positions, np.zeros(len(names)), efforts)
        messages.append(('/joint_states', JOINT_STATE, stamp + 2 * MS, data))
        data = imu(stamp, 'head', rng.normal(0.0, 0.1, 3), [0.1, 0.2, 9.8 + 1e-4 * ms])
        messages.append(('/imu/head', IMU, stamp + MS, data))
        for frame, topic in zip(frames, ('arm_sensor', 'leg_sensor', 'foot_sensor')):
            data = wrench(stamp, frame, rng.normal(0.0, 10.0, 6))
            recorded = stamp + MS + round(delay_ms * MS)
            messages.append((f'/ft/{topic}', WRENCH, recorded, data))
    return sorted(messages, key=lambda message: message[2])


def figures(found):
    """Return the summary of a replay with attributes, and its findings."""
    text = json.dumps(dict(found.summary))
    report = json.loads(text, object_hook=lambda d: SimpleNamespace(**d))
    report.findings = found.findings
    return report


def replay_bag(bag, urdf, settings, *, out=None, **options):
    """Replay a bag and return its figures."""
    rate = None if out is None else settings.outputs.deviations_rate
    robot = build_robot(settings, str(urdf))
    found = replay(robot, bag, settings, deviations_rate=rate, **options)
    if out is not None:
        found.save(out)
    return figures(found)


def report_of(samples, robot, settings):
    """Replay samples and return their figures."""
    statistics = SampleAssembler(robot, settings).statistics()
    return figures(replay(robot, Log(samples, 1_000_000_000, statistics), settings))


def codes(report):
    """Return code and subject of each finding."""
    return {(one.code, one.subject) for one in report.findings}


def setup(**more):
    """Return the humanoid with two IMUs and its settings."""
    settings = EstimatorSettings.from_dict({**TWO_IMUS, **more})
    return build_robot(settings, nested_humanoid_urdf()), settings


def record(robot, rng, n=8):
    """Return random samples a second apart, all of them fresh."""
    samples = SampleBatch.stack([random_sample(robot, rng) for _ in range(n)])
    sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
    states = [np.zeros((n, size), dtype=np.uint8) for size in sizes]
    return replace(
        samples,
        stamp_ns=1_000_000_000 * np.arange(1, n + 1),
        joint_states=states[0],
        imu_states=states[1],
        ft_states=states[2],
        efforts=None,
    )
