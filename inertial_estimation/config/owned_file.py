# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files that a node reads and replaces: regular ones, and of the node's own kind."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from stat import S_ISREG

from inertial_estimation.errors import ConfigError
from inertial_estimation.output import write_whole

MAX_BYTES = 2**28
"""Greatest size of a file that is read [bytes]."""


def read_regular(path: str | Path) -> bytes:
    """Return the content of a regular file; pipes and devices are not opened for reading."""
    try:
        # A pipe without a writer would block.
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            if not S_ISREG(os.fstat(number).st_mode):
                raise ConfigError(f"cannot read '{path}': it is no regular file")
            with os.fdopen(os.dup(number), 'rb') as file:
                content = file.read(MAX_BYTES + 1)
        finally:
            os.close(number)
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
    if len(content) > MAX_BYTES:
        raise ConfigError(f"cannot read '{path}': it is larger than {MAX_BYTES} bytes")
    return content


def read_text(path: str | Path) -> str:
    """Return the text of a regular file."""
    try:
        return read_regular(path).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read '{path}': it is no UTF-8 text") from None


def check_own(path: Path, recognises: Callable[[str], bool]) -> None:
    """Refuse a path that holds anything but a regular file whose text is recognised."""
    if os.path.lexists(os.path.realpath(path)) and not recognises(read_text(path)):
        raise ConfigError(f"'{path}' was not written by this node and is not replaced")


def write_own(path: Path, text: str, recognises: Callable[[str], bool]) -> None:
    """Write a new file, or replace one whose text is recognised."""
    check_own(path, recognises)
    write_whole(path, text)
