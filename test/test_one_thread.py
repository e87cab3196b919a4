# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One thread for linear algebra, and as many as before afterwards. Not covered: what it saves."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from inertial_estimation.identification import one_thread as module
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation_nodes import THREADS


def test_threads_are_one_inside_and_as_before_afterwards():
    libraries = module._libraries()
    if not libraries:
        pytest.skip('no OpenBLAS is loaded')
    before = [get() for get, _ in libraries]
    for _, set_ in libraries:
        set_(2)
    outside = [get() for get, _ in libraries]
    with suppress(ValueError), one_thread():
        inside = [get() for get, _ in libraries]
        raise ValueError
    assert inside == [1] * len(libraries)
    assert [get() for get, _ in libraries] == outside
    for (_, set_), threads in zip(libraries, before, strict=True):
        set_(threads)


@pytest.mark.parametrize('given', [None, '2'])
def test_node_has_one_thread_by_default(tmp_path, given):
    text = 'import os\n\ndef main():\n    print(os.environ["OMP_NUM_THREADS"])\n    return 0\n'
    (tmp_path / 'some_node.py').write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    environment |= {THREADS: given} if given else {}
    environment['PYTHONPATH'] = os.pathsep.join([str(tmp_path), *sys.path])
    command = [sys.executable, '-m', 'inertial_estimation_nodes', 'some_node']
    assert subprocess.check_output(command, env=environment, text=True).strip() == (given or '1')
