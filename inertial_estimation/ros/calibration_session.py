# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Calibration session with a robot that publishes.

A process of its own for callers without ROS: its first argument is the options as JSON, standard
output has the result as JSON, standard input takes keys, standard error shows the progress.
"""

import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from math import isfinite
from pathlib import Path
from typing import Any

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.node import Node
from rclpy.subscription import Subscription
from std_srvs.srv import Trigger

from inertial_estimation.calibration.calibration_file import SENSOR, as_entry, write
from inertial_estimation.calibration.session import Conductor, Phase, Session
from inertial_estimation.config.files import check_writable
from inertial_estimation.errors import InertialEstimationError, is_wrong_call
from inertial_estimation.findings import Level
from inertial_estimation.ros.calibration_setup import Setup, hand_over, plan_of, set_up
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
        """Subscriptions that wake the executor: those that are not polled."""
        found = super().subscriptions
        return (one for one in found if not isinstance(one.callback_group, PolledGroup))

    def _ask(self, key: str, answer: Trigger.Response) -> Trigger.Response:
        """Take a request like a key."""
        self.asked.append(key)
        answer.success, answer.message = True, 'see the terminal'
        return answer


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
        conductors: list[Conductor] = []

        def take(reading: Any) -> None:
            for conductor in conductors:
                conductor.take(reading, time.monotonic())

        setup = set_up(node, executor, job, take)
        plan = plan_of(job, setup)
        if path is not None and path.exists():
            session = Session.load_file(path, plan, restated=job['restate'])
        else:
            session = Session(plan)
        conductor = Conductor(session, job['unattended'])
        conductors.append(conductor)
        if plan.wrench_axes != SENSOR and not session.is_closed:
            conductor.notes.append(
                "wrenches will be in the accelerometer's axes, which no estimator accepts"
            )
        if not _collect(node, executor, setup, conductor, path, signals):
            number = f'{session.step + 1} of {len(plan.loads)}'
            how = f"saved to '{path}'" if path else 'nothing was saved, as without --session'
            return {'stopped': True, 'lines': [f'stopped at data set {number}; {how}'],
                    'findings': [], 'refused': ''}  # fmt: skip
        return _finish(node, executor, setup, session, job)
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


def _collect(
    node: SessionNode, executor: Executor, setup: Setup, conductor: Conductor, path: Path | None,
    signals: Sequence[int],
) -> bool:  # fmt: skip
    """Collect until all data sets are closed; return whether they are."""
    caller, session, saved, saved_at = os.getppid(), conductor.session, -1, float('-inf')

    def save() -> int:
        size = sum(1 + len(one.poses) for one in session.collections) + session.is_closed
        if size != saved and path is not None:
            session.save(path)
        return size

    try:
        with keys() as pressed, Display(conductor) as display:
            while conductor.phase is not Phase.DONE:
                asked = pressed()
                # Without its caller a session has no reader.
                if signals or STOP in asked or os.getppid() != caller:
                    return False
                now = time.monotonic()
                executor.spin_once(timeout_sec=0.05)
                begun = conductor.look(now)
                asked += ''.join(node.asked)
                node.asked.clear()
                for key in asked:
                    if key == PROCEED:
                        begun |= conductor.proceed()
                    elif key == AGAIN:
                        begun |= conductor.restart_step()
                if begun:
                    setup.feed.begin()
                if now - saved_at > SAVE_PERIOD:
                    saved, saved_at = save(), now
                display.show(time.monotonic(), setup.complaints())
        return True
    finally:
        save()


def _finish(
    node: SessionNode, executor: Executor, setup: Setup, session: Session, job: dict[str, Any]
) -> dict[str, Any]:
    """Return the result of a session; write it and hand it to the estimator."""
    sensor, given, plan = job['ft'], job['temperature'], session.plan
    date = datetime.now(timezone.utc).isoformat(timespec='seconds')
    outcome = session.outcome(date, given if isfinite(given) else setup.feed.temperature)
    errors = [str(one) for one in outcome.findings if one.level >= Level.ERROR]
    one, found, estimator = outcome.calibration, outcome.matrix, None
    lines = [f'offset [N, Nm]: {" ".join(f"{x:.4g}" for x in one.offset)}']
    if found is None:
        _, deviations = outcome.offset.in_wrench(plan.matrix)
        figures = {'deviations': deviations.tolist(), 'gap': outcome.offset.subspace.gap}
    else:
        lines += [f"matrix [N, Nm per raw unit], in the {one.axes}'s axes:",
                  *(' '.join(f'{x:10.5g}' for x in row) for row in one.matrix),
                  f'body {found.body.mass:.3f} kg']  # fmt: skip
        change = found.change(
            None if plan.before is None else plan.matrix,
            turned=plan.before is not None and plan.before.axes != SENSOR,
        )
        figures = {
            'matrix': found.matrix.tolist(), 'deviations': found.deviations.tolist(),
            'axes': one.axes, 'body_mass': found.body.mass,
            'residuals_over_noise': found.residuals.tolist(),
            'change': None if change != change else change,
        }  # fmt: skip
    lines += setup.notes
    if setup.output is not None and not errors:
        write(setup.output, setup.robot, {sensor: one})
        lines.append(f"wrote {sensor} to '{setup.output}'")
        if job['estimator'] and one.axes != SENSOR:
            lines.append(f"not handed over: wrenches are in the {one.axes}'s axes")
        elif job['estimator']:
            answer = hand_over(node, executor, job['estimator'], setup.output)
            estimator = {'taken_over': answer.done, 'answer': answer.answer}
            lines.append(answer.answer)
    target = f"written to '{setup.output}'" if setup.output is not None else 'usable'
    readings = {
        load.name: one.counts()
        for load, one in zip(plan.loads, session.collections, strict=True)
    }  # fmt: skip
    return {
        'stopped': False,
        'lines': lines,
        'findings': [one.as_dict() for one in outcome.findings],
        'refused': f'calibration not {target}: {"; ".join(errors)}' if errors else '',
        'sensor': sensor,
        'date': date,
        'gravity': plan.gravity,
        'readings': readings,
        'output': None if setup.output is None or errors else str(setup.output),
        'estimator': estimator,
        'calibration': as_entry(outcome.calibration),
        **figures,
    }
