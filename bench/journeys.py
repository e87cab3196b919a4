# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Count the files that a reader of the code walks through: called by a job, and imported."""

from __future__ import annotations

import ast
import os
import sys
import time
from collections.abc import Callable, Collection
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from types import CodeType
from typing import Any

import numpy as np

import inertial_estimation
from bench import log_streams, nodes, robots
from bench.report import Goal, Table
from inertial_estimation import EstimatorSettings, WrenchEstimator, open_log, replay
from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.calibration.offset_from_model import offset_from_model
from inertial_estimation.cli.render import show
from inertial_estimation.cli.replay import _summary
from inertial_estimation.logs.log import TimeRange
from inertial_estimation.model.configured_robot import build_robot
from inertial_estimation.model.robot import Robot
from inertial_estimation.signals.cdr import NANOSECONDS, STAMP, STAMP_AT
from inertial_estimation.simulation.description import icub_urdf

PACKAGE = Path(inertial_estimation.__file__).parent
NAME = PACKAGE.name
IMPORTED = {
    'ros/estimator_node.py': 80, 'ros/identifier_node.py': 110, 'cli/replay.py': 100,
    'cli/identify.py': 100, 'estimation/wrench_estimator.py': 25,
}  # fmt: skip
"""Largest numbers of files that importing one may import."""
NODE, UPDATE = 'joint state to published wrench', 'update of a sample'
REPLAY, REPORT = 'log to its replay', 'replay to its report'
OFFSETS = 'FT readings to offsets'
BESIDE = 'FT readings to offsets, the engine as one file'
LIMITS = {NODE: (20, 3500), UPDATE: (12, 2400), REPORT: (15, None), BESIDE: (8, None)}
"""Largest numbers of files, and of lines of Python, beside which C does the same faster."""
WARM, RATE = 100, 100
"""Cycles before the one that is traced; joint states a second [Hz]."""
STILL = TimeRange(0.0, 3.0)
"""Part of the simulated log in which the robot stands still."""


def called(
    job: Callable[[], Any], until: CodeType | None = None, closed: Collection[CodeType] = ()
) -> set[Path]:
    """Return the files that a call enters, until some code returns, but none below others."""
    found, below = set(), [0]

    def note(frame: Any, event: str, of: Any) -> None:
        is_return, code = event == 'return', frame.f_code
        if not below[0] and event == 'call':
            found.add(Path(code.co_filename))
        elif not below[0] and event == 'c_call' and str(of.__module__).startswith(f'{NAME}.'):
            found.add(PACKAGE.parent / (of.__module__.replace('.', '/') + '.c'))
        if code in closed and event in ('call', 'return'):
            below[0] += -1 if is_return else 1
        if is_return and code is until:
            sys.setprofile(None)

    sys.setprofile(note)
    try:
        job()
    finally:
        sys.setprofile(None)
    return {path for path in found if PACKAGE in path.parents}


def imported(start: str) -> set[Path]:
    """Return the files of the package that importing one imports, by its syntax tree."""
    paths = {path.relative_to(PACKAGE.parent): path for path in PACKAGE.rglob('*.py')}
    modules = {'.'.join(k.with_suffix('').parts).removesuffix('.__init__'): path
               for k, path in paths.items()}  # fmt: skip
    found, queue = set(), [PACKAGE / start]
    while queue:
        if (path := queue.pop()) in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding='utf-8'))):
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f'{node.module}.{one.name}' for one in node.names)]
            queue += [modules[name] for name in names if name in modules]
    return found


def of_node() -> set[Path]:
    """Trace a cycle of the estimator node, from a joint state as bytes to published wrenches."""
    import rclpy
    from rclpy.node import Node
    from rclpy.parameter import Parameter

    from inertial_estimation.ros.estimator_node import EstimatorNode
    from inertial_estimation.ros.publishers import Publishers
    from inertial_estimation.ros.subscriptions import message_class

    given = {**nodes.SETTINGS, 'imus': list(nodes.IMUS[:1]), 'robot_description': icub_urdf()}
    with TemporaryDirectory() as folder:
        (urdf := Path(folder) / 'robot.urdf').write_text(icub_urdf(), encoding='utf-8')
        topics = nodes.messages({'urdf': str(urdf), 'imus': given['imus'], 'rate': RATE})
    os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
    rclpy.init()
    node = EstimatorNode(parameter_overrides=[Parameter(k, value=v) for k, v in given.items()])
    other = rclpy.create_node('listener')
    for name, kind in node.get_topic_names_and_types():
        if '/external_wrench' in name:
            other.create_subscription(message_class(kind[0]), name, print, 1)
            while not node.count_subscribers(name):
                time.sleep(0.01)
    # Those that are polled too.
    taken = {one.topic_name: one.callback for one in Node.subscriptions.fget(node)}
    for k in range(WARM + 1):
        for name, _, messages in topics:
            STAMP.pack_into(messages[k], STAMP_AT, *divmod(NANOSECONDS * k // RATE, NANOSECONDS))
            take = partial(taken[node.resolve_topic_name(name)], bytes(messages[k]))
            # The joint states come last.
            found = called(take, Publishers.publish.__code__) if k == WARM else take()
    node.destroy_node()
    other.destroy_node()
    rclpy.shutdown()
    return found


def of_library() -> dict[str, set[Path]]:
    """Trace an update, a report of a replay and offsets from the model, on a simulated iCub."""
    robot = Robot.from_urdf(icub_urdf(), imus=robots.ONE_IMU)
    estimator = WrenchEstimator(robot, robots.CONTACTS)
    sample = robots.random_sample(robot, np.random.default_rng(0))
    estimator.update(sample)
    found = {UPDATE: called(lambda: estimator.update(sample))}
    settings = EstimatorSettings.from_dict(log_streams.ONE_IMU)
    robot = build_robot(settings, log_streams.icub_urdf())
    estimator = build_estimator(settings, robot)
    with TemporaryDirectory() as folder:
        streams = log_streams.humanoid_log(imus=log_streams.IMUS[:1])
        log = open_log(log_streams.write_log(Path(folder), streams), robot, settings)
    replays, still = [replay(robot, log, settings)], log.within(STILL).samples
    found[REPLAY] = called(lambda: replays.append(replay(robot, log, settings)))
    with redirect_stdout(StringIO()):
        found[REPORT] = called(lambda: show(*_summary(replays[-1])))
    engine = WrenchEstimator.__init__.__code__, WrenchEstimator.batch.__code__
    for name, closed in (OFFSETS, ()), (BESIDE, engine):
        found[name] = called(
            partial(offset_from_model, estimator, still, settings.contacts), closed=closed
        )
    return found


def measure() -> tuple[list[Table], list[Goal]]:
    """Trace and count; without ROS the node is left out."""
    try:
        found = {NODE: of_node()}
    except ImportError as error:
        sys.stderr.write(f'{NODE}: skipped, {error}\n')
        found = {}
    found |= of_library()
    rows, goals = [], []
    for name, files in found.items():
        lines = {'.py': 0, '.c': 0}
        for path in files:
            lines[path.suffix] += len(path.read_text(encoding='utf-8').splitlines())
        rows.append((name, len(files), *lines.values()))
        most = LIMITS.get(name, (None, None))
        for of, value, limit in zip(('files', 'lines of Python'), rows[-1][1:], most):
            goals += [Goal(f'{name}: {of}', value, limit)] * bool(limit)
    for name, limit in IMPORTED.items():
        goals.append(Goal(f'files that {name} imports', len(imported(name)), limit))
    return [Table('Files entered', ('journey', 'files', 'lines of Python', 'of C'), rows)], goals
