# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The scores of the demo: the right messages are compared, and the errors add up to the rms stated.

Not covered: where the messages come from (test/ros/test_demo.py).
"""

import numpy as np
import pytest

from inertial_estimation.demo.scores import Comparison, NamedRows, State, percentiles
from inertial_estimation.errors import NameNotFound
from inertial_estimation.signals.encoders import JointEffortEncoder, WrenchesEncoder

CONTACTS = ('hand', 'sole')
JOINTS = ('knee', 'hip', 'neck')
PERIOD_NS = 4_000_000
START_NS = 1_700_000_000_000_000_000
EXACT = 1e-12
"""The same sums in another order: round-off of numbers about one."""


def stamp(k: int) -> int:
    return START_NS + k * PERIOD_NS


class Speaker:
    """Somebody who publishes wrenches and torques, in an order of names of its own."""

    def __init__(self, contacts=CONTACTS, joints=JOINTS) -> None:
        self._encoders = WrenchesEncoder(contacts), JointEffortEncoder(joints)
        self.state = State(NamedRows(contacts, 6), NamedRows(joints, 1))

    def say(self, k: int, wrenches: np.ndarray, torques: np.ndarray) -> None:
        for rows, encoder, values in zip(self.state, self._encoders, (wrenches, torques)):
            assert rows.add(encoder.encode(stamp(k), values)) == stamp(k)


@pytest.fixture
def truth() -> Speaker:
    return Speaker()


def random_rows(rng, n=1):
    return rng.standard_normal((n, 2, 6)), rng.standard_normal((n, 3))


def compare(truth, estimate, start=0):
    comparison = Comparison(truth.state, estimate.state)
    comparison.start_ns = stamp(start)
    return comparison


def test_rms_are_those_of_their_definition(truth, rng):
    n = 20
    wrenches, torques = random_rows(rng, n)
    wrench_errors, torque_errors = random_rows(rng, n)
    estimate = Speaker()
    for k in range(n):
        truth.say(k, wrenches[k], torques[k])
        estimate.say(k, wrenches[k] + wrench_errors[k], torques[k] + torque_errors[k])
    comparison = compare(truth, estimate)
    comparison.update()
    figures = comparison.figures()
    force_squares = (wrench_errors[:, :, :3] ** 2).sum(axis=2)
    moment_squares = (wrench_errors[:, :, 3:] ** 2).sum(axis=2)
    expected = {
        'force_rms_n': np.sqrt(force_squares.mean()),
        'force_rms_all_contacts_n': np.sqrt(force_squares.sum(axis=1).mean()),
        'moment_rms_nm': np.sqrt(moment_squares.mean()),
        'torque_rms_nm': np.sqrt((torque_errors**2).mean()),
    }
    assert figures.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(figures[name], value, rtol=EXACT, err_msg=name)
    assert comparison.compared == n


def test_rows_are_matched_by_name(truth, rng):
    wrenches, torques = (rows[0] for rows in random_rows(rng))
    estimate = Speaker(CONTACTS[::-1], JOINTS[::-1])
    truth.say(0, wrenches, torques)
    estimate.say(0, wrenches[::-1], torques[::-1])
    comparison = compare(truth, estimate)
    comparison.update()
    assert comparison.compared == 1
    assert all(value == 0.0 for value in comparison.figures().values())


def test_a_name_that_the_estimator_lacks_is_named(truth, rng):
    estimate = Speaker(('hand', 'head'))
    rows = [rows[0] for rows in random_rows(rng)]
    truth.say(0, *rows)
    estimate.say(0, *rows)
    with pytest.raises(NameNotFound, match='sole'):
        compare(truth, estimate).update()


def test_only_equal_stamps_are_compared_in_whatever_order_they_come(truth, rng):
    wrenches, torques = random_rows(rng, 5)
    estimate = Speaker()
    comparison = compare(truth, estimate)
    for k in (2, 0, 3):
        estimate.say(k, wrenches[k], torques[k])
    comparison.update()
    assert comparison.compared == 0
    for k in (0, 1, 2):
        truth.say(k, wrenches[k], torques[k])
    comparison.update()
    assert comparison.compared == 2
    truth.say(3, wrenches[3], torques[3])
    comparison.update()
    comparison.update()
    assert comparison.compared == 3
    assert comparison.figures()['force_rms_n'] == 0.0
    assert comparison.missed(PERIOD_NS) == 1


def test_missed_cycles_are_the_stamps_without_a_message(truth, rng):
    wrenches, torques = random_rows(rng, 12)
    estimate = Speaker()
    for k in range(12):
        if k not in (3, 4, 7):
            estimate.say(k, wrenches[k], torques[k])
        # The truth of an instant that was estimated may get lost: nothing was missed then.
        if k != 9:
            truth.say(k, wrenches[k], torques[k])
    comparison = compare(truth, estimate, start=1)
    comparison.update()
    assert comparison.missed(PERIOD_NS) == 3
    assert comparison.without_truth == 1
    assert comparison.compared == 7


@pytest.mark.parametrize('where', ['wrenches', 'torques'])
def test_what_is_not_estimated_is_counted_and_spoils_nothing(truth, rng, where):
    wrenches, torques = random_rows(rng, 4)
    estimate = Speaker()
    for k in range(4):
        truth.say(k, wrenches[k], torques[k])
        hole = np.where(k < 2, np.nan, 0.0)
        estimate.say(
            k,
            wrenches[k] + (hole if where == 'wrenches' else 0.0),
            torques[k] + (hole if where == 'torques' else 0.0),
        )
    comparison = Comparison(truth.state, estimate.state)
    comparison.update()
    assert comparison.compared == 0, 'nothing counts before the start is decided'
    assert comparison.first_estimated() == stamp(2)
    comparison.start_ns = stamp(0)
    comparison.update()
    assert (comparison.compared, comparison.not_estimated) == (2, 2)
    assert comparison.figures()['force_rms_n'] == 0.0
    assert comparison.missed(PERIOD_NS) == 0


def test_nothing_compared_says_nothing(truth):
    comparison = Comparison(truth.state, Speaker().state)
    assert comparison.first_estimated() is None
    assert all(np.isnan(value) for value in comparison.figures().values())
    assert comparison.missed(PERIOD_NS) == 0


def test_old_messages_are_forgotten(truth, rng):
    wrenches, torques = random_rows(rng, 3)
    for k in range(3):
        truth.say(k, wrenches[k], torques[k])
    truth.state.forget(stamp(1))
    assert truth.state.stamps == {stamp(2)}


def test_percentiles():
    assert percentiles(range(101)) == {'p50': 50.0, 'p99': 99.0, 'max': 100.0}
    assert all(np.isnan(value) for value in percentiles([]).values())
