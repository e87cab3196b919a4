# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Once a second: looks at what the estimator has been doing, publishes and logs it."""

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
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
from inertial_estimation.streams.assembler import AssemblerStatistics, SampleAssembler

LOG_EVERY = 10
"""Reports between two warnings that say the same."""
LONGEST_LOG = 4
"""Tasks in one warning; /diagnostics has them all."""


class Watches(NamedTuple):
    """What is looked at beside the messages and the cycle."""

    momentum: MomentumWatch
    bodies: BodyWatch
    dependence: DependenceWatch
    joint_motion: str
    """Where velocities and accelerations of joints come from."""


class Reminder:
    """Remembers what was warned about lately."""

    def __init__(self) -> None:
        self._waiting: dict[tuple[str, str], float] = {}

    def due(self, tasks: Iterable[Task]) -> list[Task]:
        """
        Return the tasks to warn about: what is new, and most again every `LOG_EVERY` reports.

        What is not to be repeated is not new when it comes back either: a hand that touches here
        and there brings the same warning with every touch.

        Parameters
        ----------
        tasks : iterable of Task
            All of a report.

        Returns
        -------
        list of Task
            Those that turned bad, or are bad for another cause than before.

        """
        bad = [task for task in tasks if task.level != OK and not task.is_said]
        due = [task for task in bad if task.complaint not in self._waiting]
        names = {task.name for task in bad}
        # A cause that comes and goes while its task stays bad is not new every time.
        self._waiting = {
            (name, cause): reports - 1
            for (name, cause), reports in self._waiting.items()
            if reports > 1 and (name in names or reports == inf)
        } | {task.complaint: LOG_EVERY - 1 if task.repeats else inf for task in due}
        return due


class Monitor:
    """
    The diagnostics of a configured estimator.

    Parameters
    ----------
    node : LifecycleNode
        Publishes on /diagnostics, also while it is inactive.
    robot : Robot
        Names.
    assembler : SampleAssembler
        Counts messages.
    contacts : ContactStream
        Counts points that are felt.
    inputs : Inputs
        Counts what was wrong with them.
    watches : Watches
        Momentum, IMUs, and what torques rest on.

    Attributes
    ----------
    cycles : Cycles
        To be fed every cycle.
    failed : int
        Samples that the estimator refused.
    sample, estimate : Sample, WrenchEstimate or None
        The newest since the last report.

    """

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
        """
        Count a sample that the estimator refused; the next report says why.

        Parameters
        ----------
        error : Exception
            Why.

        """
        self.failed += 1
        self._failure = str(error)

    def report(self, deviations: DeviationsReport, model: Task, *, active: bool) -> None:
        """
        Publish the state of everything, and warn about what is new.

        Parameters
        ----------
        deviations : DeviationsReport
            What was published of them.
        model : Task
            Which inertial parameters are in use.
        active : bool
            Whether the node is.

        """
        tasks = self._tasks(self._assembler.statistics(), active)
        tasks += [deviations_task(deviations), model]
        for source in self._inputs.sources:
            source.skew_due = True
        now_ns = self._node.get_clock().now().nanoseconds
        self._publisher.publish(to_message(now_ns, self._node.get_name(), self._robot.name, tasks))
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
        due = self._reminder.due(tasks)
        if due:
            said = '; '.join(f'{task.name}: {task.message}' for task in due[:LONGEST_LOG])
            more = f'; and {len(due) - LONGEST_LOG} more' if len(due) > LONGEST_LOG else ''
            self._node.get_logger().warning(said + more)
        if self._remark:
            self._node.get_logger().warning(self._remark)
            self._remark = ''
        if self.estimate is not None and (news := self._watches.dependence.news):
            self._node.get_logger().info(news)
