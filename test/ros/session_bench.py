# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""``calibrate live`` as a process, a body that publishes itself, and an estimator beside them."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress

import numpy as np
from bench_robot import HUMANOID, BenchRobot
from geometry_msgs.msg import PointStamped, WrenchStamped
from hanging_body import GRAVITY, MATRIX
from pinocchio.rpy import rpyToMatrix
from sensor_msgs.msg import Imu
from turned_body import TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.collection import DIRECTIONS
from inertial_estimation.ros.conversions import ns_to_stamp, point_to_message, wrench_to_message

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main(sys.argv[1:]))'
TIMEOUT = 60.0
"""For a busy machine; nothing waits for it to pass [s]."""
READINGS, ACCELEROMETER, SENSOR = 'foot/raw', 'foot/imu', 'foot_sensor'
TOPICS = '--readings', READINGS, '--imu', ACCELEROMETER
LOADS = {1: (0.5, (0.3, -0.05, 0.1)), 2: (0.5, (0.0, 0.2, 0.1))}
RPY = (0.3, -0.5, 1.2)
TILTED = rpyToMatrix(*RPY)
"""Of an accelerometer in the sensor's frame."""
WORKSHOP = 1.02 * MATRIX
"""Matrix that the estimator begins with."""


class SessionBench(BenchRobot):
    """An estimator with a calibration file that holds the workshop's matrix."""

    def __init__(self, context, path):
        write(path, 'nested_humanoid', {SENSOR: SensorCalibration(WORKSHOP)})
        super().__init__(context, HUMANOID | {'calibration_file': str(path)})
        self.path = path

    @property
    def matrix(self):
        """Matrix of the sensor in use, (6, 6)."""
        k = HUMANOID['ft_sensors'].index(SENSOR)
        return self.estimator.pipeline._estimator.calibration.matrices[k]


class Call:
    """The command as a process, and its standard error."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [sys.executable, '-c', MAIN, 'calibrate', 'live', '--ft', SENSOR, '--unattended', '1',
             '--moments', '24', *map(str, options)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.lines: list[str] = []
        self.reader = threading.Thread(
            target=lambda: self.lines.extend(iter(self.process.stderr.readline, '')), daemon=True
        )
        self.reader.start()

    def printed(self, text):
        return any(text in line for line in self.lines) or self.process.poll() is not None

    def interrupt(self):
        """Send the signal of ctrl-c to the process group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, bench):
        """Wait for the end, with a node that may have to answer; return the exit code."""
        while self.process.poll() is None:
            bench.spin_for(0.05)
        self.reader.join(TIMEOUT)
        return self.process.returncode

    def close(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


def run_session(bench, body, options, first=0):
    """Mount the loads that are asked for and turn the body; return exit code and figures."""
    out = bench.path.with_name('out.json')
    out.unlink(missing_ok=True)
    call = Call('--json', out, *options)
    try:
        for k in range(first, 3) if body else ():
            if k:
                bench.spin_until(lambda k=k: call.printed(f"mount load 'load {k}'"), TIMEOUT)
            body.load(k)
            if k:
                bench.spin_until(lambda k=k: call.printed(f'data set {k + 1} of 3 begins'))
            body.move_on(lambda k=k: call.printed(f"data set {k + 1} of 3, '"))
        code = call.end(bench)
        return code, json.loads(out.read_text()) if out.exists() else call.lines
    finally:
        call.close()


def stated(loads=LOADS):
    """Return options that state loads."""
    return [x for mass, at in loads.values() for x in ('--load', mass, *at)]


class Body(TurnedBody):
    """Publishes itself."""

    def __init__(self, rng, bench, rotation=None):
        super().__init__(rng, rotation=rotation)
        self.bench, node = bench, bench.node
        self.fts = node.create_publisher(WrenchStamped, READINGS, 1000)
        self.imus = node.create_publisher(Imu, ACCELEROMETER, 1000)
        self.contacts = node.create_publisher(PointStamped, 'contacts', 1000)

    def is_heard(self):
        return self.fts.get_subscription_count() and self.imus.get_subscription_count()

    def load(self, k):
        self.added, self.at = LOADS.get(k, (0.0, (0.0, 0.0, 0.0)))

    def publish(self, gravity, n, touched):
        """Publish a pose that is held."""
        for stamp, raw, a, w in self.readings(gravity, n):
            imu = Imu()
            imu.header.stamp = ns_to_stamp(stamp)
            for vector, values in ((imu.linear_acceleration, a), (imu.angular_velocity, w)):
                vector.x, vector.y, vector.z = map(float, values)
            self.imus.publish(imu)
            if touched:
                self.contacts.publish(point_to_message(stamp, 'anything', (0, 0, 0)))
            self.fts.publish(wrench_to_message(stamp, 'foot', raw))

    def move_on(self, until):
        """Go from pose to pose until something holds."""
        deadline, k = time.monotonic() + TIMEOUT, 0
        self.bench.spin_until(lambda: self.is_heard() or until(), TIMEOUT)
        while not until():
            assert time.monotonic() < deadline, 'the session makes no progress'
            touched = k % 7 == 6
            # A tilt at once jumps; after settling two poses are still.
            self.stamp_ns += 10**9
            self.touch = np.array([6.0, 0.0, 0.0, 0.0, 0.6, 0.0]) * touched
            self.publish(GRAVITY * DIRECTIONS[k % 26], 76, touched)
            # Each of the three queues of the session holds 1000.
            self.bench.spin_for(0.03)
            k += 1
