# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A file that is there as a whole or not at all, and whose path is tried before the work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from inertial_estimation.errors import ConfigError


def check_writable(path: Path) -> None:
    """Refuse a path that could not be written, and leave it as it is."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"cannot write '{path}': it is no regular file; name another one")
    with _beside(path):
        pass


def write_whole(path: Path, text: str | bytes) -> None:
    """Write a file under another name in the same folder, and rename it when it is complete."""
    with _beside(path) as part:
        part.write_bytes(text.encode() if isinstance(text, str) else text)
        # A link stays one: what it leads to is replaced, with its mode.
        target = os.path.realpath(path)
        with suppress(FileNotFoundError):
            part.chmod(os.stat(target).st_mode & 0o777)
        part.replace(target)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """Yield an empty file in the folder of a file; it is gone afterwards."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f'.{target.name}.{token_hex(4)}')
    try:
        # Nobody else may read what replaces a file of a narrow mode.
        mode = 0o600 if target.exists() else 0o666
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield part
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
