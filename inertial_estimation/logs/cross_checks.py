# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Everything a replay says about itself: motion, momentum, dependence, sensors, inner wrenches."""

from __future__ import annotations

from inertial_estimation.logs.attitude_checks import attitude_reports
from inertial_estimation.logs.check_figures import CrossChecks
from inertial_estimation.logs.groundwork import situation_reports
from inertial_estimation.logs.momentum import momentum_figures
from inertial_estimation.logs.motions import motion_reports
from inertial_estimation.logs.recording import Mask
from inertial_estimation.logs.replay import Replay, make_estimator
from inertial_estimation.logs.sensor_checks import residual_reports
from inertial_estimation.logs.situations import find_situations
from inertial_estimation.logs.through import net_reports, through_reports


def cross_checks(replay: Replay, judged: Mask) -> CrossChecks:
    """
    Look at an estimate from other sides.

    judged (n,).
    """
    estimator = make_estimator(replay.robot, replay.settings, calibration=replay.calibration)
    touches, samples = replay.recording.touches, replay.recording.samples
    situations = find_situations(estimator, samples, replay.clean, touches)
    reports = situation_reports(replay, situations)
    residuals, n_instants = residual_reports(replay, situations, judged)
    live = find_situations(estimator, samples, replay.estimate, touches) if replay.through else ()
    return CrossChecks(
        momentum=momentum_figures(replay),
        motions=motion_reports(replay.settings, estimator),
        situations=reports,
        situations_left_out=len(situations) - len(reports),
        sensor_residuals=(*residuals, *attitude_reports(replay, judged)),
        residual_instants=n_instants,
        through=through_reports(replay, live),
        net=net_reports(replay),
    )
