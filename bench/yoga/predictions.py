# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
What FT sensors in free air should read next, by what is known so far.

Bodies and offset that were told last say what a sensor will read until the next ones are told.
Beside that stand the description without any offset, and with the constant offset that fits all
readings up to the same instant best. Two figures are of hindsight, fitted to the readings that
they are judged by: a constant offset, and a matrix with a constant, which is what a better
calibration of the sensor could bring.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.background.node_settings import node_settings
from bench.yoga.log import FREE
from inertial_estimation.config import IdentifierSettings
from inertial_estimation.errors import LogError
from inertial_estimation.identification.equations.wrenches import with_readings
from inertial_estimation.identification.recursion.identifier import (
    RecursiveIdentifier,
)
from inertial_estimation.identification.recursion.update_policy import Refit
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]

NONE, PAST, IDENTIFIED = 'description', 'constant offset of the past', 'identified'
CONSTANT, MATRIX = 'constant offset in hindsight', 'matrix in hindsight'


class Choice(NamedTuple):
    """What decides which bodies are told."""

    prior_weight: float
    least_told: int


DEFAULT = Choice(IdentifierSettings().prior_weight, IdentifierSettings().least_told)
"""The node's, unless it is told otherwise."""
STRETCH_NS = 1_000_000_000
"""That the node refits after [ns]."""
WAYS = (NONE, PAST, IDENTIFIED, CONSTANT, MATRIX)


class Told(NamedTuple):
    """What was known at an instant."""

    stamp_ns: int
    """Of the last sample that had been used."""
    parameters: Array
    """Inertial parameters that were told, shape (n_links, 10)."""
    offsets: Array
    """Of the sensors of `FREE`, shape (2, 6) [N, Nm]; NaN: nothing is known yet."""
    refitted: tuple[str, ...]
    """Submodels whose bodies are not those of the description."""
    least_margin: float
    """Smallest eigenvalue of a body that was fitted, told or not."""

    @classmethod
    def of(cls, identifier: RecursiveIdentifier, refit: Refit) -> Told:
        """Return what a refit says."""
        bodies = np.concatenate(list(identifier.parameters().values()))
        return cls(
            refit.stamp_ns,
            refit.parameters,
            np.array([refit.offsets.get(name, np.full(6, np.nan)) for name in FREE]),
            refit.refitted,
            float(consistency_margin(bodies).min()),
        )


def follow(robot: Robot, stretches: Iterable[SampleBatch], choice: Choice = DEFAULT) -> list[Told]:
    """Identify stretch by stretch, as the node does."""
    settings = node_settings(robot)
    settings = replace(settings, weight=choice.prior_weight, excited=choice.least_told)
    identifier = RecursiveIdentifier(robot, settings)
    told = []
    for part in stretches:
        identifier.add(part)
        refit = identifier.refit()
        if refit is not None:
            told.append(Told.of(identifier, refit))
    return told


def as_told(samples: SampleBatch, told: Sequence[Told]) -> list[SampleBatch]:
    """
    Return the stretches that somebody else has made of a log, after each of which he refitted.
    """
    ends = [one.stamp_ns for one in told]
    early = np.arange(ends[0], samples.stamp_ns[0], -STRETCH_NS)[:0:-1]
    edges = np.searchsorted(samples.stamp_ns, [*early, *ends], side='right')
    return [
        samples.take(slice(first, last))
        for first, last in zip([0, *edges[:-1]], edges, strict=True)
    ]


def errors(robot: Robot, samples: SampleBatch, told: Sequence[Told]) -> dict[str, Array]:
    """
    Return what predictions miss of what the sensors of `FREE` read.

    Returns (n, 2, 6) [N, Nm].
    """
    known = [one for one in told if np.isfinite(one.offsets).all()]
    if not known or known[0].stamp_ns >= samples.stamp_ns[-1]:
        raise LogError(f'no offsets of {" and ".join(FREE)} were told before the log ended')
    readings = _of_free(robot, samples.ft_readings)
    described = readings - _of_free(robot, with_readings(
        robot, samples, robot.parameters).ft_readings)  # fmt: skip
    edges = np.searchsorted(samples.stamp_ns, [one.stamp_ns for one in known], side='right')
    past, found = [], []
    for one, first, last in zip(known, edges, [*edges[1:], len(samples)], strict=True):
        past.append(described[first:last] - np.nanmean(described[:first], axis=0))
        part = samples.take(slice(first, last))
        bodies = with_readings(robot, part, one.parameters).ft_readings
        found.append(_of_free(robot, part.ft_readings - bodies) - one.offsets)
    late = described[edges[0] :]
    used = np.isfinite(late).all(axis=(1, 2))
    late, readings = late[used], readings[edges[0] :][used]
    return {
        NONE: late,
        PAST: np.concatenate(past)[used],
        IDENTIFIED: np.concatenate(found)[used],
        CONSTANT: late - late.mean(axis=0),
        MATRIX: _without_best_matrix(readings, late),
    }


def rms(found: Array) -> Array:
    """
    Return how large errors are.

    found (n, 2, 6); returns (2, 2) [N, Nm].
    """
    return np.asarray(np.sqrt(np.mean(found.reshape(len(found), -1, 2, 3) ** 2, axis=(0, 3))))


def submodels(told: Sequence[Told]) -> tuple[str, ...]:
    """Return whose bodies were told."""
    return tuple(sorted({name for one in told for name in one.refitted}))


def telling(told: Sequence[Told]) -> int:
    """Return how many refits tell bodies that are not the description's."""
    return sum(bool(one.refitted) for one in told)


def _of_free(robot: Robot, readings: Array) -> Array:
    """Return those of the sensors in free air, shape (n, 2, 6)."""
    names = [sensor.name for sensor in robot.ft_sensors]
    return readings[:, [names.index(name) for name in FREE]]


def _without_best_matrix(readings: Array, late: Array) -> Array:
    """Return what is left with the matrix and constant that take readings to the bodies best."""
    left = np.empty_like(late)
    for k in range(late.shape[1]):
        columns = np.hstack([readings[:, k], np.ones((len(late), 1))])
        best = np.linalg.lstsq(columns, late[:, k], rcond=None)[0]
        left[:, k] = late[:, k] - columns @ best
    return left
