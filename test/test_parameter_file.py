# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Inertial parameters of all links as text, and which ones are refused and why.

Not covered: the services that write and read the file (test/ros/test_model_updates.py).
"""

import json
from hashlib import sha256

import numpy as np
import pytest
from test_set_parameters import others

from inertial_estimation.errors import ModelError
from inertial_estimation.identification.parameter_file import from_text, to_text
from inertial_estimation.model.inertia import check_usable
from inertial_estimation.model.robot import Robot


def test_every_digit_comes_back(nested_humanoid, rng):
    parameters = others(nested_humanoid, rng)
    text = to_text(nested_humanoid, parameters)
    np.testing.assert_array_equal(from_text(nested_humanoid, text), parameters)
    # However it is laid out.
    again = json.dumps(json.loads(text))
    np.testing.assert_array_equal(from_text(nested_humanoid, again), parameters)


def forged(robot, **changes):
    """Return a text whose head or content says something else."""
    found = json.loads(to_text(robot, robot.parameters))
    return json.dumps(found | changes)


def test_a_text_that_is_not_whole_is_refused(nested_humanoid):
    text = to_text(nested_humanoid, nested_humanoid.parameters)
    for end in (0, 1, 100, len(text) // 2, len(text) - 3):
        with pytest.raises(ModelError):
            from_text(nested_humanoid, text[:end])


def test_a_digit_that_was_changed_is_refused(nested_humanoid):
    text = to_text(nested_humanoid, nested_humanoid.parameters)
    changed = text.replace('5.0', '6.0', 1)
    assert changed != text
    with pytest.raises(ModelError):
        from_text(nested_humanoid, changed)


@pytest.mark.parametrize(
    'text', ['[1, 2]', '{"version": 1}', {'version': 2}, {'sha256': ''}, {'content': [1]}]
)
def test_another_file_is_refused(nested_humanoid, text):
    text = forged(nested_humanoid, **text) if isinstance(text, dict) else text
    with pytest.raises(ModelError):
        from_text(nested_humanoid, text)


def test_the_set_of_another_robot_is_refused(nested_humanoid, two_link):
    text = to_text(two_link, two_link.parameters)
    with pytest.raises(ModelError):
        from_text(nested_humanoid, text)


def test_a_set_of_more_links_is_refused(nested_humanoid):
    """As of the same robot with other joints in use, whose links hold more bodies."""
    fewer = Robot.from_urdf(nested_humanoid.urdf, imus=['head'], joints=['knee'])
    with pytest.raises(ModelError):
        from_text(fewer, to_text(nested_humanoid, nested_humanoid.parameters))


@pytest.mark.parametrize('row', [[1.0] * 9, [1.0] * 9 + ['heavy'], None])
def test_rows_that_are_no_ten_numbers_are_refused(nested_humanoid, row):
    content = json.loads(to_text(nested_humanoid, nested_humanoid.parameters))['content']
    content['links']['thigh'] = row
    right_sum = sha256(json.dumps(content).encode()).hexdigest()
    with pytest.raises(ModelError):
        from_text(nested_humanoid, forged(nested_humanoid, content=content, sha256=right_sum))


def spoiled(robot, link, change):
    """Return the parameters of a robot with one link changed."""
    parameters = robot.parameters.copy()
    change(parameters[robot.link_names.index(link)])
    return parameters


def scale(row, mass):
    """Make a link heavier, its shape kept."""
    row *= mass / row[0]


UNUSABLE = {
    'not finite': lambda row: row.__setitem__(9, np.nan),
    'infinite': lambda row: row.__setitem__(4, np.inf),
    'no mass': lambda row: row.__imul__(0.0),
    'negative mass': lambda row: row.__imul__(-1.0),
    'absurd mass': lambda row: scale(row, 1e5),
    'far away': lambda row: row.__setitem__(1, 1e3),
    'inconsistent': lambda row: row.__setitem__(4, 1e-3 * row[6]),
}


@pytest.mark.parametrize('case', list(UNUSABLE))
def test_what_no_link_can_be_is_refused_with_its_name(nested_humanoid, case):
    change = UNUSABLE[case]
    parameters = spoiled(nested_humanoid, 'thigh', change)
    with pytest.raises(ModelError):
        check_usable(nested_humanoid.link_names, parameters)
    with pytest.raises(ModelError):
        to_text(nested_humanoid, parameters)
