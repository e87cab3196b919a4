# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A robot on the bench that stands still, and whose calibration changes."""

import numpy as np
from bench_robot import HUMANOID, JOINTS, PERIOD_NS, START_NS, BenchRobot
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator

SETTINGS = EstimatorSettings.from_dict(HUMANOID)
STILL = {'joint_states.acceleration_source': 'zero', 'angular_acceleration_source': 'zero'}
# The same readings are used again and again.
LASTING = {
    f'{kind}.{name}.{limit}': value
    for kind, names in (('ft', HUMANOID['ft_sensors']), ('imu', HUMANOID['imus']))
    for name in names
    for limit, value in (('max_age', 10.0), ('frozen_after', 0.0))
}


class CalibrationBench(BenchRobot):
    """Sends the same readings at each stamp, and keeps the sample and the torques."""

    def __init__(self, context, **parameters):
        super().__init__(context, HUMANOID | STILL | LASTING | parameters)
        self.pipeline = self.estimator.pipeline
        self.heard_torques = self.heard['wrench_estimator/joint_torques']
        self.listen(JointState, 'wrench_estimator/joint_torques', 1000)
        self.listen_to_diagnostics()
        self.stamp_ns = START_NS
        rng = np.random.default_rng(5)
        self.wrenches = {name: rng.normal(size=6) for name in HUMANOID['ft_sensors']}
        self.positions = 0.3 * rng.normal(size=len(JOINTS))
        estimator = self.pipeline._estimator

        def update(sample, contacts):
            self.sample = sample
            return WrenchEstimator.update(estimator, sample, contacts)

        estimator.update = update

    def torques(self):
        """Send the readings with the next stamp; return their torques."""
        self._report = None
        self.stamp_ns += PERIOD_NS
        for name, wrench in self.wrenches.items():
            self.send_ft(name, self.stamp_ns, wrench)
        self.send_imu('head', self.stamp_ns, (0.0, 0.0, 0.0), (1.0, 2.0, 9.0))
        self.spin_for(0.03)
        self.send_joints(self.stamp_ns, position=self.positions, velocity=np.zeros(len(JOINTS)))
        return np.array(self.wait_for_stamp(self.heard_torques, self.stamp_ns).effort)

    def call(self, name):
        """Call a service; return its answer."""
        client = self.node.create_client(Trigger, f'wrench_estimator/{name}')
        self.spin_until(client.service_is_ready)
        future = client.call_async(Trigger.Request())
        self.spin_until(future.done)
        self.node.destroy_client(client)
        self._report = None
        return future.result()
