# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Sets of samples of a log in which the same contacts and sensors take part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Indices
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.dependence import DependenceTable, dependence_table
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike, delivered
from inertial_estimation.estimation.sensor_arrays import ACCELEROMETER, GYROSCOPE
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.log import Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these flags takes no part."""
MEASURES = {ACCELEROMETER: 'accelerometer', GYROSCOPE: 'gyroscope'}


class Situation(NamedTuple):
    """Samples in which the same contacts and sensors take part."""

    contacts: tuple[Contact, ...]
    """At the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    touched: tuple[str, ...]
    """Frames of contacts of the contacts topic, with their kind."""
    only: tuple[tuple[int, str], ...]
    """IMUs that measure both quantities and deliver one, with that one."""
    rows: Indices
    """Increasing, shape (n,)."""

    def dependence(self, robot: Robot, *, arrays: bool) -> DependenceTable:
        """Return the sensors that torques and wrenches depend on [T Theorem 4.2]."""
        if only := dict(self.only):
            imus = (replace(i, measures=only.get(k, i.measures)) for k, i in enumerate(robot.imus))
            robot = replace(robot, imus=tuple(imus))
        return dependence_table(
            robot,
            self.contacts,
            imus=None if robot.fixed_frame else self.imus,
            fts=self.fts,
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
    found: dict[tuple[Any, ...], list[Indices]] = {}
    for *parts, rows in _parts(estimator, samples, estimate, touches):
        found.setdefault(tuple(parts), []).append(rows)

    def place(one: Situation) -> tuple[bool, int, int]:
        absent = len(one.imus) < len(robot.imus) and not robot.fixed_frame
        lost = len(one.fts) < len(robot.ft_sensors)
        return bool(one.touched or lost or absent or one.only), -len(one.rows), int(one.rows[0])

    groups = (Situation._make((*p, np.sort(np.concatenate(r)))) for p, r in found.items())
    return tuple(sorted(groups, key=place))


def _parts(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    estimate: WrenchEstimate,
    touches: Touches | None,
) -> Iterator[Situation]:
    """Yield contacts and sensors with samples in which they take part, not all of them."""
    out = (estimate.contact_quality & GONE) != 0
    used = estimate.used_imus
    whole = np.array(estimator.motion.bits, dtype=np.intp) == ACCELEROMETER | GYROSCOPE
    bits = delivered(samples, estimator.motion)
    kinds = [out, used, estimate.used_fts, *(used & whole & (bits == kind) for kind in MEASURES)]
    columns = {contact.name: k for k, contact in enumerate(estimate.contacts)}
    sets = ((),) if touches is None else touches.sets
    of_sample = np.zeros(len(out), dtype=int) if touches is None else touches.rows
    for number in np.unique(of_sample):
        rows, touched = np.flatnonzero(of_sample == number), sets[number]
        contacts = estimator.with_touches(touched).contacts
        order = [columns[contact.name] for contact in contacts]
        frames = tuple(dict.fromkeys(f'{contact.frame} ({contact.kind})' for contact in touched))
        for (gone, imus, fts, *only), members in alike(*(kind[rows] for kind in kinds)):
            if imus.any() or estimator.robot.fixed_frame:
                partial = tuple(
                    (k, kind)
                    for kind, lacking in zip(MEASURES.values(), only, strict=True)
                    for k in np.flatnonzero(lacking).tolist()
                )
                kept = compress(contacts, (~gone[order]).tolist())
                fts_used, imus_used = (tuple(np.flatnonzero(f).tolist()) for f in (fts, imus))
                yield Situation(
                    tuple(contact.at_origin for contact in kept), imus_used, fts_used, frames,
                    partial, rows[members],
                )  # fmt: skip
