# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Services that always answer: an exception that leaves a callback would end the node."""

import traceback
from collections.abc import Callable, Mapping
from functools import wraps
from inspect import isawaitable
from typing import Any

from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger

from inertial_estimation.errors import InertialEstimationError


def create_service(node: Node, kind: type, name: str, work: Callable[..., str]) -> Service:
    """
    Create a service that answers with the text of some work, or with the reason of its refusal.

    `work` gets the ``data`` of a SetBool, and nothing of a Trigger.
    """

    def answer(request, response):
        given = () if kind is Trigger else (request.data,)
        try:
            response.message = work(*given)
            response.success = True
        except InertialEstimationError as error:
            response.message = str(error)
        except Exception as error:
            _explain(node, name, error, response)
        response.message = _sendable(response.message)
        return response

    return node.create_service(kind, name, answer)


def create_waiting_services(node: Node, callbacks: Mapping[str, Callable]) -> list[Service]:
    """Return services whose callbacks may wait for something."""
    # Members of another kind of group, such as the default one, wait for each other.
    group = ReentrantCallbackGroup()
    return [_create_waiting(node, name, call, group) for name, call in callbacks.items()]


def _create_waiting(
    node: Node, name: str, callback: Callable, group: ReentrantCallbackGroup
) -> Service:
    @wraps(callback)
    async def answer(request: Trigger.Request, response: Trigger.Response):
        try:
            found = callback(request, response)
            response = await found if isawaitable(found) else found
        except Exception as error:
            _explain(node, name, error, response)
        response.message = _sendable(response.message)
        return response

    service = node.create_service(Trigger, f'~/{name}', answer, callback_group=group)
    send = service.send_response

    def send_if_there(response: Any, header: Any) -> None:
        try:
            send(response, header)
        except InvalidHandle:
            node.get_logger().warning(f'{name} was cleaned up before it could be answered')

    service.send_response = send_if_there
    return service


def _explain(node: Node, name: str, error: Exception, response: Any) -> None:
    """Answer with an unexpected error, and log where it was."""
    node.get_logger().error(_sendable(f'{name}: {traceback.format_exc()}'))
    response.success = False
    response.message = f'{type(error).__name__}: {error}; the log says where'


def _sendable(text: str) -> str:
    """Return a text without single surrogates, as files may hold: ROS takes none."""
    return text.encode(errors='replace').decode()
