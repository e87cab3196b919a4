# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Services whose answer takes long, while everything else of the node goes on."""

from collections.abc import Callable, Mapping
from typing import Any

from rclpy._rclpy_pybind11 import InvalidHandle
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.service import Service
from std_srvs.srv import Trigger


def create_waiting_services(node: Node, callbacks: Mapping[str, Callable]) -> list[Service]:
    """
    Return services that may wait for something.

    Parameters
    ----------
    node : Node
        Owns them.
    callbacks : mapping of str to callable
        By name; a coroutine gives way to everything else while it waits.

    Returns
    -------
    list of Service
        Of type Trigger.

    """
    # Members of another kind of group, such as the default one, wait for each other.
    group = ReentrantCallbackGroup()
    return [_create(node, name, callback, group) for name, callback in callbacks.items()]


def _create(node: Node, name: str, callback: Callable, group: ReentrantCallbackGroup) -> Service:
    """Return a service that may be destroyed before it has answered."""
    service = node.create_service(Trigger, f'~/{name}', callback, callback_group=group)
    send = service.send_response

    def send_if_there(response: Any, header: Any) -> None:
        try:
            send(response, header)
        except InvalidHandle:
            node.get_logger().warning(f'{name} was cleaned up before it could be answered')

    service.send_response = send_if_there
    return service
