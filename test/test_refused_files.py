# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whatever a file holds, its reader takes it or refuses it with a reason, and raises nothing else.

Not covered: what the nodes make of a refusal (test/ros/test_identifier_node.py,
test/ros/test_model_updates.py), and bags.
"""

import json

import pytest

from inertial_estimation.calibration import calibration_file
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import load_mapping, load_parameters
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification import parameter_file
from inertial_estimation.identification.parameter_file import sealed
from inertial_estimation.model.urdf import load_text, parse

DEEP = 3000
"""Beyond what Python's stack has room for."""
RAW = {
    'lists in lists': '[' * DEEP,
    'names below names': '{"a":' * DEEP,
    'elements in elements': '<robot>' * DEEP,
    'deep, and closed': '[' * 900 + ']' * 900,
    'holds itself': '/**: {ros__parameters: &a {b: *a}}',
    'calibration that holds itself': 'ft_calibration: &a {version: 1, sensors: *a}',
    'number without end': 'a: ' + '1' * 5000,
    'no date': 'a: 2020-99-99',
    'no time': 'a: !!timestamp foo',
    'no number': 'a: !!int ""',
    'notes that are none': 'ft_calibration: {version: 1, sensors: {a: {provenance: '
    '[{method: x, notes: 5}]}}}',
    'half a pair': 'a: "\\ud800"',
    'no text': b'\xff\xfe\x00',
}
ODD = [None, -1, 1e400, float('nan'), 10**400, '', '\ud800', [[]], {'a': 1}, [None] * 6]


def outcome(read, *arguments):
    """Return why something is refused, empty if it is taken; nothing else is raised."""
    try:
        read(*arguments)
    except InertialEstimationError as error:
        return str(error)
    return ''


@pytest.mark.parametrize('case', list(RAW))
def test_odd_files_are_refused(tmp_path, nested_humanoid, case):
    pytest.importorskip('yaml', reason='reads parameter files')
    path, content = tmp_path / 'file', RAW[case]
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    refusals = [
        outcome(load_mapping, path),
        outcome(load_parameters, path, 'node'),
        outcome(EstimatorSettings.from_yaml, path, 'node'),
        outcome(calibration_file.read, path),
        outcome(lambda: parse(load_text(path))),
    ]
    if isinstance(content, str):
        refusals.append(outcome(parameter_file.from_text, nested_humanoid, content))
    assert all(refusals[1:])


def odd_copies(data):
    """Yield copies in which something else stands at one place, of lists at the first one."""
    parts = data if isinstance(data, dict) else dict(enumerate(data[:1]))
    for key, part in parts.items():
        inner = odd_copies(part) if isinstance(part, (dict, list)) else ()
        for odd in (*ODD, *inner):
            yield data | {key: odd} if isinstance(data, dict) else [odd, *data[1:]]


def test_odd_parameters_are_refused(two_link):
    content = json.loads(parameter_file.to_text(two_link, two_link.parameters))['content']
    # Whose it was is not asked.
    robot = {'robot': content.pop('robot')}
    for odd in odd_copies(content):
        text = sealed(parameter_file.KIND, parameter_file.VERSION, odd | robot)
        assert outcome(parameter_file.from_text, two_link, text), odd
