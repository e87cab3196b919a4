# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Services whose answer takes long, while everything else of the node goes on."""

from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import Any

from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger

from inertial_estimation.ros.services import explain, sendable


def create_waiting_services(node: Node, callbacks: Mapping[str, Callable]) -> list[Service]:
    """Return services that may wait for something."""
    # Members of another kind of group, such as the default one, wait for each other.
    group = ReentrantCallbackGroup()
    return [_create(node, name, callback, group) for name, callback in callbacks.items()]


def _create(node: Node, name: str, callback: Callable, group: ReentrantCallbackGroup) -> Service:
    """Return a service that answers whatever happens, unless it is destroyed before."""

    async def answered(request: Trigger.Request, response: Trigger.Response):
        try:
            found = callback(request, response)
            response = await found if isawaitable(found) else found
        except Exception as error:
            explain(node, name, error, response)
        response.message = sendable(response.message)
        return response

    service = node.create_service(Trigger, f'~/{name}', answered, callback_group=group)
    send = service.send_response

    def send_if_there(response: Any, header: Any) -> None:
        try:
            send(response, header)
        except InvalidHandle:
            node.get_logger().warning(f'{name} was cleaned up before it could be answered')

    service.send_response = send_if_there
    return service
