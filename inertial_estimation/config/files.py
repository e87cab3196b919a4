# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""YAML and JSON read strictly, parameter files of ROS without ROS, whole files written."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

from inertial_estimation.errors import ConfigError

PARAMETERS = 'ros__parameters'
ROS_OWN = ('use_sim_time', 'qos_overrides', 'start_type_description_service')
"""Parameters that every ROS node has."""
# YAML 1.1, which PyYAML reads, takes 1e-3 for a string; the reader of ROS does not.
EXPONENT = re.compile(r'^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$')


def leaves(data: Mapping[str, Any], where: str = '') -> dict[str, Any]:
    """Return the leaves of nested mappings by dotted names."""
    if not isinstance(data, Mapping):
        kind = type(data).__name__
        raise ConfigError(f'the settings are a {kind}, expected a dict of values by name')
    found: dict[str, Any] = {}
    for key, value in data.items():
        inner = {'': value}
        if isinstance(value, Mapping):
            inner = {f'.{name}': one for name, one in leaves(value, where).items()}
        for name, one in inner.items():
            if f'{key}{name}' in found:
                twice = 'stands with a dot in its name and without'
                raise ConfigError(f"{where}'{key}{name}' {twice}")
            found[f'{key}{name}'] = one
    return found


def load_mapping(path: Path) -> Mapping[str, Any]:
    """Read names and values from YAML, the way the parser of ROS does."""
    return parse_mapping(read_text(path), path)


def parse_mapping(text: str, path: Path) -> Mapping[str, Any]:
    """Read names and values from a text; errors quote nothing of it."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        def compose_node(self, parent: Any, index: Any) -> Any:
            # Nor does ROS; a few lines of them can stand for more than there is memory for.
            if self.check_event(yaml.AliasEvent):
                raise ConfigError(f'{path}: aliases are not read')
            return super().compose_node(parent, index)

        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if isinstance(key, yaml.ScalarNode):
                    name, line = (key.tag, key.value), key.start_mark.line + 1
                    if name in lines:
                        where = f'in line {lines[name]} and in line {line}'
                        raise ConfigError(f"{path}: '{key.value}' stands {where}")
                    lines[name] = line
            return node

    Loader.yaml_implicit_resolvers = {
        first: [one for one in kinds if one[0] != 'tag:yaml.org,2002:timestamp']
        for first, kinds in Loader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver('tag:yaml.org,2002:float', EXPONENT, list('-+0123456789'))
    try:
        data = yaml.load(text, Loader)
        if not isinstance(data, Mapping):
            raise ConfigError(f'{path} holds no names and values')
    except ConfigError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        line = f' in line {mark.line + 1}' if mark else ''
        problem = getattr(error, 'problem', None) or getattr(error, 'reason', '')
        raise ConfigError(f'{path} is not YAML: {problem}{line}') from error
    except RecursionError:
        raise ConfigError(f'{path}: it is nested too deeply') from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        # Of values that PyYAML takes for numbers which they are not.
        raise ConfigError(f'{path} holds a value that cannot be read: {error}') from error
    return data


def is_parameter_file(data: Mapping[str, Any]) -> bool:
    """Tell whether something is written as parameters of ROS nodes."""
    return any(True for _ in _sections(data, ''))


def load_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters that a file gives to a node, later sections over earlier ones."""
    sections = list(_sections(load_mapping(Path(path)), ''))
    merged: dict[str, Any] = {}
    found = [body for name, body in sections if name.split('/')[-1] in (node, '*', '**')]
    if not sections:
        raise ConfigError(f"{path} is no parameter file of a node: it has no '{PARAMETERS}'")
    if not found:
        others = ', '.join(name for name, _ in sections)
        raise ConfigError(f"{path} has no section '/**' or '{node}', but {others}")
    for body in found:
        merged |= leaves(body, f'{path}: ')
    return {name: v for name, v in merged.items() if name.split('.')[0] not in ROS_OWN}


def _sections(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every full node name and its parameters."""
    for key, value in data.items():
        if isinstance(value, Mapping):
            if key == PARAMETERS:
                yield prefix, value
            else:
                yield from _sections(value, f'{prefix}/{key}'.replace('//', '/'))


def read_text(path: str | Path) -> str:
    """Return the text of a regular file; pipes and devices are not opened."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ConfigError(f"cannot read '{path}': it is no regular file")
    try:
        return Path(path).read_bytes().decode()
    except OSError as error:
        raise ConfigError(f"cannot read '{path}': {error.strerror}") from error
    except UnicodeDecodeError:
        raise ConfigError(f"cannot read '{path}': it is no UTF-8 text") from None


def check_own(path: Path, recognises: Callable[[str], bool]) -> None:
    """Refuse a path that holds anything but a regular file whose text is recognised or empty."""
    # A disk that lost its power leaves files of no bytes, or of zeros.
    text = read_text(path).strip('\0') if os.path.lexists(os.path.realpath(path)) else ''
    if text and not recognises(text):
        raise ConfigError(f"'{path}' was not written by this node and is not replaced")


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
        # A link stays one: its target is replaced, with its mode.
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
        # No other user may read what replaces a file of a narrow mode.
        mode = 0o600 if target.exists() else 0o666
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode))
        yield part
    except OSError as error:
        raise ConfigError(f"cannot write '{path}': {error.strerror}") from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)
