# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Inertial parameters from a topic, from a file or from the URDF, taken over between cycles."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from rclpy.lifecycle import LifecycleNode
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.config.owned_file import read_text, write_own
from inertial_estimation.errors import ConfigError, InertialEstimationError
from inertial_estimation.estimation.model_update import UPDATE, URDF, ModelInUse
from inertial_estimation.identification.parameter_file import from_text, recognises, to_text
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.usable_parameters import check_masses
from inertial_estimation.ros.diagnostics import OK, WARN, Task, without_figures
from inertial_estimation.ros.inertial_parameters import (
    LATCHED,
    OFFSETS_TOPIC,
    TOPIC,
    UNCERTAINTY_TOPIC,
    from_message,
    offsets_from_message,
    roots_from_message,
)
from inertial_estimation.ros.services import create_service

HELD = 'updates are held until ~/hold_model is called with false'
NOT_TAKEN = "'take_inertial_parameters' is false: no update is taken over anyway"
MAX_CAUSES = 20
"""That are said: a sender of ever new nonsense must not fill the log. Diagnostics go on."""
NO_FILE = "'model_file' is empty: name a file there, then configure the node anew"


class ModelUpdates:
    """The subscriptions and the services that change the inertial parameters of an estimator."""

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
        self._taken = self._refused = 0
        self._taken_at = ''
        self._reason = ''
        self._causes: set[str] = set()
        self._is_refused = False
        self._services = [
            create_service(node, kind, f'~/{name}', callback)
            for kind, name, callback in (
                (SetBool, 'hold_model', self._on_hold),
                (Trigger, 'revert_model', self._on_revert),
                (Trigger, 'save_model', self._on_save),
                (Trigger, 'restore_model', self._on_restore),
            )
        ]
        self._doubt = ''
        # What is said of an update is heard before it, if both are there.
        topics = {
            UNCERTAINTY_TOPIC: self._on_uncertainty,
            OFFSETS_TOPIC: self._on_offsets,
            TOPIC: self._on_update,
        }
        self._subscriptions = [
            node.create_subscription(Float64MultiArray, topic, callback, LATCHED)
            for topic, callback in (topics.items() if settings.take_inertial_parameters else ())
        ]

    def task(self) -> Task:
        """Return which inertial parameters are in use."""
        model = self._model
        message = f'from the {model.source}' if model.source != UPDATE else 'from an update'
        if model.progress < 1.0:
            message += f', {100 * model.progress:.0f} % of the change done'
        if model.held:
            message += ', updates are held'
        values = {
            'source': model.source,
            'taken over at [s]': self._taken_at or 'the start',
            'change done [%]': f'{100 * model.progress:.0f}',
            'total mass [kg]': f'{model.goal[:, 0].sum():.4f}',
            'FT offsets that go with it [N], [Nm]': self._offsets(),
            'uncertainty': self._doubt or ('none' if model.roots is None else 'in deviations'),
            'held': model.held,
            'update kept aside': model.waiting is not None,
            'updates taken over': self._taken,
            'updates refused': self._refused,
            'last refusal': self._reason or 'none',
        }
        if self._is_refused:
            message += f'; the newest update was refused: {self._reason}'
            return Task('model', WARN, message, values, is_said=True)
        return Task('model', OK, message, values)

    def destroy(self) -> None:
        """Give the services and the subscriptions back."""
        for service in self._services:
            self._node.destroy_service(service)
        self._services.clear()
        for subscription in self._subscriptions:
            self._node.destroy_subscription(subscription)
        self._subscriptions.clear()

    def _on_update(self, message: Float64MultiArray) -> None:
        """Take an update over, keep it aside, or refuse it."""
        try:
            parameters = from_message(self._robot, message)
            check_masses(
                self._robot.link_names,
                parameters,
                self._robot.parameters,
                self._settings.update_mass_factor,
            )
            is_taken = self._model.offer(parameters)
        except InertialEstimationError as error:
            self._refused += 1
            self._reason, self._is_refused = str(error), True
            self._say_once(f'inertial parameters are refused, those before stay: {error}')
            return
        self._is_refused = False
        if is_taken:
            self._taken += 1
            self._note_change()

    def _on_uncertainty(self, message: Float64MultiArray) -> None:
        """Hear how sure an update is."""
        try:
            of, roots = roots_from_message(self._robot, message)
        except InertialEstimationError as error:
            self._say_once(
                f'the uncertainty of inertial parameters is refused, it counts as none: {error}'
            )
            self._doubt = f'refused: {error}'
            return
        self._doubt = ''
        self._model.offer_roots(of, roots)

    def _on_offsets(self, message: Float64MultiArray) -> None:
        """Hear which offsets of FT sensors go with an update."""
        try:
            heard = offsets_from_message(self._robot, message)
        except InertialEstimationError as error:
            self._say_once(
                f'offsets of FT sensors that go with inertial parameters are refused: {error}'
            )
            return
        self._model.offer_offsets(*heard)
        self._finish_unseen()

    def _on_hold(self, request: SetBool.Request, response: SetBool.Response):
        """Keep updates aside, or take them over again."""
        model = self._model
        if not self._subscriptions:
            return _answer(response, NOT_TAKEN, success=False)
        if request.data:
            before = 'were held already' if model.held else 'are held now'
            model.hold()
            return _answer(
                response, f'updates {before}: the newest one is kept aside; in use: {self._used()}'
            )
        if not model.held:
            return _answer(response, 'updates were not held')
        if model.release():
            self._taken += 1
            self._note_change()
            return _answer(response, f'the update kept aside is taken over {self._within()}')
        return _answer(
            response, f'updates are taken over again; none is waiting, in use: {self._used()}'
        )

    def _on_revert(self, request: Trigger.Request, response: Trigger.Response):
        """Go back to the URDF."""
        self._model.revert()
        self._note_change()
        return _answer(response, f'back to the URDF {self._within()}{self._held()}')

    def _on_save(self, request: Trigger.Request, response: Trigger.Response):
        """Write the parameters in use to the file."""
        path = self._settings.model_file
        try:
            _check_named(path)
            write_own(
                Path(path).expanduser(),
                to_text(self._robot, self._model.goal),
                lambda text: recognises(self._robot, text),
            )
        except InertialEstimationError as error:
            return _answer(response, f'nothing was saved: {error}', success=False)
        return _answer(response, f"wrote {self._used()} to '{path}'")

    def _on_restore(self, request: Trigger.Request, response: Trigger.Response):
        """Go on with the parameters of the file."""
        path = self._settings.model_file
        try:
            _check_named(path)
            parameters = from_text(self._robot, read_text(Path(path).expanduser()))
        except InertialEstimationError as error:
            said = f"'{path}': {error}" if path else str(error)
            return _answer(response, f'nothing was restored: {said}', success=False)
        self._model.restore(parameters)
        self._note_change()
        return _answer(response, f"go on with '{path}' {self._within()}{self._held()}")

    def _say_once(self, said: str) -> None:
        """Warn, unless the same was said with other numbers: senders repeat their mistakes."""
        cause = without_figures(said)
        if cause not in self._causes and len(self._causes) < MAX_CAUSES:
            self._causes.add(cause)
            self._node.get_logger().warning(said)

    def _note_change(self) -> None:
        """Note when a change began."""
        self._taken_at = f'{1e-9 * self._node.get_clock().now().nanoseconds:.3f}'
        self._finish_unseen()

    def _finish_unseen(self) -> None:
        """Make a change at once if nobody gets estimates."""
        if not self._is_active():
            self._model.finish()

    def _offsets(self) -> str:
        """Return what is subtracted on top of the calibration, by sensor."""
        sizes = np.linalg.norm(self._model.offsets.reshape(-1, 2, 3), axis=2)
        return (
            ', '.join(
                f'{sensor.name} {force:.2f} {moment:.3f}'
                for sensor, (force, moment) in zip(
                    self._robot.ft_sensors, sizes.tolist(), strict=True
                )
                if force or moment
            )
            or 'none'
        )

    def _used(self) -> str:
        """Name the set in use."""
        names = {URDF: 'the parameters of the URDF', UPDATE: 'those of an update'}
        mass = self._model.goal[:, 0].sum()
        return f'{names.get(self._model.source, "those of the file")} ({mass:.3f} kg)'

    def _within(self) -> str:
        """Say how long the change takes."""
        seconds = self._settings.model_blend_time if self._is_active() else 0.0
        return f'within {seconds:g} s' if seconds else 'at once'

    def _held(self) -> str:
        """Say that updates are held, unless there are none."""
        return f'; {HELD}' if self._subscriptions else ''


def _answer(response, message: str, *, success: bool = True):
    """Fill in an answer."""
    response.success, response.message = success, message
    return response


def _check_named(path: str) -> None:
    """Refuse to save or restore without a file."""
    if not path:
        raise ConfigError(NO_FILE)
