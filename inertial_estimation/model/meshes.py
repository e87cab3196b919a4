# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Meshes of a URDF: where their files are and what points they have."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ModelError

Array = NDArray[np.float64]

READERS = 'coal', 'hppfcl'
"""The collision library that Pinocchio brings, by its new and by its old name."""
FEW = 8
"""Meshes that a note names."""


class MeshNotFound(ModelError):
    """A mesh has no file; `name` is that of the URDF."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no mesh '{name}'; name the folder that it starts from")
        self.name = name

    def __reduce__(self) -> tuple[type, tuple[str]]:
        """Pickle what it was made of."""
        return type(self), (self.name,)


@dataclass
class GeometryNotes:
    """What of the geometry of a description cannot be used, and why; missing meshes are one."""

    said: dict[str, None] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    """Whose they are first, by name."""

    def add(self, owner: str, why: Exception | str) -> None:
        """Take a note."""
        cause = why.__cause__ if isinstance(why, Exception) and why.__cause__ else why
        if isinstance(cause, MeshNotFound):
            self.missing.setdefault(cause.name, owner)
        else:
            self.said[f'{owner}: {why}'] = None

    @property
    def all(self) -> tuple[str, ...]:
        """Everything that is to be said."""
        if len(self.missing) == 1:
            ((name, owner),) = self.missing.items()
            return (*self.said, f'{owner}: {MeshNotFound(name)}')
        if not self.missing:
            return tuple(self.said)
        names = ', '.join(list(self.missing)[:FEW])
        rest = len(self.missing) - FEW
        more = f' and {rest} more' if rest > 0 else ''
        return (
            *self.said,
            f'there are no files of {len(self.missing)} meshes: {names}{more}; name the folder '
            'that they start from',
        )


def mesh_vertices(name: str, folders: Sequence[Path]) -> Array:
    """Returns (k, 3)."""
    path = next((path for path in _candidates(name, folders) if path.is_file()), None)
    if path is None:
        raise MeshNotFound(name)
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
