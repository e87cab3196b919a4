# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The lifecycle node ``parameter_identifier``."""

from collections.abc import Iterator, Sequence

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from rclpy.subscription import Subscription
from std_srvs.srv import SetBool, Trigger

from inertial_estimation.config.identifier import IDENTIFIER_NAME, IdentifierSettings
from inertial_estimation.identification.determined import in_words
from inertial_estimation.ros.configured_node import ConfiguredNode, reported, run_node
from inertial_estimation.ros.executors import PolledGroup, step_back
from inertial_estimation.ros.identifier_pipeline import IdentifierPipeline
from inertial_estimation.ros.services import create_service

UNCONFIGURED = 'not configured'


class IdentifierNode(ConfiguredNode):
    """Finds out what the links weigh while the robot works, and publishes it."""

    def __init__(self, **kwargs) -> None:
        super().__init__(IDENTIFIER_NAME, IdentifierSettings, _make, **kwargs)
        create_service(self, SetBool, '~/enable', self._on_enable)
        create_service(self, Trigger, '~/save', self._on_save)
        create_service(self, Trigger, '~/restore', self._on_restore)
        self.start()

    @property
    def subscriptions(self) -> Iterator[Subscription]:
        """What wakes the executor: not what the pipeline polls."""
        found = super().subscriptions
        return (one for one in found if not isinstance(one.callback_group, PolledGroup))

    @reported
    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Stop to learn, and keep what is known."""
        self.pipeline.keep()
        return super().on_deactivate(state)

    def destroy_node(self) -> None:
        """Keep what is known: a signal ends the process without any transition."""
        if self.pipeline is not None:
            self.pipeline.keep()
        super().destroy_node()

    def take_priority(self) -> list[str]:
        """Step back behind other processes; return what the operating system refused."""
        return step_back(self.settings.niceness)

    def _on_enable(self, request: SetBool.Request, response: SetBool.Response):
        """Pause to learn, or go on."""
        response.success = self.pipeline is not None
        response.message = self.pipeline.enable(request.data) if self.pipeline else UNCONFIGURED
        return response

    def _on_save(self, request: Trigger.Request, response: Trigger.Response):
        """Write what is known."""
        given = self.pipeline.save() if self.pipeline else (False, UNCONFIGURED)
        response.success, response.message = given
        return response

    def _on_restore(self, request: Trigger.Request, response: Trigger.Response):
        """Take what was known from the file."""
        given = self.pipeline.restore() if self.pipeline else (False, UNCONFIGURED)
        response.success, response.message = given
        return response


def _make(node: ConfiguredNode, settings: IdentifierSettings, urdf: str) -> IdentifierPipeline:
    """Return what the node consists of, and say which links it could not take as they are."""
    pipeline = IdentifierPipeline(node, settings, urdf)
    if widened := pipeline.identifier.widened:
        node.get_logger().info(
            'links that are points, sticks or without mass are published with the moments of a '
            f'small ball at least: {in_words(widened)}'
        )
    given = [name for name in ('fifo_priority', 'cpu_affinity') if getattr(settings, name)]
    if given:
        node.get_logger().info(
            f"{' and '.join(given)}: the estimator's, not used here; niceness says how far this "
            'node steps back'
        )
    return pipeline


def main(args: Sequence[str] | None = None) -> int:
    """Run the node until it is interrupted."""
    return run_node(IdentifierNode, IDENTIFIER_NAME, args)
