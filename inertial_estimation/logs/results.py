# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Write what a replay found as a bag, with the topics and types of the node."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from inertial_estimation.estimation.estimate import result_names
from inertial_estimation.logs.bag import JOINT_STATE, MULTI_DOF_JOINT_STATE, WRENCH, BagWriter
from inertial_estimation.logs.replay import Progress, Replay, no_progress
from inertial_estimation.messages import (
    JointEffortEncoder,
    WrenchEncoder,
    WrenchesEncoder,
    topic_names,
)

NAMESPACE = '/wrench_estimator'
SAMPLES_PER_TICK = 500


def write_results(
    path: str | Path,
    replay: Replay,
    progress: Progress = no_progress,
) -> None:
    """
    Write wrenches, torques, their quality and offsets as a bag.

    Parameters
    ----------
    path : str or Path
        Folder, which must not exist yet.
    replay : Replay
        The estimate is written as the node would have published it; a wrench on a topic of its
        own is left out where it is NaN.
    progress : callable, optional
        Called now and then.

    Raises
    ------
    LogError
        If the folder exists or cannot be made.

    """
    estimate = replay.estimate
    torques = JointEffortEncoder(replay.robot.joint_names)
    quality = JointEffortEncoder(result_names(replay.robot, estimate.contacts))
    wrenches = WrenchesEncoder([contact.frame for contact in estimate.contacts])
    single = [
        (f'{NAMESPACE}/external_wrench/{name}', WrenchEncoder(contact.frame))
        for name, contact in zip(topic_names(c.name for c in estimate.contacts), estimate.contacts)
    ]
    flags = estimate.quality
    stamps = replay.recording.samples.stamp_ns.tolist()
    with BagWriter(path) as writer:
        _write_offsets(writer, replay, stamps[0])
        for k, stamp in enumerate(stamps):
            writer.write(
                f'{NAMESPACE}/external_wrenches',
                MULTI_DOF_JOINT_STATE,
                stamp,
                wrenches.encode(stamp, estimate.wrenches[k]),
            )
            for name, encoder, rows in (
                ('joint_torques', torques, estimate.torques),
                ('external_joint_torques', torques, estimate.external_torques),
                ('quality', quality, flags),
            ):
                data = encoder.encode(stamp, rows[k])
                writer.write(f'{NAMESPACE}/{name}', JOINT_STATE, stamp, data)
            for (topic, single_wrench), wrench in zip(single, estimate.wrenches[k]):
                if np.isfinite(wrench).all():
                    writer.write(topic, WRENCH, stamp, single_wrench.encode(stamp, wrench))
            if k % SAMPLES_PER_TICK == 0:
                progress('writing', k / len(stamps))
    progress('writing', 1.0)


def _write_offsets(writer: BagWriter, replay: Replay, stamp_ns: int) -> None:
    """Write once what was subtracted from each FT sensor."""
    sensors = [sensor.name for sensor in replay.robot.ft_sensors]
    for sensor, name, offset in zip(sensors, topic_names(sensors), replay.calibration.offsets):
        data = WrenchEncoder(sensor).encode(stamp_ns, offset)
        writer.write(f'{NAMESPACE}/ft_offset/{name}', WRENCH, stamp_ns, data)
