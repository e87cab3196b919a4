# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors that are subtracted: they come with bodies, and drift.

Of a robot that stands still a push looks like an offset that has moved, and rows follow it at
once. Who subtracts that never sees the push. So what is subtracted changes for two reasons only:
with bodies, by what these change of the offsets that fit the same rows; and with what is left, no
faster than sensors drift. What is found to have jumped by motion is known anew, as at first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LONGEST = 10.0
"""Time between two refits that counts [s]: nobody looked in between."""


@dataclass
class FollowedOffsets:
    """What is subtracted, by the names of the columns of offsets."""

    force_drift: float
    """How fast a force is followed [N/s]."""
    moment_drift: float
    """How fast a moment is [Nm/s]."""
    values: dict[str, float] = field(default_factory=dict)
    """Those that were ever told [N, Nm]."""

    def proposed(
        self,
        found: Mapping[str, float],
        before: Mapping[str, float],
        told: Iterable[str],
        seconds: float,
    ) -> dict[str, float]:
        """
        Return what would be subtracted beside other bodies.

        Parameters
        ----------
        found : mapping of str to float
            Offsets that fit all rows beside the new bodies [N, Nm].
        before : mapping of str to float
            Likewise beside the bodies so far.
        told : iterable of str
            Those that rows tell. Others come with bodies alone, if they were told once.
        seconds : float
            Since it was asked for last [s].

        Returns
        -------
        dict of str to float
            Of all offsets that are told or ever were.

        """
        told = set(told)
        proposed = {name: value for name, value in found.items() if name in told}
        for names in _wrenches(name for name in found if name in self.values):
            old = np.array([self.values[name] for name in names])
            gap = np.array(
                [before[name] - self.values[name] if name in told else 0.0 for name in names]
            )
            with_bodies = np.array([found[name] - before[name] for name in names])
            kind = names[0].rpartition('.')[2]
            speed = self.force_drift if kind.startswith('force') else self.moment_drift
            far, longest = float(np.linalg.norm(gap)), speed * min(max(seconds, 0.0), LONGEST)
            share = min(1.0, longest / far) if far else 1.0
            new = old + with_bodies + share * gap
            proposed |= dict(zip(names, new.tolist(), strict=True))
        return proposed

    def take(self, values: Mapping[str, float]) -> None:
        """
        Go on with what was proposed.

        Parameters
        ----------
        values : mapping of str to float
            From `proposed`.

        """
        self.values |= values

    def forget(self, names: Iterable[str]) -> None:
        """
        Take what is told next for what is subtracted.

        Parameters
        ----------
        names : iterable of str
            Of offsets that have changed in a way that motion has told.

        """
        for name in names:
            self.values.pop(name, None)

    def shift(self, change: Mapping[str, float]) -> None:
        """
        Go on as if more had been subtracted from all readings.

        Parameters
        ----------
        change : mapping of str to float
            How much more [N, Nm].

        """
        for name, more in change.items():
            if name in self.values:
                self.values[name] -= more


def _wrenches(names: Iterable[str]) -> list[list[str]]:
    """Return names by sensor, forces apart from moments."""
    groups: dict[str, list[str]] = {}
    for name in names:
        groups.setdefault(name.rpartition('_')[0], []).append(name)
    return list(groups.values())
