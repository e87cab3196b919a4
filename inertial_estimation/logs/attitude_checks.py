# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""What the IMUs of a log should have reported of their orientation, minus what they did."""

from __future__ import annotations

import numpy as np

from inertial_estimation.estimation.attitude_residuals import orientation_residuals
from inertial_estimation.estimation.momentum_verdict import NOISE_FACTOR, PART
from inertial_estimation.estimation.relative_rotation import RelativeRotations
from inertial_estimation.estimation.robust_means import robust_rotation
from inertial_estimation.logs.check_figures import SensorResidualReport
from inertial_estimation.logs.replay import Replay
from inertial_estimation.logs.situations import Indices, Mask
from inertial_estimation.sample import Array

MOST_INSTANTS = 200
"""Evenly spread, as for the other sensors."""
FEWEST = 10
"""Fewer instants than this raise no doubt."""
ORDINARY = np.radians(2.0)
"""Deviation of a good attitude filter that moves, whatever it states [rad]."""


def attitude_reports(replay: Replay, judged: Mask) -> tuple[SensorResidualReport, ...]:
    """
    Predict orientations of IMUs from each other, or from the fixed link, in a log.

    judged (n,).
    """
    told, samples, robot = replay.recording.orientations, replay.recording.samples, replay.robot
    if told is None:
        return ()
    rows = _choose(judged if judged.any() else np.ones_like(judged))
    ref_R_S = told.at(samples.stamp_ns[rows])
    found = orientation_residuals(robot, samples.positions[rows], ref_R_S, told.names)
    own = np.array([max(track.deviation, ORDINARY) for track in told.tracks])
    sources = RelativeRotations(robot, told.names).sources
    noise = np.hypot(own, [own[m] if m >= 0 else 0.0 for m in sources])
    return tuple(
        _report(name, found.rotations[:, k], ref_R_S[:, k], float(noise[k]))
        for k, name in enumerate(told.names)
    )


def _choose(judged: Mask) -> Indices:
    """Return evenly spread instants."""
    rows = np.flatnonzero(judged)
    places = np.linspace(0, len(rows) - 1, min(len(rows), MOST_INSTANTS)).round()
    return np.asarray(rows[np.unique(places.astype(np.intp))])


def _report(name: str, rotations: Array, ref_R_S: Array, noise: float) -> SensorResidualReport:
    """Sum up residuals (n, 3) [rad] at the instants where there are some."""
    known = np.isfinite(rotations).all(axis=1)
    n = int(known.sum())
    values, turned = np.degrees(rotations[known]), np.degrees(_turned(ref_R_S[known]))
    lengths = np.linalg.norm(values, axis=1)
    rms, rms_turned = (float(np.sqrt(np.mean(v**2))) if n else np.nan for v in (lengths, turned))
    noise = float(np.degrees(noise))
    return SensorResidualReport(
        sensor=name,
        kind='imu',
        quantity='orientation',
        unit='deg',
        n_instants=n,
        mean=tuple(values.mean(axis=0).tolist()) if n else (np.nan,) * 3,
        rms=rms,
        largest=float(lengths.max()) if n else np.nan,
        rms_reading=rms_turned,
        rms_change=rms_turned,
        noise=noise,
        noise_is_whole=True,
        constant=False,
        doubtful=bool(n >= FEWEST and rms > PART * rms_turned and rms > NOISE_FACTOR * noise),
    )


def _turned(ref_R_S: Array) -> Array:
    """Return the angles to the mean, shape (n,) [rad]."""
    turned = robust_rotation(ref_R_S).T @ ref_R_S
    cosines = (np.trace(turned, axis1=1, axis2=2) - 1.0) / 2.0
    return np.asarray(np.arccos(np.clip(cosines, -1.0, 1.0)))
