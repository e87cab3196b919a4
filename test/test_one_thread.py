# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One thread for linear algebra, and the former number afterwards. Not covered: its speed."""

import os
import subprocess
import sys
from contextlib import suppress

import pytest

from inertial_estimation.identification import one_thread as module
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation_nodes import THREADS


def test_threads_are_one_inside_and_restored_afterwards():
    libraries = module._libraries()
    if not libraries:
        pytest.skip('no OpenBLAS is loaded')

    def threads():
        return [get() for get, _ in libraries]

    before = threads()
    try:
        for _, set_threads in libraries:
            set_threads(2)
        outside = threads()
        with suppress(ValueError), one_thread():
            inside = threads()
            raise ValueError
        assert inside == [1] * len(libraries)
        assert threads() == outside
    finally:
        for (_, set_threads), number in zip(libraries, before, strict=True):
            set_threads(number)


def test_nothing_is_done_without_libraries(monkeypatch, tmp_path):
    for text in ('', f'0-1 r 0 0:0 0 {tmp_path}/libblas.so\n0-1 r 0 0:0 0 [heap]\n'):
        (tmp_path / 'maps').write_text(text)
        monkeypatch.setattr(module, 'LOADED', tmp_path / ('maps' if text else 'none'))
        assert module._libraries.__wrapped__() == ()


@pytest.mark.parametrize('given', [None, '2'])
def test_node_has_one_thread_by_default(tmp_path, given):
    text = 'import os\n\ndef main():\n    print(os.environ["OMP_NUM_THREADS"])\n    return 0\n'
    (tmp_path / 'some_node.py').write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    environment |= {THREADS: given} if given else {}
    environment |= {'PYTHONPATH': os.pathsep.join([str(tmp_path), *sys.path])}
    done = subprocess.run(
        [sys.executable, '-m', 'inertial_estimation_nodes', 'some_node'],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == (given or '1')
