# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The result of a replay, and the bag that holds it, with the topics and types of the node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.estimation.contacts import row_names
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate, result_names
from inertial_estimation.findings import Finding
from inertial_estimation.logs.bag import MULTI_DOF_JOINT_STATE, BagWriter
from inertial_estimation.logs.log import Log, Progress, no_progress
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.signals.encoders import (
    JointEffortEncoder,
    WrenchEncoder,
    WrenchesEncoder,
    topic_names,
)
from inertial_estimation.signals.router import JOINT_STATE, WRENCH

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
NAMESPACE = '/wrench_estimator'
SAMPLES_PER_TICK = 500


class Inside(NamedTuple):
    """Wrenches of joints [T 4.23] or links [T 4.9] that were asked for."""

    names: tuple[str, ...]
    frames: tuple[str, ...]
    """In and about which they are."""
    wrenches: Array
    """Shape (n, n_names, 6) [N, Nm]; NaN: unknown."""


class LogDeviations(NamedTuple):
    """Standard deviations at some samples of a log; NaN: unknown."""

    rows: Indices
    """The samples, increasing, shape (m,)."""
    wrenches: Array
    """Shape (m, n_contacts, 6) [N, Nm]."""
    torques: Array
    """Shape (m, n_joints) [Nm or N]."""
    external_torques: Array
    """Shape (m, n_joints) [Nm or N]."""
    residuals: Array
    """Shape (m, n_submodels, 6) [N, Nm]."""
    lack: str = ''
    """Why they are unknown where the estimate is known."""


@dataclass(frozen=True, eq=False)
class Replay:
    """
    Estimates of all samples of a log.

    Attributes
    ----------
    robot : Robot
        Its joints, sensors and submodels give the order of the rows.
    settings : EstimatorSettings
        Those of the node.
    recording : Log
        The samples that were estimated.
    estimate : WrenchEstimate
        Arrays with one leading axis for the samples, as the node computes them.
    clean : WrenchEstimate
        The same without the readings of frozen intervals, which are known in hindsight.
    offsets : Offsets
        FT calibration that was used, and its origin.
    judged : ndarray of bool, shape (n,)
        Samples that the offsets were not computed from.
    deviations : LogDeviations, optional
        Standard deviations at some of the samples.
    through : Inside, optional
        Wrenches through joints, parent link on child link.
    net : Inside, optional
        Net wrenches of links.
    summary : mapping
        Figures of streams, offsets, wrenches and torques, as written by ``--json``.
    findings : tuple of Finding
        What is not as it should be.

    """

    robot: Robot
    settings: EstimatorSettings
    recording: Log
    estimate: WrenchEstimate
    clean: WrenchEstimate
    offsets: Offsets
    judged: NDArray[np.bool_]
    deviations: LogDeviations | None = None
    through: Inside | None = None
    net: Inside | None = None
    summary: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def calibration(self) -> FtCalibration:
        """Calibration of the FT sensors that was used."""
        return self.offsets.calibration

    @property
    def times(self) -> Array:
        """Times of the samples after the first FT message, shape (n,) [s]."""
        return self.recording.times

    @property
    def wrenches(self) -> Array:
        """External wrenches at the contacts, (n, n_contacts, 6) [N, Nm]; NaN: not estimated."""
        return self.estimate.wrenches

    @property
    def torques(self) -> Array:
        """Joint torques, shape (n, n_joints) [Nm or N]; NaN: not estimated."""
        return self.estimate.torques

    def save(self, path: str | Path, progress: Progress = no_progress) -> None:
        """
        Write wrenches, torques, quality, standard deviations and offsets as a new bag.

        Parameters
        ----------
        path : str or Path
            Folder of the bag, which must not exist.
        progress : callable, optional
            Called with the stage and its share that is done.

        Raises
        ------
        LogError
            If the folder exists or cannot be written.

        """
        if Path(path).exists():
            raise LogError(f"'{path}' exists already")
        _write(Path(path), self, progress)


def _write(path: Path, replay: Replay, progress: Progress) -> None:
    """Write a bag."""
    estimate = replay.estimate
    torques = JointEffortEncoder(replay.robot.joint_names, frame_id=replay.robot.links[0].name)
    external = _external_encoder(replay)
    layouts = _layouts(replay)
    single = [*_single_wrenches(replay), *_residuals(replay), *_inner_wrenches(replay)]
    stamps = replay.recording.samples.stamp_ns.tolist()
    deviations = _DeviationsTopics(replay)
    with BagWriter(path) as writer:
        _write_offsets(writer, replay, stamps[0])
        for k, (stamp, layout) in enumerate(zip(stamps, layouts, strict=True)):
            wrenches = layout.wrenches.encode(stamp, estimate.wrenches[k, layout.contacts])
            writer.write(f'{NAMESPACE}/external_wrenches', MULTI_DOF_JOINT_STATE, stamp, wrenches)
            for topic, encoder, rows in (
                ('joint_torques', torques, estimate.torques[k]),
                ('external_joint_torques', external, estimate.external_torques[k]),
                ('quality', layout.quality, estimate.quality[k, layout.results]),
            ):
                data = encoder.encode(stamp, rows)
                writer.write(f'{NAMESPACE}/{topic}', JOINT_STATE, stamp, data)
            for topic, wrench_encoder, rows in single:
                if np.isfinite(rows[k]).all():
                    writer.write(topic, WRENCH, stamp, wrench_encoder.encode(stamp, rows[k]))
            deviations.write(writer, k, stamp, layout)
            if k % SAMPLES_PER_TICK == 0:
                progress('writing', k / len(stamps))
    progress('writing', 1.0)


def _single_wrenches(replay: Replay) -> list[tuple[str, WrenchEncoder, Array]]:
    """Return topic, encoder and wrenches of each default contact."""
    estimate = replay.estimate
    defaults = estimate.contacts[: len(replay.settings.contacts)]
    names = topic_names(contact.name for contact in defaults)
    return [
        (f'{NAMESPACE}/external_wrench/{name}', WrenchEncoder(contact.frame), rows)
        for name, contact, rows in zip(names, defaults, np.moveaxis(estimate.wrenches, 1, 0))
    ]


def _residuals(replay: Replay) -> Iterator[tuple[str, WrenchEncoder, Array]]:
    """Yield topic, encoder and residuals of each submodel."""
    names = [submodel.name for submodel in replay.robot.submodels]
    yield from _topics('residual', names, names, replay.estimate.residuals)


def _inner_wrenches(replay: Replay) -> Iterator[tuple[str, WrenchEncoder, Array]]:
    """Yield topic, encoder and wrenches of each joint and link that was asked for."""
    for topic, found in (('internal_wrench', replay.through), ('net_wrench', replay.net)):
        if found is not None:
            yield from _topics(topic, found.names, found.frames, found.wrenches)


def _topics(
    topic: str, names: Sequence[str], frames: Sequence[str], wrenches: Array
) -> Iterator[tuple[str, WrenchEncoder, Array]]:
    """Yield topic, encoder and wrenches of each name, from wrenches (n, n_names, 6)."""
    for name, frame, rows in zip(topic_names(names), frames, np.moveaxis(wrenches, 1, 0)):
        yield f'{NAMESPACE}/{topic}/{name}', WrenchEncoder(frame), rows


def _external_encoder(replay: Replay) -> JointEffortEncoder:
    """Return the encoder of external torques, which are about the frame that is at rest."""
    robot = replay.robot
    return JointEffortEncoder(robot.joint_names, frame_id=robot.base_frame)


class _Layout(NamedTuple):
    """The messages that name contacts, for the contacts of an instant."""

    contacts: Indices
    """Columns of the contacts that are there."""
    results: Indices
    """Entries of the quality that are then told."""
    wrenches: WrenchesEncoder
    quality: JointEffortEncoder


def _layouts(replay: Replay) -> list[_Layout]:
    """Return the layout of each sample: touches come and go."""
    estimate = replay.estimate
    there = (estimate.contact_quality & np.uint8(Quality.ABSENT)) == 0
    patterns, numbers = np.unique(there, axis=0, return_inverse=True)
    kinds = [_layout(replay, pattern) for pattern in patterns]
    return [kinds[number] for number in numbers.reshape(-1).tolist()]


def _layout(replay: Replay, there: NDArray[np.bool_]) -> _Layout:
    """Return the layout for the contacts that are there."""
    estimate = replay.estimate
    contacts = [c for c, is_there in zip(estimate.contacts, there) if is_there]
    results = np.ones(estimate.quality.shape[1], dtype=bool)
    results[: len(there)] = there
    return _Layout(
        np.flatnonzero(there),
        np.flatnonzero(results),
        WrenchesEncoder(row_names(contacts)),
        JointEffortEncoder(result_names(replay.robot, contacts)),
    )


class _DeviationsTopics:
    """The standard deviations, at the samples for which there are some."""

    def __init__(self, replay: Replay) -> None:
        self._found = found = replay.deviations
        rows = () if found is None else found.rows.tolist()
        self._instants = {row: k for k, row in enumerate(rows)}
        self._torques = JointEffortEncoder(replay.robot.joint_names)
        self._external = _external_encoder(replay)
        self._residuals = WrenchesEncoder([submodel.name for submodel in replay.robot.submodels])

    def write(self, writer: BagWriter, row: int, stamp_ns: int, layout: _Layout) -> None:
        """Write those of a sample, if there are some."""
        found, k = self._found, self._instants.get(row)
        if found is None or k is None:
            return
        for topic, kind, encoder, values in (
            (
                'external_wrench_deviations', MULTI_DOF_JOINT_STATE, layout.wrenches,
                found.wrenches[k, layout.contacts],
            ),
            ('joint_torque_deviations', JOINT_STATE, self._torques, found.torques[k]),
            (
                'external_joint_torque_deviations', JOINT_STATE, self._external,
                found.external_torques[k],
            ),
            (
                'residual_deviations', MULTI_DOF_JOINT_STATE, self._residuals,
                found.residuals[k],
            ),
        ):  # fmt: skip
            data = encoder.encode(stamp_ns, values)
            writer.write(f'{NAMESPACE}/{topic}', kind, stamp_ns, data)


def _write_offsets(writer: BagWriter, replay: Replay, stamp_ns: int) -> None:
    """Write once what was subtracted from each FT sensor."""
    sensors = [sensor.name for sensor in replay.robot.ft_sensors]
    for sensor, name, offset in zip(sensors, topic_names(sensors), replay.calibration.offsets):
        data = WrenchEncoder(sensor).encode(stamp_ns, offset)
        writer.write(f'{NAMESPACE}/ft_offset/{name}', WRENCH, stamp_ns, data)
