# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The settings of the identifier: those of the estimator, whose topics it shares, and its own."""

from __future__ import annotations

from dataclasses import dataclass

from inertial_estimation.config.methods import LIVE_METHODS
from inertial_estimation.config.schema import setting
from inertial_estimation.config.settings import EstimatorSettings

IDENTIFIER_NAME = 'parameter_identifier'


@dataclass(frozen=True)
class IdentifierSettings(EstimatorSettings):
    """
    Everything the identifier node can be told, checked as `EstimatorSettings` are.

    Raises
    ------
    ConfigError, NameNotFound
        As for the estimator.

    """

    rows_rate: float = setting(
        100.0, 'Samples that rows are built of; others are left out [Hz]', range=(1.0, 1000.0)
    )
    refit_period: float = setting(
        1.0, 'Time between two refits, in whole stretches of a second [s]', range=(1.0, 3600.0)
    )
    wrench_rows: bool = setting(
        True, 'Build rows of the sums of wrenches of submodels in free air'
    )
    ft_offsets: bool = setting(True, 'Offsets of the FT sensors are unknown')
    efforts: tuple[str, ...] = setting(
        (), "Joints whose efforts give rows; 'all' alone: every joint"
    )
    effort_gains: tuple[float, ...] = setting(
        (),
        "Torque over what joints report as efforts, say currents, in the order of 'efforts'; "
        'empty: they report Nm or N [Nm/A]',
        range=(-1e6, 1e6),
    )
    friction: tuple[str, ...] = setting(
        (),
        'What is unknown of these joints beside inertia: viscous, coulomb, offset, drive_inertia',
    )
    sign_width: float = setting(
        0.0,
        'Width of a smooth sign in Coulomb friction; 0: the sign [rad/s or m/s]',
        range=(0.0, 10.0),
    )
    dead_zone: float = setting(
        0.02, 'Slower joints give no rows of their efforts [rad/s or m/s]', range=(0.0, 10.0)
    )
    held_frames: tuple[str, ...] = setting(
        (),
        'Links or frames where something unknown acts all the time, such as the feet of a '
        'standing robot: their submodels give no rows of wrenches',
    )
    contact_margin: float = setting(
        0.2, 'A touch spoils rows so long before and after [s]', range=(0.0, 10.0)
    )
    method: str = setting(
        'entropic', 'What refits the bodies', choices=LIVE_METHODS
    )  # fmt: skip
    prior_weight: float = setting(
        0.1,
        'Of the description, against the mean squared residual over the noise',
        range=(1e-9, 1e6),
    )
    half_life: float = setting(
        600.0, 'Time with rows after which rows count half [s]', range=(1.0, 1e9)
    )
    force_walk: float = setting(
        0.3, 'How far force offsets of FT sensors wander [N/sqrt(s)]', range=(0.0, 1e3)
    )
    moment_walk: float = setting(
        0.03, 'How far their moment offsets wander [Nm/sqrt(s)]', range=(0.0, 1e3)
    )
    force_drift: float = setting(
        0.045,
        'Fastest drift of force offsets that estimators follow: what goes faster, without bodies, '
        'is a touch to them [N/s]',
        range=(0.0, 1e3),
    )
    moment_drift: float = setting(0.0045, 'The same of moment offsets [Nm/s]', range=(0.0, 1e3))
    warm_up: float = setting(
        3.0, 'Time with rows before their noise is told [s]', range=(1.0, 1e4)
    )
    gate: float = setting(
        4.0,
        'Residual over the usual one from which rows are suspect; 0: none are, else at least 2',
        range=(0.0, 1e3),
    )
    payload_links: tuple[str, ...] = setting(
        (), 'Links that carry what a submodel picks up; others: its last link'
    )
    least_told: int = setting(
        4,
        'Combinations of parameters that rows of a submodel must tell better than the '
        'description, before its links are published',
        range=(1, 1000),
    )
    state_file: str = setting(
        '', 'What is known is kept in this file, and restored from it; empty: nowhere'
    )
    save_period: float = setting(
        60.0, 'Time between two writings of state_file [s]', range=(1.0, 1e6)
    )
    niceness: int = setting(10, 'How far the process steps back behind others', range=(0, 19))
