# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of a replay: streams, offsets, wrenches, torques against the robot's own."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from inertial_estimation.logs.check_figures import CrossChecks
from inertial_estimation.logs.plain import plain

DRIFT = 'drift of offsets that presume this weight, no check of it'
CHECK = 'check of the weight, unless the configured offsets presume it'


@dataclass(frozen=True)
class StreamReport:
    """How one stream behaved in the whole bag; times in seconds after the first FT message."""

    name: str
    received: int
    rate_hz: float
    longest_gap_s: float
    repeated: int
    invalid: int
    refused: int
    restarts: int
    unfiltered: int
    """Messages in use without derivatives, as the filter's window was not filled yet."""
    never_filtered: str
    """Why there never were derivatives; empty if there were, or none are filtered."""
    frozen_s: float
    """How long it stood still in all [s]."""
    frozen_intervals_s: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class OffsetReport:
    """What was subtracted from the readings of one FT sensor [N, Nm]."""

    sensor: str
    assumed: bool
    """
    It rests on joints that nobody reports.

    They are on the sensor's side without the support [T 4.28], and the torques, if these are the
    source, leave some direction of the offset to the model.
    """
    offset: tuple[float, ...]
    """[force; torque]."""
    deviation: tuple[float, ...] | None
    """
    Standard deviation of reading minus prediction of the model over the offset range.

    It is all that can speak against the support being the only contact [T Assumption 4.3]: one
    that comes and goes shows here, one that stays does not. None if the model had no say.
    """


@dataclass(frozen=True)
class WrenchReport:
    """External wrench of one contact over the judged part, in and about its frame [N, Nm]."""

    contact: str
    frame: str
    assumed: bool
    """It rests on joints that nobody reports, by itself or through the offset of a sensor."""
    n_samples: int
    mean: tuple[float, ...]
    rms: tuple[float, ...]
    standard_deviation: tuple[float, ...]
    """Mean of what the stated noise makes of it; infinite: the sensors do not tell it."""


@dataclass(frozen=True)
class TorqueReport:
    """Torque of one joint against what the robot itself reports, over the judged part."""

    joint: str
    assumed: bool
    """As of a wrench; but not through what the fit to this torque left to the model unfelt."""
    n_samples: int
    mean_error_nm: float
    rms_nm: float
    correlation: float
    lag_s: float
    rms_at_lag_nm: float
    rms_without_lag_nm: float
    """On the instants of `rms_at_lag_nm`: those without a gap within the longest lag."""
    n_at_lag: int
    """How many of `n_samples` these are."""
    standard_deviation_nm: float
    """As of a wrench."""


@dataclass(frozen=True)
class EstimatedTorqueReport:
    """Torque of one joint, or what external wrenches do to it, over the judged part."""

    joint: str
    assumed: bool
    """As of a wrench."""
    n_samples: int
    mean: float
    """[Nm], [N] for a prismatic joint."""
    rms: float
    """Likewise."""
    standard_deviation: float
    """Likewise, as of a wrench."""


@dataclass(frozen=True)
class ResidualReport:
    """What a submodel feels while no contact takes up all of it, over the judged part [N, Nm]."""

    submodel: str
    """Its root link, in and about whose frame the residual is."""
    assumed: bool
    """It rests on joints that nobody reports by itself; offsets are not followed here."""
    n_samples: int
    mean: tuple[float, ...]
    rms: tuple[float, ...]
    standard_deviation: tuple[float, ...]
    """As of a wrench."""


@dataclass(frozen=True)
class CauseReport:
    """Why some results are NaN, or rest on more than the sensors, in some of the samples."""

    cause: str
    """In words."""
    kind: str
    """``start``, ``joint``, ``imu``, ``ft``, ``contact``, or ``offset`` (of an FT sensor)."""
    name: str
    """Of the joint, sensor, or contacts; empty for ``start``."""
    state: str
    """`SensorState` in lower case, or ``no_velocity``, ``undetermined``, ``starting``."""
    n_samples: int
    sample_share: float
    """In how many of all estimated samples it was so, from 0 to 1."""
    first_s: float
    """First such sample."""
    last_s: float
    """Last such sample; not all between need be."""
    nan_contacts: tuple[str, ...]
    """NaN for this cause."""
    gave_way_to: tuple[str, ...]
    """Contacts that took the place of those, where a failed FT sensor merged submodels."""
    nan_torques: tuple[str, ...]
    doubtful_contacts: tuple[str, ...]
    """Not NaN: assumed, merged or not told apart."""
    doubtful_torques: tuple[str, ...]


@dataclass(frozen=True)
class SupportDoubt:
    """Why the support may not have been the only contact in the offset range."""

    contact: str
    """A configured contact elsewhere, or the root link of a submodel without one."""
    level_share: float
    """Share of the samples in which it is as high as the support, from 0 to 1."""
    load_change_n: float
    """Standard deviation of the force that its submodel feels in the range."""
    weight_n: float
    """Of the robot."""

    @property
    def text(self) -> str:
        """What was seen, in words."""
        share = self.load_change_n / self.weight_n
        level = f'is level with the support for {self.level_share:.0%} of it, '
        return (
            f'{self.contact} {level if self.level_share else ""}feels a force that changes by '
            f'{self.load_change_n:.1f} N ({share:.0%} of the weight, standard deviation)'
        )


@dataclass(frozen=True)
class SupportReport:
    """
    The force at the fixed link against the robot's weight, over the judged part.

    Where the model has a say in the offsets this is no check of the weight. Directions of an
    offset that the torques do not see (the vertical one of a foot among them), or with ``model``
    all of them, are such that the support carried the weight of this very model in the offset
    range [T 4.28]. The difference then tells how the offsets drifted from there to the judged
    part, and how the sensors err in its other poses.
    """

    meaning: str
    """What `relative_error` is: `DRIFT` or `CHECK`."""
    contact: str
    assumed: bool
    """As of its wrench."""
    n_samples: int
    mean_upward_force_n: float
    weight_n: float
    """Of the model."""
    relative_error: float
    """Of the mean upward force; see `meaning`."""


@dataclass(frozen=True)
class ReplayReport:
    """All figures of a replay; `as_dict` for a machine, `logs.tables` for a person."""

    robot: str
    n_samples: int
    time_range_s: tuple[float, float]
    """First and last estimated sample."""
    judged_s: float
    """How much of it was not used for the offsets [s]."""
    offset_source: str
    offset_basis: str
    """The source, and what its offsets presume."""
    offset_support: str
    """Frame of the contact that is presumed to be the only one; empty: nothing is presumed."""
    offset_range_s: tuple[float, float] | None
    offset_samples: int
    offsets: tuple[OffsetReport, ...]
    fts: tuple[StreamReport, ...]
    imus: tuple[StreamReport, ...]
    joint_states: tuple[StreamReport, ...]
    assumed_joints: tuple[str, ...]
    ignored_joints: tuple[str, ...]
    wrenches: tuple[WrenchReport, ...]
    torques: tuple[TorqueReport, ...]
    support: SupportReport | None
    estimated_torques: tuple[EstimatedTorqueReport, ...] = ()
    """Of all joints, whether the robot reports theirs or not."""
    external_torques: tuple[EstimatedTorqueReport, ...] = ()
    """What the external wrenches do to each joint; none without contacts."""
    external_torque_base: str = ''
    """Frame that these take to be at rest."""
    residuals: tuple[ResidualReport, ...] = ()
    causes: tuple[CauseReport, ...] = ()
    """Why results are NaN or in doubt; none if everything is measured."""
    offset_doubts: tuple[SupportDoubt, ...] = ()
    """What speaks against the presumed support."""
    checks: CrossChecks = field(default_factory=CrossChecks)
    """Momentum, sensors against each other, what results rest on, wrenches through joints."""
    warnings: tuple[str, ...] = ()
    """What the configuration should be changed for."""

    @property
    def summary(self) -> str:
        """One sentence."""
        start, stop = self.time_range_s
        frozen = [ft.name for ft in self.fts if ft.frozen_intervals_s]
        text = (
            f'{self.robot}: {self.n_samples} samples from {start:.2f} s to {stop:.2f} s, '
            f'{self.judged_s:.1f} s of it judged, offsets from {self.offset_basis}'
        )
        if not self.wrenches:
            text += '; no contact is assumed, what the robot feels is in the residuals'
        for stream in (*self.joint_states, *self.imus):
            if stream.never_filtered:
                text += f'; no derivatives of {stream.name}: {stream.never_filtered}'
        return f'{text}; frozen: {", ".join(frozen)}' if frozen else text

    def as_dict(self) -> dict[str, Any]:
        """Return the figures for a machine."""
        found: dict[str, Any] = plain({'summary': self.summary, **asdict(self)})
        return found
