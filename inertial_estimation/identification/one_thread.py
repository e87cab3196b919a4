# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Linear algebra of small matrices on one thread.

Matrices of a robot have a few hundred columns. OpenBLAS shares even these out among all cores and
lets its threads spin until the last is done, which takes ten times as long as one thread where
anything else runs on one of the cores. Its number of threads can be set by a call; where there is
no OpenBLAS, or no list of loaded libraries, nothing is done.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

LOADED = Path('/proc/self/maps')
"""The files that are mapped into this process, on Linux."""
NAMES = tuple(
    (f'{prefix}openblas_get_num_threads{suffix}', f'{prefix}openblas_set_num_threads{suffix}')
    for prefix in ('scipy_', '')
    for suffix in ('64_', '')
)
"""How builds of OpenBLAS call what tells and sets the number of threads."""


class _Library(NamedTuple):
    """One OpenBLAS; numpy and scipy may bring one each."""

    get: Any
    set: Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS work on one thread inside the block, in the whole process."""
    libraries = _libraries()
    before = [library.get() for library in libraries]
    for library in libraries:
        library.set(1)
    try:
        yield
    finally:
        for library, threads in zip(libraries, before, strict=True):
            library.set(threads)


@cache
def _libraries() -> tuple[_Library, ...]:
    """Return each OpenBLAS that is loaded once numpy and scipy are."""
    import scipy.linalg  # noqa: F401

    try:
        lines = LOADED.read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        return ()
    paths = dict.fromkeys(
        line[line.index('/') :] for line in lines if 'blas' in line and '/' in line
    )
    return tuple(library for path in paths if (library := _library(path)) is not None)


def _library(path: str) -> _Library | None:
    """Return how to set the threads of a library, if it is an OpenBLAS."""
    try:
        loaded = ctypes.CDLL(path)
    except OSError:
        return None
    for get, set_ in NAMES:
        if hasattr(loaded, get) and hasattr(loaded, set_):
            return _Library(getattr(loaded, get), getattr(loaded, set_))
    return None
