# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""A robot that is identified while it works: stretches of samples in, bodies and offsets out."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from inertial_estimation.errors import ConfigError, ModelError, NameNotFound
from inertial_estimation.identification.equations.builder import Block, EquationBuilder
from inertial_estimation.identification.errors_in_variables import (
    StateNoise,
    WhiteNoise,
    rows_of_errors,
)
from inertial_estimation.identification.evidence import Evidence, gather
from inertial_estimation.identification.one_thread import one_thread
from inertial_estimation.identification.priors import widened
from inertial_estimation.identification.recursion.innovation import Change
from inertial_estimation.identification.recursion.joint_refit import joint_refit
from inertial_estimation.identification.recursion.memory import CalibrationChange, SubmodelMemory
from inertial_estimation.identification.recursion.payload import Payload
from inertial_estimation.identification.recursion.settings import RecursionSettings
from inertial_estimation.identification.recursion.submodel_identifier import (
    SubmodelIdentifier,
    Withheld,
)
from inertial_estimation.identification.recursion.update_policy import Refit, UpdatePolicy
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.sample import SampleBatch, SensorState

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SECOND_NS = 1e9
LONGEST_ALONE = 1.0
"""Time that a sample stands for that comes alone, if the one before is as long ago [s]."""


class RecursiveIdentifier:
    """
    Rows of submodels in free air come in, and bodies are refitted when asked for.

    Parameters
    ----------
    robot : Robot
        Whose parameters are the prior.
    settings : RecursionSettings
        How it remembers.
    calibration : FtCalibration, optional
        Of the FT sensors; offsets that are found come on top. Default: readings are wrenches.

    Attributes
    ----------
    stamp_ns : int
        Of the last sample that went in; 0: none did.
    rows_ns : dict of str to int
        Last sample of the last stretch with rows of a submodel, good or not, by its name [ns].
    noise : StateNoise or None
        Of the motion, which goes into all that the identifier is told from when it is set; None,
        at first: motion is taken to be exact.
    prior : ndarray, shape (n_links, 10)
        The robot's parameters, points and sticks widened.
    widened : tuple of str
        Links whose prior had to be.

    Raises
    ------
    ModelError
        If the prior of a link is impossible.
    ConfigError, NameNotFound
        If the rows that are asked for cannot be built, or a link that is to carry payloads does
        not exist or is not the only one of its submodel.

    """

    def __init__(
        self, robot: Robot, settings: RecursionSettings, calibration: FtCalibration | None = None
    ) -> None:
        self.robot, self.settings, self.calibration = robot, settings, calibration
        self.builder = EquationBuilder(robot, settings.rows, calibration)
        self.noise: StateNoise | None = None
        self.prior, self.widened = widened(robot.link_names, robot.parameters)
        _check_carriers(robot, settings.payload_links)
        for joint in settings.effort_gains:
            if joint not in robot.joint_names:
                raise NameNotFound('joint', joint, robot.joint_names, 'a gain of efforts is given')
        gains = [settings.effort_gains.get(joint, 1.0) for joint in robot.joint_names]
        self._gains = np.array(gains, dtype=np.float64)
        self.reset()

    @property
    def known(self) -> tuple[SubmodelMemory, ...]:
        """What is known of each submodel."""
        return tuple(one.known for one in self._submodels)

    @property
    def found(self) -> dict[str, Array]:
        """All unknowns of the submodels that were refitted last, shape (n_unknowns,) each."""
        return {one.name: one.found for one in self._submodels if one.found is not None}

    def bodies(self) -> dict[str, Array]:
        """
        Return the bodies that were fitted last, told or not.

        Returns
        -------
        dict of str to ndarray, shape (n_links, 10)
            Inertial parameters of the links of each submodel that has rows.

        """
        sizes = {
            one.block.submodel.name: one.block.unknowns.n_inertial for one in self.known
        }  # fmt: skip
        return {name: x[: sizes[name]].reshape(-1, 10) for name, x in self.found.items()}

    def reset(self) -> None:
        """Forget all rows."""
        self._submodels = list(map(self._afresh, self.builder.blocks))
        self.stamp_ns = 0
        self.rows_ns: dict[str, int] = {}
        self._random = np.random.default_rng(0)
        self._levels = WhiteNoise()
        self._assumed = np.zeros(0, dtype=np.intp)
        self._start: dict[str, Array] = {}
        self._telling = UpdatePolicy(self.robot, self.prior, self.settings)

    def _afresh(self, block: Block) -> SubmodelIdentifier:
        """Return what knows nothing of a submodel yet."""
        prior = self.prior[list(block.submodel.links)]
        return SubmodelIdentifier(SubmodelMemory(block, prior, self.settings), self.settings)

    def set_calibration(
        self, calibration: FtCalibration, tared: Collection[str] = ()
    ) -> tuple[str, ...]:
        """
        Go on with readings that are calibrated otherwise.

        What was learned beside offsets that are unknown stays, as if that calibration had been
        used from the first row on. Where a matrix or temperature coefficients change, or an offset
        that is no unknown, rows of the submodels beside the sensor begin anew.

        Parameters
        ----------
        calibration : FtCalibration
            Of the robot's FT sensors.
        tared : collection of str, optional
            FT sensors whose offsets were found while nothing pushed. Where these are others now,
            what is to be subtracted is what readings ask for, as at first, and follows no drift.

        Returns
        -------
        tuple of str
            Submodels that begin anew.

        Raises
        ------
        ModelError
            If it is for another number of sensors; the one before stays.

        """
        n_fts = len(self.robot.ft_sensors)
        if len(calibration.offsets) != n_fts:
            raise ModelError(
                f'the calibration is for {len(calibration.offsets)} FT sensors, robot '
                f"'{self.robot.name}' has {n_fts}"
            )
        before = self.calibration or FtCalibration.identity(n_fts)
        change, anew = CalibrationChange(self.robot, before, calibration), []
        moved: dict[str, float] = {}
        for k, one in enumerate(self._submodels):
            shift = change.shift(one.known.block)
            if shift is None:
                anew.append(one.name)
                self._submodels[k] = self._afresh(one.known.block)
                self._start.pop(one.name, None)
                self._telling.followed.forget(one.known.offset_names)
            elif shift.any():
                one.shift_offsets(shift)
                moved |= dict(zip(one.known.offset_names, shift.tolist(), strict=True))
        self._telling.followed.shift(moved)
        self._telling.followed.forget(
            name for name, more in moved.items() if more and name.rpartition('.')[0] in tared
        )
        self.calibration = calibration
        self.builder.set_calibration(calibration)
        return tuple(anew)

    @one_thread()
    def add(
        self,
        samples: SampleBatch,
        *,
        free: Mask | None = None,
        external: Mapping[str, Array] | None = None,
    ) -> list[tuple[str, Change]]:
        """
        Work a stretch of samples in.

        Parameters
        ----------
        samples : SampleBatch
            In order, say of one second. What rests on a joint whose position is assumed gives no
            rows.
        free, external : optional
            As for `EquationBuilder.rows`.

        Returns
        -------
        list of tuple of str and Change
            What has just happened to which submodel.

        """
        if not len(samples):
            return []
        first, last = int(samples.stamp_ns[0]), int(samples.stamp_ns[-1])
        # Nothing was before the first stretch, or time was set back.
        since = self.stamp_ns if 0 < self.stamp_ns < first else first
        elapsed, self.stamp_ns = (last - since) / SECOND_NS, last
        # Of a time without samples offsets wander, rows do not fade.
        span = min(elapsed, _spanned(samples))
        samples = self._without_assumed(samples)
        if samples.efforts is not None and self.settings.effort_gains:
            samples = replace(samples, efforts=samples.efforts * self._gains)
        evidence = gather(self.builder, samples, external=external, free=free)
        if self.noise is not None:
            noise = self.noise.at_most(samples, self._levels)
            errors = rows_of_errors(
                self.builder, samples, noise, self._random, external=external, free=free
            )
            evidence = [replace(one, errors=own) for one, own in zip(evidence, errors)]
        changes = []
        for one, new in zip(self._submodels, evidence, strict=True):
            count = max((part.count for part in new.kinds.values()), default=0.0)
            if count:
                self.rows_ns[one.name] = last
            change = one.add(new, elapsed, span * count / len(samples))
            if change is not None:
                changes.append((one.name, change))
        for name, change in changes:
            if change is Change.OFFSET:
                self._let_go(name, evidence)
            if change in (Change.OFFSET, Change.BEGUN):
                known = next(one.known for one in self._submodels if one.name == name)
                self._telling.followed.forget(known.offset_names)
        return changes

    def _without_assumed(self, samples: SampleBatch) -> SampleBatch:
        """Return samples without the positions that nobody has measured."""
        if samples.joint_states is None:
            return samples
        assumed = samples.joint_states == SensorState.ASSUMED
        self._assumed = np.flatnonzero(assumed.any(axis=0))
        if not len(self._assumed):
            return samples
        return replace(samples, positions=np.where(assumed, np.nan, samples.positions))

    def withheld(self) -> dict[str, Withheld]:
        """
        Return whose rows are left out now, as something unknown acts on them or has changed.

        Returns
        -------
        dict of str to Withheld
            By submodel.

        """
        return {one.name: one.withheld for one in self._submodels if one.withheld is not None}

    def _let_go(self, name: str, evidence: Sequence[Evidence]) -> None:
        """Let neighbours go of offsets that have changed, but where their rows say otherwise."""
        changed = next(one.known for one in self._submodels if one.name == name)
        for one, new in zip(self._submodels, evidence, strict=True):
            known = one.known
            has_rows = any(part.count for part in new.kinds.values())
            if known.information is None or (has_rows and one.watched and not one.touched):
                continue
            shared = [other in changed.offset_names for other in known.offset_names]
            columns = known.offsets[shared]
            known.let_go(columns, np.full(len(columns), np.inf))

    def payloads(self) -> dict[str, Payload]:
        """
        Return what submodels carry since they last picked something up.

        Returns
        -------
        dict of str to Payload
            By submodel.

        """
        found = {one.name: one.payload() for one in self._submodels}
        return {name: payload for name, payload in found.items() if payload is not None}

    @one_thread()
    def refit(self) -> Refit | None:
        """
        Return what the rows so far tell.

        Returns
        -------
        Refit or None
            None: no submodel has rows whose noise is known.

        """
        ready = [one for one in self.known if one.information is not None]
        if not ready:
            return None
        found = joint_refit(ready, self.settings.weight, self._start, self.settings.method)
        named = {one.knowledge.block.submodel.name: one for one in found.bodies}
        self._start = {name: one.parameters for name, one in named.items()}
        for one in self._submodels:
            if one.name in named:
                one.take_over(named[one.name].x)
        return self._telling.refit(found, self._submodels, self.stamp_ns, self._assumed)


def _check_carriers(robot: Robot, names: Sequence[str]) -> None:
    """Raise unless there are such links, one in a submodel at most."""
    for name in names:
        if name not in robot.link_names:
            raise NameNotFound('link', name, robot.link_names)
    for submodel in robot.submodels:
        named = [robot.link_names[k] for k in submodel.links if robot.link_names[k] in names]
        if len(named) > 1:
            raise ConfigError(
                f"payload_links has {' and '.join(named)} of submodel '{submodel.name}': which "
                'of its links picks something up cannot be told, name one of them'
            )


def _spanned(samples: SampleBatch) -> float:
    """Return the time that samples stand for, each as long as it is to the next one [s]."""
    n = len(samples)
    if n == 1:
        return LONGEST_ALONE
    return float(samples.stamp_ns[-1] - samples.stamp_ns[0]) / SECOND_NS * n / (n - 1)


def equal_parts(samples: SampleBatch, seconds: float) -> Sequence[SampleBatch]:
    """
    Return a log as the stretches that a working robot would give.

    seconds [s].
    """
    times = (samples.stamp_ns - samples.stamp_ns[0]) / SECOND_NS
    edges = np.flatnonzero(np.diff(np.floor(times / seconds)) > 0) + 1
    starts, stops = [0, *edges.tolist()], [*edges.tolist(), len(samples)]
    return [samples.take(slice(a, b)) for a, b in zip(starts, stops, strict=True)]
