# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Where a replay has its velocities and accelerations from, and which it neglects."""

from __future__ import annotations

from collections.abc import Iterator

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.body_report import joint_motion_text, report_bodies
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.check_figures import MotionReport

STILL = 'at rest'


def motion_reports(
    settings: EstimatorSettings, estimator: WrenchEstimator
) -> tuple[MotionReport, ...]:
    """Say where motions come from, as the node does."""
    return (*_of_links(settings, estimator), *_of_joints(settings, estimator))


def _of_links(settings: EstimatorSettings, estimator: WrenchEstimator) -> Iterator[MotionReport]:
    robot = estimator.robot
    if robot.fixed_frame:
        yield MotionReport('link', (robot.fixed_frame,), STILL)
        return
    groups: dict[str, list[str]] = {}
    plan, source = estimator.motion.nominal, settings.angular_acceleration_source
    for body in report_bodies(robot, plan, source):
        groups.setdefault(body.text, []).append(body.link)
    for text, links in groups.items():
        yield MotionReport('links', tuple(links), text)


def _of_joints(settings: EstimatorSettings, estimator: WrenchEstimator) -> Iterator[MotionReport]:
    assumed = set(settings.assumed_joints)
    names = estimator.robot.joint_names
    reported = tuple(name for name in names if name not in assumed)
    if reported:
        text = joint_motion_text(settings.velocity_source, settings.acceleration_source)
        yield MotionReport('joints', reported, text)
    if assumed:
        yield MotionReport('assumed joints', tuple(n for n in names if n in assumed), STILL)
