# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Linear algebra of small matrices on one thread.

OpenBLAS shares even matrices of a few hundred columns out among all cores, and its threads spin
until the last is done: ten times slower than one thread where another process uses a core.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

LOADED = Path('/proc/self/maps')
"""The files that are mapped into this process, on Linux."""
NAMES = tuple(
    tuple(f'{prefix}openblas_{do}_num_threads{suffix}' for do in ('get', 'set'))
    for prefix in ('scipy_', '')
    for suffix in ('64_', '')
)
"""Functions of builds of OpenBLAS."""


@contextmanager
def one_thread() -> Iterator[None]:
    """Let OpenBLAS work on one thread inside the block, in the whole process."""
    libraries = _libraries()
    before = [get() for get, _ in libraries]
    for _, set_ in libraries:
        set_(1)
    try:
        yield
    finally:
        for (_, set_), threads in zip(libraries, before, strict=True):
            set_(threads)


@cache
def _libraries() -> tuple[tuple[Any, Any], ...]:
    """Return getter and setter of each OpenBLAS; numpy and scipy may bring one each."""
    import scipy.linalg  # noqa: F401

    try:
        lines = LOADED.read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        return ()
    found = []
    for path in dict.fromkeys(line[line.index('/') :] for line in lines if 'blas' in line):
        with suppress(OSError):
            loaded = ctypes.CDLL(path)
            known = [each for each in NAMES if all(hasattr(loaded, name) for name in each)]
            found += [tuple(getattr(loaded, name) for name in each) for each in known[:1]]
    return tuple(found)
