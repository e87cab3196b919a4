# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files that the command reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from inertial_estimation.cli.render import write_json as write_json
from inertial_estimation.errors import CallError, ConfigError, ModelError

BAG_FILES = ('.yaml', '.mcap', '.db3', '.zstd')


def load_urdf(path: str) -> str:
    """Return the text of a URDF file; errors state its name."""
    from inertial_estimation.model.urdf import load_text, parse

    text = load_text(Path(path))
    with naming(path):
        parse(text)
    return text


def load_text(path: str) -> str:
    """Return the text of any file, without a byte order mark."""
    try:
        return Path(path).read_text(encoding='utf-8-sig')
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is no text: {error.reason}") from error


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Name the file in errors of a robot."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"'{path}': {error}") from error


def check_outputs(outputs: Sequence[Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Refuse outputs that cannot be written, or would replace an input or each other."""
    from inertial_estimation.config.files import check_writable

    asked = [path for path in outputs if path is not None]
    read = [one for path in inputs if path for one in _files_of(Path(path))]
    for k, path in enumerate(asked):
        if str(path) == '-':
            raise CallError("'-' is no file, and nothing is written to standard output")
        check_writable(path)
        if any(_is_same(path, other) for other in asked[:k]):
            raise CallError(f"'{path}' is to be written twice")
        for other in read:
            if _is_same(path, other):
                raise CallError(f"'{path}' would be written, but is read as '{other}'")


def _files_of(path: Path) -> list[Path]:
    """Return the files of a bag in a folder; a file, with the metadata of its bag."""
    if path.is_dir():
        return [one for one in path.iterdir() if one.suffix in BAG_FILES]
    return [path, path.with_name('metadata.yaml')]


def _is_same(one: Path, other: Path) -> bool:
    """Return true for two names of one file."""
    if one.exists() and other.exists():
        return one.samefile(other)
    return one.resolve() == other.resolve()


def config_files(path: str | None) -> Iterator[Path]:
    """Yield a configuration, and the node's parameter file if it names one."""
    from inertial_estimation.config.files import load_mapping

    if path:
        yield Path(path)
        # Its reader reports errors.
        with suppress(ConfigError):
            name = load_mapping(Path(path)).get('parameters')
            if isinstance(name, str):
                yield Path(path).parent / name
