# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Strict reading of files into frozen dataclasses by the types of their fields.

`read` and `record` take any dataclass: a type is a dataclass, a mapping of names to values of one
type, a tuple, a plain value, a choice of these or none, or ``Annotated`` with its reader, a
function of the value and its full name. Values of other types are left to the dataclass.
Groups of `setting` fields have ranges and descriptions too, and dotted names as ROS parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.config.files import leaves
from inertial_estimation.errors import ConfigError, InertialEstimationError, NameNotFound

Value = bool | float | str | list[float] | list[str]
Reader = Callable[[Any, str], Any]
T = TypeVar('T')

ALL = ('all',)
"""In place of the names of a list: all that the URDF has."""
PLAIN = {str: 'a string', bool: 'true or false', int: 'a whole number', float: 'a number'}
_hints = cache(lambda kind: get_type_hints(kind, include_extras=True))


def read(kind: Any, value: Any, name: str) -> Any:
    """Return a value of a type, or raise with its full name."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return inner[1](value, name)
    if origin in (Union, UnionType):
        if value is None and NoneType in inner:
            return None
        # At most one of them is a mapping, and stands last.
        members = [one for one in inner if one is not NoneType]
        return read(members[-1 if isinstance(value, Mapping) else 0], value, name)
    if origin is Mapping:
        return {k: read(inner[1], one, f'{name}.{k}') for k, one in _names(value, name).items()}
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ConfigError(f"'{name}' is {value!r}, expected a list")
        kinds = inner if inner[-1] is not ... else inner[:1] * len(value)
        if len(kinds) != len(value):
            raise ConfigError(f"'{name}' is {value!r}, expected {len(kinds)} values")
        return tuple(read(of, one, name) for of, one in zip(kinds, value, strict=True))
    if isinstance(kind, type) and is_dataclass(kind):
        return record(kind, value, name)
    if kind is Path:
        return Path(read(str, value, name))
    if kind not in PLAIN:
        return value
    fits = type(value) in ((int, float) if kind is float else (kind,))
    if not fits or (kind is float and not isfinite(value)):
        raise ConfigError(f"'{name}' is {value!r}, expected {PLAIN[kind]}")
    return kind(value)


def record(kind: Callable[..., T], value: Any, name: str, /, **more: Any) -> T:
    """Return a dataclass of names and values; `more` are fields that the file does not state."""
    body = _names(value, name)
    known = {one.name: one for one in fields(kind)}  # type: ignore[arg-type]
    for key in body:
        if key not in known or key in more:
            below = f"below '{name}'" if name else 'of the file'
            raise NameNotFound(f'setting {below}', key, known.keys() - more)
    for key, one in known.items():
        if {one.default, one.default_factory} == {MISSING} and key not in {*body, *more}:
            raise ConfigError(f"'{name}' has no '{key}'")
    prefix, hints = f'{name}.' if name else '', _hints(kind)
    given = {key: read(hints[key], one, prefix + key) for key, one in body.items()}
    try:
        return kind(**given, **more)
    except InertialEstimationError as error:
        raise ConfigError(f"'{name}': {error}" if name else str(error)) from error


def _names(value: Any, name: str) -> dict[str, Any]:
    """Read names with values; nothing is none of them."""
    if not isinstance(value, Mapping | NoneType):
        raise ConfigError(f"'{name}' is {value!r}, expected names and values below it")
    return {str(key): one for key, one in (value or {}).items()}


def _not_negative(value: Any, name: str) -> Any:
    found = read(float, value, name)
    if found < 0.0:
        raise ConfigError(f"'{name}' is {value!r}, expected a number from 0")
    return found


def _texts(value: Any, name: str) -> Any:
    """Read one text or several."""
    return read(tuple[str, ...], [value] if isinstance(value, str) else value, name)


def _distinct(value: Any, name: str) -> Any:
    """Read one name or several, none of them twice."""
    found = _texts(value, name)
    if len(set(found)) < len(found):
        twice = next(one for one in found if found.count(one) > 1)
        raise ConfigError(f"'{name}' names '{twice}' more than once")
    return found


def numbers(shape: tuple[int, ...] | None = None, *, infinite: bool = False) -> Reader:
    """Return the reader of numbers of some shape; None: a number, a list or a matrix."""
    expected = 'a number, a list of them or a matrix'
    if shape is not None:
        expected = ' times '.join(map(str, shape)) + ' numbers without NaN'

    def read_numbers(value: Any, name: str) -> Array:
        try:
            values = np.array(value)
        except ValueError:
            values = np.array(None)
        fits = values.ndim <= 2 if shape is None else values.shape == shape
        fits = fits and values.dtype.kind in 'iuf' and not np.isnan(values).any()
        if not fits or (np.isinf(values).any() and not infinite):
            raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
        return values.astype(np.float64)

    return read_numbers


Names = Annotated[tuple[str, ...], _distinct]
Texts = Annotated[tuple[str, ...], _texts]
NotNegative = Annotated[float, _not_negative]
Numbers = Annotated[Array, numbers()]
Vector = Annotated[Array, numbers((3,))]


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, as `settings_of` finds it."""

    name: str
    """With dots; ``<name>`` stands for the name of a sensor or contact."""
    kind: type[bool | float | str]
    """Type of the value, or of its items."""
    is_list: bool
    default: Any
    description: str
    range: tuple[float, float] | None = None
    choices: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    live: bool = False
    """True if it can be changed while a node runs."""

    @property
    def constraint(self) -> str:
        """Choices or number of values, in words."""
        if self.choices:
            return 'one of ' + ', '.join(repr(choice) for choice in self.choices)
        return ' or '.join(map(str, self.sizes)) + ' numbers' if self.sizes else ''

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
        found = tuple(self._read_scalar(v, f'{name}[{i}]') for i, v in enumerate(value))
        if '' in found:
            raise ConfigError(f"'{name}' holds an empty name")
        return _distinct(found, name) if self.kind is str else found

    def _read_scalar(self, value: Any, name: str) -> Any:
        # An int is no double: ROS would refuse it too.
        if not isinstance(value, self.kind):
            expected = 'a double, as 1.0' if self.kind is float else PLAIN[self.kind]
            raise ConfigError(f"'{name}' is {value!r}, expected {expected}")
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
                of = f"entry of '{self.names}' for '{name}.{owner}.*'"
                raise NameNotFound(of, owner, listed)
        return {owner: groups.get(owner) or self.kind() for owner in listed}


def setting(default: Any, description: str, **more: Any) -> Any:
    """Return a field of one setting; `more` are those of `Setting`."""
    return field(default=default, metadata={'description': description, **more})


def named(kind: type[Group], names: str) -> Any:
    """Return a field of groups by name."""
    return field(default_factory=dict, metadata={'named': Named(kind, names)})


def _find_members(group: Any) -> dict[str, Setting | Named | type[Group]]:
    """Return the settings and groups of a group by the names of its fields."""
    found: dict[str, Setting | Named | type[Group]] = {}
    for item in fields(group):
        kind, metadata = _hints(group)[item.name], dict(item.metadata)
        if 'description' in metadata:
            is_list = get_origin(kind) is tuple
            metadata |= {'kind': get_args(kind)[0] if is_list else kind, 'is_list': is_list}
            found[item.name] = Setting(name=item.name, default=item.default, **metadata)
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


def _split(name: str) -> tuple[str, str, str]:
    """Return the group of a dotted name, the sensor or contact, which may have dots, and rest."""
    first, _, rest = name.partition('.')
    owner, _, last = rest.rpartition('.')
    return first, owner, last


def setting_of(group: type[Group], name: str) -> Setting | None:
    """Return a setting by its dotted name."""
    first, owner, last = _split(name)
    return _by_name(group).get(f'{first}.<name>.{last}' if owner else name)


def parse(group: type[G], data: Mapping[str, Any]) -> G:
    """Return the group that nested mappings or dotted names describe."""
    found: dict[str, Any] = {}
    below: dict[str, dict[str, dict[str, Any]]] = {}
    for name, value in leaves(data).items():
        item = setting_of(group, name)
        if item is None:
            raise NameNotFound('parameter', name, _by_name(group))
        first, owner, last = _split(name)
        values = below.setdefault(first, {}).setdefault(owner, {}) if last else found
        values[last or name] = item.read(value, name)
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
        first, owner, _ = _split(name)
        item, listed = _members(group).get(first), ALL
        if isinstance(item, Named) and owner:
            listed = values.get(item.names, _by_name(group)[item.names].default)
        is_listed = isinstance(listed, str) or tuple(listed) == ALL or owner in listed
        (kept if is_listed else apart)[name] = value
    return kept, apart
