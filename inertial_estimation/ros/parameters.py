# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
The settings as parameters of a node: the same names, types, ranges and descriptions.

All of them may be changed while the node is unconfigured; configuring reads them again and
checks them as a set. What is read when the process starts is read-only.
"""

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, settings_of
from inertial_estimation.config.files import ROS_OWN
from inertial_estimation.config.groups import GROUPS
from inertial_estimation.config.unused import name_unused, split_unused
from inertial_estimation.model.robot import Robot

READ_AT_START = ('autostart', 'niceness')
ARRAY_TYPES = {
    bool: Parameter.Type.BOOL_ARRAY,
    int: Parameter.Type.INTEGER_ARRAY,
    float: Parameter.Type.DOUBLE_ARRAY,
    str: Parameter.Type.STRING_ARRAY,
}


class Parameters:
    """The parameters of a node that hold its settings."""

    def __init__(self, node: Node, kind: type[EstimatorSettings] = EstimatorSettings) -> None:
        self._node, self._kind = node, kind
        self.locked = False
        # rclpy offers no other way to see overrides before they are declared, and declaring
        # would accept unknown names and answer wrong types without the remedy.
        given = {
            name: _given(name, override.value)
            for name, override in node._parameter_overrides.items()
            if name.split('.')[0] not in ROS_OWN
        }
        used, self._spare = split_unused(given)
        self._declare(kind.from_dict(used))
        node.add_on_set_parameters_callback(self._check_change)

    def collect(self) -> EstimatorSettings:
        """Return the settings as they stand now."""
        declared = {
            name: _plain(parameter.value)
            for name, parameter in self._node.get_parameters_by_prefix('').items()
            if name.split('.')[0] in _TOP or name.split('.')[0] in GROUPS
        }
        # Groups whose names were taken off a list stay declared.
        used, _ = split_unused(self._spare | declared)
        settings = self._kind.from_dict(used)
        self._declare(settings)
        self._spare = {
            name: value
            for name, value in self._spare.items()
            if not self._node.has_parameter(name)
        }
        return settings

    def unused_groups(self, robot: Robot) -> list[str]:
        """Return the groups of parameters that were given and that no list names."""
        sensors = (*robot.ft_sensors, *robot.imus)
        return name_unused(self._spare, set(robot.frames) | {sensor.name for sensor in sensors})

    def _declare(self, settings: EstimatorSettings) -> None:
        """Declare what is not declared yet, with the values of the settings."""
        items = [(item.name, item) for item in settings_of(type(settings))]
        for kind, group in GROUPS.items():
            for owner in getattr(settings, kind):
                items += [(f'{kind}.{owner}.{item.name}', item) for item in settings_of(group)]
        values = settings.to_parameters()
        for name, item in items:
            if not self._node.has_parameter(name):
                _declare(self._node, name, item, values[name])

    def _check_change(self, parameters: list[Parameter]) -> SetParametersResult:
        """Refuse changes that would have no effect."""
        for parameter in parameters:
            first = parameter.name.split('.')[0]
            if parameter.name in READ_AT_START:
                reason = f"'{parameter.name}' is read when the process starts"
                return SetParametersResult(successful=False, reason=reason)
            if self.locked and (first in _TOP or first in GROUPS):
                reason = f"'{parameter.name}' is read at configuration: clean up the node first"
                return SetParametersResult(successful=False, reason=reason)
        return SetParametersResult(successful=True)


_TOP = {item.name: item for item in settings_of(IdentifierSettings)}
"""Of all nodes."""


def descriptor(item, name: str = '') -> ParameterDescriptor:
    """Return what ROS can say about a setting."""
    description = ParameterDescriptor(
        description=item.description,
        additional_constraints=item.constraint,
        # An empty list can only be given after the declaration.
        read_only=(name or item.name) in READ_AT_START and not item.is_list,
    )
    if item.range and item.kind is float:
        low, high = map(float, item.range)
        description.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    elif item.range:
        low, high = item.range
        description.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
    return description


def _declare(node: Node, name: str, item, value) -> None:
    """Declare one parameter with a value that has been checked."""
    described = descriptor(item, name)
    if not item.is_list or value:
        node.declare_parameter(name, value, described, ignore_override=True)
        return
    # rclpy takes an empty list for one of bytes, unless the parameter says the type.
    node.declare_parameter(name, ARRAY_TYPES[item.kind], described, ignore_override=True)
    node.set_parameters([Parameter(name, ARRAY_TYPES[item.kind], [])])


def list_setting(name: str):
    """Return the setting of a parameter that holds a list."""
    groups = {item.name: item for group in GROUPS.values() for item in settings_of(group)}
    item = _TOP.get(name) or groups.get(name.split('.')[-1])
    return item if item is not None and item.is_list else None


def _given(name: str, value):
    """Return an override; the parser of ROS reads an empty list as no value at all."""
    return [] if value is None and list_setting(name) is not None else _plain(value)


def _plain(value):
    """Return an array as a list."""
    return value if isinstance(value, (bool, int, float, str)) or value is None else list(value)
