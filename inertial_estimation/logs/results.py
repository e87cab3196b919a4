# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The result of a replay, and the bag that holds it, with the topics and types of the node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding
from inertial_estimation.logs.bag import BagWriter
from inertial_estimation.logs.log import Log, Progress, Touches, no_progress
from inertial_estimation.logs.offsets import Offsets
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.outputs.encoders import encoders
from inertial_estimation.outputs.topics import OUTPUTS, Layout, Pace, Results, messages
from inertial_estimation.uncertainty.deviations import Deviations

NAMESPACE = '/wrench_estimator'
SAMPLES_PER_TICK = 500


class Inside(NamedTuple):
    """Wrenches of joints [T 4.23] or links [T 4.9] that the settings name."""

    names: tuple[str, ...]
    frames: tuple[str, ...]
    """In and about which they are."""
    wrenches: Array
    """Shape (n, n_names, 6) [N, Nm]; NaN: unknown."""


class LogDeviations(NamedTuple):
    """Standard deviations at some samples of a log; torques (m, n_joints); NaN: unknown."""

    rows: Indices
    """The samples, increasing, shape (m,)."""
    wrenches: Array
    """Shape (m, n_contacts, 6) [N, Nm]."""
    torques: Array
    external_torques: Array
    residuals: Array
    """Shape (m, n_submodels, 6) [N, Nm]."""
    lack: str = ''
    """Reason that they are unknown where the estimate is known."""


@dataclass(frozen=True, eq=False)
class Replay:
    """
    Estimates of all samples of a log.

    Attributes
    ----------
    estimator : WrenchEstimator
        Its robot's joints, sensors and submodels give the order of the rows.
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

    estimator: WrenchEstimator
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
    def robot(self) -> Robot:
        """Robot of the estimator."""
        return self.estimator.robot

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
    """Write a bag: the outputs of the node at every sample, single wrenches where known."""
    estimate, through, net = replay.estimate, replay.through, replay.net
    layout = Layout(
        replay.robot,
        estimate.contacts[: len(replay.settings.contacts)],
        () if through is None else tuple(zip(through.names, through.frames)),
        () if net is None else net.names,
    )
    surfaces = layout.surfaces
    fixed = {one.topic: encoders(one, layout) for one in OUTPUTS if not one.names_contacts}
    # Touches come and go, and may take the row of a default contact.
    touches = replay.recording.touches or Touches.of([()] * len(replay.times))
    contacts = {number: replay.estimator.with_touches(touches.sets[number]).contacts
                for number in np.unique(touches.rows).tolist()}  # fmt: skip
    columns = {contact.name: column for column, contact in enumerate(estimate.contacts)}

    @cache
    def named(names: tuple[str, ...]) -> dict[str, Any]:
        present = tuple(estimate.contacts[columns[name]] for name in names)
        return {
            one.topic: encoders(one, layout._replace(contacts=present))
            for one in OUTPUTS
            if one.names_contacts
        }

    stamps = replay.recording.samples.stamp_ns.tolist()
    deviations = replay.deviations
    rows = {} if deviations is None else {row: m for m, row in enumerate(deviations.rows.tolist())}
    with BagWriter(path) as writer:
        for k, (stamp, number) in enumerate(zip(stamps, touches.rows.tolist())):
            names = tuple(contact.name for contact in contacts[number])
            there = [columns[name] for name in names]
            results = _results(replay, k, rows.get(k), contacts[number], there)
            results = results._replace(surfaces=surfaces)
            topics = fixed | named(names)
            for output in OUTPUTS:
                if output.pace is Pace.CHANGE and k:
                    continue
                if output.pace is Pace.DEVIATIONS and results.deviations is None:
                    continue
                own = topics[output.topic]
                for row, values in messages(output, results, range(len(own))):
                    topic, encode = own[row]
                    writer.write(f'{NAMESPACE}/{topic}', output.type, stamp, encode(stamp, values))
            if k % SAMPLES_PER_TICK == 0:
                progress('writing', k / len(stamps))
    progress('writing', 1.0)


def _results(
    replay: Replay, k: int, m: int | None, contacts: tuple[Contact, ...], there: list[int]
) -> Results:
    """Return the results of sample k, and deviations m, with the contacts that are there."""
    batch, found = replay.estimate, replay.deviations
    estimate = batch.at(k)._replace(
        contacts=contacts,
        wrenches=batch.wrenches[k, there],
        contact_quality=batch.contact_quality[k, there],
        limits=batch.limits[k, there],
    )
    deviations = None
    if found is not None and m is not None:
        deviations = Deviations(
            int(estimate.stamp_ns), contacts, found.wrenches[m, there], found.torques[m],
            found.external_torques[m], found.residuals[m],
        )  # fmt: skip
    through, net = (
        None if one is None else one.wrenches[k] for one in (replay.through, replay.net)
    )
    offsets, sample = replay.calibration.offsets, replay.recording.samples[k]
    return Results(estimate, deviations, through, net, offsets, sample, replay.robot)
