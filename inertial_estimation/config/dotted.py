# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Between settings and the flat, dotted names of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from inertial_estimation.config.checks import ALL, LISTS, are_all, check_listed
from inertial_estimation.config.files import leaves
from inertial_estimation.config.groups import GROUPS
from inertial_estimation.config.schema import Value, settings_of
from inertial_estimation.errors import ConfigError, NameNotFound


def read_parameters(top_class: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of settings that nested mappings or dotted names describe."""
    top = {s.name: s for s in settings_of(top_class)}
    values: dict[str, Any] = {}
    groups: dict[str, dict[str, dict[str, Any]]] = {kind: {} for kind in GROUPS}
    for name, value in leaves(data).items():
        kind, _, rest = name.partition('.')
        owner, _, key = rest.rpartition('.')
        if kind in GROUPS and owner:
            group = groups[kind].setdefault(owner, {})
            group[key] = _read_in_group(kind, name, key, value)
        elif name in top:
            values[name] = top[name].read(value)
        else:
            known = [*top, *(f'{k}.<name>' for k in GROUPS)]
            raise NameNotFound('parameter', name, known, remedy=_whose(name))
    for kind, group_class in GROUPS.items():
        check_listed(kind, groups[kind], values.get(LISTS[kind], ALL if kind == 'ft' else ()))
        values[kind] = {name: group_class(**given) for name, given in groups[kind].items()}
    return values


def _whose(name: str) -> str:
    """Return what to say of a name that is known elsewhere."""
    from inertial_estimation.config.identifier import IDENTIFIER_NAME, IdentifierSettings

    if name not in {item.name for item in settings_of(IdentifierSettings)}:
        return ''
    return f'it is one of {IDENTIFIER_NAME}, whose file comes on top of that of the estimator'


def write_parameters(settings: Any) -> Iterator[tuple[str, Value]]:
    """Yield every setting under its dotted name, tuples as lists."""
    for item in settings_of(type(settings)):
        yield item.name, _as_list(getattr(settings, item.name))
    for kind, group_class in GROUPS.items():
        for name, group in getattr(settings, kind).items():
            for item in settings_of(group_class):
                yield f'{kind}.{name}.{item.name}', _as_list(getattr(group, item.name))


def complete_groups(kind: str, given: object, listed: tuple[str, ...]) -> dict[str, Any]:
    """Return one group for each listed name, and whatever else was given and says something."""
    group_class = GROUPS[kind]
    if not isinstance(given, Mapping):
        raise ConfigError(f"'{kind}' is {given!r}, expected a dict of {group_class.__name__}")
    for name, group in given.items():
        if not isinstance(group, group_class):
            expected = f'expected {group_class.__name__}(...)'
            raise ConfigError(f"'{kind}.{name}' is {group!r}, {expected}")
    # What a name left of the list must not stop `replace` from taking it off.
    empty = group_class()
    is_tag = are_all(kind, listed)
    listed = () if is_tag else listed
    kept = {n: g for n, g in given.items() if n in listed or g != empty or is_tag}
    return {**dict.fromkeys(listed, empty), **kept}


def _read_in_group(kind: str, name: str, key: str, value: object) -> Any:
    """Read one setting of a group."""
    known = {s.name: s for s in settings_of(GROUPS[kind])}
    if key not in known:
        prefix = name.rpartition('.')[0]
        raise NameNotFound('parameter', name, [f'{prefix}.{item}' for item in known])
    return known[key].read(value, name)


def _as_list(value: Any) -> Value:
    """Return a tuple as the list that ROS has for it."""
    return list(value) if isinstance(value, tuple) else value
