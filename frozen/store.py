# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reduce, keep and compare the numbers of runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent / 'numbers'
Numbers = dict[str, np.ndarray]
TOLERANCE = 1e-9
"""Relative to the largest value of an array."""
SMALL = 1e-3
"""Arrays that are smaller than this share of the largest of their group are compared with that."""


def series(name: str, values: object, keep: int = 24) -> Numbers:
    """Return some samples of a series (axis 0), and figures of all of them, per component."""
    x = np.asarray(values, dtype=float)
    flat = x.reshape(len(x), -1)
    rows = np.unique(np.linspace(0, len(x) - 1, min(keep, len(x))).round().astype(int))
    finite = np.isfinite(flat)
    known, n = np.where(finite, flat, 0.0), np.maximum(finite.sum(axis=0), 1)
    weights = np.cos(np.arange(len(x)) + 1.0)[:, None]
    figures = [known.sum(0) / n, np.sqrt((known**2).sum(0) / n), (weights * known).sum(0) / n]
    return {
        name: flat[rows],
        f'{name}/mean,rms,weighted': np.array(figures),
        f'{name}/finite': finite.sum(axis=0).astype(float),
    }


def prefixed(prefix: str, numbers: Mapping[str, object]) -> Numbers:
    """Return numbers under a longer name."""
    return {f'{prefix}/{key}': np.asarray(value, dtype=float) for key, value in numbers.items()}


def write(run: str, numbers: Mapping[str, np.ndarray]) -> Path:
    """Write the numbers of a run: one array, and an index of names and shapes."""
    path = FOLDER / f'{run}.npz'
    arrays = {key: np.asarray(value, dtype=float) for key, value in sorted(numbers.items())}
    index = json.dumps([[key, list(value.shape)] for key, value in arrays.items()])
    flat = np.concatenate([np.zeros(0), *(value.ravel() for value in arrays.values())])
    np.savez_compressed(path, index=np.frombuffer(index.encode(), np.uint8), values=flat)
    return path


def read(run: str) -> Numbers:
    """Return the numbers of a run."""
    with np.load(FOLDER / f'{run}.npz') as file:
        index, flat = json.loads(file['index'].tobytes().decode()), file['values']
    found, start = {}, 0
    for key, shape in index:
        size = int(np.prod(shape))
        found[key] = flat[start : start + size].reshape(shape)
        start += size
    return found


def tolerance_of(key: str, tolerances: Mapping[str, float]) -> float:
    """Return the tolerance of the longest beginning of a name that has one."""
    fits = [start for start in tolerances if key.startswith(start)]
    return tolerances[max(fits, key=len)] if fits else TOLERANCE


def deviations(expected: Numbers, found: Numbers) -> dict[str, float]:
    """Return for each name the largest deviation, relative to the size of the array."""
    group_sizes: dict[str, float] = {}
    for key, value in expected.items():
        group = key.partition('/')[0]
        group_sizes[group] = max(group_sizes.get(group, 0.0), _size(value))
    off = {}
    for key in expected.keys() | found.keys():
        if key not in expected or key not in found:
            off[key] = np.inf
            continue
        a, b = expected[key], np.asarray(found[key], dtype=float)
        if a.shape != b.shape or not np.array_equal(np.isfinite(a), np.isfinite(b)):
            off[key] = np.inf
            continue
        with np.errstate(invalid='ignore'):
            difference = np.abs(np.where(np.isfinite(a), a - b, 0.0)).max(initial=0.0)
        scale = max(_size(a), SMALL * group_sizes[key.partition('/')[0]])
        off[key] = float(difference / scale) if difference else 0.0
        if not scale and difference:
            off[key] = np.inf
    return off


def _size(values: np.ndarray) -> float:
    return float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
