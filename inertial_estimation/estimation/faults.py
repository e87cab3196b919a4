# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is missing in a sample, and how to go on without it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.quality import Working
from inertial_estimation.sample import Sample, SampleBatch, SensorState

Array = NDArray[np.float64]
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
S = TypeVar('S', Sample, SampleBatch)


ABSURD = 1e30
"""Numbers of this size are faults too: their products would overflow into other results."""


class Sizes(NamedTuple):
    """How many joints and sensors a robot has."""

    joints: int
    imus: int
    fts: int


class BetweenTrees(NamedTuple):
    """Joints that no tree of links holds: only their positions are used."""

    joints: tuple[int, ...]
    imus: Indices
    """The IMUs that serve the trees; when one of them fails, the trees change."""


def find_faults(sample: Sample | SampleBatch, between: BetweenTrees) -> Mask:
    """
    Tell what is missing.

    Parameters
    ----------
    sample : Sample or SampleBatch
        NaN, infinity or a number beyond `ABSURD` stands for what is missing.
    between : BetweenTrees
        Joints whose rates are not used while their IMUs work.

    Returns
    -------
    ndarray of bool, shape (..., 2 n_joints + n_imus + n_fts)
        Missing joints, IMUs, FT sensors; then which joints are assumed.

    """
    imus = (
        _is_sound(sample.angular_velocities).all(axis=-1)
        & _is_sound(sample.proper_accelerations).all(axis=-1)
        & _is_sound(sample.angular_accelerations).all(axis=-1)
    )
    rates = np.asarray(_is_sound(sample.velocities) & _is_sound(sample.accelerations))
    if len(between.joints):
        whole = np.asarray(imus)[..., between.imus].all(axis=-1)
        rates[..., between.joints] |= np.asarray(whole)[..., None]
    joints = _is_sound(sample.positions) & rates
    fts = _is_sound(sample.ft_readings).all(axis=-1)
    assumed = np.zeros_like(joints)
    if sample.joint_states is not None:
        assumed = sample.joint_states == SensorState.ASSUMED
    return np.concatenate([~joints, ~imus, ~fts, assumed], axis=-1)


def _is_sound(values: Array) -> Mask:
    """Tell which values are numbers that a sensor could mean."""
    sound: Mask = np.abs(values) < ABSURD
    return sound


def alike(faults: Mask) -> Iterator[tuple[Mask, Indices]]:
    """
    Group equal rows.

    Parameters
    ----------
    faults : ndarray of bool, shape (n, n_flags)
        From `find_faults`.

    Yields
    ------
    row : ndarray of bool, shape (n_flags,)
        The same for the whole group.
    members : ndarray of int
        Which rows belong to it. No rows at all count as one empty group without faults.

    """
    groups: dict[bytes, list[int]] = {}
    for k, row in enumerate(np.packbits(faults, axis=1)):
        groups.setdefault(row.tobytes(), []).append(k)
    if not groups:
        yield np.zeros(faults.shape[1], dtype=bool), np.empty(0, dtype=np.intp)
    for rows in groups.values():
        yield faults[rows[0]], np.array(rows, dtype=np.intp)


def working_of(faults: Mask, sizes: Sizes) -> Working:
    """
    Sort one row of faults by kind.

    Parameters
    ----------
    faults : ndarray of bool, shape (n_flags,)
        From `find_faults`.
    sizes : Sizes
        Of the robot.

    Returns
    -------
    Working

    """
    flags = faults.tolist()
    imus, fts = sizes.joints, sizes.joints + sizes.imus
    assumed = fts + sizes.fts
    return Working(
        imus=tuple(not fault for fault in flags[imus:fts]),
        fts=tuple(not fault for fault in flags[fts:assumed]),
        missing_joints=tuple(flags[:imus]),
        assumed_joints=tuple(flags[assumed:]),
    )


def without_faults(sample: S, faults: Mask, sizes: Sizes) -> S:
    """
    Put zeros where something is missing; a plan for these faults keeps them out of all results.

    Parameters
    ----------
    sample : Sample or SampleBatch
        If many, all with the same faults.
    faults : ndarray of bool, shape (n_flags,)
        From `find_faults`.
    sizes : Sizes
        Of the robot.

    Returns
    -------
    Sample or SampleBatch

    """
    if not faults[: sum(sizes)].any():
        return sample
    joints, imus, fts, _ = np.split(faults, np.cumsum(sizes))
    zeros: dict[str, Any] = {
        name: np.where(joints, 0.0, getattr(sample, name))
        for name in ('positions', 'velocities', 'accelerations')
    }
    for name in ('angular_velocities', 'proper_accelerations', 'angular_accelerations'):
        zeros[name] = np.where(imus[:, None], 0.0, getattr(sample, name))
    zeros['ft_readings'] = np.where(fts[:, None], 0.0, sample.ft_readings)
    if isinstance(sample, Sample):
        return sample._replace(**zeros)
    return replace(sample, **zeros)
