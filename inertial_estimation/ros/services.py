# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Services that always answer: an exception that leaves a callback would end the node."""

import traceback
from collections.abc import Awaitable, Callable
from inspect import isawaitable
from typing import Any

from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import SetBool

from inertial_estimation.errors import InertialEstimationError


def create_service(
    node: Node, kind: type, name: str, work: Callable[..., str | Awaitable[str]], refusal: str = ''
) -> Service:
    """
    Create a service that answers with the text of some work, or with the reason of its refusal.

    `work` gets the ``data`` of a SetBool, and nothing of a Trigger.
    """

    async def answer(request, response):
        response.success, text = False, ''
        try:
            found = work(request.data) if kind is SetBool else work()
            text, response.success = (await found if isawaitable(found) else found), True
        except InertialEstimationError as error:
            text = f'{refusal}: {error}' if refusal else str(error)
        except Exception as error:
            node.get_logger().error(_sendable(f'{name}: {traceback.format_exc()}'))
            text = f'{type(error).__name__}: {error}; see the log'
        response.message = _sendable(text)
        return response

    # Members of another kind of group, such as the default one, wait for each other.
    service = node.create_service(kind, name, answer, callback_group=ReentrantCallbackGroup())
    send = service.send_response

    def send_if_there(response: Any, header: Any) -> None:
        try:
            send(response, header)
        except InvalidHandle:
            node.get_logger().warning(f'{name} was cleaned up before it could be answered')

    service.send_response = send_if_there
    return service


def _sendable(text: str) -> str:
    """Return a text without single surrogates, as files may hold: ROS takes none."""
    return text.encode(errors='replace').decode()
