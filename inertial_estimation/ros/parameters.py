# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The settings as parameters of a node: the same names, types, ranges and descriptions.

They may be changed while the node is unconfigured; configuring reads them again and checks them as
a set. Those that are `live` may be changed at any time, if the set is still valid. Files are named
when the process starts: whoever may call services must not choose what is read and written.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from pathlib import Path

from rcl_interfaces.msg import (
    FloatingPointRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, Setting
from inertial_estimation.config.files import ROS_OWN, parse_mapping
from inertial_estimation.config.schema import setting_of, split_unlisted
from inertial_estimation.errors import ConfigError, InertialEstimationError

FILES = 'robot_description_file', 'calibration_file', 'model.file', 'state_file'
READ_AT_START = 'autostart', *FILES
ARRAY_TYPES = {float: Parameter.Type.DOUBLE_ARRAY, str: Parameter.Type.STRING_ARRAY}


class Parameters:
    """The parameters of a node that hold its settings."""

    def __init__(self, node: Node, kind: type[EstimatorSettings], words: Sequence[str]) -> None:
        self._node, self._kind = node, kind
        self.take_over: Callable[[EstimatorSettings], None] | None = None
        """Puts changed settings into a configured node."""
        # rclpy offers no other way to see overrides before they are declared, and declaring
        # would accept unknown names and answer wrong types without the remedy.
        given = {
            name: _given(name, override.value)
            for name, override in node._parameter_overrides.items()
            if name.split('.')[0] not in ROS_OWN
        }
        _check_command_line(node, words, given)
        used, self.unlisted = split_unlisted(kind, given)
        """Parameters of sensors and contacts that no list names."""
        self._declare(kind.from_dict(used))
        node.add_on_set_parameters_callback(self._check_change)
        node.add_post_set_parameters_callback(self._after_change)

    def collect(self) -> EstimatorSettings:
        """Return the settings as they stand now."""
        settings, unlisted = self._read(self._node.get_parameters_by_prefix('').values())
        self._declare(settings)
        self.unlisted = {n: v for n, v in unlisted.items() if not self._node.has_parameter(n)}
        return settings

    def _read(
        self, parameters: Iterable[Parameter]
    ) -> tuple[EstimatorSettings, dict[str, object]]:
        """Return the settings that parameters make, and those of no listed name."""
        given = {
            one.name: _plain(one.value)
            for one in parameters
            if setting_of(self._kind, one.name) is not None
        }
        # Groups whose names were taken off a list stay declared.
        used, unlisted = split_unlisted(self._kind, self.unlisted | given)
        return self._kind.from_dict(used), unlisted

    def _declare(self, settings: EstimatorSettings) -> None:
        """Declare what is not declared yet, with the values of the settings."""
        for name, value in settings.to_parameters().items():
            item = setting_of(self._kind, name)
            if item is not None and not self._node.has_parameter(name):
                _declare(self._node, name, item, value)

    def _check_change(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse changes that would have no effect, and invalid ones of a configured node."""
        reason, configured = '', self.take_over is not None
        for one in parameters:
            item = setting_of(self._kind, one.name)
            if one.name in READ_AT_START:
                reason = f"'{one.name}' is read when the process starts"
            elif configured and item is not None and not item.live:
                reason = f"'{one.name}' is read at configuration: clean up the node first"
        if configured and not reason:
            now = self._node.get_parameters_by_prefix('')
            try:
                self._read({**now, **{one.name: one for one in parameters}}.values())
            except InertialEstimationError as error:
                reason = str(error)
        return SetParametersResult(successful=not reason, reason=reason)

    def _after_change(self, parameters: list[Parameter]) -> None:
        """Let a configured node take over the settings."""
        if self.take_over is not None and any(setting_of(self._kind, p.name) for p in parameters):
            self.take_over(self.collect())


def descriptor(item: Setting) -> ParameterDescriptor:
    """Return the descriptor of a setting."""
    description = ParameterDescriptor(
        description=item.description,
        additional_constraints=item.constraint,
        read_only=item.name in READ_AT_START,
    )
    if item.range:
        low, high = item.range
        description.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return description


def _declare(node: Node, name: str, item: Setting, value) -> None:
    """Declare one parameter with a value that has been checked."""
    if not item.is_list or value:
        node.declare_parameter(name, value, descriptor(item), ignore_override=True)
        return
    # rclpy takes an empty list for one of bytes, unless the parameter states its type.
    node.declare_parameter(name, ARRAY_TYPES[item.kind], descriptor(item), ignore_override=True)
    node.set_parameters([Parameter(name, ARRAY_TYPES[item.kind], [])])


def _check_command_line(node: Node, words: Sequence[str], used: dict[str, object]) -> None:
    """Refuse what ROS drops: of values of several types it uses the first type, not the last."""
    given = {}
    for option, word in pairwise(words):
        target, _, text = word.partition(':=')
        owner, _, name = target.rpartition(':')
        if option in ('-p', '--param') and name in used and owner in ('', node.get_name()):
            given[name] = parse_mapping(f'value: {text}', Path(word))['value']
    for name, value in given.items():
        if repr(value) != repr(used[name]):
            own = f"'{name}' is {value!r} on the command line"
            raise ConfigError(f'{own}, but ROS uses {used[name]!r} of a parameter file')


def _given(name: str, value):
    """Return an override; the parser of ROS reads an empty list as no value at all."""
    item = setting_of(IdentifierSettings, name)
    return [] if value is None and item is not None and item.is_list else _plain(value)


def _plain(value):
    return value if isinstance(value, (bool, int, float, str)) or value is None else list(value)
