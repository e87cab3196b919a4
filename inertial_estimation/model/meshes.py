# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Meshes of a URDF: where their files are and what points they have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError

Array = NDArray[np.float64]

READERS = 'coal', 'hppfcl'
"""The collision library that Pinocchio brings, by its new and by its old name."""


def mesh_vertices(name: str, folders: Sequence[Path]) -> Array:
    """
    Return the vertices of a mesh.

    Parameters
    ----------
    name : str
        As in the URDF: ``package://``, ``model://`` or ``file://``, or a path.
    folders : sequence of Path
        Where to search.

    Returns
    -------
    ndarray, shape (k, 3)
        In the unit of the file.

    Raises
    ------
    ModelError
        If there is no such file, or it cannot be read.

    """
    path = next((path for path in _candidates(name, folders) if path.is_file()), None)
    if path is None:
        raise ModelError(f"there is no mesh '{name}'; name the folder that it starts from")
    loader = _reader().MeshLoader()
    try:
        mesh = loader.load(str(path), np.ones(3))
    except (RuntimeError, ValueError) as error:
        raise ModelError(f"cannot read the mesh '{path}': {error}") from error
    vertices = np.array(mesh.vertices(), dtype=np.float64).reshape(-1, 3)
    if not len(vertices) or not np.isfinite(vertices).all():
        raise ModelError(f"the mesh '{path}' holds no points")
    return vertices


def _reader() -> ModuleType:
    """Import the library that reads meshes."""
    for name in READERS:
        try:
            return import_module(name)
        except ImportError:
            continue
    raise ModelError(f'meshes are read with {" or ".join(READERS)}, and neither is installed')


def _candidates(name: str, folders: Sequence[Path]) -> Iterator[Path]:
    """Return where a file may be."""
    scheme, separator, rest = name.rpartition('://')
    if scheme == 'file' or (not separator and Path(name).is_absolute()):
        yield Path(rest)
        return
    for folder in (*folders, *_ros_folders()):
        yield folder / rest


def _ros_folders() -> Iterator[Path]:
    """Return where ROS keeps packages."""
    for prefix in os.environ.get('AMENT_PREFIX_PATH', '').split(os.pathsep):
        if prefix:
            yield Path(prefix) / 'share'
    for folder in os.environ.get('ROS_PACKAGE_PATH', '').split(os.pathsep):
        if folder:
            yield Path(folder)
