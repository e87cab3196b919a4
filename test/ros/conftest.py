# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What every test that talks ROS needs, set before rclpy is imported.

Field checks are off in the installable rclpy: a wrong type would be sent as garbage. Discovery
stays on this machine and in a domain that no robot uses; each process that runs tests draws one.
"""

import os

import pytest

# Beyond it the ports of a domain are those that the operating system hands out.
LAST_DOMAIN = 101

os.environ['ROS_PYTHON_CHECK_FIELDS'] = '1'
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
os.environ['ROS_DOMAIN_ID'] = str(1 + os.getpid() % LAST_DOMAIN)


@pytest.fixture
def context():
    """Return a context of its own for each test, shut down afterwards."""
    rclpy = pytest.importorskip('rclpy', reason='needs rclpy')
    from rclpy.context import Context

    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()
