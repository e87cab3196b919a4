# Copyright 2026 The inertial_estimation developers
# SPDX-License-Identifier: BSD-3-Clause
"""External wrenches and joint torques from FT sensors, IMUs and joint sensors [T chapter 4]."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from math import inf

import numpy as np

from inertial_estimation.arrays import Array
from inertial_estimation.errors import ConfigError, ModelError
from inertial_estimation.estimation.balance import build_balance
from inertial_estimation.estimation.contacts import Contact, ContactSet, check_contacts
from inertial_estimation.estimation.estimate import WrenchEstimate
from inertial_estimation.estimation.faults import (
    ABSURD,
    Faults,
    SampleShapes,
    alike,
    check_numbers,
    find_faults,
    find_qualities,
    with_known_temperatures,
    without_faults,
)
from inertial_estimation.estimation.forest import Dynamics
from inertial_estimation.estimation.link_motion import LinkMotions
from inertial_estimation.estimation.plan import Plan, build_plan
from inertial_estimation.estimation.step import Step
from inertial_estimation.model.arguments import numbers
from inertial_estimation.model.inertia import check_centres
from inertial_estimation.model.robot import Robot
from inertial_estimation.model.sensors import FtCalibration
from inertial_estimation.model.tree import Submodel, decompose
from inertial_estimation.sample import Sample, SampleBatch, SensorState

CHUNK = 256
"""Samples of a batch that are worked on at once; their workspace fits into a processor's cache."""
STEPS_KEPT = 64
"""They are small; more than this means contacts that never come back."""
DYNAMICS_KEPT = 3
"""Each holds Pinocchio's workspace, tens of megabytes for a humanoid."""


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
        _check_parameters(robot)
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
        self._none_assumed = bytes(len(robot.joint_names))
        plan = self._cache.faultless(self._none_assumed, self._defaults).plan
        self._between = plan.dynamics.forest.joints_between_trees

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
        _check_parameters(robot)
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
        step, sample = self.prepare(sample, contacts)
        dynamics = step.plan.dynamics
        readings = self.calibration.apply(sample.ft_readings, sample.ft_temperatures)
        return step, step.solve(
            sample.stamp_ns, dynamics.tau, dynamics.poses, dynamics.jacobian, readings
        )

    def batch(
        self, samples: SampleBatch, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> WrenchEstimate:
        """
        Estimate many instants, each as `update` does; every array has a leading axis for them.

        The contacts are the same for all instants.
        """
        self._shapes.check(samples)
        samples = with_known_temperatures(samples, self.calibration)
        given = self._contact_set(contacts)
        parts, order = [], []
        for flags, rows in alike(*find_faults(samples, self.motion, self._between)):
            faults = Faults(*flags)
            plan = self._cache.get(faults, given).plan
            for start in range(0, max(1, len(rows)), CHUNK):
                order.append(rows[start : start + CHUNK])
                chunk = samples.take(order[-1])
                chunk = without_faults(chunk, faults, plan.motion)
                step = Step(plan, self.rank_tolerance, (len(chunk),))
                step.place(given.contacts)
                readings = self.calibration.apply(chunk.ft_readings, chunk.ft_temperatures)
                results = plan.dynamics.run_many(chunk)
                parts.append(step.solve(chunk.stamp_ns, *results, readings))
        places = np.argsort(np.concatenate(order))
        columns = {
            name: np.concatenate([getattr(part, name) for part in parts])[places]
            for name in WrenchEstimate._fields
            if name != 'contacts'
        }
        return WrenchEstimate(contacts=given.contacts, **columns)

    def prepare(
        self, sample: Sample, contacts: Iterable[Contact] | ContactSet | None = None
    ) -> tuple[Step, Sample]:
        """
        Return the step that estimates a sample, and the sample without the readings not used.

        The step has the contacts, the dynamics of its plan are those of the sample; the next call
        overwrites both. Where a link does not have just one whole IMU, the row of its first one
        holds the motion there, and the others zeros.
        """
        self._shapes.check(sample, Sample)
        sample = with_known_temperatures(sample, self.calibration)
        given = self._contact_set(contacts)
        assumed = self._none_assumed
        if sample.joint_states is not None:
            assumed = (sample.joint_states == SensorState.ASSUMED).tobytes()
        step = self._cache.faultless(assumed, given)
        try:
            whole = sample
            if not self._is_plain:
                # Missing numbers spread to the forces.
                with np.errstate(over='ignore', invalid='ignore'):
                    whole = self.motion.nominal.complete(sample)
            step.plan.dynamics.run(whole)
            if _is_faulty(step.plan, whole):
                faults = find_faults(sample, self.motion, self._between)
                step = self._cache.get(faults, given)
                whole = without_faults(sample, faults, step.plan.motion)
                step.plan.dynamics.run(whole)
        except (TypeError, ValueError):
            # To check the type of every array first would cost time in every cycle.
            check_numbers(sample)
            raise
        return step, whole

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


def _is_faulty(plan: Plan, sample: Sample) -> bool:
    """Return true if something that was used may be NaN, infinite or absurd."""
    tau, q, y = plan.dynamics.tau, sample.positions, sample.ft_readings.ravel()
    with np.errstate(over='ignore', invalid='ignore'):
        size = tau.dot(tau) + q.dot(q) + y.dot(y)
    return not bool(size < ABSURD**2)


def _check_parameters(robot: Robot) -> None:
    """Refuse inertial parameters that would make every estimate NaN, or would lose digits."""
    finite = np.isfinite(robot.parameters).all(axis=1)
    if not finite.all():
        name = robot.link_names[int(np.argmin(finite))]
        raise ModelError(f"link '{name}' has inertial parameters that are not finite")
    check_centres(robot.link_names, robot.parameters, float(np.abs(robot.parameters).max()))


class PlanCache:
    """Steps for the sensors that work and the contacts there are, made once and kept."""

    def __init__(
        self, robot: Robot, length_scale: float, rank_tolerance: float, motion: LinkMotions
    ) -> None:
        self.robot = robot
        """Its inertial parameters may be replaced; models get them when they are used again."""
        self._motion = motion
        self._length_scale, self._rank_tolerance = length_scale, rank_tolerance
        self._dynamics: dict[tuple[int, ...], Dynamics] = {}
        self._steps: dict[Hashable, Step] = {}

    def faultless(self, assumed: bytes, contacts: ContactSet) -> Step:
        """Return the step for samples in which every sensor works."""
        key = (assumed, contacts.at_origin)
        step = self._steps.get(key)
        if step is None:
            flags, n_fts = np.frombuffer(assumed, dtype=bool), len(self.robot.ft_sensors)
            step = self._keep(key, self.get(Faults.none(flags, n_fts, self._motion), contacts))
        return self._placed(step, contacts)

    def get(self, faults: Faults, contacts: ContactSet) -> Step:
        """Return the step for the sensors that work."""
        key = (np.concatenate(faults).tobytes(), contacts.at_origin)
        step = self._steps.get(key)
        if step is None:
            step = self._keep(key, self._build(faults, contacts.at_origin))
        return self._placed(step, contacts)

    def _placed(self, step: Step, contacts: ContactSet) -> Step:
        step.plan.dynamics.use(self.robot.parameters)
        step.place(contacts.contacts)
        return step

    def _keep(self, key: Hashable, step: Step) -> Step:
        """Store a step, forgetting the oldest one when there are too many."""
        if len(self._steps) >= STEPS_KEPT:
            del self._steps[next(iter(self._steps))]
        self._steps[key] = step
        return step

    def _build(self, faults: Faults, contacts: ContactSet) -> Step:
        robot, given, motion = self.robot, contacts.contacts, self._motion.plan(faults.bits)
        links = [robot.frame(contact.frame)[0] for contact in given]
        used = np.flatnonzero(~faults.fts).tolist()
        submodels = decompose(robot.links, robot.ft_sensors, used)
        active = _trusted(robot, submodels, contacts, links)
        dynamics = self._dynamics_for(np.flatnonzero(motion.serving).tolist())
        active_links = [links[c] for c in active]
        balance = build_balance(robot, dynamics.forest, submodels, used, active_links)
        forest = motion.reaching(dynamics.forest)
        quality = find_qualities(robot, forest, balance, given, active, faults, motion)
        plan = build_plan(
            robot, dynamics, balance, quality, given, active, faults, motion, self._length_scale
        )
        return Step(plan, self._rank_tolerance)

    def _dynamics_for(self, imus: list[int]) -> Dynamics:
        """Return the models for the working IMUs; the first ones, without fault, are kept."""
        serving, _ = self.robot.motion_sources(imus or range(len(self.robot.imus)))
        key = tuple(serving.tolist())
        if key not in self._dynamics:
            if len(self._dynamics) >= DYNAMICS_KEPT:
                gone = self._dynamics.pop(list(self._dynamics)[1])
                steps = self._steps.items()
                self._steps = {k: step for k, step in steps if step.plan.dynamics is not gone}
            self._dynamics[key] = Dynamics(self.robot, key)
        return self._dynamics[key]


def _trusted(
    robot: Robot, submodels: Sequence[Submodel], contacts: ContactSet, links: Sequence[int]
) -> list[int]:
    """
    Return the contacts that stay: reported ones, and the assumed ones of other submodels.

    Where submodels merge the first assumed contact stays, and others beside it that only push,
    if it does too: that both feet stand is more than the sensors tell.
    """
    own = {k: s for s, submodel in enumerate(robot.submodels) for k in submodel.links}
    merged = {k: s for s, submodel in enumerate(submodels) for k in submodel.links}
    first: dict[int, tuple[int, bool]] = {}
    reported = set()
    for contact, assumed, k in zip(contacts.contacts, contacts.assumed, links, strict=True):
        if contact.unknowns and assumed:
            first.setdefault(merged[k], (own[k], bool(contact.kind.limits)))
        elif contact.unknowns:
            reported.add(merged[k])
    stays = []
    for c, (contact, k) in enumerate(zip(contacts.contacts, links, strict=True)):
        gives_way = contact.unknowns and contacts.assumed[c]
        if not gives_way:
            stays.append(c)
        elif merged[k] not in reported:
            nearest, pushes = first[merged[k]]
            if nearest == own[k] or (pushes and contact.kind.limits):
                stays.append(c)
    return stays
