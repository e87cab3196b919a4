# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts: what they leave unknown, and what is refused.

Not covered: what is found at them (test_contact_forces.py, test_wrench_estimator.py), and frames
that a robot does not have (test_wrench_estimator.py).
"""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.contacts import UNKNOWNS, Contact

# A few products of order one.
ROUND_OFF = 1e-14


@pytest.mark.parametrize(('kind', 'unknowns'), UNKNOWNS.items())
def test_unknowns(kind, unknowns):
    contact = Contact('hand', kind, point=(0.1, 0.2, 0.3))
    assert contact.unknowns == unknowns
    assert contact.basis().shape == (6, unknowns)
    assert np.linalg.matrix_rank(contact.basis()) == unknowns if unknowns else True


def test_a_wrench_is_about_the_frame_whatever_the_point():
    np.testing.assert_array_equal(Contact('hand', point=(1, 2, 3)).basis(), np.eye(6))


def test_a_force_has_a_moment_about_the_frame(rng):
    point, force = rng.normal(size=(2, 3))
    wrench = Contact('hand', 'force', tuple(point)).basis() @ force
    expected = [*force, *np.cross(point, force)]
    np.testing.assert_allclose(wrench, expected, rtol=0, atol=ROUND_OFF)


def test_an_axial_force_counts_in_newtons_whatever_the_length_of_its_direction(rng):
    point, direction = rng.normal(size=(2, 3))
    contact = Contact('hand', 'axial_force', tuple(point), tuple(7.0 * direction))
    (wrench,) = contact.basis().T
    axis = direction / np.linalg.norm(direction)
    expected = [*axis, *np.cross(point, axis)]
    np.testing.assert_allclose(wrench, expected, rtol=0, atol=ROUND_OFF)
    assert np.linalg.norm(contact.direction) == pytest.approx(1.0)


def test_the_name_is_the_frame_unless_given():
    assert Contact('hand').name == 'hand'
    assert Contact('hand', name='left').name == 'left'


def test_equal_contacts_are_one_key():
    """A plan is kept for each set of contacts: numbers must not come as different objects."""
    first = Contact('hand', 'force', point=np.array([0.1, 0.2, 0.3]), direction=[0, 0, 2])
    second = Contact('hand', 'force', point=(0.1, 0.2, 0.3), direction=(0.0, 0.0, 1.0))
    assert first == second
    assert len({first, second}) == 1
    assert first != Contact('hand', 'force', point=(0.1, 0.2, 0.4))


@pytest.mark.parametrize(
    ('options', 'error', 'complaint'),
    [
        ({'kind': 'push'}, ModelError, "'hand': kind 'push' is none of wrench, force"),
        ({'point': (0.0, 0.0)}, ShapeError, r'point of contact hand.*\(2,\), expected \(3,\)'),
        ({'direction': (1.0,) * 4}, ShapeError, 'direction of contact hand'),
        ({'wrench': (1.0,) * 3}, ShapeError, 'wrench of contact hand'),
        ({'point': (0.0, np.nan, 0.0)}, ModelError, "'hand': point.*not finite"),
        ({'direction': (0.0, np.inf, 0.0)}, ModelError, "'hand': direction.*not finite"),
        ({'wrench': (np.nan,) * 6}, ModelError, "'hand': wrench.*not finite"),
        ({'direction': (0.0, 0.0, 0.0)}, ModelError, "'hand': the direction is zero"),
        ({'point': ('a', 0.0, 0.0)}, ModelError, "'hand': point.*not numbers"),
        ({'wrench': None}, ModelError, "'hand': wrench.*not numbers"),
    ],
)
def test_what_makes_no_sense_is_refused(options, error, complaint):
    with pytest.raises(error, match=complaint):
        Contact('hand', **options)
