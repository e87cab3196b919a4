# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Groups of parameters that no list names.

A file that stands alone has no reason for them, and `EstimatorSettings.from_dict` refuses them.
With parameters from several places they are ordinary: a command line that takes other IMUs than
the file leaves the groups of the file behind. Whether such a name is a typing error only the robot
can tell: what is left behind is called like something that the robot has.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from inertial_estimation.config.checks import ALL, LISTS, are_all
from inertial_estimation.errors import NameNotFound

PLACES = ('frame', 'joint')
"""Settings of a group that say where on the robot it belongs."""


def split_unused(values: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Tell parameters in use from those of groups that no list names."""
    unused = {name: value for name, value in values.items() if _is_left_over(name, values)}
    return {n: v for n, v in values.items() if n not in unused}, unused


def name_unused(unused: Mapping[str, Any], known: Set[str]) -> list[str]:
    """Return the groups that are not used, or find that one belongs to nothing at all."""
    groups: dict[str, list[Any]] = {}
    for name, value in unused.items():
        group, _, key = name.rpartition('.')
        groups.setdefault(group, []).extend([value] if key in PLACES else [])
    for group, places in groups.items():
        kind, _, owner = group.partition('.')
        if not any(place in known for place in (owner, *places)):
            raise NameNotFound(
                'frame or sensor of the robot',
                owner,
                sorted(known),
                f"'{group}.*' is given and '{LISTS[kind]}' does not name it",
            )
    return list(groups)


def _is_left_over(name: str, values: Mapping[str, Any]) -> bool:
    """Tell whether a parameter belongs to a group that its list does not name."""
    kind, _, rest = name.partition('.')
    if kind not in LISTS or not rest.rpartition('.')[0]:
        return False
    listed = values.get(LISTS[kind], ALL if kind == 'ft' else ())
    if not isinstance(listed, (list, tuple)):
        listed = ()
    # The FT sensors of the URDF are known when the robot is.
    return not are_all(kind, listed) and rest.rpartition('.')[0] not in listed
