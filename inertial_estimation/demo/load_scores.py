# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What is identified and estimated of something that the robot has picked up, against the truth.

A false force is what an estimator finds at the frame of the link that carries, beyond the truth;
its figures are root mean squares of its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.sample import Array
from inertial_estimation.signals.cdr import NANOSECONDS

WITHIN = 10.0
"""How long identification has from the moment at which something is picked up [s]."""
SPAN = 1.0
"""Of a figure of a force [s]."""
FOLLOWED = 0.05
"""Of the mass of a load: how far off the identified mass may be."""


T = TypeVar('T')
U = TypeVar('U')


class TrueLoad(NamedTuple):
    """What was picked up."""

    stamp_ns: int
    """When [ns]."""
    mass: float
    """[kg]"""
    center: tuple[float, ...]
    """Of mass, in the frame of the link that carries it, (3,) [m]."""


class FoundLoad(NamedTuple):
    """What is identified of it."""

    mass: float
    """[kg]"""
    center: tuple[float, ...]
    """Of mass, in the frame of the link that carries it, (3,) [m]."""


class LoadScores:
    """What came, by the robot's stamps."""

    def __init__(self, estimators: Sequence[str]) -> None:
        self._stamps: list[int] = []
        self._forces: dict[str, list[float]] = {name: [] for name in estimators}
        self._masses: list[tuple[int, float]] = []
        self._found: list[tuple[int, FoundLoad | None]] = []
        self.updates = self.inconsistent = 0
        self.least_margin = np.inf
        self.refusal = ''

    @property
    def newest_ns(self) -> int:
        """Stamp of the last instant at which all have spoken; 0: there is none [ns]."""
        return self._stamps[-1] if self._stamps else 0

    def add_forces(self, stamps: Iterable[int], forces: dict[str, Array]) -> None:
        """
        Add what estimators say of instants at which both speak.

        forces (n, 3) [N].
        """
        self._stamps += stamps
        for name, values in forces.items():
            self._forces[name] += np.linalg.norm(values, axis=1).tolist()

    def add_update(self, stamp_ns: int, parameters: Array, links: Sequence[int]) -> None:
        """
        Add what is published of all links.

        parameters (n_links, 10).
        """
        self.updates += 1
        margin = float(consistency_margin(parameters).min())
        self.least_margin = min(self.least_margin, margin)
        self.inconsistent += not margin > 0.0
        self._masses.append((stamp_ns, float(parameters[list(links), 0].sum())))

    def add_refusal(self, reason: str) -> None:
        """Note that an update could not be used, and why."""
        self.updates += 1
        self.inconsistent += 1
        self.refusal = reason

    def add_found(self, stamp_ns: int, found: FoundLoad | None) -> None:
        """Add what the identifier says of a load."""
        self._found.append((stamp_ns, found))

    def is_complete(self, load: TrueLoad | None) -> bool:
        """Tell whether all is there that figures need."""
        return load is not None and self.newest_ns >= _end_ns(load)

    def figures(self, load: TrueLoad, described: float) -> dict[str, float | list[float]]:
        """
        Return what was reached within `WITHIN`; NaN for what is not known.

        described [kg].
        """
        end_ns, up_ns = _end_ns(load), load.stamp_ns
        before = _newest(self._masses, up_ns, described)
        gain = _newest(self._masses, end_ns, described) - before
        found = _newest(self._found, end_ns, None) or FoundLoad(np.nan, (np.nan,) * 3)
        near = (
            1e-9 * (stamp - up_ns)
            for stamp, mass in self._masses
            if stamp > up_ns and abs(mass - before - load.mass) <= FOLLOWED * load.mass
        )
        return {
            'mass_gain_kg': gain,
            'mass_error_kg': abs(gain - load.mass),
            'followed_after_s': next(near, np.nan),
            'payload_mass_kg': found.mass,
            'payload_mass_error_kg': abs(found.mass - load.mass),
            'payload_center_m': list(found.center),
            'payload_center_error_m': float(
                np.linalg.norm(np.subtract(found.center, load.center))
            ),
        }

    def false_forces(self, load: TrueLoad, name: str) -> dict[str, float]:
        """Return what an estimator takes the load for."""
        up_ns, end_ns, span = load.stamp_ns, _end_ns(load), round(SPAN * NANOSECONDS)
        stamps, forces = np.array(self._stamps), np.array(self._forces[name])
        spans = {
            'before': (up_ns - span, up_ns),
            'at_first': (up_ns, up_ns + span),
            'at_last': (end_ns - span, end_ns),
            'now': (self.newest_ns - span, self.newest_ns + 1),
        }
        return {
            key: _rms(forces[(stamps >= first) & (stamps < last)])
            for key, (first, last) in spans.items()
        }


def _end_ns(load: TrueLoad) -> int:
    """Return when identification has had its time [ns]."""
    return load.stamp_ns + round(WITHIN * NANOSECONDS)


def _newest(values: Sequence[tuple[int, T]], until_ns: int, otherwise: U) -> T | U:
    """Return the last value that came until a stamp."""
    return next((value for stamp, value in reversed(values) if stamp <= until_ns), otherwise)


def _rms(values: NDArray[np.float64]) -> float:
    """Return the root mean square of what is finite of them."""
    kept = values[np.isfinite(values)]
    return float(np.sqrt(np.mean(kept**2))) if len(kept) else float('nan')
