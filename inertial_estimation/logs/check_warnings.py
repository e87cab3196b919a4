# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Warnings of what a replay says about itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from inertial_estimation.estimation.grounds import Uninformed
from inertial_estimation.estimation.momentum_verdict import CAUSE
from inertial_estimation.logs.cause_table import cut
from inertial_estimation.logs.check_figures import (
    CrossChecks,
    MomentumFigures,
    SensorResidualReport,
    SituationReport,
)

MOST_GROUPS = 4
"""Groups of torques that are named in warnings."""
MOST_STRETCHES = 3
ALWAYS = 0.995
"""Of the samples in which anything is known: what is rounded to 100 %."""


def check_warnings(checks: CrossChecks) -> tuple[str, ...]:
    """Say what speaks against the estimate."""
    return (
        *_of_momentum(checks.momentum, _biased(checks.sensor_residuals)),
        *_of_sensors(checks.sensor_residuals),
        *_of_uninformed(checks.situations),
    )


def _biased(found: Sequence[SensorResidualReport]) -> list[str]:
    """Return the IMUs whose accelerations contradict the others by something constant."""
    return [r.sensor for r in found if r.doubtful and r.constant and r.quantity == 'acceleration']


def _of_momentum(found: MomentumFigures | None, biased: Sequence[str]) -> Iterator[str]:
    """Say that accelerations are not those of the velocities."""
    if found is None or not found.doubtful_s:
        return
    stretches = [f'{start:.1f} s to {stop:.1f} s' for start, stop in found.doubtful_s]
    more = len(stretches) - MOST_STRETCHES
    listed = ', '.join(stretches[:MOST_STRETCHES]) + (f' and {more} more' if more > 0 else '')
    advice = found.advice
    if biased:
        advice = f'first see what is said of the accelerometer of {", ".join(biased)}; {advice}'
    yield (
        f'the momentum does not change as the wrenches say from {listed}: {CAUSE} '
        f'({found.unexplained_force_n:.2f} N and '
        f'{found.unexplained_moment_nm:.3f} Nm of a momentum that changes by '
        f'{found.change_of_linear_momentum_n:.2f} N and '
        f'{found.change_of_angular_momentum_nm:.3f} Nm); {advice}'
    )


def _of_sensors(found: Sequence[SensorResidualReport]) -> Iterator[str]:
    """Say that sensors contradict each other."""
    for r in found:
        if not r.doubtful:
            continue
        quantity = r.quantity.replace('_', ' ')
        # Residuals are prediction minus reading.
        excess = ', '.join(f'{round(-value, 3) + 0.0:.3f}' for value in r.mean)
        size = f'rms, mostly as it reads ({excess}) too much' if r.constant else 'rms'
        yield (
            f'{quantity} of {r.sensor} differs by {r.rms:.3g} {r.unit} ({size}) from what all '
            f'other sensors tell, where {_noise(r)}: {_cause(r)}'
        )


def _noise(found: SensorResidualReport) -> str:
    """Say what noise leaves."""
    some = '' if found.noise_is_whole else ' and filters some'
    return f'noise leaves {found.noise:.2g} {found.unit}{some}'


def _cause(found: SensorResidualReport) -> str:
    """Say what leaves such a residual."""
    if found.kind == 'ft':
        cause = 'its offset or its scale is wrong, or masses of the model are, or something '
        return cause + 'touches the robot there'
    if found.constant:
        return 'it has a bias, or its place or its axes are wrong, or another IMU has it'
    return 'its place, its axes or its stamps are wrong, or those of another IMU'


def _of_uninformed(situations: Sequence[SituationReport]) -> Iterator[str]:
    """Say which torques no FT sensor informs, and how often."""
    shares: dict[Uninformed, float] = {}
    for situation in situations:
        for group in situation.uninformed:
            shares[group] = shares.get(group, 0.0) + situation.sample_share
    known = sum(situation.sample_share for situation in situations)
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    for group, share in ordered[:MOST_GROUPS]:
        when = '' if share >= ALWAYS * known else f'in {share:.0%} of the samples '
        yield when + str(replace(group, joints=tuple(cut(group.joints))))
    left = ordered[MOST_GROUPS:]
    if left:
        joints = dict.fromkeys(joint for group, _ in left for joint in group.joints)
        yield f'in some samples no FT sensor informs the torques of {", ".join(cut(list(joints)))}'
