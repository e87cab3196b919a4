# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Whether the momentum changes as the wrenches say, for the diagnostics."""

import numpy as np

from inertial_estimation.config import EstimatorSettings
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.momentum_check import (
    CAUSE,
    LEAST_WINDOWS,
    NOISE_FACTOR,
    MomentumCheck,
    MomentumReport,
    is_doubtful,
    momentum_advice,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.ros.diagnostics import OK, WARN, Task
from inertial_estimation.sample import Array, Sample
from inertial_estimation.signals.assembler import SampleAssembler
from inertial_estimation.uncertainty.momentum_noise import MomentumNoise


class MomentumWatch:
    """Compares the change of momentum with the wrenches of the estimates [T 2.84, 2.85]."""

    def __init__(
        self, robot: Robot, settings: EstimatorSettings, assembler: SampleAssembler
    ) -> None:
        self.warning = ''
        self._assembler = assembler
        self._noise = MomentumNoise(settings, robot)
        self._advice = momentum_advice(settings)
        self._check = MomentumCheck(robot)

    def add(self, sample: Sample, estimate: WrenchEstimate) -> None:
        """Take an instant; few are looked at."""
        self._check.add(sample, estimate)

    def set_parameters(self, parameters: Array) -> None:
        """
        Go on with other inertial parameters.

        parameters (n_links, 10).
        """
        self._check.set_parameters(parameters)

    def task(self) -> Task:
        """Return the state of the momentum over the last windows."""
        report = self._check.report()
        self.warning = ''
        if report.windows < LEAST_WINDOWS:
            lack = 'needs some seconds, 20 samples in each, and an IMU that measures both'
            return Task('momentum', OK, f'not told yet: {lack}', {'windows': report.windows})
        rates = self._assembler.rates()
        deviation = self._noise.deviation(self._check, rates)
        lack = self._noise.lack(rates) if np.isnan(deviation).any() else ''
        task = momentum_task(report, deviation, lack, self._advice)
        if task.level != OK:
            self.warning = task.message.partition(';')[0]
        return task


def momentum_task(
    report: MomentumReport, deviation: Array, lack: str = '', advice: str = ''
) -> Task:
    """
    Return the state of the momentum.

    deviation (2,) [N, Nm].
    """
    (force, moment), (force_change, moment_change) = report.unexplained, report.change
    values = {
        'windows': report.windows,
        'unexplained force [N]': f'{force:.3f}',
        'unexplained moment [Nm]': f'{moment:.4f}',
        'rate of linear momentum [N]': f'{force_change:.3f}',
        'rate of angular momentum [Nm]': f'{moment_change:.4f}',
        'noise of the force [N]': f'{deviation[0]:.3f}',
        'noise of the moment [Nm]': f'{deviation[1]:.4f}',
    }
    if np.isnan(deviation).any():
        return Task('momentum', OK, f'not judged: {lack or "its noise is not known"}', values)
    if is_doubtful(report, deviation):
        message = (
            f'{CAUSE}: {force:.2f} N and {moment:.3f} Nm of a momentum that changes by '
            f'{force_change:.2f} N and {moment_change:.3f} Nm; {advice}'
        )
        return Task('momentum', WARN, message, values, CAUSE)
    moves = (report.change > NOISE_FACTOR * deviation).any()
    return Task(
        'momentum', OK, 'changes as the wrenches say' if moves else 'hardly changes', values
    )
