# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters of all links as text, and bounds of those that can be used."""

import json
from hashlib import sha256

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.model.inertia import check_masses, check_usable
from inertial_estimation.model.parameter_update import from_text, to_text
from inertial_estimation.model.robot import Robot


def test_every_digit_comes_back(nested_humanoid, rng):
    scales = 1.0 + 0.01 * rng.uniform(size=(len(nested_humanoid.links), 1))
    parameters = scales * nested_humanoid.parameters
    text = to_text(nested_humanoid, parameters)
    for same in (text, json.dumps(json.loads(text), indent=2)):
        np.testing.assert_array_equal(from_text(nested_humanoid, same), parameters)


def test_altered_text_unusable_parameters_and_other_links_are_refused(nested_humanoid, two_link):
    """Other links as of the same robot with fewer joints in use, whose links are merged."""
    text = to_text(nested_humanoid, nested_humanoid.parameters)
    fewer = Robot.from_urdf(nested_humanoid.urdf, imus=['head'], joints=['knee'])
    found = json.loads(text)
    heavy = found['content'] | {'links': found['content']['links'] | {'thigh': [1e5] * 10}}
    signed = {'content': heavy, 'sha256': sha256(json.dumps(heavy).encode()).hexdigest()}
    for robot, wrong in (
        (nested_humanoid, text[:-3]),
        (nested_humanoid, text.replace('5.0', '6.0', 1)),
        (nested_humanoid, json.dumps(found | {'version': 2})),
        (nested_humanoid, json.dumps(found | signed)),
        (two_link, text),
        (fewer, text),
    ):
        with pytest.raises(ModelError):
            from_text(robot, wrong)


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


def test_masses_far_from_the_urdf_are_refused():
    urdf, *others = (
        np.array([link(mass) for mass in each])
        for each in ((10.0, 0.1), (24.0, 3.0), (100.0, 1.0), (9.0, 3.5))
    )
    check_masses(('base', 'hand'), others.pop(0), urdf)
    for far in others:
        with pytest.raises(ModelError):
            check_masses(('base', 'hand'), far, urdf)
