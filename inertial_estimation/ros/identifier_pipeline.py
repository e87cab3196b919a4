# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What a configured identifier consists of: subscriptions, recursion, publishers, diagnostics."""

from dataclasses import replace
from time import perf_counter

import numpy as np
from rclpy.clock import Clock, ClockType, JumpThreshold
from rclpy.duration import Duration
from rclpy.lifecycle import LifecycleNode

from inertial_estimation.building import (
    build_assembler,
    build_calibration,
    build_contact_stream,
    build_robot,
)
from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.identification.recursion.recursive_identifier import (
    RecursiveIdentifier,
    Refit,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.watch import Change
from inertial_estimation.identification.rows.builder import RowChoice
from inertial_estimation.identification.rows.friction import JointModel
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.executors import has_events_executor
from inertial_estimation.ros.identifier_outputs import IdentifierOutputs
from inertial_estimation.ros.identifier_report import IdentifierReport
from inertial_estimation.ros.inputs import Inputs
from inertial_estimation.ros.stretches import FreeStretch, Stretches
from inertial_estimation.sample import Sample

REPORT_PERIOD = 1.0
"""Period of the diagnostics [s]."""
QUEUE = 500
"""Messages that may wait while bodies are refitted."""


class IdentifierPipeline:
    """
    From messages of sensors to inertial parameters.

    Parameters
    ----------
    node : LifecycleNode
        Owns everything that talks.
    settings : IdentifierSettings
        Checked.
    urdf : str
        Robot description: the prior.

    Attributes
    ----------
    active : bool
        While false, messages fill the filters and nothing is learned.
    robot : Robot
        What the settings and the description make.
    identifier : RecursiveIdentifier
        What is known.
    refit : Refit or None
        What was found last.

    Raises
    ------
    InertialEstimationError
        If settings and robot do not fit together.

    """

    def __init__(self, node: LifecycleNode, settings: IdentifierSettings, urdf: str) -> None:
        self.active = False
        self._node, self._settings = node, settings
        self.robot = build_robot(settings, urdf)
        self.identifier = RecursiveIdentifier(
            self.robot,
            recursion_settings(settings, self.robot),
            build_calibration(settings, self.robot),
        )
        self.refit: Refit | None = None
        self._refitted_ns = 0
        self._stretches = Stretches(
            self.robot, settings.rows_rate, settings.contact_margin, settings.held_frames
        )
        self._assembler = build_assembler(settings, self.robot)
        self._contacts = build_contact_stream(settings, self.robot)
        self._outputs = IdentifierOutputs(node, self.robot)
        self._report = IdentifierReport(node, self.robot)
        self._inputs = self._make_inputs()
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self._timer = node.create_timer(REPORT_PERIOD, self._diagnose, clock=steady)
        self._jump = node.get_clock().create_jump_callback(
            JumpThreshold(min_forward=None, min_backward=Duration(nanoseconds=-1)),
            post_callback=self._on_time_jump,
        )

    def start(self) -> None:
        """Do nothing: there is nothing to say before the first refit."""

    def reset(self) -> str:
        """Forget what was received and learned; return what was done."""
        self._forget()
        self.identifier.reset()
        self.refit = None
        return 'forgot all messages and all that they told of the robot'

    def destroy(self) -> None:
        """Give everything back that talks."""
        self._jump.unregister()
        self._node.destroy_timer(self._timer)
        self._inputs.destroy()
        self._outputs.destroy()
        self._report.destroy()

    def _make_inputs(self) -> Inputs:
        """Create the subscriptions; give the publishers back if one of them is refused."""
        settings = self._settings
        try:
            return Inputs(
                self._node,
                replace(settings, queue_depth=max(settings.queue_depth, QUEUE)),
                self.robot,
                self._assembler,
                self._contacts,
                self._on_sample,
                polled=settings.executor == 'single' or not has_events_executor(),
            )
        except InertialEstimationError:
            self._outputs.destroy()
            self._report.destroy()
            raise

    def _on_sample(self, sample: Sample) -> None:
        """Collect a sample, and learn from a stretch of them."""
        if not self.active:
            return
        stretch = self._stretches.add(sample, self._contacts.at(sample.stamp_ns))
        if stretch is not None:
            try:
                self._learn(stretch)
            except (InertialEstimationError, np.linalg.LinAlgError) as error:
                self._report.note_failure(error)

    def _learn(self, stretch: FreeStretch) -> None:
        """Work a stretch in, and refit when it is time."""
        start = perf_counter()
        changes = self.identifier.add(stretch.samples, free=stretch.free)
        added = perf_counter()
        self._report.note_rows(added - start, stretch)
        for name, change in changes:
            self._node.get_logger().info(_said(name, change))
        due = self.identifier.stamp_ns - self._refitted_ns >= 1e9 * self._settings.refit_period
        if not due and not any(change is Change.BODY for _, change in changes):
            return
        self._refitted_ns = self.identifier.stamp_ns
        self.refit = self.identifier.refit()
        self._report.note_refit(perf_counter() - added, self.refit)
        if self.refit is not None and self.refit.refitted:
            self._outputs.publish(self.refit)

    def _forget(self) -> None:
        """Empty filters and buffers."""
        self._assembler.reset()
        self._contacts.reset()
        self._stretches.reset()
        self._refitted_ns = 0

    def _on_time_jump(self, jump) -> None:
        """Start anew when the clock of the node goes back; what was learned stays."""
        if self._settings.reset_on_time_jump:
            self._forget()
            self._node.get_logger().info('time was set back: filters and buffers are empty')

    def _diagnose(self) -> None:
        """Publish diagnostics."""
        self._report.publish(self.identifier, self.refit, active=self.active)


def recursion_settings(settings: IdentifierSettings, robot: Robot) -> RecursionSettings:
    """
    Return how the recursion remembers.

    Parameters
    ----------
    settings : IdentifierSettings
        Of the node.
    robot : Robot
        Its sensors.

    Returns
    -------
    RecursionSettings

    Raises
    ------
    ConfigError
        If a term of friction is unknown, or a number does not fit.

    """
    offsets = tuple(sensor.name for sensor in robot.ft_sensors) if settings.ft_offsets else ()
    joint = JointModel(
        tuple(map(Term, settings.friction)), settings.sign_width, settings.dead_zone
    )
    return RecursionSettings(
        rows=RowChoice(
            wrenches=settings.wrench_rows, efforts=settings.efforts, joint=joint, offsets=offsets
        ),
        weight=settings.prior_weight,
        half_life=settings.half_life,
        force_walk=settings.force_walk,
        moment_walk=settings.moment_walk,
        warm_up=settings.warm_up,
        gate=settings.gate,
        payload_links=settings.payload_links,
        excited=settings.least_told,
    )


def _said(name: str, change: Change) -> str:
    """Return what to say of a change."""
    return {
        Change.TOUCHED: f'{name}: something unknown acts on it, or it has changed; not learning',
        Change.FREE: f'{name}: agrees again',
        Change.BODY: f'{name}: carries another mass since',
        Change.OFFSET: f'{name}: an FT sensor has another offset since',
    }[change]
