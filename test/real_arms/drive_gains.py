# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Gains of a UR10e's drives from a payload of known mass, beside two published sets.

The same motion was recorded without and with the payload. All runs go through `identify`, with the
file that is shipped; where gains are stated, they scale the currents and are no unknowns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.identification.outliers import EFFORT
from inertial_estimation.identification.unknowns import Term
from inertial_estimation.logs.identify import RobotIdentification, identify
from inertial_estimation.logs.identify_settings import IdentifySettings
from inertial_estimation.logs.identify_summary import (
    all_efforts,
    extra_values,
    residuals,
    unseen_evidence,
)
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.urdf_export import export_urdf

Array = NDArray[np.float64]

CONFIG = 'identify_ur10e_payload.yaml'
URDF, PUBLISHED = 'ur10e/ur10e.urdf', 'ur10e/meta.json'
UNLOADED, LOADED = 'ur10e/fourier_50s_14h.npz', 'ur10e/fourier_50s_14h_payload.npz'
OTHERS = tuple(f'ur10e/fourier_{run}.npz' for run in ('30s_12h', '40s_12h', '20s_8h'))
FILES = (URDF, PUBLISHED, UNLOADED, LOADED, *OTHERS)
"""Below the folder of the logs."""
SPLIT = 27
"""Of the loaded log: what is before it is fitted, what is after it is predicted [s]."""
SETS = {'set 1': 'drive_gains_literature', 'set 2': 'drive_gains_peer'}
"""Published gains, and what they are called in the file of the logs."""
FOUND, BOTH = 'found', 'both logs'
LIGHT = 0.3
"""Mass of every link of a poor description [kg]."""


class Gain(NamedTuple):
    """Torque over current of a joint [N m/A]."""

    value: float
    deviation: float | None = None
    """None: it was stated."""


class Weighed(NamedTuple):
    """What the payload weighs if gains are taken for known."""

    mass: float
    """[kg]."""
    deviation: float
    heavier: Array
    """
    By how much each link got heavier if it is no payload, but the difference of two
    identifications, shape (n_links,) [kg].
    """


@dataclass(frozen=True, eq=False)
class DriveGains:
    """Gains of a robot, and what they are good for."""

    joints: tuple[str, ...]
    mass: float
    """Of the payload [kg]."""
    gains: Mapping[str, tuple[Gain, ...]]
    """Of each joint, by where they come from."""
    weighed: Mapping[str, Weighed]
    """By the gains."""
    predicted: Mapping[str, Mapping[str, tuple[float, ...]]]
    """
    Residual over effort of logs that were not fitted, by the logs and the gains; of each joint,
    then of all rows. What is left of the effort without the known weight counts.
    """


class _Arm:
    """The robot with its logs."""

    def __init__(self, data: Path, configs: Path) -> None:
        self._data = data
        self.settings = IdentifySettings.from_yaml(configs / CONFIG)
        self.urdf = (data / URDF).read_text(encoding='utf-8')
        (self.payload,) = self.settings.payloads

    def found(
        self,
        logs: Sequence[str],
        settings: IdentifySettings | None = None,
        *,
        urdf: str | None = None,
        method: str = 'entropic',
        validate: Sequence[str] = (),
    ) -> RobotIdentification:
        """Return what `identify` says."""
        return identify(
            urdf or self.urdf,
            [self._data / log for log in logs],
            settings or self.settings,
            method=method,
            validate=[self._data / log for log in validate],
        )

    def known(self, gains: Sequence[float]) -> IdentifySettings:
        """Return settings with gains that are stated."""
        layout = self.settings.layout
        assert layout is not None and layout.efforts is not None
        efforts = replace(layout.efforts, scale=np.array(gains), scaled=True)
        return replace(
            self.settings,
            layout=replace(layout, efforts=efforts),
            rows={**self.settings.rows, 'gains': []},
        )

    def published(self) -> dict[str, tuple[Gain, ...]]:
        """Return the gains that were published."""
        said = json.loads((self._data / PUBLISHED).read_text(encoding='utf-8'))
        return {
            name: tuple(Gain(float(value)) for value in said[key]) for name, key in SETS.items()
        }

    def light(self) -> str:
        """Return a description whose links have the same mass, and the shape that they had."""
        robot = Robot.from_urdf(self.urdf, **self.settings.robot)
        masses = robot.parameters[:, :1]
        return export_urdf(robot, robot.parameters * LIGHT / masses)


def compare_gains(data: Path, configs: Path) -> DriveGains:
    """
    Find the gains, weigh the payload with them and with published ones, and predict other logs.
    """
    arm = _Arm(data, configs)
    both, light = (UNLOADED, LOADED), arm.light()
    before, after = f'@:{SPLIT}', f'@{SPLIT}:'
    gains = {
        **arm.published(),
        BOTH: _gains(arm.found(both)),
        f'both {before}': _gains(arm.found([log + before for log in both])),
        f'both {after}': _gains(arm.found([log + after for log in both])),
        'least squares': _gains(arm.found(both, method='least_squares')),
        f'{LIGHT:g} kg a link': _gains(arm.found(both, urdf=light)),
        f'{LIGHT:g} kg, least squares': _gains(
            arm.found(both, urdf=light, method='least_squares')
        ),
    }
    known = {name: arm.known([gain.value for gain in gains[name]]) for name in SETS}
    own = arm.known([gain.value for gain in gains[BOTH]])
    return DriveGains(
        tuple(arm.settings.robot['joints']),
        float(arm.payload.payload.known()[0]),
        gains,
        {name: _weigh(arm, one) for name, one in {**known, BOTH: own}.items()},
        _predicted(arm, (UNLOADED, LOADED + before), {FOUND: arm.settings, **known}),
    )


def _gains(report: RobotIdentification) -> tuple[Gain, ...]:
    """Return the gains that were found, joint by joint."""
    return tuple(
        Gain(value, deviation)
        for _, extra, value, deviation in extra_values(report)
        if extra.term == Term.DRIVE_GAIN
    )


def _weigh(arm: _Arm, known: IdentifySettings) -> Weighed:
    """Return what the payload weighs with known gains."""
    unknown = replace(arm.payload, payload=replace(arm.payload.payload, mass=None))
    report = arm.found((UNLOADED, LOADED), replace(known, payloads=(unknown,)))
    name = unknown.payload.name
    ((mass, deviation),) = (
        (value, deviation)
        for _, extra, value, deviation in extra_values(report)
        if str(extra) == f'{name}.m'
    )
    none = replace(known, payloads=())
    first = arm.found([UNLOADED], none).fit
    second = arm.found([LOADED], none, urdf=export_urdf(first.robot, first.parameters)).fit
    return Weighed(mass, deviation, second.parameters[:, 0] - first.parameters[:, 0])


def _predicted(
    arm: _Arm, fitted: Sequence[str], settings: Mapping[str, IdentifySettings]
) -> dict[str, dict[str, tuple[float, ...]]]:
    """Return how well logs that are not fitted are predicted."""
    tested = {'loaded': (f'{LOADED}@{SPLIT}:',), 'other runs': OTHERS}
    return {
        logs: {
            name: _errors(arm.found(fitted, one, validate=paths)) for name, one in settings.items()
        }
        for logs, paths in tested.items()
    }


def _errors(report: RobotIdentification) -> tuple[float, ...]:
    """Return residual over effort of each joint, then of all of them together."""
    (block,) = report.fit.blocks
    unseen = unseen_evidence(report)[block.name]
    errors = [
        one.predicted / one.unseen
        for one in residuals(block, unseen)
        if one.kind.startswith(EFFORT)
    ]
    together = all_efforts(report)
    assert together is not None
    return (*errors, together.predicted / together.unseen)
