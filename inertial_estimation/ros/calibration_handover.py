# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Handover of a calibration file to a running estimator."""

import time
from pathlib import Path
from typing import Any, NamedTuple

from rcl_interfaces.srv import GetParameters
from rclpy.executors import Executor
from rclpy.node import Node
from std_srvs.srv import Trigger

THERE = 10.0
"""
Time in which a service that is there is found [s]: participants are announced anew every three
seconds, and the first time may be missed where the machine is busy.
"""
ANSWER = 20.0
"""Time for an answer [s]."""
PARAMETER = 'calibration_file'


class Handover(NamedTuple):
    """Result of a handover."""

    done: bool
    """Whether the estimator uses the file."""
    answer: str
    """Of the estimator, or why it was not asked."""


def hand_over(node: Node, executor: Executor, estimator: str, path: Path) -> Handover:
    """Ask a running estimator to use a calibration file."""
    name = node.resolve_service_name(f'{estimator}/restore').removesuffix('/restore')
    got = _call(
        node, executor, GetParameters, f'{name}/get_parameters',
        GetParameters.Request(names=[PARAMETER]),
    )  # fmt: skip
    if got is None:
        return Handover(False, f"no estimator answers as '{name}'")
    read = got.values[0].string_value if got.values else ''
    if not read:
        return Handover(False, f"'{name}' has no '{PARAMETER}'")
    if Path(read).expanduser().resolve() != path.resolve():
        return Handover(False, f"'{name}' reads '{read}', not '{path}'")
    answer = _call(node, executor, Trigger, f'{name}/restore', Trigger.Request())
    if answer is None:
        return Handover(False, f"'{name}' does not answer on ~/restore")
    return Handover(bool(answer.success), f"'{name}': {answer.message}")


def _call(node: Node, executor: Executor, kind: Any, service: str, request: Any) -> Any:
    """Return the answer of a service; None: there is none."""
    client = node.create_client(kind, service)
    try:
        if not _spin(executor, client.service_is_ready, THERE):
            return None
        future = client.call_async(request)
        return future.result() if _spin(executor, future.done, ANSWER) else None
    finally:
        node.destroy_client(client)


def _spin(executor: Executor, condition: Any, seconds: float) -> bool:
    """Spin until something holds; tell whether it does."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        executor.spin_once(timeout_sec=0.05)
    return True
