# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Once a second: what the identifier learns, and why it does not."""

from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.config import IdentifierSettings
from inertial_estimation.estimation.contact_stream import ContactStream
from inertial_estimation.identification.determined import in_words
from inertial_estimation.identification.recursion.base_values import BaseValues
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
)
from inertial_estimation.identification.recursion.memory import EFFORT
from inertial_estimation.identification.recursion.submodel_identifier import Rejection
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.logs.freedom import submodel_of
from inertial_estimation.model.submodels import Submodel
from inertial_estimation.ros.diagnostics import (
    ERROR,
    OK,
    WARN,
    Task,
    milliseconds,
    to_message,
    without_figures,
)
from inertial_estimation.ros.estimate_tasks import known_joints_task
from inertial_estimation.ros.identifier_arrays import GROUPS, errors
from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.lost_sensors import lost_sensors
from inertial_estimation.ros.monitor import Reminder, full_name, over_text
from inertial_estimation.ros.source_reports import SourceReports
from inertial_estimation.ros.stretches import STRETCH_NS
from inertial_estimation.ros.workload import Spent, shortfall
from inertial_estimation.sample import Sample
from inertial_estimation.signals.assembler import SampleAssembler

PATIENCE = 60
"""Reports in a row without an update of a submodel, after which that is a warning."""

SILENCE = 3.0
"""Without rows of a submodel that is no matter of stretches, which come once a second [s]."""
NO_TIME = Spent(0.0, 0.0)


class IdentifierReport:
    """
    The diagnostics of an identifier.

    longest_stretch, longest_refit [s].
    """

    def __init__(
        self,
        node: LifecycleNode,
        settings: IdentifierSettings,
        identifier: RecursiveIdentifier,
        assembler: SampleAssembler,
        contacts: ContactStream,
        inputs: Inputs,
    ) -> None:
        self._node, self._identifier, self._assembler = node, identifier, assembler
        robot = identifier.robot
        self._held = {
            robot.submodels[submodel_of(robot, frame)].name for frame in settings.held_frames
        }
        self._sources = SourceReports(robot, contacts, inputs)
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=1)
        )
        self._reminder = Reminder()
        self._sample: Sample | None = None
        self._samples = self._last_ns = self._first_ns = self._gap_ns = 0
        self._margin = settings.contact_margin
        self._rows_time = self._refit_time = float('nan')
        self._spent = self._busiest = NO_TIME
        self._stretches = self._failures = self._refusals = 0
        self.refits = self.updates = 0
        self.longest_stretch = self.longest_refit = 0.0
        self._failure = self._refusal = ''
        self._file: tuple[bool, str] | None = None
        self._base: dict[str, BaseValues] = {}
        self._waiting: dict[str, int] = {}

    def restart(self) -> None:
        """Count anew how long submodels wait."""
        self._waiting.clear()
        self._last_ns = self._first_ns = 0

    def note_sample(self, sample: Sample) -> None:
        """Note what came in."""
        self._sample = sample
        self._samples += 1
        if self._last_ns:
            self._gap_ns = max(self._gap_ns, sample.stamp_ns - self._last_ns)
        # Time that was set back begins anew.
        if not self._first_ns or sample.stamp_ns < self._last_ns:
            self._first_ns = sample.stamp_ns
        self._last_ns = sample.stamp_ns

    def note_rows(self, spent: Spent) -> None:
        """Note what it took to work a stretch in."""
        self._rows_time, self._spent = spent.seconds, spent
        self._busiest = max(self._busiest, spent)
        self.longest_stretch = max(self.longest_stretch, spent.seconds)
        self._stretches += 1

    def note_refit(
        self,
        spent: Spent,
        refit: Refit | None,
        values: Sequence[BaseValues],
        *,
        published: bool,
        refusal: str,
    ) -> None:
        self._refit_time = spent.seconds
        self._busiest = max(self._busiest, self._spent.plus(spent))
        self._spent = NO_TIME
        self.longest_refit = max(self.longest_refit, spent.seconds)
        self.refits += refit is not None
        self._base = {one.submodel: one for one in values}
        self._refusal = refusal
        self._refusals += bool(refusal)
        self.updates += published

    def note_failure(self, error: Exception) -> None:
        """Note why a stretch was not learned from."""
        self._failures += 1
        self._failure = str(error)

    def note_file(self, done: bool, said: str) -> None:
        """Note what came of reading or writing the state file."""
        self._file = done, said

    def publish(
        self, refit: Refit | None, others: Iterable[Task], *, active: bool, enabled: bool
    ) -> None:
        """Publish the state of everything, and warn about what is new."""
        tasks = [
            self._recursion(active, enabled),
            *self._submodels(refit, learning=active and enabled),
            *self._inputs(),
            *others,
        ]
        if self._file is not None:
            done, said = self._file
            tasks.append(Task('state file', OK if done else WARN, said, {}))
        now_ns = self._node.get_clock().now().nanoseconds
        robot = self._identifier.robot.name
        self._publisher.publish(to_message(now_ns, full_name(self._node), robot, tasks))
        if said := self._reminder.resets(self._assembler.statistics().resets):
            self._node.get_logger().info(said)
        if active:
            self._log(tasks)
        self._failure, self._sample, self._busiest = '', None, NO_TIME
        self._samples = self._gap_ns = 0

    def _log(self, tasks: Sequence[Task]) -> None:
        """Say what is new, once."""
        begun, over = self._reminder.news(tasks)
        if over:
            self._node.get_logger().info(over_text(over))
        if begun:
            said = '; '.join(f'{task.name}: {task.message}' for task in begun)
            self._node.get_logger().warning(said)

    def destroy(self) -> None:
        """Give the publisher back."""
        self._node.destroy_publisher(self._publisher)

    def _recursion(self, active: bool, enabled: bool) -> Task:
        """Return the state of the recursion."""
        level, message, cause = OK, 'running' if active else 'inactive', ''
        if self._failure:
            level, message = ERROR, f'nothing was learned from a stretch: {self._failure}'
            cause = without_figures(message)
        elif self._refusal:
            level, message = ERROR, f'an update was refused, the last one holds: {self._refusal}'
            cause = without_figures(message)
        elif active and not self._samples:
            level, message = ERROR, 'no joint states: nothing is learned'
        elif active and not enabled:
            message = 'paused: ~/enable goes on'
        elif late := shortfall(self._busiest, 1e-9 * STRETCH_NS):
            level, message, cause = WARN, late, 'does not keep up'
        values = {
            'samples': self._samples,
            'longest time between samples [ms]': milliseconds(1e-9 * self._gap_ns),
            'stretches': self._stretches,
            'refits': self.refits,
            'updates': self.updates,
            'refused updates': self._refusals,
            'failures, total': self._failures,
            'time for a stretch [ms]': milliseconds(self._rows_time),
            'time for a refit [ms]': milliseconds(self._refit_time),
        }
        return Task('recursion', level, message, values, cause)

    def _inputs(self) -> Iterator[Task]:
        """Yield the state of joints and topics."""
        statistics = self._assembler.statistics()
        yield known_joints_task(self._identifier.robot, self._sample, statistics)
        yield from self._sources.tasks(statistics, self._sample)

    def _submodels(self, refit: Refit | None, *, learning: bool) -> Iterator[Task]:
        """Yield what is known of each submodel."""
        payloads = self._identifier.payloads()
        for known in self._identifier.memories:
            name = known.block.submodel.name
            values: dict[str, object] = {'time with rows [s]': f'{known.seconds:.1f}'}
            if name in self._base:
                base = self._base[name]
                values['base parameters told'] = f'{base.rank} of {len(base.names)}'
            if refit is not None and name in refit.excitation:
                values['combinations told'] = refit.excitation[name].determined
            values |= _errors(refit, name)
            if name in payloads:
                load = payloads[name]
                values['picked up'] = (
                    f'{load.mass:.3f} kg at {load.link}, centre of mass '
                    f'{", ".join(f"{value:.3f}" for value in load.center)} m'
                )
            task, kinds = f'submodel {name}', known.block.kinds
            if learning and kinds and (said := self._starved(known.block.submodel)):
                cause = without_figures(said)
                yield Task(task, WARN, said, values, cause, repeats=False)
                continue
            if learning and (off := self._identifier.rejections().get(name)):
                values['left out'] = f'{off.kind}: {off.residual:.3f}, usually {off.noise:.3f}'
                values['left out for [s]'] = f'{off.seconds:.1f}'
                yield Task(task, WARN, _of_withheld(off), values, 'left out', repeats=False)
                continue
            lacking = self._without_efforts(kinds) if learning else []
            if lacking:
                values['without efforts'] = ' '.join(lacking)
                yield Task(task, WARN, _of_efforts(lacking), values, 'without efforts')
                continue
            level, message = self._state(name, refit, learning=learning)
            if not kinds:
                level = OK
            yield Task(task, level, message, values, without_figures(message), repeats=False)

    def _starved(self, submodel: Submodel) -> str:
        """Return for how long a submodel has had no rows, and what it lacks; empty: nothing."""
        if self._sample is None or submodel.name in self._held:
            return ''
        since = max(self._identifier.equations_ns.get(submodel.name, 0), self._first_ns)
        seconds = 1e-9 * (self._sample.stamp_ns - since)
        if seconds <= SILENCE + self._margin:
            return ''
        lost = lost_sensors(self._identifier.robot, submodel, self._sample)
        if not lost:
            return ''
        return f'no new rows for {seconds:.0f} s, as they need {in_words(lost)}'

    def _without_efforts(self, kinds: Sequence[str]) -> list[str]:
        """Return the joints of rows of efforts whose efforts the newest sample does not have."""
        if self._sample is None:
            return []
        joints, efforts = self._identifier.robot.joint_names, self._sample.efforts
        return [
            name
            for k, name in enumerate(joints)
            if f'{EFFORT}{name}' in kinds and (efforts is None or not isfinite(efforts[k]))
        ]

    def _state(self, name: str, refit: Refit | None, *, learning: bool) -> tuple[bytes, str]:
        """Return whether a submodel is identified, and if not for long, that as a warning."""
        if name in self._held:
            return OK, 'gives no rows: held_frames says that something holds it'
        if refit is not None and name in refit.refitted:
            self._waiting.pop(name, None)
            return OK, 'identified'
        message = 'waits for rows: none has come yet, or all joints stand still'
        if refit is not None:
            message = refit.reasons.get(name, message)
        self._waiting[name] = self._waiting.get(name, 0) + learning
        return WARN if self._waiting[name] > PATIENCE else OK, message


def _of_withheld(off: Rejection) -> str:
    """Return what acts on a submodel, and what to do about it."""
    unit = next(unit for group, unit in GROUPS.items() if off.kind.startswith(group))
    return (
        f'something unknown acts on it, or it has changed: {off.kind} is off by '
        f'{off.residual:.3g}, '
        f'usually {off.noise:.3g} {unit}, since {off.seconds:.0f} s; these rows are left out. If '
        "nothing touches it, call ~/reset while it moves as at work; a larger 'gate' bears more, "
        "a smaller 'prior_weight' less of a wrong description, 'gate: 0.0' leaves nothing out"
    )


def _of_efforts(joints: Sequence[str]) -> str:
    """Return which efforts are missing, and what to do about it."""
    return (
        f'joint states have no effort of {in_words(joints)}: let the driver send efforts, or name '
        "only joints that report them in 'efforts'"
    )


def _errors(refit: Refit | None, name: str) -> dict[str, str]:
    """Return what was left of the newest rows, before and after, of the groups that there are."""
    found = {
        f'error of {group} before, after {unit}': errors(refit, name, group)
        for group, unit in GROUPS.items()
    }
    return {
        key: f'{before:.3f}, {after:.3f}'
        for key, (before, after) in found.items()
        if isfinite(before)
    }
