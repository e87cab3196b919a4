# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""
Offsets of FT sensors from the model while nothing but some supports touches the robot [T 4.7].

One support: what every sensor should read is known, and the offset is the mean of what it reads
besides. Several: sums and differences of sensors are known, single ones are not unless poses turn
the sensors far against each other; the shortest wrenches of the supports stand in for what nobody
knows, and are used only if the caller says so.
The supports are presumed to be the only contacts [T Assumption 4.3]; a contact that stays as it
is goes into the offsets, without a sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.calibration.free_splits import fit_free
from inertial_estimation.calibration.instants import Instants, Watched, choose_instants
from inertial_estimation.calibration.model_errors import PoseErrors, pose_errors
from inertial_estimation.calibration.offset_arguments import (
    check_order,
    check_supports,
    choose_sensors,
    not_unique,
)
from inertial_estimation.calibration.serial_means import deviations_of_means
from inertial_estimation.calibration.silent_sensors import not_found, why_silent
from inertial_estimation.calibration.stillness import Stillness
from inertial_estimation.calibration.support_loads import (
    SupportLoads,
    free_estimate,
    support_loads,
)
from inertial_estimation.calibration.told_sums import told_sums
from inertial_estimation.errors import CalibrationError, ModelError
from inertial_estimation.estimation.contacts import noise_scale
from inertial_estimation.estimation.faults import (
    SampleShapes,
    with_known_temperatures,
)
from inertial_estimation.estimation.wrench_estimator import WrenchEstimator
from inertial_estimation.model.arguments import check_kind, numbers
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

DEFAULT_LENGTH_SCALE = 0.1
LEAST_INSTANTS = 10
"""Fewer tell neither a mean nor its spread."""
ROUND_OFF = 1e-6
"""A sensor with a smaller share in what is not told is told."""


@dataclass(frozen=True, eq=False)
class SupportedOffsets:
    """Offsets, how well they are known, and what of them is a guess."""

    supports: tuple[str, ...]
    """Frames that were presumed to be all that touched the environment."""
    sensors: tuple[str, ...]
    """FT sensors whose offsets were found, in the order of the robot's."""
    silent: dict[str, str]
    """Why others were not, by sensor; those that nobody asked for are not among them."""
    calibration: FtCalibration
    """With the offsets found; those of other sensors are as they were."""
    found: Mask
    """Which offsets were found, shape (n_fts,)."""
    unique: Mask
    """Which of them are told by the data, and by no presumed sharing of the load, (n_fts,)."""
    undetermined: Array
    """
    Combinations of offsets that no data tell, shape (k, n_fts, 6), each of length one with
    moments divided by the length scale; along these the offsets are the guess.
    """
    told: tuple[str, ...]
    """Sums and differences of sensors that are not unique but told, in words."""
    poses: dict[str, PoseErrors]
    """What the poses tell of errors of the model, by sensor; of those that share no load."""
    spread: Array
    """
    Standard deviation of readings minus prediction about the offsets, shape (n_fts, 6) [N, Nm];
    NaN where nothing was found. Model errors of several poses are part of it.
    """
    deviations: Array
    """
    Standard deviation of the offsets, likewise: of a mean whose instants resemble their
    neighbours. Of a guess it tells the repeatability only; model errors that stay are no part.
    """
    n_samples: NDArray[np.int64]
    """Instants that were used for each sensor, shape (n_fts,)."""
    left_out: dict[str, int]
    """Instants that were not, by reason."""
    assumed: Mask
    """Offsets that rest on joints that nobody reports, shape (n_fts,)."""
    temperatures: Array
    """Mean temperature of each sensor meanwhile, (n_fts,) [degrees Celsius]; NaN: not known."""
    length_scale: float
    """Moment over force that counts as equally large [m]."""
    instants: Instants = field(repr=False)
    """Which instants were used, and why others were not."""
    differences: Array = field(repr=False)
    """
    Readings minus prediction at all instants, shape (n, n_fts, 6) [N, Nm]; NaN: not known. Of
    shared sensors this holds how the load is shared, as far as it is not the shortest.
    """
    loads: SupportLoads = field(repr=False)
    """The prediction, likewise."""

    @property
    def offsets(self) -> Array:
        """Offsets of all sensors, shape (n_fts, 6), subtracted [N, Nm]."""
        return self.calibration.offsets

    @property
    def is_unique(self) -> bool:
        """Whether all offsets that were found are told by the data."""
        return bool(self.unique[self.found].all())


def supported_offsets(
    estimator: WrenchEstimator,
    samples: SampleBatch,
    supports: Sequence[str],
    *,
    sensors: Sequence[str] | None = None,
    accept_split: bool = False,
    stillness: Stillness | None = Stillness(),  # noqa: B008, it is frozen
    felt: Mask | None = None,
    length_scale: float = DEFAULT_LENGTH_SCALE,
    least_instants: int = LEAST_INSTANTS,
    noisy: Mask | None = None,
) -> SupportedOffsets:
    """
    Find the offsets of FT sensors.

    Parameters
    ----------
    estimator : WrenchEstimator
        Robot, inertial parameters and calibration: matrices and temperature coefficients are
        applied, offsets are what is looked for. Nothing of it is changed.
    samples : SampleBatch
        Readings while the supports carry the robot, in the order of their stamps.
    supports : sequence of str
        Frames at which the environment touches the robot, with any wrench; nowhere else.
    sensors : sequence of str, optional
        FT sensors whose offsets are wanted. Default: all that say something.
    accept_split : bool
        Take the shortest support wrenches for true where nothing tells how the load is shared.
    stillness : Stillness, optional
        How much may move. None: motion is trusted to the model, and nothing is looked for.
    felt : ndarray of bool, shape (n,), optional
        Instants at which something else is felt, such as by a skin. Default: none.
    length_scale : float
        Moment over force that counts as equally large in the shortest wrenches [m].
    least_instants : int
        Fewer are refused.
    noisy : ndarray of bool, shape (n_fts,), optional
        Sensors whose channels all change, as noise of real ones does: one that never does, while
        others of the sensor do, is dead. Default: all.

    Returns
    -------
    SupportedOffsets

    Raises
    ------
    OffsetsNotUnique
        If the sharing of the load is unknown and was not accepted.
    CalibrationError
        If too few instants are left, or a sensor that was asked for says nothing, or has a channel
        that is dead.
    ModelError, NameNotFound, FrameNotFound, ShapeError
        If arguments make no sense, or name what the robot does not have.

    """
    check_kind('estimator', estimator, WrenchEstimator, 'WrenchEstimator(robot) makes one')
    robot, calibration = estimator.robot, estimator.calibration
    SampleShapes(robot).check_batch(samples)
    supports = check_supports(robot, supports)
    if not numbers('length_scale', length_scale, ()) > 0.0:
        raise ModelError(f'length_scale is {length_scale}, expected a positive length')
    check_order(samples)
    given, samples = samples, with_known_temperatures(samples, calibration)
    bare = calibration.with_offsets(np.zeros_like(calibration.offsets))
    wrenches = bare.apply(samples.ft_readings, samples.ft_temperatures)
    free = free_estimate(estimator, samples)
    loads = support_loads(robot, samples, free, supports, length_scale)
    noisy = np.ones(len(robot.ft_sensors), dtype=bool) if noisy is None else noisy
    why = why_silent(given, calibration, loads.readings, noisy)
    chosen = choose_sensors(robot, sensors, wrenches, loads, least_instants, why)
    watched = Watched(robot, samples, free, wrenches, loads, length_scale)
    instants = choose_instants(watched, chosen, stillness, felt)
    enough = chosen & (instants.n_used >= least_instants)
    if not enough.any() or (sensors is not None and not enough[chosen].all()):
        raise CalibrationError(instants.complaint(least_instants, chosen & ~enough))
    differences = wrenches - loads.readings
    used = np.where(instants.used[..., None], differences, np.nan)
    fit = _fit(used, loads, enough, length_scale)
    known = [sensor.name for sensor in robot.ft_sensors]
    shared = enough & loads.shared
    unsure: Mask = np.logical_or.reduce(np.abs(fit.undetermined) > ROUND_OFF, axis=(0, 2))
    if unsure.any() and not accept_split:
        raise not_unique(robot, supports, enough, unsure, loads)
    return SupportedOffsets(
        supports=supports,
        sensors=tuple(name for name, is_in in zip(known, enough) if is_in),
        silent={}
        if sensors is not None
        else not_found(known, why, enough, instants.n_used, least_instants),
        calibration=calibration.with_offsets(
            np.where(enough[:, None], fit.offsets, calibration.offsets)
        ),
        found=enough,
        unique=enough & ~unsure,
        undetermined=fit.undetermined,
        told=told_sums(
            [known[k] for k in np.flatnonzero(shared & unsure)], loads.beyond[shared & unsure]
        ),
        poses=_poses(robot, used, loads, fit.offsets, instants, enough & ~loads.shared),
        spread=fit.spread,
        deviations=fit.deviations,
        n_samples=np.where(enough, instants.n_used, 0),
        left_out=instants.left_out,
        assumed=enough & loads.assumed,
        temperatures=_mean_temperatures(samples, instants.used),
        length_scale=length_scale,
        instants=instants,
        differences=differences,
        loads=loads,
    )


class _Fit(NamedTuple):
    """Numbers of all sensors; NaN for those that were not chosen."""

    offsets: Array
    spread: Array
    deviations: Array
    undetermined: Array


def _fit(differences: Array, loads: SupportLoads, chosen: Mask, length_scale: float) -> _Fit:
    """Take means over the instants of each sensor, those of shared ones without the sharing."""
    n_fts = differences.shape[1]
    says = differences.copy()
    shared = chosen & loads.shared
    undetermined = np.zeros((0, n_fts, 6))
    if shared.any():
        used = np.isfinite(differences[:, shared]).all(axis=(1, 2))
        scale = np.tile(noise_scale(length_scale), int(shared.sum()))
        fit = fit_free(
            differences[used][:, shared].reshape(-1, len(scale)) / scale,
            loads.freedom[used][:, shared].reshape(-1, len(scale), loads.freedom.shape[3])
            / scale[:, None],
        )
        says[np.ix_(used, shared)] = (fit.instants * scale).reshape(-1, int(shared.sum()), 6)
        undetermined = np.zeros((fit.undetermined.shape[1], n_fts, 6))
        undetermined[:, shared] = fit.undetermined.T.reshape(
            len(undetermined), int(shared.sum()), 6
        )
    offsets, spread, deviations = np.full((3, n_fts, 6), np.nan)
    for k in np.flatnonzero(chosen):
        own = says[np.isfinite(says[:, k]).all(axis=1), k]
        offsets[k] = own.mean(axis=0)
        spread[k] = own.std(axis=0)
        deviations[k] = deviations_of_means(own)
    return _Fit(offsets, spread, deviations, undetermined)


def _poses(
    robot: Robot,
    differences: Array,
    loads: SupportLoads,
    offsets: Array,
    instants: Instants,
    told: Mask,
) -> dict[str, PoseErrors]:
    """Return what the poses tell of each sensor."""
    signs = [s.direction * (-1.0 if loads.beyond[k].all() else 1.0)
             for k, s in enumerate(robot.ft_sensors)]  # fmt: skip
    return {
        robot.ft_sensors[k].name: pose_errors(
            differences[:, k] - offsets[k], loads.gravity[:, k], instants.poses, signs[k]
        )
        for k in np.flatnonzero(told)
    }


def _mean_temperatures(samples: SampleBatch, used: Mask) -> Array:
    """Return the mean temperature of each sensor, NaN where it is not known."""
    if samples.ft_temperatures is None:
        return np.full(used.shape[1], np.nan)
    known = used & np.isfinite(samples.ft_temperatures)
    total = np.where(known, samples.ft_temperatures, 0.0).sum(axis=0)
    with np.errstate(invalid='ignore'):
        mean: Array = total / known.sum(axis=0)
    return mean
