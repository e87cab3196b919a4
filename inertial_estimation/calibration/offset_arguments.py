# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of offsets from the model, and refused if it cannot be told."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.support_loads import SupportLoads
from inertial_estimation.calibration.told_sums import told_sums
from inertial_estimation.errors import CalibrationError, ModelError, OffsetsNotUnique
from inertial_estimation.model.arguments import names, rows
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


class NoInstant(CalibrationError):
    """No instant has both a reading and a prediction."""


def check_order(samples: SampleBatch) -> None:
    """Refuse no instants, and those that are not in the order of their stamps."""
    if not len(samples):
        raise CalibrationError('there is no instant to calibrate by: record a second or more')
    back = np.flatnonzero(np.diff(samples.stamp_ns) < 0)
    if len(back):
        raise ModelError(
            f'the stamps of the samples go back after instant {int(back[0])}: sort them, as what '
            'comes before and after tells whether the robot is still'
        )


def check_supports(robot: Robot, given: Sequence[str]) -> tuple[str, ...]:
    """Return the names of supports."""
    supports = names('supports', given)
    if not supports:
        raise ModelError(
            "'supports' is empty: name the frames that carry the robot, such as a foot's",
            about=('supports',),
        )
    for k, support in enumerate(supports):
        robot.frame(support, f"'supports' names '{support}'")
        if support in supports[:k]:
            raise ModelError(f"'supports' names '{support}' twice", about=('supports',))
    return supports


def choose_sensors(
    robot: Robot,
    sensors: Sequence[str] | None,
    wrenches: Array,
    loads: SupportLoads,
    least: int,
    why: Sequence[str],
) -> Mask:
    """
    Tell which offsets are to be found.

    wrenches (n, n_fts, 6) [N, Nm]; returns (n_fts,).
    """
    known = [sensor.name for sensor in robot.ft_sensors]
    reads: Mask = np.logical_and.reduce(np.isfinite(wrenches), axis=2)
    predicted: Mask = np.logical_and.reduce(np.isfinite(loads.readings), axis=2)
    count = (reads & predicted).sum(axis=0)
    count[[bool(reason) for reason in why]] = 0
    says = count > 0
    chosen = np.zeros(len(known), dtype=bool)
    if sensors is None:
        # One that hardly says anything would keep others that share a load from being heard.
        chosen[:] = count >= least if (count >= least).any() else says
        if not says.any():
            lacks = 'predicted wrench, a joint or an IMU is missing or frozen'
            lacks = lacks if reads.any() else 'FT reading'
            told = ''.join(f'; {name}: {reason}' for name, reason in zip(known, why) if reason)
            raise NoInstant(
                'no instant has both an FT reading and a predicted wrench'
                + (told or f', as there is no {lacks}: look at their topics and stamps')
            )
        return chosen
    asked = rows('sensors', sensors, 'FT sensor', known)
    if not asked:
        raise ModelError(
            "'sensors' is empty: name some of " + ', '.join(known), about=('sensors',)
        )
    for k in asked:
        if not says[k]:
            reason = why[k] or 'no instant has both a reading and a predicted wrench'
            raise NoInstant(
                f"FT sensor '{known[k]}' tells no offset: {reason}; or leave it out of 'sensors'",
                about=('sensors',),
            )
    chosen[list(asked)] = True
    return chosen


def not_unique(
    robot: Robot, supports: tuple[str, ...], chosen: Mask, unsure: Mask, loads: SupportLoads
) -> OffsetsNotUnique:
    """
    Say what is not told, what is told all the same, and what helps.

    chosen (n_fts,); unsure (n_fts,).
    """
    known = [sensor.name for sensor in robot.ft_sensors]
    names_unsure = tuple(known[k] for k in np.flatnonzero(unsure))
    fine = [known[k] for k in np.flatnonzero(chosen & ~unsure)]
    told = told_sums(names_unsure, loads.beyond[unsure])
    more = f'; told are {", ".join(told)}' if told else ''
    rest = f', or calibrate {", ".join(fine)} alone, which are unique' if fine else ''
    return OffsetsNotUnique(
        f'nothing tells how {" and ".join(supports)} share the load, so the offsets of '
        f'{", ".join(names_unsure)} are not unique{more}: stand on one support{rest}; or accept '
        'the smallest support wrenches that add up for true, which is right as far as the robot '
        "stands symmetrically and does not squeeze the ground ('accept_split')",
        names_unsure,
    )
