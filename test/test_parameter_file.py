# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters of all links as text, and bounds of those that can be used."""

import json
from contextlib import nullcontext
from hashlib import sha256

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.parameter_file import from_text, to_text
from inertial_estimation.model.inertia import check_masses, check_usable
from inertial_estimation.model.robot import Robot


@pytest.fixture
def text(nested_humanoid):
    return to_text(nested_humanoid, nested_humanoid.parameters)


def test_every_digit_comes_back(nested_humanoid, rng):
    scales = 1.0 + 0.01 * rng.uniform(size=(len(nested_humanoid.links), 1))
    parameters = scales * nested_humanoid.parameters
    text = to_text(nested_humanoid, parameters)
    for same in (text, json.dumps(json.loads(text), indent=2)):
        np.testing.assert_array_equal(from_text(nested_humanoid, same), parameters)


def test_truncated_or_altered_text_is_refused(nested_humanoid, text):
    other = json.dumps(json.loads(text) | {'version': 2})
    for wrong in (text[:-3], text.replace('5.0', '6.0', 1), other, '[1, 2]'):
        with pytest.raises(ModelError):
            from_text(nested_humanoid, wrong)


@pytest.mark.parametrize('row', [[1.0] * 9, [1.0] * 9 + ['heavy'], [1e5] * 10])
def test_unusable_parameters_are_refused(nested_humanoid, text, row):
    content = json.loads(text)['content']
    content['links']['thigh'] = row
    found = json.loads(text) | {
        'content': content, 'sha256': sha256(json.dumps(content).encode()).hexdigest(),
    }  # fmt: skip
    with pytest.raises(ModelError):
        from_text(nested_humanoid, json.dumps(found))


def test_parameters_of_other_links_are_refused(nested_humanoid, two_link, text):
    """As of the same robot with fewer joints in use, whose links are merged."""
    fewer = Robot.from_urdf(nested_humanoid.urdf, imus=['head'], joints=['knee'])
    for robot in (two_link, fewer):
        with pytest.raises(ModelError):
            from_text(robot, text)
    with pytest.raises(ModelError):
        to_text(nested_humanoid, 0.0 * nested_humanoid.parameters)


def link(mass, center=(0.0, 0.0, 0.0), moments=(1.0, 1.0, 1.0)):
    """Return parameters from moments of inertia by mass about the centre of mass."""
    c = np.asarray(center, dtype=float)
    inertia = mass * (np.diag(moments) + c @ c * np.eye(3) - np.outer(c, c))
    return np.array([mass, *mass * c, *inertia[[0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]])


GOOD = link(2.0, [0.1, 0.0, 0.2])


def test_parameters_are_usable_up_to_the_bounds():
    for usable in (
        link(9999.0),
        link(1e-6, [0.0, 9.9, 0.0]),
        # Two moments are nearly the third.
        link(1.0, moments=(1.0, 1.0, 2.0 - 1e-9)),
    ):
        check_usable(('base', 'hand'), np.array([GOOD, usable]))
    for refused in (
        link(10001.0),
        -GOOD,
        link(1e-3, [0.0, 10.1, 0.0]),
        link(1.0, moments=(1.0, 1.0, 2.0 + 1e-9)),
        np.where(np.arange(10) == 7, np.nan, GOOD),
    ):
        with pytest.raises(ModelError):
            check_usable(('base', 'hand'), np.array([GOOD, refused]))


@pytest.mark.parametrize(
    ('given', 'far'), [((24.0, 3.0), False), ((100.0, 1.0), True), ((9.0, 3.5), True)]
)
def test_masses_far_from_the_urdf_are_refused(given, far):
    urdf, masses = (np.array([link(mass) for mass in each]) for each in ((10.0, 0.1), given))
    with pytest.raises(ModelError) if far else nullcontext():
        check_masses(('base', 'hand'), masses, urdf)
