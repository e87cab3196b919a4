# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
A lifecycle node that becomes a pipeline once there is a robot description.

Its settings are parameters: the same names, types, ranges and descriptions. They may be changed
while the node is unconfigured; configuring reads them again and checks them as a set. Those that
are `live` may be changed at any time, if the set is still valid. Files are named when the process
starts: whoever may call services must not choose what is read and written.
"""

import gc
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from itertools import pairwise
from pathlib import Path
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor, SetParametersResult
from rclpy.clock import JumpThreshold
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.service import Service
from rclpy.subscription import Subscription
from std_msgs.msg import String
from std_srvs.srv import Trigger

from inertial_estimation.config import EstimatorSettings, IdentifierSettings, Setting
from inertial_estimation.config.files import ROS_OWN, parse_mapping, read_text
from inertial_estimation.config.schema import setting_of, split_unlisted
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.model.urdf import is_xml
from inertial_estimation.ros.executors import PollingNode, create_service
from inertial_estimation.ros.subscriptions import LATCHED

FILES = 'robot_description_file', 'calibration_file', 'model.file', 'state_file'
READ_AT_START = 'autostart', *FILES
ARRAY_TYPES = {float: Parameter.Type.DOUBLE_ARRAY, str: Parameter.Type.STRING_ARRAY}
Transition = Callable[['ConfiguredNode', LifecycleState], TransitionCallbackReturn]


def reported(transition: Transition) -> Transition:
    """Log the error of a transition, which rclpy ignores."""

    @wraps(transition)
    def wrapped(node: 'ConfiguredNode', state: LifecycleState) -> TransitionCallbackReturn:
        try:
            return transition(node, state)
        except InertialEstimationError as error:
            node.get_logger().error(str(error))
            return TransitionCallbackReturn.FAILURE
        except Exception:
            node.get_logger().error(traceback.format_exc())
            return TransitionCallbackReturn.ERROR

    return wrapped


class ConfiguredNode(PollingNode, LifecycleNode):
    """Reads its settings, waits for the robot description, and makes its pipeline."""

    pipeline: Any = None
    _jump: Any = None

    def __init__(self, name: str, kind: type[EstimatorSettings], make: Callable, **kwargs) -> None:
        super().__init__(name, **kwargs)
        self._make = make
        self._made: set[Any] = set()
        self._declared = Parameters(self, kind, [*sys.argv, *(kwargs.get('cli_args') or ())])
        self.settings = self._declared.collect()
        self._received_urdf = ''
        create_service(self, Trigger, '~/reset', lambda: self.configured().reset())
        self.create_subscription(String, 'robot_description', self._on_description, LATCHED)
        self._to_start = self.settings.autostart
        backward = JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1))
        self._jump = self.get_clock().create_jump_callback(backward, post_callback=self._on_jump)

    def configured(self) -> Any:
        """Return the pipeline, if there is one."""
        if self.pipeline is None:
            raise ConfigError('not configured')
        return self.pipeline

    @reported
    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Read the parameters, build the robot, fill the filters."""
        self.settings = self._declared.collect()
        before = self._entities()
        try:
            self.pipeline = self._make(self, self.settings, self._find_urdf())
        finally:
            self._made = self._entities() - before
            if self.pipeline is None:
                self._destroy_made()
        robot = self.pipeline.robot
        if unlisted := self._declared.unlisted:
            groups = dict.fromkeys(name.rpartition('.')[0] for name in unlisted)
            self.get_logger().warning(f'parameters of no listed name: {", ".join(groups)}')
        self._declared.take_over = self._change
        self._to_start = False
        self.get_logger().info(
            f"robot '{robot.name}': {robot.mass:.2f} kg; joints: {len(robot.joint_names)}, "
            f'FT sensors: {len(robot.ft_sensors)}, IMUs: {len(robot.imus)}, '
            f'submodels: {len(robot.submodels)}'
        )
        return super().on_configure(state)

    @reported
    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Start to publish."""
        result = super().on_activate(state)
        self.pipeline.start()
        self.pipeline.active = True
        # The garbage collector need not look at what lives now again.
        gc.collect()
        gc.freeze()
        return result

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop to publish; the filters stay filled."""
        self.pipeline.active = False
        return super().on_deactivate(state)

    @reported
    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy the pipeline, so that parameters may change."""
        self._take_apart()
        return super().on_cleanup(state)

    @reported
    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Destroy the pipeline for good."""
        self._to_start = False
        self._take_apart()
        return super().on_shutdown(state)

    @reported
    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Go back to where one may configure again."""
        self._take_apart()
        return super().on_error(state)

    def start(self) -> None:
        """Configure and activate with `autostart`, as soon as there is a robot description."""
        if not self._to_start:
            return
        if not self._has_own_urdf and not self._received_urdf:
            topic = self.resolve_topic_name('robot_description')
            self.get_logger().info(f'waiting for the robot description on {topic}')
        elif self.trigger_configure() == TransitionCallbackReturn.SUCCESS:
            self.trigger_activate()
        else:
            self.get_logger().error(
                f'{self.get_fully_qualified_name()} stays unconfigured: correct its parameters, '
                "then configure and activate it with 'ros2 lifecycle set'"
            )

    @property
    def _has_own_urdf(self) -> bool:
        """True if the URDF does not come on the topic."""
        return bool(self.settings.robot_description or self.settings.robot_description_file)

    def _find_urdf(self) -> str:
        """Return the robot description from parameter, file or topic, in that order."""
        source, text = "parameter 'robot_description'", self.settings.robot_description
        if not text and (path := self.settings.robot_description_file):
            source = f"'robot_description_file': '{path}'"
            try:
                text = read_text(Path(path).expanduser())
            except ConfigError as error:
                raise ConfigError(f"'robot_description_file': {error}") from error
        elif not text:
            source = f'topic {self.resolve_topic_name("robot_description")}'
            text = self._received_urdf
        # The library takes other text for a path.
        if not is_xml(text):
            raise ConfigError(f'robot description: {source} is no URDF')
        return text

    def _change(self, settings: EstimatorSettings) -> None:
        self.settings = settings
        self.pipeline.change(settings)

    def _on_jump(self, jump) -> None:
        """Start anew when the clock of the node goes back."""
        if self.pipeline is not None:
            self.pipeline.forget()
            self.get_logger().info('time was set back: filters and buffers are empty')

    def _on_description(self, message: String) -> None:
        """Keep a robot description; start if the node waits for it."""
        is_new = message.data != self._received_urdf and not self._has_own_urdf
        self._received_urdf = message.data
        if is_new and self.pipeline is not None:
            self.get_logger().warning(
                'there is a new robot description: clean up and configure to take it over'
            )
        elif is_new:
            self.start()

    def destroy_node(self) -> None:
        """Destroy the pipeline too: a signal ends the process without any transition."""
        # rclpy destroys a node whose constructor failed.
        if self.pipeline is not None:
            self._take_apart()
        if self._jump is not None:
            self._jump.unregister()
        super().destroy_node()

    def _take_apart(self) -> None:
        gc.unfreeze()
        if self.pipeline is not None:
            self.pipeline.active = False
            self.pipeline.destroy()
        self._destroy_made()
        self.pipeline = None
        self._declared.take_over = None

    def _entities(self) -> set[Any]:
        """Return publishers, subscriptions and services, those that are polled as well."""
        polled = Node.subscriptions.fget(self)
        return {*self.publishers, *polled, *self.services}

    def _destroy_made(self) -> None:
        """Destroy what a pipeline has made, be it a part of one."""
        for one in self._made:
            if isinstance(one, Subscription):
                self.destroy_subscription(one)
            elif isinstance(one, Service):
                self.destroy_service(one)
            else:
                self.destroy_lifecycle_publisher(one)
        self._made = set()


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
