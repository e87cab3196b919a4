# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Recursive identification of a robot: windows of samples in, parameters and FT offsets out."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from inertial_estimation.arrays import Array, Mask
from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.identification.equations.builder import Block, EquationBuilder, Observed
from inertial_estimation.identification.errors_in_variables import (
    StateNoise,
    WhiteNoise,
    perturbation_errors,
)
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.covariance import (
    BaseValues,
    base_values,
    certainties,
    prior_errors,
)
from inertial_estimation.identification.recursion.innovation import Change, SubmodelIdentifier
from inertial_estimation.identification.recursion.memory import SubmodelMemory
from inertial_estimation.identification.recursion.offsets import (
    OffsetTracker,
    Proposal,
    fitted_offsets,
    offset_deviations,
)
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.refit import (
    MAX_OFFSET_DEVIATION,
    Refit,
    joint_refit,
)
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.model.base_parameters import BaseParameters
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import SampleBatch, SensorState

SECOND_NS = 1e9
SINGLE_SAMPLE = 1.0
"""Time that a window of one sample spans at most [s]."""
MAX_RESIDUAL_RATIO = 2.0
"""
Residual of new equations over that of the prior up to which a fit is used, in the median: the
first motion of a joint changes offsets, and is soon over.
"""
MAX_RESIDUAL_RATIO_IN_USE = 1.5
"""The same without undetermined offsets, which nothing subtracts."""


class RecursiveIdentifier:
    """
    Identify a robot while it moves, recursively.

    Parameters
    ----------
    robot : Robot
        Its parameters are the prior.
    settings : RecursionSettings
        Settings of the recursion.
    calibration : FtCalibration, optional
        Of the FT sensors; identified offsets are added. Default: readings are wrenches.

    Attributes
    ----------
    stamp_ns : int
        Stamp of the last sample [ns]; 0: none.
    noise : StateNoise or None
        Noise of the motion from now on; None: it is exact.
    prior : ndarray, shape (n_links, 10)
        The robot's parameters, made strictly consistent.

    Raises
    ------
    ModelError
        If the prior of a link is impossible.
    ConfigError, NameNotFound
        If the settings do not fit the robot.

    """

    def __init__(
        self, robot: Robot, settings: RecursionSettings, calibration: FtCalibration | None = None
    ) -> None:
        self.robot, self.settings = robot, settings
        self.calibration = calibration or FtCalibration.identity(len(robot.ft_sensors))
        self.builder = EquationBuilder(robot, settings.equations, self.calibration)
        sensors = [sensor.name for sensor in robot.ft_sensors]
        self._unknown = [sensors.index(name) for name in settings.equations.offsets]
        self.noise: StateNoise | None = None
        self.prior, _ = widened(robot.link_names, robot.parameters)
        for name in settings.payload_links:
            if name not in robot.link_names:
                raise NameNotFound('link', name, robot.link_names)
        for submodel in robot.submodels:
            links = {robot.link_names[k] for k in submodel.links}
            if len(two := sorted(links & set(settings.payload_links))) > 1:
                raise ConfigError(f'payload_links: {" and ".join(two)} are in one submodel')
        for joint in settings.effort_gains:
            if joint not in robot.joint_names:
                raise NameNotFound('joint', joint, robot.joint_names, 'a gain of efforts is given')
        self._gains = np.array([settings.effort_gains.get(one, 1.0) for one in robot.joint_names])
        self.reset()

    @property
    def memories(self) -> tuple[SubmodelMemory, ...]:
        """Information state of each submodel."""
        return tuple(one.memory for one in self._submodels)

    @property
    def found(self) -> dict[str, Array]:
        """All unknowns of the submodels of the last refit, shape (n_unknowns,) each."""
        fits = {}
        for one in self._submodels:
            if one.found is not None:
                fits[one.name] = one.found.copy()
                fits[one.name][one.memory.offsets] -= one.memory.shift
        return fits

    def base_values(self) -> dict[str, BaseValues]:
        """Return the base parameters of the last refit, of each submodel with equations."""
        return base_values(self.memories, self._bases, self.found)

    @cached_property
    def _bases(self) -> dict[str, tuple[BaseParameters, tuple[str, ...]]]:
        """Base parameters of each submodel, and the names of the combinations."""
        return {
            block.submodel.name: (base, tuple(base.combinations(block.unknowns.names)))
            for block, (base, _) in zip(self.builder.blocks, self.builder.bases, strict=True)
        }

    def reset(self) -> None:
        """Forget all samples."""
        self._submodels = list(map(self._new, self.builder.blocks))
        self.relate_to(_effective_offsets(self.calibration)[self._unknown])
        self.stamp_ns = 0
        self._random = np.random.default_rng(0)
        self._levels = WhiteNoise()
        self._tracker = OffsetTracker(6 * len(self._unknown), self.settings.force_walk)
        self._used: dict[str, Array] = {}
        self._used_ns = 0

    def _new(self, block: Block) -> SubmodelIdentifier:
        prior = self.prior[list(block.submodel.links)]
        return SubmodelIdentifier(SubmodelMemory(block, prior, self.settings), self.settings)

    def set_calibration(
        self, calibration: FtCalibration, tared: Collection[str] = ()
    ) -> tuple[str, ...]:
        """
        Use another calibration of the readings.

        Equations are changed as if it had been used from the start. Where a matrix, temperature
        coefficients or an offset that is no unknown change, submodels beside the sensor start
        again.

        Parameters
        ----------
        calibration : FtCalibration
            Of the robot's FT sensors.
        tared : collection of str, optional
            FT sensors whose offsets were found without contact: tracking of these starts again.

        Returns
        -------
        tuple of str
            Submodels that start again.

        Raises
        ------
        ModelError
            If it is for another number of sensors; the one before stays.

        """
        n_fts = len(self.robot.ft_sensors)
        if len(calibration.offsets) != n_fts:
            raise ModelError(
                f'calibration of {len(calibration.offsets)} FT sensors, robot '
                f"'{self.robot.name}' has {n_fts}"
            )
        before, self.calibration = self.calibration, calibration
        change = _effective_offsets(calibration) - _effective_offsets(before)
        is_other: Mask = np.asarray(change.any(axis=1))
        is_other[self._unknown] = False
        for name in ('matrices', 'temperature_coefficients'):
            pair = (getattr(one, name).reshape(n_fts, -1) for one in (before, calibration))
            is_other |= np.not_equal(*pair).any(axis=1)
        restarted = []
        for k, one in enumerate(self._submodels):
            block = one.memory.block
            if block.kinds and is_other[list(block.submodel.sensors)].any():
                restarted.append(one.name)
                self._submodels[k] = self._new(block)
                self._tracker.forget(one.memory.own)
        self.relate_to(self.start_offsets)
        is_tared = [[self.robot.ft_sensors[k].name in tared] for k in self._unknown]
        self._tracker.forget(((change[self._unknown] != 0.0) & is_tared).reshape(-1))
        return tuple(restarted)

    def relate_to(self, offsets: Array) -> None:
        """Relate equations to some offsets of the sensors of `settings.equations`, (n, 6)."""
        self.start_offsets = offsets
        shift = _effective_offsets(self.calibration)[self._unknown] - offsets
        self._shift = shift.reshape(-1)
        for one in self.memories:
            one.shift = self._shift[one.own]
        subtracted = self.calibration.offsets.copy()
        subtracted[self._unknown] -= shift
        self.builder.calibration = self.calibration.with_offsets(subtracted)

    @one_thread()
    def add(
        self,
        samples: SampleBatch,
        *,
        free: Mask | None = None,
        external: Mapping[str, Array] | None = None,
    ) -> list[tuple[str, Change]]:
        """
        Add a window of samples.

        Parameters
        ----------
        samples : SampleBatch
            In order, e.g. of one second. Joints with assumed positions give no equations.
        free, external : optional
            As for `EquationBuilder.equations`.

        Returns
        -------
        list of tuple of str and Change
            Detected changes, by submodel.

        """
        n = len(samples)
        if not n:
            return []
        first, last = int(samples.stamp_ns[0]), int(samples.stamp_ns[-1])
        # No window before, or the clock was set back.
        since = self.stamp_ns if 0 < self.stamp_ns < first else first
        elapsed, self.stamp_ns = (last - since) / SECOND_NS, last
        # The samples span one period after the last. In a gap offsets walk, equations do not fade.
        spanned = (last - first) / SECOND_NS * n / (n - 1) if n > 1 else SINGLE_SAMPLE
        changes = []
        evidence = self._equations(samples, free, external)
        for one, new in zip(self._submodels, evidence, strict=True):
            count = max((part.count for part in new.kinds.values()), default=0.0)
            if change := one.add(new, elapsed, min(elapsed, spanned) * count / n):
                changes.append((one, change))
        for one, change in changes:
            own = one.memory.own
            if change in (Change.OFFSET, Change.BEGUN):
                self._tracker.forget(own)
            if change is not Change.OFFSET:
                continue
            # They have changed in neighbours too, unless their equations agree.
            for other, new in zip(self._submodels, evidence, strict=True):
                memory = other.memory
                if memory.information is not None and not (new.count and other.agreeing):
                    columns = memory.offsets[np.isin(memory.own, own)]
                    memory.release(columns, np.full(len(columns), np.inf))
                    other.forget_recent()
        return [(one.name, change) for one, change in changes]

    def _equations(
        self, samples: SampleBatch, free: Mask | None, external: Mapping[str, Array] | None
    ) -> list[Evidence]:
        """Return the equations of each submodel, with the errors of the motion."""
        if samples.joint_states is not None:
            assumed = samples.joint_states == SensorState.ASSUMED
            samples = replace(samples, positions=np.where(assumed, np.nan, samples.positions))
        if samples.efforts is not None and self.settings.effort_gains:
            samples = replace(samples, efforts=samples.efforts * self._gains)
        observed = Observed(samples, external, free)
        evidence = gather(self.builder, observed, about=np.zeros((len(self.robot.ft_sensors), 6)))
        if self.noise is None:
            return evidence
        noise = self.noise.measured(samples, self._levels)
        errors = perturbation_errors(self.builder, observed, noise, self._random)
        return [replace(one, errors=own) for one, own in zip(evidence, errors)]

    def rejections(self) -> dict[str, float]:
        """Return the time for which equations have been rejected up to now, by submodel [s]."""
        return {one.name: one.rejected_seconds for one in self._submodels if one.rejected_seconds}

    def payloads(self) -> dict[str, Payload]:
        """Return the payloads that were detected last, by submodel."""
        found = ((one.name, one.payload.payload()) for one in self._submodels if one.payload)
        return {name: payload for name, payload in found if payload is not None}

    @one_thread()
    def refit(self) -> Refit | None:
        """
        Solve for parameters and offsets, and decide on which an estimator may rely.

        None: no submodel has equations whose noise is known.
        """
        fitted = [one for one in self._submodels if one.memory.information is not None]
        ready = [one.memory for one in fitted]
        if not ready:
            return None
        errors = [prior_errors(memory) for memory in ready]
        for memory, shown in zip(ready, errors):
            memory.prior_variance = shown.likeliest(memory.stated_variance)
        found = joint_refit(ready)
        if found.converged:
            for one, fit in zip(fitted, found.fits, strict=True):
                one.set_fit(fit.x)
        since = (self.stamp_ns - self._used_ns) / SECOND_NS if self._used_ns else 0.0
        deviations = offset_deviations(ready)
        known = deviations <= np.resize(MAX_OFFSET_DEVIATION, len(deviations))
        # Beside the parameters in use so far.
        before = fitted_offsets(ready, [self._used.get(one.name, one.prior) for one in ready])

        def proposed(rejected: Collection[str]) -> tuple[list[Array], Array, Proposal]:
            """Return the parameters in use, the offsets that fit, and those to subtract."""
            used = [
                fit.memory.prior if fit.memory.name in rejected else fit.parameters
                for fit in found.fits
            ]
            offsets = fitted_offsets(ready, used)
            return used, offsets, self._tracker.proposed(offsets, before, known, since)

        determined, reasons = self._assessed()
        if not found.converged:
            reasons |= {one.name: 'the refit did not converge' for one in fitted}
        *_, subtracted = proposed(reasons)
        for one in (one for one in fitted if one.name not in reasons):
            ratio = one.residual_ratio_in_use(subtracted.values)
            if ratio > MAX_RESIDUAL_RATIO_IN_USE:
                reasons[one.name] = (
                    f'residual is {ratio:.1f} times that of the prior without undetermined '
                    'FT offsets'
                )
        used, offsets, self._tracker.now = proposed(reasons)
        self._used = dict(zip((one.name for one in ready), used, strict=True))
        self._used_ns = self.stamp_ns
        refitted = [memory for memory in ready if memory.name not in reasons]
        certain = certainties(found, errors)
        size = max((certain[memory.name].root.shape[1] for memory in refitted), default=0)
        placed = np.zeros((len(self.robot.links), 10, size))
        # The prior is consistent where a URDF need not be.
        parameters = self.prior.copy()
        for memory in refitted:
            links, root = list(memory.block.submodel.links), certain[memory.name].root
            parameters[links] = self._used[memory.name]
            placed[links, :, : root.shape[1]] = root.reshape(len(links), 10, -1)

        def by_sensor(numbers: Array) -> dict[str, Array]:
            """Return the numbers of sensors with equations."""
            names, rows = self.settings.equations.offsets, offsets.reshape(-1, 6)
            named = zip(names, rows, numbers.reshape(-1, 6), strict=True)
            return {name: row for name, fitted, row in named if not np.isnan(fitted[0])}

        return Refit(
            self.stamp_ns,
            parameters,
            by_sensor(offsets - self._shift),
            by_sensor(self._tracker.now.values - self._shift),
            by_sensor(deviations),
            tuple(memory.name for memory in refitted),
            determined,
            reasons,
            {one.name: one.prior_residuals for one in self._submodels if one.residuals},
            {one.name: one.residuals for one in self._submodels if one.residuals},
            placed,
        )

    def _assessed(self) -> tuple[dict[str, int], dict[str, str]]:
        """Return the combinations that equations determine, and reasons against submodels."""
        determined, reasons, needed = {}, {}, self.settings.excited
        for each in self._submodels:
            one, ratio = each.memory, each.residual_ratio
            if not one.block.kinds:
                reasons[one.name] = 'no equations: an unknown wrench acts'
            elif one.information is None:
                reasons[one.name] = f'{one.seconds:.1f} s of equations, noise not yet known'
            else:
                determined[one.name] = count = one.determined(one.corrected)
                one.excited |= count >= needed
                if count < needed:
                    reasons[one.name] = f'{count} of {needed} parameter combinations determined'
                elif ratio > MAX_RESIDUAL_RATIO:
                    reasons[one.name] = f'residual is {ratio:.1f} times that of the prior'
        return determined, reasons


def _effective_offsets(calibration: FtCalibration) -> Array:
    """Return the offsets of a calibration at zero degrees, shape (n_fts, 6) [N, Nm]."""
    warmth = calibration.temperature_coefficients * calibration.reference_temperatures[:, None]
    return np.asarray(calibration.offsets + warmth)
