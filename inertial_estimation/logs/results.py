# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The result of a replay, and the bag that holds it, with the topics and types of the node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Indices
from inertial_estimation.config import EstimatorSettings
from inertial_estimation.errors import LogError
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
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
    """Estimates of all samples of a log."""

    estimator: WrenchEstimator
    """Its robot's joints, sensors and submodels give the order of the rows."""
    settings: EstimatorSettings
    """Those of the node."""
    recording: Log
    """The samples that were estimated."""
    estimate: WrenchEstimate
    """Arrays with one leading axis for the samples, as the node computes them."""
    clean: WrenchEstimate
    """The same without the readings of frozen intervals, which are known in hindsight."""
    offsets: Offsets
    """FT calibration that was used, and its origin."""
    judged: NDArray[np.bool_]
    """Samples that the offsets were not computed from; all if there is none, shape (n,)."""
    deviations: LogDeviations | None = None
    """Standard deviations at some of the samples."""
    through: Inside | None = None
    """Wrenches through joints, parent link on child link."""
    net: Inside | None = None
    """Net wrenches of links."""
    summary: Mapping[str, Any] = field(default_factory=dict)
    """Figures of streams, offsets, wrenches and torques, as written by ``--json``."""
    findings: tuple[Finding, ...] = ()
    """Faults and doubts."""

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
        with ResultBag(path) as bag:
            bag.add(self, progress)

    def take(self, rows: Indices) -> Replay:
        """Return the estimates of some samples alone."""
        estimate = self.estimate.at(rows)
        return replace(
            self, recording=self.recording.take(rows), estimate=estimate,
            clean=estimate if self.clean is self.estimate else self.clean.at(rows),
            judged=self.judged[rows], deviations=None, through=None, net=None,
        )  # fmt: skip

    @classmethod
    def joined(cls, parts: Sequence[Replay]) -> Replay:
        """Return the estimates of parts of a log together."""
        first = parts[0]
        estimate, clean = (
            joined_estimates(first.estimator, [getattr(one, name) for one in parts])
            for name in ('estimate', 'clean')
        )
        recording = Log.joined([one.recording for one in parts])
        judged = np.concatenate([one.judged for one in parts])
        return replace(first, recording=recording, estimate=estimate, clean=clean, judged=judged)


ARRAYS = tuple(name for name in WrenchEstimate._fields if name != 'contacts')


def joined_estimates(
    estimator: WrenchEstimator, parts: Sequence[WrenchEstimate], order: Any = slice(None)
) -> WrenchEstimate:
    """Return parts with different contacts as one table, in which contacts come and go."""
    columns = {contact.name: contact for contact in estimator.contacts}
    for part in parts:
        for contact in part.contacts:
            columns.setdefault(contact.name, contact.at_origin)
    places, n = list(columns), sum(len(part.torques) for part in parts)
    wrenches = np.full((n, len(columns), 6), np.nan)
    quality = np.full((n, len(columns)), Quality.ABSENT, dtype=np.uint8)
    limits = np.zeros_like(quality)
    start = 0
    for part in parts:
        rows = slice(start, start := start + len(part.torques))
        taken = [places.index(contact.name) for contact in part.contacts]
        wrenches[rows, taken] = part.wrenches
        quality[rows, taken], limits[rows, taken] = part.contact_quality, part.limits
    joined: dict[str, Any] = {
        name: np.concatenate([getattr(part, name) for part in parts])[order]
        for name in ARRAYS
        if name not in ('wrenches', 'contact_quality', 'limits')
    }
    return WrenchEstimate(
        contacts=tuple(columns.values()), wrenches=wrenches[order],
        contact_quality=quality[order], limits=limits[order], **joined,
    )  # fmt: skip


class ResultBag(AbstractContextManager['ResultBag']):
    """A new bag with the outputs of the node at every sample, single wrenches where known."""

    def __init__(self, path: str | Path) -> None:
        self._path, self._n_samples = Path(path), 0
        if self._path.exists():
            raise LogError(f"'{path}' exists already")
        self._bag = BagWriter(self._path)

    def __exit__(self, kind: object, *error: object) -> None:
        """Finish the bag; of an error nothing stays."""
        try:
            self._bag.__exit__()
        finally:
            if kind is not None:
                rmtree(self._path)

    def add(self, replay: Replay, progress: Progress = no_progress) -> None:
        """Write the results of a piece."""
        estimate, through, net = replay.estimate, replay.through, replay.net
        layout = Layout(
            replay.robot, estimate.contacts[: len(replay.settings.contacts)],
            () if through is None else tuple(zip(through.names, through.frames)),
            () if net is None else net.names,
        )  # fmt: skip
        surfaces = layout.surfaces
        fixed = {one.topic: encoders(one, layout) for one in OUTPUTS if not one.names_contacts}
        # Touches come and go, and may take the row of a default contact.
        touches = replay.recording.touches or Touches.of([()] * len(replay.times))
        columns = {contact.name: column for column, contact in enumerate(estimate.contacts)}

        @cache
        def topics_of(there: tuple[int, ...]) -> dict[str, Any]:
            own = layout._replace(contacts=tuple(estimate.contacts[c] for c in there))
            return fixed | {one.topic: encoders(one, own) for one in OUTPUTS if one.names_contacts}

        @cache
        def present(number: int) -> tuple[tuple[Contact, ...], tuple[int, ...]]:
            contacts = replay.estimator.with_touches(touches.sets[number]).contacts
            return contacts, tuple(columns[contact.name] for contact in contacts)

        stamps = replay.recording.samples.stamp_ns.tolist()
        deviations = replay.deviations
        known = [] if deviations is None else deviations.rows.tolist()
        rows = {row: m for m, row in enumerate(known)}
        for k, (stamp, number) in enumerate(zip(stamps, touches.rows.tolist())):
            results = _results(replay, k, rows.get(k), *present(number))
            results, topics = results._replace(surfaces=surfaces), topics_of(present(number)[1])
            for output in OUTPUTS:
                if output.pace is Pace.CHANGE and self._n_samples:
                    continue
                if output.pace is Pace.DEVIATIONS and results.deviations is None:
                    continue
                own = topics[output.topic]
                for row, values in messages(output, results, range(len(own))):
                    topic, encode = own[row]
                    data = encode(stamp, values)
                    self._bag.write(f'{NAMESPACE}/{topic}', output.type, stamp, data)
            self._n_samples += 1
            if k % SAMPLES_PER_TICK == 0:
                progress('writing', k / len(stamps))
        progress('writing', 1.0)


def _results(
    replay: Replay, k: int, m: int | None, contacts: tuple[Contact, ...], there: tuple[int, ...]
) -> Results:
    """Return the results of sample k, and deviations m, with the contacts that are there."""
    batch, found, columns = replay.estimate, replay.deviations, list(there)
    estimate = batch.at(k)._replace(
        contacts=contacts,
        wrenches=batch.wrenches[k, columns],
        contact_quality=batch.contact_quality[k, columns],
        limits=batch.limits[k, columns],
    )
    deviations = None
    if found is not None and m is not None:
        deviations = Deviations(
            int(estimate.stamp_ns), contacts, found.wrenches[m, columns], found.torques[m],
            found.external_torques[m], found.residuals[m],
        )  # fmt: skip
    through, net = (
        None if one is None else one.wrenches[k] for one in (replay.through, replay.net)
    )
    offsets, sample = replay.calibration.offsets, replay.recording.samples[k]
    return Results(estimate, deviations, through, net, offsets, sample, replay.robot)
