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
    """
    Create a service whose answers have ``success`` and ``message``.

    Parameters
    ----------
    node : Node
        Owns it, and logs what nobody expected.
    kind : type
        Trigger or SetBool.
    name : str
        As for any service.
    callback : callable
        Takes request and response, returns the response.

    Returns
    -------
    Service

    """

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
    """
    Answer with what nobody expected, and log where it was.

    Parameters
    ----------
    node : Node
        Logs it.
    name : str
        Of the service.
    error : Exception
        That is being handled.
    response : object
        To fill in.

    """
    node.get_logger().error(sendable(f'{name}: {traceback.format_exc()}'))
    response.success = False
    response.message = f'{type(error).__name__}: {error}; the log says where'


def sendable(text: str) -> str:
    """
    Return a text without halves of pairs of UTF-16, as files may hold: ROS takes none.

    Parameters
    ----------
    text : str
        Any.

    Returns
    -------
    str

    """
    return text.encode(errors='replace').decode()
