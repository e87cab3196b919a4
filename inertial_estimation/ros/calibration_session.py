# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration session with a robot that publishes.

A process of its own for callers without ROS: its first argument is the job as JSON, standard
output has the result as JSON, standard input takes keys, standard error shows the progress.
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

from inertial_estimation.calibration.calibration_file import SENSOR, as_entry, write
from inertial_estimation.calibration.conductor import Conductor, Phase
from inertial_estimation.calibration.session import Outcome, Session
from inertial_estimation.config.files import check_writable
from inertial_estimation.errors import InertialEstimationError, is_wrong_call
from inertial_estimation.findings import Level
from inertial_estimation.ros.calibration_handover import hand_over
from inertial_estimation.ros.calibration_setup import Setup, plan_of, set_up
from inertial_estimation.ros.calibration_terminal import AGAIN, PROCEED, STOP, Display, keys
from inertial_estimation.ros.executors import PolledGroup, init, note_signals

NODE = 'ft_calibration'
SAVE_PERIOD = 5.0
"""[s]"""
STOPPED = 130
"""Exit code of a session that was interrupted."""


class SessionNode(Node):
    """Node of a session."""

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
        """Take a request like a key."""
        self.asked.append(key)
        answer.success, answer.message = True, 'see the terminal'
        return answer


@dataclass
class Running:
    """A running session."""

    node: SessionNode
    executor: SingleThreadedExecutor
    setup: Setup
    conductor: Conductor
    path: Path | None
    """Where the session is saved."""
    saved_at: float = float('-inf')
    saved: int = -1
    """Poses and data sets that were saved."""

    def step(self, pressed: str) -> None:
        """Spin, and advance."""
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
        """Write the session, if there is something new."""
        session = self.conductor.session
        size = sum(1 + len(one.poses) for one in session.collections) + session.is_closed
        if size != self.saved and self.path is not None:
            self.saved = size
            session.save(self.path)

    def collect(self, signals: Sequence[int]) -> bool:
        """Collect until all data sets are closed; return whether they are."""
        caller = os.getppid()
        with keys() as pressed, Display(self.conductor) as display:
            while self.conductor.phase is not Phase.DONE:
                given = pressed()
                # Without its caller a session has no reader.
                if signals or STOP in given or os.getppid() != caller:
                    return False
                self.step(given)
                display.show(time.monotonic(), self.setup.complaints())
        return True


def run(job: dict[str, Any], signals: Sequence[int]) -> dict[str, Any]:
    """Run a session until it is done or stopped."""
    path = Path(job['session']) if job['session'] else None
    if path is not None:
        check_writable(path)
    init([])
    node = SessionNode(namespace=job['namespace'])
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    try:
        holder: list[Conductor] = []

        def take(reading: Any) -> None:
            for conductor in holder:
                conductor.take(reading, time.monotonic())

        setup = set_up(node, executor, job, take)
        plan = plan_of(job, setup)
        if path is not None and path.exists():
            session = Session.load_file(path, plan, restated=job['restate'])
        else:
            session = Session(plan)
        holder.append(Conductor(session, job['unattended']))
        if plan.wrench_axes != SENSOR and not session.is_closed:
            holder[0].notes.append(
                "wrenches will be in the accelerometer's axes, which no estimator accepts"
            )
        running = Running(node, executor, setup, holder[0], path)
        try:
            done = running.collect(signals)
        finally:
            running.save()
        if not done:
            number = f'{session.step + 1} of {len(plan.loads)}'
            how = f"saved to '{path}'" if path else 'nothing was saved, as without --session'
            return {'stopped': True, 'lines': [f'stopped at data set {number}; {how}'],
                    'findings': [], 'refused': ''}  # fmt: skip
        date = datetime.now(timezone.utc).isoformat(timespec='seconds')
        return _finish(running, job, date)
    finally:
        executor.shutdown()
        node.destroy_node()
        rclpy.try_shutdown()


def main() -> int:
    """Run the job of the first argument."""
    signals = note_signals()
    job = json.loads(sys.argv[1])
    try:
        found = run(job, signals)
    except InertialEstimationError as error:
        names = job['names']
        failed = {'failed': error.renamed(names), 'wrong_call': is_wrong_call(error, names)}
        sys.stdout.write(json.dumps(failed) + '\n')
        return 1
    sys.stdout.write(json.dumps(found) + '\n')
    return STOPPED if found['stopped'] else 0


def _finish(running: Running, job: dict[str, Any], date: str) -> dict[str, Any]:
    """Return the result of a session; write it and hand it to the estimator."""
    setup, session, sensor = running.setup, running.conductor.session, job['sensor']
    given = job['temperature']
    outcome = session.outcome(date, setup.feed.temperature if given is None else given)
    errors = [str(one) for one in outcome.findings if one.level >= Level.ERROR]
    lines, estimator = [*_lines(outcome), *setup.notes], None
    if setup.output is not None and not errors:
        write(setup.output, setup.robot, {sensor: outcome.calibration})
        lines.append(f"wrote {sensor} to '{setup.output}'")
        if job['estimator'] and outcome.calibration.axes != SENSOR:
            lines.append(f"not handed over: wrenches are in the {outcome.calibration.axes}'s axes")
        elif job['estimator']:
            answer = hand_over(running.node, running.executor, job['estimator'], setup.output)
            estimator = {'taken_over': answer.done, 'answer': answer.answer}
            lines.append(answer.answer)
    target = f"written to '{setup.output}'" if setup.output is not None else 'usable'
    return {
        'stopped': False,
        'lines': lines,
        'findings': [one.as_dict() for one in outcome.findings],
        'refused': f'calibration not {target}: {"; ".join(errors)}' if errors else '',
        'sensor': sensor,
        'date': date,
        'gravity': session.plan.gravity,
        'readings': {
            load.name: one.counts()
            for load, one in zip(session.plan.loads, session.collections, strict=True)
        },
        'output': None if setup.output is None or errors else str(setup.output),
        'estimator': estimator,
        'calibration': as_entry(outcome.calibration),
        **_figures(outcome, session),
    }


def _figures(outcome: Outcome, session: Session) -> dict[str, Any]:
    """Return the figures of an offset or a matrix."""
    found = outcome.matrix
    if found is None:
        assert outcome.offset is not None
        _, deviations = outcome.offset.in_wrench(session.plan.matrix)
        return {'deviations': deviations.tolist(), 'gap': outcome.offset.subspace.gap}
    change = found.change(
        None if session.plan.before is None else session.plan.matrix,
        turned=session.plan.before is not None and session.plan.before.axes != SENSOR,
    )
    return {
        'matrix': found.matrix.tolist(),
        'deviations': found.deviations.tolist(),
        'axes': 'sensor' if found.in_sensor_axes else 'accelerometer',
        'body_mass': found.body.mass,
        'residuals_over_noise': found.residuals.tolist(),
        'change': None if change != change else change,
    }


def _lines(outcome: Outcome) -> Iterator[str]:
    """Yield the offset and the matrix."""
    one = outcome.calibration
    yield f'offset [N, Nm]: {" ".join(f"{x:.4g}" for x in one.offset)}'
    if outcome.matrix is not None:
        yield f"matrix [N, Nm per raw unit], in the {one.axes}'s axes:"
        yield from (' '.join(f'{x:10.5g}' for x in row) for row in one.matrix)
        yield f'body {outcome.matrix.body.mass:.3f} kg'
