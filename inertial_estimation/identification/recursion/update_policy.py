# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""Update policy: which refitted parameters and offsets an estimator may rely on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.identification.recursion.covariance import parameter_roots
from inertial_estimation.identification.recursion.innovation import SubmodelIdentifier
from inertial_estimation.identification.recursion.offsets import (
    OffsetTracker,
    Proposal,
    fitted_offsets,
    offset_deviations,
)
from inertial_estimation.identification.recursion.refit import JointRefit
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.model.inertia import consistency_margin
from inertial_estimation.model.parameter_update import ParameterUpdate, calibration_fingerprint
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration

MAX_OFFSET_DEVIATION = np.repeat([2.0, 0.2], 3)
"""Standard deviation up to which an offset is determined [N, Nm]."""
MAX_RESIDUAL_RATIO = 2.0
"""
Residual of new equations over that of the prior up to which a fit is used, in the median: the
first motion of a joint changes offsets, and is soon over.
"""
MAX_RESIDUAL_RATIO_IN_USE = 1.5
"""The same without undetermined offsets, which nothing subtracts."""
SECOND_NS = 1e9


@dataclass(frozen=True, eq=False)
class Refit:
    """Result of a refit; mappings are by submodel or by FT sensor."""

    stamp_ns: int
    """Stamp of the last sample [ns]."""
    parameters: Array
    """Inertial parameters of all links, strictly consistent, shape (n_links, 10)."""
    offsets: Mapping[str, Array]
    """FT offsets that fit best beside these parameters, shape (6,) [N, Nm]."""
    subtracted: Mapping[str, Array]
    """
    Offsets that an estimator should subtract: they follow the others as slowly as sensors drift
    (`OffsetTracker`); NaN where none was determined yet.
    """
    offset_deviations: Mapping[str, Array]
    """Standard deviations of the offsets, without errors that all equations share [N, Nm]."""
    refitted: tuple[str, ...]
    """Submodels whose parameters are refitted; the others have those of the prior."""
    determined: Mapping[str, int]
    """Combinations of parameters that the equations determine better than the prior does."""
    reasons: Mapping[str, str]
    """Reason for which a submodel was not refitted."""
    prior_residuals: Mapping[str, Mapping[str, float]]
    """
    Root mean squares, by kind, of the newest equations before they were added: of the prior
    parameters with all else fitted [N, Nm].
    """
    residuals: Mapping[str, Mapping[str, float]]
    """The same of the fit of that time."""
    least_margin: float
    """Smallest eigenvalue of a link's pseudo-inertia."""
    parameter_roots: Array
    """
    Root F of the covariance F F' of the parameters of each submodel, shape (n_links, 10, r); zero
    where it was not refitted.
    """

    @property
    def determined_offsets(self) -> dict[str, Array]:
        """Offsets, NaN where they are not determined [N, Nm]."""
        return {
            name: np.where(self.offset_deviations[name] <= MAX_OFFSET_DEVIATION, offset, np.nan)
            for name, offset in self.offsets.items()
        }

    def update(self, robot: Robot, calibration: FtCalibration) -> ParameterUpdate:
        """
        Return what an estimator may use, with zero in place of offsets not determined yet.

        Parameters
        ----------
        robot : Robot
            The identified robot.
        calibration : FtCalibration
            Of the readings that were identified from.

        Returns
        -------
        ParameterUpdate

        """
        none = np.zeros(6)
        offsets = [self.subtracted.get(sensor.name, none) for sensor in robot.ft_sensors]
        return ParameterUpdate(
            self.parameters,
            self.parameter_roots,
            np.nan_to_num(np.reshape(offsets, (-1, 6))),
            calibration_fingerprint(calibration),
        )


class UpdatePolicy:
    """Accepts or rejects refits of submodels, and remembers the parameters in use."""

    def __init__(self, robot: Robot, prior: Array, settings: RecursionSettings) -> None:
        self._robot, self._prior, self._settings = robot, prior, settings
        self.tracker = OffsetTracker(6 * len(settings.equations.offsets), settings.force_walk)
        self._used: dict[str, Array] = {}
        self._used_ns = 0

    def refit(
        self,
        found: JointRefit,
        submodels: Sequence[SubmodelIdentifier],
        stamp_ns: int,
        shift: Array,
    ) -> Refit:
        """Return the result of a refit; shift: as of a memory, of all offsets."""
        since = (stamp_ns - self._used_ns) / SECOND_NS if self._used_ns else 0.0
        own = {one.name: one for one in submodels}
        ready = [fit.memory for fit in found.fits]
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
            return used, offsets, self.tracker.proposed(offsets, before, known, since)

        determined, reasons = {}, {}
        for one in (each.memory for each in submodels):
            needed = self._settings.excited
            if not one.block.kinds:
                reasons[one.name] = 'no equations: an unknown wrench acts'
            elif one.information is None:
                reasons[one.name] = f'{one.seconds:.1f} s of equations, noise not yet known'
            else:
                determined[one.name] = count = one.determined(one.corrected)
                one.excited |= count >= needed
                if count < needed:
                    reasons[one.name] = f'{count} of {needed} parameter combinations determined'
                elif (ratio := own[one.name].residual_ratio) > MAX_RESIDUAL_RATIO:
                    reasons[one.name] = f'residual is {ratio:.1f} times that of the prior'
        *_, subtracted = proposed(reasons)
        for fit in (fit for fit in found.fits if fit.memory.name not in reasons):
            name = fit.memory.name
            ratio = own[name].residual_ratio_in_use(fit.x, subtracted.values)
            if ratio > MAX_RESIDUAL_RATIO_IN_USE:
                reasons[name] = (
                    f'residual is {ratio:.1f} times that of the prior without undetermined '
                    'FT offsets'
                )
        used, offsets, self.tracker.now = proposed(reasons)
        self._used = {one.name: parameters for one, parameters in zip(ready, used, strict=True)}
        self._used_ns = stamp_ns
        refitted = [fit for fit in found.fits if fit.memory.name not in reasons]
        roots = parameter_roots(found, self._settings.weight)
        size = max((roots[fit.memory.name].shape[1] for fit in refitted), default=0)
        placed = np.zeros((len(self._robot.links), 10, size))
        # The prior is consistent where a URDF need not be.
        parameters = self._prior.copy()
        for fit in refitted:
            links, root = list(fit.memory.block.submodel.links), roots[fit.memory.name]
            parameters[links] = fit.parameters
            placed[links, :, : root.shape[1]] = root.reshape(len(links), 10, -1)

        def by_sensor(numbers: Array) -> dict[str, Array]:
            """Return the numbers of sensors with equations."""
            names, rows = self._settings.equations.offsets, offsets.reshape(-1, 6)
            named = zip(names, rows, numbers.reshape(-1, 6), strict=True)
            return {name: row for name, fitted, row in named if not np.isnan(fitted[0])}

        return Refit(
            stamp_ns,
            parameters,
            by_sensor(offsets - shift),
            by_sensor(self.tracker.now.values - shift),
            by_sensor(deviations),
            tuple(fit.memory.name for fit in refitted),
            determined,
            reasons,
            {one.name: one.prior_residuals for one in submodels if one.residuals},
            {one.name: one.residuals for one in submodels if one.residuals},
            float(consistency_margin(parameters).min()),
            placed,
        )
