# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Once a second: looks at what the estimator has been doing, publishes and logs it."""

from collections.abc import Iterable
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.qos import QoSProfile

from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.bodies import BodyWatch
from inertial_estimation.ros.cycles import Cycles
from inertial_estimation.ros.dependence import DependenceWatch
from inertial_estimation.ros.deviations import DeviationsReport
from inertial_estimation.ros.diagnostics import OK, Task, to_message
from inertial_estimation.ros.estimate_tasks import (
    cycle_task,
    deviations_task,
    known_joints_task,
    submodel_tasks,
)
from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.momentum import MomentumWatch
from inertial_estimation.ros.source_reports import SourceReports
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import AssemblerStatistics, SampleAssembler

WELL = 10
"""Reports in a row in which a task is well before its trouble is over."""
MAX_CAUSES = 20
"""That are said of a task until it is well: one with ever new ones must not fill the log."""
LONGEST_LOG = 4
"""Tasks in one warning; /diagnostics has them all."""


def full_name(node: Node) -> str:
    """Return the name of a node with its namespace, which tells nodes of two robots apart."""
    return str(node.get_fully_qualified_name()).lstrip('/')


def over_text(tasks: Iterable[Task]) -> str:
    """Return what the log says of tasks that are well again."""
    return 'well again: ' + '; '.join(f'{task.name}: {task.message}' for task in tasks)


class Watches(NamedTuple):
    """What is looked at beside the messages and the cycle."""

    momentum: MomentumWatch
    bodies: BodyWatch
    dependence: DependenceWatch
    joint_motion: str
    """Where velocities and accelerations of joints come from."""


class News(NamedTuple):
    """What a report says that the log has not said yet."""

    begun: list[Task]
    """Tasks that turned bad, or are bad for another cause than before."""
    over: list[Task]
    """Tasks that have been well for some time again."""


class _Episode:
    """From the first report in which a task was bad to the last one."""

    def __init__(self) -> None:
        self.causes: set[str] = set()
        self.well = 0
        self.ends = False


class Reminder:
    """
    Remembers what was warned about, so that the log says what changes and nothing twice.

    A task that turns bad is warned of once for each cause, and once more is said when it has been
    well for `WELL` reports. What comes and goes faster is one and the same trouble. The
    diagnostics have the state all the time.
    """

    def __init__(self) -> None:
        self._resets = 0
        self._episodes: dict[str, _Episode] = {}
        self._lasting: set[tuple[str, str]] = set()

    def news(self, tasks: Iterable[Task]) -> News:
        """Return what is to be logged of a report."""
        news = News([], [])
        for task in tasks:
            if task.level == OK or task.is_said:
                if self._is_over(task.name):
                    news.over.append(task)
            elif self._is_new(task):
                news.begun.append(task)
        return news

    def resets(self, total: int) -> str:
        """Return what to say of time that was set back since the last call."""
        times, self._resets = total - self._resets, total
        if times <= 0:
            return ''
        often = f' {times} times' if times > 1 else ''
        return f'the stamps of joint states went back{often}: filters and buffers were emptied'

    def _is_new(self, task: Task) -> bool:
        """Note a bad task; return whether its cause was not said yet."""
        episode = self._episodes.setdefault(task.name, _Episode())
        episode.well = 0
        episode.ends |= task.repeats
        cause = task.complaint[1]
        if cause in episode.causes or task.complaint in self._lasting:
            return False
        if len(episode.causes) == MAX_CAUSES:
            return False
        episode.causes.add(cause)
        if not task.repeats:
            self._lasting.add(task.complaint)
        return True

    def _is_over(self, name: str) -> bool:
        """Note a task that is well; return whether that is to be said."""
        episode = self._episodes.get(name)
        if episode is None:
            return False
        episode.well += 1
        if episode.well < WELL:
            return False
        del self._episodes[name]
        return episode.ends


class Monitor:
    """The diagnostics of a configured estimator."""

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        assembler: SampleAssembler,
        contacts: ContactStream,
        inputs: Inputs,
        watches: Watches,
    ) -> None:
        self._node, self._robot = node, robot
        self._assembler, self._inputs = assembler, inputs
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=1)
        )
        self._reports = SourceReports(robot, contacts, inputs)
        self._reminder = Reminder()
        self._watches = watches
        self._remark = watches.dependence.configured
        self.cycles = Cycles()
        self.failed = 0
        self._failure = ''
        self.sample: Sample | None = None
        self.estimate: WrenchEstimate | None = None

    def note_failure(self, error: Exception) -> None:
        """Count a sample that the estimator refused; the next report says why."""
        self.failed += 1
        self._failure = str(error)

    def report(
        self, deviations: DeviationsReport, changed: Iterable[Task], *, active: bool
    ) -> None:
        """Publish the state of everything, and warn about what is new."""
        statistics = self._assembler.statistics()
        if said := self._reminder.resets(statistics.resets):
            self._node.get_logger().info(said)
        tasks = self._tasks(statistics, active)
        tasks += [deviations_task(deviations), *changed]
        for source in self._inputs.sources:
            source.skew_due = True
        now_ns = self._node.get_clock().now().nanoseconds
        name = full_name(self._node)
        self._publisher.publish(to_message(now_ns, name, self._robot.name, tasks))
        if active:
            self._log(tasks)
        # What is old by the next report must not pass for the state of things then.
        self.sample = self.estimate = None

    def destroy(self) -> None:
        """Give the publisher back."""
        self._node.destroy_publisher(self._publisher)

    def _tasks(self, statistics: AssemblerStatistics, active: bool) -> list[Task]:
        """Return the state of everything."""
        fallbacks = sum(source.fallbacks for source in self._inputs.sources)
        failure, self._failure = self._failure, ''
        tasks = [
            cycle_task(
                self.cycles.report(),
                self.cycles.total_missed,
                fallbacks,
                self.failed,
                active=active,
                failure=failure,
            ),
            known_joints_task(self._robot, self.sample, statistics, self._watches.joint_motion),
            *self._reports.tasks(statistics, self.sample),
        ]
        if self.sample is not None:
            tasks += self._watches.bodies.tasks(self.sample)
        if self.estimate is not None:
            tasks += submodel_tasks(self._robot, self.estimate)
            tasks.append(self._watches.dependence.task(self.estimate))
            tasks.append(self._watches.momentum.task())
        return tasks

    def _log(self, tasks: list[Task]) -> None:
        """Warn in one line about tasks that turned bad, or for another cause; say what is new."""
        due, over = self._reminder.news(tasks)
        if over:
            self._node.get_logger().info(over_text(over))
        if due:
            said = '; '.join(f'{task.name}: {task.message}' for task in due[:LONGEST_LOG])
            more = f'; and {len(due) - LONGEST_LOG} more' if len(due) > LONGEST_LOG else ''
            self._node.get_logger().warning(said + more)
        if self._remark:
            self._node.get_logger().warning(self._remark)
            self._remark = ''
        if self.estimate is not None and (news := self._watches.dependence.news):
            self._node.get_logger().info(news)
