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

from inertial_estimation.estimation.contacts import Contact
from inertial_estimation.estimation.estimate import Quality, WrenchEstimate
from inertial_estimation.estimation.faults import alike
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.touches import Touches
from inertial_estimation.model.robot import Robot

Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]

GONE = np.uint8(Quality.DROPPED | Quality.ABSENT)
"""A contact with one of these takes no part."""


USUAL = 'default contacts, all sensors'


class Parts(NamedTuple):
    """What takes part; points do not matter here."""

    contacts: tuple[Contact, ...]
    """Moved to the origins of their frames."""
    imus: tuple[int, ...]
    fts: tuple[int, ...]
    touched: tuple[str, ...]
    """Frames that are felt."""


@dataclass(frozen=True, eq=False)
class Situation:
    """Samples in which the same takes part."""

    parts: Parts
    rows: Indices
    """Which they are, increasing."""

    def label(self, robot: Robot) -> str:
        """
        Say what differs from all sensors and the default contacts.

        Parameters
        ----------
        robot : Robot
            Its sensors.

        Returns
        -------
        str

        """
        lost = [s.name for k, s in enumerate(robot.ft_sensors) if k not in self.parts.fts]
        silent = [s.name for k, s in enumerate(robot.imus) if k not in self.parts.imus]
        said = [f'touched: {", ".join(self.parts.touched)}'] if self.parts.touched else []
        said += [f'without FT {", ".join(lost)}'] if lost else []
        if silent and not robot.fixed_frame:
            said.append(f'without IMU {", ".join(silent)}')
        return '; '.join(said) or USUAL


def find_situations(
    estimator: WrenchEstimator, estimate: WrenchEstimate, touches: Touches | None
) -> tuple[Situation, ...]:
    """
    Sort the samples of a log by what takes part.

    Parameters
    ----------
    estimator : WrenchEstimator
        With the default contacts.
    estimate : WrenchEstimate
        From `estimate_log`.
    touches : Touches or None
        What was felt.

    Returns
    -------
    tuple of Situation
        All sensors with the default contacts first, if they ever take part together, then the most
        frequent. Samples in which nothing tells how the robot moves are in none.

    """
    found: dict[Parts, list[Indices]] = {}
    for parts, rows in _parts(estimator, estimate, touches):
        found.setdefault(parts, []).append(rows)
    situations = [Situation(p, np.sort(np.concatenate(rows))) for p, rows in found.items()]
    robot = estimator.robot

    def place(situation: Situation) -> tuple[bool, int, int]:
        unusual = situation.label(robot) != USUAL
        return unusual, -len(situation.rows), int(situation.rows[0])

    return tuple(sorted(situations, key=place))


def _parts(
    estimator: WrenchEstimator, estimate: WrenchEstimate, touches: Touches | None
) -> Iterator[tuple[Parts, Indices]]:
    """Yield what takes part in some samples."""
    out = (estimate.contact_quality & GONE) != 0
    flags = np.concatenate([out, estimate.used_imus, estimate.used_fts], axis=1)
    sizes = np.cumsum([out.shape[1], estimate.used_imus.shape[1]])
    columns = {contact.name: k for k, contact in enumerate(estimate.contacts)}
    for felt, rows in _by_touch(touches, len(out)):
        contacts = estimator.with_touches(felt).contacts
        order = [columns[contact.name] for contact in contacts]
        frames = tuple(dict.fromkeys(contact.frame for contact in felt))
        for pattern, members in alike(flags[rows]):
            gone, imus, fts = np.split(pattern, sizes)
            if not (imus.any() or estimator.robot.fixed_frame):
                continue
            kept = compress(contacts, (~gone[order]).tolist())
            yield (
                Parts(tuple(c.at_origin for c in kept), _where(imus), _where(fts), frames),
                rows[members],
            )


def _by_touch(touches: Touches | None, n: int) -> Iterator[tuple[Sequence[Contact], Indices]]:
    """Yield what was felt in which samples."""
    if touches is None:
        yield (), np.arange(n)
        return
    for number in np.unique(touches.rows):
        yield touches.sets[number], np.flatnonzero(touches.rows == number)


def _where(flags: Mask) -> tuple[int, ...]:
    return tuple(np.flatnonzero(flags).tolist())
