# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sets of samples of a log in which the same contacts and sensors take part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import DependenceTable, dependence_table
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike, delivered
from inertial_estimation.estimation.sensor_arrays import ACCELEROMETER, GYROSCOPE
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.log import Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these flags takes no part."""
MEASURES = {ACCELEROMETER: 'accelerometer', GYROSCOPE: 'gyroscope'}


class Parts(NamedTuple):
    """Contacts and sensors that take part."""

    contacts: tuple[Contact, ...]
    """At the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    touched: tuple[str, ...]
    """Frames of contacts of the contacts topic, with their kind."""
    only: tuple[tuple[int, str], ...]
    """IMUs that measure both quantities and deliver one, with that one."""


class Situation(NamedTuple):
    """Samples in which the same takes part."""

    parts: Parts
    rows: Indices
    """Increasing, shape (n,)."""

    def dependence(self, robot: Robot, *, arrays: bool) -> DependenceTable:
        """Return the sensors that torques and wrenches depend on [T Theorem 4.2]."""
        only = dict(self.parts.only)
        if only:
            imus = (replace(i, measures=only.get(k, i.measures)) for k, i in enumerate(robot.imus))
            robot = replace(robot, imus=tuple(imus))
        return dependence_table(
            robot,
            self.parts.contacts,
            imus=None if robot.fixed_frame else self.parts.imus,
            fts=self.parts.fts,
            acceleration_arrays=arrays,
        )


def find_situations(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    estimate: WrenchEstimate,
    touches: Touches | None,
) -> tuple[Situation, ...]:
    """Group the samples of a log: the default contacts and all sensors first, then by number."""
    robot = estimator.robot
    found: dict[Parts, list[Indices]] = {}
    for parts, rows in _parts(estimator, samples, estimate, touches):
        found.setdefault(parts, []).append(rows)
    situations = [Situation(p, np.sort(np.concatenate(rows))) for p, rows in found.items()]

    def place(situation: Situation) -> tuple[bool, int, int]:
        parts = situation.parts
        silent = len(parts.imus) < len(robot.imus) and not robot.fixed_frame
        lost = len(parts.fts) < len(robot.ft_sensors)
        unusual = bool(parts.touched or lost or silent or parts.only)
        return unusual, -len(situation.rows), int(situation.rows[0])

    return tuple(sorted(situations, key=place))


def _parts(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    estimate: WrenchEstimate,
    touches: Touches | None,
) -> Iterator[tuple[Parts, Indices]]:
    """Yield contacts and sensors with the samples in which they take part."""
    out = (estimate.contact_quality & GONE) != 0
    used = estimate.used_imus
    whole = np.array(estimator.motion.bits, dtype=np.intp) == ACCELEROMETER | GYROSCOPE
    bits = delivered(samples, estimator.motion)
    parts = [used & whole & (bits == kind) for kind in MEASURES]
    kinds = [out, used, estimate.used_fts, *parts]
    flags = np.concatenate(kinds, axis=1)
    sizes = np.cumsum([kind.shape[1] for kind in kinds])[:-1]
    columns = {contact.name: k for k, contact in enumerate(estimate.contacts)}
    for felt, rows in _by_touch(touches, len(out)):
        contacts = estimator.with_touches(felt).contacts
        order = [columns[contact.name] for contact in contacts]
        frames = tuple(dict.fromkeys(f'{contact.frame} ({contact.kind})' for contact in felt))
        for pattern, members in alike(flags[rows]):
            gone, imus, fts, *only = np.split(pattern, sizes)
            if not (imus.any() or estimator.robot.fixed_frame):
                continue
            kept = compress(contacts, (~gone[order]).tolist())
            partial = tuple(
                (k, kind)
                for kind, lacking in zip(MEASURES.values(), only, strict=True)
                for k in np.flatnonzero(lacking).tolist()
            )
            taking_part = tuple(contact.at_origin for contact in kept)
            fts_used, imus_used = (tuple(np.flatnonzero(f).tolist()) for f in (fts, imus))
            yield Parts(taking_part, imus_used, fts_used, frames, partial), rows[members]


def _by_touch(touches: Touches | None, n: int) -> Iterator[tuple[Sequence[Contact], Indices]]:
    """Yield contacts of the contacts topic with their samples."""
    if touches is None:
        yield (), np.arange(n)
        return
    for number in np.unique(touches.rows):
        yield touches.sets[number], np.flatnonzero(touches.rows == number)
