# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
How sure updates of inertial parameters are: the message, and what the node makes of it.

The oracle is the library with the same numbers. Not covered: where they come from
(test_parameter_roots.py).
"""

import numpy as np
import pytest

pytest.importorskip('rclpy', reason='needs rclpy')

from bench_robot import LATCHED, PERIOD_NS
from diagnostic_msgs.msg import DiagnosticStatus
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from test_model_updates import ROBOT, SETTINGS, Bench
from test_model_updates import make as make
from test_parameter_deviations import no_noise, roots_of
from test_set_parameters import others

from inertial_estimation.calibration.configured_estimator import build_estimator
from inertial_estimation.errors import ModelError
from inertial_estimation.model.parameter_update import fingerprint
from inertial_estimation.ros import publishers
from inertial_estimation.ros.inertial_parameters import (
    UNCERTAINTY_TOPIC,
    from_message,
    roots_from_message,
    roots_to_message,
    to_message,
)
from inertial_estimation.uncertainty.deviations import Uncertainty

# Squares of deviations are added and taken away again.
ROUND_OFF = 1e-9


@pytest.fixture(autouse=True)
def without_budget(monkeypatch):
    monkeypatch.setattr(publishers, 'MAX_SHARE', np.inf)


@pytest.fixture
def bench(make):
    """Return a robot of which somebody wants to know how sure its torques are."""
    made = make(deviations_rate=1e9 / PERIOD_NS)
    made.listen(JointState, 'wrench_estimator/joint_torque_deviations')
    for _ in range(3):
        made.torques()
    return made


def say(bench: Bench, message):
    """Publish how sure parameters are, and wait until the estimator has looked at it."""
    model, updates = bench.estimator.pipeline._model, bench.estimator.pipeline._updates
    before = list(map(id, model._roots)), dict(updates._refusals)
    bench.publisher(Float64MultiArray, UNCERTAINTY_TOPIC, LATCHED).publish(message)
    bench.spin_until(lambda: (list(map(id, model._roots)), dict(updates._refusals)) != before)


def deviations(bench):
    """Return how sure torques of the next cycle are."""
    bench.torques()
    newest = bench.estimator.pipeline.publishers.newest
    assert newest.stamp_ns == bench.stamp_ns
    return newest.torques


def by_parameters(bench, parameters, roots):
    """Return what the library makes of errors of the parameters alone."""
    estimator = build_estimator(SETTINGS, ROBOT.with_parameters(parameters))
    return Uncertainty(estimator, no_noise(ROBOT), roots).of(bench.sample).torques


def test_what_is_sent_arrives(rng):
    roots = roots_of(ROBOT, rng, columns=7)
    message = roots_to_message(ROBOT, roots, ROBOT.parameters)
    n = len(ROBOT.links)
    assert [dim.size for dim in message.layout.dim] == [n, 10, 7]
    assert [dim.stride for dim in message.layout.dim] == [70 * n, 70, 7]
    of, arrived = roots_from_message(ROBOT, message)
    np.testing.assert_array_equal(arrived, roots)
    # What the other topic carries is the same to the bit.
    assert of == fingerprint(from_message(ROBOT, to_message(ROBOT, ROBOT.parameters)))
    nothing = roots_to_message(ROBOT, np.zeros((n, 10, 0)), ROBOT.parameters)
    assert roots_from_message(ROBOT, nothing)[1].shape == (n, 10, 0)


def broken(kind, rng):
    """Return a message that must be refused."""
    message = roots_to_message(ROBOT, roots_of(ROBOT, rng), ROBOT.parameters)
    dims = message.layout.dim
    if kind == 'layout':
        dims[2].label = 'columns'
    elif kind == 'fingerprint':
        dims[2].label = 'deviations'
    elif kind == 'offset':
        message.layout.data_offset = 1
    elif kind == 'parameters':
        message = to_message(ROBOT, ROBOT.parameters)
    elif kind == 'size':
        dims[2].size = 3
    elif kind == 'names':
        names = ROBOT.link_names
        dims[0].label = ' '.join((names[1], names[0], *names[2:]))
    else:
        message.data[25] = np.nan
    return message


KINDS = ('layout', 'fingerprint', 'offset', 'parameters', 'size', 'names', 'number')


@pytest.mark.parametrize('kind', KINDS)
def test_what_does_not_fit_is_refused(kind, rng):
    with pytest.raises(ModelError):
        roots_from_message(ROBOT, broken(kind, rng))


@pytest.mark.parametrize('order', ['before', 'after'])
def test_deviations_hold_what_comes_with_an_update(bench, rng, order):
    parameters, roots = others(ROBOT, rng), roots_of(ROBOT, rng)
    usual = deviations(bench)
    if order == 'before':
        say(bench, roots_to_message(ROBOT, roots, parameters))
        # As long as the description is in use it says nothing.
        np.testing.assert_allclose(deviations(bench), usual, rtol=ROUND_OFF)
        bench.update(to_message(ROBOT, parameters))
        told = deviations(bench)
    else:
        bench.update(to_message(ROBOT, parameters))
        deviations(bench)
        say(bench, roots_to_message(ROBOT, roots, parameters))
        told = deviations(bench)
    assert bench.model()['uncertainty'] == 'in deviations'
    say(bench, roots_to_message(ROBOT, np.zeros_like(roots), parameters))
    by_sensors = deviations(bench)
    wanted = by_parameters(bench, parameters, roots)
    assert (wanted > by_sensors).any()
    np.testing.assert_allclose(told, np.hypot(by_sensors, wanted), rtol=ROUND_OFF)


def test_the_description_is_taken_to_be_exact_again(bench, rng):
    usual = deviations(bench)
    parameters = others(ROBOT, rng)
    say(bench, roots_to_message(ROBOT, roots_of(ROBOT, rng), parameters))
    bench.update(to_message(ROBOT, parameters))
    assert (deviations(bench) > 1.1 * usual).any()
    bench.call('revert_model')
    np.testing.assert_allclose(deviations(bench), usual, rtol=ROUND_OFF)
    assert bench.model()['uncertainty'] == 'none'


def test_what_is_refused_or_of_another_update_counts_as_nothing(bench, rng):
    parameters, roots = others(ROBOT, rng), roots_of(ROBOT, rng)
    bench.update(to_message(ROBOT, parameters))
    by_sensors = deviations(bench)
    say(bench, roots_to_message(ROBOT, roots, others(ROBOT, rng)))
    np.testing.assert_allclose(deviations(bench), by_sensors, rtol=ROUND_OFF)
    assert bench.model()['uncertainty'] == 'none'
    say(bench, broken('names', rng))
    np.testing.assert_allclose(deviations(bench), by_sensors, rtol=ROUND_OFF)
    assert bench.status('model').level == DiagnosticStatus.WARN
