# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Standard deviations while messages come in: the rates of the streams are learnt on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.contacts import Contact, ContactSet
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.sample import Sample
from inertial_estimation.signals.stream import StreamRates
from inertial_estimation.uncertainty.deviations import Deviations, Uncertainty
from inertial_estimation.uncertainty.stream_noise import (
    USED,
    StreamFilters,
    StreamNoise,
    stream_noise,
)

Array = NDArray[np.float64]

LOOK_NS = 1_000_000_000
"""How often the rates are looked at [ns]."""
CHANGED = 0.05
"""A rate that changes by a larger part changes the noise: 2.5 % of that of a derivative."""


class LiveUncertainty:
    """Standard deviations of what an estimator says about the samples of an assembler."""

    def __init__(self, estimator: WrenchEstimator, settings: EstimatorSettings) -> None:
        self._estimator, self._settings = estimator, settings
        self._filters = StreamFilters(settings)
        robot = estimator.robot
        sizes = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        self._rates = StreamRates(*(np.full(size, np.nan) for size in sizes))
        self._found: tuple[StreamNoise, Uncertainty] | None = None
        self._looked_ns = 0
        self._roots: Array | None = None

    def set_parameter_roots(self, roots: Array | None) -> None:
        """
        Say how sure the inertial parameters are.

        roots (n_links, 10, r).
        """
        if roots is self._roots:
            return
        self._roots = roots
        if self._found is not None:
            self._found[1].set_parameter_roots(roots)

    def of(
        self,
        sample: Sample,
        contacts: Iterable[Contact] | ContactSet | None,
        rates: Callable[[], StreamRates],
    ) -> Deviations | None:
        """Return the standard deviations of the estimate of one instant."""
        found = self._found
        if found is None or not 0 <= sample.stamp_ns - self._looked_ns < LOOK_NS:
            found = self._look(sample, rates())
            if found is None:
                return None
        noise, uncertainty = found
        if noise.covers(sample):
            return uncertainty.of(sample, contacts)
        self._looked_ns = 0
        return None

    def _look(self, sample: Sample, rates: StreamRates) -> tuple[StreamNoise, Uncertainty] | None:
        """Return the noise at these rates; None while filters are to be learnt."""
        usable = self._usable(sample, rates)
        if self._found is None or any(map(_differ, usable, self._rates)):
            robot = self._estimator.robot
            if self._filters.learn_next(robot, usable):
                return None
            noise = stream_noise(self._settings, robot, usable, self._filters)
            self._found = noise, Uncertainty(self._estimator, noise.model, self._roots)
            self._rates = usable
        self._looked_ns = sample.stamp_ns
        return self._found

    def _usable(self, sample: Sample, rates: StreamRates) -> StreamRates:
        """Return the rates of what is used, else the ones before: two first stamps say little."""
        states = sample.joint_states, sample.imu_states, sample.ft_states
        return StreamRates(
            *(
                now if state is None else np.where(np.isin(state, USED), now, before)
                for now, before, state in zip(rates, self._rates, states, strict=True)
            )
        )


def _differ(now: Array, before: Array) -> bool:
    """Tell whether a rate has come, or changed by much."""
    like = np.abs(now - before) <= CHANGED * before
    return bool((~like & np.isfinite(now)).any())
