# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""When the check of momentum casts doubt, and what to look at: alike in node and replay."""

from __future__ import annotations

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.momentum_check import MomentumReport
from inertial_estimation.sample import Array

LEAST_WINDOWS = 4
"""With fewer of them, two seconds, one event would decide."""
NOISE_FACTOR = 4.0
"""Of the standard deviation: the root mean square of four windows gets there by no chance."""
PART = 0.25
"""Of the change of momentum: right filters leave an eighth of it in the noise of the demo."""

CAUSE = 'accelerations are not those of the velocities'
"""What a doubt means."""
KALMAN_DELAY = 0.1
"""With which the Kalman filter's derivatives of a humanoid's motion hardly lag any more [s]."""


def is_doubtful(report: MomentumReport, deviation: Array) -> bool:
    """
    Tell whether more is unexplained than noise, and a right filter, leave.

    deviation (2,) [N, Nm].
    """
    far = report.unexplained > NOISE_FACTOR * deviation
    far &= report.unexplained > PART * report.change
    return report.windows >= LEAST_WINDOWS and bool(far.any())


def momentum_advice(settings: EstimatorSettings) -> str:
    """Say what to look at where the momentum does not change as the wrenches say."""
    neglected = [
        name
        for name, source in (
            ('acceleration_source', settings.acceleration_source),
            ('angular_acceleration_source', settings.angular_acceleration_source),
        )
        if source == 'zero' and not (settings.fixed_link and name.startswith('angular'))
    ]
    said = f'{" and ".join(neglected)} zero neglects them; ' if neglected else ''
    said += f'{_of_filter(settings)}, velocity_source'
    if settings.fixed_link:
        return f'{said} and the stamps of joint states'
    biases = ', and a bias of one of the accelerometers' if len(settings.imus) > 1 else ''
    return f'{said}, stamps and places of the IMUs{biases}'


def _of_filter(settings: EstimatorSettings) -> str:
    """Say what to do about the filter."""
    kalman = settings.derivative_filter == 'kalman'
    best = KALMAN_DELAY if kalman else 0.5 * settings.derivative_window
    sources = settings.acceleration_source, settings.angular_acceleration_source
    if 'filter' not in sources:
        return 'check derivative_filter'
    if settings.filter_delay < best:
        return (
            f'derivatives of the newest sample lag: try filter_delay {best:.3g} (now '
            f'{settings.filter_delay:.3g}) before another filter or window, then check '
            'derivative_filter'
        )
    return 'check derivative_filter and its ' + ('noise' if kalman else 'window')
