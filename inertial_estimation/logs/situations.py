# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Which contacts and sensors took part in which samples of a log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.bodies import ACCELEROMETER, GYROSCOPE
from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike, delivered
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.touches import Touches
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these takes no part."""


MEASURES = {ACCELEROMETER: 'accelerometer', GYROSCOPE: 'gyroscope'}
"""As an IMU's own ``measures``."""
USUAL = 'default contacts, all sensors'


class Parts(NamedTuple):
    """What takes part; points do not matter here."""

    contacts: tuple[Contact, ...]
    """Moved to the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    touched: tuple[str, ...]
    """Frames that are felt, each with what is unknown there."""
    only: tuple[tuple[int, str], ...]
    """What IMUs measure that leave a quantity out though they measure both."""


@dataclass(frozen=True, eq=False)
class Situation:
    """Samples in which the same takes part."""

    parts: Parts
    rows: Indices
    """Which they are, increasing."""

    def label(self, robot: Robot) -> str:
        """Say what differs from all sensors and the default contacts."""
        lost = [s.name for k, s in enumerate(robot.ft_sensors) if k not in self.parts.fts]
        silent = [s.name for k, s in enumerate(robot.imus) if k not in self.parts.imus]
        said = [f'touched: {", ".join(self.parts.touched)}'] if self.parts.touched else []
        said += [f'without FT {", ".join(lost)}'] if lost else []
        if silent and not robot.fixed_frame:
            said.append(f'without IMU {", ".join(silent)}')
        said += [f'only {what} of IMU {robot.imus[k].name}' for k, what in self.parts.only]
        return '; '.join(said) or USUAL


def find_situations(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    estimate: WrenchEstimate,
    touches: Touches | None,
) -> tuple[Situation, ...]:
    """Sort the samples of a log by what takes part."""
    found: dict[Parts, list[Indices]] = {}
    for parts, rows in _parts(estimator, samples, estimate, touches):
        found.setdefault(parts, []).append(rows)
    situations = [Situation(p, np.sort(np.concatenate(rows))) for p, rows in found.items()]
    robot = estimator.robot

    def place(situation: Situation) -> tuple[bool, int, int]:
        unusual = situation.label(robot) != USUAL
        return unusual, -len(situation.rows), int(situation.rows[0])

    return tuple(sorted(situations, key=place))


def _parts(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    estimate: WrenchEstimate,
    touches: Touches | None,
) -> Iterator[tuple[Parts, Indices]]:
    """Yield what takes part in some samples."""
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
                for k in _where(lacking)
            )
            taking_part = tuple(contact.at_origin for contact in kept)
            found = Parts(taking_part, _where(imus), _where(fts), frames, partial)
            yield found, rows[members]


def _by_touch(touches: Touches | None, n: int) -> Iterator[tuple[Sequence[Contact], Indices]]:
    """Yield what was felt in which samples."""
    if touches is None:
        yield (), np.arange(n)
        return
    for number in np.unique(touches.rows):
        yield touches.sets[number], np.flatnonzero(touches.rows == number)


def _where(flags: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(flags).tolist())
