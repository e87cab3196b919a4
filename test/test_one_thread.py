# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""One thread for linear algebra, and as many as before afterwards. Not covered: what it saves."""

import os
import subprocess
import sys

import pytest

from inertial_estimation.identification import one_thread as module
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation_nodes import THREADS


@pytest.fixture
def libraries():
    found = module._libraries()
    if not found:
        pytest.skip('no OpenBLAS is loaded')
    before = [library[0]() for library in found]
    for library in found:
        library[1](2)
    yield found
    for library, threads in zip(found, before, strict=True):
        library[1](threads)


def test_threads_are_one_inside_and_what_they_were_afterwards(libraries):
    outside = [library[0]() for library in libraries]
    with one_thread():
        assert [library[0]() for library in libraries] == [1] * len(libraries)
    assert [library[0]() for library in libraries] == outside
    with pytest.raises(ValueError, match='inside'), one_thread():
        raise ValueError('inside')
    assert [library[0]() for library in libraries] == outside


def test_without_a_list_of_libraries_nothing_is_done(monkeypatch, tmp_path):
    monkeypatch.setattr(module, 'LOADED', tmp_path / 'none')
    assert module._libraries.__wrapped__() == ()
    (tmp_path / 'maps').write_text(f'0-1 r 0 0:0 0 {tmp_path}/libblas.so\n0-1 r 0 0:0 0 [heap]\n')
    monkeypatch.setattr(module, 'LOADED', tmp_path / 'maps')
    assert module._libraries.__wrapped__() == ()


@pytest.mark.parametrize('given', [None, '2'])
def test_node_has_one_thread_by_default(tmp_path, given):
    text = 'import os\n\ndef main():\n    print(os.environ["OMP_NUM_THREADS"])\n    return 0\n'
    (tmp_path / 'some_node.py').write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != THREADS}
    environment |= {THREADS: given} if given else {}
    places = [str(tmp_path), *sys.path]
    done = subprocess.run(
        [sys.executable, '-m', 'inertial_estimation_nodes', 'some_node'],
        env=environment | {'PYTHONPATH': os.pathsep.join(places)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (given or '1')


def test_a_recursion_works_on_one_thread(libraries, monkeypatch):
    from inertial_estimation.identification.recursion import identifier as recursion

    seen = []
    one = recursion.RecursiveIdentifier.__new__(recursion.RecursiveIdentifier)
    one._submodels = ()
    monkeypatch.setattr(
        recursion.RecursiveIdentifier,
        'memories',
        property(lambda _: seen.extend(library[0]() for library in libraries) or ()),
    )
    assert one.refit() is None
    assert set(seen) == {1}
