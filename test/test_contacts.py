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
from inertial_estimation.estimation.contacts import Contact, ContactKind

# A few products of order one.
ROUND_OFF = 1e-14


@pytest.mark.parametrize('kind', ContactKind)
def test_unknowns(kind):
    contact = Contact('hand', kind, point=(0.1, 0.2, 0.3))
    unknowns = kind.unknowns
    assert contact == Contact('hand', str(kind), point=(0.1, 0.2, 0.3))
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
    ('options', 'error'),
    [
        ({'kind': 'push'}, ModelError),
        ({'kind': ['wrench']}, ModelError),
        ({'frame': None}, ModelError),
        ({'point': (0.0, 0.0)}, ShapeError),
        ({'direction': (1.0,) * 4}, ShapeError),
        ({'point': (0.0, np.nan, 0.0)}, ModelError),
        ({'direction': (0.0, 0.0, 0.0)}, ModelError),
        ({'point': ('a', 0.0, 0.0)}, ModelError),
        ({'wrench': None}, ModelError),
    ],
)
def test_values_that_a_contact_cannot_have_are_refused(options, error):
    with pytest.raises(error):
        Contact(**{'frame': 'hand', **options})
