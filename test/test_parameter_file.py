# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as text.

Not covered: the services that write and read the file (test/ros/test_model_updates.py).
"""

import json
from hashlib import sha256

import numpy as np
import pytest

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.parameter_file import from_text, to_text
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
    altered = text.replace('5.0', '6.0', 1)
    assert altered != text
    for wrong in (*(text[:end] for end in (0, 1, 100, len(text) - 3)), altered):
        with pytest.raises(ModelError):
            from_text(nested_humanoid, wrong)


@pytest.mark.parametrize('change', [{'version': 2}, {'sha256': ''}, {'content': [1]}])
def test_other_json_is_refused(nested_humanoid, text, change):
    for wrong in (json.dumps(json.loads(text) | change), '[1, 2]', '{"version": 1}'):
        with pytest.raises(ModelError):
            from_text(nested_humanoid, wrong)


@pytest.mark.parametrize('row', [[1.0] * 9, [1.0] * 9 + ['heavy'], [1e5] * 10, None])
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
