# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The force at the fixed link against the weight."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from inertial_estimation.logs.figures import CHECK, DRIFT, SupportReport, WrenchReport
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.logs.recording import Mask
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.summaries import UNFIT
from inertial_estimation.model.robot import Robot

NO_GRAVITY = 1e-9
"""Less gravity than this is none [m/s^2]."""


def support_report(
    replay: Replay, judged: Mask, offsets: Offsets, wrenches: Sequence[WrenchReport]
) -> SupportReport | None:
    """
    Compare the force at a contact in the fixed link's frame with the weight.

    judged (n,).
    """
    gravity = float(np.linalg.norm(replay.robot.gravity))
    estimate = replay.clean
    for c, contact in enumerate(estimate.contacts):
        rows = judged & (estimate.contact_quality[:, c] & UNFIT == 0)
        if contact.frame != replay.robot.fixed_frame or gravity < NO_GRAVITY or not rows.any():
            continue
        upward = -estimate.wrenches[rows, c, :3] @ replay.robot.gravity / gravity
        mean, weight = float(upward.mean()), replay.robot.mass * gravity
        return SupportReport(
            meaning=DRIFT if _presumes_weight(replay.robot, offsets) else CHECK,
            contact=contact.name,
            assumed=wrenches[c].assumed,
            n_samples=int(rows.sum()),
            mean_upward_force_n=mean,
            weight_n=weight,
            relative_error=mean / weight - 1.0,
        )
    return None


def _presumes_weight(robot: Robot, offsets: Offsets) -> bool:
    """Tell whether the offsets are such that the submodel of the fixed link carries the robot."""
    if not offsets.support:
        return False
    links = {robot.frame(frame)[0] for frame in (offsets.support, robot.fixed_frame)}
    return any(links <= set(submodel.links) for submodel in robot.submodels)
