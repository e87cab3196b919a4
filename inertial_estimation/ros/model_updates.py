# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters from a topic, a file or the URDF, which change between cycles."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.files import check_own, read_text, write_whole
from inertial_estimation.errors import ConfigError, InertialEstimationError, ModelError
from inertial_estimation.estimation.model_update import ModelInUse
from inertial_estimation.findings import finding
from inertial_estimation.model.parameter_update import (
    ParameterUpdate,
    from_text,
    recognises,
    to_text,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.diagnostics import Status
from inertial_estimation.ros.executors import create_service
from inertial_estimation.ros.inertial_parameters import (
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    from_message,
    offsets_from_message,
    roots_from_message,
)
from inertial_estimation.ros.subscriptions import LATCHED

UNKNOWN_NODE = '_NODE_NAME_UNKNOWN_'
"""Name in rmw of a node that is not discovered yet."""


class ModelUpdates:
    """Subscriptions and services that change the inertial parameters of an estimator."""

    def __init__(
        self,
        node: LifecycleNode,
        robot: Robot,
        settings: EstimatorSettings,
        model: ModelInUse,
        is_active: Callable[[], bool],
    ) -> None:
        self._node, self._robot, self._settings = node, robot, settings
        self._model, self._is_active = model, is_active
        self._refused = 0
        self._refusals: dict[str, str] = {}
        """Reason why the newest message of a topic was refused."""
        create_service(node, SetBool, '~/hold_model', self._hold)
        create_service(node, Trigger, '~/revert_model', self._revert)
        create_service(node, Trigger, '~/save_model', self._save)
        create_service(node, Trigger, '~/restore_model', self._restore)
        # Deviations and offsets come before the update that they belong to, if all are there.
        for topic in (UNCERTAINTY_TOPIC, OFFSETS_TOPIC, TOPIC):
            node.create_subscription(
                Float64MultiArray, topic, partial(self._on_message, topic), LATCHED
            )

    def status(self) -> Status:
        """Return the inertial parameters in use."""
        model = self._model
        sizes = np.linalg.norm(model.offsets.reshape(-1, 2, 3), axis=2)
        offsets = [
            f'{sensor.name} {force:.2f} {moment:.3f}'
            for sensor, (force, moment) in zip(self._robot.ft_sensors, sizes.tolist())
            if force or moment
        ]
        values = {
            'source': model.source,
            'change done [%]': f'{100 * model.progress:.0f}',
            'total mass [kg]': f'{model.goal[:, 0].sum():.4f}',
            'FT offsets that go with it [N], [Nm]': ', '.join(offsets) or 'none',
            'uncertainty': 'none' if model.roots is None else 'in deviations',
            'held': model.held,
            'update waits': model.waiting is not None,
            'updates used': model.taken,
            'updates refused': self._refused,
            'updates that fit worse': model.worse,
        }
        found = [
            finding('update_rejected', 'model', what=f'{topic}: {reason}')
            for topic, reason in self._refusals.items()
        ]
        if model.refusal:
            found.append(finding('update_rejected', 'model', what=model.refusal))
        return Status('model', tuple(found), values, f'from the {model.source}')

    def _on_message(self, topic: str, message: Float64MultiArray) -> None:
        """Use an update or what belongs to it, or note the reason of a refusal."""
        robot, model = self._robot, self._model
        self._refusals.pop(topic, None)
        try:
            self._check_publishers(topic)
            if topic == UNCERTAINTY_TOPIC:
                model.offer_roots(*roots_from_message(robot, message))
            elif topic == OFFSETS_TOPIC:
                model.offer_offsets(*offsets_from_message(robot, message))
                self._finish_unseen()
            else:
                update = ParameterUpdate(from_message(robot, message))
                update.check(robot)
                if model.offer(update):
                    self._finish_unseen()
        except InertialEstimationError as error:
            self._refused += topic == TOPIC
            self._refusals[topic] = str(error)

    def _check_publishers(self, topic: str) -> None:
        """Raise if another node than the configured one publishes, as far as its name is known."""
        wanted, node = self._settings.model.publisher.lstrip('/'), self._node
        found = node.get_publishers_info_by_topic(node.resolve_topic_name(topic))
        names = {f'{x.node_namespace}/{x.node_name}' for x in found if x.node_name != UNKNOWN_NODE}
        others = [name for name in names if not name.endswith(f'/{wanted}')]
        if wanted and others:
            raise ModelError(f"published by '{min(others)}', 'model.publisher' is '{wanted}'")

    def _hold(self, hold: bool) -> str:
        if hold:
            self._model.hold()
            return f'updates are held; in use: {self._model.source}'
        if self._model.held and self._model.release():
            self._finish_unseen()
            return 'the update that waited is taken up'
        return f'updates are used; in use: {self._model.source}'

    def _revert(self) -> str:
        self._model.revert()
        self._finish_unseen()
        return 'back to the URDF; updates are held until ~/hold_model is called with false'

    def _save(self) -> str:
        path = self._path()
        text = to_text(self._robot, self._model.goal)
        check_own(path, lambda other: recognises(self._robot, other))
        write_whole(path, text)
        return f"wrote the parameters of the {self._model.source} to '{path}'"

    def _restore(self) -> str:
        path = self._path()
        try:
            parameters = from_text(self._robot, read_text(path))
        except InertialEstimationError as error:
            raise ConfigError(f"'{path}' is not restored: {error}") from error
        self._model.restore(parameters)
        self._finish_unseen()
        return f"restored '{path}'; updates are held until ~/hold_model is called with false"

    def _path(self) -> Path:
        if not self._settings.model.file:
            raise ConfigError("'model.file' is empty")
        return Path(self._settings.model.file).expanduser()

    def _finish_unseen(self) -> None:
        """Make a change at once while no estimates are published."""
        if not self._is_active():
            self._model.finish()
