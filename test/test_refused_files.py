# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Whatever a file holds, its reader takes it or refuses it with a reason, and raises nothing else.

Not covered: what the nodes make of a refusal (test/ros/test_identifier_node.py,
test/ros/test_model_updates.py), and bags.
"""

import json
from copy import deepcopy
from hashlib import sha256

import pytest

from inertial_estimation.calibration import calibration_file
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import load_mapping, load_parameters
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification import parameter_file
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
ODD = [None, True, -1, 1e400, float('nan'), 10**400, '', '\ud800', [[]], {'a': 1}, [None] * 6]


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


def places(data, path=()):
    """Yield a path to everything, to the first of each list only."""
    yield path
    parts = data.items() if isinstance(data, dict) else enumerate(data[:1])
    for key, part in parts:
        if isinstance(part, (dict, list)):
            yield from places(part, (*path, key))
        else:
            yield (*path, key)


def changed(data, path, value):
    """Return a copy in which something else stands at a place."""
    copy = deepcopy(data)
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return copy


def signed(file, content, checksum):
    """Return the text of a file of parameters or of a state."""
    version = getattr(file, 'VERSION', 1)
    signature = {'kind': file.KIND, 'version': version, 'sha256': checksum}
    return json.dumps(signature | {'content': content})


def test_odd_parameters_are_refused(two_link):
    content = json.loads(parameter_file.to_text(two_link, two_link.parameters))['content']
    for path in list(places(content))[1:]:
        for value in ODD:
            odd = changed(content, path, value)
            text = signed(parameter_file, odd, sha256(json.dumps(odd).encode()).hexdigest())
            # Whose it was is not asked; a mass of True is one of 1 kg.
            free = path == ('robot',) or value is True
            assert free or outcome(parameter_file.from_text, two_link, text), (path, value)
