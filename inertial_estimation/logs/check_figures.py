# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""The figures of what speaks for or against an estimate, and of what it rests on."""

from __future__ import annotations

from dataclasses import dataclass

from inertial_estimation.estimation.grounds import Grounds, Uninformed


@dataclass(frozen=True)
class MomentumFigures:
    """Whether the momentum changes as the wrenches say [T 2.84, 2.85], over all samples."""

    windows: int
    """Of half a second each."""
    unexplained_force_n: float
    """Root mean square over the windows."""
    unexplained_moment_nm: float
    """Likewise, about the centre of mass."""
    change_of_linear_momentum_n: float
    """Root mean square of the mean rate in a window."""
    change_of_angular_momentum_nm: float
    """Likewise."""
    noise_force_n: float
    """What noise leaves unexplained, about; NaN: not known."""
    noise_moment_nm: float
    """Likewise."""
    doubtful_s: tuple[tuple[float, float], ...]
    """Stretches of up to ten seconds in which more is unexplained than noise does [s]."""
    noise_lack: str = ''
    """Why the noise is not known, so that nothing is doubted; empty: it is."""
    advice: str = ''
    """What to look at where it is doubtful."""


@dataclass(frozen=True)
class MotionReport:
    """Where the motion of some links or joints comes from while all sensors deliver."""

    kind: str
    """``links`` with IMUs, the fixed ``link``, ``joints``, or ``assumed joints``."""
    names: tuple[str, ...]
    text: str
    """As in the diagnostics of the node; what is neglected is called so."""


@dataclass(frozen=True)
class SituationReport:
    """What results rest on [T Theorem 4.2] while the same contacts and sensors take part."""

    label: str
    """What differs from all sensors and the default contacts."""
    contacts: tuple[str, ...]
    """Names of those that take part."""
    kinds: tuple[str, ...]
    """What is unknown at each of them."""
    fts: tuple[str, ...]
    """FT sensors in use."""
    imus: tuple[str, ...]
    """IMUs in use, or the fixed link."""
    n_samples: int
    sample_share: float
    """Of all estimated samples, from 0 to 1."""
    first_s: float
    """First such sample."""
    last_s: float
    """Last such sample; not all between need be."""
    torques: tuple[Grounds, ...]
    wrenches: tuple[Grounds, ...]
    uninformed: tuple[Uninformed, ...]
    """Torques that no FT sensor informs."""


@dataclass(frozen=True)
class SensorResidualReport:
    """What a sensor should have read, given all others, minus what it read."""

    sensor: str
    kind: str
    """``ft`` or ``imu``."""
    quantity: str
    """``force``, ``moment``, ``angular_velocity`` or ``acceleration``."""
    unit: str
    n_instants: int
    """At which the others tell it; 0: they never do."""
    mean: tuple[float, ...]
    """For each axis of the sensor, shape (3,)."""
    rms: float
    """Of its length."""
    largest: float
    """Likewise."""
    rms_reading: float
    """Of the length of what was read, at the same instants."""
    rms_change: float
    """Of what was read minus its mean: how much the reading changed."""
    noise: float
    """Root mean square that noise leaves of the residual."""
    noise_is_whole: bool
    """Else that of filters is not in it, as nobody can state it."""
    constant: bool
    """The residual is mostly constant, as that of a bias."""
    doubtful: bool
    """
    More is left than four times the noise and a quarter of the change (that of the sensor which it
    is predicted from if that is more), or it is constant and more than twice the noise.
    """


@dataclass(frozen=True)
class ThroughReport:
    """The whole wrench through a joint [T 4.23], parent link on child link, over all samples."""

    joint: str
    frame: str
    """Child link, in and about whose frame it is."""
    n_samples: int
    """In which it is known."""
    nan_share: float
    """Of all estimated samples, from 0 to 1."""
    rms_force_n: float
    max_force_n: float
    rms_moment_nm: float
    max_moment_nm: float
    obtained: tuple[str, ...]
    """How, most frequent first, with the share of the samples."""


@dataclass(frozen=True)
class NetReport:
    """The net wrench of a link [T 4.9], in and about its frame, over all samples."""

    link: str
    n_samples: int
    """In which it is known."""
    nan_share: float
    """Of all estimated samples, from 0 to 1."""
    rms_force_n: float
    max_force_n: float
    rms_moment_nm: float
    max_moment_nm: float


@dataclass(frozen=True)
class CrossChecks:
    """What a replay says about itself."""

    momentum: MomentumFigures | None = None
    """None: no window of the log tells."""
    motions: tuple[MotionReport, ...] = ()
    """Where velocities and accelerations come from."""
    situations: tuple[SituationReport, ...] = ()
    """The usual one first, then the most frequent."""
    situations_left_out: int = 0
    """Rare ones that are not looked into."""
    sensor_residuals: tuple[SensorResidualReport, ...] = ()
    residual_instants: int = 0
    """At how many instants sensors were predicted from each other."""
    through: tuple[ThroughReport, ...] = ()
    net: tuple[NetReport, ...] = ()
