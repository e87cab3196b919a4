# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files that the command reads and writes."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inertial_estimation.errors import CallError, ModelError

BAG_FILES = ('.yaml', '.mcap', '.db3', '.zstd')
READ_AND_WRITTEN = ('calibration', 'out')
"""A former calibration may be in the file that is written."""


def load_urdf(path: str) -> str:
    """Return the text of a URDF file; errors state its name."""
    from inertial_estimation.model.urdf import load_text, parse

    text = load_text(Path(path))
    with naming(path):
        parse(text)
    return text


@contextmanager
def naming(path: str, config: str | Path | None = None) -> Iterator[None]:
    """Name the file in errors of a robot, and the one of its configuration."""
    try:
        yield
    except ModelError as error:
        config_too = f" with '{config}'" if config else ''
        raise ModelError(f"'{path}'{config_too}: {error}") from error


def check_outputs(chosen: Namespace) -> None:
    """Refuse outputs that cannot be written, or would replace an input or each other."""
    from inertial_estimation.config.files import check_writable

    given = vars(chosen).items()
    read = [(key, one) for key, value in given for one in _existing(value)]
    outputs = [(key, value) for key, value in given if isinstance(value, Path)]
    for k, (key, path) in enumerate(outputs):
        check_writable(path)
        if any(path.resolve() == other.resolve() for _, other in outputs[:k]):
            raise CallError(f"'{path}' is to be written twice")
        for source, other in read if path.exists() else ():
            if path.samefile(other) and (source, key) != READ_AND_WRITTEN:
                raise CallError(f"'{path}' would be written, but is read as '{other}'")


def _existing(value: Any) -> Iterator[Path]:
    """Yield the files that an option names: files, files of a bag, logs and parts of logs."""
    if isinstance(value, str):
        for path in map(Path, {value, value.rpartition('@')[0]} - {''}):
            if path.is_dir():
                yield from (one for one in path.iterdir() if one.suffix in BAG_FILES)
            elif path.exists():
                yield path
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _existing(one)
