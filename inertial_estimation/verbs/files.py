# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files that verbs read and write."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.output import check_writable as check_path
from inertial_estimation.output import write_whole


def load_urdf(path: str) -> str:
    """
    Return the text of a URDF file; what is wrong with it is said with its name.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    str

    Raises
    ------
    ModelError
        If it cannot be read, or is no robot description.

    """
    from inertial_estimation.model.urdf import load_text, parse

    text = load_text(Path(path))
    with naming(path):
        parse(text)
    return text


def load_text(path: str) -> str:
    """
    Return the text of any file.

    Parameters
    ----------
    path : str
        The file.

    Returns
    -------
    str

    Raises
    ------
    ConfigError
        If it cannot be read.

    """
    try:
        return Path(path).read_text(encoding='utf-8')
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is no text: {error.reason}") from error


@contextmanager
def naming(path: str) -> Iterator[None]:
    """
    Say which file is meant by what is wrong with a robot description.

    Parameters
    ----------
    path : str
        The file.

    Raises
    ------
    ModelError
        In place of the one that leaves the block.

    """
    try:
        yield
    except ModelError as error:
        raise ModelError(f"'{path}': {error}") from error


def check_writable(path: Path | None) -> None:
    """
    Refuse a path that could not be written, if there is one.

    Parameters
    ----------
    path : Path, optional
        Where to write later.

    Raises
    ------
    ConfigError
        With the reason.

    """
    if path is not None:
        check_path(path)


def write_json(path: Path | None, data: Any) -> None:
    """
    Write what was printed for a machine, if asked to.

    Parameters
    ----------
    path : Path, optional
        Where to.
    data : object
        What JSON can hold.

    """
    if path is not None:
        write_whole(path, json.dumps(data, indent=2) + '\n')
