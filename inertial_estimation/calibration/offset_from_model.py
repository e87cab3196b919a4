# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from the model while nothing but some supports touches the robot [T section 4.7].

With one support the offset is the mean of reading minus prediction. With several, the sharing of
the load is unknown: what it changes is projected out at each sample, and combinations of offsets
that look like another sharing in all poses are not determined. Another constant contact becomes a
part of the offsets [T Assumption 4.3], and so does the weight of a mass dm that the model lacks,
unless it turns with gravity: force = offset + s dm g.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

import inertial_estimation.calibration.residual_statistics as stats
from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import (
    OFFSETS_FROM_MODEL,
    Provenance,
    SensorCalibration,
)
from inertial_estimation.calibration.still_samples import (
    PoseErrors,
    compare_poses,
    find_still,
    wrong_scales,
)
from inertial_estimation.calibration.support_loads import second_supports, support_loads
from inertial_estimation.errors import CalibrationError, ModelError, OffsetsNotUnique
from inertial_estimation.estimation.reading_checks import without_leaps
from inertial_estimation.estimation.wrench_estimator import SampleShapes, WrenchEstimator
from inertial_estimation.findings import Finding, Level, finding
from inertial_estimation.model.arguments import indices, names
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.spatial import apply
from inertial_estimation.sample import SampleBatch

MIN_SAMPLES = 10
LEAST_NOISE = np.repeat([0.1, 0.01], 3)
"""Of readings that are compared with the model, standard deviation [N, Nm]."""
MIN_SHOWN = 0.3
"""Share of a combination of offsets that readings must show: below, errors grow threefold."""
SHARE_ROUND_OFF, RANK_ROUND_OFF = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class ModelOffsets:
    """Offsets from the model."""

    supports: tuple[str, ...]
    """Frames that were presumed to be the only contacts."""
    silent: dict[str, str]
    """Sensors that were not named and whose offsets were not found, with the reason."""
    calibration: FtCalibration
    """With the offsets found; those of other sensors are unchanged."""
    found: Mask
    """Shape (n_fts,)."""
    unique: Mask
    """Offsets that the data determine, without an assumed sharing of the load, shape (n_fts,)."""
    undetermined: Array
    """Combinations of offsets that are not determined, moments over 0.1 m, shape (k, n_fts, 6)."""
    poses: dict[str, PoseErrors]
    """By sensor; of those that share no load and were held in two poses or more."""
    spread: Array
    """Standard deviation of reading minus prediction, NaN: none, shape (n_fts, 6) [N, Nm]."""
    deviations: Array
    """As means of correlated samples, without constant model errors, shape (n_fts, 6)."""
    n_samples: NDArray[np.int64]
    """Samples that were used for each sensor, shape (n_fts,)."""
    left_out: dict[str, int]
    """Other samples by reason."""
    assumed: Mask
    """Offsets that depend on an assumed joint, shape (n_fts,)."""
    temperatures: Array
    """Mean of each sensor [degrees Celsius]; NaN: not known, shape (n_fts,)."""
    findings: tuple[Finding, ...]
    """Offsets that are not unique, contradictions, poses that differ, and further supports."""

    @property
    def offsets(self) -> Array:
        """Offsets of all sensors, shape (n_fts, 6), subtracted [N, Nm]."""
        return self.calibration.offsets

    def calibrations(
        self, before: Mapping[str, SensorCalibration], date: str
    ) -> dict[str, SensorCalibration]:
        """Return the calibrations of the sensors whose offsets were found, in place of a tare."""
        changed = {}
        kind = 'supports' if len(self.supports) > 1 else 'one support'
        for k, (name, sensor) in enumerate(before.items()):
            if not self.found[k]:
                continue
            notes = [
                one.text if one.subject == name else str(one)
                for one in self.findings
                if one.subject == name or one.subject not in before
            ] + ['depends on assumed joints'] * bool(self.assumed[k])
            step = Provenance(
                f'{OFFSETS_FROM_MODEL}, {kind}: {", ".join(self.supports)}', date,
                self.n_samples[k], self.temperatures[k], self.spread[k], notes,
            )  # fmt: skip
            earlier = sensor.provenance[:-1] if sensor.is_tared else sensor.provenance
            changed[name] = replace(sensor, offset=self.offsets[k], provenance=(*earlier, step))
        return changed


def offset_from_model(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    supports: Sequence[str],
    *,
    sensors: Sequence[str] | None = None,
    accept_split: bool = False,
    moving: bool = False,
    felt: Mask | None = None,
    min_samples: int = MIN_SAMPLES,
    noisy: bool = True,
) -> ModelOffsets:
    """
    Identify the offsets of FT sensors from the model.

    Parameters
    ----------
    estimator : WrenchEstimator
        Robot, inertial parameters and calibration: matrices and temperature coefficients are
        applied, offsets are identified. Its contacts may be further supports, which is a finding.
        It is not changed.
    samples : SampleBatch
        Readings while the supports carry the robot, in the order of their stamps.
    supports : sequence of str
        Frames at which the environment touches the robot, with any wrench; nowhere else.
    sensors : sequence of str, optional
        FT sensors whose offsets are wanted. Default: all that can be determined.
    accept_split : bool
        Assume the smallest support wrenches where the data do not determine the sharing.
    moving : bool
        Use samples in motion as well.
    felt : ndarray of bool, shape (n,), optional
        Samples with other touches, as of a skin. Default: none.
    min_samples : int
        Fewer are refused.
    noisy : bool
        Sensors have noise: a channel that never changes while others do is dead.

    Returns
    -------
    ModelOffsets

    Raises
    ------
    OffsetsNotUnique
        If the sharing of the load is not determined, and `accept_split` is not set.
    CalibrationError
        If too few samples are left, or a sensor that was named has no reading or a dead channel.
    ModelError, NameNotFound, ShapeError
        If arguments are inconsistent, or name what the robot does not have.

    """
    robot, calibration = estimator.robot, estimator.calibration
    SampleShapes(robot).check(samples)
    supports = names('supports', supports)
    if not supports:
        raise ModelError("'supports' is empty", about=('supports',))
    if not robot.ft_sensors:
        raise CalibrationError(f"robot '{robot.name}' has no FT sensor")
    if (np.diff(samples.stamp_ns) < 0).any():
        raise ModelError('the stamps of the samples go back')
    n, fts = len(samples), [sensor.name for sensor in robot.ft_sensors]
    felt = np.zeros(n, dtype=bool) if felt is None else np.asarray(felt, dtype=bool)
    stats.require_shape('felt', felt, n)
    samples, leaps = without_leaps(robot, samples)
    bare = calibration.with_offsets(np.zeros_like(calibration.offsets))
    wrenches = bare.apply(samples.ft_readings, samples.ft_temperatures)
    loads = support_loads(estimator, samples, supports)
    differences = wrenches - loads.readings
    known = np.isfinite(differences).all(axis=2)
    reasons = [
        _why_silent(samples, calibration, k, noisy)
        # With few samples it would limit those that share its load.
        or (count < min_samples) * f'{count} readings with a prediction, {min_samples} are needed'
        for k, count in enumerate(known.sum(axis=0).tolist())
    ]
    asked = indices('sensors', sensors, 'FT sensor', fts) if sensors else range(len(fts))
    lacking = [f"'{fts[k]}': {reasons[k]}" for k in asked if reasons[k]]
    if lacking and (sensors or len(lacking) == len(fts)):
        raise CalibrationError(f'FT sensor {"; ".join(lacking)}', about=('sensors',))
    chosen = np.array([k in asked and not reasons[k] for k in range(len(fts))], dtype=bool)
    known &= chosen
    # The sharing is found at each sample, from all sensors that depend on it.
    shared = chosen & loads.shared
    known[:, shared] = known[:, shared].all(axis=1, keepdims=True)
    differing = np.where(known[..., None], differences, np.nan)
    scale = np.tile(stats.SCALE, int(shared.sum()))
    freedom = loads.freedom[:, shared].reshape(n, len(scale), 6 * len(supports)) / scale[:, None]
    project = np.eye(len(scale)) - freedom @ np.linalg.pinv(freedom, rcond=RANK_ROUND_OFF)
    white = differences[:, shared].reshape(n, len(scale)) / scale
    unshared = differing.copy()
    unshared[:, shared] = (apply(project, white) * scale).reshape(n, -1, 6)
    still, left_out, signs, labels = find_still(
        robot, samples, loads, wrenches, unshared, felt, moving
    )
    used = known & still[:, None]
    left_out['missing'] = int((still & ~known[:, chosen].all(axis=1)).sum())
    counts = used.sum(axis=0)
    found = chosen & (counts >= min_samples)
    if not found.any() or (sensors and not found[chosen].all()):
        shown = f' ({"; ".join(signs[:3])})' if signs else ''
        others = ', '.join(f'{count} {reason}' for reason, count in left_out.items() if count)
        raise CalibrationError(
            f'{counts[chosen & ~found].min()} of {n} samples can be used, {min_samples} are '
            f'needed; left out: {others}{shown}'
        )
    undetermined = np.zeros((0, len(fts), 6))
    if (found & shared).any():
        at = used[:, shared].all(axis=1)
        each, hidden = _without_sharing(white[at], project[at])
        differing[np.ix_(at, shared)] = (each * scale).reshape(len(each), -1, 6)
        undetermined = np.zeros((len(hidden), len(fts), 6))
        undetermined[:, shared] = hidden.reshape(-1, int(shared.sum()), 6)
    unsure: Mask = np.logical_or.reduce(np.abs(undetermined) > SHARE_ROUND_OFF, axis=(0, 2))
    unsure_names = tuple(fts[k] for k in np.flatnonzero(unsure))
    if unsure_names and not accept_split:
        raise OffsetsNotUnique(
            f'{" and ".join(supports)} share the load, which does not determine the offsets of '
            f"{', '.join(unsure_names)}: stand on one support, or set 'accept_split'",
            unsure_names,
        )
    text = f'{" and ".join(supports)} share the load, smallest wrenches assumed'
    findings = [*leaps, *(finding('unexcited', name, what=text) for name in unsure_names)]
    offsets, poses = calibration.offsets.copy(), {}
    spread, deviations = np.full((2, len(fts), 6), np.nan)
    temperatures = np.full(len(fts), np.nan)
    if samples.ft_temperatures is not None:
        warm = np.where(used, samples.ft_temperatures, np.nan)
        count = np.isfinite(warm).sum(axis=0)
        temperatures = np.nansum(warm, axis=0) / np.where(count, count, np.nan)
    for k in np.flatnonzero(found):
        at = used[:, k]
        own = differing[at, k]
        offsets[k], spread[k] = own.mean(axis=0), own.std(axis=0)
        deviations[k] = stats.deviations_of_means(own)
        if not (moving or unsure[k]):
            load = np.sqrt(((wrenches[at, k] - offsets[k]) ** 2).mean(axis=0))
            touched = 1.0 - counts[k] / (counts[k] + left_out['touched'] - felt.sum())
            what = 'still samples'
            findings += stats.contradictions(fts[k], what, spread[k], load, LEAST_NOISE, touched)
        if moving and not shared[k]:
            findings += wrong_scales(fts[k], own, loads.readings[at, k])
        elif not shared[k]:
            compared = compare_poses(
                fts[k], own - offsets[k], loads.pulls[at, k], labels[at],
                loads.readings[at, k],
            )  # fmt: skip
            if compared is None:
                what = 'one pose does not show errors of the model, or a wrong sign of readings'
                findings.append(finding('unexcited', fts[k], level=Level.INFO, what=what))
            else:
                poses[fts[k]], more = compared
                findings += more
    # Readings with a wrong sign or unit look like another contact.
    if len(supports) == 1 and not any(one.code == 'scale' for one in findings):
        rows = used.any(axis=1)
        findings += second_supports(
            robot, samples.take(np.flatnonzero(rows)), differences[rows], supports[0],
            estimator.contacts,
        )  # fmt: skip
    silent = {
        name: reasons[k] or f'{counts[k]} samples can be used, {min_samples} are needed'
        for k, name in enumerate(fts)
        if not found[k] and not sensors
    }
    return ModelOffsets(
        supports, silent, calibration.with_offsets(offsets), found, found & ~unsure, undetermined,
        poses, spread, deviations, np.where(found, counts, 0), left_out, found & loads.assumed,
        temperatures, tuple(findings),
    )  # fmt: skip


def _why_silent(samples: SampleBatch, calibration: FtCalibration, k: int, is_noisy: bool) -> str:
    """Return the reason for which readings of sensor k are not used; empty: they are."""
    readings = samples.ft_readings[:, k]
    reads = np.isfinite(readings).all(axis=1)
    if not reads.any():
        return 'no reading, or all of them are stale or frozen'
    if calibration.needs_temperature[k]:
        given = samples.ft_temperatures
        warmth = np.full(len(samples), np.nan) if given is None else given[:, k]
        warmth = warmth[reads & np.isfinite(warmth)]
        if reason := stats.implausible(warmth) if len(warmth) else 'no temperature':
            return reason
    dead = stats.constant_channels(readings)
    return f'channel {stats.names_of(dead)} never changes' if is_noisy and dead.any() else ''


def _without_sharing(white: Array, project: Array) -> tuple[Array, Array]:
    """
    Return the part of offsets that each sample determines, and combinations that none does.

    white (n, m): differences of the sensors that share the load, in newtons; project (n, m, m)
    removes what the sharing changes; returns (n, m) and (j, m).
    """
    start = white.mean(axis=0)
    seen = (project @ (white - start)[..., None])[..., 0]
    shown, directions = np.linalg.eigh(project.mean(axis=0))
    shows = shown > MIN_SHOWN**2
    basis = directions[:, shows]
    # With one pose a direction shows fully or not at all, and this changes nothing.
    offsets = start + basis @ (seen.mean(axis=0) @ basis / shown[shows])
    # About the offsets: about the start, poses would differ by what they show of the change.
    off = white - offsets
    left = (project @ off[..., None])[..., 0]
    each: Array = white - off @ basis @ basis.T + (left @ basis) / shown[shows] @ basis.T
    return each, directions[:, ~shows].T
