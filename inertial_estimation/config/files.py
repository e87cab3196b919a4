# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Reading the parameter files of ROS without ROS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from inertial_estimation.config.owned_file import read_text
from inertial_estimation.errors import ConfigError
from inertial_estimation.nested import check_nested

PARAMETERS = 'ros__parameters'
ROS_OWN = ('use_sim_time', 'qos_overrides', 'start_type_description_service')
"""Parameters that every ROS node has; they say nothing about the estimator."""

# YAML 1.1, which PyYAML reads, takes 1e-3 for a string; the reader of ROS does not.
EXPONENT = re.compile(r'^[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+$')


class RepeatedKey(ConfigError):
    """A name stands twice where it can have one value."""


def flatten(data: Mapping[str, Any], prefix: str = '') -> Iterator[tuple[str, Any]]:
    """Yield the leaves of nested mappings with dotted names."""
    if not isinstance(data, Mapping):
        kind = type(data).__name__
        raise ConfigError(f'the settings are a {kind}, expected a dict of values by name')
    for key, value in data.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f'{prefix}{key}.')
        else:
            yield f'{prefix}{key}', value


def leaves(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the leaves of nested mappings by dotted names."""
    found: dict[str, Any] = {}
    for name, value in flatten(data):
        if name in found:
            raise RepeatedKey(
                f"'{name}' is said twice, with a dot in its name and without: keep one of them"
            )
        found[name] = value
    return found


def load_mapping(path: Path) -> Mapping[str, Any]:
    """Read names and values from YAML, the way the parser of ROS does."""
    return parse_mapping(read_text(path), path)


def parse_mapping(text: str, path: Path) -> Mapping[str, Any]:
    """Read names and values from a text; see `load_mapping`."""
    import yaml

    try:
        data = yaml.load(text, _loader(path))
    except ConfigError:
        raise
    except yaml.MarkedYAMLError as error:
        line = f' in line {error.problem_mark.line + 1}' if error.problem_mark else ''
        raise ConfigError(f'{path} is not YAML: {error.problem}{line}') from error
    except yaml.YAMLError as error:
        raise ConfigError(f'{path} is not YAML: {error}') from error
    except RecursionError:
        raise ConfigError(f'{path} is nested too deeply') from None
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        # Of values that PyYAML takes for dates and numbers which they are not.
        raise ConfigError(f'{path} holds a value that cannot be read: {error}') from error
    if not isinstance(data, Mapping):
        raise ConfigError(f'{path} holds no names and values')
    try:
        check_nested(data)
    except ValueError as error:
        raise ConfigError(f'{path}: {error}') from error
    return data


def _loader(path: Path) -> Any:
    """Return the class that reads a file."""
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        # Here what `<<` merges is still apart from what it may replace.
        def compose_mapping_node(self, anchor: Any) -> Any:
            node = super().compose_mapping_node(anchor)
            lines: dict[tuple[str, str], int] = {}
            for key, _ in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                name, line = (key.tag, key.value), key.start_mark.line + 1
                if name in lines:
                    raise RepeatedKey(
                        f"{path}: '{key.value}' is said twice, in line {lines[name]} and in line "
                        f'{line}: keep one of them'
                    )
                lines[name] = line
            return node

    Loader.add_implicit_resolver('tag:yaml.org,2002:float', EXPONENT, list('-+0123456789'))
    return Loader


def is_parameter_file(data: Mapping[str, Any]) -> bool:
    """Tell whether something is written as parameters of ROS nodes."""
    return any(True for _ in _sections(data, ''))


def load_parameters(path: str | Path, node: str) -> dict[str, Any]:
    """Return the parameters that a file gives to a node, later sections over earlier ones."""
    if not isinstance(path, (str, Path)):
        raise ConfigError(f'the parameter file is {path!r}, expected its path')
    sections = list(_sections(load_mapping(Path(path)), ''))
    found = [leaves(body) for name, body in sections if _is_for(name, node)]
    if not found:
        others = ', '.join(name for name, _ in sections) or 'none'
        raise ConfigError(
            f"{path}: no section '/**' or '{node}' with '{PARAMETERS}' below it; "
            f'sections: {others}'
        )
    merged = {name: value for body in found for name, value in body.items()}
    return {name: v for name, v in merged.items() if name.split('.')[0] not in ROS_OWN}


def _sections(data: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every full node name and what stands under its ros__parameters."""
    for key, value in data.items():
        if not isinstance(value, Mapping):
            continue
        if key == PARAMETERS:
            yield prefix, value
        else:
            yield from _sections(value, f'{prefix}/{key}'.replace('//', '/'))


def _is_for(section: str, node: str) -> bool:
    """Tell whether a section's name ends in the node's name or a wildcard."""
    return section.split('/')[-1] in (node, '*', '**')
