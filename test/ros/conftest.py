# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Environment of tests with ROS, set before rclpy is imported.

Field checks are off in the installable rclpy: a wrong type would be sent as garbage. Discovery
stays on this machine, in a domain that no other test process uses.
"""

import fcntl
import os
import tempfile
from contextlib import ExitStack, closing
from importlib.util import find_spec
from pathlib import Path

import pytest

LAST_DOMAIN = 101
HAS_ROS = find_spec('rclpy') is not None
# Without rclpy none of these files can be imported.
collect_ignore_glob = [] if HAS_ROS else ['test_*.py']


def pytest_report_collectionfinish():
    """State why tests are left out."""
    return '' if HAS_ROS else 'test/ros is left out: rclpy is not installed'


def free_domain():
    """Return a domain and its lock, which is held until the process ends."""
    for domain in range(1, LAST_DOMAIN + 1):
        lock = (Path(tempfile.gettempdir()) / f'test_ros_domain_{domain}').open('w')
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            lock.close()
        else:
            return domain, lock
    raise RuntimeError(f'all {LAST_DOMAIN} domains are in use')


os.environ['ROS_PYTHON_CHECK_FIELDS'] = '1'
os.environ['ROS_AUTOMATIC_DISCOVERY_RANGE'] = 'LOCALHOST'
DOMAIN, _LOCK = free_domain()
os.environ['ROS_DOMAIN_ID'] = str(DOMAIN)


@pytest.fixture
def context():
    """Return a context of its own for each test, shut down afterwards."""
    import rclpy
    from rclpy.context import Context

    context = Context()
    rclpy.init(context=context)
    yield context
    context.try_shutdown()


@pytest.fixture
def keep(context):
    """Return a function that returns its robot, which is closed afterwards."""
    with ExitStack() as stack:
        yield lambda robot: stack.enter_context(closing(robot))


@pytest.fixture
def bench(context, keep):
    """Return a function that puts a node on the bench: parameters beside those of `HUMANOID`."""
    from bench_robot import HUMANOID, BenchRobot

    return lambda *kind, **parameters: keep(BenchRobot(context, HUMANOID | parameters, *kind))
