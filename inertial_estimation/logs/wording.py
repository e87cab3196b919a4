# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Causes and warnings of a report in words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.estimation.touch_rhythm import SlowSender
from inertial_estimation.logs.assumed import ReportedJoint
from inertial_estimation.logs.comparison import speaking
from inertial_estimation.logs.figures import SupportDoubt, SupportReport, TorqueReport
from inertial_estimation.sample import Array

Mask = NDArray[np.bool_]

FAR_FROM_WEIGHT = 0.05
"""Share of the weight; the masses of a CAD model are rarely as wrong."""

STATES = {
    'stale': 'too old',
    'frozen': 'frozen',
    'invalid': 'NaN or infinite',
    'warming': 'derivative filter not filled yet',
    'only_acceleration': 'partial: measures only the acceleration',
    'only_angular_velocity': 'partial: measures only the angular velocity',
    'no_velocity': 'without velocity (velocity_source: filter makes one)',
}
KINDS = {'joint': 'joint', 'imu': 'IMU', 'ft': 'FT'}


def describe(kind: str, names: Sequence[str], state: str, *, always: bool) -> str:
    """Say what is wrong."""
    listed = ', '.join(names)
    if kind == 'start':
        return 'start of the log: streams had not come yet, or derivative filters were not filled'
    if kind == 'contact':
        return f'the sensors do not tell apart: {listed}'
    if kind == 'touch':
        return f'touched: {listed}'
    if kind == 'offset':
        return f'offset of FT {listed} rests on assumed joints'
    what = f'{KINDS[kind]}{"s" if len(names) > 1 and kind == "joint" else ""} {listed}'
    if state == 'assumed':
        return f'assumed {what}'
    if state == 'absent':
        return f'{what} never came' if always else f'{what} had not come yet'
    return f'{what} {STATES[state]}'


def warn_of_doubts(doubts: Sequence[SupportDoubt], support: str) -> str:
    """Say that the offsets may hold what another contact carried."""
    if not doubts:
        return ''
    return (
        f'the offsets are ambiguous unless {support} was the only contact in the offset range: '
        f'{"; ".join(doubt.text for doubt in doubts)}'
    )


def warn_of_reported(joints: Iterable[ReportedJoint]) -> str:
    """Say that assumed joints are reported after all."""
    found = [
        f'{joint.joint} ({joint.n_messages} messages, up to {joint.largest_difference:.3g} rad '
        f'or m from the assumed {joint.assumed_position:.3g})'
        for joint in joints
    ]
    if not found:
        return ''
    return (
        f'assumed, yet reported in the bag: {", ".join(found)}; the reports are not used: take '
        'these joints out of assumed_joints, and their values out of assumed_positions'
    )


def warn_of_support(support: SupportReport | None) -> str:
    """Say that the force at the fixed link is far from the weight."""
    if support is None or abs(support.relative_error) <= FAR_FROM_WEIGHT:
        return ''
    return (
        f'{support.contact} carries {support.mean_upward_force_n:.1f} N of the weight of '
        f'{support.weight_n:.1f} N ({100.0 * support.relative_error:+.1f} %): unless something '
        'else holds the robot, the FT offsets are wrong (see --offsets-from) or the masses are'
    )


def warn_of_touches(problems: Mapping[str, int]) -> str:
    """Say that messages of the contacts topic could not be used."""
    if not problems:
        return ''
    listed = '; '.join(f'{text} ({count} messages)' for text, count in problems.items())
    return f'points of the contacts topic that are not used: {listed}'


def warn_of_slow_senders(senders: Sequence[SlowSender], timeout: float) -> str:
    """
    Say that senders of touches are slower than the timeout.

    timeout [s].
    """
    found = [
        f'{sender.frame} ({sender.n_gaps} times, every {sender.period:.3g} s)'
        for sender in senders
    ]
    if not found:
        return ''
    return (
        f'touches lapse and come back at the period of their sender: {", ".join(found)}; in '
        f'between the default contacts stand. Set contact_timeout ({timeout:.3g} s) above that '
        'period, or let the sender be faster'
    )


def warn_of_deviations(lack: str) -> str:
    """Say that standard deviations are not known."""
    return f'no standard deviations in some of the samples: {lack}' if lack else ''


def warn_of_nothing_judged(judged: Mask, compared: Sequence[TorqueReport], reference: str) -> str:
    """
    Say that no figure of the report judges the estimate.

    judged (n,).
    """
    if not judged.any():
        return (
            'nothing is judged: all samples of the range lie inside the range that the offsets '
            'come from, so that wrenches, torques and support are left out; choose a --range '
            'that reaches beyond --offset-range'
        )
    if not compared:
        return f'no torque is judged: {reference or "no joint has one that can be compared"}'
    return ''


def lack_of_reference(efforts: Array | None) -> str:
    """
    Say why there are no torques to compare with.

    efforts (n, n_joints) [Nm or N].
    """
    if efforts is None or not np.isfinite(efforts).any():
        return 'the joint states hold no efforts, so the robot reports no torques of its own'
    if not speaking(efforts).any():
        return 'the efforts of the joint states never change, so they are no measured torques'
    return ''
