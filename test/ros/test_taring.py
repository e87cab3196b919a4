# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets from the model while the node runs.

The mathematics is in `../test_offset_from_model`; the readings come from a robot that is held by
known wrenches, computed without the engine.
"""

import numpy as np
import pytest
from bench_robot import LATCHED, NO_FILTERS, START_NS, BenchRobot, figure
from geometry_msgs.msg import WrenchStamped
from standing_biped import biped, biped_urdf, standing
from std_srvs.srv import Trigger

from inertial_estimation.ros import taring

PATIENCE = 90.0
"""For a busy machine, and a process that has to start [s]."""
CYCLE_NS = 10_000_000
NOISE = np.array([0.05, 0.05, 0.05, 0.002, 0.002, 0.002])
# Of a mean of some thirty readings, five standard deviations.
EXACT = 5.0 * NOISE / np.sqrt(30.0)
SENSORS = ('l_leg', 'l_foot', 'r_leg', 'r_foot', 'arm')
ROBOT = biped()
JOINTS = ROBOT.joint_names
BIPED = {
    'robot_description': biped_urdf(),
    'imus': ['root'],
    'contacts': ['l_sole', 'hand'],
    'tare_supports': ['l_sole'],
    **NO_FILTERS,
    **{f'ft.{name}.frame_id': name for name in SENSORS},
    'frozen_after': 0.0,
}


class Biped(BenchRobot):
    """A robot on its left foot that sends its readings."""

    def __init__(self, context):
        super().__init__(context, BIPED)
        self.rng = np.random.default_rng(4)
        self.offsets = self.rng.normal(0.0, [20.0] * 3 + [2.0] * 3, (5, 6))
        self.stamp_ns = START_NS
        self.stand(seed=0)
        self.velocity = 0.0
        self.touched = ''

    def stand(self, seed):
        positions = np.random.default_rng(seed).uniform(-0.8, 0.8, len(JOINTS))
        self.shot = standing(ROBOT, positions, {'l_sole': 1.0}, up=(0.1, 0.2, 1.0))

    def cycle(self):
        self.stamp_ns += CYCLE_NS
        readings = self.shot.ft_readings + self.offsets + NOISE * self.rng.normal(size=(5, 6))
        if self.touched:
            self.send_contact(self.stamp_ns, self.touched)
        # Readings that are a cycle late are of the same pose.
        velocities = np.full(len(JOINTS), self.velocity)
        sample = self.shot._replace(
            stamp_ns=self.stamp_ns, ft_readings=readings, velocities=velocities
        )
        self.send_sample(ROBOT, sample)
        self.spin_briefly(8)

    def until(self, condition):
        def holds():
            self.cycle()
            return condition()

        self.spin_until(holds, PATIENCE)

    def begin(self, name):
        client = self.node.create_client(Trigger, f'wrench_estimator/{name}')
        self.spin_until(client.service_is_ready)
        return client.call_async(Trigger.Request())

    def ask(self, name):
        future = self.begin(name)
        self.until(future.done)
        return future.result()

    @property
    def found(self):
        return self.estimator.pipeline._estimator.calibration.offsets


@pytest.fixture
def bench(context, keep, monkeypatch):
    monkeypatch.setattr(taring, 'DURATION', 0.4)
    robot = keep(Biped(context))
    robot.listen_to_diagnostics()
    return robot


def is_found(bench, rows=slice(None)):
    return (np.abs(bench.found[rows] - bench.offsets[rows]) < EXACT).all()


def refuse(bench, name, *words):
    before, answer = bench.found.copy(), bench.ask(name)
    assert not answer.success and all(word in answer.message for word in words)
    np.testing.assert_array_equal(bench.found, before)


def test_offsets_are_found_and_published(bench):
    heard = bench.listen(WrenchStamped, '~/ft_offset/l_leg', LATCHED)
    answer = bench.ask('tare')
    assert answer.success and is_found(bench), answer.message
    bench.spin_until(lambda: abs(heard[-1].wrench.force.x - bench.offsets[0, 0]) < EXACT[0])
    heard = bench.listen_to_wrenches()
    bench.until(lambda: heard)
    hand = heard[-1].wrench[heard[-1].joint_names.index('hand')].force
    assert np.linalg.norm([hand.x, hand.y, hand.z]) < 1.0
    status = bench.next_status('ft_calibration')
    assert figure(status, 'arm: method') == 'offsets from the model, one support: l_sole'
    assert figure(status, 'saved') == 'False'
    # Further poses must agree.
    bench.stand(seed=3)
    bench.stamp_ns += 200 * CYCLE_NS
    assert bench.ask('add_tare_pose').success and is_found(bench)
    # A hand of 10.8 N is pushed by 9 N in the next pose.
    bench.stand(seed=4)
    bench.stamp_ns += 200 * CYCLE_NS
    bench.offsets[4, 0] += 9.0
    # Messages on their way were sent without it.
    for _ in range(15):
        bench.cycle()
    refuse(bench, 'add_tare_pose', 'arm')
    assert len(bench.estimator.pipeline._taring._poses) == 2


def test_tares_of_one_sensor_one_at_a_time_at_rest_untouched(bench):
    assert bench.ask('tare_r_foot').success and is_found(bench, 3)
    assert not np.delete(bench.found, 3, axis=0).any()
    first, second = bench.begin('tare'), bench.begin('tare_arm')
    bench.until(lambda: first.done() and second.done())
    assert {first.result().success, second.result().success} == {True, False}
    # Motion and touches are refused by name.
    bench.velocity = 1.0
    refuse(bench, 'tare', 'l_hip_pitch')
    bench.velocity = 0.0
    future = bench.begin('tare')
    for k in range(60):
        # Between two touches ten samples or more are free.
        bench.touched = 'hand' if k % 20 < 8 else ''
        bench.cycle()
    bench.until(future.done)
    assert not future.result().success and 'hand' in future.result().message
    bench.touched = 'unknown_skin'
    refuse(bench, 'tare', 'unknown_skin')
    # A contact on the support is expected.
    bench.touched = 'l_sole'
    for _ in range(15):
        bench.cycle()
    assert bench.ask('tare').success


def test_deactivation_and_cleanup_end_it_and_cycles_go_on(bench):
    future = bench.begin('tare')
    for _ in range(5):
        bench.cycle()
    bench.estimator.trigger_deactivate()
    refused = bench.begin('tare')
    bench.spin_until(lambda: future.done() and refused.done())
    assert not future.result().success and not refused.result().success
    bench.estimator.trigger_cleanup()
    bench.spin_for(0.1)
    bench.estimator.trigger_configure()
    bench.estimator.trigger_activate()
    answer = bench.ask('tare')
    assert answer.success, answer.message
    intervals, _ = bench.estimator.pipeline._cycles.take()
    assert intervals and set(intervals) == {CYCLE_NS}
