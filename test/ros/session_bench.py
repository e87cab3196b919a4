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
from std_srvs.srv import Trigger
from turned_body import TurnedBody

from inertial_estimation.calibration.calibration_file import SensorCalibration, write
from inertial_estimation.calibration.collection import DIRECTIONS
from inertial_estimation.ros.conversions import ns_to_stamp, point_to_message, wrench_to_message

MAIN = 'import sys; from inertial_estimation.cli import main; sys.exit(main(sys.argv[1:]))'
TIMEOUT = 60.0
"""Long, because the machine may be busy; nothing waits for it to pass [s]."""
READINGS, ACCELEROMETER, SENSOR = 'foot/raw', 'foot/imu', 'foot_sensor'
LOADS = {1: (0.5, (0.3, -0.05, 0.1)), 2: (0.5, (0.0, 0.2, 0.1))}
RPY = (0.3, -0.5, 1.2)
TILTED = rpyToMatrix(*RPY)
"""Of an accelerometer in the sensor's frame."""
WORKSHOP = 1.02 * MATRIX
"""What the estimator begins with."""
BRIEF = '--unattended', '1', '--moments', '24'
"""A data set of two dozen poses."""


class SessionBench(BenchRobot):
    """An estimator with a calibration file, and the workshop's matrix in it."""

    def __init__(self, context, path):
        write(path, 'nested_humanoid', {SENSOR: SensorCalibration(WORKSHOP)})
        super().__init__(context, HUMANOID | {'calibration_file': str(path)})
        self.path = path

    @property
    def matrix(self):
        """That the estimator uses for the sensor, shape (6, 6)."""
        k = HUMANOID['ft_sensors'].index(SENSOR)
        return self.estimator.pipeline._estimator.calibration.matrices[k]

    def restore(self):
        """Tell the estimator to go on with its file; return the answer."""
        client = self.node.create_client(Trigger, 'wrench_estimator/restore')
        self.spin_until(client.service_is_ready)
        future = client.call_async(Trigger.Request())
        self.spin_until(future.done)
        self.node.destroy_client(client)
        return future.result()


class Call:
    """The command as a process, and what it says."""

    def __init__(self, *options):
        self.process = subprocess.Popen(
            [sys.executable, '-c', MAIN, 'calibrate', *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            start_new_session=True,
        )  # fmt: skip
        self.said: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self.process.stderr:
            self.said.append(line)

    def has_said(self, text):
        return any(text in line for line in self.said)

    def interrupt(self):
        """Press ctrl-c: all of the group get it."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self):
        """Wait for the end; return exit code and standard output."""
        out = self.process.stdout.read()
        code = self.process.wait(TIMEOUT)
        self._reader.join(TIMEOUT)
        return code, ' '.join(out.split())

    def close(self):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Ended:
    """What came of a call: exit code, both outputs as one line each, figures."""

    def __init__(self, call, bench, out):
        while call.process.poll() is None:
            # The estimator is to answer.
            bench.spin_for(0.05)
        self.code, self.printed = call.end()
        self.errors = ' '.join(' '.join(call.said).split())
        self.figures = json.loads(out.read_text()) if out.exists() else {}


def stated(loads=LOADS, rotation=None):
    """Return options that state loads, centres in the axes of a sensor or of what is turned."""
    R = np.eye(3) if rotation is None else rotation
    return [x for mass, at in loads.values() for x in ('--load', mass, *(R.T @ at))]


def end_call(bench, options):
    """Run a call that needs no readings any more."""
    return lead_through(bench, None, options)


def lead_through(bench, body, options):
    """Hang on what is asked for, and turn the body until the session has ended."""
    out = bench.path.with_name('out.json')
    out.unlink(missing_ok=True)
    call = Call('live', '--ft', SENSOR, '--json', str(out), *BRIEF, *map(str, options))

    def has_said(text):
        return call.has_said(text) or call.process.poll() is not None

    try:
        for k in range(3) if body else ():
            if k:
                bench.spin_until(lambda k=k: has_said(f"mount load 'load {k}'"))
            body.load(k)
            if k:
                bench.spin_until(lambda k=k: has_said(f'data set {k + 1} of 3 begins'))
            body.move_on(lambda k=k: has_said(f"data set {k + 1} of 3, '"))
        return Ended(call, bench, out)
    finally:
        call.close()


class Body(TurnedBody):
    """Publishes itself."""

    def __init__(self, rng, bench, rotation=None):
        super().__init__(rng, rotation=rotation)
        self.bench = bench
        node = bench.node
        self.fts = node.create_publisher(WrenchStamped, READINGS, 1000)
        self.imus = node.create_publisher(Imu, ACCELEROMETER, 1000)
        self.contacts = node.create_publisher(PointStamped, 'contacts', 1000)

    def is_heard(self):
        """Tell whether somebody takes the readings."""
        return self.fts.get_subscription_count() and self.imus.get_subscription_count()

    def load(self, k):
        self.added, self.at = LOADS.get(k, (0.0, (0.0, 0.0, 0.0)))

    def publish(self, gravity, n, touched=False):
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
        # Each of the three queues of the session holds 1000.
        self.bench.spin_for(0.03)

    def move_on(self, until):
        """Go from pose to pose until something holds."""
        deadline = time.monotonic() + TIMEOUT
        # A process that starts needs the time of the machine.
        self.bench.spin_until(lambda: self.is_heard() or until(), TIMEOUT)
        k = 0
        while not until():
            assert time.monotonic() < deadline, 'the session does not get on'
            gravity = GRAVITY * DIRECTIONS[k % 26]
            # A tilt at once is a motion without an end: readings jump. After what settles, two
            # moments are still.
            self.stamp_ns += 10**9
            self.touch = np.array([6.0, 0.0, 0.0, 0.0, 0.6, 0.0]) * (k % 7 == 6)
            self.publish(gravity, 76, touched=k % 7 == 6)
            k += 1
