# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What the diagnostics say of senders of touches that are slower than their timeout.

Not covered: how they are found (test/test_touch_rhythm.py).
"""

import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import HUMANOID, PERIOD_NS, START_NS, BenchRobot, figure
from geometry_msgs.msg import PointStamped

from inertial_estimation.ros.conversions import point_to_message
from inertial_estimation.ros.diagnostics import WARN

SLOW = 25
"""Periods of the bench between two messages: 0.25 s."""


def test_the_diagnostics_name_period_and_remedy(context, rng):
    robot = BenchRobot(context, HUMANOID | {'acceleration_source': 'zero'})
    try:
        robot.listen_to_diagnostics()
        wrenches = robot.listen_to_wrenches()
        touch = robot.publisher(PointStamped, 'contacts')
        for k in range(6):
            stamp = START_NS + k * SLOW * PERIOD_NS
            robot.send_all(stamp, rng)
            robot.wait_for_stamp(wrenches, stamp)
            touch.publish(point_to_message(stamp, 'hand', (0.0, 0.0, 0.0)))
        rhythm = robot.estimator.pipeline._inputs.touch_rhythm
        robot.spin_until(lambda: len(rhythm.slow_now(stamp)))
        robot.send_all(stamp + PERIOD_NS, rng)
        robot.spin_for(0.1)
        # The bench stamps with a clock of its own, which is a lesser warning.
        status = robot.status('contacts')
        assert status.level == WARN
        assert 'of hand every 0.25 s, but each is over after 0.1 s' in status.message
        assert status.message.endswith('set contact_timeout: 0.5')
        assert figure(status, 'period of hand [ms]') == '250.000'
    finally:
        robot.close()
