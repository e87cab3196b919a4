# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A calibration session with a robot that publishes: collects, writes, hands over.

A process of its own for callers without ROS: what to do is the first argument, as JSON; what came
of it goes to standard output likewise. Keys come from standard input, and what a person is told
goes to standard error.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger

from inertial_estimation.calibration.conductor import Conductor, Phase
from inertial_estimation.calibration.coverage_pictures import coverage_svg
from inertial_estimation.calibration.session import Plan, Session
from inertial_estimation.calibration.session_file import load_session, save_session
from inertial_estimation.calibration.wrench_axes import SENSOR
from inertial_estimation.errors import InertialEstimationError, is_wrong_call
from inertial_estimation.output import check_writable, write_whole
from inertial_estimation.ros.calibration_results import Found, finish
from inertial_estimation.ros.calibration_setup import Setup, plan_of, set_up
from inertial_estimation.ros.calibration_terminal import AGAIN, PROCEED, STOP, Display, keys
from inertial_estimation.ros.executors import PolledGroup, note_signals
from inertial_estimation.ros.startup import init

NODE = 'ft_calibration'
SAVE_PERIOD = 5.0
"""Time between two times that a session is saved while it grows [s]."""
WILL_BE_TURNED = (
    "what is found will be in the accelerometer's axes, and not handed over: an estimator takes "
    "wrenches in the sensor's, for which the rotation between the two must be told (--imu-rpy, or "
    '--config of a robot)'
)
STOPPED = 130
"""Exit code of a session that is to go on later, as of one that was interrupted."""


class SessionNode(Node):
    """Talks for a session."""

    def __init__(self, **kwargs) -> None:
        super().__init__(NODE, **kwargs)
        self.asked: list[str] = []
        for name, key in (('proceed', PROCEED), ('restart_step', AGAIN)):
            self.create_service(
                Trigger, f'~/{name}', lambda _, answer, key=key: self._ask(key, answer)
            )

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """What wakes the executor: not what is polled."""
        found = super().subscriptions
        return (one for one in found if not isinstance(one.callback_group, PolledGroup))

    def _ask(self, key: str, answer: Trigger.Response) -> Trigger.Response:
        """Ask as a key does."""
        self.asked.append(key)
        answer.success, answer.message = True, 'asked; what comes of it is on the terminal'
        return answer


@dataclass
class Running:
    """A session while it runs."""

    node: SessionNode
    executor: SingleThreadedExecutor
    setup: Setup
    conductor: Conductor
    path: Path | None
    """Where the session is saved."""
    picture: Path | None
    saved_at: float = float('-inf')
    saved: int = -1
    """Moments that were saved, and data sets."""

    def step(self, pressed: str) -> None:
        """Spin for a moment, and do what is due."""
        now = time.monotonic()
        self.executor.spin_once(timeout_sec=0.05)
        begun = self.conductor.look(now)
        asked = pressed + ''.join(self.node.asked)
        self.node.asked.clear()
        for key in asked:
            if key == PROCEED:
                begun |= self.conductor.proceed()
            elif key == AGAIN:
                begun |= self.conductor.restart_step()
        if begun:
            self.setup.feed.begin()
        if now - self.saved_at > SAVE_PERIOD:
            self.saved_at = now
            self.save()

    def save(self) -> None:
        """Write session and picture, if there is something new."""
        session = self.conductor.session
        size = sum(1 + len(one.moments) for one in session.collections) + session.is_closed
        if size == self.saved:
            return
        self.saved = size
        if self.path is not None:
            save_session(self.path, session)
        if self.picture is not None:
            sets = zip(session.plan.loads, session.collections, strict=False)
            write_whole(self.picture, coverage_svg({load.name: one for load, one in sets}))


def run(job: dict[str, Any], signals: Sequence[int]) -> Found:
    """Run a session until it is done or stopped."""
    path, picture = _path(job, 'session'), _path(job, 'picture')
    for one in (path, picture):
        if one is not None:
            check_writable(one)
    init([], NODE)
    node = SessionNode(namespace=job['namespace'])
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        holder: list[Conductor] = []
        setup = set_up(node, executor, job, lambda one: _take(holder, one))
        session = _session(path, plan_of(job, setup), restated=job['restate'])
        holder.append(Conductor(session, job['unattended']))
        if session.plan.wrench_axes != SENSOR and not session.is_closed:
            holder[0].notes.insert(0, WILL_BE_TURNED)
        running = Running(node, executor, setup, holder[0], path, picture)
        try:
            done = _collect(running, signals)
        finally:
            running.save()
        if not done:
            return _stopped(running)
        now = datetime.now(timezone.utc).isoformat(timespec='seconds')
        return finish(node, executor, job, setup, session, now)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()


def main() -> int:
    """Run what the first argument asks for."""
    signals = note_signals()
    job = json.loads(sys.argv[1])
    try:
        found = run(job, signals)
    except InertialEstimationError as error:
        names = job['names']
        failed = {'failed': error.said_with(names), 'wrong_call': is_wrong_call(error, names)}
        sys.stdout.write(json.dumps(failed) + '\n')
        return 1
    sys.stdout.write(json.dumps(found.as_dict()) + '\n')
    return STOPPED if found.stopped else 0


def _collect(running: Running, signals: Sequence[int]) -> bool:
    """Collect until all data sets are closed; return whether they are."""
    conductor, setup = running.conductor, running.setup
    caller = os.getppid()
    with keys() as pressed, Display(conductor) as display:
        while conductor.phase is not Phase.DONE:
            given = pressed()
            # Nobody would read the result of a session whose caller is gone.
            if signals or STOP in given or os.getppid() != caller:
                return False
            running.step(given)
            now = time.monotonic()
            display.show(now, setup.complaints())
    return True


def _take(holder: list[Conductor], reading: Any) -> None:
    """Hand a reading to the conductor, once there is one."""
    for conductor in holder:
        conductor.take(reading, time.monotonic())


def _session(path: Path | None, plan: Plan, *, restated: bool) -> Session:
    """Go on with a session, or begin one."""
    if path is None or not path.exists():
        return Session(plan)
    return load_session(path, plan, restated=restated)


def _stopped(running: Running) -> Found:
    """Say how to go on."""
    session = running.conductor.session
    how = f"the same call goes on, from '{running.path}'" if running.path else (
        'nothing was kept: name a file with --session'
    )  # fmt: skip
    said = f'stopped at data set {session.step + 1} of {len(session.plan.loads)}; {how}'
    return Found(stopped=True, said=(said,))


def _path(job: dict[str, Any], name: str) -> Path | None:
    """Return a file that a job may name."""
    return Path(job[name]) if job[name] else None
