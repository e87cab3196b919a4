# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Standard deviations of what a log's estimate says, at some of its instants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.linalg import LinAlgError
from numpy.typing import NDArray

from inertial_estimation.errors import InertialEstimationError
from inertial_estimation.estimation.contacts import ContactSet
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.logs.touches import Touches
from inertial_estimation.sample import Array, Sample, SampleBatch
from inertial_estimation.uncertainty.deviations import Uncertainty
from inertial_estimation.uncertainty.stream_noise import StreamNoise

Indices = NDArray[np.intp]
NANOSECONDS = 1_000_000_000
FEW = 100
"""Instants that do for a mean."""
PER_TICK = 50
UNKNOWN = (
    'a filter cannot work at the rate of its stream, or derivative_filter is adaptive_window, '
    'whose noise cannot be stated'
)


@dataclass(frozen=True, eq=False)
class LogDeviations:
    """Standard deviations at some instants of a log; rows as in `WrenchEstimate`, NaN: unknown."""

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
    """Why they are unknown where the estimate is known; empty: they are known."""


def some_rows(n: int) -> Indices:
    """Return the rows of instants that do for a mean."""
    return np.unique(np.linspace(0, n - 1, min(n, FEW)).round().astype(np.intp))


def rows_at_rate(stamps_ns: NDArray[np.int64], rate: float) -> Indices:
    """
    Return the rows that the node would have published at a rate.

    stamps_ns (n,) [ns]; rate [Hz].
    """
    period_ns, last_ns = round(NANOSECONDS / rate), 0
    rows = []
    for row, stamp_ns in enumerate(stamps_ns.tolist()):
        if not 0 <= stamp_ns - last_ns < period_ns:
            rows.append(row)
            last_ns = stamp_ns
    return np.array(rows, dtype=np.intp)


def log_deviations(
    estimator: WrenchEstimator,
    noise: StreamNoise,
    samples: SampleBatch,
    touches: Touches | None,
    estimate: WrenchEstimate,
    rows: Indices,
    progress: Callable[[float], None],
) -> LogDeviations:
    """Return the standard deviations at some instants of a log."""
    m = len(rows)
    places = {contact.name: column for column, contact in enumerate(estimate.contacts)}
    wrenches, torques, external, residuals = (
        np.full((m, *values.shape[1:]), np.nan)
        for values in (
            estimate.wrenches, estimate.torques, estimate.external_torques, estimate.residuals,
        )
    )  # fmt: skip
    lack = ''
    try:
        uncertainty = Uncertainty(estimator, noise.model)
        contact_sets = _ContactSets(estimator, touches)
        for k, row in enumerate(rows.tolist()):
            sample: Sample = samples[row]
            if k % PER_TICK == 0:
                progress(k / m)
            if not noise.covers(sample):
                lack = UNKNOWN
                continue
            found = uncertainty.of(sample, contact_sets.at(row))
            columns = [places[contact.name] for contact in found.contacts]
            wrenches[k, columns], torques[k] = found.wrenches, found.torques
            external[k], residuals[k] = found.external_torques, found.residuals
    except (InertialEstimationError, LinAlgError) as error:
        lack = str(error)
    progress(1.0)
    return LogDeviations(rows, wrenches, torques, external, residuals, lack)


class _ContactSets:
    """The contacts of each sample."""

    def __init__(self, estimator: WrenchEstimator, touches: Touches | None) -> None:
        self._estimator, self._touches = estimator, touches
        self._sets: dict[int, ContactSet | None] = {0: None}

    def at(self, row: int) -> ContactSet | None:
        """Return the contacts of a sample; None: the default ones."""
        if self._touches is None:
            return None
        number = int(self._touches.rows[row])
        if number not in self._sets:
            self._sets[number] = self._estimator.with_touches(self._touches.sets[number])
        return self._sets[number]
