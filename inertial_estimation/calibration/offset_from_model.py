# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
FT offsets from the model while nothing but some supports touches the robot [T section 4.7].

With one support all readings are predicted, and the offset is the mean of reading minus
prediction. With several, the sharing of the load is unknown: what it changes is projected out at
each sample, and combinations of offsets that look like another sharing in all poses are not
determined; for them the smallest support wrenches are assumed, if the caller accepts that.

The supports are presumed to be the only contacts [T Assumption 4.3]; another constant contact
becomes a part of the offsets. An offset is constant in the sensor's frame, whatever the pose; the
weight of a mass dm that the model lacks turns with gravity: force = offset + s dm g.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.calibration.calibration_file import Provenance, SensorCalibration
from inertial_estimation.calibration.channels import constant_channels, names_of
from inertial_estimation.calibration.residual_statistics import (
    deviations_of_means,
    finite,
    require_shape,
)
from inertial_estimation.calibration.still_samples import Stillness, StillSamples, find_still
from inertial_estimation.calibration.support_loads import SupportLoads, support_loads
from inertial_estimation.calibration.temperature import implausible
from inertial_estimation.errors import (
    CalibrationError,
    ModelError,
    OffsetsNotUnique,
)
from inertial_estimation.estimation.contacts import noise_scale
from inertial_estimation.estimation.faults import SampleShapes, with_known_temperatures
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.findings import Finding, finding
from inertial_estimation.model.arguments import indices, names, numbers
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

METHOD = 'offsets from the model'
DEFAULT_LENGTH_SCALE = 0.1
MIN_SAMPLES = 10
MIN_SHOWN = 0.3
"""
Share of a combination of offsets that readings must show with the sharing projected out: below it
model errors would be magnified by three and more.
"""
SHARE_ROUND_OFF, RANK_ROUND_OFF, TINY = 1e-6, 1e-9, 1e-300
MIN_POSE_SAMPLES = 10
MIN_TURN = np.deg2rad(15.0)
"""Of gravity in a sensor, from which poses show errors of the model, magnified by four then."""
POSE_DEVIATIONS, MIN_POSE_DIFFERENCE = 3.0, np.array([0.3, 0.03])
"""Difference between poses that is reported: over its noise, and at least [N, Nm]."""
MASS_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class PoseErrors:
    """Differences of a sensor's readings between poses."""

    residuals: Array
    """Mean of reading minus prediction and offset in each pose, shape (n_poses, 6) [N, Nm]."""
    turn: float
    """Largest angle between gravity in two poses, in the sensor's axes [rad]."""
    differing: Array
    """Root mean square about the mean of poses, force and moment, (2,) [N, Nm]; NaN: no pose."""
    noise: Array
    """Of the means, likewise."""
    mass: float
    """That explains the differences best [kg]; NaN if gravity does not turn enough."""

    @property
    def is_significant(self) -> bool:
        """True if poses differ by more than noise."""
        limit = np.maximum(POSE_DEVIATIONS * self.noise, MIN_POSE_DIFFERENCE)
        return len(self.residuals) > 1 and bool((self.differing > limit).any())


@dataclass(frozen=True, eq=False)
class ModelOffsets:
    """Offsets from the model."""

    supports: tuple[str, ...]
    """Frames that were presumed to be the only contacts."""
    sensors: tuple[str, ...]
    """FT sensors whose offsets were found, in the order of the robot's."""
    silent: dict[str, str]
    """Other sensors, with the reason; empty if sensors were named."""
    calibration: FtCalibration
    """With the offsets found; those of other sensors are unchanged."""
    found: Mask
    """Shape (n_fts,)."""
    unique: Mask
    """Offsets that the data determine, without an assumed sharing of the load, shape (n_fts,)."""
    undetermined: Array
    """
    Combinations of offsets that the data do not determine, moments over the length scale,
    shape (k, n_fts, 6).
    """
    poses: dict[str, PoseErrors]
    """By sensor; of those that share no load."""
    spread: Array
    """
    Standard deviation of reading minus prediction [N, Nm]; NaN where nothing was found, shape
    (n_fts, 6).
    """
    deviations: Array
    """
    Of the offsets, as means of correlated samples; constant model errors are no part, shape
    (n_fts, 6).
    """
    n_samples: NDArray[np.int64]
    """Samples that were used for each sensor, shape (n_fts,)."""
    left_out: dict[str, int]
    """Other samples by reason."""
    assumed: Mask
    """Offsets that depend on an assumed joint, shape (n_fts,)."""
    temperatures: Array
    """Mean of each sensor [degrees Celsius]; NaN: not known, shape (n_fts,)."""
    used: Mask = field(repr=False)
    """Samples by sensor, shape (n, n_fts)."""
    differences: Array = field(repr=False)
    """Reading minus prediction at all samples [N, Nm]; NaN: not known, shape (n, n_fts, 6)."""
    loads: SupportLoads = field(repr=False)
    """The prediction."""

    @property
    def offsets(self) -> Array:
        """Offsets of all sensors, shape (n_fts, 6), subtracted [N, Nm]."""
        return self.calibration.offsets

    @property
    def is_unique(self) -> bool:
        """True if the data determine all offsets that were found."""
        return bool(self.unique[self.found].all())

    def findings(self, names: Sequence[str]) -> Iterator[Finding]:
        """Yield offsets that are not unique, and poses that differ; names of all FT sensors."""
        for k, name in enumerate(names):
            if self.found[k] and not self.unique[k]:
                text = f'{" and ".join(self.supports)} share the load, smallest wrenches assumed'
                yield finding('unexcited', name, what=text)
        for name, poses in self.poses.items():
            if poses.is_significant:
                text = (
                    f'reading minus prediction differs by {poses.differing[0]:.2g} N, '
                    f'{poses.differing[1]:.2g} Nm between {len(poses.residuals)} poses'
                )
                if np.isfinite(poses.mass):
                    text += f', best explained by {poses.mass:+.2f} kg'
                yield finding('offset_drift', name, what=text)

    def calibrations(
        self,
        before: Mapping[str, SensorCalibration],
        date: str,
        findings: Sequence[Finding] = (),
    ) -> dict[str, SensorCalibration]:
        """Return the calibrations of the sensors whose offsets were found, in place of a tare."""
        changed = {}
        kind = 'supports' if len(self.supports) > 1 else 'one support'
        every = (*self.findings(tuple(before)), *findings)
        for k, (name, sensor) in enumerate(before.items()):
            if not self.found[k]:
                continue
            notes = [
                one.text if one.subject == name else str(one)
                for one in every
                if one.subject == name or one.subject not in before
            ]
            if self.assumed[k]:
                notes.append('depends on assumed joints')
            step = Provenance(
                f'{METHOD}, {kind}: {", ".join(self.supports)}', date, int(self.n_samples[k]),
                float(self.temperatures[k]), tuple(self.spread[k].tolist()), tuple(notes),
            )  # fmt: skip
            earlier = sensor.provenance[:-1] if is_tared(sensor) else sensor.provenance
            changed[name] = replace(sensor, offset=self.offsets[k], provenance=(*earlier, step))
        return changed


def is_tared(sensor: SensorCalibration) -> bool:
    """Return True if an offset from the model was the last step of a calibration."""
    return bool(sensor.provenance) and sensor.provenance[-1].method.startswith(METHOD)


def offset_from_model(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    supports: Sequence[str],
    *,
    sensors: Sequence[str] | None = None,
    accept_split: bool = False,
    stillness: Stillness | None = Stillness(),  # noqa: B008, it is frozen
    felt: Mask | None = None,
    length_scale: float = DEFAULT_LENGTH_SCALE,
    min_samples: int = MIN_SAMPLES,
    noisy: Mask | None = None,
) -> ModelOffsets:
    """
    Identify the offsets of FT sensors from the model.

    Parameters
    ----------
    estimator : WrenchEstimator
        Robot, inertial parameters and calibration: matrices and temperature coefficients are
        applied, offsets are identified. It is not changed.
    samples : SampleBatch
        Readings while the supports carry the robot, in the order of their stamps.
    supports : sequence of str
        Frames at which the environment touches the robot, with any wrench; nowhere else.
    sensors : sequence of str, optional
        FT sensors whose offsets are wanted. Default: all that can be determined.
    accept_split : bool
        Assume the smallest support wrenches where the data do not determine the sharing.
    stillness : Stillness, optional
        Limits of motion. None: use all samples.
    felt : ndarray of bool, shape (n,), optional
        Samples with other touches, as of a skin. Default: none.
    length_scale : float
        Moment over force that counts as equally large [m].
    min_samples : int
        Fewer are refused.
    noisy : ndarray of bool, shape (n_fts,), optional
        Sensors with noise: a channel that never changes while others do is dead. Default: all.

    Returns
    -------
    ModelOffsets

    Raises
    ------
    OffsetsNotUnique
        If the sharing of the load is not determined, and `accept_split` is not set.
    CalibrationError
        If too few samples are left, or a sensor that was named has no reading or a dead channel.
    ModelError, NameNotFound, FrameNotFound, ShapeError
        If arguments are inconsistent, or name what the robot does not have.

    """
    robot, calibration = estimator.robot, estimator.calibration
    SampleShapes(robot).check_batch(samples)
    supports = names('supports', supports)
    for k, support in enumerate(supports):
        robot.frame(support, f"'supports' names '{support}'")
        if support in supports[:k]:
            raise ModelError(f"'supports' names '{support}' twice", about=('supports',))
    if not supports:
        raise ModelError("'supports' is empty", about=('supports',))
    if not numbers('length_scale', length_scale, ()) > 0.0:
        raise ModelError(f'length_scale is {length_scale}, expected a positive length')
    if not len(samples):
        raise CalibrationError('no samples')
    if (np.diff(samples.stamp_ns) < 0).any():
        raise ModelError('the stamps of the samples go back')
    n, fts = len(samples), [sensor.name for sensor in robot.ft_sensors]
    felt = np.zeros(n, dtype=bool) if felt is None else np.asarray(felt, dtype=bool)
    require_shape('felt', felt, n)
    noisy = np.ones(len(fts), dtype=bool) if noisy is None else noisy
    given, samples = samples, with_known_temperatures(samples, calibration)
    bare = calibration.with_offsets(np.zeros_like(calibration.offsets))
    wrenches = bare.apply(samples.ft_readings, samples.ft_temperatures)
    loads, free = support_loads(estimator, samples, supports, length_scale)
    differences = wrenches - loads.readings
    known = finite(differences, axis=2)
    reasons = [
        _why_silent(given, calibration, k, loads.readings[:, k], bool(noisy[k]))
        for k in range(len(fts))
    ]
    chosen = _choose(fts, sensors, known, reasons, min_samples)
    known &= chosen
    shared = chosen & loads.shared
    # The sharing is found at each sample, from all sensors that depend on it.
    known[:, shared] = known[:, shared].all(axis=1, keepdims=True)
    plain = np.where(known[..., None], differences, np.nan)
    if shared.any():
        plain[:, shared] = _Shared.of(loads, shared, length_scale).projected(plain[:, shared])
    still = find_still(
        robot, samples, free, wrenches, plain, loads.gravity, known,
        ~np.logical_and.reduce(known[:, chosen], axis=1), felt,
        Stillness(*[np.inf] * 6) if stillness is None else stillness,
    )  # fmt: skip
    counts = still.used.sum(axis=0)
    found = chosen & (counts >= min_samples)
    if not found.any() or (sensors is not None and not found[chosen].all()):
        left_out = ', '.join(f'{why} {count}' for why, count in still.left_out.items() if count)
        signs = f' ({"; ".join(still.signs[:3])})' if still.signs else ''
        raise CalibrationError(
            f'{counts[chosen & ~found].min()} of {n} samples can be used, {min_samples} are '
            f'needed; left out: {left_out or "none"}{signs}'
        )
    used = np.where(still.used[..., None], differences, np.nan)
    offsets, spread, deviations, undetermined = _means(used, loads, found, length_scale)
    unsure: Mask = np.logical_or.reduce(np.abs(undetermined) > SHARE_ROUND_OFF, axis=(0, 2))
    if unsure.any() and not accept_split:
        unsure_names = tuple(fts[k] for k in np.flatnonzero(unsure))
        raise OffsetsNotUnique(
            f'{" and ".join(supports)} share the load, which does not determine the offsets of '
            f"{', '.join(unsure_names)}: stand on one support, or set 'accept_split'",
            unsure_names,
        )
    temperatures = np.full(len(fts), np.nan)
    if samples.ft_temperatures is not None:
        warm = still.used & np.isfinite(samples.ft_temperatures)
        total, count = np.where(warm, samples.ft_temperatures, 0.0).sum(axis=0), warm.sum(axis=0)
        temperatures = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    silent = {
        name: reasons[k] or f'{counts[k]} samples can be used, {min_samples} are needed'
        for k, name in enumerate(fts)
        if not found[k] and sensors is None
    }
    return ModelOffsets(
        supports=supports,
        sensors=tuple(fts[k] for k in np.flatnonzero(found)),
        silent=silent,
        calibration=calibration.with_offsets(
            np.where(found[:, None], offsets, calibration.offsets)
        ),
        found=found,
        unique=found & ~unsure,
        undetermined=undetermined,
        poses={
            fts[k]: _pose_errors(robot, used[:, k] - offsets[k], loads, still, int(k))
            for k in np.flatnonzero(found & ~loads.shared)
        },
        spread=spread,
        deviations=deviations,
        n_samples=np.where(found, counts, 0),
        left_out=still.left_out,
        assumed=found & loads.assumed,
        temperatures=temperatures,
        used=still.used,
        differences=differences,
        loads=loads,
    )


def _choose(
    fts: Sequence[str],
    sensors: Sequence[str] | None,
    known: Mask,
    reasons: Sequence[str],
    least: int,
) -> Mask:
    """Return the sensors whose offsets are to be found, (n_fts,); known (n, n_fts)."""
    count = np.where([bool(reason) for reason in reasons], 0, known.sum(axis=0))
    if sensors is None:
        if not count.any():
            why = '; '.join(f'{name}: {reason}' for name, reason in zip(fts, reasons) if reason)
            raise CalibrationError(
                f'no sample has both an FT reading and a predicted wrench{why and ": "}{why}'
            )
        # A sensor with few samples would limit those that share its load.
        return np.asarray(count >= least if (count >= least).any() else count > 0)
    asked = indices('sensors', sensors, 'FT sensor', fts)
    if not asked:
        raise ModelError("'sensors' is empty", about=('sensors',))
    for k in asked:
        if not count[k]:
            reason = reasons[k] or 'no sample has both a reading and a prediction'
            raise CalibrationError(f"FT sensor '{fts[k]}': {reason}", about=('sensors',))
    return np.isin(np.arange(len(fts)), asked)


def _why_silent(
    samples: SampleBatch, calibration: FtCalibration, k: int, predicted: Array, is_noisy: bool
) -> str:
    """Return the reason for which a sensor cannot be used; empty: none."""
    reads = finite(samples.ft_readings[:, k], axis=1)
    if not reads.any():
        if samples.ft_states is None:
            return 'no reading'
        states, counts = np.unique(samples.ft_states[:, k], return_counts=True)
        state = SensorState(int(states[counts.argmax()]))
        # Logs remove repeated readings, which were fresh when they arrived.
        return f'readings {(state or SensorState.FROZEN).name.lower()}'
    if calibration.needs_temperature[k]:
        given = samples.ft_temperatures
        warmth = np.full(len(reads), np.nan) if given is None else given[:, k]
        warmth = warmth[reads & np.isfinite(warmth)]
        if not len(warmth):
            return 'no temperature'
        if reason := implausible(warmth):
            return reason
    if not np.isfinite(predicted[reads]).all(axis=1).any():
        return 'no prediction: a joint or an IMU is missing or frozen'
    dead = constant_channels(samples.ft_readings[:, k])
    if is_noisy and dead.any():
        return f'channel {names_of(dead)} never changes'
    return ''


def _means(
    used: Array, loads: SupportLoads, found: Mask, length_scale: float
) -> tuple[Array, Array, Array, Array]:
    """
    Return offsets, spreads and deviations, (n_fts, 6), and undetermined combinations.

    Those of sensors with a shared load are means without the sharing. used (n, n_fts, 6): readings
    minus prediction, NaN where not used [N, Nm].
    """
    n_fts, shared = used.shape[1], found & loads.shared
    values, undetermined = used.copy(), np.zeros((0, n_fts, 6))
    if shared.any():
        at = finite(used[:, shared], axis=(1, 2))
        each, left = _Shared.of(loads, shared, length_scale, at).fit(used[at][:, shared])
        values[np.ix_(at, shared)] = each
        undetermined = np.zeros((len(left), n_fts, 6))
        undetermined[:, shared] = left
    offsets, spread, deviations = np.full((3, n_fts, 6), np.nan)
    for k in np.flatnonzero(found).tolist():
        own = values[finite(values[:, k], axis=1), k]
        offsets[k], spread[k] = own.mean(axis=0), own.std(axis=0)
        deviations[k] = deviations_of_means(own)
    return offsets, spread, deviations, undetermined


class _Shared(NamedTuple):
    """Readings of sensors that share the load, in newtons, whatever the sharing is."""

    scale: Array
    """Units of the readings of all sensors, shape (m,)."""
    project: Array
    """Projections that remove changes of the sharing at each sample, shape (n, m, m)."""

    @classmethod
    def of(
        cls, loads: SupportLoads, shared: Mask, length_scale: float, at: Mask | slice = slice(None)
    ) -> _Shared:
        """Project out what the sharing changes of some sensors (n_fts,) at some samples (n,)."""
        scale = np.tile(noise_scale(length_scale), int(shared.sum()))
        freedom = loads.freedom[at][:, shared]
        freedom = freedom.reshape(len(freedom), len(scale), -1) / scale[:, None]
        known = finite(freedom, axis=(1, 2))
        u, s, _ = np.linalg.svd(np.where(known[:, None, None], freedom, 0.0), full_matrices=False)
        u = u * (s > RANK_ROUND_OFF * np.maximum(s[:, :1], TINY))[:, None, :]
        project = np.eye(len(scale)) - u @ u.swapaxes(1, 2)
        project[~known] = np.nan
        return cls(scale, project)

    def projected(self, differences: Array) -> Array:
        """Return differences (n, sensors, 6) that no change of the sharing changes."""
        flat = differences.reshape(len(differences), -1, 1) / self.scale[:, None]
        found: Array = (self.project @ flat)[..., 0] * self.scale
        return found.reshape(differences.shape)

    def fit(self, differences: Array) -> tuple[Array, Array]:
        """
        Return the part of offsets that each sample determines, and combinations that none does.

        differences (n, sensors, 6); returns the same, and combinations (j, sensors, 6).
        """
        flat, shape = differences.reshape(len(differences), -1) / self.scale, differences.shape
        start = flat.mean(axis=0)
        seen = (self.project @ (flat - start)[..., None])[..., 0]
        shown, directions = np.linalg.eigh(self.project.mean(axis=0))
        shows = shown > MIN_SHOWN**2
        basis = directions[:, shows]
        # With one pose a direction shows fully or not at all, and this changes nothing.
        offsets = start + basis @ (seen.mean(axis=0) @ basis / shown[shows])
        # About the offsets: about the start, poses would differ by what they show of the change.
        off = flat - offsets
        left = (self.project @ off[..., None])[..., 0]
        each = flat - off @ basis @ basis.T + (left @ basis) / shown[shows] @ basis.T
        return (each * self.scale).reshape(shape), directions[:, ~shows].T.reshape(-1, *shape[1:])


def _pose_errors(
    robot: Robot, residuals: Array, loads: SupportLoads, still: StillSamples, k: int
) -> PoseErrors:
    """Return the differences of sensor k between poses; residuals (n, 6) [N, Nm]."""
    known = finite(residuals, axis=1)
    held = [
        at
        for pose in range(still.poses.max(initial=-1) + 1)
        if (at := known & (still.poses == pose)).sum() >= MIN_POSE_SAMPLES
    ]
    means = np.array([residuals[at].mean(axis=0) for at in held]).reshape(-1, 6)
    pulls = np.array([loads.gravity[at, k].mean(axis=0) for at in held]).reshape(-1, 3)
    noise = np.array([deviations_of_means(residuals[at]) for at in held]).reshape(-1, 6)
    turn, mass = 0.0, np.nan
    if len(held) > 1:
        directions = pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
        turn = float(np.arccos(np.clip(directions @ directions.T, -1.0, 1.0)).max())
    if turn >= MIN_TURN:
        sign = robot.ft_sensors[k].direction * (-1.0 if loads.beyond[k].all() else 1.0)
        A = np.hstack([np.tile(np.eye(3), (len(held), 1)), sign * pulls.reshape(-1, 1)])
        mass = float(np.linalg.lstsq(A, means[:, :3].ravel(), rcond=MASS_TOLERANCE)[0][3])
    centred = means - means.mean(axis=0) if len(held) else means
    return PoseErrors(means, turn, _rms(centred), _rms(noise), mass)


def _rms(values: Array) -> Array:
    """Return the root mean square of forces and of moments (n, 6), (2,); NaN without any."""
    if not len(values):
        return np.full(2, np.nan)
    return np.asarray(np.sqrt((values.reshape(-1, 2, 3) ** 2).sum(axis=2).mean(axis=0)))
