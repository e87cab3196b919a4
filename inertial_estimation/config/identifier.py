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
    Settings of the identifier node, checked as `EstimatorSettings` are.

    Raises
    ------
    ConfigError, NameNotFound
        As for the estimator.

    """

    rows_rate: float = setting(
        100.0, 'Rate of the samples that give equations [Hz]', range=(1.0, 1000.0)
    )
    refit_period: float = setting(
        1.0, 'Time between two refits, in whole seconds [s]', range=(1.0, 3600.0)
    )
    wrench_rows: bool = setting(True, 'Use the sums of wrenches of submodels in free air')
    ft_offsets: bool = setting(True, 'Identify offsets of the FT sensors')
    efforts: tuple[str, ...] = setting(
        (), "Joints whose efforts give equations; 'all' alone: every joint"
    )
    effort_gains: tuple[float, ...] = setting(
        (),
        "Torque per reported effort, for example current, in the order of 'efforts'; empty: 1 "
        '[Nm/A]',
        range=(-1e6, 1e6),
    )
    friction: tuple[str, ...] = setting(
        (),
        'Unknowns of these joints beside inertia: viscous, coulomb, offset, drive_inertia',
    )
    sign_width: float = setting(
        0.0,
        'Width of a smooth sign in Coulomb friction; 0: the sign [rad/s or m/s]',
        range=(0.0, 10.0),
    )
    dead_zone: float = setting(
        0.02,
        'Speed below which the effort of a joint gives no equations [rad/s or m/s]',
        range=(0.0, 10.0),
    )
    held_frames: tuple[str, ...] = setting(
        (),
        'Links or frames with an unknown wrench at all times, such as standing feet',
    )
    contact_margin: float = setting(
        0.2,
        'Time before and after a reported contact that gives no equations [s]',
        range=(0.0, 10.0),
    )
    method: str = setting(
        'entropic', 'Method of the refit', choices=LIVE_METHODS
    )  # fmt: skip
    prior_weight: float = setting(
        0.1,
        'Weight of the URDF, against the mean squared residual over the noise',
        range=(1e-9, 1e6),
    )
    half_life: float = setting(
        600.0, 'Time with data after which equations count half [s]', range=(1.0, 1e9)
    )
    force_walk: float = setting(0.3, 'Random walk of force offsets [N/sqrt(s)]', range=(0.0, 1e3))
    moment_walk: float = setting(
        0.03, 'Random walk of moment offsets [Nm/sqrt(s)]', range=(0.0, 1e3)
    )
    force_drift: float = setting(
        0.045,
        'Fastest drift of force offsets that the estimator follows [N/s]',
        range=(0.0, 1e3),
    )
    moment_drift: float = setting(
        0.0045,
        'Fastest drift of moment offsets that the estimator follows [Nm/s]',
        range=(0.0, 1e3),
    )
    warm_up: float = setting(
        3.0, 'Time with data before their noise is estimated [s]', range=(1.0, 1e4)
    )
    gate: float = setting(
        4.0,
        'Residual over the usual one from which equations are held back; 0: never; else >= 2',
        range=(0.0, 1e3),
    )
    payload_links: tuple[str, ...] = setting(
        (), 'Links that carry payloads; in other submodels the last link'
    )
    least_told: int = setting(
        4,
        'Combinations of parameters that the data of a submodel must determine better than the '
        'URDF before its links are published',
        range=(1, 1000),
    )
    state_file: str = setting('', 'File of the state of the identification; empty: none')
    save_period: float = setting(
        60.0, 'Time between two writings of state_file [s]', range=(1.0, 1e6)
    )
    niceness: int = setting(10, 'Niceness of the process', range=(0, 19))
