# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Faults of a second injected on a node, beside a twin that gets the same messages without them.

Messages are handed to the node without the middleware, so each run is the same. A result is
exact, flagged or not published; what no reading can show is only kept from other submodels.
Not covered: impossible readings (test_reading_checks.py), stalls of the executor and doubled
publishers (test_estimator_node.py), wrong updates (test_model_updates.py).
"""

from collections import deque
from functools import partial
from itertools import chain, count
from threading import active_count
from time import perf_counter

import bag_messages
import numpy as np
import pytest
from bench_robot import HUMANOID, JOINTS, START_NS
from fuzz_targets import changed
from rclpy.parameter import Parameter
from std_msgs.msg import String

from inertial_estimation.findings import Level
from inertial_estimation.ros.estimator_node import EstimatorNode
from inertial_estimation.ros.identifier_node import IdentifierNode
from inertial_estimation.signals.polling import poll

PERIOD_NS, BEGIN, END, LAST = 10_000_000, 50, 150, 260
"""Of the joint states [ns], and cycles of the fault."""
RECOVERED = END + 100
"""A second later."""
NOTICED = 12
"""Cycles until a silent or frozen sensor is one."""
JUMP, QUEUE = 500, 50
"""Of a clock [cycles], and messages that wait."""
REPORTS = BEGIN - 1, BEGIN + 50, END - 1, RECOVERED, LAST - 1
ROUND_OFF = 1e-9
RANGE = 300.0
SETTINGS = HUMANOID | {
    'imus': ['root'], 'ft.arm_sensor.range': [RANGE] * 3 + [50.0] * 3, 'frozen_after': 0.1,
}  # fmt: skip
ARM, LEG, IMU, STATES = 'ft/arm_sensor', 'ft/leg_sensor', 'imu/root', 'joint_states'
FTS = [f'ft/{name}' for name in HUMANOID['ft_sensors']]


def cycle(k, period_ns=PERIOD_NS):
    """Return topics, stamps and values of a cycle: smooth, slow, and never the same."""
    stamp, t = START_NS + k * period_ns, k * period_ns * 1e-9
    phase = np.arange(6.0)
    for s, topic in enumerate(FTS):
        yield [topic, stamp, 20.0 * np.sin(0.9 * t + phase + s) + 0.01 * np.cos(40.0 * t)]
    turn = 0.2 * np.sin(0.7 * t + phase[:3])
    yield [IMU, stamp, np.concatenate([turn, [0.0, 1.0 + turn[0], 9.75]])]
    yield [STATES, stamp, np.array([0.3 * np.sin(t + phase), 0.3 * np.cos(t + phase)])]


def encode(topic, stamp, values):
    if isinstance(values, bytes):
        return values
    kind, _, name = topic.partition('/')
    if kind == 'ft':
        return bag_messages.wrench(stamp, name, values)
    if kind == 'imu':
        return bag_messages.imu(stamp, name, values[:3], values[3:])
    if kind == 'contacts':
        return bag_messages.point(stamp, 'nowhere', values)
    return bag_messages.joint_state(stamp, JOINTS, *values)


# Each takes the messages of a cycle and whether the fault is on, and returns those that arrive.


def edited(topic, change):
    """Return a fault that changes stamp and values of a topic."""

    def fault(messages, is_on):
        return [[t, *change(s, v)] if is_on and t == topic else [t, s, v] for t, s, v in messages]

    return fault


def once(change, topic=ARM):
    """Return a fault of one message, by default of the arm."""
    messages = count()
    return edited(topic, lambda s, v: change(s, v) if next(messages) == 20 else (s, v))


def silent(*topics):
    return lambda messages, is_on: [m for m in messages if not (is_on and m[0] in topics)]


def late(topic, cycles, restamped=False):
    held = deque()

    def fault(messages, is_on):
        out = []
        for message in messages:
            if message[0] != topic:
                out.append(message)
                continue
            held.append(message)
            while len(held) > cycles * is_on:
                t, stamp, values = held.popleft()
                out.append([t, message[1] if restamped else stamp, values])
        return sorted(out, key=lambda message: message[0] == STATES)

    return fault


def clock_off(by_ns):
    def fault(messages, is_on):
        return [[t, s + by_ns * is_on, v] for t, s, v in messages]

    return fault


def flood(messages, is_on):
    """Contacts at 5 kHz."""
    return [['contacts', messages[0][1], np.ones(3)]] * (50 * is_on) + messages


def damaged(messages, is_on):
    cut = [[t, s, encode(t, s, v)[:-40]] for t, s, v in messages if t != STATES]
    return cut * is_on + messages


def overrun():
    """Nothing is taken for the time of the fault, then the queues are."""
    queues = {topic: deque(maxlen=QUEUE) for topic in (*FTS, IMU, STATES)}

    def fault(messages, is_on):
        for message in messages:
            queues[message[0]].append(message)
        if is_on:
            return []
        waiting = [*chain.from_iterable(queues.values())]
        for queue in queues.values():
            queue.clear()
        return waiting

    return fault


def reads(change):
    return partial(edited, ARM, lambda stamp, values: (stamp, change(values)))


SAME = 'sole', 'hand', 'thigh', 'root'
LEFT = 'sole', 'thigh'
"""Contacts that do not depend on the sensor of the arm."""
NAME, NAN = 'ft arm_sensor', np.array([np.nan, 0.0, 0.0, 0.0, 0.0, 0.0])
SPIKE = np.array([1000.0, 0.0, 0.0, 0.0, 0.0, 0.0])
FAULTS = {
    # Name: fault, contacts that stay exact, what names it, whether readings can show it.
    'saturated': (reads(lambda v: np.full(6, RANGE)), LEFT, NAME, True),
    'spike of 1000 N': (partial(once, lambda s, v: (s, v + 1000.0)), LEFT, NAME, True),
    'spike without a range': (
        partial(once, lambda s, v: (s, v + SPIKE), LEG), ('hand',), 'readings', True
    ),
    'step without a range': (
        partial(edited, LEG, lambda s, v: (s, v + 2.0 * SPIKE)), ('hand',), 'readings', False
    ),
    'swapped axes': (reads(lambda v: v[[1, 0, 2, 4, 3, 5]]), LEFT, '', False),
    'one value is NaN': (reads(lambda v: v + NAN), LEFT, NAME, True),
    'frozen': (reads(lambda v: np.ones(6)), LEFT, NAME, True),
    'late by 100 ms': (partial(late, ARM, 10), LEFT, NAME, True),
    'late and stamped as sent': (partial(late, ARM, 4, True), LEFT, '', False),
    'one stamp 1000 s ahead': (partial(once, lambda s, v: (s + 10**12, v)), LEFT, '', False),
    'publisher of a sensor restarts': (partial(silent, ARM), LEFT, NAME, True),
    'publisher of the IMU restarts': (partial(silent, IMU), (), 'imu root', True),
    'publisher of the joints restarts': (partial(silent, STATES), (), STATES, True),
    'all publishers restart': (partial(silent, *FTS, IMU, STATES), (), STATES, True),
    'clock jumps forth': (partial(clock_off, JUMP * PERIOD_NS), (), 'cycle', True),
    'clock jumps back': (partial(clock_off, -JUMP * PERIOD_NS), (), STATES, True),
    'contacts with unknown links': (lambda: flood, SAME, 'contacts', True),
    'damaged messages among good ones': (lambda: damaged, SAME, NAME, True),
    'callbacks overrun': (overrun, (), 'cycle', True),
}  # fmt: skip
FIELDS = {
    'wrenches': 'contact_quality', 'torques': 'torque_quality',
    'external_torques': 'external_torque_quality', 'residuals': 'submodel_quality',
}  # fmt: skip
TWIN = []


class Run:
    """A node that takes messages, and what it estimates by cycle."""

    def __init__(self, context, fault):
        overrides = [Parameter(name, value=value) for name, value in SETTINGS.items()]
        threads = active_count()
        node = EstimatorNode(context=context, parameter_overrides=overrides)
        pipeline, self.found, self.named = node.pipeline, {}, {}
        # Faster than real time, the other thread would leave out windows.
        publish = pipeline._diagnostics._publish
        pipeline._diagnostics.report = lambda make, is_logged, **_: publish(make, is_logged)
        before = pipeline._estimator.calibration.offsets.copy()
        for k in range(LAST):
            for topic, stamp, values in fault(list(cycle(k)), BEGIN <= k < END):
                sample = pipeline._inputs.router.handle(topic, encode(topic, stamp, values))
                if sample is not None:
                    pipeline._on_sample(sample, perf_counter())
                    at = (sample.stamp_ns - START_NS) // PERIOD_NS % JUMP
                    self.found[at] = pipeline._estimate
            if k in REPORTS:
                make = pipeline._statuses(pipeline._sample, pipeline._estimate)
                self.named[k] = {one.name for one in make() if one.level > Level.INFO}
                pipeline._sample = pipeline._estimate = None
        assert pipeline._failed == 0
        np.testing.assert_array_equal(pipeline._estimator.calibration.offsets, before)
        node.destroy_node()
        assert active_count() == threads

    def moved(self, at, twin):
        """Yield results that are not those of the twin, and their quality."""
        for field, quality in FIELDS.items():
            ours, theirs = getattr(self.found[at], field), getattr(twin.found[at], field)
            off = ~np.isclose(ours, theirs, rtol=ROUND_OFF, atol=ROUND_OFF)
            for row in np.flatnonzero(off.reshape(len(off), -1).any(axis=1)):
                yield field, row, getattr(self.found[at], quality)[row]


@pytest.fixture
def twin(context):
    """Return the run without a fault, made once."""
    if not TWIN:
        TWIN.append(Run(context, lambda messages, _: messages))
    return TWIN[0]


@pytest.mark.parametrize('name', FAULTS)
def test_faults_are_named_and_spoil_nothing_else(context, twin, name):
    make, exact, subject, shows = FAULTS[name]
    run = Run(context, make())
    exact = [HUMANOID['contacts'].index(one) for one in exact]
    assert {*range(BEGIN), *range(END, LAST)} <= set(run.found)
    for at in range(BEGIN, LAST):
        # Until a sensor is silent or frozen, or a filter is full again.
        before = {*range(at - NOTICED, at + 1)}
        unsteady = before & {BEGIN, END} or not before <= set(run.found)
        for field, row, quality in run.moved(at, twin) if at in run.found else ():
            assert at < RECOVERED, (at, field, row)
            assert field != 'wrenches' or row not in exact, (at, row)
            assert quality or unsteady or not shows, (at, field, row)
    named = [run.named[k] - twin.named[k] for k in REPORTS]
    assert not named[0] and not named[-1]
    assert any(one.endswith(subject) for one in named[1] | named[2]) if subject else not named[1]


@pytest.mark.filterwarnings('ignore:overflow', 'ignore:invalid value')
@pytest.mark.parametrize('kind', [EstimatorNode, IdentifierNode], ids=lambda one: one.__name__)
def test_damaged_messages_end_no_node(context, rng, kind):
    """Readings as bytes, texts as messages; good readings and one of 1e200 between them."""
    overrides = [Parameter(name, value=value) for name, value in SETTINGS.items()]
    node = kind(context=context, parameter_overrides=overrides)
    pipeline, samples = node.pipeline, []
    sources = pipeline._inputs.router.sources
    take = partial(pipeline._on_sample, arrival=0.0) if kind is EstimatorNode else pipeline.take
    for k in range(200):
        good = [(topic, encode(topic, *rest)) for topic, *rest in cycle(k)]
        contact = ('contacts', encode('contacts', START_NS + k * PERIOD_NS, np.ones(3)))
        waiting = {source.topic: [] for source in sources}
        if k == 100:
            waiting[IMU].append(encode(IMU, START_NS + k * PERIOD_NS - 1, np.full(6, 1e200)))
        for topic, data in (*good, contact):
            bad = changed(data, rng) if rng.random() < 0.5 else data[: rng.integers(len(data))]
            waiting[topic] += [bad, data]
        if kind is IdentifierNode:
            for sample in poll(pipeline._inputs.router, lambda source: waiting[source.topic]):  # noqa: B023
                samples.append(sample)
                take(sample)
            continue
        for source in sources:
            for data in waiting[source.topic]:
                if (sample := source.handle(data)) is not None:
                    samples.append(sample)
                    take(sample)
    assert len(samples) > 150
    for text in ('', '[' * 100_000, '{' * 100_000, '<a>' * 100_000, '/dev/zero', 'null', '\ud800'):
        if kind is IdentifierNode:
            pipeline._calibration._on_message(String(data=text))
        node._on_description(String(data=text))
    assert node.pipeline is pipeline and pipeline.active
    node.destroy_node()
