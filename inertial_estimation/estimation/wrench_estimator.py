# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""External wrenches and joint torques from FT sensors, IMUs and joint sensors [T chapter 4]."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import inf
from typing import Any, NamedTuple

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, ModelError, ShapeError
from inertial_estimation.estimation.contacts import Contact, ContactSet, check_contacts
from inertial_estimation.estimation.dynamics import compiled
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.faults import (
    ABSURD,
    NUMBERS,
    Faults,
    Gaps,
    Unsound,
    alike,
    find_faults,
    unsound,
)
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.plan import Plan
from inertial_estimation.estimation.plan_cache import PlanCache
from inertial_estimation.estimation.step import Step
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.ft_calibration import FtCalibration
from inertial_estimation.model.inertia import check_centres
from inertial_estimation.model.robot import Robot
from inertial_estimation.sample import Sample, SampleBatch, SensorState

CHUNK = 256
"""Samples of a batch that are worked on at once; their workspace fits into a processor's cache."""


class Pattern(NamedTuple):
    """Contacts and missing numbers of a sample, and the step for it."""

    assumed: bytes
    contacts: ContactSet
    parameters: Array
    step: Step
    gaps: Gaps | None = None
    """None: nothing is missing."""
    unsound: Unsound = ()
    """Numbers that are missing."""

    def still_lacks(self, sample: Sample, measured: Array) -> bool:
        """Return true if the numbers that were missing are missing in the same way, mostly NaN."""
        for k, places, kept in self.unsound:
            array: Any = sample[k] if k < len(NUMBERS) else measured
            if array.ravel()[places].tobytes() != kept:
                return False
        return True


class WrenchEstimator:
    """
    Estimate external wrenches and joint torques from samples.

    IMUs of one link are averaged by their stated noise; a motion that none of them measures comes
    from the nearest link on which it is measured, through the joints [T 4.11, 4.4.3].

    There is no memory between samples: `update` and `batch` are the same computation. Sensors that
    are NaN in a sample cost only the results that depend on them: without an FT sensor its two
    submodels merge, without an IMU a neighbour serves its links. The first sample with a new
    combination of faults takes milliseconds longer, as new models are built.

    Parameters
    ----------
    robot : Robot
        With FT sensors, and with a fixed link or at least one IMU.
    contacts : iterable of Contact
        Default contacts, most trusted first: where submodels merge, only the first one of them
        stays, or all that only push if the first does. A submodel without contact is taken to be
        free; its external wrench is its residual.
    calibration : FtCalibration, optional
        From raw readings to wrenches. Default: they are wrenches.
    length_scale : float
        Moment noise over force noise [m], for submodels with other contacts than one full wrench.
    rank_tolerance : float
        A combination of contacts that shows in the sensors by less than this counts as zero there:
        noise is blown up by the inverse at most.
    acceleration_arrays : bool
        Take angular accelerations from the links with three accelerometers or more, off one line,
        instead of from the samples.

    Raises
    ------
    ModelError
        If the motion of the robot is unknown, the calibration is for other sensors, or the
        inertial parameters of a link cannot be used, or a contact is no `Contact`, or the IMUs do
        not measure enough.
    ConfigError
        If one of the numbers is out of its range.
    NameNotFound
        If a contact names a frame that the robot does not have.

    """

    def __init__(
        self,
        robot: Robot,
        contacts: Iterable[Contact] = (),
        *,
        calibration: FtCalibration | None = None,
        length_scale: float = 0.1,
        rank_tolerance: float = 1e-2,
        acceleration_arrays: bool = False,
    ) -> None:
        if not isinstance(robot, Robot):
            raise ModelError(f"'robot' is a {type(robot).__name__}, expected Robot")
        if not robot.fixed_frame and not robot.imus:
            raise ModelError(f"robot '{robot.name}' has neither a fixed_link nor an IMU")
        n_fts = len(robot.ft_sensors)
        self.robot = robot
        """Its inertial parameters are those in use."""
        self.contacts = check_contacts(contacts)
        self.calibration = FtCalibration.identity(n_fts)
        if calibration is not None:
            self.set_calibration(calibration)
        check_centres(robot.link_names, robot.parameters)
        if not 0.0 < float(numbers('length_scale', length_scale, (), finite=False)) < inf:
            raise ConfigError(f'length_scale is {length_scale}, expected a positive length')
        if not 0.0 <= float(numbers('rank_tolerance', rank_tolerance, (), finite=False)) < 1.0:
            raise ConfigError(f'rank_tolerance is {rank_tolerance}, expected 0 or more, below 1')
        self.rank_tolerance = rank_tolerance
        self._shapes = SampleShapes(robot)
        self.motion = LinkMotions(robot, arrays=acceleration_arrays)
        """Motions of the links that carry IMUs."""
        self._is_plain = self.motion.nominal.is_plain
        self._cache = PlanCache(robot, length_scale, rank_tolerance, self.motion)
        self._defaults = ContactSet(self.contacts, (True,) * len(self.contacts))
        self._assumed = self._none_assumed = bytes(len(robot.joint_names))
        self._states = b''
        """Joint states of the last sample, and those of them that are `_assumed`."""
        step = self._cache.faultless(self._none_assumed, self._defaults)
        self._last = Pattern(self._none_assumed, self._defaults, robot.parameters, step)
        self._between = step.plan.dynamics.forest.joints_between_trees

    def set_calibration(self, calibration: FtCalibration) -> None:
        """Use another calibration of the robot's FT sensors from the next estimate on."""
        n_fts = len(self.robot.ft_sensors)
        if not isinstance(calibration, FtCalibration) or len(calibration.offsets) != n_fts:
            raise ModelError(f"'calibration' is no FtCalibration of {n_fts} FT sensors")
        self.calibration = calibration

    def set_parameters(self, parameters: Array) -> None:
        """
        Use other inertial parameters (n_links, 10) from the next estimate on.

        They are as in `model.inertia` [kg, kg m, kg m^2]; if those of a link cannot be used, the
        ones before stay. Models are not built again: they get the numbers when they are used next.
        `Uncertainty` and `InternalWrenches` follow their estimator, a `MomentumCheck` needs its
        own call.
        """
        robot = self.robot.with_parameters(parameters)
        check_centres(robot.link_names, robot.parameters)
        self.robot = robot
        self._cache.robot = robot

    def update(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> WrenchEstimate:
        """
        Estimate one instant.

        Parameters
        ----------
        sample : Sample
            Rows as in the robot.
        contacts : iterable of Contact, or ContactSet, optional
            Contacts of this instant instead of the default ones; none of them gives way, unless
            the set states it, as from `with_touches`.

        Returns
        -------
        WrenchEstimate

        Raises
        ------
        ShapeError, ModelError
            If an array of the sample has the wrong shape or holds no numbers.
        NameNotFound
            If a contact names a frame that the robot does not have.

        """
        return self.step(sample, contacts)[1]

    def step(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> tuple[Step, WrenchEstimate]:
        """Return the step that estimates a sample, and the estimate."""
        step, sample, ft_wrenches = self.prepare(sample, contacts)
        dynamics = step.plan.dynamics
        return step, step.solve(
            sample.stamp_ns, dynamics.tau, dynamics.poses, dynamics.axes, ft_wrenches
        )

    def batch(
        self,
        samples: SampleBatch,
        contacts: Iterable[Contact] | ContactSet | None = None,
        mark: Callable[[WrenchEstimate, Plan], WrenchEstimate] | None = None,
    ) -> WrenchEstimate:
        """
        Estimate many instants, each as `update` does; every array has a leading axis for them.

        The contacts are the same for all instants. `mark` adds flags to those of one plan.
        """
        self._shapes.check(samples)
        measured = self.calibration.apply(samples.ft_readings, samples.ft_temperatures)
        given = self._contact_set(contacts)
        found: dict[str, Any] = {}
        for flags, rows in alike(*find_faults(samples, measured, self.motion, self._between)):
            faults, n = Faults(*flags), -1
            plan = self._cache.get(faults, given).plan
            gaps = Gaps(faults, plan.motion)
            for start in range(0, max(1, len(rows)), CHUNK):
                own = rows[start : start + CHUNK]
                taken: Any = own
                if len(own) and own[-1] - own[0] == len(own) - 1:
                    taken = slice(own[0], own[-1] + 1)
                chunk, wrenches = gaps.fill(samples.take(taken), measured[taken])
                if len(chunk) != n:
                    n = len(chunk)
                    step = Step(plan, self.rank_tolerance, (n,))
                    step.place(given.contacts)
                results = plan.dynamics.run_many(chunk)
                part = step.solve(chunk.stamp_ns, *results, wrenches)
                if mark is not None:
                    part = mark(part, plan)
                for name, values in part._asdict().items():
                    if name != 'contacts':
                        if name not in found:
                            found[name] = np.empty((len(samples), *values.shape[1:]), values.dtype)
                        found[name][taken] = values
        return WrenchEstimate(contacts=given.contacts, **found)

    def prepare(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> tuple[Step, Sample, Array]:
        """
        Return the step for a sample, the sample and its FT wrenches without what is missing.

        The step has the contacts, the dynamics of its plan are those of the sample; the next call
        overwrites both. Where a link does not have just one whole IMU, the row of its first one
        holds the motion there, and the others zeros. FT wrenches: calibrated, (n_fts, 6) [N, Nm].
        """
        self._shapes.check(sample, Sample)
        given = self._contact_set(contacts)
        assumed, states = self._none_assumed, sample.joint_states
        if states is not None:
            if (kept := states.tobytes()) != self._states:
                self._assumed, self._states = (states == SensorState.ASSUMED).tobytes(), kept
            assumed = self._assumed
        try:
            measured = self.calibration.apply(sample.ft_readings, sample.ft_temperatures)
            return self._fitting(sample, measured, assumed, given)
        except (TypeError, ValueError):
            # To check the type of every array first would cost time in every cycle.
            check_numbers(sample)
            raise

    def _fitting(
        self, sample: Sample, measured: Array, assumed: bytes, contacts: ContactSet
    ) -> tuple[Step, Sample, Array]:
        """Run the step that fits a sample; the next one mostly has the same pattern."""
        last, parameters = self._last, self.robot.parameters
        same = contacts is last.contacts and parameters is last.parameters
        if not same or assumed != last.assumed or not last.still_lacks(sample, measured):
            step = self._cache.faultless(assumed, contacts)
            last = Pattern(assumed, contacts, parameters, step)
        whole, wrenches = self._run(last, sample, measured)
        if _is_faulty(last.step.plan, whole, wrenches):
            faults = find_faults(sample, measured, self.motion, self._between)
            step = self._cache.get(faults, contacts)
            gaps, gone = Gaps(faults, step.plan.motion), unsound(sample, measured)
            last = Pattern(assumed, contacts, parameters, step, gaps, gone)
            whole, wrenches = self._run(last, sample, measured)
        self._last = last
        return last.step, whole, wrenches

    def _run(self, pattern: Pattern, sample: Sample, measured: Array) -> tuple[Sample, Array]:
        """Run the dynamics of a step for a sample; return it and its wrenches without gaps."""
        # `batch` may have moved the contacts since.
        pattern.step.place(pattern.contacts.contacts)
        if pattern.gaps is not None:
            sample, measured = pattern.gaps.fill(sample, measured)
        elif not self._is_plain:
            # Missing numbers spread to the forces.
            with np.errstate(over='ignore', invalid='ignore'):
                sample = self.motion.nominal.complete(sample)
        pattern.step.plan.dynamics.run(sample)
        return sample, measured

    def with_touches(self, touches: Iterable[Contact]) -> ContactSet:
        """
        Return the default contacts with others that are reported, by a skin for example.

        In a submodel with a reported contact the defaults give way, in the others they stay
        [T Assumption 4.1].
        """
        return self._defaults.with_touches(check_contacts(touches))

    def _contact_set(self, contacts: Iterable[Contact] | ContactSet | None) -> ContactSet:
        if contacts is None:
            return self._defaults
        if isinstance(contacts, ContactSet):
            return contacts
        return ContactSet.reported(contacts)


class SampleShapes:
    """The shapes of the arrays of a robot's samples."""

    def __init__(self, robot: Robot) -> None:
        joints, imus, fts = len(robot.joint_names), len(robot.imus), len(robot.ft_sensors)
        needed = [(joints,)] * 3 + [(imus, 3)] * 3 + [(fts, 6)]
        optional = ('joint_states', 'imu_states', 'ft_states', 'ft_temperatures')
        shapes = [*needed, (joints,), (imus,), (fts,), (fts,)]
        may_lack = [False] * len(needed) + [True] * len(optional)
        self._shapes = tuple(zip((*NUMBERS, *optional), shapes, may_lack, strict=True))
        self._counts = f"robot '{robot.name}' has {joints} joints, {imus} IMUs, {fts} FT sensors"

    def check(self, sample: Sample | SampleBatch, wanted: type = SampleBatch) -> None:
        """Refuse anything but a sample, or samples, of this robot."""
        if not isinstance(sample, wanted):
            raise ModelError(f'a {type(sample).__name__} is given, expected a {wanted.__name__}')
        lead = np.shape(sample.stamp_ns) if wanted is SampleBatch else ()
        try:
            for name, shape, may_lack in self._shapes:
                array = getattr(sample, name)
                if may_lack and array is None:
                    continue
                if array.shape != lead + shape:
                    raise ShapeError(name, lead + shape, array.shape, self._counts)
        except AttributeError:
            raise ModelError(f"'{name}' of a sample is no NumPy array") from None
        if wanted is SampleBatch:
            check_numbers(sample)


def check_numbers(sample: Sample | SampleBatch) -> None:
    """Refuse arrays of anything but numbers."""
    for name in NUMBERS:
        array = getattr(sample, name)
        if array.dtype.kind not in 'biuf':
            raise ModelError(f"'{name}' is an array of {array.dtype}, expected numbers")


def _is_faulty(plan: Plan, sample: Sample, ft_wrenches: Array) -> bool:
    """Return true if something that was used may be NaN, infinite or absurd."""
    tau, q, y = plan.dynamics.tau, sample.positions, ft_wrenches
    if compiled is not None:
        return not compiled.square(tau, np.ascontiguousarray(q, dtype=np.float64), y) < ABSURD**2
    # Unlike `dot`, `vdot` does not warn of an overflow; nor do Python's own floats.
    return not sum([float(np.vdot(part, part)) for part in (tau, q, y)]) < ABSURD**2
