# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Contacts.

Not covered: the split of a wrench among them (test_newton_euler.py), and frames that a robot does
not have (test_wrench_estimator.py).
"""

import numpy as np
import pytest

from inertial_estimation.errors import ModelError, ShapeError
from inertial_estimation.estimation.contacts import Contact, ContactKind

LENGTH, TOLERANCE = 0.1, 1e-3
# Relative: a condition of 1e3 by the rank tolerance, times levers of some metres.
ROUND_OFF = 1e-10


@pytest.mark.parametrize('kind', ContactKind)
def test_basis_holds_the_moment_of_the_force_about_the_frame(kind, rng):
    point, direction = rng.normal(size=(2, 3))
    contact = Contact('hand', kind, tuple(point), tuple(8.0 * direction))
    assert contact == Contact('hand', str(kind), tuple(point), tuple(direction))
    basis, axis = contact.basis(), direction / np.linalg.norm(direction)
    assert basis.shape == (6, contact.unknowns)
    if kind in ('force', 'axial_force'):
        forces = np.eye(3) if kind == 'force' else axis[:, None]
        expected = np.vstack([forces, np.cross(point, forces.T).T])
        np.testing.assert_allclose(basis, expected, rtol=0, atol=1e-14)
    elif contact.unknowns:
        np.testing.assert_array_equal(basis, np.eye(6))


def test_equal_contacts_are_one_key():
    """A plan is kept for each set of contacts: numbers must not come as different objects."""
    first = Contact('hand', 'force', point=np.array([0.1, 0.2, 0.3]), direction=[0, 0, 2])
    second = Contact('hand', 'force', point=(0.1, 0.2, 0.3), direction=(0.0, 0.0, 1.0))
    assert first == second and len({first, second}) == 1
    assert first != second.moved((0.1, 0.2, 0.4)) == Contact('hand', 'force', (0.1, 0.2, 0.4))


def test_values_that_a_contact_cannot_have_are_refused():
    for options in ({'kind': 'push'}, {'point': (0, np.nan, 0)}, {'direction': (0.0, 0.0, 0.0)}):
        with pytest.raises(ModelError):
            Contact('hand', **options)
    with pytest.raises(ShapeError):
        Contact('hand', point=(0.0, 0.0))
