# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Run the estimator over a recording: the engine of the node, without ROS."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.building import build_estimator, build_noise
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.internal_wrenches import InternalWrenches
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.deviations import LogDeviations, log_deviations
from inertial_estimation.logs.recording import Progress, Recording, no_progress
from inertial_estimation.logs.touches import estimate_log
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import Array


class Through(NamedTuple):
    """What the parent links of some joints do to their child links [T 4.23]."""

    joints: tuple[str, ...]
    frames: tuple[str, ...]
    """Names of the child links."""
    wrenches: Array
    """In and about these frames, shape (n, n_joints, 6) [N, Nm]; NaN: not known."""


class Net(NamedTuple):
    """The net wrenches of some links [T 4.9]."""

    links: tuple[str, ...]
    wrenches: Array
    """In and about the frames of the links, shape (n, n_links, 6) [N, Nm]; NaN: not known."""


@dataclass(frozen=True)
class Replay:
    """What the estimator says about a recording."""

    robot: Robot
    settings: EstimatorSettings
    recording: Recording
    """The samples that were estimated."""
    estimate: WrenchEstimate
    """Arrays with one leading axis for the samples."""
    clean: WrenchEstimate
    """The same where no reading of a frozen interval is used, known in hindsight."""
    calibration: FtCalibration
    deviations: LogDeviations | None = None
    """Standard deviations of the estimate at some of the samples; None: nobody asked."""
    through: Through | None = None
    """Wrenches through joints; None: nobody asked."""
    net: Net | None = None
    """Net wrenches of links; None: nobody asked."""


def run(
    recording: Recording,
    robot: Robot,
    settings: EstimatorSettings,
    calibration: FtCalibration | None = None,
    progress: Progress = no_progress,
) -> Replay:
    """Estimate every sample of a recording."""
    estimator = make_estimator(robot, settings, calibration=calibration)
    progress('estimating', 0.0)
    touches = recording.touches
    estimate = estimate_log(estimator, recording.samples, touches)
    progress('estimating', 0.5)
    hindsight = recording.without_frozen(s.name for s in robot.ft_sensors)
    clean = estimate_log(estimator, hindsight, touches)
    progress('estimating', 1.0)
    return Replay(robot, settings, recording, estimate, clean, estimator.calibration)


def with_deviations(
    replay: Replay, rows: NDArray[np.intp], progress: Progress = no_progress
) -> Replay:
    """Return a replay with the standard deviations of its estimate."""
    recording, robot, settings = replay.recording, replay.robot, replay.settings
    if recording.rates is None:
        return replay
    found = log_deviations(
        make_estimator(robot, settings, calibration=replay.calibration),
        build_noise(settings, robot, recording.rates),
        recording.samples,
        recording.touches,
        replay.estimate,
        rows,
        lambda done: progress('standard deviations', done),
    )
    return replace(replay, deviations=found)


def with_through(
    replay: Replay, joints: Sequence[str], progress: Progress = no_progress
) -> Replay:
    """Return a replay with the whole wrenches through joints."""
    if not joints:
        return replay
    progress('wrenches through joints', 0.0)
    estimator = make_estimator(replay.robot, replay.settings, calibration=replay.calibration)
    internal = InternalWrenches(estimator)
    found = internal.of(replay.recording.samples, replay.estimate, joints)
    progress('wrenches through joints', 1.0)
    through = Through(tuple(joints), tuple(internal.frames(joints)), found)
    return replace(replay, through=through)


def with_net(replay: Replay, links: Sequence[str], progress: Progress = no_progress) -> Replay:
    """Return a replay with the net wrenches of links."""
    if not links:
        return replay
    progress('net wrenches of links', 0.0)
    estimator = make_estimator(replay.robot, replay.settings, calibration=replay.calibration)
    rows = [replay.robot.link_names.index(link) for link in links]
    found = InternalWrenches(estimator).net(replay.recording.samples, replay.estimate)[:, rows]
    progress('net wrenches of links', 1.0)
    return replace(replay, net=Net(tuple(links), found))


def make_estimator(
    robot: Robot,
    settings: EstimatorSettings,
    *,
    contacts: tuple[Contact, ...] | None = None,
    calibration: FtCalibration | None = None,
) -> WrenchEstimator:
    """Return the estimator of the settings, or one with other contacts or another calibration."""
    given = build_estimator(settings, robot)
    return WrenchEstimator(
        robot,
        given.contacts if contacts is None else contacts,
        calibration=given.calibration if calibration is None else calibration,
        length_scale=settings.length_scale,
        rank_tolerance=settings.rank_tolerance,
        acceleration_arrays=given.motion.arrays,
    )
