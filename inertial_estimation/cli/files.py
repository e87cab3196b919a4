# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Files that the command reads and writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from inertial_estimation.cli.render import write_json as write_json
from inertial_estimation.config.files import check_writable
from inertial_estimation.errors import CallError, ConfigError, ModelError

STANDARD = '-'
"""What stands for standard output elsewhere."""
OF_A_BAG = ('.yaml', '.mcap', '.db3', '.zstd')


def load_urdf(path: str) -> str:
    """Return the text of a URDF file; what is wrong with it is said with its name."""
    from inertial_estimation.model.urdf import load_text, parse

    text = load_text(Path(path))
    with naming(path):
        parse(text)
    return text


def load_text(path: str) -> str:
    """Return the text of any file, without the mark that some programs begin it with."""
    try:
        return Path(path).read_text(encoding='utf-8-sig')
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"'{path}' is no text: {error.reason}") from error


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say which file is meant by what is wrong with a robot description."""
    try:
        yield
    except ModelError as error:
        raise ModelError(f"'{path}': {error}") from error


def check_outputs(outputs: Sequence[Path | None], inputs: Iterable[str | Path | None]) -> None:
    """Refuse outputs that could not be written, or would replace what is read or each other."""
    asked = [path for path in outputs if path is not None]
    there: dict[tuple[int, int], Path] = {}
    for k, path in enumerate(asked):
        if str(path) == STANDARD:
            raise CallError(
                "'-' is no file to write, and nothing goes to standard output: name one"
            )
        check_writable(path)
        same = _identity(path)
        if same in there or path.resolve() in [other.resolve() for other in asked[:k]]:
            raise CallError(f"'{path}' is to be written twice: name another file")
        if same is not None:
            there[same] = path
    if not there:
        return
    for read in chain.from_iterable(map(_files_of, inputs)):
        written = there.get(_identity(read) or (-1, -1))
        if written is not None:
            raise CallError(
                f"'{written}' would be written, but '{read}' is the same file and is read: name "
                'another file to write'
            )


def _files_of(read: str | Path | None) -> Iterator[Path]:
    """Yield a file, or those in a folder; of a bag named by its data the description too."""
    if read is None or not str(read):
        return
    path = Path(read)
    if path.is_dir():
        yield from (one for one in path.iterdir() if one.suffix in OF_A_BAG)
        return
    yield path
    yield path.with_name('metadata.yaml')


def _identity(path: Path) -> tuple[int, int] | None:
    """Return what all names of one file share; None: there is none."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def config_files(path: str | None) -> Iterator[Path]:
    """Yield a configuration, and the node's parameter file if it names one."""
    from inertial_estimation.config.files import load_mapping

    if not path:
        return
    yield Path(path)
    try:
        said = load_mapping(Path(path))
    except ConfigError:
        return  # Its reader says what is wrong.
    if isinstance(name := said.get('parameters'), str):
        yield Path(path).parent / name
