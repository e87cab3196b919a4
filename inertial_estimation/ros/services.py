# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Services that answer whatever happens: an error that leaves a callback ends the node."""

import traceback
from collections.abc import Callable
from functools import wraps
from typing import Any

from rclpy.node import Node
from rclpy.service import Service


def create_service(node: Node, kind: type, name: str, callback: Callable) -> Service:
    """Create a service whose answers have ``success`` and ``message``."""

    @wraps(callback)
    def answered(request, response):
        try:
            response = callback(request, response)
        except Exception as error:
            explain(node, name, error, response)
        response.message = sendable(response.message)
        return response

    return node.create_service(kind, name, answered)


def explain(node: Node, name: str, error: Exception, response: Any) -> None:
    """Answer with what nobody expected, and log where it was."""
    node.get_logger().error(sendable(f'{name}: {traceback.format_exc()}'))
    response.success = False
    response.message = f'{type(error).__name__}: {error}; the log says where'


def sendable(text: str) -> str:
    """Return a text without halves of pairs of UTF-16, as files may hold: ROS takes none."""
    return text.encode(errors='replace').decode()
