# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Nested groups of settings: types, ranges and descriptions, read strictly by dotted names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from math import isfinite
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from inertial_estimation.config.files import leaves
from inertial_estimation.errors import ConfigError, NameNotFound

Scalar = bool | float | str
Value = Scalar | list[float] | list[str]

ALL = ('all',)
"""In place of the names of a list: all that the URDF has."""
KIND_NAMES = {bool: 'true or false', float: 'a double, as 1.0', str: 'a string'}


@dataclass(frozen=True)
class Setting:
    """One setting, as `settings_of` finds it."""

    name: str
    """With dots; ``<name>`` stands for the name of a sensor or contact."""
    kind: type[Scalar]
    """Type of the value, or of its items."""
    is_list: bool
    default: Any
    description: str
    range: tuple[float, float] | None
    choices: tuple[str, ...]
    sizes: tuple[int, ...]
    live: bool
    """True if it can be changed while a node runs."""

    @property
    def constraint(self) -> str:
        """Choices or number of values, in words."""
        if self.choices:
            return 'one of ' + ', '.join(repr(choice) for choice in self.choices)
        if self.sizes:
            return ' or '.join(map(str, self.sizes)) + ' numbers'
        return ''

    def read(self, value: object, name: str = '') -> Any:
        """Return a value as it is stored, or raise ConfigError."""
        name = name or self.name
        if value is None:
            raise ConfigError(f"'{name}' has no value")
        if not self.is_list:
            return self._read_scalar(value, name)
        if isinstance(value, str) or not isinstance(value, Sequence):
            raise ConfigError(f"'{name}' is {value!r}, expected a list")
        if self.sizes and len(value) not in self.sizes:
            raise ConfigError(f"'{name}' has {len(value)} values, expected {self.constraint}")
        read = tuple(self._read_scalar(v, f'{name}[{i}]') for i, v in enumerate(value))
        if self.kind is str and '' in read:
            raise ConfigError(f"'{name}' holds an empty name")
        if self.kind is str and len(set(read)) < len(read):
            twice = next(one for one in read if read.count(one) > 1)
            raise ConfigError(f"'{name}' names '{twice}' more than once")
        return read

    def _read_scalar(self, value: object, name: str) -> Scalar:
        # An int is no double: ROS would refuse it too.
        if not isinstance(value, self.kind):
            raise ConfigError(f"'{name}' is {value!r}, expected {KIND_NAMES[self.kind]}")
        if isinstance(value, float) and not isfinite(value):
            raise ConfigError(f"'{name}' is {value}, expected a finite number")
        if self.range and not self.range[0] <= value <= self.range[1]:  # type: ignore[operator]
            low, high = self.range
            raise ConfigError(f"'{name}' is {value}, expected {low:g} to {high:g}")
        if self.choices and value not in self.choices:
            raise ConfigError(f"'{name}' is '{value}', expected {self.constraint}")
        return value


class Group:
    """A dataclass of settings, groups of them, and groups by names that one of its lists holds."""

    def __post_init__(self) -> None:
        """Check every value; each listed name has its group."""
        for name, item in _members(type(self)).items():
            value = getattr(self, name)
            if isinstance(item, Setting):
                object.__setattr__(self, name, item.read(value))
            elif isinstance(item, Named):
                object.__setattr__(
                    self, name, item.complete(name, value, getattr(self, item.names))
                )
            elif not isinstance(value, item):
                raise ConfigError(f"'{name}' is {value!r}, expected {item.__name__}(...)")


G = TypeVar('G', bound=Group)


@dataclass(frozen=True)
class Named:
    """A field of groups by name, and the setting that lists these names."""

    kind: type[Group]
    names: str

    def complete(self, name: str, groups: object, listed: Sequence[str]) -> dict[str, Group]:
        """Return one group for each listed name; all names may have one if the URDF lists them."""
        if not isinstance(groups, Mapping) or not all(
            isinstance(one, self.kind) for one in groups.values()
        ):
            raise ConfigError(f"'{name}' is {groups!r}, expected {self.kind.__name__} by name")
        if listed == ALL:
            return dict(groups)
        for owner in groups:
            if owner not in listed:
                raise NameNotFound(
                    f"entry of '{self.names}' for '{name}.{owner}.*'", owner, listed
                )
        return {owner: groups.get(owner) or self.kind() for owner in listed}


def setting(
    default: Any,
    description: str,
    *,
    range: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    sizes: tuple[int, ...] = (),
    live: bool = False,
) -> Any:
    """Return a field of one setting."""
    metadata = {
        'description': description, 'range': range, 'choices': choices, 'sizes': sizes,
        'live': live,
    }  # fmt: skip
    return field(default=default, metadata=metadata)


def named(kind: type[Group], names: str) -> Any:
    """Return a field of groups by name."""
    return field(default_factory=dict, metadata={'named': Named(kind, names)})


def _find_members(group: Any) -> dict[str, Setting | Named | type[Group]]:
    """Return the settings and groups of a group by the names of its fields."""
    hints = get_type_hints(group)
    found: dict[str, Setting | Named | type[Group]] = {}
    for item in fields(group):
        kind, metadata = hints[item.name], item.metadata
        is_list = get_origin(kind) is tuple
        if 'description' in metadata:
            of = get_args(kind)[0] if is_list else kind
            found[item.name] = Setting(item.name, of, is_list, item.default, **metadata)
        else:
            found[item.name] = metadata.get('named', kind)
    return found


_members: Callable[[Any], dict[str, Setting | Named | type[Group]]] = cache(_find_members)
_by_name: Callable[[Any], dict[str, Setting]] = cache(
    lambda group: {one.name: one for one in settings_of(group)}
)


def settings_of(group: type[Group], prefix: str = '') -> Iterator[Setting]:
    """Yield the settings of a group and of those below it."""
    for name, item in _members(group).items():
        if isinstance(item, Setting):
            yield replace(item, name=prefix + name)
        elif isinstance(item, Named):
            yield from settings_of(item.kind, f'{prefix}{name}.<name>.')
        else:
            yield from settings_of(item, f'{prefix}{name}.')


def setting_of(group: type[Group], name: str) -> Setting | None:
    """Return a setting by its dotted name; names of sensors may have dots."""
    first, _, rest = name.partition('.')
    owner, _, last = rest.rpartition('.')
    known = _by_name(group)
    return known.get(f'{first}.<name>.{last}' if owner else name)


def read(group: type[G], data: Mapping[str, Any]) -> G:
    """Return the group that nested mappings or dotted names describe."""
    found: dict[str, Any] = {}
    below: dict[str, dict[str, dict[str, Any]]] = {}
    for name, value in leaves(data).items():
        item = setting_of(group, name)
        if item is None:
            raise NameNotFound('parameter', name, _by_name(group))
        first, _, rest = name.partition('.')
        owner, _, key = rest.rpartition('.')
        values = below.setdefault(first, {}).setdefault(owner, {}) if rest else found
        values[key or name] = item.read(value, name)
    for first, owners in below.items():
        kind: Any = _members(group)[first]
        if isinstance(kind, Named):
            found[first] = {owner: kind.kind(**values) for owner, values in owners.items()}
        else:
            found[first] = kind(**owners[''])
    return group(**found)


def write(group: Group, prefix: str = '') -> Iterator[tuple[str, Value]]:
    """Yield every setting under its dotted name, tuples as lists."""
    for name, item in _members(type(group)).items():
        value = getattr(group, name)
        if isinstance(item, Setting):
            yield prefix + name, list(value) if item.is_list else value
        elif isinstance(item, Named):
            for owner, one in value.items():
                yield from write(one, f'{prefix}{name}.{owner}.')
        else:
            yield from write(value, f'{prefix}{name}.')


def split_unlisted(
    group: type[Group], values: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return values by dotted names, and those apart that belong to a name of no list."""
    kept: dict[str, Any] = {}
    apart: dict[str, Any] = {}
    for name, value in values.items():
        first, _, rest = name.partition('.')
        item, owner = _members(group).get(first), rest.rpartition('.')[0]
        listed: Any = ALL
        if isinstance(item, Named) and owner:
            listed = values.get(item.names, _by_name(group)[item.names].default)
        is_listed = isinstance(listed, str) or tuple(listed) == ALL or owner in listed
        (kept if is_listed else apart)[name] = value
    return kept, apart
