# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What goes to /diagnostics: tasks, and the message they make."""

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue

from inertial_estimation.ros.conversions import ns_to_stamp

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR

NUMBER = re.compile(r'(?<![\w.])-?\d[\d.]*(e[-+]?\d+)?')

Values = Mapping[str, object]


class Task(NamedTuple):
    """One status of the array."""

    name: str
    level: bytes
    message: str
    values: Values
    cause: str = ''
    """The message without the figures that change all the time; empty: it has none."""
    repeats: bool = True
    """Whether it is worth a warning when it comes back, and a word when it is over."""
    is_said: bool = False
    """Whether it was logged when it happened, so that a report need not."""

    @property
    def complaint(self) -> tuple[str, str]:
        """Who complains about what: the same as long as a warning would say nothing new."""
        return self.name, self.cause or self.message


def to_message(stamp_ns: int, node: str, robot: str, tasks: Iterable[Task]) -> DiagnosticArray:
    """Return tasks as a message."""
    message = DiagnosticArray()
    message.header.stamp = ns_to_stamp(stamp_ns)
    message.status = [
        DiagnosticStatus(
            name=f'{node}: {task.name}',
            level=task.level,
            message=task.message,
            hardware_id=robot,
            values=[KeyValue(key=key, value=str(value)) for key, value in task.values.items()],
        )
        for task in tasks
    ]
    return message


def without_figures(text: str) -> str:
    """Return a text without its numbers: the same cause says others every time."""
    return NUMBER.sub('', text)


def milliseconds(seconds: float) -> str:
    """Return a time for a reader [ms]."""
    return f'{1e3 * seconds:.3f}'


def microseconds(seconds: float) -> str:
    """Return a short time for a reader [us]."""
    return f'{1e6 * seconds:.0f}'
