# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Once a second: what the identifier learns, and why it does not."""

from collections.abc import Iterator

from diagnostic_msgs.msg import DiagnosticArray
from rclpy.lifecycle import LifecycleNode
from rclpy.qos import QoSProfile

from inertial_estimation.identification.recursion.recursive_identifier import (
    RecursiveIdentifier,
    Refit,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import ERROR, OK, Task, milliseconds, to_message
from inertial_estimation.ros.stretches import FreeStretch


class IdentifierReport:
    """
    The diagnostics of an identifier.

    Parameters
    ----------
    node : LifecycleNode
        Publishes on /diagnostics, also while it is inactive.
    robot : Robot
        Names.

    """

    def __init__(self, node: LifecycleNode, robot: Robot) -> None:
        self._node, self._robot = node, robot
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=1)
        )
        self._rows_time = self._refit_time = float('nan')
        self._stretches = self._refits = self._failures = 0
        self._failure = ''

    def note_rows(self, seconds: float, stretch: FreeStretch) -> None:
        """Note how long a stretch took to be worked in [s]."""
        self._rows_time = seconds
        self._stretches += 1

    def note_refit(self, seconds: float, refit: Refit | None) -> None:
        """Note how long a refit took [s]."""
        self._refit_time = seconds
        self._refits += refit is not None

    def note_failure(self, error: Exception) -> None:
        """Note why a stretch was not learned from."""
        self._failures += 1
        self._failure = str(error)
        self._node.get_logger().error(f'nothing was learned from a stretch: {error}')

    def publish(
        self, identifier: RecursiveIdentifier, refit: Refit | None, *, active: bool
    ) -> None:
        """
        Publish the state of everything.

        Parameters
        ----------
        identifier : RecursiveIdentifier
            What is known.
        refit : Refit or None
            What was found last.
        active : bool
            Whether the node is.

        """
        tasks = [self._recursion(active), *self._submodels(identifier, refit)]
        now_ns = self._node.get_clock().now().nanoseconds
        self._publisher.publish(to_message(now_ns, self._node.get_name(), self._robot.name, tasks))

    def destroy(self) -> None:
        """Give the publisher back."""
        self._node.destroy_publisher(self._publisher)

    def _recursion(self, active: bool) -> Task:
        """Return the state of the recursion."""
        level, message = OK, 'running' if active else 'inactive'
        if self._failure:
            level, message, self._failure = ERROR, f'failed: {self._failure}', ''
        values = {
            'stretches': self._stretches,
            'refits': self._refits,
            'failures, total': self._failures,
            'time for a stretch [ms]': milliseconds(self._rows_time),
            'time for a refit [ms]': milliseconds(self._refit_time),
        }
        return Task('recursion', level, message, values)

    def _submodels(self, identifier: RecursiveIdentifier, refit: Refit | None) -> Iterator[Task]:
        """Yield what is known of each submodel."""
        for known in identifier.known:
            name = known.block.submodel.name
            values: dict[str, object] = {'time with rows [s]': f'{known.seconds:.1f}'}
            message = 'waits for rows'
            if refit is not None and name in refit.excitation:
                values['combinations told'] = refit.excitation[name].told
                message = 'identified'
            if refit is not None:
                message = refit.reasons.get(name, message)
            yield Task(f'submodel {name}', OK, message, values)
